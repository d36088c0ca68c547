"""What a run stored, read back and checked.

A run's workdir holds `config.json`, `metrics.jsonl`, `results.json` and `arrays/*.npz`. Every
reader raises `ValueError` naming the file and the line (or entry). A missing file reads as empty,
arrays apart, since a report may be asked for while a run is going.
"""

from __future__ import annotations

import collections
import io
import json
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from pydantic import TypeAdapter

from xling_jax import files, records
from xling_jax.files import write_beside
from xling_jax.records import UNKNOWN, Count, Identity, Numbers

CONFIG, METRICS, RESULTS = "config.json", "metrics.jsonl", "results.json"
_ARRAYS = re.compile(r"row(.+)_seed(\d+)\.npz")
_KINDS = "train", "evaluation"  # of lines, in the order of `Metrics`
# Fields of a line of training that are not measurements.
_NO_MEASUREMENT = {"kind", "row", "seed", "step", "fingerprint", records.SEAL}


@dataclass(frozen=True)
class Replica:
    """One entry of `results.json`: a replica that ended or diverged.

    Attributes:
      step: the updates that it made.
      diverged_at: the last good step, if it diverged.
      scored_at: the step whose parameters have these metrics; None if that is not stored.
      fingerprint: of the experiment at the time.
    """

    experiment: str
    row: str
    description: str
    seed: Count
    step: Count
    metrics: Numbers = field(default_factory=dict)
    diverged_at: Count | None = None
    scored_at: Count | None = None
    fingerprint: str = ""


class Record(NamedTuple):
    """One line of `metrics.jsonl`; `values` are its numbers, non-finite ones left out."""

    row: str
    seed: int
    step: int
    epoch: float | None
    values: Mapping[str, float]


class Metrics(NamedTuple):
    """`metrics.jsonl` by kind of line, each kind sorted by row, seed and step."""

    training: list[Record]
    evaluations: list[Record]


@dataclass(frozen=True)
class _Line:
    """The field that every line of `metrics.jsonl` has."""

    kind: str


@dataclass(frozen=True)
class _ReplicaLine:
    """The fields of a line about a replica; numbers of training stand beside them in the line."""

    row: str
    seed: Count
    step: Count
    epoch: float | None = None
    metrics: Numbers = field(default_factory=dict)
    fingerprint: str = ""


@dataclass(frozen=True)
class _Text:
    """An entry for a text in `config.json`, which may have more fields."""

    sha256: str
    source: str = ""
    language: str = ""
    field: str = ""


@dataclass(frozen=True)
class _Prepared:
    """The pieces and the token files that a row was given."""

    vocabulary: str
    text: list[str]


@dataclass(frozen=True)
class _Config:
    """The fields of `config.json` that are checked; an older run has fewer."""

    experiment: str = ""
    fingerprint: str = ""
    earlier_fingerprints: list[str] = field(default_factory=list)
    scale: str = ""
    versions: dict[str, str | None] = field(default_factory=dict)
    later_versions: list[dict[str, str | None]] = field(default_factory=list)
    texts: list[_Text] = field(default_factory=list)
    rows: dict[str, str] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    groups: list[list[tuple[str, Count]]] = field(default_factory=list)
    steps: dict[str, Count] = field(default_factory=dict)
    vocabulary: dict[str, Any] = field(default_factory=dict)
    neighbours: dict[str, str] = field(default_factory=dict)
    prepared: dict[str, _Prepared] = field(default_factory=dict)
    tables: dict[str, str] = field(default_factory=dict)  # a hash of each row's pieces


_REPLICA, _CONFIG, _NUMBERS = TypeAdapter(Replica), TypeAdapter(_Config), TypeAdapter(Numbers)
_LINE, _REPLICA_LINE = TypeAdapter(_Line), TypeAdapter(_ReplicaLine)


@dataclass(frozen=True)
class Arrays:
    """What one replica stored for the figures.

    Attributes:
      token_embeddings: [V, D], the vectors of layer 0.
      token_languages, token_names: [V].
      token_counts: [V], or None.
      position_embeddings: [P, D].
      position_offset: language k uses the positions from k * `position_offset` on; 0: the languages
        share them.
      language_names: may be empty.
    """

    token_embeddings: np.ndarray
    token_languages: np.ndarray
    token_names: np.ndarray
    token_counts: np.ndarray | None
    position_embeddings: np.ndarray
    position_offset: int
    language_names: tuple[str, ...]


def _is_there(path: Path) -> bool:
    """Whether there is a file; ValueError for a broken link."""
    if os.path.islink(path) and not path.exists():
        raise ValueError(f"{path} is a link to a file that is not there: {records.RESTORE}")
    return path.exists()


def read_results(path: Path, identity: Identity = UNKNOWN) -> list[Replica]:
    """The replicas in `results.json`, in its order; ValueError if it is damaged, or if an entry is
    of another experiment than `identity`."""
    if not _is_there(path):
        return []
    entries = files.read_json(path)
    if not isinstance(entries, list):
        kind = type(entries).__name__
        raise ValueError(f"{path}: expected a list of replicas, got {kind}: {records.RESTORE}")
    replicas = []
    for number, entry in enumerate(entries, 1):
        replica = records.known(_REPLICA, entry, f"{path}, entry {number}", identity)
        replicas.append(replica)
    _check_once(replicas, path)
    return replicas


def _check_once(replicas: Sequence[Replica], path: Path) -> None:
    counts = collections.Counter[tuple[str, int]]()
    for number, replica in enumerate(replicas, 1):
        counts[replica.row, replica.seed] += 1
        if counts[replica.row, replica.seed] > 1:
            raise ValueError(
                f"{path}, entry {number}: row {replica.row}, seed {replica.seed} is there twice; "
                "remove one of the two"
            )


