"""Figures: how they look, how they are saved, and the learning curves of D&S.

Every drawing function returns a matplotlib `Figure`, made without global state; `save` writes it
as svg and png, byte for byte the same for the same numbers.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from xling_jax.files import write_beside
from xling_jax.report.rows import Curve, deep_layer

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe & Ito's colours, which stay apart for colour-blind readers.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
SHARED = "#888888"
GRID = "#e5e5e5"
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


def file_name(name: str) -> str:
    """A name without what a file's name may not hold."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", name)


def save(figure: Figure, folder: Path, name: str) -> tuple[Path, Path]:
    """Writes `name.svg` and `name.png` (64 colours) into a folder; returns both paths."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from PIL import Image

    name = file_name(name)
    svg, png = io.BytesIO(), io.BytesIO()
    with house_style():
        # `savefig` would lay out and draw everything twice for each file.
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        figure.set_layout_engine("none")
        FigureCanvasSVG(figure).print_svg(svg, metadata={"Date": None, "Creator": None})
    image = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB").quantize(64)
    image.save(png, format="png", optimize=True)
    # Indentation is a tenth of the file, and the page holds many.
    plain = re.sub(rb"\n\s+", b"\n", svg.getvalue())
    return (
        write_beside(folder / f"{name}.svg", plain),
        write_beside(folder / f"{name}.png", png.getvalue()),
    )


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of a size in inches."""
    from matplotlib.figure import Figure

    size = (width, height)
    return Figure(figsize=size, dpi=DPI, layout="constrained", facecolor="white")


def line_style(number: int) -> tuple[str, str]:
    """The colour and the dashes of one among many lines."""
    colours = len(COLOURS)
    return COLOURS[number % colours], ("-", "--", ":", "-.")[number // colours % 4]


def draw_line(axes: Axes, curve: Curve, label: str, colour: str, style: str = "-") -> None:
    """A mean over training with its standard deviation as a band."""
    mean, sd = np.array(curve.mean), np.array(curve.sd)
    marker = "o" if len(mean) < 25 else None
    axes.plot(curve.steps, mean, style, color=colour, label=label, marker=marker, ms=2.5, lw=1.4)
    if sd.any():
        axes.fill_between(curve.steps, mean - sd, mean + sd, color=colour, alpha=0.18, lw=0)


def learning_curves(
    curves: Mapping[str, Curve],
    title: str,
    steps: float | None = None,
    perplexities: tuple[float, float] | None = None,
) -> Figure:
    """D&S Figure 6 for one row: scores above, perplexities (log scale) below, over steps.

    `steps` and `perplexities` (lowest, highest) fix the axes; the second lets rows be compared.
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
                draw_line(below, curves[name], label, colour)
        perplexity_axis(below, perplexities)
        below.set_ylabel("perplexity")
        if below.lines:
            below.legend(ncols=2, loc="upper right")
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
            draw_line(axes, curves[name], label, colour, style)
    score_axis(axes)
    axes.set_ylabel("score")


def score_axis(axes: Axes, top: float = 1.0) -> None:
    """The axis from 0 to 1, or to a lower `top`, that all scores share."""
    axes.set_ylim(-0.02 * top, 1.02 * top)
    axes.grid(axis="y", color=GRID, lw=0.6)


def perplexity_axis(
    axes: Axes, limits: tuple[float, float] | None, which: Literal["x", "y"] = "y"
) -> None:
    """Makes an axis logarithmic with plain numbers, from the lowest to the highest of `limits`."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    getattr(axes, f"set_{which}scale")("log")
    axis = axes.yaxis if which == "y" else axes.xaxis
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
    axes.grid(axis=which, color=GRID, lw=0.6)
    if limits:
        # A range within a decade may hold no power of ten to write down.
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if limits[1] < 50 * limits[0] else (1,)))
        getattr(axes, f"set_{which}lim")(limits[0] / 1.15, limits[1] * 1.15)


def round_limits(values: Iterable[float]) -> tuple[float, float] | None:
    """Positive values' limits, rounded outwards to 1, 2 or 5 times a power of ten, or None.

    So a new row seldom moves the axes of the others.
    """
    numbers = [value for value in values if value > 0]
    if not numbers:
        return None
    steps = [float(f"{m}e{e}") for e in range(-9, 31) for m in (1, 2, 5)]
    low, high = min(numbers), max(numbers)
    below = max((step for step in steps if step <= low), default=low)
    return below, min((step for step in steps if step >= high), default=high)


def thinned(curve: Curve) -> Curve:
    """At most `POINTS` points, each the mean of as many neighbours."""
    parts = min(POINTS, len(curve.steps))
    means = [[float(p.mean()) for p in np.array_split(np.array(v), parts)] for v in curve]
    return Curve(means[0], means[1], means[2])


def training_loss(by_row: Mapping[str, Curve]) -> Figure:
    """The training loss over steps, a line a row: the mean over seeds, and its sd as a band."""
    with house_style():
        figure = new_figure(4.2, 3.0)
        axes = figure.subplots()
        for n, (row, curve) in enumerate(by_row.items()):
            draw_line(axes, curve, f"row {row}", *line_style(n))
        axes.set_xlabel("training step")
        axes.set_ylabel("training loss")
        if by_row:
            figure.legend(ncols=5, loc="outside lower center")
        return figure
