"""What a model with its tokenizer gives to those who read text with it."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from xling_jax.models.bert import BertConfig

NO_WORD = -1
BLANK = "▁"  # with which SentencePiece marks the begin of a word
Encoded = tuple[np.ndarray, np.ndarray]


class TextModel(Protocol):
    """An encoder and how text becomes its tokens."""

    @property
    def config(self) -> BertConfig: ...

    @property
    def params(self) -> Mapping[str, Any]:
        """Plain parameters, see `heads.initial_params`."""

    @property
    def special_ids(self) -> tuple[int, int]:
        """The ids before and behind a sentence, such as those of [CLS] and [SEP]."""

    @property
    def inverted(self) -> bool:
        """Whether the ids of a sentence are given in reversed order."""

    @property
    def own(self) -> frozenset[str] | None:
        """The paths of parameters that its language has for itself; None where nobody wrote them
        down."""

    def encode(self, sentences: Sequence[str]) -> list[np.ndarray]:
        """Ids of each sentence of any text, int32 [pieces], without special tokens."""

    def write(self, sentence: str, /) -> str:
        """A sentence whose words stand between blanks."""

    def encode_words(self, written: Sequence[str]) -> list[Encoded]:
        """Of sentences that `write` gave: their ids, and the number of each one's word.

        Both int32 [pieces]; words are numbered as they stand between blanks, and pieces that
        belong to none have NO_WORD.
        """

    def single_pieces(self, words: Iterable[str] | None = None) -> dict[str, int]:
        """Those of some words, or of all that the vocabulary has, that are one piece; its id. Words
        that the vocabulary cannot write are none of them."""


def require_rows(path: Path, ids: Mapping[str, int], rows: int) -> None:
    """ValueError unless every piece has a row of its own among the token embeddings; `path` gave
    the ids to the pieces."""
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
