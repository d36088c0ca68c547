"""What a run stored, read back and checked, and its means over seeds.

A run's workdir holds `config.json`, `metrics.jsonl`, `results.json` and `arrays/*.npz`. Every
reader raises `ValueError` naming the file and the line (or entry); a missing file reads as empty,
since a report may be asked for while the run is going.
"""

from __future__ import annotations

import io
import json
import math
import re
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np

from xling_jax.files import write_beside

_ARRAYS = re.compile(r"row(.+)_seed(\d+)\.npz")


@dataclass(frozen=True)
class Replica:
    """One entry of `results.json`: a replica that ended, or diverged after `diverged_at` steps.

    scored_at: the step whose parameters have these metrics; None where that is not stored.
    """

    experiment: str
    row: str
    description: str
    seed: int
    step: int
    metrics: Mapping[str, float]
    diverged_at: int | None = None
    scored_at: int | None = None


@dataclass(frozen=True)
class Record:
    """One line of `metrics.jsonl`; `values` are its numbers, non-finite ones left out."""

    row: str
    seed: int
    step: int
    epoch: float | None
    values: Mapping[str, float]


class Metrics(NamedTuple):
    """`metrics.jsonl` by kind, each sorted by row, seed and step."""

    training: list[Record]
    evaluations: list[Record]


@dataclass(frozen=True)
class Arrays:
    """What one replica stored for the figures.

    `token_embeddings` `[V, D]` (layer 0), `token_languages` `[V]`, `token_names` `[V]`,
    `token_counts` `[V]` or None, `position_embeddings` `[P, D]`; language k uses the positions
    from k * `position_offset` (0: the languages share them); `language_names` may be empty.
    """

    token_embeddings: np.ndarray
    token_languages: np.ndarray
    token_names: np.ndarray
    token_counts: np.ndarray | None
    position_embeddings: np.ndarray
    position_offset: int
    language_names: tuple[str, ...]


def _invalid(message: str) -> NoReturn:
    raise ValueError(message)


def _integer(entry: Mapping[str, Any], name: str, where: str) -> int:
    value = entry.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        _invalid(f"{where}: {name} must be an integer from 0, got {value!r}")
    return value


def _numbers(values: Any, where: str) -> dict[str, float]:
    """The finite numbers among named values; null and NaN (a loss that overflowed) are left out."""
    if not isinstance(values, dict):
        _invalid(f"{where}: metrics must be an object of numbers, got {values!r}")
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | float | None):
            _invalid(f"{where}: {name} must be a number, got {value!r}")
    return {k: float(v) for k, v in values.items() if v is not None and math.isfinite(v)}


def _replica(entry: Any, where: str) -> Replica:
    if not isinstance(entry, dict) or not isinstance(entry.get("row"), str | int):
        _invalid(f"{where}: expected an object with row, seed, step, metrics; got {entry!r}")
    diverged, scored = entry.get("diverged_at"), entry.get("scored_at")
    return Replica(
        experiment=str(entry.get("experiment", "")),
        row=str(entry["row"]),
        description=str(entry.get("description") or ""),
        seed=_integer(entry, "seed", where),
        step=_integer(entry, "step", where),
        metrics=_numbers(entry.get("metrics") or {}, where),
        diverged_at=None if diverged is None else _integer(entry, "diverged_at", where),
        scored_at=None if scored is None else _integer(entry, "scored_at", where),
    )


def _load(path: Path, text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}, line {error.lineno}: not JSON ({error.msg})") from error


def read_results(path: Path) -> list[Replica]:
    """The replicas in `results.json`, in its order; no file reads as none."""
    if not path.exists():
        return []
    entries = _load(path, path.read_text(encoding="utf-8"))
    if not isinstance(entries, list):
        _invalid(f"{path}: expected a list of replicas, got {type(entries).__name__}")
    replicas = [_replica(e, f"{path}, entry {n}") for n, e in enumerate(entries, 1)]
    _check_once(replicas, path)
    return replicas


def _check_once(replicas: Sequence[Replica], path: Path) -> None:
    seen: set[tuple[str, int]] = set()
    for number, replica in enumerate(replicas, 1):
        if (replica.row, replica.seed) in seen:
            raise ValueError(
                f"{path}, entry {number}: row {replica.row}, seed {replica.seed} is there twice; "
                "remove one of the two"
            )
        seen.add((replica.row, replica.seed))


