"""Figures of the embeddings, and of the hyperparameter values that a search tried (D&S C.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from xling_jax.experiments.fake_english import published
from xling_jax.experiments.fake_english.published import CRITERIA, Trial
from xling_jax.records import Identity
from xling_jax.report.figures import COLOURS, SHARED, Line, house_style, new_figure, side_by_side
from xling_jax.report.frame import curve_of
from xling_jax.runs.results import Arrays, read_arrays
from xling_jax.vocabulary.pieces import BLANK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_NAMES = {published.LEARNING_RATE: "learning rate", published.EPOCHS: "epochs"}


def principal_components(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Points `[n, d]` on their first two principal components, `[n, 2]`, and the shares of variance
    `[2]`.

    Signs are fixed: a component's largest loading is positive. Components that do not exist
    (too few points or dimensions) are zero.
    """
    centred = np.asarray(points, dtype=np.float64)
    centred = centred - centred.mean(axis=0)
    # Thousands of points in few dimensions: far cheaper than a decomposition of the points.
    values, columns = np.linalg.eigh(centred.T @ centred)
    directions, values = columns.T[::-1][:2], np.maximum(values[::-1], 0)
    largest = directions[np.arange(len(directions)), np.abs(directions).argmax(axis=1)]
    places = centred @ (directions * np.where(largest < 0, -1.0, 1.0)[:, None]).T
    shares = values[:2] / max(values.sum(), np.finfo(float).tiny)
    missing = 2 - len(directions)
    return np.pad(places, ((0, 0), (0, missing))), np.pad(shares, (0, missing))


def word_sample(arrays: Arrays, number: int = 30) -> list[tuple[int, ...]]:
    """Indices of the most frequent whole words, each followed by those of its counterparts.

    Frequency is `token_counts`, or else the order of the vocabulary. A counterpart is the piece of
    language k with the same name after k times `::` (D&S's Fake-English). If no word has one, every
    language contributes an equal number of words.
    """
    names = [str(name) for name in arrays.token_names]
    order = np.arange(len(names))
    if arrays.token_counts is not None:
        order = np.argsort(-arrays.token_counts.astype(np.int64), kind="stable")
    marked = any(name.startswith(BLANK) for name in names)
    others: dict[str, list[int]] = {}
    for n, (name, language) in enumerate(zip(names, arrays.token_languages.tolist(), strict=True)):
        mark = "::" * language
        if mark and name.startswith(mark):
            others.setdefault(name.removeprefix(mark), []).append(n)
    words: dict[int, list[int]] = {}
    for n in map(int, order):
        word = names[n].removeprefix(BLANK)
        whole = names[n] != word if marked else not word.startswith("##")
        if arrays.token_languages[n] >= 0 and whole and len(word) > 2 and word.isalpha():
            words.setdefault(int(arrays.token_languages[n]), []).append(n)
    found = [(n, *others[names[n]]) for n in words.get(0, []) if names[n] in others]
    share = number // max(len(words), 1)
    return found[:number] or [(n,) for language in sorted(words) for n in words[language][:share]]


def language_names(arrays: Arrays, known: Sequence[str] = ()) -> dict[int, str]:
    """A name for each language number in the arrays; -1 marks pieces that languages share."""
    names = arrays.language_names or tuple(known)
    numbers = sorted({int(n) for n in arrays.token_languages})
    return {
        n: "shared" if n < 0 else names[n] if n < len(names) else f"language {n}" for n in numbers
    }


