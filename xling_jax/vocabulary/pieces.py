"""SentencePiece vocabularies: training, a cache keyed by content, and text to piece ids."""

import functools
import hashlib
import io
import json
import os
import pathlib
import re
from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
import sentencepiece

from xling_jax import processes
from xling_jax.files import kept, short_hash, write_beside

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
SPECIALS = len(SPECIAL_TOKENS)  # the first id of an ordinary piece
PAD, UNK, CLS, SEP, MASK = range(SPECIALS)
BLANK = "▁"  # in the name of a piece; at its start it marks the beginning of a word

_RESERVED = "\u2585"  # the character that SentencePiece reserves for unknown text
_SPECIAL_NAME = re.compile("|".join(re.escape(name) for name in SPECIAL_TOKENS))

ModelType = Literal["bpe", "unigram"]


class Pieces:
    """A SentencePiece vocabulary whose ids 0 to 4 are `SPECIAL_TOKENS`.

    size: number of pieces, special tokens included. names: the piece of every id, with `BLANK` for
    a blank. sha256: of the serialized model.
    """

    def __init__(self, model: bytes):
        """Takes a serialized SentencePiece model; ValueError unless it begins with our special
        tokens."""
        try:
            self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
            self.size: int = self._processor.get_piece_size()
        except RuntimeError as error:
            raise ValueError(f"not a SentencePiece model: {error}") from error
        self.names: list[str] = [self._processor.id_to_piece(i) for i in range(self.size)]
        if tuple(self.names[:SPECIALS]) != SPECIAL_TOKENS:
            raise ValueError(
                f"the SentencePiece model begins with {self.names[:SPECIALS]}, not "
                f"with {list(SPECIAL_TOKENS)}: train it with xling_jax.vocabulary.pieces.train"
            )
        self.sha256 = hashlib.sha256(model).hexdigest()
        self._model = model

    @functools.cached_property
    def scores(self) -> list[float]:
        """SentencePiece's score of every piece, which decides how text is cut."""
        return [self._processor.get_score(i) for i in range(self.size)]

    @functools.cached_property
    def is_bpe(self) -> bool:
        """Whether these are byte pairs, whose scores count down from 0, and no unigram model."""
        own = self.scores[SPECIALS:]
        return own == [-float(number) for number in range(len(own))]

    @functools.cached_property
    def cuts_words_alone(self) -> bool:
        """Whether cutting a sentence is the same as cutting each of its words (between blanks).

        This holds for byte pairs as `train` makes them. A unigram model weighs a sentence as a
        whole: if two ways to cut a word are about equally likely, the words before may decide. A
        `BLANK` in the text is treated as a blank.
        """
        crosses_blank = any(BLANK in name[1:] for name in self.names)
        whole, first, second = (ids.tolist() for ids in self.encode(["a b", "a", "b"]))
        return self.is_bpe and not crosses_blank and whole == first + second

    def encode(self, sentences: Sequence[str], threads: int | None = None) -> list[np.ndarray]:
        """Returns the int32 ids of each sentence, [pieces], with no special tokens added.

        Characters that the vocabulary lacks become [UNK]; the names of special tokens are encoded
        like any other text. threads: how many to use, by default one per core.
        """
        encoded = self._processor.encode(list(sentences), num_threads=threads)
        return [np.asarray(ids, np.int32) for ids in encoded]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model, a file that SentencePiece's own tools read."""
        write_beside(pathlib.Path(path), self._model)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Reads what `save` wrote; ValueError, naming the file, if it is something else."""
        try:
            return cls(pathlib.Path(path).read_bytes())
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error


def train(
    sentences: Sequence[str],
    size: int,
    *,
    cache: str | os.PathLike[str] | None = None,
    model_type: ModelType = "bpe",
) -> Pieces:
    """Trains a vocabulary of `size` pieces, special tokens included.

    As close to the WordPiece vocabulary of Dufter & Schütze 2020 §2.1 as SentencePiece comes:
    case kept, every character of the text covered, no piece with both letters and punctuation or
    digits. The same text and settings give the same model.

    Args:
      sentences: the text.
      size: number of pieces.
      cache: a folder of trained models, keyed by text, settings and SentencePiece version.
      model_type: "bpe" keeps every intermediate merge, so that some pieces never occur in the
        text; "unigram" drops those.

    Raises:
      ValueError: no text, a `size` that the text does not allow, or with a `cache`, a model
        that differs among the processes of a run.
    """
    if size <= SPECIALS:
        raise ValueError(
            f"size={size}: the special tokens alone are {SPECIALS}, and every character "
            "of the text needs a piece too"
        )
    settings = {
        "model_type": model_type,
        "vocab_size": size,
        "hard_vocab_limit": True,
        "character_coverage": 1.0,
        "byte_fallback": False,
        "normalization_rule_name": "identity",
        "split_by_unicode_script": True,
        "split_by_number": True,
        # Longer sentences would be left out silently (default: 4,192 bytes).
        "max_sentence_length": 2**30,
        # More threads sum in another order.
        "num_threads": 1,
        "pad_id": PAD,
        "unk_id": UNK,
        "bos_id": -1,
        "eos_id": -1,
        "pad_piece": SPECIAL_TOKENS[PAD],
        "unk_piece": SPECIAL_TOKENS[UNK],
        # Control symbols, unlike user-defined ones, are never found in text.
        "control_symbols": list(SPECIAL_TOKENS[CLS:]),
    }
    if cache is None:
        return Pieces(_train(sentences, settings))

    decides = [sentencepiece.__version__, settings, list(sentences)]
    key = short_hash(json.dumps(decides).encode())
    with processes.first_before_others():
        model = kept(pathlib.Path(cache), key, ".model", lambda: _train(sentences, settings))
    processes.require_same(
        short_hash(model),
        lambda _: (
            "the processes of this run have different vocabularies: give all machines the same "
            "text, and the same build of sentencepiece"
        ),
    )
    return Pieces(model)


def _train(sentences: Sequence[str], settings: dict[str, Any]) -> bytes:
    # The trainer cuts the names of special tokens out of the text, so that brackets seen nowhere
    # else would have no piece; and it skips every line with the character that it reserves.
    broken = (
        _SPECIAL_NAME.sub(lambda name: f"[ {name[0][1:]}", text).replace(_RESERVED, " ")
        for text in sentences
    )
    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=broken, model_writer=model, minloglevel=2, **settings
        )
    except RuntimeError as error:
        raise ValueError(_explain(str(error), sentences, settings["vocab_size"])) from error
    return model.getvalue()


def _explain(message: str, sentences: Sequence[str], size: int) -> str:
    """SentencePiece's error in terms of the text."""
    words = len({word for sentence in sentences for word in sentence.split()})
    text = f"this text (sentences: {len(sentences)}, different words: {words})"
    if not words:
        return f"size={size}: there is nothing to train on in {text}"
    if largest := re.search(r"set it to a value <= (\d+)", message):
        return (
            f"size={size} is too large for {text}: it allows {largest[1]} pieces at most. "
            f"Set the size to {largest[1]} or less, or give more text"
        )
    if smallest := re.search(r"smaller than required_chars\. \d+ vs (\d+)", message):
        return (
            f"size={size} is too small for {text}: its characters and the {SPECIALS} "
            f"special tokens need {smallest[1]} pieces. Set the size to {smallest[1]} or more"
        )
    return f"size={size}: SentencePiece could not train on {text}: {message}"
