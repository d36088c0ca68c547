"""Figures: how they look, how they are saved, and the learning curves of D&S.

Every drawing function returns a matplotlib `Figure`, made without global state; `save` writes it
as svg and png, byte for byte the same for the same numbers.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from xling_jax.files import write_beside
from xling_jax.reports.rows import Curve, deep_layer

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe & Ito's colours, which stay apart for colour-blind readers.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
SHARED = "#888888"
DPI = 130
POINTS = 200
# Names may hold "$", which matplotlib would read as mathematics.
_STYLE: dict[str, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial"],
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "text.parse_math": False,
    "svg.hashsalt": "xling_jax",
    # Text stays text: a third of the size that outlines of letters take.
    "svg.fonttype": "none",
}


@contextmanager
def house_style() -> Iterator[None]:
    """The look of every figure, for the time of drawing or saving it."""
    import matplotlib.style

    with matplotlib.style.context(_STYLE, after_reset=True), warnings.catch_warnings():
        # Scripts the font lacks are drawn as boxes; a line a glyph on the terminal helps nobody.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        yield


def save(figure: Figure, folder: Path, name: str) -> tuple[Path, Path]:
    """Writes `name.svg` and `name.png` (64 colours) into a folder; returns both paths."""
    from PIL import Image

    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", name)
    with house_style():
        svg, png, small = io.BytesIO(), io.BytesIO(), io.BytesIO()
        figure.savefig(svg, format="svg", dpi=DPI, metadata={"Date": None, "Creator": None})
        figure.savefig(png, format="png", dpi=DPI, metadata={"Software": None})
    # Indentation is a tenth of the file, and the page holds many.
    plain = re.sub(rb"\n\s+", b"\n", svg.getvalue())
    image = Image.open(png).convert("RGB").quantize(64)
    image.save(small, format="png", optimize=True)
    return (
        write_beside(folder / f"{name}.svg", plain),
        write_beside(folder / f"{name}.png", small.getvalue()),
    )


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of a size in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained", facecolor="white")


def _line(axes: Axes, curve: Curve, label: str, colour: str, style: str = "-") -> None:
    mean, sd = np.array(curve.mean), np.array(curve.sd)
    marker = "o" if len(mean) < 25 else None
    axes.plot(curve.steps, mean, style, color=colour, label=label, marker=marker, ms=2.5, lw=1.4)
    if sd.any():
        axes.fill_between(curve.steps, mean - sd, mean + sd, color=colour, alpha=0.18, lw=0)


def learning_curves(
    curves: Mapping[str, Curve],
    title: str,
    steps: int | None = None,
    perplexities: tuple[float, float] | None = None,
) -> Figure:
    """D&S Figure 6 for one row: scores above, perplexities (log scale) below, over steps.

    `steps` and `perplexities` (lowest, highest) fix the axes, so that rows can be compared.
    """
    with house_style():
        figure = new_figure(4.2, 5.0)
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
        _scores(above, curves)
        above.set_title(title, loc="left", wrap=True)
        for name, label, colour in (
            ("perplexity_train", "train", COLOURS[2]),
            ("perplexity_dev", "dev", COLOURS[3]),
        ):
            if name in curves:
                _line(below, curves[name], label, colour)
        _perplexity_axis(below, perplexities)
        below.set_xlabel("training step")
        if steps:
            below.set_xlim(0, steps * 1.02)
        if above.lines:
            figure.legend(*above.get_legend_handles_labels(), ncols=2, loc="outside upper center")
        return figure


def _scores(axes: Axes, curves: Mapping[str, Curve]) -> None:
    deep = deep_layer(curves)
    lines = [("mu", "mu", "black", "-")]
    for name, label, colour in (
        ("retrieval", "retrieval", COLOURS[0]),
        ("translation", "translation", COLOURS[1]),
        ("alignment_f1", "alignment", SHARED),
    ):
        lines.append((f"{name}_0", f"{label}, layer 0", colour, "--"))
        lines.append((f"{name}_{deep}", f"{label}, layer {deep}", colour, "-"))
    for name, label, colour, style in lines:
        if name in curves:
            _line(axes, curves[name], label, colour, style)
    axes.set_ylim(-0.02, 1.02)
    axes.set_ylabel("score")
    axes.grid(axis="y", color="#e5e5e5", lw=0.6)


def _perplexity_axis(axes: Axes, limits: tuple[float, float] | None) -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_ylabel("perplexity")
    axes.grid(axis="y", color="#e5e5e5", lw=0.6)
    if limits:
        axes.set_ylim(limits[0] / 1.3, limits[1] * 1.3)
    if axes.lines:
        axes.legend(ncols=2, loc="upper right")


def _thinned(curve: Curve) -> Curve:
    """At most `POINTS` points, each the mean of as many neighbours."""
    parts = min(POINTS, len(curve.steps))
    means = [[float(p.mean()) for p in np.array_split(np.array(v), parts)] for v in curve]
    return Curve([round(step) for step in means[0]], means[1], means[2])


def training_loss(by_row: Mapping[str, Curve]) -> Figure:
    """The training loss over steps, a line a row: the mean over seeds, and its sd as a band."""
    with house_style():
        figure = new_figure(4.2, 3.0)
        axes = figure.subplots()
        for n, (row, curve) in enumerate(by_row.items()):
            dash = ("-", "--", ":")[n // len(COLOURS) % 3]
            _line(axes, _thinned(curve), f"row {row}", COLOURS[n % len(COLOURS)], dash)
        axes.set_xlabel("training step")
        axes.set_ylabel("training loss")
        if by_row:
            figure.legend(ncols=5, loc="outside lower center")
        return figure
