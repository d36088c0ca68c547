"""A trained model of one language in a folder: weights, pieces, and how its text is written.

`model.json` has the size of the model and the language, `model.safetensors` the plain parameters
by their paths, `pieces.model` the SentencePiece model, and `ids.npy` the id of each piece.
"""

import dataclasses
import functools
import io
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy
from flax import traverse_util

from xling_jax.corpora.normalize import Normalization, Normalizer
from xling_jax.files import link_beside, write_beside
from xling_jax.models import heads
from xling_jax.models.bert import BertConfig
from xling_jax.models.text_model import BLANK, NO_WORD, Encoded
from xling_jax.vocabulary.pieces import CLS, SEP, SPECIAL_TOKENS, Pieces

CONFIG, WEIGHTS, PIECES, IDS = "model.json", "model.safetensors", "pieces.model", "ids.npy"
FORMAT = 1
FRAMED = 2  # the format of models with a frame or an order of their own: older readers must refuse


@dataclasses.dataclass(frozen=True)
class StoredModel:
    """A model of one language.

    config: its size. params: plain, see `heads.initial_params`. language: its name.
    pieces: the vocabulary. ids: int32 [pieces], the row of the embeddings of each piece.
    normalization: how the text was written that it was trained on. frame: the ids before and
    behind a sentence. inverted: whether the pieces between them are in reversed order (D&S §2.3).
    """

    config: BertConfig
    params: Mapping[str, Any]
    language: str
    pieces: Pieces
    ids: np.ndarray
    normalization: Normalization
    frame: tuple[int, int] = (CLS, SEP)
    inverted: bool = False

    @functools.cached_property
    def write(self) -> Normalizer:
        """Writes a sentence as the text was that the model was trained on."""
        return Normalizer(self.language, self.normalization)

    def encode(self, sentences: Sequence[str]) -> list[np.ndarray]:
        """See `TextModel`."""
        written = list(map(self.write, sentences))
        return [self._ordered(self.ids[found]) for found in self.pieces.encode(written)]

    def _ordered(self, of_pieces: np.ndarray) -> np.ndarray:
        return of_pieces[::-1] if self.inverted else of_pieces

    @functools.cached_property
    def _starts(self) -> np.ndarray:
        """Whether a piece begins a word."""
        return np.array([name.startswith(BLANK) for name in self.pieces.names])

    def encode_words(self, written: Sequence[str]) -> list[Encoded]:
        """See `TextModel`; all is NO_WORD where a word does not begin with a piece of its own."""
        found = []
        for sentence, pieces in zip(written, self.pieces.encode(written), strict=True):
            number = np.cumsum(self._starts[pieces], dtype=np.int32) - 1
            if not len(number) or number[-1] + 1 != len(sentence.split()):
                number = np.full(len(pieces), NO_WORD, np.int32)
            found.append((self._ordered(self.ids[pieces]), self._ordered(number)))
        return found

    def single_pieces(self, words: Iterable[str] | None = None) -> dict[str, int]:
        """See `TextModel`."""
        if words is None:
            names = (name.removeprefix(BLANK) for name in self.pieces.names if name[:1] == BLANK)
            words = filter(None, names)
        given = list(words)
        encoded = self.pieces.encode(given)
        return {
            word: int(self.ids[pieces[0]])
            for word, pieces in zip(given, encoded, strict=True)
            if len(pieces) == 1 and pieces[0] >= len(SPECIAL_TOKENS)
        }


def save(
    folder: str | os.PathLike[str], model: StoredModel, like: str | os.PathLike[str] | None = None
) -> None:
    """Writes a model; the last file of all says that it is complete.

    Args:
      folder: that gets it.
      model: to write.
      like: the folder of a model with the same parameters, to share the file of them.
    """
    folder = Path(folder)
    if like is None:
        leaves = {
            path: np.ascontiguousarray(leaf, np.float32)
            for path, leaf in traverse_util.flatten_dict(dict(model.params), sep="/").items()
        }
        write_beside(folder / WEIGHTS, safetensors.numpy.save(leaves))
    else:
        link_beside(folder / WEIGHTS, Path(like) / WEIGHTS)
    model.pieces.save(folder / PIECES)
    ids = io.BytesIO()
    np.save(ids, model.ids.astype(np.int32), allow_pickle=False)
    write_beside(folder / IDS, ids.getvalue())
    is_plain = model.frame == (CLS, SEP) and not model.inverted
    fields = {
        "format": FORMAT if is_plain else FRAMED,
        "language": model.language,
        "normalization": dataclasses.asdict(model.normalization),
        "frame": list(model.frame),
        "inverted": model.inverted,
        "model": dataclasses.asdict(model.config),
    }
    write_beside(folder / CONFIG, json.dumps(fields, indent=1) + "\n")


def files(folder: Path) -> list[Path]:
    """The files of a model; FileNotFoundError if it is not complete."""
    for path in (found := [folder / name for name in (CONFIG, WEIGHTS, PIECES, IDS)]):
        if not path.exists():
            raise FileNotFoundError(
                f"{path}: no such file; give the folder of a language's model, such as "
                "WORKDIR/models/rowdefault_seed0/en"
            )
    return found


def load(folder: str | os.PathLike[str]) -> StoredModel:
    """Reads what `save` wrote.

    Raises:
      FileNotFoundError: there is no complete model.
      ValueError: a file is damaged, or they do not belong together; it is named.
    """
    folder = Path(folder).expanduser()
    files(folder)
    try:
        fields = json.loads((folder / CONFIG).read_text("utf-8"))
        config = BertConfig(**fields["model"])
        normalization = Normalization(**fields["normalization"])
        language = str(fields["language"])
        first, last = map(int, fields.get("frame", (CLS, SEP)))
        inverted = bool(fields.get("inverted", False))
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{folder / CONFIG} is damaged: {error}") from error
    if fields.get("format") not in (FORMAT, FRAMED):
        raise ValueError(
            f"{folder / CONFIG}: format {fields.get('format')}, and {FORMAT} and {FRAMED} are read"
        )
    if not all(0 <= x < config.vocabulary_size for x in (first, last)):
        raise ValueError(
            f"{folder / CONFIG}: frame {[first, last]} is outside the vocabulary of "
            f"{config.vocabulary_size}"
        )
    try:
        leaves = safetensors.numpy.load((folder / WEIGHTS).read_bytes())
    except safetensors.SafetensorError as error:
        raise ValueError(f"{folder / WEIGHTS} is damaged: {error}") from error
    wanted = traverse_util.flatten_dict(heads.param_shapes(config), sep="/")
    shapes = {path: leaf.shape for path, leaf in wanted.items()}
    if {path: leaf.shape for path, leaf in leaves.items()} != shapes:
        raise ValueError(f"{folder / WEIGHTS}: the weights are not those of {CONFIG}")
    try:
        ids = np.load(folder / IDS, allow_pickle=False)
    except ValueError as error:
        raise ValueError(f"{folder / IDS} is damaged: {error}") from error
    pieces = Pieces.load(folder / PIECES)
    if ids.shape != (pieces.size,) or ids.min() < 0 or ids.max() >= config.vocabulary_size:
        raise ValueError(f"{folder / IDS}: no ids of the {pieces.size} pieces of {PIECES}")
    params = traverse_util.unflatten_dict(leaves, sep="/")
    frame = first, last
    return StoredModel(config, params, language, pieces, ids, normalization, frame, inverted)
