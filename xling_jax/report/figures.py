"""Figures: their style, and the kinds that experiments share.

Drawing functions return a matplotlib `Figure`, made without global state; `save` writes it as svg
and png, byte for byte the same for the same numbers.
"""

from __future__ import annotations

import io
import re
import textwrap
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from xling_jax.files import plain_name, write_beside
from xling_jax.report.frame import Curve, Measure, Row, Run, decoded, named_deep
from xling_jax.report.prose import diverged_at, with_description
from xling_jax.report.table import ABSENT, score

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe & Ito's colours, which stay apart for colour-blind readers.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_DASHES = ("-", "--", ":", "-.")
STYLES = len(_DASHES) * len(COLOURS)  # of lines
SHARED = "#888888"
GRID = "#e5e5e5"
DPI = 130
_POINTS = 200
_LABEL, _LABEL_LINES = 32, 3
_LEGEND = 28  # characters in a line of the legend
_WIDTHS = {1: 4.2, 2: 7.4, 3: 8.6}  # inches, by the number of panels side by side
_BAR = 0.25
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
    # Text stays text, which takes a third of the size of outlines.
    "svg.fonttype": "none",
}


def can_draw() -> bool:
    """Whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


@contextmanager
def house_style() -> Iterator[None]:
    """The style of all figures, in effect while one is drawn or saved."""
    import matplotlib.style

    with matplotlib.style.context(_STYLE, after_reset=True), warnings.catch_warnings():
        # Scripts that the font lacks are drawn as boxes; a warning for each glyph helps nobody.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        yield


def save(figure: Figure, folder: Path, name: str) -> tuple[Path, Path]:
    """Writes `name.svg` and `name.png` (64 colours) into a folder; returns both paths."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from PIL import Image

    name = plain_name(name)
    svg, png = io.BytesIO(), io.BytesIO()
    with house_style():
        # `savefig` would lay out and draw everything twice for each file.
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        figure.set_layout_engine("none")
        FigureCanvasSVG(figure).print_svg(svg, metadata={"Date": None, "Creator": None})
    image = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB").quantize(64)
    image.save(png, format="png", optimize=True)
    # Indentation is a tenth of a file, and a page holds many files.
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


class Line(NamedTuple):
    """A line in each panel: its name, its number, which decides its colour and dashes, and its
    curves by metric."""

    label: str
    number: int
    curves: Mapping[str, Curve]


def over_training(run: Run, label: str, shown: Collection[str] = ()) -> list[Line]:
    """The lines of all rows of a run, ended or not, that have metrics over training: the metrics
    `shown`, or all. `label` is filled with the row's name."""
    found = []
    for number, row in enumerate(run.row_names):
        every = run.curves(row).items()
        own = {name: curve for name, curve in every if not shown or name in shown}
        if own:
            found.append(Line(label.format(row), number, own))
    return found


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
    """The limits of the positive values, rounded outwards to 1, 2 or 5 times a power of ten; None
    if there are none.

    Rounded limits seldom move when a row is added.
    """
    numbers = [value for value in values if value > 0]
    if not numbers:
        return None
    steps = [float(f"{m}e{e}") for e in range(-9, 31) for m in (1, 2, 5)]
    low, high = min(numbers), max(numbers)
    below = max((step for step in steps if step <= low), default=low)
    return below, min((step for step in steps if step >= high), default=high)


def thinned(curve: Curve) -> Curve:
    """A curve of at most 200 points, each the mean of about as many neighbouring ones."""
    parts = min(_POINTS, len(curve.steps))
    means = [[float(p.mean()) for p in np.array_split(np.array(v), parts)] for v in curve]
    return Curve(means[0], means[1], means[2])


def _top(values: Iterable[float]) -> float:
    """The end of an axis of scores: 1, or a smaller round number that none of them exceeds."""
    limits = round_limits(values)
    return min(1.0, limits[1]) if limits else 1.0


def _kind(name: str) -> str:
    """The kind of a panel's axis: a unit of the registry."""
    evaluator = decoded(name).evaluator
    if evaluator is None:
        return name if name == "perplexity" else "score"
    return evaluator.unit


