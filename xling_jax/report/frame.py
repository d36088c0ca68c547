"""A run's stored results as tidy frames: means over seeds, curves over training, what is missing.

A frame has a line for each number: `row`, `seed`, `step`, `epoch`, the stored `name` and its parts
(`metric`, `language`, `layer`, `part`), and `value`.
"""

from __future__ import annotations

import math
import os
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pandas as pd

from xling_jax.evaluators.registry import DEEP, EVALUATORS, Evaluator, paper_layers
from xling_jax.records import Identity
from xling_jax.report.prose import grouped
from xling_jax.runs import results
from xling_jax.runs.results import Record

T = TypeVar("T")


class Metric(NamedTuple):
    """A stored name taken apart: the metric, one of `EVALUATORS` or any other name, and its
    language, layer (a number or `DEEP`) and part, each "" if there is none."""

    name: str
    language: str = ""
    layer: int | str = ""
    part: str = ""

    def __str__(self) -> str:
        return "_".join(str(part) for part in self if part != "")

    @property
    def evaluator(self) -> Evaluator | None:
        """The metric's entry in the registry."""
        return EVALUATORS.get(self.name)

    @property
    def in_words(self) -> str:
        """Such as "retrieval at layer 0" and "train perplexity"; the name itself, if that has a
        language or a part."""
        if self.language or self.part:
            return str(self)
        if self.evaluator and self.evaluator.unit == "perplexity":
            return self.evaluator.title
        where = {0: " at layer 0", DEEP: " at the deeper layer"}.get(self.layer, "")
        return self.name.replace("_f1", " F1") + where if where else str(self)


def _pattern(name: str, evaluator: Evaluator) -> re.Pattern[str]:
    """The pattern of a metric's names; a name that can be read without a language has none."""
    language = r"(?:_(?P<language>.+?))??" if evaluator.languages else ""
    layer = rf"(?:_(?P<layer>\d+|{DEEP}))?" if evaluator.layers else ""
    part = rf"(?:_(?P<part>{'|'.join(evaluator.parts)}))?" if evaluator.parts else ""
    return re.compile(name + language + layer + part, re.DOTALL)


# Of names that begin alike, the longer one first.
_PATTERNS = {name: _pattern(name, EVALUATORS[name]) for name in sorted(EVALUATORS, reverse=True)}


@cache
def decoded(name: str) -> Metric:
    """A stored name taken apart."""
    for metric, pattern in _PATTERNS.items():
        if match := pattern.fullmatch(name):
            found = match.groupdict("")
            layer = found.pop("layer", "")
            return Metric(metric, layer=int(layer) if layer.isdecimal() else layer, **found)
    return Metric(name)


def by_layer(
    metrics: Mapping[str, T], name: str, language: str = "", part: str = ""
) -> dict[int, T]:
    """A metric at every layer for which it is known, from the lowest."""
    every = ((decoded(key), value) for key, value in metrics.items())
    found = {of.layer: value for of, value in every if isinstance(of.layer, int)
             and of == Metric(name, language, of.layer, part)}  # fmt: skip
    return dict(sorted(found.items()))


def by_language(metrics: Mapping[str, T], name: str) -> dict[str, T]:
    """A metric that has no layers, in every language for which it is known."""
    every = ((decoded(key), value) for key, value in metrics.items())
    return {each.language: value for each, value in every
            if each.language and each == Metric(name, each.language)}  # fmt: skip


def explained(names: Iterable[str]) -> list[str]:
    """The registry's notes on some metrics, each once."""
    found = (decoded(name).evaluator for name in names)
    return list(dict.fromkeys(each.note for each in found if each and each.note))


def deep_layer(names: Iterable[str], depth: float | None) -> int | None:
    """The deeper layer that D&S evaluate in a model of this depth, if the names have it, or else
    the deepest layer that they have; None if they have none, or only layer 0."""
    layers = {layer for name in names if isinstance(layer := decoded(name).layer, int)}
    papers = paper_layers(int(depth))[1] if depth else None
    return papers if papers in layers else max(layers, default=0) or None


def named_deep(values: Mapping[str, T], depth: float | None) -> dict[str, T]:
    """Metrics with `DEEP` in place of the number of the deeper layer (`deep_layer`)."""
    deep = deep_layer(values, depth)
    metrics = [(decoded(name), value) for name, value in values.items()]
    return {str(each._replace(layer=DEEP) if deep and each.layer == deep else each): value
            for each, value in metrics}  # fmt: skip


