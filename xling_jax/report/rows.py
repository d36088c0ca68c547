"""A run's rows: means over seeds, curves over training, and what the config says of them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from xling_jax.records import Identity
from xling_jax.runs import results
from xling_jax.runs.results import Metrics, Record, Replica, read_config, read_metrics, read_results

_LAYERED = re.compile(r"(?:retrieval|translation|alignment_f1)_(\d+)")


class Summary(NamedTuple):
    """Mean and standard deviation of `number` values.

    The standard deviation is the population's (ddof=0); D&S do not say which theirs is.
    """

    mean: float
    sd: float
    number: int


def summarise(values: Iterable[float]) -> Summary:
    """Mean and standard deviation (ddof=0) of at least one finite value."""
    numbers = list(values)
    if not numbers or not all(map(math.isfinite, numbers)):
        raise ValueError(f"summarise needs finite values and at least one, got {numbers}")
    mean = math.fsum(numbers) / len(numbers)
    variance = math.fsum((number - mean) ** 2 for number in numbers) / len(numbers)
    return Summary(mean, math.sqrt(variance), len(numbers))


def deep_layer(names: Iterable[str]) -> int | None:
    """The deeper evaluated layer, found in metric names such as `retrieval_8`; None if only 0."""
    layers = [int(match[1]) for name in names if (match := _LAYERED.match(name))]
    return max(layers, default=0) or None


@dataclass(frozen=True)
class Row:
    """One row over its seeds.

    `metrics` average the seeds in `seeds`: those that finished or, while none has, all that run,
    at the last step where every one of them was evaluated. `diverged` maps a seed to its last
    good step; such seeds are in no mean.
    """

    row: str
    description: str
    metrics: Mapping[str, Summary]
    seeds: tuple[int, ...]
    diverged: Mapping[int, int]
    running: tuple[int, ...]
    step: int | None

    @property
    def finished(self) -> bool:
        """Whether no seed of the row still trains."""
        return not self.running


@dataclass(frozen=True)
class Run:
    """A workdir, read; settings that `config.json` does not name are None or empty."""

    workdir: Path
    config: Mapping[str, Any]
    replicas: Sequence[Replica]
    metrics: Metrics
    order: tuple[str, ...] = ()

    @property
    def experiment(self) -> str:
        """The config's name, without a folder or the choice after a colon."""
        names = [self.config.get("experiment"), *(r.experiment for r in self.replicas)]
        name = next((str(name) for name in names if name), "")
        return Path(name.split(":")[0]).stem

    @property
    def identity(self) -> Identity:
        """Of which experiment the run is."""
        return Identity.of(self.config)

    @property
    def texts(self) -> list[dict[str, Any]]:
        """The texts the config names, each with its language, size and hash."""
        texts = self.config.get("texts")
        return [t for t in texts if isinstance(t, dict)] if isinstance(texts, list) else []

    def setting(self, section: str, *names: str) -> float | None:
        """The first number with one of the names, at the top of the config or in a section."""
        nested = self.config.get("config")
        inside = nested.get(section) if isinstance(nested, dict) else None
        for where in (self.config, inside if isinstance(inside, dict) else {}):
            for name in names:
                if isinstance(where.get(name), int | float) and not isinstance(where[name], bool):
                    return float(where[name])
        return None

    def steps_of(self, row: str) -> int | None:
        """The updates a replica of a row makes, y of "step x of y"; None where nothing tells."""
        stored = self.config.get("steps")
        if isinstance(stored, dict) and isinstance(stored.get(row), int):
            return stored[row]
        ended = [r.step for r in self.replicas if r.row == row and r.diverged_at is None]
        return max(ended, default=None)

    @property
    def layers(self) -> int | None:
        """The encoder's depth."""
        layers = self.setting("models", "layers", "num_layers")
        return None if layers is None else round(layers)

    @cached_property
    def _lines(self) -> dict[str, list[Record]]:
        """Everything that was logged, by row: training first."""
        by_row: dict[str, list[Record]] = {}
        for record in (*self.metrics.training, *self.metrics.evaluations):
            by_row.setdefault(record.row, []).append(record)
        return by_row

    @cached_property
    def _seeds(self) -> dict[str, set[int]]:
        return {row: {line.seed for line in lines} for row, lines in self._lines.items()}

    def seeds_logged(self, row: str) -> set[int]:
        """The seeds of a row for which anything was logged."""
        return self._seeds.get(row, set())

    def seeds_diverged(self, row: str) -> set[int]:
        """The seeds of a row that diverged."""
        return {r.seed for r in self.replicas if r.row == row and r.diverged_at is not None}

    def description(self, row: str) -> str:
        """A row's description, from the config or a result; empty if neither has one."""
        named = self.config.get("rows")
        if isinstance(named, dict) and named.get(row):
            return str(named[row])
        return next((r.description for r in self.replicas if r.row == row), "")

    def replicas_planned(self) -> set[tuple[str, int]]:
        """(row, seed) of every replica that the config's groups name or that left a line."""
        groups = self.config.get("groups")
        planned = [each for group in groups for each in group] if isinstance(groups, list) else []
        seen = {(row, seed) for row in self._seeds for seed in self._seeds[row]}
        ended = {(r.row, r.seed) for r in self.replicas}
        return {(str(row), int(seed)) for row, seed in planned} | seen | ended

    def row_names(self) -> list[str]:
        """Every row planned or seen: those of `order` first, then the run's own."""
        named = self.config.get("rows")
        seen = [str(name) for name in named] if isinstance(named, dict) else []
        seen += [*(replica.row for replica in self.replicas), *self._lines]
        rows = list(dict.fromkeys(seen))
        order = self.order
        return sorted(rows, key=lambda r: order.index(r) if r in order else len(order))

    def row(self, name: str) -> Row:
        """A row's means over seeds, read once."""
        if name not in self._rows:
            self._rows[name] = read_row(self, name)
        return self._rows[name]

    @cached_property
    def _rows(self) -> dict[str, Row]:
        return {}


