"""The interface of a model with its tokenizer: an encoder that takes text."""

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
Encoded = tuple[np.ndarray, np.ndarray]


@dataclasses.dataclass(frozen=True)
class TextModel(abc.ABC):
    """An encoder of a language, and how text becomes its tokens.

    Attributes:
      config: its size.
      params: plain, see `heads.initial_params`.
      special_ids: the ids before and after a sentence, such as those of [CLS] and [SEP].
      mask_id: that of [MASK]; None without one.
      inverted: whether the ids of a sentence are in reversed order.
      own: the paths of parameters that its language has for itself; None if they are not stored,
        so that only a comparison of models can tell.
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
        """Rewrites a sentence so that blanks separate its words."""
        return Normalizer(self.language)

    @abc.abstractmethod
    def encode(self, sentences: Sequence[str]) -> list[np.ndarray]:
        """The ids of each sentence of any text, int32 [pieces], without special tokens."""

    @abc.abstractmethod
    def encode_words(self, written: Sequence[str]) -> list[Encoded]:
        """For sentences that `write` returned: their ids, and the number of each piece's word.

        Both are int32 [pieces]. Words are what blanks separate, numbered from 0; pieces that belong
        to no word have NO_WORD.
        """

    def encode_alone(self, words: Sequence[str]) -> list[np.ndarray]:
        """The ids of each word by itself, as if it followed another one."""
        return self.encode(words)

    @abc.abstractmethod
    def words(self) -> Iterable[str]:
        """The words that are a single piece of the vocabulary."""

    @property
    @abc.abstractmethod
    def textless(self) -> set[int]:
        """The ids that stand for no text: special tokens, and the id of unknown text."""

    def randomized(self, seed: int) -> "TextModel":
        """The same model with random weights, which are equal for all languages: they depend on the
        size and the seed alone. It chooses among the same pieces."""
        drawn = initial_params(self.config, seed)
        params = {name: drawn[name] for name in self.params}
        if "mlm" in params:
            bias = np.where(is_candidate(self.params["mlm"]["bias"]), 0, np.float32(UNCHOSEN))
            params["mlm"] = {**params["mlm"], "bias": bias}
        return dataclasses.replace(self, params=params)

    def single_pieces(self, words: Iterable[str] | None = None) -> dict[str, int]:
        """The words, of those given or by default of the whole vocabulary, that are a single piece,
        with its id. Words that the vocabulary cannot write are left out."""
        given = list(filter(None, self.words() if words is None else words))
        return {
            word: int(ids[0])
            for word, (ids, _) in zip(given, self.encode_words(given), strict=True)
            if len(ids) == 1 and int(ids[0]) not in self.textless
        }


def require_rows(path: Path, ids: Mapping[str, int], rows: int) -> None:
    """ValueError unless every piece has a row of its own; the ids were read from `path`."""
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
