"""The interface of a labelled task: how it is read, encoded, scored and reported."""

from __future__ import annotations

import abc
import collections
import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np

from xling_jax.batches import labelled
from xling_jax.batches.labelled import Encoded
from xling_jax.corpora.embedded.grammar import Constituent
from xling_jax.corpora.embedded.language import Language, Pair
from xling_jax.schema import Field

if TYPE_CHECKING:  # reports import the names of tasks, and need no JAX
    from xling_jax.models.text_model import TextModel

Item = TypeVar("Item")
Predictions = Sequence[tuple[np.ndarray, ...]]  # for each example, see `finetune.Predictor`
Scores = dict[str, float]

# By part, the seeds of the embedded languages' sentences that examples are made of. Parallel text
# has another one, `zero_shot.texts.PARALLEL_SEED`.
SEEDS = {"train": 101, "dev": 102, "test": 103}


@dataclasses.dataclass(frozen=True)
class Task(abc.ABC, Generic[Item]):
    """A kind of labelled examples: how they are read, encoded, scored and called in reports.

    The fields of an instance are the task's options, which the config has in a section named after
    the task.

    Attributes:
      head: the kind of its head, see `labelled.KINDS`.
      metric: the main score, a share, by which epochs and settings are chosen.
      measure: the name of the main score in reports.
      note: what the main score counts, in words.
      column: the task's column of W&C's Table 1 in `published.csv`; "" if it has none.
      options: the allowed values of each option.
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
        """The examples in a file; ValueError, naming it and the line, or FileNotFoundError."""

    @abc.abstractmethod
    def make(self, pair: Pair, number: int, part: str) -> tuple[list[Item], list[Item]]:
        """`number` examples of a part, train, dev or test, in each of two embedded languages, one
        the translation of the other."""

    @abc.abstractmethod
    def labels(self, items: Sequence[Item]) -> tuple[str, ...]:
        """The labels: those that occur in the examples, or all that the task has."""

    @abc.abstractmethod
    def encode(self, items: Sequence[Item], model: TextModel, longest: int) -> list[Encoded]:
        """The examples as tokens, in rows of at most `longest` places."""

    @abc.abstractmethod
    def targets(self, items: Sequence[Item], labels: Sequence[str]) -> list[np.ndarray]:
        """The numbers of each example's labels, int32 [W, kinds]."""

    @abc.abstractmethod
    def scores(
        self, items: Sequence[Item], predictions: Predictions, labels: Sequence[str]
    ) -> Scores:
        """The scores of predictions by name, from 0 to 1."""

    @abc.abstractmethod
    def baselines(self, known: Sequence[Item], items: Sequence[Item]) -> Scores:
        """`majority` and `chance`: the main score on `items` of rules that know the labels of the
        `known` examples, but do not look at the text."""

    def counted(self, items: Sequence[Item]) -> Scores:
        """Further numbers about the examples that readers of the scores need, by name."""
        return {}

    @classmethod
    def described(cls, options: Mapping[str, Any]) -> str:
        """What the main score counts under these options, some of which may be missing."""
        return cls.note


class WordTask(Task[Item]):
    """A task in which each word of a sentence, `item.words`, has labels."""

    @abc.abstractmethod
    def gold(self, language: Language, derivation: Constituent) -> Item:
        """The example made of a sentence of an embedded language."""

    def derivations(self, language: Language, part: str) -> Iterator[Constituent]:
        """The sentences of an embedded language that examples are made of, without end."""
        return language.derivations(SEEDS[part])

    def make(self, pair: Pair, number: int, part: str) -> tuple[list[Item], list[Item]]:
        first, second = pair.languages
        drawn = list(itertools.islice(self.derivations(first, part), number))
        return [self.gold(first, x) for x in drawn], [self.gold(second, x) for x in drawn]

    def encode(self, items: Sequence[Any], model: TextModel, longest: int) -> list[Encoded]:
        """A sentence that is too long for a row continues in further ones."""
        return [
            labelled.sentence(pieces, model.special_ids, longest, model.inverted)
            for pieces in pieces_of_words(model, [item.words for item in items])
        ]


def numbered(names: Sequence[str]) -> dict[str, int]:
    """The number of each name."""
    return {name: number for number, name in enumerate(names)}


def pieces_of_words(model: TextModel, sentences: Sequence[Sequence[str]]) -> list[list[np.ndarray]]:
    """The ids of each word of sentences. Words are encoded one by one, so that each keeps its
    labels. A word that gives no pieces, such as a zero-width blank, gets the id that closes a
    sentence."""
    words = sorted({word for sentence in sentences for word in sentence})
    nothing = np.array(model.special_ids[1:], np.int32)
    encoded = model.encode_alone(words)
    ids = {word: own if len(own) else nothing for word, own in zip(words, encoded, strict=True)}
    return [[ids[word] for word in sentence] for sentence in sentences]


def by_frequency(known: Sequence[str], asked: Sequence[str]) -> Scores:
    """The accuracies of the most frequent known label, `majority`, and, on average, of labels drawn
    with the known frequencies, `chance`."""
    counts, shares = collections.Counter(known), collections.Counter(asked)
    most = counts.most_common(1)[0][0]
    chance = sum(counts[x] / len(known) * shares[x] / len(asked) for x in sorted(counts))
    return {"majority": shares[most] / len(asked), "chance": chance}