def side_by_side(
    lines: Sequence[Line], shown: Mapping[str, str], below: str, columns: int = 0,
    title: str = "", top: float | None = None, limits: tuple[float, float] | None = None,
) -> Figure:  # fmt: skip
    """A panel for each metric: every line's means over seeds, and their sds as bands.

    Args:
      lines: what is drawn, such as the rows of a run.
      shown: the panels' metrics, with their titles. All scores have the same axis.
      below: the name of what the curves run over.
      columns: how many panels stand side by side; 0: as many as look well.
      title: the figure's title.
      top: the end of the axis of scores; by default it depends on the scores.
      limits: the limits of the axis of perplexities; by default they depend on the perplexities.
    """
    scores = [c for line in lines for n, c in line.curves.items() if _kind(n) == "score"]
    if top is None:
        top = _top(m + s for curve in scores for m, s in zip(curve.mean, curve.sd, strict=True))
    columns = columns or (2 if len(shown) in (2, 4) else min(3, len(shown)))
    rows = -(-len(shown) // columns)
    labels = {line.label: textwrap.fill(line.label, _LEGEND) for line in lines}
    named = -(-len(lines) // (columns + 1)) * max(text.count("\n") + 1 for text in labels.values())
    with house_style():
        height = 2.6 * rows + 0.3 + 0.17 * named + 0.17 * title.count("\n")
        figure = new_figure(_WIDTHS[columns], height)
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        for panel, (name, heading) in zip(axes, shown.items(), strict=False):
            _panel(panel, lines, name, top, limits)
            panel.set_title(heading, loc="left")
            panel.set_xlabel(below)
        for panel in axes[len(shown) :]:
            panel.axis("off")
        if title:
            figure.suptitle(title, x=0.02, ha="left", fontsize="medium")
        handles = {
            label: line
            for panel in axes
            for line, label in zip(*panel.get_legend_handles_labels(), strict=True)
        }
        texts = [labels[label] for label in handles]
        figure.legend(
            handles.values(), texts, ncols=columns + 1, loc="outside lower center", handlelength=3
        )
        return figure


def _panel(
    axes: Axes, lines: Sequence[Line], name: str, top: float, limits: tuple[float, float] | None
) -> None:
    """One metric of every line that has it: the mean, with the standard deviation as a band."""
    from matplotlib.ticker import MaxNLocator

    found = [line for line in lines if name in line.curves]
    for line in found:
        steps, means, sds = map(np.array, line.curves[name])
        turn, place = divmod(line.number, len(COLOURS))
        axes.plot(steps, means, _DASHES[turn % len(_DASHES)], color=COLOURS[place], lw=1.4,
                  label=line.label, marker="o" if len(means) < 25 else None, ms=2.5)  # fmt: skip
        if sds.any():
            axes.fill_between(steps, means - sds, means + sds, color=COLOURS[place], alpha=0.18,
                              lw=0)  # fmt: skip
    if _kind(name) == "score":
        axes.set_ylim(-0.02 * top, 1.02 * top)
        axes.grid(axis="y", color=GRID, lw=0.6)
    elif _kind(name) == "perplexity":
        values = (value for line in found for value in line.curves[name].mean)
        perplexity_axis(axes, limits or round_limits(values))
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))


def cells(
    axes: Axes, values: np.ndarray, columns: Sequence[str], rows: Sequence[str],
    size: int = 8, absent: str = ABSENT, **turned: Any,
) -> None:  # fmt: skip
    """A table of scores from 0 to 1, [rows, columns], in colours and numbers; NaN is `absent`.

    size: of the numbers, in points. turned: options of matplotlib for the names of columns.
    """
    axes.pcolormesh(np.ma.masked_invalid(values), cmap="Blues", vmin=0, vmax=1,
                    edgecolors="white", lw=0.8)  # fmt: skip
    for (row, place), value in np.ndenumerate(values):
        text = absent if np.isnan(value) else score(float(value))
        axes.text(place + 0.5, row + 0.5, text, ha="center", va="center", fontsize=size,
                  color="white" if value > 0.7 else "#222222")  # fmt: skip
    axes.set_xticks(np.arange(len(columns)) + 0.5, columns, fontsize=8, **turned)
    axes.set_yticks(np.arange(len(rows)) + 0.5, rows, fontsize=8)
    axes.set_ylim(len(rows), 0)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


class Entry(NamedTuple):
    """A row of bars: our numbers and the paper's by name, or a message in their place."""

    label: str
    ours: Mapping[str, Measure]
    paper: Mapping[str, Measure] = {}
    message: str = ""


def entries(
    run: Run, names: Sequence[str], printed: Mapping[str, Mapping[str, Measure]] | None = None
) -> list[Entry]:
    """The rows of a run that have some of the named metrics, with the paper's numbers; also rows
    without metrics that diverged, with a message that says at which step."""
    found = []
    for row in run.rows.values():
        both = row.metrics, (printed or {}).get(row.name, {})
        ours, paper = ({name: value for name, value in named_deep(of, run.layers).items()
                        if name in names} for of in both)  # fmt: skip
        message = diverged_at(row.diverged) if row.diverged and not row.metrics else ""
        if ours or message:
            found.append(Entry(row_label(row), ours, paper, message))
    return found


