"""What words combine with: selectional preferences, topics and grammatical habits, as tables."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from xling_jax.corpora.embedded.concepts import NOUN_CLASSES, VERB_CLASSES, Concept, Concepts
from xling_jax.corpora.embedded.config import LanguageConfig

_ROUNDS = 15  # of proportional fitting; the margins are then right to about 1 %

# The fields of `LanguageConfig` with probabilities that each word varies for itself.
_NOUN_HABITS = ("plural", "adjectives", "prepositional_phrases", "relative_clauses", "pronouns")
_VERB_HABITS = ("adverbs", "adjuncts", "negation", "passives", "complement_clauses")
_PLURAL = 0.35  # the only probability that is not a field

# Relative frequencies of determiners by number; "" stands for none.
_QUANTIFIERS = {"some": 4, "no": 3, "my": 4, "your": 3, "his": 4, "our": 3, "their": 3}
_PLURAL_ONLY = {"two": 5, "three": 3, "many": 5, "few": 3}
_DETERMINERS = {
    "Sing": {"the": 40, "a": 30, "this": 7, "every": 4} | _QUANTIFIERS,
    "Plur": {"the": 32, "": 24, "this": 7} | _PLURAL_ONLY | _QUANTIFIERS,
    "Mass": {"the": 40, "": 30, "this": 7} | _QUANTIFIERS,
}
# The same of (tense, aspect), and of modals in the present.
_TENSES = {("Pres", ""): 34, ("Past", ""): 34, ("Fut", ""): 8, ("Pres", "Perf"): 6}
_TENSES |= {("Past", "Perf"): 4}
_MODALS = {"can": 5, "must": 4, "may": 3, "should": 3}


class Table(NamedTuple):
    """Conditional distributions over the same outcomes. weights: `[rows, outcomes]`, in each row
    proportional to the probabilities. outcomes: what the columns stand for."""

    weights: np.ndarray
    outcomes: Sequence[Any]


@dataclasses.dataclass(frozen=True)
class Preferences:
    """The preferences and habits of a language's words; rows are `Concept.row`.

    Attributes:
      tables: by name. From a topic: verb, noun. From a verb: subject, object, complement, adjunct
        (nouns), adverb, tense (with aspect and modal, "" for none). From a noun: subject_of,
        object_of (verbs, from the same joint distributions), modifier (nouns), adjective, surname
        (if the noun is a name), adposition (which makes it an adjunct or modifier); and Sing, Plur,
        Mass (determiners by the noun's number, None for none). topic has a single row.
      subject_share: how often each noun is a subject rather than an object.
      governed: the adposition that each verb governs; None if it governs none.
      habits: each word's probabilities, by the names of `_NOUN_HABITS` and `_VERB_HABITS`.
    """

    tables: dict[str, Table]
    subject_share: list[float]
    governed: list[Concept | None]
    habits: dict[str, list[float]]


def draw(
    config: LanguageConfig, concepts: Concepts, rngs: tuple[np.random.Generator, ...]
) -> Preferences:
    """Draws a language's preferences, and with the second generator its words' habits."""
    selectional_rng, rng = rngs
    tables = _selectional(config, concepts, selectional_rng)
    as_subject, as_object = (tables[role].weights.sum(0) for role in ("subject", "object"))
    tables["topic"] = Table(concepts.topics[None], range(config.topics))

    nouns, verbs, function = concepts.nouns, concepts.verbs, concepts.function

    def habit(words: Sequence[Concept], base: Any, outcomes: Sequence[Any]) -> Table:
        noise = rng.standard_normal((len(words), len(outcomes)))
        return Table(np.asarray(base) * np.exp(config.habits * noise), outcomes)

    for number, weights in _DETERMINERS.items():
        # "" becomes None, since no function word is called "".
        tables[number] = habit(nouns, [*weights.values()], [function.get(word) for word in weights])
    adpositions = [concept for concept in function.values() if concept.category == "ADP"]
    usable = [
        [a.meaning in NOUN_CLASSES[noun.meaning].adpositions.split() for a in adpositions]
        for noun in nouns
    ]
    tables["adposition"] = habit(nouns, usable, adpositions)
    tenses = [(*tense, "") for tense in _TENSES] + [("Pres", "", modal) for modal in _MODALS]
    tables["tense"] = habit(verbs, [*_TENSES.values(), *_MODALS.values()], tenses)
    governed = []
    for verb in verbs:
        choices = VERB_CLASSES[verb.meaning].governed.split()
        governed.append(function[choices[rng.integers(len(choices))]] if choices else None)
    habits = {}
    for words, names in ((nouns, _NOUN_HABITS), (verbs, _VERB_HABITS)):
        for name in names:
            base = _PLURAL if name == "plural" else getattr(config, name)
            odds = base / (1 - base) * np.exp(config.habits * rng.standard_normal(len(words)))
            habits[name] = (odds / (1 + odds)).tolist()
    share = (as_subject / (as_subject + as_object)).tolist()
    return Preferences(tables, share, governed, habits)


def _selectional(
    config: LanguageConfig, concepts: Concepts, rng: np.random.Generator
) -> dict[str, Table]:
    """The tables of what combines with what, by class, topic and word."""

    joint = functools.partial(_joint, config, concepts, rng)
    subject = joint("verbs", "nouns", "subjects")
    object_ = joint("verbs", "nouns", "objects")
    return {
        "verb": _of_topic(config, concepts, "verbs"),
        "noun": _of_topic(config, concepts, "nouns"),
        "subject": subject,
        "object": object_,
        "complement": joint("verbs", "nouns", "complements"),
        "adjunct": joint("verbs", "nouns", "adjuncts"),
        "subject_of": Table(np.ascontiguousarray(subject.weights.T), concepts.verbs),
        "object_of": Table(np.ascontiguousarray(object_.weights.T), concepts.verbs),
        "modifier": joint("nouns", "nouns", "modifiers"),
        "adjective": joint("nouns", "adjectives", "adjectives"),
        "adverb": joint("verbs", "adverbs", "adverbs"),
        "surname": joint("nouns", "surnames", "surnames"),
    }


def _joint(
    config: LanguageConfig,
    concepts: Concepts,
    rng: np.random.Generator,
    rows: str,
    columns: str,
    role: str,
) -> Table:
    """Joint distribution `[rows, columns]` of two kinds of concepts in one relation.

    It is log-linear in class, topic and a preference of words for each other. Its margins are the
    concepts' frequencies (those of columns within their class), so that preferences do not change
    how frequent a word is. Rows of concepts without partners in this role are 0.
    """

    def classes(head: Concept) -> list[str]:
        if role == "surnames":
            return ["surname"] if head.category == "PROPN" else []
        kinds = VERB_CLASSES if rows == "verbs" else NOUN_CLASSES
        return getattr(kinds[head.meaning], role).split()

    partners = getattr(concepts, columns)
    meanings = list(dict.fromkeys(partner.meaning for partner in partners))
    column_class = np.array([meanings.index(partner.meaning) for partner in partners])
    heads = [head for head in getattr(concepts, rows) if classes(head)]
    allowed = np.array([[m in classes(head) for m in meanings] for head in heads], float)

    by_class = config.selection * allowed
    # A head prefers some classes to others, with all their words alike.
    by_class += 0.5 * config.collocation * rng.standard_normal(by_class.shape)
    log_weights = by_class[:, column_class]
    log_weights += config.topicality * _same_topic(_topics(heads)[:, None], _topics(partners))
    log_weights += config.collocation * rng.standard_normal(log_weights.shape)
    weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))

    chosen = [head.row for head in heads]
    head_frequency = concepts.frequency[rows][chosen]
    head_frequency /= head_frequency.sum()
    frequency = concepts.frequency[columns]
    # Classes get the shares that the heads prefer; within a class, words keep their frequencies.
    row_scale, column_scale = head_frequency / (weights @ frequency), frequency
    wished = np.bincount(column_class, column_scale * (row_scale @ weights))
    target = (wished / np.bincount(column_class, frequency))[column_class] * frequency
    for _ in range(_ROUNDS):
        column_scale = target / (row_scale @ weights)
        row_scale = head_frequency / (weights @ column_scale)
    result = np.zeros((len(getattr(concepts, rows)), len(partners)))
    result[chosen] = row_scale[:, None] * weights * column_scale
    return Table(result, partners)


def _of_topic(config: LanguageConfig, concepts: Concepts, kind: str) -> Table:
    words = getattr(concepts, kind)
    same = _same_topic(np.arange(config.topics)[:, None], _topics(words))
    return Table(np.exp(config.topicality * same) * concepts.frequency[kind], words)


def _topics(concepts: Sequence[Concept]) -> np.ndarray:
    return np.array([concept.topic for concept in concepts])


def _same_topic(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """1 where the topics are the same, 1/2 where either is -1 (no topic), otherwise 0."""
    return np.where((one < 0) | (other < 0), 0.5, one == other)