def token_embeddings(path: Path, identity: Identity, title: str, known: Sequence[str]) -> Figure:
    """D&S Figure 4: PCA of all token embeddings above, of a sample of frequent words below."""
    arrays = read_arrays(path, identity)
    names = language_names(arrays, known)
    colours = {n: COLOURS[n % len(COLOURS)] if n >= 0 else SHARED for n in names}
    with house_style():
        from matplotlib.lines import Line2D

        figure = new_figure(4.2, 7.6)
        above, below = figure.subplots(2, 1)
        places, shares = principal_components(arrays.token_embeddings)
        # In the order of the vocabulary the last language would hide the first.
        order = np.random.default_rng(0).permutation(len(places))
        point = [colours[int(arrays.token_languages[n])] for n in order]
        x, y = places[order].T
        above.scatter(x, y, s=3, c=point, lw=0, rasterized=True)
        above.set_title(title, loc="left", wrap=True)
        _component_axes(above, shares)
        dots = [Line2D([], [], marker="o", ls="", ms=4, color=colours[n]) for n in names]
        figure.legend(dots, list(names.values()), ncols=3, loc="outside lower center")
        _words(below, arrays, colours)
        return figure


def _component_axes(axes: Axes, shares: np.ndarray) -> None:
    axes.set_xlabel(f"first component ({shares[0]:.0%} of variance)")
    axes.set_ylabel(f"second component ({shares[1]:.0%})")


def _words(axes: Axes, arrays: Arrays, colours: Mapping[int, str]) -> None:
    sample = word_sample(arrays)
    axes.set_title(f"{len(sample)} frequent words and their counterparts", loc="left")
    if len(sample) < 2:
        axes.text(0.5, 0.5, "too few whole words", ha="center", transform=axes.transAxes)
        return
    chosen = [n for word in sample for n in word]
    places, shares = principal_components(arrays.token_embeddings[chosen])
    place = dict(zip(chosen, places, strict=True))
    for word, *others in sample:
        for other in others:
            axes.plot(*np.stack([place[word], place[other]]).T, color="#999999", lw=0.6, zorder=1)
    point = [colours[int(arrays.token_languages[n])] for n in chosen]
    axes.scatter(places[:, 0], places[:, 1], s=11, c=point, lw=0, zorder=2)
    _component_axes(axes, shares)
    axes.margins(0.08)
    labels = [(place[n], str(arrays.token_names[n]).removeprefix(BLANK)) for n, *_ in sample]
    _label(axes, labels, places)


def _label(axes: Axes, labels: Sequence[tuple[np.ndarray, str]], points: np.ndarray) -> None:
    """Writes each label on the side of its point where it covers the least."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # labels are placed by this layout, which must not change
    taken = np.array([(x - 3, y - 3, x + 3, y + 3) for x, y in axes.transData.transform(points)])
    left, bottom, right, top = axes.get_window_extent().extents
    sides = [(x, y) for x in (1, -1, 0) for y in (0, 1, -1) if x or y]
    point = figure.dpi / 72
    for place, text in labels:
        drawn = axes.annotate(
            text, (place[0], place[1]), (0, 0),
            textcoords="offset points", fontsize=7, ha="center", va="center",
        )  # fmt: skip
        drawn.set_in_layout(False)
        x0, y0, x1, y1 = drawn.get_window_extent().extents
        best = (np.inf, (0.0, 0.0), np.array([x0, y0, x1, y1]))
        for gap in (3, 8, 14):
            for side in sides:
                x = side[0] * ((x1 - x0) / 2 + gap * point)
                y = side[1] * ((y1 - y0) / 2 + gap * point)
                box = np.array([x0 + x, y0 + y, x1 + x, y1 + y])
                inside = _overlaps(box, np.array([[left, bottom, right, top]]))
                outside = (x1 - x0) * (y1 - y0) - inside
                cost = _overlaps(box, taken) + 2 * outside + gap
                if cost < best[0]:
                    best = (cost, (x / point, y / point), box)
        drawn.set_position(best[1])
        taken = np.concatenate([taken, best[2][None]])


def _overlaps(box: np.ndarray, others: np.ndarray) -> float:
    """The area that a box `[4]` (left, bottom, right, top) has in common with others `[n, 4]`."""
    corner = np.minimum(box[2:], others[:, 2:])
    sides = np.maximum(corner - np.maximum(box[:2], others[:, :2]), 0)
    return float(sides.prod(axis=1).sum())


def position_similarities(arrays: Arrays) -> np.ndarray:
    """Cosine similarities of all languages' positions, `[K * offset, K * offset]`."""
    languages = max(2, int(arrays.token_languages.max(initial=0)) + 1)
    vectors = arrays.position_embeddings[: languages * arrays.position_offset]
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = vectors / np.maximum(lengths, np.finfo(np.float32).tiny)
    return np.asarray(unit @ unit.T)


