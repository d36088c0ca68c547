"""A run's figures, drawn, saved, and set into cards for the page."""

from __future__ import annotations

import base64
import textwrap
from collections.abc import Callable, Sequence
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from xling_jax.reports import embeddings, figures
from xling_jax.reports.results import Arrays, array_files, read_arrays
from xling_jax.reports.rows import Run, curves

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CURVES = (
    "Mean over seeds, one standard deviation shaded. The axes are the same for every row. "
    "Seeds that diverged are left out."
)
TOKENS = (
    "Layer 0 (token embeddings) on their first two principal components: all pieces above, "
    "frequent words below, each joined to its counterpart in the other language. One seed a row."
)
POSITIONS = (
    "Cosine similarities of all position embeddings, for rows where every language has its own. "
    "A diagonal in the off-diagonal blocks means that the languages' positions are alike. Late "
    "positions are rarely trained. Colours run from the 1st to the 99.5th percentile off the "
    "diagonal."
)


def draw(run: Run, folder: Path) -> list[tuple[str, str]]:
    """Draws and saves every figure the run has data for; returns headings and HTML."""
    if find_spec("matplotlib") is None:
        return [("Figures", _quiet("matplotlib is not installed, so there are none."))]
    names = _languages(run)

    def tokens(arrays: Arrays, title: str) -> Figure:
        return embeddings.token_embeddings(arrays, title, names)

    def positions(arrays: Arrays, title: str) -> Figure | None:
        if arrays.position_offset == 0:
            return None
        return embeddings.position_similarity(arrays, title, names)

    return [
        ("Learning curves", _section(CURVES, [*_curves(run, folder), *_loss(run, folder)])),
        ("Token embeddings", _section(TOKENS, _stored(run, folder, "tokens", tokens))),
        (
            "Position similarities",
            _section(POSITIONS, _stored(run, folder, "positions", positions)),
        ),
    ]


def _quiet(text: str) -> str:
    return f'<p class="quiet">{escape(text)}</p>\n'


def _section(explanation: str, cards: Sequence[str]) -> str:
    if not cards:
        return _quiet("Nothing to draw yet.")
    return f'{_quiet(explanation)}<div class="figures">\n{"".join(cards)}</div>\n'


def _languages(run: Run) -> list[str]:
    """The languages in the order the texts name them."""
    return list(dict.fromkeys(str(t["language"]) for t in run.texts if t.get("language")))


def _title(run: Run, row: str) -> str:
    description = run.description(row).replace(";", "; ")
    return textwrap.fill(f"Row {row}: {description}" if description else f"Row {row}", 48)


def _card(paths: tuple[Path, Path], alt: str, embed: Path) -> str:
    """A figure as a data address, so that the page needs no other file, and links to both files."""
    kind = "svg+xml" if embed.suffix == ".svg" else "png"
    data = base64.b64encode(embed.read_bytes()).decode()
    links = " · ".join(f'<a href="figures/{escape(p.name)}">{p.suffix[1:]}</a>' for p in paths)
    return (
        f'<figure><img alt="{escape(alt)}" src="data:image/{kind};base64,{data}">'
        f"<figcaption>{escape(alt)} ({links})</figcaption></figure>\n"
    )


def _curves(run: Run, folder: Path) -> list[str]:
    diverged = {(r.row, r.seed) for r in run.replicas if r.diverged_at is not None}
    by_row = {}
    for row in run.row_names():
        found = curves(run.metrics.evaluations, row, [s for r, s in diverged if r == row])
        if found:
            by_row[row] = found
    fits = [
        value
        for found in by_row.values()
        for name in ("perplexity_train", "perplexity_dev")
        for value in (found[name].mean if name in found else ())
    ]
    last = max((c.steps[-1] for found in by_row.values() for c in found.values()), default=0)
    cards = []
    for row, found in by_row.items():
        limits = (min(fits), max(fits)) if fits and min(fits) > 0 else None
        figure = figures.learning_curves(found, _title(run, row), run.steps or last, limits)
        paths = figures.save(figure, folder, f"curves_row{row}")
        cards.append(_card(paths, f"Row {row}: scores and perplexities over training", paths[0]))
    return cards


def _loss(run: Run, folder: Path) -> list[str]:
    diverged = {(r.row, r.seed) for r in run.replicas if r.diverged_at is not None}
    by_row = {}
    for row in run.row_names():
        found = curves(run.metrics.training, row, [s for r, s in diverged if r == row])
        if "loss" in found:
            by_row[row] = found["loss"]
    if not by_row:
        return []
    paths = figures.save(figures.training_loss(by_row), folder, "training_loss")
    return [_card(paths, "Training loss of every row", paths[0])]


def _stored(
    run: Run, folder: Path, name: str, drawing: Callable[[Arrays, str], Figure | None]
) -> list[str]:
    """A card for each row that stored arrays; one that cannot be read says so in its place."""
    files = array_files(run.workdir / "arrays")
    cards = []
    for row in run.row_names():
        if row not in files:
            continue
        seed, path = files[row]
        try:
            figure = drawing(read_arrays(path), f"{_title(run, row)} (seed {seed})")
        except ValueError as error:
            cards.append(_quiet(str(error)))
            continue
        if figure is not None:
            paths = figures.save(figure, folder, f"{name}_row{row}")
            # A scatter of thousands of points and an image are smaller as png.
            alt = f"Row {row}, seed {seed}: {name.rstrip('s')} embeddings"
            cards.append(_card(paths, alt, paths[1]))
    return cards
