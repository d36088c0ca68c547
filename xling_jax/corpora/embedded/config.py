"""The knobs of an embedded language, and those by which a second one differs from it."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

from xling_jax import schema
from xling_jax.schema import Field


def _knob(default: Any, field: Field) -> Any:
    return dataclasses.field(default=default, metadata={"field": field})


def _whole(default: int, least: int, most: int, meaning: str) -> Any:
    return _knob(default, schema.whole(meaning, least, most))


def _number(default: float, least: float, most: float, meaning: str) -> Any:
    return _knob(default, schema.number(meaning, least, most))


def _strength(default: float, meaning: str) -> Any:
    """At most 10: far above, the weights of some words become 0 and they are never used."""
    return _number(default, 0, 10, meaning)


def _probability(default: float, meaning: str) -> Any:
    """That of a construction at each place where it is possible; below 1, so that sentences end.
    Where a word has habits of its own, it is that of a word with average habits."""
    return _number(default, 0, 0.95, f"probability {meaning}")


def _choice(choices: str, meaning: str) -> Any:
    """The first is the default."""
    first, *others = choices.split()
    return _knob(first, schema.choice(meaning, first, *others))


@dataclasses.dataclass(frozen=True)
class _Knobs:
    def __post_init__(self) -> None:
        schema.check(dataclasses.asdict(self), self.fields())

    @classmethod
    @functools.cache
    def fields(cls) -> dict[str, Field]:
        """What each knob may be, and means."""
        return {knob.name: knob.metadata["field"] for knob in dataclasses.fields(cls)}


@dataclasses.dataclass(frozen=True)
class LanguageConfig(_Knobs):
    """What an embedded language is like."""

    word_types: int = _whole(
        2000,
        200,
        10_000,
        "dictionary words, function words and names included, before inflection; enough for every "
        "meaning class and few enough for tables of all pairs of words",
    )
    topics: int = _whole(10, 1, 1000, "number of topics")
    topicality: float = _strength(
        3.0, "nats by which words of one topic prefer each other; 0 turns topics off"
    )
    paragraph: float = _number(4.0, 1, 1000, "mean number of consecutive sentences on one topic")
    zipf_exponent: float = _strength(
        0.8,
        "a word's frequency falls with its rank among the words of its kind as "
        "(rank + 2.7)^-zipf_exponent; 0 is flat",
    )
    names: float = _number(
        0.3,
        0.01,
        0.95,
        "share of the persons, places and groups spoken of that go by a proper name; about 16 % of "
        "the words are names, so some have to be",
    )
    selection: float = _strength(
        6.0, "nats that a partner of a wrong meaning class costs; 0 lets verbs take any noun"
    )
    collocation: float = _strength(
        2.0,
        "sd, in nats, of the preference of one word for another beyond their classes; 0 makes the "
        "words of a class and topic interchangeable in what they combine with",
    )
    habits: float = _strength(
        1.0,
        "sd, in nats, of a word's own inclination to determiners, number, tense, adpositions and "
        "modifiers; 0 gives all words of a class the same",
    )
    depth: int = _whole(
        3,
        0,
        100,
        "how many recursive constituents may be nested in each other (modifying phrases and "
        "clauses, complement clauses, coordination)",
    )
    adjectives: float = _probability(0.25, "of an adjective with a noun, and of a second after it")
    adverbs: float = _probability(0.25, "of an adverb in a clause")
    adjuncts: float = _probability(0.25, "of a phrase of place, time, means or company in a clause")
    prepositional_phrases: float = _probability(0.1, "that a phrase modifies a noun")
    relative_clauses: float = _probability(0.08, "that a clause modifies a noun")
    complement_clauses: float = _probability(
        0.7, "that a verb of saying, thinking or wanting governs a clause"
    )
    adverbial_clauses: float = _probability(0.08, "that a sentence has an adverbial clause")
    coordination: float = _probability(
        0.06, "that a noun phrase or sentence is coordinated with another"
    )
    predications: float = _probability(0.12, "that a clause says what somebody is or is like")
    passives: float = _probability(0.1, "that a transitive clause is passive")
    negation: float = _probability(0.08, "that a finite clause is negated")
    questions: float = _probability(0.08, "that a sentence is a question")
    pronouns: float = _probability(0.1, "that a pronoun stands for a subject or object")
    capitals: int = _whole(
        0, 0, 1, "1 to capitalise names and the first word of a sentence, else 0"
    )
    seed: int = _knob(
        0, schema.seed("of the language (words, preferences, habits), not of its sentences")
    )


@dataclasses.dataclass(frozen=True)
class SecondConfig(_Knobs):
    """How a second language differs from the first, with which it shares what can be said. With the
    defaults it has other words, and is otherwise the same."""

    anchors: float = _number(
        0.0,
        0,
        1,
        "share of the dictionary words that are the same in both languages, names before all "
        "others; punctuation, which always is, does not count; more anchors are the same ones and "
        "others, and leave the remaining words as they are",
    )
    script: str = _choice(
        "latin cyrillic",
        "with cyrillic every word but the anchors, which then do not inflect, is written letter "
        "for letter in Cyrillic, so that the languages share no other piece",
    )
    order: str = _choice(
        "svo sov vso",
        "of subject, verb and object; pronouns that ask or relate stand first in their clause in "
        "any order",
    )
    adpositions: str = _choice("before after", "where they stand to their noun")
    adjectives: str = _choice("before after", "where they stand to their noun")
    inverted: bool = _knob(
        False,
        schema.flag(
            "every sentence is turned round but for its last mark (the inverted order of Dufter & "
            "Schütze 2020)"
        ),
    )
    morphology: str = _choice(
        "english isolating rich",
        "isolating: the dictionary form is the only one; rich: other suffixes than English, cases "
        "of nouns and pronouns, and agreement of verbs; only an SVO language of English morphology "
        'has English inversion and "do"',
    )
    articles: bool = _knob(True, schema.flag("whether there are any"))
    domain: float = _number(
        0.0,
        0,
        1,
        "how far its own text is in topics and word frequencies from the first language's: 0 is "
        "the same; at 1 the rarest topic is as frequent as the first language's most frequent one, "
        "and so on, and the frequencies of words of the same kind and meaning class are dealt out "
        "anew; between, both are mixed; translations are not affected",
    )
    seed: int = _knob(0, schema.seed("of its words, and of which of them are anchors"))


# The embedded languages by the names that configs have. A new one is an entry here.
EMBEDDED = {
    "en": SecondConfig(),
    # As a Romance language is to English.
    "near": SecondConfig(anchors=0.25, adjectives="after"),
    # As a language of another family, script and type is.
    "far": SecondConfig(
        anchors=0.05,
        script="cyrillic",
        order="sov",
        adpositions="after",
        morphology="rich",
        articles=False,
    ),
}


def are_embedded(languages: Sequence[str]) -> bool:
    """Whether languages of a config are embedded ones. ValueError: some are and some are not, or
    they do not begin with `en`."""
    if set(languages).isdisjoint(EMBEDDED.keys() - {"en"}):
        return False
    if languages[0] != "en" or not set(languages) <= set(EMBEDDED):
        raise ValueError(
            f"{'-'.join(languages)}: the embedded languages are {', '.join(EMBEDDED)}, of "
            "which en comes first"
        )
    return True