def write_results(path: Path, replicas: Sequence[Replica]) -> Path:
    """Writes `results.json` whole, without numbers that are not finite."""
    _check_once(replicas, path)
    entries = []
    for replica in replicas:
        metrics = {k: float(v) for k, v in replica.metrics.items() if math.isfinite(v)}
        entry = asdict(replica) | {"metrics": metrics}
        for name in ("diverged_at", "scored_at"):
            if entry[name] is None:
                del entry[name]
        entries.append(records.sealed(entry))
    return write_beside(path, json.dumps(entries, indent=1, allow_nan=False) + "\n")


def add_result(path: Path, replica: Replica) -> Path:
    """Adds a replica that ended, or replaces an earlier entry of the same row and seed."""
    others = [r for r in read_results(path) if (r.row, r.seed) != (replica.row, replica.seed)]
    return write_results(path, [*others, replica])


def read_lines(
    path: Path, identity: Identity = UNKNOWN
) -> Iterator[tuple[dict[str, Any], Record | None]]:
    """The lines of `metrics.jsonl`, each with its record, or None for a kind of line that `Metrics`
    does not have; no lines if there is no file.

    A last line without a line end, which a killed run may leave, is dropped if it cannot be read.
    ValueError for any other damaged line, or one of another experiment than `identity`.
    """
    lines = []
    if _is_there(path):
        files.require_regular(path)
        lines = path.read_bytes().split(b"\n")
    for number, content in enumerate(lines, 1):
        if not content.strip():
            continue
        where = f"{path}, line {number}"
        try:
            entry = files.parse_json(content, where)
        except ValueError:
            if number == len(lines):
                break
            raise
        if (kind := records.known(_LINE, entry, where).kind) not in _KINDS:
            yield entry, None
            continue
        line = records.typed(_REPLICA_LINE, entry, where)
        identity.require(line.fingerprint, where)
        values = line.metrics
        if kind == "train":
            named = {name: value for name, value in entry.items() if name not in _NO_MEASUREMENT}
            values = records.typed(_NUMBERS, named, where)
        yield entry, Record(line.row, line.seed, line.step, line.epoch, values)


def read_metrics(path: Path, identity: Identity = UNKNOWN) -> Metrics:
    """The records of `read_lines` by kind. Of two lines for the same row, seed and step, as a
    resumed run may write them, the later one counts."""
    found: dict[str, dict[tuple[str, int, int], Record]] = {kind: {} for kind in _KINDS}
    for entry, record in read_lines(path, identity):
        if record:
            found[entry["kind"]][record.row, record.seed, record.step] = record
    return Metrics(*([by[key] for key in sorted(by)] for by in found.values()))


def read_config(path: Path) -> dict[str, Any]:
    """The content of `config.json`, empty if there is no file; ValueError if it is damaged."""
    if not _is_there(path):
        return {}
    config = files.read_json(path)
    records.typed(_CONFIG, config, str(path))
    records.require_unchanged(config, str(path))
    return config


def arrays_of(workdir: Path, row: str, seed: int) -> Path:
    """The file of a replica's arrays."""
    return workdir / "arrays" / f"row{row}_seed{seed}.npz"


def array_files(folder: Path) -> dict[str, tuple[int, Path]]:
    """For each row, the lowest seed with stored arrays and their file: `{row: (seed, path)}`."""
    found: dict[str, tuple[int, Path]] = {}
    for path in sorted(folder.glob("row*_seed*.npz")):
        if match := _ARRAYS.fullmatch(path.name):
            row, seed = match[1], int(match[2])
            found[row] = min((seed, path), found.get(row, (seed, path)))
    return found


def write_arrays(path: Path, arrays: Arrays, fingerprint: str = "") -> Path:
    """Writes what the figures need as `.npz`, which keeps a checksum of every array; `fingerprint`
    is the experiment's."""
    content = io.BytesIO()
    fields = {name: value for name, value in vars(arrays).items() if value is not None}
    np.savez(content, fingerprint=np.array(fingerprint), **fields)
    return write_beside(path, content.getvalue())


def read_arrays(path: Path, identity: Identity = UNKNOWN) -> Arrays:
    """One replica's arrays; ValueError unless their shapes agree, their numbers are finite, and
    they are of this experiment."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            content = {name: stored[name] for name in stored.files}
    except Exception as error:  # a damaged archive raises many kinds
        raise ValueError(f"{path}: not an npz file without pickles ({error})") from error
    identity.require(str(content.get("fingerprint", "")), str(path))
    needed = ("token_embeddings", "token_languages", "token_names", "position_embeddings")
    if missing := [name for name in needed if name not in content]:
        raise ValueError(f"{path}: {', '.join(missing)} missing")
    for name in ("token_embeddings", "position_embeddings"):
        if content[name].ndim != 2 or not np.isfinite(content[name]).all():
            raise ValueError(f"{path}: {name} must be a finite matrix")
    tokens = len(content["token_embeddings"])
    for name in ("token_languages", "token_names", "token_counts"):
        if name in content and content[name].shape != (tokens,):
            raise ValueError(f"{path}: {name} must be [{tokens}], got {content[name].shape}")
    offset = int(content.get("position_offset", 0))
    languages = tuple(str(name) for name in content.get("language_names", ()))
    named: dict[str, Any] = {name: content.get(name) for name in Arrays.__dataclass_fields__}
    return Arrays(**{**named, "position_offset": offset, "language_names": languages})