def row_label(row: Row) -> str:
    """A row's name and description on a few short lines, and the step if it is still in
    training."""
    text = wrapped(with_description(row.name, row.description))
    return text + (f"\nso far: step {row.step:,}" if row.metrics and row.is_so_far else "")


def wrapped(text: str) -> str:
    """A text on a few short lines."""
    lines = textwrap.wrap(text, _LABEL, break_on_hyphens=False)
    if len(lines) > _LABEL_LINES:
        lines = [*lines[: _LABEL_LINES - 1], lines[_LABEL_LINES - 1][: _LABEL - 1] + "…"]
    return "\n".join(lines)


class Score(NamedTuple):
    """A score that is drawn as bars: its name in the results, its title and its colour."""

    name: str
    title: str
    colour: str


def bars(
    shown: Sequence[Entry], scores: Sequence[Score], below: str, beside: str = "",
    top: float | None = None,
) -> Figure:  # fmt: skip
    """The rows one below the other, each with a bar for each of a few scores, whiskers of one
    standard deviation, and hollow diamonds for the paper's numbers.

    `below` is the label of the axis and `top` its end, by default chosen for the numbers. `beside`
    names a perplexity that has a panel of its own.
    """
    if top is None:
        both = (x for entry in shown for of in (entry.ours, entry.paper) for x in of.values())
        top = _top(x.mean + (x.sd or 0.0) for x in both)
    with house_style():
        figure = new_figure(8.6, 1.1 + 0.15 * bool(beside) + 0.4 * len(shown))
        ratios = (3, 1) if beside else (1,)
        axes = figure.subplots(
            1, len(ratios), sharey=True, width_ratios=ratios, squeeze=False
        ).ravel()
        for panel in axes:
            for n in range(1, len(shown), 2):
                panel.axhspan(n - 0.5, n + 0.5, color="#f4f4f4", lw=0, zorder=0)
            panel.set_axisbelow(True)
            panel.tick_params(axis="y", length=0)
        for n, each in enumerate(scores):
            place = (n - (len(scores) - 1) / 2) * _BAR
            _draw(axes[0], shown, each.name, each.colour, place)
        for n, entry in enumerate(shown):
            axes[0].text(0.01 * top, n, entry.message, va="center", fontsize=8, color="#555555")
        axes[0].set_yticks(range(len(shown)), [entry.label for entry in shown], fontsize=7.5)
        axes[0].set_ylim(len(shown) - 0.5, -0.5)
        axes[0].set_xlim(0, 1.02 * top)
        axes[0].grid(axis="x", color=GRID, lw=0.6)
        axes[0].set_xlabel(below)
        if beside:
            _draw(axes[1], shown, beside, COLOURS[2])
            every = [of[beside].mean for e in shown for of in (e.ours, e.paper) if beside in of]
            perplexity_axis(axes[1], round_limits(every), "x")
            axes[1].set_xlabel(" ".join(reversed(beside.split("_"))))
        _legend(figure, shown, scores, beside)
        return figure


def _draw(
    axes: Axes, shown: Sequence[Entry], name: str, colour: str, place: float | None = None
) -> None:
    """One number of every row with whiskers, and the paper's value as a hollow diamond: as bars at
    `place` from the rows' middle, or without a place as dots in the middle."""
    for number, entry in enumerate(shown):
        n = number + (place or 0.0)
        if found := entry.ours.get(name):
            if place is None:
                axes.scatter([found.mean], [n], s=12, color=colour, zorder=3)
            else:
                axes.barh([n], [found.mean], 0.9 * _BAR, color=colour, zorder=2)
            if found.sd:
                axes.errorbar([found.mean], [n], xerr=[found.sd], fmt="none", ecolor="black",
                              elinewidth=0.9, capsize=1.5, zorder=3)  # fmt: skip
        if found := entry.paper.get(name):  # a white face can be seen on a dark bar
            face, size = ("none", 36) if place is None else ("white", 13)
            axes.scatter([found.mean], [n], s=size, marker="D", facecolors=face,
                         edgecolors="black", lw=0.8, zorder=4, clip_on=False)  # fmt: skip


def _legend(figure: Figure, shown: Sequence[Entry], scores: Sequence[Score], beside: str) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Patch | Line2D] = [
        Patch(color=score.colour, label=score.title)
        for score in scores
        if any(score.name in entry.ours for entry in shown)
    ]
    if beside:
        label = beside.split("_")[0]
        handles.append(Line2D([], [], marker="o", ls="", color=COLOURS[2], ms=4, label=label))
    names = {beside, *(score.name for score in scores)}
    if any(names & entry.paper.keys() for entry in shown):
        handles.append(
            Line2D([], [], marker="D", ls="", ms=4, mfc="white", mec="black", label="the paper's")
        )
    columns = 5 if beside else 3
    figure.legend(handles=handles, ncols=columns, loc="outside upper center")