def read_run(workdir: Path, order: Sequence[str] = ()) -> Run:
    """Everything the tables and curves of a workdir need; rows of `order` come first."""
    workdir = Path(workdir)
    if not workdir.is_dir():
        raise ValueError(f"workdir {workdir} is not a folder; give the --workdir of a run")
    config = read_config(workdir / results.CONFIG)
    identity = Identity.of(config)
    return Run(
        workdir,
        config,
        read_results(workdir / results.RESULTS, identity),
        read_metrics(workdir / results.METRICS, identity),
        tuple(order),
    )


def _means(by_seed: Sequence[Mapping[str, float]]) -> dict[str, Summary]:
    """Each metric over the seeds that have it."""
    names = dict.fromkeys(name for metrics in by_seed for name in metrics)
    return {name: summarise(m[name] for m in by_seed if name in m) for name in names}


def read_row(run: Run, row: str) -> Row:
    """A row's means over seeds, from `results.json` or, before that, the latest evaluations."""
    ended = [r for r in run.replicas if r.row == row]
    diverged = {r.seed: r.diverged_at for r in ended if r.diverged_at is not None}
    good = [r for r in ended if r.diverged_at is None]
    running = sorted(run.seeds_logged(row) - {r.seed for r in ended})
    if not good:
        seeds, step, metrics = _so_far(run, row, running)
    else:
        seeds, step = tuple(r.seed for r in good), max(r.step for r in good)
        metrics = _means([r.metrics for r in good])
    return Row(row, run.description(row), metrics, seeds, diverged, tuple(running), step)


def _so_far(
    run: Run, row: str, running: Sequence[int]
) -> tuple[tuple[int, ...], int | None, dict[str, Summary]]:
    by_seed: dict[int, dict[int, Record]] = {}
    for record in run.metrics.evaluations:
        if record.row == row and record.seed in running:
            by_seed.setdefault(record.seed, {})[record.step] = record
    common = set.intersection(*(set(steps) for steps in by_seed.values())) if by_seed else set()
    if not common:
        return (), None, {}
    step = max(common)
    return tuple(by_seed), step, _means([steps[step].values for steps in by_seed.values()])


class Curve(NamedTuple):
    """A metric over training: `steps`, `mean`, `sd` of equal length."""

    steps: Sequence[float]
    mean: list[float]
    sd: list[float]


def curves(records: Iterable[Record], row: str, without: Iterable[int] = ()) -> dict[str, Curve]:
    """Each number's mean and standard deviation a step, over the seeds of a row that have it."""
    points: dict[str, dict[int, list[float]]] = {}
    left_out = set(without)
    for record in records:
        if record.row == row and record.seed not in left_out:
            for name, value in record.values.items():
                points.setdefault(name, {}).setdefault(record.step, []).append(value)
    found = {}
    for name, by_step in points.items():
        steps = sorted(by_step)
        sums = [summarise(by_step[step]) for step in steps]
        found[name] = Curve(steps, [s.mean for s in sums], [s.sd for s in sums])
    return found