@dataclass(frozen=True)
class Measure:
    """A mean over seeds.

    Attributes:
      sd: of the population (ddof=0), since D&S do not say which theirs is; None for a single seed,
        or if a seed's value is not finite.
      number: how many seeds, if that is known.
      by_seed: the seeds' values, as far as they are known.
      parts: of a sum of means over different seeds, which has no values by seed, a sum for each
        set of seeds.
    """

    mean: float
    sd: float | None = None
    number: int | None = None
    by_seed: Mapping[int, float] = field(default_factory=dict)
    parts: tuple[Measure, ...] = ()

    @property
    def squared_error(self) -> float:
        """The square of the mean's standard error: 0 for one seed, or a number without an sd;
        infinite if a seed's value is not finite, unless all have the same value."""
        if self.parts:
            return sum(part.squared_error for part in self.parts)
        if self.sd is None:
            values = list(self.by_seed.values())
            return math.inf if any(value != values[0] for value in values[1:]) else 0.0
        return self.sd**2 / (self.number - 1) if self.number and self.number > 1 else 0.0

    def plus(self, constant: float) -> Measure:
        """The measure plus a constant."""
        by_seed = {seed: value + constant for seed, value in self.by_seed.items()}
        return replace(self, mean=self.mean + constant, by_seed=by_seed)

    def times(self, factor: float) -> Measure:
        """The measure times a factor."""
        by_seed = {seed: factor * value for seed, value in self.by_seed.items()}
        sd = None if self.sd is None else abs(factor) * self.sd
        parts = tuple(part.times(factor) for part in self.parts)
        return Measure(factor * self.mean, sd, self.number, by_seed, parts)


def measured(by_seed: Mapping[int, float], mean: float | None = None) -> Measure:
    """A mean with the spread of its seeds; `mean` if it is not the mean of their values. Of equal
    values neither is rounded."""
    values = list(by_seed.values())
    spread = len(values) > 1 and all(map(math.isfinite, values))
    mean = statistics.mean(values) if mean is None else mean
    return Measure(mean, statistics.pstdev(values) if spread else None, len(values), by_seed)


def _weighted(weights: Sequence[float], measures: Sequence[Measure]) -> Measure:
    """A weighted sum: seed by seed of those that have the same seeds, which are its `parts` if
    there are several."""
    weighted = [each.times(weight) for weight, each in zip(weights, measures, strict=True)]
    mean, parts = sum(each.mean for each in weighted), list[Measure]()
    alike = grouped((frozenset(x.by_seed), x) for each in weighted for x in each.parts or (each,))
    for seeds, own in alike.items():
        by_seed = {seed: sum(each.by_seed[seed] for each in own) for seed in sorted(seeds)}
        parts += [measured(by_seed, sum(each.mean for each in own))] if by_seed else own
    is_one = len(parts) == 1 and parts[0].by_seed
    return replace(parts[0], mean=mean) if is_one else Measure(mean, parts=tuple(parts))


def mean_of(measures: Sequence[Measure]) -> Measure:
    """The mean of one measure or more."""
    return _weighted([1 / len(measures)] * len(measures), measures)


def minus(first: Measure, second: Measure) -> Measure:
    """The difference of two measures."""
    return _weighted((1.0, -1.0), (first, second))


class Curve(NamedTuple):
    """A metric over training, layers or epochs: `steps`, `mean`, `sd` of equal length."""

    steps: Sequence[float]
    mean: list[float]
    sd: list[float]


def tidy(records: Iterable[Record]) -> pd.DataFrame:
    """A line for each number of some records."""
    lines = [
        (record.row, record.seed, record.step, record.epoch, name, *decoded(name), value)
        for record in records
        for name, value in record.values.items()
    ]
    columns = "row seed step epoch name metric language layer part value"
    return pd.DataFrame(lines, columns=columns.split())


def measures(frame: pd.DataFrame) -> dict[str, Measure]:
    """Each metric of a frame over the seeds that have it."""
    return {
        str(name): measured(dict(zip(own["seed"].tolist(), own["value"].tolist(), strict=True)))
        for name, own in frame.groupby("name", sort=False)
    }


def curves(frame: pd.DataFrame, over: str = "step") -> dict[str, Curve]:
    """Each metric's mean and standard deviation at each step, over the seeds that have it."""
    found = {}
    for name, own in frame.groupby("name", sort=False):
        points = own.groupby(over)["value"]
        mean, sd = points.mean(), points.std(ddof=0)
        found[str(name)] = Curve(mean.index.tolist(), mean.tolist(), sd.tolist())
    return found


