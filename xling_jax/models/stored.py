"""A trained model of one language in a folder: weights, pieces, and how its text is normalised.

`model.json` has the size of the model, the language, how text is normalised, a digest of every
other file and its own seal; `model.safetensors` the plain parameters by their paths; `pieces.model`
the SentencePiece model; and `ids.npy` the id of each piece.
"""

import dataclasses
import functools
import hashlib
import io
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import safetensors.numpy
from flax import traverse_util
from pydantic import Field, TypeAdapter, with_config

from xling_jax import records
from xling_jax.corpora.normalize import Normalization, Normalizer
from xling_jax.files import link_beside, read_json, require_regular, sha256, write_beside
from xling_jax.models import heads, tensor_files
from xling_jax.models.bert import BertConfig
from xling_jax.models.text_model import NO_WORD, Encoded, TextModel, require_rows
from xling_jax.records import Count
from xling_jax.vocabulary.pieces import BLANK, CLS, MASK, SEP, SPECIALS, Pieces

CONFIG, WEIGHTS, PIECES, IDS = "model.json", "model.safetensors", "pieces.model", "ids.npy"
FORMAT = 4
UNSIGNED = (1, 2)  # formats without digests; neither these nor 3 say which parameters are own
DIGESTS = "files"  # the field with the digests, the SHA-256 of every other file by its name
RESTORE = "restore the folder from a copy, or write the model again by the run that trained it"


@dataclasses.dataclass(frozen=True)
class StoredModel(TextModel):
    """A model of one language that we trained; it may read its pieces in reversed order (D&S §2.3).

    Attributes:
      pieces: the vocabulary.
      ids: int32 [pieces], the row of the embeddings of each piece.
      normalization: of the text that the model was trained on.
    """

    pieces: Pieces
    ids: np.ndarray
    normalization: Normalization
    own: frozenset[str] | None = dataclasses.field(default=frozenset(), kw_only=True)

    @functools.cached_property
    def write(self) -> Normalizer:
        """Normalises a sentence like the text that the model was trained on."""
        return Normalizer(self.language, self.normalization)

    def encode(self, sentences: Sequence[str]) -> list[np.ndarray]:
        written = list(map(self.write, sentences))
        return [self._ordered(self.ids[found]) for found in self.pieces.encode(written)]

    def _ordered(self, of_pieces: np.ndarray) -> np.ndarray:
        return of_pieces[::-1] if self.inverted else of_pieces

    @functools.cached_property
    def _starts(self) -> np.ndarray:
        return np.array([name.startswith(BLANK) for name in self.pieces.names])

    def encode_words(self, written: Sequence[str]) -> list[Encoded]:
        """If a word of a sentence does not begin with a piece of its own, all of the sentence's
        pieces have NO_WORD."""
        found = []
        for sentence, pieces in zip(written, self.pieces.encode(written), strict=True):
            number = np.cumsum(self._starts[pieces], dtype=np.int32) - 1
            if not len(number) or number[-1] + 1 != len(sentence.split()):
                number = np.full(len(pieces), NO_WORD, np.int32)
            found.append((self._ordered(self.ids[pieces]), self._ordered(number)))
        return found

    def words(self) -> list[str]:
        return [name.removeprefix(BLANK) for name in self.pieces.names if name[:1] == BLANK]

    @functools.cached_property
    def textless(self) -> set[int]:
        return set(self.ids[:SPECIALS].tolist())


def save(
    folder: str | os.PathLike[str], model: StoredModel, like: str | os.PathLike[str] | None = None
) -> None:
    """Writes a model; `CONFIG` comes last, so a folder with it is complete. `like` is the folder of
    a model with the same parameters, which shares its file of them."""
    folder = Path(folder)
    leaves = {
        path: np.ascontiguousarray(leaf, np.float32)
        for path, leaf in traverse_util.flatten_dict(dict(model.params), sep="/").items()
    }
    ids = io.BytesIO()
    np.save(ids, model.ids.astype(np.int32), allow_pickle=False)
    weights = safetensors.numpy.save(leaves)
    if like is None:
        write_beside(folder / WEIGHTS, weights)
    else:
        link_beside(folder / WEIGHTS, Path(like) / WEIGHTS)
    model.pieces.save(folder / PIECES)
    write_beside(folder / IDS, ids.getvalue())
    digests = {
        WEIGHTS: hashlib.sha256(weights).hexdigest(),
        PIECES: model.pieces.sha256,
        IDS: hashlib.sha256(ids.getvalue()).hexdigest(),
    }
    fields = {
        "format": FORMAT,
        "language": model.language,
        "normalization": dataclasses.asdict(model.normalization),
        "frame": list(model.special_ids),
        "inverted": model.inverted,
        "own": sorted(model.own or ()),
        "model": dataclasses.asdict(model.config),
        DIGESTS: digests,
    }
    write_beside(folder / CONFIG, json.dumps(records.sealed(fields), indent=1) + "\n")


