"""The knobs of an embedded language."""

import dataclasses

from xling_jax import schema
from xling_jax.schema import Field

# A probability is that of a construction at each place where it is possible; where a word has
# habits of its own, it is that of a word with average habits.
_ALMOST = 0.95  # at most, lest a sentence never ends
_STRONG = 10  # at most: far above, the weights of some words become 0 and they are never used


def _probability(meaning: str) -> Field:
    return schema.number(f"probability {meaning}", 0, _ALMOST)


def _strength(meaning: str) -> Field:
    return schema.number(meaning, 0, _STRONG)


FIELDS = {
    "word_types": schema.whole(
        "dictionary words, function words and names included, before inflection; enough for every "
        "meaning class and few enough for tables of all pairs of words",
        200,
        10_000,
    ),
    "topics": schema.whole("number of topics", most=1000),
    "topicality": _strength(
        "nats by which words of one topic prefer each other; 0 turns topics off"
    ),
    "paragraph": schema.number("mean number of consecutive sentences on one topic", 1, 1000),
    "zipf_exponent": _strength(
        "a word's frequency falls with its rank among the words of its kind as "
        "(rank + 2.7)^-zipf_exponent; 0 is flat"
    ),
    "names": schema.number(
        "share of the persons, places and groups spoken of that go by a proper name; about 16 % of "
        "the words are names, so some have to be",
        0.01,
        _ALMOST,
    ),
    "selection": _strength(
        "nats that a partner of a wrong meaning class costs; 0 lets verbs take any noun"
    ),
    "collocation": _strength(
        "sd, in nats, of the preference of one word for another beyond their classes; 0 makes the "
        "words of a class and topic interchangeable in what they combine with"
    ),
    "habits": _strength(
        "sd, in nats, of a word's own inclination to determiners, number, tense, adpositions and "
        "modifiers; 0 gives all words of a class the same"
    ),
    "depth": schema.whole(
        "how many recursive constituents may be nested in each other (modifying phrases and "
        "clauses, complement clauses, coordination)",
        0,
        100,
    ),
    "adjectives": _probability("of an adjective with a noun, and of a second after it"),
    "adverbs": _probability("of an adverb in a clause"),
    "adjuncts": _probability("of a phrase of place, time, means or company in a clause"),
    "prepositional_phrases": _probability("that a phrase modifies a noun"),
    "relative_clauses": _probability("that a clause modifies a noun"),
    "complement_clauses": _probability(
        "that a verb of saying, thinking or wanting governs a clause"
    ),
    "adverbial_clauses": _probability("that a sentence has an adverbial clause"),
    "coordination": _probability("that a noun phrase or sentence is coordinated with another"),
    "predications": _probability("that a clause says what somebody is or is like"),
    "passives": _probability("that a transitive clause is passive"),
    "negation": _probability("that a finite clause is negated"),
    "questions": _probability("that a sentence is a question"),
    "pronouns": _probability("that a pronoun stands for a subject or object"),
    "capitals": schema.whole(
        "1 to capitalise names and the first word of a sentence, else 0", 0, 1
    ),
    "seed": schema.seed("of the language (words, preferences, habits), not of its sentences"),
}


@dataclasses.dataclass(frozen=True)
class LanguageConfig:
    """What an embedded language is like; `FIELDS` says what each value means."""

    word_types: int = 2000
    topics: int = 10
    topicality: float = 3.0
    paragraph: float = 4.0
    zipf_exponent: float = 0.8
    names: float = 0.3
    selection: float = 6.0
    collocation: float = 2.0
    habits: float = 1.0
    depth: int = 3
    adjectives: float = 0.25
    adverbs: float = 0.25
    adjuncts: float = 0.25
    prepositional_phrases: float = 0.1
    relative_clauses: float = 0.08
    complement_clauses: float = 0.7
    adverbial_clauses: float = 0.08
    coordination: float = 0.06
    predications: float = 0.12
    passives: float = 0.1
    negation: float = 0.08
    questions: float = 0.08
    pronouns: float = 0.1
    capitals: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        schema.check(dataclasses.asdict(self), FIELDS)
