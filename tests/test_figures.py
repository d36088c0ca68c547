"""Figures show the data they are given, come out the same each time, and are drawn once."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_run import WORDS, fake_arrays, fake_run
from matplotlib.figure import Figure

from xling_jax.experiments.fake_english import figures as embeddings
from xling_jax.experiments.fake_english import published, report
from xling_jax.report import figures, frame
from xling_jax.report.figures import Entry, Line, Score
from xling_jax.report.gallery import Gallery
from xling_jax.runs import results

pytestmark = pytest.mark.pictures

CURVE = frame.Curve([0, 1], [0.03, 0.06], [0.0, 0.01])


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> frame.Run:
    """A run with a search in it, of which one value diverged, and an untrained row."""
    names = ["0", "15", "18", "30", "lr1e-4", "lr2e-3", "lr2e-2", "ep10"]
    folder = tmp_path_factory.mktemp("mixed")
    return frame.Run(
        fake_run(folder, names, (0, 42), diverged={"lr2e-2": (0, 42)}), published.ORDER
    )


def test_principal_components_are_those_of_the_data_however_it_is_turned() -> None:
    random = np.random.default_rng(0)
    plane = random.normal(size=(50, 2)) * (5, 1)
    plane -= plane.mean(axis=0)
    turn, _ = np.linalg.qr(random.normal(size=(7, 7)))
    places, shares = embeddings.principal_components(plane @ turn[:2])
    assert np.allclose(places @ places.T, plane @ plane.T) and shares.sum() == pytest.approx(1)
    again, _ = embeddings.principal_components(-(plane @ turn[:2]))
    assert np.allclose(again, -places)
    assert embeddings.principal_components(np.ones((1, 1)))[0].tolist() == [[0, 0]]


def arrays(row: str) -> results.Arrays:
    return results.Arrays(**fake_arrays(row, 64, 8, 16), language_names=())


def test_sampled_words_are_whole_frequent_and_joined_to_their_counterparts() -> None:
    stored = arrays("0")
    sample = embeddings.word_sample(stored, 5)
    names = [(str(stored.token_names[a]), str(stored.token_names[b or 0])) for a, b in sample]
    assert names == [(f"▁{word}", f"::▁{word}") for word in WORDS[:5]]


def test_positions_are_compared_over_all_languages() -> None:
    similarity = embeddings.position_similarities(arrays("1"))
    assert similarity.shape == (32, 32) and np.allclose(np.diag(similarity), 1, atol=1e-5)
    assert np.allclose(similarity, similarity.T) and np.abs(similarity).max() < 1.0001


def test_the_same_numbers_give_the_same_figures_to_the_byte(tmp_path: Path) -> None:
    curve = frame.Curve([1, 2, 3], [0.1, 0.2, 0.5], [0.0, 0.1, 0.1])
    lines = [Line("Row $0_", 0, {"mu": curve, "perplexity_train": curve, "loss": curve})]
    shown = {"mu": "$", "perplexity_train": "_", "loss": "loss"}
    saved = [
        figures.save(figures.side_by_side(lines, shown, "step"), tmp_path / str(n), "a/b")
        for n in range(2)
    ]
    for one, other in zip(*saved, strict=True):
        assert one.name.startswith("a_b.") and one.read_bytes() == other.read_bytes()


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


def test_bars_have_every_row_with_the_papers_value_and_none_as_zero(
    mixed: frame.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Any] = []
    draw = figures.bars
    monkeypatch.setattr(figures, "bars", lambda *inputs: drawn.append(inputs))
    report.overview(mixed, Gallery(tmp_path))
    shown, scores, below, fit, _ = drawn[0]
    assert below == "score (retrieval and translation: our layer 3, the paper's 8)"
    entries = {entry.label.split(":")[0]: entry for entry in shown}
    assert list(entries) == mixed.row_names
    assert entries["0"].paper["retrieval_deep"].mean == 0.97 and entries["lr1e-4"].paper == {}
    # The paper's perplexity of row 30 cannot be compared with ours.
    assert fit in entries["0"].paper and fit in entries["30"].ours
    assert entries["30"].paper.keys() == entries["0"].paper.keys() - {fit}
    assert entries["0"].ours["mu"] == mixed.rows["0"].metrics["mu"]
    assert entries["lr2e-2"].ours == {} and "diverged" in entries["lr2e-2"].message
    left, right = draw(*drawn[0]).axes
    # Three bars for every row that has numbers, and none for the one that diverged.
    bars = [patch for patch in left.patches if 0 < patch.get_height() < 0.5]
    assert len(bars) == len(scores) * 7
    assert [tick.get_text().split(":")[0] for tick in left.get_yticklabels()] == list(entries)
    assert right.get_xscale() == "log"


def test_the_papers_numbers_are_inside_the_axis() -> None:
    entry = Entry("", {"fr": frame.Measure(0.35)}, {"fr": frame.Measure(0.798)})
    (axes,) = figures.bars([entry], [Score("fr", "fr", "black")], "").axes
    assert axes.get_xlim()[1] > 0.798


@pytest.mark.parametrize(("name", "said"), [("fr", ["fr", "the paper's"]), ("xx", ["xx"])])
def test_the_paper_is_in_the_legend_of_figures_that_have_its_numbers(
    name: str, said: list[str]
) -> None:
    value = frame.Measure(0.5)
    entry = Entry("", {"fr": value, "xx": value}, {"fr": value})
    (legend,) = figures.bars([entry], [Score(name, name, "black")], "").legends
    assert [text.get_text() for text in legend.get_texts()] == said


def test_rows_of_different_length_are_overlaid_over_their_own_training(tmp_path: Path) -> None:
    run = frame.Run(fake_run(tmp_path, ["1", "ep10", "17-250", "18"], [0]), published.ORDER)
    found = report.compared_rows(run)
    # The untrained row has no training; the others keep the colours of their places.
    assert [(line.label.split(":")[0], line.number) for line in found] == [
        ("1", 0), ("17-250", 2), ("ep10", 3),
    ]  # fmt: skip
    assert all(line.curves["mu"].steps[-1] == 100 for line in found)


def test_the_rows_that_the_paper_sets_beside_each_other_are_chosen(tmp_path: Path) -> None:
    names = ["0", "1", "2", "15", "21", "30"]
    run = frame.Run(fake_run(tmp_path / "named", names, [0]), published.ORDER)
    found = [line.label.split(":")[0] for line in report.compared_rows(run)]
    assert found == ["0", "15", "30", "21"]
    alone = frame.Run(fake_run(tmp_path / "alone", ["0"], [0]), published.ORDER)
    assert report.compared_rows(alone) == []


def test_a_search_is_drawn_from_three_values_on(mixed: frame.Run, tmp_path: Path) -> None:
    trials = published.trials(mixed)
    values = {name: [trial.value for trial in of] for name, of in trials.items()}
    assert values == {"learning-rate": [1e-4, 2e-3, 2e-2], "epochs": [10, 100]}
    (card,) = report._searched(mixed, Gallery(tmp_path))
    assert "learning rate" in card.alt
    above, below = embeddings.over_values("learning-rate", trials["learning-rate"]).axes
    assert above.get_xscale() == above.get_yscale() == below.get_xscale() == "log"
    assert "seeds diverged" in above.get_legend_handles_labels()[1]


def test_the_value_that_the_paper_chose_is_inside_the_axis(tmp_path: Path) -> None:
    run = frame.Run(fake_run(tmp_path, ["ep10", "ep20", "ep50"], [0]), published.ORDER)
    figure = embeddings.over_values("epochs", published.trials(run)["epochs"])
    assert all(axes.get_xlim()[1] > published.CHOSEN["epochs"] for axes in figure.axes)


def test_small_scores_have_their_own_axis_and_long_names_stay_apart() -> None:
    lines = [
        Line(name, 7, {"retrieval": CURVE, "perplexity_dev_en": CURVE})
        for name in ("default-anchors;sep[layers/0..2/attention]" + end for end in "ab")
    ]
    figure = figures.side_by_side(lines, {"retrieval": "", "perplexity_dev_en": ""}, "layer")
    above, below = figure.axes
    assert above.get_ylim()[1] == pytest.approx(0.102) and below.get_yscale() == "log"
    assert len(figure.legends[0].get_texts()) == 2


def look_of(lines: Sequence[Line]) -> set[tuple[Any, Any]]:
    """The colours and dashes of lines that share a panel."""
    (axes,) = figures.side_by_side(lines, {"score": ""}, "step").axes
    return {(line.get_color(), line.get_linestyle()) for line in axes.lines}


def test_the_curves_of_a_row_look_different_for_every_metric() -> None:
    numbers = report._CURVES.values()
    assert len(look_of([Line(str(n), n, {"score": CURVE}) for n in numbers])) == len(numbers)


def test_more_lines_than_can_be_told_apart_have_several_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [Line(str(number), number, {"score": CURVE}) for number in range(30)]
    drawn: list[list[Line]] = []
    with monkeypatch.context() as context:
        context.setattr(figures, "side_by_side", lambda own, *_: drawn.append(own))
        Gallery(tmp_path).curves("pairs", "", lines, {"score": ""}, "layer")
    assert list(json.loads((tmp_path / "drawn.json").read_text())) == ["pairs", "pairs-2"]
    assert sum(drawn, []) == lines and all(len(look_of(own)) == len(own) for own in drawn)


def test_a_figure_is_drawn_again_only_for_other_numbers_or_lost_files(tmp_path: Path) -> None:
    times = []

    def draw(_: object) -> Figure:
        times.append(1)
        line = Line("0", 0, {"loss": frame.Curve([1, 2], [2.0, 1.0], [0, 0])})
        return figures.side_by_side([line], {"loss": ""}, "")

    def number_drawn(numbers: object) -> int:
        before = len(times)
        assert Gallery(tmp_path).card("a/b", "", draw, numbers)
        return len(times) - before

    assert [number_drawn([1.0]) for _ in range(2)] == [1, 0]
    assert [number_drawn([1.5]) for _ in range(2)] == [1, 0]
    (tmp_path / "a_b.svg").write_text("half")
    assert [number_drawn([1.5]) for _ in range(2)] == [1, 0]
    (tmp_path / "a_b.png").unlink()
    assert [number_drawn([1.5]) for _ in range(2)] == [1, 0]
    for damage in ("{", "[]", '{"a_b": 3}'):
        (tmp_path / "drawn.json").write_text(damage)
        assert number_drawn([1.5]) == 1
    assert list(json.loads((tmp_path / "drawn.json").read_text())) == ["a_b"]


def test_names_that_a_file_cannot_tell_apart_have_files_of_their_own(tmp_path: Path) -> None:
    def draw(last: float) -> Figure:
        line = Line("0", 0, {"loss": frame.Curve([1, 2], [2.0, last], [0, 0])})
        return figures.side_by_side([line], {"loss": ""}, "")

    for _ in range(2):
        gallery = Gallery(tmp_path)
        ends = {"a;b": 1.0, "a_b": 0.5, "A_b": 0.2}
        cards = [gallery.card(name, "", draw, last)[0] for name, last in ends.items()]
        names = [card.files[0] for card in cards]
        assert names[0] == "a_b.svg" and len({name.lower() for name in names}) == 3
        assert all(re.fullmatch(r"[aA]_b-[0-9a-f]+\.svg", name) for name in names[1:])
        assert len({card.address for card in cards}) == 3


def test_that_there_is_nothing_to_draw_is_remembered_too(tmp_path: Path) -> None:
    asked = []
    for numbers in ([1], [1], [2]):
        assert Gallery(tmp_path).card("none", "", lambda x: asked.append(x), numbers) == []
    assert len(asked) == 2


def test_a_page_that_grew_has_the_figures_of_one_written_at_once(tmp_path: Path) -> None:
    grown, names = tmp_path / "grown", ("0", "3")
    own = ("curves_row0", "tokens_row0")
    for share in (0.0, 0.5, 1.0):
        before = _stamps(grown, own)
        report.write(fake_run(grown, names, [0], {"0": 1.0, "3": share}))
        assert before in ({}, _stamps(grown, own))
    fresh = tmp_path / "fresh"
    report.write(fake_run(fresh, names, [0]))
    for path in (fresh / "report").rglob("*.*"):
        other = grown / path.relative_to(fresh)
        assert path.read_bytes() == other.read_bytes(), path.name


def _stamps(workdir: Path, names: tuple[str, ...]) -> dict[str, int]:
    """When each figure was written."""
    folder = workdir / "report" / "figures"
    paths = [folder / f"{name}.{kind}" for name in names for kind in ("svg", "png")]
    return {path.name: path.stat().st_ino for path in paths if path.exists()}
