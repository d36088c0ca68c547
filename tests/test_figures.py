"""Figures show the data they are given, come out the same each time, and are drawn once."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from fake_run import WORDS, fake_arrays, fake_run
from matplotlib.figure import Figure

from xling_jax.experiments.fake_english import (
    published,
    report_comparisons,
    report_embeddings,
    report_gallery,
    report_overview,
)
from xling_jax.experiments.fake_english import report_search as searches
from xling_jax.report import figures, rows
from xling_jax.report.drawn import Drawn
from xling_jax.runs import results


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> rows.Run:
    """A run with a search in it, of which one value diverged, and an untrained row."""
    names = ["0", "15", "18", "lr1e-4", "lr2e-3", "lr2e-2", "ep10"]
    folder = tmp_path_factory.mktemp("mixed")
    return rows.read_run(
        fake_run(folder, names, (0, 42), diverged={"lr2e-2": (0, 42)}), published.ORDER
    )


def test_principal_components_are_those_of_the_data_however_it_is_turned() -> None:
    random = np.random.default_rng(0)
    plane = random.normal(size=(50, 2)) * (5, 1)
    plane -= plane.mean(axis=0)
    turn, _ = np.linalg.qr(random.normal(size=(7, 7)))
    places, shares = report_embeddings.principal_components(plane @ turn[:2])
    assert np.allclose(places @ places.T, plane @ plane.T) and shares.sum() == pytest.approx(1)
    again, _ = report_embeddings.principal_components(-(plane @ turn[:2]))
    assert np.allclose(again, -places)
    assert report_embeddings.principal_components(np.ones((1, 1)))[0].tolist() == [[0, 0]]


def arrays(row: str) -> results.Arrays:
    return results.Arrays(**fake_arrays(row, 64, 8, 16), language_names=())


def test_sampled_words_are_whole_frequent_and_joined_to_their_counterparts() -> None:
    stored = arrays("0")
    sample = report_embeddings.word_sample(stored, 5)
    names = [(str(stored.token_names[a]), str(stored.token_names[b or 0])) for a, b in sample]
    assert names == [(f"▁{word}", f"::▁{word}") for word in WORDS[:5]]


def test_positions_are_compared_over_all_languages() -> None:
    similarity = report_embeddings.position_similarities(arrays("1"))
    assert similarity.shape == (32, 32) and np.allclose(np.diag(similarity), 1, atol=1e-5)
    assert np.allclose(similarity, similarity.T) and np.abs(similarity).max() < 1.0001


def test_the_same_numbers_give_the_same_figures_to_the_byte(tmp_path: Path) -> None:
    curve = rows.Curve([1, 2, 3], [0.1, 0.2, 0.5], [0.0, 0.1, 0.1])
    found = {"mu": curve, "retrieval_3": curve, "perplexity_train": curve}
    saved = [
        figures.save(figures.learning_curves(found, "Row $0_"), tmp_path / str(n), "a/b")
        for n in range(2)
    ]
    for one, other in zip(*saved, strict=True):
        assert one.name.startswith("a-b.") and one.read_bytes() == other.read_bytes()


@pytest.mark.parametrize(
    ("values", "limits"),
    [
        ([3, 40], (2, 50)),
        ([2, 50], (2, 50)),
        ([0.013, 7e6], (0.01, 1e7)),
        ([0.0], None),
        ([], None),
    ],
)
def test_limits_are_round_and_hold_every_value(
    values: list[float], limits: tuple[float, float] | None
) -> None:
    assert figures.round_limits(values) == limits


def test_the_overview_has_every_row_with_the_papers_value_and_none_as_zero(
    mixed: rows.Run,
) -> None:
    entries = {entry.label.split(":")[0]: entry for entry in report_overview.entries(mixed)}
    assert list(entries) == mixed.row_names()
    assert entries["0"].paper["retrieval"][0] == 0.97 and entries["lr1e-4"].paper == {}
    assert entries["0"].ours["mu"] == mixed.row("0").metrics["mu"][:2]
    assert entries["lr2e-2"].ours == {} and "diverged" in entries["lr2e-2"].message
    left, right = report_overview.overview(list(entries.values()), 3).axes
    # Three bars for every row that has numbers, and none for the one that diverged.
    assert len([patch for patch in left.patches if 0 < patch.get_height() < 0.5]) == 3 * 6
    assert [tick.get_text().split(":")[0] for tick in left.get_yticklabels()] == list(entries)
    assert right.get_xscale() == "log"


def test_rows_of_different_length_are_overlaid_over_their_own_training(tmp_path: Path) -> None:
    run = rows.read_run(fake_run(tmp_path, ["1", "ep10", "17-250", "18"], [0]), published.ORDER)
    found = report_comparisons.compared_rows(run)
    # The untrained row has no training.
    assert list(found) == ["1", "17-250", "ep10"]
    assert all(by_name["mu"].steps[-1] == 100 for by_name in found.values())


def test_the_rows_that_the_paper_sets_beside_each_other_are_chosen(tmp_path: Path) -> None:
    names = ["0", "1", "2", "15", "21", "30"]
    run = rows.read_run(fake_run(tmp_path / "named", names, [0]), published.ORDER)
    assert list(report_comparisons.compared_rows(run)) == ["0", "15", "30", "21"]
    alone = rows.read_run(fake_run(tmp_path / "alone", ["0"], [0]), published.ORDER)
    assert report_comparisons.compared_rows(alone) == {}
    by_row = report_comparisons.compared_rows(run)
    figure = report_comparisons.over_training(by_row, {name: name for name in by_row})
    assert [len(axes.lines) for axes in figure.axes] == [4, 4, 4, 4, 4, 0]


def test_a_search_is_drawn_from_three_values_on(mixed: rows.Run) -> None:
    trials = searches.series(mixed)
    values = {name: [trial.value for trial in of] for name, of in trials.items()}
    assert values == {"learning-rate": [1e-4, 2e-3, 2e-2], "epochs": [10, 100]}
    assert report_comparisons.has_figure(trials["learning-rate"])
    assert not report_comparisons.has_figure(trials["epochs"])
    above, below = report_comparisons.over_values("learning-rate", trials["learning-rate"]).axes
    assert above.get_xscale() == above.get_yscale() == below.get_xscale() == "log"
    assert "seeds diverged" in above.get_legend_handles_labels()[1]


def test_a_figure_is_drawn_again_only_for_other_numbers_or_lost_files(tmp_path: Path) -> None:
    times = []

    def draw() -> Figure:
        times.append(1)
        return figures.training_loss({"0": rows.Curve([1, 2], [2.0, 1.0], [0, 0])})

    def number_drawn(numbers: object) -> int:
        before = len(times)
        assert Drawn(tmp_path).figure("a/b", numbers, draw) is not None
        return len(times) - before

    assert [number_drawn([1.0]) for _ in range(2)] == [1, 0]
    assert [number_drawn([1.5]) for _ in range(2)] == [1, 0]
    (tmp_path / "a-b.svg").write_text("half")
    assert [number_drawn([1.5]) for _ in range(2)] == [1, 0]
    (tmp_path / "a-b.png").unlink()
    assert [number_drawn([1.5]) for _ in range(2)] == [1, 0]
    for damage in ("{", "[]", '{"a-b": 3}'):
        (tmp_path / "drawn.json").write_text(damage)
        assert number_drawn([1.5]) == 1
    assert list(json.loads((tmp_path / "drawn.json").read_text())) == ["a-b"]


def test_that_there_is_nothing_to_draw_is_remembered_too(tmp_path: Path) -> None:
    asked = []
    for numbers in ([1], [1], [2]):
        path = Drawn(tmp_path).figure("none", numbers, lambda: asked.append(1))
        assert path is None
    assert len(asked) == 2


def test_a_page_that_grew_has_the_figures_of_one_written_at_once(tmp_path: Path) -> None:
    grown, names = tmp_path / "grown", ("0", "3")
    stages = [{"0": 1.0, "3": 0.0}, {"0": 1.0, "3": 0.5}, {"0": 1.0, "3": 1.0}]
    own = ("curves_row0", "tokens_row0")
    for stage in stages:
        before = _stamps(grown, own)
        sections = report_gallery.draw(
            rows.read_run(fake_run(grown, names, [0], stage), published.ORDER), grown / "report"
        )
        assert before in ({}, _stamps(grown, own))
    fresh = tmp_path / "fresh"
    run = rows.read_run(fake_run(fresh, names, [0]), published.ORDER)
    assert report_gallery.draw(run, fresh / "report") == sections
    for path in (fresh / "report").iterdir():
        assert path.read_bytes() == (grown / "report" / path.name).read_bytes(), path.name


def _stamps(workdir: Path, names: tuple[str, ...]) -> dict[str, int]:
    """When each figure was written."""
    paths = [workdir / "report" / f"{name}.{kind}" for name in names for kind in ("svg", "png")]
    return {path.name: path.stat().st_ino for path in paths if path.exists()}
