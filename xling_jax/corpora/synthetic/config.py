"""The knobs of an embedded language."""

import dataclasses
import math

_SMALLEST, _LARGEST = 200, 10_000
_PROBABILITIES = (
    "names",
    "adjectives",
    "adverbs",
    "adjuncts",
    "prepositional_phrases",
    "relative_clauses",
    "complement_clauses",
    "adverbial_clauses",
    "coordination",
    "predications",
    "passives",
    "negation",
    "questions",
    "pronouns",
)


@dataclasses.dataclass(frozen=True)
class LanguageConfig:
    """What an embedded language is like.

    A probability is that of a construction at each place where it is possible; where a word has
    habits of its own, it is that of a word with average habits.

    Attributes:
      word_types: dictionary words, function words and names included, before inflection; 200 to
        10,000.
      topics: number of topics, at least 1.
      topicality: nats by which words of one topic prefer each other; 0 turns topics off.
      paragraph: mean number of consecutive sentences on one topic, at least 1.
      zipf_exponent: a word's frequency falls with its rank among the words of its kind as
        (rank + 2.7)^-zipf_exponent; 0 is flat.
      names: share of the persons, places and groups spoken of that go by a proper name, at least
        0.01.
      selection: nats that a partner of a wrong meaning class costs; 0 lets verbs take any noun.
      collocation: sd, in nats, of the preference of one word for another beyond their classes;
        0 makes the words of a class and topic interchangeable in what they combine with.
      habits: sd, in nats, of a word's own inclination to determiners, number, tense, adpositions
        and modifiers; 0 gives all words of a class the same.
      depth: how many recursive constituents may be nested in each other (modifying phrases and
        clauses, complement clauses, coordination), at least 0.
      adjectives: probability of an adjective with a noun, and of a second after it.
      adverbs: probability of an adverb in a clause.
      adjuncts: probability of a phrase of place, time, means or company in a clause.
      prepositional_phrases: probability that a phrase modifies a noun.
      relative_clauses: probability that a clause modifies a noun.
      complement_clauses: probability that a verb of saying, thinking or wanting governs a clause.
      adverbial_clauses: probability that a sentence has an adverbial clause.
      coordination: probability that a noun phrase or sentence is coordinated with another.
      predications: probability that a clause says what somebody is or is like.
      passives: probability that a transitive clause is passive.
      negation: probability that a finite clause is negated.
      questions: probability that a sentence is a question.
      pronouns: probability that a pronoun stands for a subject or object.
      capitals: 1 to capitalise names and the first word of a sentence, else 0.
      seed: of the language (words, preferences, habits), not of its sentences; at least 0.
    """

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
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.type is int and not isinstance(value, int):
                raise ValueError(f"{field.name}={value!r}: give a whole number")
            if not isinstance(value, int | float) or not math.isfinite(value):
                raise ValueError(f"{field.name}={value!r}: give a finite number")
        if not _SMALLEST <= self.word_types <= _LARGEST:
            raise ValueError(
                f"word_types={self.word_types}: give {_SMALLEST} to {_LARGEST}, enough for every "
                "meaning class and few enough for tables of all pairs of words"
            )
        for name, least in (("topics", 1), ("paragraph", 1), ("depth", 0), ("seed", 0)):
            value = getattr(self, name)
            if value < least:
                raise ValueError(f"{name}={value}: give at least {least}")
        for name in ("topicality", "zipf_exponent", "selection", "collocation", "habits"):
            value = getattr(self, name)
            # Far above, the weights of some words become 0 and they are never used.
            if not 0 <= value <= 10:
                raise ValueError(f"{name}={value}: give 0 (off) to 10")
        for name in _PROBABILITIES:
            value = getattr(self, name)
            if not 0 <= value <= 0.95:
                raise ValueError(f"{name}={value}: give a probability of 0 (never) to 0.95")
        if self.names < 0.01:
            raise ValueError(
                f"names={self.names}: give at least 0.01, since about 16 % of the words are names"
            )
        if self.capitals not in (0, 1):
            raise ValueError(f"capitals={self.capitals}: give 1 to capitalise, 0 not to")
