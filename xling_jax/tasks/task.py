"""What a labelled task is to those who read, fine-tune, test and report on it."""

from __future__ import annotations

import abc
import collections
import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np

from xling_jax.batches import labelled
from xling_jax.batches.labelled import Encoded
from xling_jax.corpora.embedded.grammar import Constituent
from xling_jax.corpora.embedded.language import Language, Pair
from xling_jax.schema import Field

if TYPE_CHECKING:  # a report reads what tasks are called, and needs no JAX
    from xling_jax.models.text_model import TextModel

Item = TypeVar("Item")
Predictions = Sequence[tuple[np.ndarray, ...]]  # of each example, see `finetune.Predictor`
Scores = dict[str, float]


@dataclasses.dataclass(frozen=True)
class Task(abc.ABC, Generic[Item]):
    """Examples of a kind: how they are read, encoded and scored, and what reports call them.

    An instance's fields are its options: `options` says what each may be, and the config has them
    in a section of the task's name. head: its kind, see `labelled.KINDS`. metric: the main score, a
    share, by which epochs and settings are chosen. measure: what reports call it. note: what it
    counts. column: what W&C's Table 1 has of it, in `published.csv`; empty: nothing.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    head: ClassVar[str] = labelled.CLASSIFIER
    metric: ClassVar[str]
    measure: ClassVar[str]
    note: ClassVar[str]
    column: ClassVar[str] = ""
    options: ClassVar[Mapping[str, Field]] = {}

    @abc.abstractmethod
    def read(self, path: str, language: str) -> list[Item]:
        """The examples of a file; ValueError or FileNotFoundError naming it and the line."""

    @abc.abstractmethod
    def make(self, pair: Pair, number: int, seed: int) -> tuple[list[Item], list[Item]]:
        """So many examples of two embedded languages, which are translations."""

    @abc.abstractmethod
    def labels(self, items: Sequence[Item]) -> tuple[str, ...]:
        """The labels of some examples."""

    @abc.abstractmethod
    def encode(self, items: Sequence[Item], model: TextModel, longest: int) -> list[Encoded]:
        """The examples as tokens, in rows of at most so many places."""

    @abc.abstractmethod
    def targets(self, items: Sequence[Item], labels: Sequence[str]) -> list[np.ndarray]:
        """The numbers of their labels, int32 [W, kinds] each."""

    @abc.abstractmethod
    def scores(
        self, items: Sequence[Item], predictions: Predictions, labels: Sequence[str]
    ) -> Scores:
        """How good predictions are, by name; from 0 to 1."""

    @abc.abstractmethod
    def baselines(self, known: Sequence[Item], items: Sequence[Item]) -> Scores:
        """`majority` and `chance`: the main score of rules that look at the examples to be learned
        from, but not at the text."""

    def counted(self, items: Sequence[Item]) -> Scores:
        """What else a reader of the scores must know of the examples, by name."""
        return {}

    @classmethod
    def described(cls, options: Mapping[str, Any]) -> str:
        """What the score counts; an option may be unknown."""
        return cls.note


class WordTask(Task[Item]):
    """A task whose examples are sentences, `item.words`, each word of which has labels."""

    @abc.abstractmethod
    def gold(self, language: Language, derivation: Constituent) -> Item:
        """A sentence of an embedded language."""

    def make(self, pair: Pair, number: int, seed: int) -> tuple[list[Item], list[Item]]:
        first, second = pair.languages
        drawn = list(itertools.islice(first.derivations(seed), number))
        return [self.gold(first, x) for x in drawn], [self.gold(second, x) for x in drawn]

    def encode(self, items: Sequence[Any], model: TextModel, longest: int) -> list[Encoded]:
        """A sentence that is too long goes on in further rows."""
        return [
            labelled.sentence(pieces, model.special_ids, longest, model.inverted)
            for pieces in pieces_of_words(model, [item.words for item in items])
        ]


def numbered(names: Sequence[str]) -> dict[str, int]:
    """The number of each name."""
    return {name: number for number, name in enumerate(names)}


def pieces_of_words(model: TextModel, sentences: Sequence[Sequence[str]]) -> list[list[np.ndarray]]:
    """The ids of each word of sentences, written as the model's text is, by itself, so that words
    stay those of the labels. Of one that cannot be written at all, such as a zero-width blank, the
    id behind a sentence stands."""
    words = sorted({word for sentence in sentences for word in sentence})
    nothing = np.array(model.special_ids[1:], np.int32)
    encoded = model.encode_alone(words)
    ids = {word: own if len(own) else nothing for word, own in zip(words, encoded, strict=True)}
    return [[ids[word] for word in sentence] for sentence in sentences]


def by_frequency(known: Sequence[str], asked: Sequence[str]) -> Scores:
    """The accuracies of the most frequent known label, and of labels drawn as often as known."""
    counts, shares = collections.Counter(known), collections.Counter(asked)
    most = counts.most_common(1)[0][0]
    chance = sum(counts[x] / len(known) * shares[x] / len(asked) for x in sorted(counts))
    return {"majority": shares[most] / len(asked), "chance": chance}