def position_similarity(
    path: Path, identity: Identity, title: str, known: Sequence[str]
) -> Figure | None:
    """D&S Figure 8: cosine similarities of position embeddings, language by language; None where
    the languages share them.
    """
    arrays = read_arrays(path, identity)
    if arrays.position_offset == 0:
        return None
    similarity = position_similarities(arrays)
    # The diagonal is 1 by definition; the colours serve everything else.
    others = similarity[~np.eye(len(similarity), dtype=bool)]
    low, high = np.percentile(others, [1, 99.5])
    with house_style():
        figure = new_figure(4.2, 3.7)
        axes = figure.subplots()
        shown = axes.imshow(similarity, vmin=low, vmax=high, cmap="viridis", interpolation="none")
        offset, size = arrays.position_offset, len(similarity)
        ticks = np.arange(0, size + 1, max(offset // 2, 1))
        for boundary in range(offset, size, offset):
            axes.axhline(boundary - 0.5, color="white", lw=1.0)
            axes.axvline(boundary - 0.5, color="white", lw=1.0)
        axes.set_xticks(ticks - 0.5, [str(t) for t in ticks])
        axes.set_yticks(ticks - 0.5, [str(t) for t in ticks])
        names = language_names(arrays, known)
        blocks = [
            f"{names.get(k, f'language {k}')}: {k * offset}–{(k + 1) * offset - 1}"
            for k in range(size // offset)
        ]
        axes.set_xlabel("position   (" + ", ".join(blocks) + ")", fontsize=8)
        figure.suptitle(title, x=0.02, ha="left", fontsize="medium")
        figure.colorbar(shown, ax=axes, extend="both", shrink=0.75, label="cosine similarity")
        return figure


def over_values(name: str, trials: Sequence[Trial]) -> Figure:
    """Perplexities (log) above and mu below, over the values of a hyperparameter (log)."""
    from matplotlib.ticker import NullLocator

    found = []
    for metric, number in zip((*CRITERIA, "mu"), (4, 5, 3), strict=True):
        known = {trial.value: trial.row.metrics[metric] for trial in trials
                 if metric in trial.row.metrics}  # fmt: skip
        label = metric.removeprefix("perplexity_")
        found.append(Line(label, number, {metric.split("_")[0]: curve_of(known)}))
    panels = {"perplexity": "perplexity", "mu": "mu"}
    figure = side_by_side(found, panels, _NAMES[name], columns=1, top=1.0)
    values, paper = [trial.value for trial in trials], published.CHOSEN[name]
    lost = [trial.value for trial in trials if trial.row.diverged]
    above = figure.axes[0]
    for axes in figure.axes:
        axes.set_xscale("log")
        axes.set_xlim(min(*values, paper) / 1.3, max(*values, paper) * 1.3)
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xticks(values, [_written(value) for value in values], fontsize=7.5, rotation=45)
        chosen = axes.axvline(paper, color="#777777", lw=1, ls=":", zorder=0)
    chosen.set_label(f"{published.SOURCE} chose")
    marks = [chosen]
    if lost:  # a cross at the upper edge for every value at which a seed diverged
        marks += above.plot(
            lost,
            [0.96] * len(lost),
            "x",
            color="#b3261e",
            ms=6,
            label="seeds diverged",
            transform=above.get_xaxis_transform(),
        )
    figure.legend(handles=marks, ncols=2, loc="outside upper center", fontsize=8, frameon=False)
    return figure


def _written(value: float) -> str:
    """A value as the configs write it: 20, 2e-3."""
    digits, exponent = f"{value:.3e}".split("e")
    return f"{value:g}" if value >= 1 else f"{float(digits):g}e{int(exponent)}"