def write_results(path: Path, replicas: Sequence[Replica]) -> Path:
    """Writes `results.json` whole; numbers that are not finite become null."""
    _check_once(replicas, path)
    entries = []
    for replica in replicas:
        entry = asdict(replica)
        entry["metrics"] = {
            k: float(v) if math.isfinite(v) else None for k, v in replica.metrics.items()
        }
        for name in ("diverged_at", "scored_at"):
            if entry[name] is None:
                del entry[name]
        entries.append(entry)
    return write_beside(path, json.dumps(entries, indent=1, allow_nan=False) + "\n")


def add_result(path: Path, replica: Replica) -> Path:
    """Adds a replica that ended; it takes the place of an earlier one of its row and seed."""
    others = [r for r in read_results(path) if (r.row, r.seed) != (replica.row, replica.seed)]
    return write_results(path, [*others, replica])


def _record(entry: Any, where: str) -> tuple[str, Record] | None:
    if not isinstance(entry, dict):
        _invalid(f"{where}: expected an object, got {entry!r}")
    kind = entry.get("kind")
    if kind not in ("train", "evaluation"):
        return None
    if not isinstance(entry.get("row"), str | int):
        _invalid(f"{where}: row must be a name, got {entry.get('row')!r}")
    if kind == "evaluation":
        values = _numbers(entry.get("metrics"), where)
    else:
        names = [k for k, v in entry.items() if isinstance(v, int | float)]
        values = _numbers({k: entry[k] for k in names if k not in ("row", "seed", "step")}, where)
    seed, step = _integer(entry, "seed", where), _integer(entry, "step", where)
    epoch = entry.get("epoch")
    epoch = float(epoch) if isinstance(epoch, int | float) else None
    return kind, Record(str(entry["row"]), seed, step, epoch, values)


def read_metrics(path: Path) -> Metrics:
    """The lines of `metrics.jsonl` by kind; other kinds are passed over.

    A last line without its line end is what a kill leaves: it is dropped if it cannot be read.
    Of two lines for the same row, seed and step (a resumed run) the later holds.
    """
    found: dict[str, dict[tuple[str, int, int], Record]] = {"train": {}, "evaluation": {}}
    lines = path.read_bytes().split(b"\n") if path.exists() else []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            entry = json.loads(line)
        except ValueError as error:
            if number == len(lines):
                break
            raise ValueError(f"{where}: not JSON ({error})") from error
        if record := _record(entry, where):
            kind, value = record
            found[kind][value.row, value.seed, value.step] = value
    training, evaluations = ([by[key] for key in sorted(by)] for by in found.values())
    return Metrics(training, evaluations)


def read_config(path: Path) -> dict[str, Any]:
    """`config.json`, an object; no file reads as empty."""
    if not path.exists():
        return {}
    config = _load(path, path.read_text(encoding="utf-8"))
    if not isinstance(config, dict):
        _invalid(f"{path}: expected an object, got {type(config).__name__}")
    return config


def array_files(folder: Path) -> dict[str, tuple[int, Path]]:
    """The stored arrays by row, each with its lowest seed: `{row: (seed, path)}`."""
    found: dict[str, tuple[int, Path]] = {}
    for path in sorted(folder.glob("row*_seed*.npz")):
        if match := _ARRAYS.fullmatch(path.name):
            row, seed = match[1], int(match[2])
            if row not in found or seed < found[row][0]:
                found[row] = (seed, path)
    return found


def write_arrays(path: Path, arrays: Arrays) -> Path:
    """Writes what the figures need as `.npz`, beside its place and then renamed."""
    content = io.BytesIO()
    fields = {name: value for name, value in vars(arrays).items() if value is not None}
    np.savez(content, **fields)
    path.parent.mkdir(parents=True, exist_ok=True)
    return write_beside(path, content.getvalue())


def read_arrays(path: Path) -> Arrays:
    """One replica's arrays, checked: shapes that agree and finite numbers."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            content = {name: stored[name] for name in stored.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path}: not an npz file without pickles ({error})") from error
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
    return Arrays(
        content["token_embeddings"],
        content["token_languages"],
        content["token_names"],
        content.get("token_counts"),
        content["position_embeddings"],
        int(content.get("position_offset", 0)),
        tuple(str(name) for name in content.get("language_names", ())),
    )
