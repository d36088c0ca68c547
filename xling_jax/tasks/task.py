"""What a labelled task is to those who fine-tune and test on it."""

from collections.abc import Sequence
from typing import ClassVar, Protocol, TypeVar

import numpy as np

from xling_jax.batches.labelled import Encoded
from xling_jax.corpora.embedded.pair import Pair
from xling_jax.models.text_model import TextModel

Item = TypeVar("Item")
Prediction = tuple[np.ndarray, ...]  # see `predict.Predictor`


class Task(Protocol[Item]):
    """Examples of a kind: how they are read, encoded and scored.

    name: of the task. head: the kind of its head, see `task_heads`. metric: the score by which
    epochs and settings are chosen.
    """

    name: ClassVar[str]
    head: ClassVar[str]
    metric: ClassVar[str]

    def read(self, path: str, language: str) -> list[Item]:
        """The examples of a file; ValueError or FileNotFoundError naming it and the line."""

    def make(self, pair: Pair, number: int, seed: int) -> tuple[list[Item], list[Item]]:
        """So many examples of two embedded languages, which are translations."""

    def labels(self, items: Sequence[Item]) -> tuple[str, ...]:
        """The labels of the examples that are learned from."""

    def encode(self, items: Sequence[Item], model: TextModel, longest: int) -> list[Encoded]:
        """The examples as tokens, in rows of at most so many places."""

    def targets(self, items: Sequence[Item], labels: Sequence[str]) -> list[np.ndarray]:
        """The numbers of their labels, int32 [W, kinds] each."""

    def scores(
        self, items: Sequence[Item], predictions: Sequence[Prediction], labels: Sequence[str]
    ) -> dict[str, float]:
        """How good predictions are, by name; from 0 to 1."""

    def counted(self, items: Sequence[Item]) -> dict[str, float]:
        """What a reader of the scores must know of the examples, by name."""

    def baselines(self, known: Sequence[Item], items: Sequence[Item]) -> dict[str, float]:
        """`majority` and `chance`: the main score of rules that look at the examples to be learned
        from, but not at the text."""


def numbered(names: Sequence[str]) -> dict[str, int]:
    """The number of each name."""
    return {name: number for number, name in enumerate(names)}


def pieces_of_words(model: TextModel, sentences: Sequence[Sequence[str]]) -> list[list[np.ndarray]]:
    """The ids of each word of sentences; every word has at least one.

    A word is written as the model's text is, by itself, so that words stay those of the labels. Of
    one that cannot be written at all, such as a zero-width blank, the id behind a sentence stands.
    """
    words = sorted({word for sentence in sentences for word in sentence})
    nothing = np.array(model.special_ids[1:], np.int32)
    encoded = model.encode(words)
    ids = {word: own if len(own) else nothing for word, own in zip(words, encoded, strict=True)}
    return [[ids[word] for word in sentence] for sentence in sentences]
