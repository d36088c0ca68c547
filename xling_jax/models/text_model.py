"""What a model with its tokenizer gives to those who read text with it."""

import abc
import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from xling_jax.corpora.normalize import Normalizer
from xling_jax.models.bert import BertConfig
from xling_jax.models.heads import UNCHOSEN, initial_params, is_candidate
from xling_jax.vocabulary.pieces import CLS, SEP

NO_WORD = -1
BLANK = "▁"  # with which SentencePiece marks the begin of a word
Encoded = tuple[np.ndarray, np.ndarray]


@dataclasses.dataclass(frozen=True)
class TextModel(abc.ABC):
    """An encoder of a language and how text becomes its tokens.

    config: its size. params: plain, see `heads.initial_params`. special_ids: those before and
    behind a sentence, such as those of [CLS] and [SEP]. mask_id: that of [MASK]; None without one.
    inverted: whether the ids of a sentence are given in reversed order. own: the paths of
    parameters that its language has for itself; None where nobody wrote them down, and they are
    told by comparing models.
    """

    config: BertConfig
    params: Mapping[str, Any]
    language: str
    special_ids: tuple[int, int] = dataclasses.field(default=(CLS, SEP), kw_only=True)
    mask_id: int | None = dataclasses.field(default=None, kw_only=True)
    inverted: bool = dataclasses.field(default=False, kw_only=True)
    own: frozenset[str] | None = dataclasses.field(default=None, kw_only=True)

    @functools.cached_property
    def write(self) -> Callable[[str], str]:
        """Writes a sentence so that its words stand between blanks."""
        return Normalizer(self.language)

    @abc.abstractmethod
    def encode(self, sentences: Sequence[str]) -> list[np.ndarray]:
        """Ids of each sentence of any text, int32 [pieces], without special tokens."""

    @abc.abstractmethod
    def encode_words(self, written: Sequence[str]) -> list[Encoded]:
        """Of sentences that `write` gave: their ids, and the number of each one's word.

        Both int32 [pieces]; words are numbered as they stand between blanks, and pieces that
        belong to none have NO_WORD.
        """

    def encode_alone(self, words: Sequence[str]) -> list[np.ndarray]:
        """Ids of each of some words, as they would stand behind another one."""
        return self.encode(words)

    @abc.abstractmethod
    def words(self) -> Iterable[str]:
        """The words that one piece of the vocabulary writes."""

    @property
    @abc.abstractmethod
    def textless(self) -> set[int]:
        """The ids that stand for no text: special tokens, and what the vocabulary cannot write."""

    def randomized(self, seed: int) -> "TextModel":
        """The same with random weights, which all languages of a model's size share; it chooses
        among the same pieces."""
        drawn = initial_params(self.config, seed)
        params = {name: drawn[name] for name in self.params}
        if "mlm" in params:
            bias = np.where(is_candidate(self.params["mlm"]["bias"]), 0, np.float32(UNCHOSEN))
            params["mlm"] = {**params["mlm"], "bias": bias}
        return dataclasses.replace(self, params=params)

    def single_pieces(self, words: Iterable[str] | None = None) -> dict[str, int]:
        """Those of some words, or of all that the vocabulary has, that are one piece; its id. Words
        that the vocabulary cannot write are none of them."""
        given = list(filter(None, self.words() if words is None else words))
        return {
            word: int(ids[0])
            for word, (ids, _) in zip(given, self.encode_words(given), strict=True)
            if len(ids) == 1 and int(ids[0]) not in self.textless
        }


def require_rows(path: Path, ids: Mapping[str, int], rows: int) -> None:
    """ValueError unless every piece has a row of its own; `path` gave the ids to the pieces."""
    names: dict[int, str] = {}
    for name, number in ids.items():
        if not 0 <= number < rows:
            raise ValueError(
                f"{path}: piece {name!r} has the id {number}, and the model has ids from 0 to "
                f"{rows - 1}: take the model's own tokenizer, or enlarge the model for this one in "
                "transformers with model.resize_token_embeddings(len(tokenizer))"
            )
        if number in names:
            raise ValueError(
                f"{path}: the pieces {names[number]!r} and {name!r} have the same id {number}: "
                "restore the file"
            )
        names[number] = name