def files(folder: Path) -> list[Path]:
    """The files of a model; FileNotFoundError if it is not complete."""
    for path in (found := [folder / name for name in (CONFIG, WEIGHTS, PIECES, IDS)]):
        if not path.exists():
            raise FileNotFoundError(
                f"{path}: no such file; give the folder of a language's model, such as "
                "WORKDIR/models/rowdefault_seed0/en"
            )
        require_regular(path)
    return found


@with_config({"extra": "forbid"})
@dataclasses.dataclass(frozen=True)
class _Description:
    """The content of `CONFIG`; older folders lack the fields with defaults."""

    format: Count
    language: Annotated[str, Field(min_length=1)]
    normalization: Normalization
    model: BertConfig
    frame: tuple[Count, Count] = (CLS, SEP)
    inverted: bool = False
    own: frozenset[str] | None = None
    files: Mapping[str, str] = dataclasses.field(default_factory=dict)
    sha256: str = ""


_DESCRIPTION = TypeAdapter(_Description)


def load(folder: str | os.PathLike[str]) -> StoredModel:
    """Reads what `save` wrote; ValueError, naming the file, if one is damaged or they do not belong
    together. In `UNSIGNED` formats damage that leaves possible values goes unnoticed."""
    folder = Path(folder).expanduser()
    path, *others = files(folder)
    content, said = _described(path)
    if said.format not in UNSIGNED or said.sha256:
        for name in (DIGESTS, records.SEAL):
            if name not in content:
                raise ValueError(f"{path}: {name} is missing: {RESTORE}")
        changed = [x for x in others if said.files.get(x.name) != sha256(x)]
        if changed or records.sealed(content) != content:
            raise ValueError(
                f"{(changed or [path])[0]} is damaged or changed: its SHA-256 is not the one in "
                f"{CONFIG}: {RESTORE}"
            )
    rows = said.model.vocabulary_size
    if max(said.frame) >= rows:
        raise ValueError(
            f"{path}: frame={list(said.frame)}: the model has ids from 0 to {rows - 1}"
        )
    pieces = Pieces.load(folder / PIECES)
    ids = _ids(folder, pieces, said.model)
    return StoredModel(
        config=said.model,
        params=traverse_util.unflatten_dict(_leaves(folder, said.model), sep="/"),
        language=said.language,
        pieces=pieces,
        ids=ids,
        normalization=said.normalization,
        special_ids=said.frame,
        mask_id=int(ids[MASK]),
        inverted=said.inverted,
        own=said.own,
    )


def config_of(folder: Path) -> BertConfig:
    """The config of a model that `save` wrote; FileNotFoundError or ValueError as in `load`, which
    checks more."""
    return _described(files(folder)[0])[1].model


def _described(path: Path) -> tuple[Any, _Description]:
    """The content of a model's `CONFIG`, first as it is stored, then checked."""
    content = read_json(path)
    number = content.get("format") if isinstance(content, dict) else None
    if isinstance(number, int) and not 1 <= number <= FORMAT:
        raise ValueError(
            f"{path}: format={number}: this version reads 1 to {FORMAT}; take a newer one"
        )
    return content, records.typed(_DESCRIPTION, content, str(path), RESTORE)


def _leaves(folder: Path, config: BertConfig) -> dict[str, np.ndarray]:
    """The parameters by their paths, checked against the config before they are read."""
    file = tensor_files.TensorFile(folder / WEIGHTS)
    file.require_layers(config.layers, CONFIG)
    wanted = traverse_util.flatten_dict(heads.param_shapes(config), sep="/")
    shapes = {path: leaf.shape for path, leaf in wanted.items()}
    tensor_files.require_shapes(file.path, file.shapes, shapes, CONFIG, RESTORE)
    return {path: file.read(path) for path in shapes}


def _ids(folder: Path, pieces: Pieces, config: BertConfig) -> np.ndarray:
    """The id of each piece, int32 [pieces]."""
    path = folder / IDS
    content = path.read_bytes()
    try:
        ids = np.load(io.BytesIO(content), allow_pickle=False)
    except Exception as error:  # NumPy does not document what its parser raises
        raise ValueError(f"{path} is damaged: {RESTORE}") from error
    if ids.shape != (pieces.size,) or ids.dtype != np.int32:
        raise ValueError(
            f"{path}: {ids.dtype} {list(ids.shape)} are no ids of the {pieces.size} pieces of "
            f"{PIECES}: {RESTORE}"
        )
    require_rows(path, dict(zip(pieces.names, ids.tolist(), strict=True)), config.vocabulary_size)
    return ids
