"""What goes with what: tables of how likely one concept takes another, and draws from them."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import numpy as np

from xling_jax.corpora.embedded import ontology
from xling_jax.corpora.embedded.concepts import Concept, Concepts
from xling_jax.corpora.embedded.config import LanguageConfig

_BLOCK = 64  # draws made at once from one row
_ROUNDS = 15  # of proportional fitting; the margins are then right to about 1 %

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class Table(Generic[T]):
    """Conditional distributions over the same outcomes.

    Attributes:
      weights: `[rows, outcomes]`, in every row proportional to the probabilities.
      outcomes: what the columns stand for.
    """

    weights: np.ndarray
    outcomes: Sequence[T]


class Sampler(Generic[T]):
    """Draws from the rows of a table, in blocks, since one draw by NumPy costs as much as many."""

    def __init__(self, table: Table[T], rng: np.random.Generator) -> None:
        self._table = table
        self._rng = rng
        self._pools: list[list[T]] = [[] for _ in table.weights]

    def draw(self, row: int) -> T:
        """Draws an outcome of this row."""
        pool = self._pools[row]
        if not pool:
            cumulative = np.cumsum(self._table.weights[row])
            points = self._rng.random(_BLOCK) * cumulative[-1]
            columns = np.searchsorted(cumulative, points, side="right")
            outcomes = self._table.outcomes
            pool += [outcomes[column] for column in columns.tolist()]
        return pool.pop()


@dataclasses.dataclass(frozen=True)
class Preferences:
    """The selectional preferences and topics of a language; rows are `Concept.row`.

    Attributes:
      verb, noun: topic to verb or noun.
      subject, object, complement, adjunct: verb to noun.
      subject_of, object_of: noun to verb, from the same joint distributions.
      modifier: noun to noun.
      adjective: noun to adjective.
      adverb: verb to adverb.
      surname: noun (names only) to surname.
      subject_share: how much of the time a noun is subject rather than object `[nouns]`.
    """

    verb: Table[Concept]
    noun: Table[Concept]
    subject: Table[Concept]
    object: Table[Concept]
    complement: Table[Concept]
    adjunct: Table[Concept]
    subject_of: Table[Concept]
    object_of: Table[Concept]
    modifier: Table[Concept]
    adjective: Table[Concept]
    adverb: Table[Concept]
    surname: Table[Concept]
    subject_share: np.ndarray


def draw(config: LanguageConfig, concepts: Concepts, rng: np.random.Generator) -> Preferences:
    """Draws the preferences of a language."""

    def of_verb(columns: str, role: str) -> np.ndarray:
        def classes(verb: Concept) -> tuple[str, ...]:
            return getattr(ontology.VERB_CLASSES[verb.meaning], role)

        return _joint(config, concepts, "verbs", columns, classes, rng)

    def of_noun(columns: str, role: str) -> np.ndarray:
        def classes(noun: Concept) -> tuple[str, ...]:
            return getattr(ontology.NOUN_CLASSES[noun.meaning], role)

        return _joint(config, concepts, "nouns", columns, classes, rng)

    def surnames(noun: Concept) -> tuple[str, ...]:
        return ("surname",) if noun.category == "PROPN" else ()

    subject, object_ = of_verb("nouns", "subjects"), of_verb("nouns", "objects")
    as_subject, as_object = subject.sum(0), object_.sum(0)
    return Preferences(
        verb=Table(_of_topic(config, concepts, "verbs"), concepts.verbs),
        noun=Table(_of_topic(config, concepts, "nouns"), concepts.nouns),
        subject=Table(subject, concepts.nouns),
        object=Table(object_, concepts.nouns),
        complement=Table(of_verb("nouns", "complements"), concepts.nouns),
        adjunct=Table(of_verb("nouns", "adjuncts"), concepts.nouns),
        subject_of=Table(np.ascontiguousarray(subject.T), concepts.verbs),
        object_of=Table(np.ascontiguousarray(object_.T), concepts.verbs),
        modifier=Table(of_noun("nouns", "modifiers"), concepts.nouns),
        adjective=Table(of_noun("adjectives", "adjectives"), concepts.adjectives),
        adverb=Table(of_verb("adverbs", "adverbs"), concepts.adverbs),
        surname=Table(
            _joint(config, concepts, "nouns", "surnames", surnames, rng), concepts.surnames
        ),
        subject_share=as_subject / (as_subject + as_object),
    )


def _joint(
    config: LanguageConfig,
    concepts: Concepts,
    rows: str,
    columns: str,
    classes: Callable[[Concept], tuple[str, ...]],
    rng: np.random.Generator,
) -> np.ndarray:
    """Joint distribution `[rows, columns]` of two kinds of concepts in one relation.

    Log-linear in class, topic and a word-specific preference, with the concepts' frequencies as
    margins (those of columns within their class), so that preferences cost no word its frequency.
    Rows without `classes` are 0.
    """
    partners = getattr(concepts, columns)
    meanings = list(dict.fromkeys(partner.meaning for partner in partners))
    column_class = np.array([meanings.index(partner.meaning) for partner in partners])
    heads = [head for head in getattr(concepts, rows) if classes(head)]
    allowed = np.array([[m in classes(head) for m in meanings] for head in heads], float)

    by_class = config.selection * allowed
    # A head likes some of its classes better, which all words of a class share.
    by_class += 0.5 * config.collocation * rng.standard_normal(by_class.shape)
    log_weights = by_class[:, column_class]
    log_weights += config.topicality * _same_topic(heads, partners)
    log_weights += config.collocation * rng.standard_normal(log_weights.shape)
    weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))

    chosen = [head.row for head in heads]
    head_frequency = concepts.frequency[rows][chosen]
    head_frequency /= head_frequency.sum()
    frequency = concepts.frequency[columns]
    # The classes keep the shares that the heads' wishes give them, the words in them Zipf's.
    row_scale, column_scale = head_frequency / (weights @ frequency), frequency
    wished = np.bincount(column_class, column_scale * (row_scale @ weights))
    target = (wished / np.bincount(column_class, frequency))[column_class] * frequency
    for _ in range(_ROUNDS):
        column_scale = target / (row_scale @ weights)
        row_scale = head_frequency / (weights @ column_scale)
    result = np.zeros((len(getattr(concepts, rows)), len(partners)))
    result[chosen] = row_scale[:, None] * weights * column_scale
    return result


def _of_topic(config: LanguageConfig, concepts: Concepts, kind: str) -> np.ndarray:
    topic = np.array([concept.topic for concept in getattr(concepts, kind)])
    same = np.where(topic < 0, 0.5, topic == np.arange(config.topics)[:, None])
    return np.exp(config.topicality * same) * concepts.frequency[kind]


def _same_topic(heads: Sequence[Concept], partners: Sequence[Concept]) -> np.ndarray:
    """1 where the topics are the same, 1/2 where either has none, else 0 `[heads, partners]`."""
    row = np.array([head.topic for head in heads])[:, None]
    column = np.array([partner.topic for partner in partners])
    return np.where((row < 0) | (column < 0), 0.5, row == column)
