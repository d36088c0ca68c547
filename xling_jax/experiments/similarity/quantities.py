"""The numbers that claims about pairs of models compare."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from xling_jax.experiments.similarity.report_pairs import (
    Pair,
    best,
    halves,
    layers_of,
    middle_layer,
)
from xling_jax.report.claims import (
    Check,
    Evidence,
    Measure,
    Missing,
    Quantity,
    measured,
    minus,
    score,
)

Numbers = Mapping[int, float]  # by layer


def _over_layers(
    pair: Pair, name: str, start: str, end: str, read: Callable[[Numbers], float],
    shown: Callable[[float], str] = score, has_halves: bool = True,
) -> Quantity:  # fmt: skip
    """A number that is read from a metric of all layers of a row, of both halves if need be."""

    def measure(evidence: Evidence) -> Measure:
        metrics = evidence.usable(pair.row)[0].metrics
        values = layers_of({k: v.mean for k, v in metrics.items()}, start, end)
        seeds = {seed for found in metrics.values() for seed in found.by_seed}
        by_seed = {
            seed: layers_of(
                {k: v.by_seed.get(seed, math.nan) for k, v in metrics.items()}, start, end
            )
            for seed in sorted(seeds)
        }
        if not values:
            raise Missing(f"no {name}: row {pair.row}")
        if has_halves and halves(values) is None:
            raise Missing(f"no layers both below and above the middle: row {pair.row}")
        return measured(read(values), {seed: read(own) for seed, own in by_seed.items()})

    return Quantity(name, pair.row, measure, shown=shown)


def half_mean(pair: Pair, which: int, what: str, start: str, end: str = "") -> Quantity:
    """The mean over the lower (0) or the upper (1) half of the layers.

    Args:
      pair: the row.
      which: of the halves.
      what: the metric in words.
      start, end: of its name, see `similarity_pairs.layers_of`.
    """

    def read(values: Numbers) -> float:
        found = halves(values)
        return float(np.mean(found[which])) if found else math.nan

    name = f"mean {what} of the {('lower', 'upper')[which]} half"
    return _over_layers(pair, name, start, end, read)


def highest_is_low(pair: Pair, what: str, start: str) -> Check:
    """That the layer with the highest value of a metric is not above the middle."""

    def place(values: Numbers) -> float:
        found = best(values)
        return found[0] if found else math.nan

    def shown(value: float) -> str:
        return f"L{value:g}"

    name = f"layer with the highest {what}"
    return Check(
        _over_layers(pair, name, start, "", place, shown), "≤",
        _over_layers(pair, "middle layer", start, "", middle_layer, shown),
    )  # fmt: skip


def mean(pair: Pair, what: str, start: str) -> Quantity:
    """The mean over layers."""

    def read(values: Numbers) -> float:
        return float(np.mean(list(values.values())))

    return _over_layers(pair, f"mean {what}", start, "", read, has_halves=False)


def metric(pair: Pair, name: str, stored: str) -> Quantity:
    """A metric as it is stored, under a name in words."""
    return Quantity(name, pair.row, lambda known: known.metric(pair.row, stored))


def mean_cka(pair: Pair) -> Quantity:
    """CKA, mean over layers."""
    return metric(pair, "mean CKA", "cka")


def gap(first: Pair, second: Pair) -> Quantity:
    """How much the mean CKA of a bilingual model is above that of monolingual ones."""
    both = mean_cka(first), mean_cka(second)

    def read(evidence: Evidence) -> Measure:
        return minus(*(each.read(evidence) for each in both))

    name = "mean CKA above that of monolingual models"
    return Quantity(name, first.row, read, others=(second.row,))