def curve_of(points: Mapping[Any, Measure]) -> Curve:
    """A curve over layers or other numbers."""
    steps = sorted(points)
    return Curve(steps, [points[n].mean for n in steps], [points[n].sd or 0.0 for n in steps])


@dataclass(frozen=True)
class Row:
    """One row over its seeds.

    `metrics` are means over `seeds`: those that finished or, while none has, those in training that
    have been evaluated, at the last step that all of these have reached. `diverged` maps a seed to
    its last good step or, while others train, to its first evaluation without scores; such seeds
    are in no mean.
    """

    name: str
    description: str
    metrics: Mapping[str, Measure]
    seeds: tuple[int, ...]
    diverged: Mapping[int, int]
    running: tuple[int, ...]
    step: int | None

    @property
    def is_so_far(self) -> bool:
        """Whether the numbers are from seeds that are still in training."""
        return bool(set(self.seeds) & set(self.running))


class Run:
    """A workdir, read; settings that `config.json` does not name are None or empty.

    Attributes:
      experiment: the config's name, without a folder or the options after a colon.
      identity: the identity of the experiment.
      texts: the config's texts, each with its language, size and hash.
      layers: the encoder's depth.
      records: everything that was logged, by row, training first.
      ended: (row, seed) of every replica that has a result or diverged.
      planned: (row, seed) of every replica that a group names or that left a line or a result.
      row_names: every row that was planned or seen.
    """

    def __init__(self, workdir: str | os.PathLike[str], order: Sequence[str] = ()):
        """Reads everything that tables and curves need.

        Rows of `order` come first: by default those of the config's set `all`, then those of its
        other sets, in the order of `config.json` and not of training.

        Raises:
          ValueError: there is no such folder, or a stored file cannot be read; it is named.
        """
        self.workdir = workdir = Path(workdir).expanduser()
        if not workdir.is_dir():
            raise ValueError(f"workdir {workdir} is not a folder; give the --workdir of a run")
        self.config: Mapping[str, Any] = results.read_config(workdir / results.CONFIG)
        self.identity = Identity.of(self.config)
        self.replicas = results.read_results(workdir / results.RESULTS, self.identity)
        self.metrics = results.read_metrics(workdir / results.METRICS, self.identity)
        names = [self.config.get("experiment"), *(r.experiment for r in self.replicas)]
        self.experiment = Path(next((str(n) for n in names if n), "").split(":")[0]).stem
        self.texts: list[dict[str, Any]] = list(self.config.get("texts", ()))
        # Older runs have another name for it.
        self.layers = self.setting("models", "layers") or self.setting("models", "num_layers")
        self.records = grouped((record.row, record) for kind in self.metrics for record in kind)
        self.ended = {(replica.row, replica.seed) for replica in self.replicas}
        named = {(row, int(seed)) for group in self.config.get("groups", ()) for row, seed in group}
        seen = {(row, each.seed) for row, own in self.records.items() for each in own}
        self.planned = named | seen | self.ended
        rows = [*self.config.get("rows", ()), *(r.row for r in self.replicas), *self.records]
        if not order and isinstance(sets := self.field("sets"), dict):
            every = ["all", *sets]
            order = list(dict.fromkeys(row for name in every for row in self.names("sets", name)))
        self._places = {name: place for place, name in enumerate(order)}
        self.row_names = sorted(dict.fromkeys(rows), key=self.place)

    def place(self, row: str) -> int:
        """The place of a row among those that have an order; all others come after them."""
        return self._places.get(row, len(self._places))

    def field(self, *path: str) -> Any:
        """A field or section of the nested config; None if there is none."""
        value = self.config.get("config")
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return value

    def names(self, *path: str) -> list[str]:
        """A field of the nested config that is a list of names; empty if there is none."""
        found = self.field(*path)
        return [str(name) for name in found] if isinstance(found, list | tuple) else []

    def setting(self, section: str, name: str) -> float | None:
        """A number at the top of `config.json`, or else in a section of the nested config."""
        for value in (self.config.get(name), self.field(section, name)):
            if isinstance(value, int | float) and not isinstance(value, bool):
                return float(value)
        return None

    def steps_of(self, row: str) -> int | None:
        """The updates that a replica of a row makes, y of "step x of y"; None if not known."""
        if (stored := self.config.get("steps", {}).get(row)) is not None:
            return int(stored)
        ended = [r.step for r in self.replicas if r.row == row and r.diverged_at is None]
        return max(ended, default=None)

    @cached_property
    def evaluations(self) -> pd.DataFrame:
        """The evaluations during training."""
        return tidy(self.metrics.evaluations)

    @cached_property
    def training(self) -> pd.DataFrame:
        """What was logged of training: the loss, the speed."""
        return tidy(self.metrics.training)

    @cached_property
    def results(self) -> pd.DataFrame:
        """The metrics of `results.json`, without those of seeds that diverged."""
        good = (r for r in self.replicas if r.diverged_at is None)
        return tidy(
            Record(r.row, r.seed, r.step if r.scored_at is None else r.scored_at, None, r.metrics)
            for r in good
        )

    def seeds_planned(self, row: str) -> set[int]:
        """The seeds of a row in `planned`."""
        return {seed for name, seed in self.planned if name == row}

    def description(self, row: str) -> str:
        """A row's description, from the config or a result; empty if neither has one."""
        if named := self.config.get("rows", {}).get(row):
            return str(named)
        return next((r.description for r in self.replicas if r.row == row), "")

    @cached_property
    def rows(self) -> dict[str, Row]:
        """Every row over its seeds, by name."""
        return {name: self._row(name) for name in self.row_names}

    def _row(self, name: str) -> Row:
        """A row, from `results.json` or, while that has none, from the latest evaluations."""
        ended = [r for r in self.replicas if r.row == name]
        diverged = {r.seed: r.diverged_at for r in ended if r.diverged_at is not None}
        step: int | None
        good = [r for r in ended if r.diverged_at is None]
        logged = {record.seed for record in self.records.get(name, ())}
        unfinished = logged - {r.seed for r in ended}
        # A replica that has diverged is logged without scores, and ends when the others do.
        for each in self.metrics.evaluations:
            if each.row == name and each.seed in unfinished and not each.values:
                diverged.setdefault(each.seed, each.step)
        running = tuple(sorted(unfinished - diverged.keys()))
        if good:
            frame = self.results[self.results["row"] == name]
            seeds, step = tuple(r.seed for r in good), max(r.step for r in good)
        else:
            frame, seeds, step = self._so_far(name, running)
        return Row(name, self.description(name), measures(frame), seeds, diverged, running, step)

    def _so_far(
        self, row: str, running: Sequence[int]
    ) -> tuple[pd.DataFrame, tuple[int, ...], int | None]:
        """The evaluations of a row at the last step that all of its evaluated running seeds have
        reached, these seeds, and the step."""
        frame = self.evaluations
        frame = frame[(frame["row"] == row) & frame["seed"].isin(running)]
        seeds = tuple(frame["seed"].unique().tolist())
        reached = frame.groupby("step")["seed"].nunique()
        common = reached.index[reached == len(seeds)]
        if common.empty:
            return frame.iloc[:0], (), None
        return frame[frame["step"] == common.max()], seeds, int(common.max())

    def _without_diverged(self, row: str, frame: pd.DataFrame) -> pd.DataFrame:
        """The lines of a row, but for those of seeds that diverged."""
        lost = [r.seed for r in self.replicas if r.row == row and r.diverged_at is not None]
        return frame[(frame["row"] == row) & ~frame["seed"].isin(lost)]

    def curves(self, row: str, seed: int | None = None) -> dict[str, Curve]:
        """A row's curves over training, without the seeds that diverged; of one seed if given."""
        own = self._without_diverged(row, self.evaluations)
        return curves(own if seed is None else own[own["seed"] == seed])

    def loss(self, row: str) -> Curve | None:
        """A row's training loss, without the seeds that diverged; None if there is none.

        Seeds may log at different steps: each one's loss is interpolated between its own. The curve
        begins where as many seeds as ever have one, and goes on with those that have more.
        """
        own = self._without_diverged(row, self.training).query("name == 'loss'")
        by_seed = own.pivot_table("value", "step", "seed", aggfunc="last")
        by_seed = by_seed.interpolate("index", limit_area="inside")
        numbers = by_seed.count(axis=1)
        by_seed = by_seed[(numbers == numbers.max()).cummax()]
        if by_seed.empty:
            return None
        mean, sd = by_seed.mean(axis=1), by_seed.std(axis=1, ddof=0)
        return Curve(mean.index.tolist(), mean.tolist(), sd.tolist())
