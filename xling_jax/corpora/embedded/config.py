"""The knobs of an embedded language, and those that make a second one differ from it."""

import dataclasses
from collections.abc import Sequence

from xling_jax import schema

# The values and the meaning of each knob. Strengths are at most 10: far above that, the weights of
# some words become 0, so that they are never used. A probability is that of a construction wherever
# it is possible, for a word with average habits; it is below 1, so that sentences end.
LANGUAGE_FIELDS = schema.table("""
    word_types  200..10000  dictionary words, function words and names included, before inflection;
      enough for every meaning class and few enough for tables of all pairs of words
    topics  1..1000  number of topics
    topicality  0.0..10  nats by which words of one topic prefer each other; 0 turns topics off
    paragraph  1.0..1000  mean number of sentences before a topic is drawn, perhaps the same one
    zipf_exponent  0.0..10  a word's frequency falls with its rank among the words of its kind as
      (rank + 2.7)^-zipf_exponent; 0 is flat
    names  0.01..0.95  share of the persons, places and groups spoken of that go by a proper name;
      every language has names, so some have to be
    name_types  0.01..0.4  share of the dictionary words, function words aside, that are names
    selection  0.0..10  nats that a partner of a wrong meaning class costs; 0 lets verbs take any
      noun
    collocation  0.0..10  sd, in nats, of the preference of one word for another beyond their
      classes; 0 makes the words of a class and topic interchangeable in what they combine with
    habits  0.0..10  sd, in nats, of a word's own inclination to determiners, number, tense,
      adpositions and modifiers; 0 gives all words of a class the same
    depth  0..100  how many recursive constituents may be nested in each other (modifying phrases
      and clauses, complement clauses, coordination)
    adjectives  0.0..0.95  probability of an adjective with a noun, and of a second after it
    adverbs  0.0..0.95  probability of an adverb in a clause
    adjuncts  0.0..0.95  probability of a phrase of place, time, means or company in a clause
    prepositional_phrases  0.0..0.95  probability that a phrase modifies a noun
    relative_clauses  0.0..0.95  probability that a clause modifies a noun
    complement_clauses  0.0..0.95  probability that a verb of saying, thinking or wanting governs a
      clause
    adverbial_clauses  0.0..0.95  probability that a sentence has an adverbial clause
    coordination  0.0..0.95  probability that a noun phrase or sentence is coordinated with another
    predications  0.0..0.95  probability that a clause says what something is like or where it is
    passives  0.0..0.95  probability that a transitive clause is passive
    negation  0.0..0.95  probability that a finite clause is negated
    questions  0.0..0.95  probability that a sentence is a question
    pronouns  0.0..0.95  probability that a subject, object or complement is a pronoun
    capitals  0..1  1 to capitalise names and the first word of a sentence, else 0
    seed  seed  seed of the language (words, preferences, habits), not of its sentences
""")
SECOND_FIELDS = schema.table("""
    anchors  share  share of the dictionary words that are the same in both languages, names before
      all others; punctuation, which is always the same, does not count; a larger share adds anchors
      and leaves the remaining words as they are
    script  latin|cyrillic  with cyrillic every word but the anchors, which then do not inflect, is
      written letter for letter in Cyrillic, so that the languages share no other piece
    order  svo|sov|vso  order of subject, verb and object; interrogative pronouns stand first in
      their clause whatever the order
    adpositions  before|after  where adpositions stand relative to their noun
    adjectives  before|after  where adjectives stand relative to their noun
    adjuncts  before|after  before: adjuncts, agents and adverbs of manner and time stand right
      before their verb; after: they follow it, unless the order moves them
    modifiers  before|after  where phrases and relative clauses stand relative to the noun that they
      modify; the relative pronoun is at the end of its clause that faces the noun
    inverted  flag  every sentence is reversed, except for its last mark (the inverted order of
      Dufter & Schütze 2020)
    morphology  english|isolating|rich  isolating: the dictionary form is the only one; rich: other
      suffixes than English, cases of nouns and pronouns, and agreement of verbs; only an SVO
      language of English morphology has English inversion and "do"
    articles  flag  whether the language has articles
    domain  share  how far its own text is in topics and word frequencies from the first language's:
      0 is the same; at 1 the rarest topic is as frequent as the first language's most frequent one,
      and so on, and the frequencies of words of the same kind and meaning class are dealt out anew;
      between, both are mixed; translations are not affected
    seed  seed  seed of its words and suffixes, of which words are anchors, and of its domain
""")


@dataclasses.dataclass(frozen=True)
class LanguageConfig:
    """What an embedded language is like."""

    word_types: int = 2000
    topics: int = 10
    topicality: float = 3.0
    paragraph: float = 4.0
    zipf_exponent: float = 0.8
    names: float = 0.3
    name_types: float = 0.16
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
        schema.check(dataclasses.asdict(self), LANGUAGE_FIELDS)


# Few words of unequal frequency, in short sentences, which models of width 64 learn in minutes. Two
# fifths of the content words are names, so that no single name makes up most mentions of its kind.
FEW_WORDS = LanguageConfig(
    word_types=400, name_types=0.4, zipf_exponent=1.0, collocation=3.0, depth=1
)


@dataclasses.dataclass(frozen=True)
class SecondConfig:
    """How a second language differs from the first; what can be said is the same in both. With the
    defaults it only has other words."""

    anchors: float = 0.0
    script: str = "latin"
    order: str = "svo"
    adpositions: str = "before"
    adjectives: str = "before"
    adjuncts: str = "after"
    modifiers: str = "after"
    inverted: bool = False
    morphology: str = "english"
    articles: bool = True
    domain: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        schema.check(dataclasses.asdict(self), SECOND_FIELDS)


# The embedded languages by the names that configs use. To add one, make an entry here, and put it
# in its place in `BY_DISTANCE` of experiments/similarity/claims.py.
EMBEDDED = {
    "en": SecondConfig(),
    # As a Romance language is to English. All names of FEW_WORDS and some other words are anchors.
    "near": SecondConfig(anchors=0.43, adjectives="after"),
    # In script and morphology as a Slavic language is to English; adjectives as in `near`, so that
    # it differs from English in every way that `near` does.
    "middle": SecondConfig(0.05, "cyrillic", adjectives="after", morphology="rich", articles=False),
    # Without inflection, and with all that modifies verbs and nouns before them, as Chinese is to
    # English.
    "far": SecondConfig(
        0.05,
        "cyrillic",
        adjuncts="before",
        modifiers="before",
        morphology="isolating",
        articles=False,
    ),
}


def are_embedded(languages: Sequence[str]) -> bool:
    """Whether languages are embedded ones; ValueError if only some are, or `en` is not first."""
    if set(languages).isdisjoint(EMBEDDED.keys() - {"en"}):
        return False
    if languages[0] != "en" or not set(languages) <= set(EMBEDDED):
        raise ValueError(
            f"{'-'.join(languages)}: the embedded languages are {', '.join(EMBEDDED)}, of "
            "which en comes first"
        )
    return True
