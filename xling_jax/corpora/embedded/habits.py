"""Grammatical habits: how inclined each word is to number, determiners, tense and modifiers."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from xling_jax.corpora.embedded import ontology
from xling_jax.corpora.embedded.concepts import Concept, Concepts
from xling_jax.corpora.embedded.config import LanguageConfig
from xling_jax.corpora.embedded.preferences import Table

_PLURAL = 0.35

# Relative frequency of determiners by number; "" is none.
_QUANTIFIERS = {"some": 4, "no": 3, "my": 4, "your": 3, "his": 4, "our": 3, "their": 3}
_SINGULAR = {"the": 40, "a": 30, "this": 7, "every": 4} | _QUANTIFIERS
_PLURAL_ONLY = {"two": 5, "three": 3, "many": 5, "few": 3}
_DETERMINERS = {
    "Sing": _SINGULAR,
    "Plur": {"the": 32, "": 24, "this": 7} | _PLURAL_ONLY | _QUANTIFIERS,
    "Mass": {"the": 40, "": 30, "this": 7} | _QUANTIFIERS,
}
# (tense, aspect, modal) and its relative frequency.
_TENSES = {
    ("Pres", "", ""): 34,
    ("Past", "", ""): 34,
    ("Fut", "", ""): 8,
    ("Pres", "Perf", ""): 6,
    ("Past", "Perf", ""): 4,
    ("Pres", "", "can"): 5,
    ("Pres", "", "must"): 4,
    ("Pres", "", "may"): 3,
    ("Pres", "", "should"): 3,
}


@dataclasses.dataclass(frozen=True)
class Tense:
    """What a verb may express of time and mood; `modal` is a function word or None."""

    tense: str
    aspect: str
    modal: Concept | None


@dataclasses.dataclass(frozen=True)
class Habits:
    """The habits of a language's words; rows are `Concept.row`.

    Attributes:
      determiner: number ("Sing", "Plur", "Mass") to: noun to determiner or None.
      adposition: noun to the adposition that makes it an adjunct or modifier.
      tense: verb to tense.
      governed: the adposition that each verb governs `[verbs]`, None where none.
      plural, adjective, modifier, relative_clause, pronoun: probabilities of a noun `[nouns]`.
      adverb, adjunct, negation, passive, clause: probabilities of a verb `[verbs]`.
    """

    determiner: dict[str, Table[Concept | None]]
    adposition: Table[Concept]
    tense: Table[Tense]
    governed: list[Concept | None]
    plural: list[float]
    adjective: list[float]
    modifier: list[float]
    relative_clause: list[float]
    pronoun: list[float]
    adverb: list[float]
    adjunct: list[float]
    negation: list[float]
    passive: list[float]
    clause: list[float]


def draw(config: LanguageConfig, concepts: Concepts, rng: np.random.Generator) -> Habits:
    """Draws the habits of a language's words."""
    nouns, verbs, function = concepts.nouns, concepts.verbs, concepts.function

    def table(rows: int, base: Sequence[float] | np.ndarray) -> np.ndarray:
        noise = rng.standard_normal((rows, np.shape(base)[-1]))
        return np.asarray(base) * np.exp(config.habits * noise)

    def probabilities(rows: int, base: float) -> list[float]:
        odds = base / (1 - base) * np.exp(config.habits * rng.standard_normal(rows))
        return (odds / (1 + odds)).tolist()

    def governed(verb: Concept) -> Concept | None:
        choices = ontology.VERB_CLASSES[verb.meaning].adpositions
        return function[choices[rng.integers(len(choices))]] if choices else None

    adpositions = [concept for concept in function.values() if concept.category == "ADP"]
    usable = np.array(
        [
            [a.meaning in ontology.NOUN_CLASSES[noun.meaning].adpositions for a in adpositions]
            for noun in nouns
        ]
    )
    return Habits(
        determiner={
            number: Table(
                table(len(nouns), list(weights.values())),
                [function[word] if word else None for word in weights],
            )
            for number, weights in _DETERMINERS.items()
        },
        adposition=Table(table(len(nouns), usable), adpositions),
        tense=Table(
            table(len(verbs), list(_TENSES.values())),
            [Tense(t, aspect, function.get(modal)) for t, aspect, modal in _TENSES],
        ),
        governed=[governed(verb) for verb in verbs],
        plural=probabilities(len(nouns), _PLURAL),
        adjective=probabilities(len(nouns), config.adjectives),
        modifier=probabilities(len(nouns), config.prepositional_phrases),
        relative_clause=probabilities(len(nouns), config.relative_clauses),
        pronoun=probabilities(len(nouns), config.pronouns),
        adverb=probabilities(len(verbs), config.adverbs),
        adjunct=probabilities(len(verbs), config.adjuncts),
        negation=probabilities(len(verbs), config.negation),
        passive=probabilities(len(verbs), config.passives),
        clause=probabilities(len(verbs), config.complement_clauses),
    )
