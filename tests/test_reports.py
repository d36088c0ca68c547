"""A report says what a run stored: no more, no less, and beside the paper's numbers."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from xling_jax.reports import embeddings, figures, page, papers, results, rows, tables

STEPS = 9_000
POINTS = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.95, 1.0)
WORDS = (
    "the and you that they will was with for people lord said him his not are from have all her "
    "king god who were when them this man then your land son came day house one went israel city "
    "out there before made because must took hand did gave told".split()
)


def fake_metrics(row: str, seed: int, share: float) -> dict[str, float]:
    """Plausible numbers at a share of the training: the paper's scores, approached late."""
    random = np.random.default_rng([seed, sum(map(ord, row)), round(100 * share)])
    paper = papers.find(papers.EXPERIMENT, row)
    ends = {name: value.mean for name, value in paper.metrics.items()} if paper else {"mu": 0.5}
    risen = 1 / (1 + np.exp(-10 * (share - 0.35)))
    metrics = {}
    for name, end in ends.items():
        name = name.replace("_8", "_3")
        if name.startswith("perplexity"):
            metrics[name] = float(end * (1 + 30 * np.exp(-7 * share)) * random.uniform(0.97, 1.03))
        elif name != "mu":
            late = 1.0 if name.startswith("alignment") else risen
            metrics[name] = float(np.clip(0.8 * end * late + random.normal(0, 0.02), 0, 1))
    four = [metrics[f"{n}_{k}"] for n in ("retrieval", "translation") for k in (0, 3) if paper]
    metrics["mu"] = float(np.mean(four)) if four else 0.5 * float(risen)
    return {**metrics, "retrieval_3_p5": min(1.0, 1.2 * metrics["mu"]), "retrieval_candidates": 2e3}


def fake_arrays(row: str, pieces: int, dimension: int, positions: int) -> dict[str, Any]:
    """Two languages of `pieces` pieces; alike in row 0, somewhat in row 1, not at all else."""
    random = np.random.default_rng(len(row))
    noise = {"0": 0.25, "1": 0.6}.get(row, 5.0)
    scale = 3 / np.sqrt(1 + np.arange(dimension))
    english = random.normal(size=(pieces, dimension)) * scale
    english[:, 0] += np.linspace(3, -2, pieces)
    other = english + noise * random.normal(size=english.shape) * scale
    names = [f"▁{word}" for word in WORDS][:pieces]
    names += [("▁", "")[n % 2] + f"x{n}" for n in range(pieces - len(names))]
    walk = np.cumsum(random.normal(size=(positions, dimension)), axis=0) / 4
    far = walk + 20 * noise * random.normal(size=walk.shape) / np.sqrt(dimension)
    separate = "lang-pos" in _description(row)
    return {
        "token_embeddings": np.concatenate([english, other]).astype(np.float32),
        "token_languages": np.repeat([0, 1], pieces),
        "token_names": np.array(names + [f"::{name}" for name in names]),
        "token_counts": np.tile(100_000 // (1 + np.arange(pieces)), 2),
        "position_embeddings": np.concatenate([walk, far]).astype(np.float32),
        "position_offset": positions if separate else 0,
    }


def _description(row: str) -> str:
    paper = papers.find(papers.EXPERIMENT, row)
    return paper.description if paper else "another setting"


def fake_run(
    folder: Path, names: Sequence[str] = ("0", "1", "3"), seeds: Sequence[int] = (0, 42),
    share: float = 1.0, pieces: int = 64, dimension: int = 8, positions: int = 16,
) -> Path:  # fmt: skip
    """A workdir as a run leaves it after a share of its training (1: it has ended)."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = [("embedded", "english", 17_000, 230_000), ("embedded", "fake", 17_000, 230_000)]
    config: dict[str, Any] = {
        "experiment": "fake_english", "fingerprint": "5f2d01c9", "scale": "laptop",
        "versions": {"jax": "0.7.0", "numpy": "2.4.6"},
        "rows": {name: _description(name) for name in names},
        "texts": [
            {"source": s, "language": k, "sentences": n, "words": w, "sha256": 8 * "0a1b2c3d"}
            for s, k, n, w in texts
        ],
        "config": {"models": {"layers": 4, "hidden": 64}, "training": {"epochs": STEPS // 90}},
        "groups": [[[name, seed] for name in names] for seed in seeds],
        "vocabulary": {"size": 2 * pieces},
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    lines: list[dict[str, Any]] = []
    for step in range(90, int(share * STEPS) + 1, 90):
        for name in names:
            for seed in seeds:
                at = {"step": step, "epoch": step / 90, "row": name, "seed": seed}
                loss = 2.2 + 6 * float(np.exp(-step / 1500)) + 0.01 * (seed % 7)
                lines.append({"kind": "train", **at, "loss": loss, "tokens_per_second": 21_000.0})
                if step / STEPS in POINTS:
                    metrics = fake_metrics(name, seed, step / STEPS)
                    lines.append({"kind": "evaluation", **at, "metrics": metrics})
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    if share == 1.0:
        ended = [replica(n, s, fake_metrics(n, s, 1.0), STEPS) for n in names for s in seeds]
        results.write_results(folder / "results.json", ended)
    (folder / "arrays").mkdir(exist_ok=True)
    for name in names if share > 0 else ():
        path = folder / "arrays" / f"row{name}_seed{seeds[0]}.npz"
        np.savez(path, **fake_arrays(name, pieces, dimension, positions))
    return folder


def replica(
    row: str, seed: int, metrics: Mapping[str, float], step: int = 1, diverged: int | None = None
) -> results.Replica:
    """A replica of the fake run's experiment."""
    return results.Replica("fake_english", row, _description(row), seed, step, metrics, diverged)


def add_line(workdir: Path, **line: Any) -> None:
    with open(workdir / "metrics.jsonl", "a") as file:
        file.write(json.dumps(line) + "\n")


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that ended, with its report."""
    workdir = fake_run(tmp_path_factory.mktemp("ended"))
    page.write(workdir)
    return workdir


def test_the_papers_mu_is_the_mean_of_its_four_scores() -> None:
    for line in (*papers.TABLE_1, *papers.TABLE_2):
        four = [line.metrics[f"{n}_{k}"].mean for n in ("retrieval", "translation") for k in (0, 8)]
        assert abs(np.mean(four) - line.metrics["mu"].mean) <= 0.0101, line.row


def test_a_row_has_a_paper_line_only_in_the_papers_experiment() -> None:
    line = papers.find("fake_english", "0")
    assert line is not None and line.table == 1 and line.metrics["retrieval_0"].sd == 0.02
    assert papers.find("bilingual", "0") is None and papers.find("fake_english", "99") is None


def test_results_come_back_as_written_without_what_is_not_finite(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    first = replica("0", 0, {"mu": 0.5, "perplexity_dev": np.inf, "perplexity_train": np.nan})
    results.write_results(path, [first, replica("0", 42, {}, diverged=7)])
    back = results.read_results(path)
    assert back[0].metrics == {"mu": 0.5}
    assert (back[1].diverged_at, back[0].diverged_at) == (7, None)
    assert "NaN" not in path.read_text() and "Infinity" not in path.read_text()


def test_a_result_takes_the_place_of_its_own_earlier_one(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    for mu in (0.1, 0.2):
        results.add_result(path, replica("0", 0, {"mu": mu}))
        results.add_result(path, replica("0", 42, {"mu": mu}))
    assert [(r.seed, r.metrics["mu"]) for r in results.read_results(path)] == [(0, 0.2), (42, 0.2)]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = results.write_results(tmp_path / "results.json", [replica("0", 0, {"mu": 0.5})])
    before = path.read_bytes()

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        results.add_result(path, replica("0", 42, {"mu": 0.6}))
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ('[{"row": "0", "seed": 0, "step": 1,\n "metrics": }]', "results.json, line 2"),
        ('[{"row": "0", "seed": 0, "step": 1}, {"row": "0"}]', "entry 2: seed"),
        ('[{"row": "0", "seed": 0, "step": 1, "metrics": {"mu": "high"}}]', "entry 1: mu"),
        ('[{"row": "0", "seed": 0, "step": 1}, {"row": "0", "seed": 0, "step": 2}]', "twice"),
        ("{}", "list of replicas"),
    ],
)
def test_a_bad_result_is_named_by_file_and_place(
    tmp_path: Path, entries: str, message: str
) -> None:
    (tmp_path / "results.json").write_text(entries)
    with pytest.raises(ValueError, match=message):
        results.read_results(tmp_path / "results.json")


def test_metrics_can_be_read_wherever_a_kill_cut_the_last_line(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    full = '{"kind": "train", "row": "é", "seed": 0, "step": 1, "loss": 2.5}'.encode()
    last = '{"kind": "train", "row": "é", "seed": 0, "step": 2, "loss": 2.0}'.encode()
    for cut in range(len(last)):
        path.write_bytes(full + b"\n" + last[:cut])
        assert [r.step for r in results.read_metrics(path).training] == [1]
    path.write_bytes(full + b"\n" + last)
    assert [r.values["loss"] for r in results.read_metrics(path).training] == [2.5, 2.0]


def test_a_broken_line_inside_the_metrics_is_named(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"kind": "other"}\n{"kind": "tr\n{"kind": "other"}\n')
    with pytest.raises(ValueError, match="metrics.jsonl, line 2"):
        results.read_metrics(path)


def test_of_a_step_logged_twice_by_a_resumed_run_the_later_holds(tmp_path: Path) -> None:
    for mu in (0.1, 0.3):
        add_line(tmp_path, kind="evaluation", row="0", seed=0, step=5, metrics={"mu": mu})
    records = results.read_metrics(tmp_path / "metrics.jsonl").evaluations
    assert rows.curves(records, "0")["mu"] == rows.Curve([5], [0.3], [0.0])


def test_a_diverged_seed_is_in_no_mean_and_is_counted(tmp_path: Path) -> None:
    ended = [replica("0", seed, {"mu": mu}, 9) for seed, mu in ((0, 0.2), (42, 0.6))]
    ended.append(replica("0", 43, {"mu": 0.99}, 4, diverged=4))
    results.write_results(tmp_path / "results.json", ended)
    run = rows.read_run(tmp_path)
    row = rows.read_row(run, "0")
    assert row.metrics["mu"] == pytest.approx((0.4, 0.2, 2))
    assert row.diverged == {43: 4} and row.seeds == (0, 42)
    table = tables.build(run)
    assert table.lines[0].seeds == "2/3"
    assert any("seed 43 at step 4" in note for note in table.notes)


def test_a_running_row_is_shown_at_the_last_step_all_its_seeds_reached(tmp_path: Path) -> None:
    for seed, step, mu in ((0, 5, 0.1), (0, 10, 0.9), (42, 5, 0.3)):
        add_line(tmp_path, kind="evaluation", row="0", seed=seed, step=step, metrics={"mu": mu})
    row = rows.read_row(rows.read_run(tmp_path), "0")
    assert (row.step, row.running) == (5, (0, 42)) and row.metrics["mu"].mean == pytest.approx(0.2)


@pytest.mark.parametrize("deep", [3, 8])
def test_the_deeper_layer_is_found_by_its_metrics(tmp_path: Path, deep: int) -> None:
    metrics = {"retrieval_0": 0.1, f"retrieval_{deep}": 0.9, f"retrieval_{deep}_p5": 0.95}
    results.write_results(tmp_path / "results.json", [replica("0", 0, metrics)])
    table = tables.build(rows.read_run(tmp_path))
    assert [line.cells["retrieval_deep"].mean for line in table.lines] == [0.9, 0.97]
    assert f"layer {deep}" in {column.group for column in table.columns}
    assert any(f"layer {deep}," in note for note in table.notes) == (deep != 8)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.7, ".70"), (1, "1.00"), (0.996, "1.00"), (0.994, ".99"), (0, ".00"), (-0.05, "-.05"),
     (-0.001, ".00"), (0.12, ".12"), (1.5, "1.50")],
)  # fmt: skip
def test_scores_look_as_in_the_paper(value: float, text: str) -> None:
    assert tables.score(value) == text


def test_the_terminal_table_fits_and_has_the_papers_line_beneath_ours(tmp_path: Path) -> None:
    metrics = {name.replace("_8", "_3"): 1.0 for name in papers.METRICS} | {"mu": 1.0}
    metrics |= {"perplexity_train": 12_345.0, "perplexity_dev": 7e7, "retrieval_candidates": 1e4}
    ended = []
    for row in (*papers.ORDER, "99"):
        worse = {name: value * 1.5 for name, value in metrics.items()}
        ended += [replica(row, 0, metrics), replica(row, 42, worse), replica(row, 43, metrics)]
    results.write_results(tmp_path / "results.json", ended)
    text = tables.terminal(tmp_path)
    lines = text.splitlines()
    assert max(map(len, lines)) <= tables.WIDTH
    assert sum(papers.SOURCE in line.split("±")[0] for line in lines if line[:2] == "  ") == 18
    first = lines.index("0   original")
    assert lines[first + 1].startswith("  ours") and lines[first + 2].startswith("  D&S 2020")
    assert lines[-1] and "99  another setting" in lines


def test_markdown_and_csv_hold_the_tables_numbers(ended: Path) -> None:
    folder = ended / "report" / "tables"
    markdown = [
        line for line in (folder / "results.md").read_text().splitlines() if line[:1] == "|"
    ]
    assert len({line.count("|") for line in markdown}) == 1 and len(markdown) == 2 + 6
    with open(folder / "results.csv", newline="") as file:
        lines = list(csv.DictReader(file))
    expected = [fake_metrics("1", seed, 1.0)["mu"] for seed in (0, 42)]
    ours = next(line for line in lines if (line["row"], line["source"]) == ("1", "ours"))
    assert float(ours["mu"]) == pytest.approx(np.mean(expected), rel=1e-4)
    assert float(ours["mu_sd"]) == pytest.approx(np.std(expected), rel=1e-4)
    paper = next(line for line in lines if (line["row"], line["source"]) == ("1", papers.SOURCE))
    assert (paper["mu"], paper["mu_sd"], paper["deep_layer"]) == ("0.3", "", "8")


def test_notes_say_that_another_text_is_no_match(ended: Path) -> None:
    notes = " ".join(tables.build(rows.read_run(ended)).notes)
    assert "Compare the shape" in notes and "'laptop'" in notes and "fewer candidates" in notes


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


def arrays(workdir: Path, row: str) -> results.Arrays:
    return results.read_arrays(workdir / "arrays" / f"row{row}_seed0.npz")


def test_sampled_words_are_whole_frequent_and_joined_to_their_counterparts(ended: Path) -> None:
    stored = arrays(ended, "0")
    sample = embeddings.word_sample(stored, 5)
    names = [(str(stored.token_names[a]), str(stored.token_names[b or 0])) for a, b in sample]
    assert names == [(f"▁{word}", f"::▁{word}") for word in WORDS[:5]]


def test_positions_are_compared_over_all_languages(ended: Path) -> None:
    similarity = embeddings.position_similarities(arrays(ended, "1"))
    assert similarity.shape == (32, 32) and np.allclose(np.diag(similarity), 1, atol=1e-5)
    assert np.allclose(similarity, similarity.T) and np.abs(similarity).max() < 1.0001


def test_arrays_that_do_not_agree_are_named(tmp_path: Path) -> None:
    path = tmp_path / "row0_seed0.npz"
    content = fake_arrays("0", 8, 4, 4)
    for change, message in (
        ({"token_languages": np.zeros(3)}, "token_languages must be"),
        ({"token_embeddings": np.full((16, 4), np.nan)}, "token_embeddings must be a finite"),
        ({"token_names": np.array([None] * 16, dtype=object)}, "pickle"),
    ):
        np.savez(path, **{**content, **change})
        with pytest.raises(ValueError, match=message):
            results.read_arrays(path)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(ValueError, match="row0_seed0.npz"):
        results.read_arrays(path)


def test_the_same_numbers_give_the_same_figures_to_the_byte(tmp_path: Path) -> None:
    curve = rows.Curve([1, 2, 3], [0.1, 0.2, 0.5], [0.0, 0.1, 0.1])
    found = {"mu": curve, "retrieval_3": curve, "perplexity_train": curve}
    saved = [
        figures.save(figures.learning_curves(found, "Row $0_"), tmp_path / str(n), "a/b")
        for n in range(2)
    ]
    for one, other in zip(*saved, strict=True):
        assert one.name.startswith("a-b.") and one.read_bytes() == other.read_bytes()


class Addresses(HTMLParser):
    """Every tag and every address a page would load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.loads += [value or "" for name, value in attrs if name in ("src", "srcset", "data")]


def test_the_page_needs_no_other_file_and_is_small(ended: Path) -> None:
    report = ended / "report" / "report.html"
    parsed = Addresses(report.read_text())
    assert parsed.loads and all(address.startswith("data:image/") for address in parsed.loads)
    assert not parsed.tags & {"script", "link", "iframe", "object"} and "url(" not in page.CSS
    # One loss, a curve and a scatter a row, and the positions of the one row that has its own.
    assert len(parsed.loads) == 1 + 3 + 3 + 1
    assert report.stat().st_size < 3_000_000
    saved = {path.name for path in (ended / "report" / "figures").iterdir()}
    assert {"curves_row3.svg", "tokens_row0.png", "positions_row1.svg"} <= saved


def test_nothing_a_user_wrote_becomes_markup(tmp_path: Path) -> None:
    evil = "<script>alert('&\"')</script>|"
    config = {
        "experiment": evil, "fingerprint": evil, "scale": evil, "versions": {evil: evil},
        "rows": {evil: evil}, "texts": [{"source": evil, "language": evil, "sha256": [evil]}],
        "config": {evil: {"a": [evil]}}, "vocabulary": {evil: evil},
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))
    add_line(tmp_path, kind="evaluation", row=evil, seed=0, step=1, metrics={evil: 1.0})
    add_line(tmp_path, kind="train", row=evil, seed=0, step=1, loss=1.0)
    text = page.write(tmp_path).read_text()
    assert "script" not in Addresses(text).tags and "&lt;script&gt;" in text
    assert "<script" not in (tmp_path / "report" / "tables" / "results.md").read_text()


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        (0.0, ["Nothing has been logged yet", "Nothing to draw yet"]),
        (0.03, ["at step 270 of 9,000", "Nothing has been evaluated yet", "No metrics yet"]),
        (0.25, ["at step 2,250 of 9,000; 0 of 2 replicas", "figures are those of step 1,800"]),
    ],
)
def test_a_run_still_going_says_how_far_it_is(
    tmp_path: Path, share: float, expected: list[str]
) -> None:
    fake_run(tmp_path, ["0"], [0, 42], share)
    text = page.write(tmp_path).read_text()
    for words in expected:
        assert words in text


def test_an_empty_workdir_gives_a_page_and_none_an_error(tmp_path: Path) -> None:
    assert "Nothing has been logged yet" in page.write(tmp_path).read_text()
    with pytest.raises(ValueError, match="nowhere is not a folder"):
        tables.terminal(tmp_path / "nowhere")


def test_arrays_that_cannot_be_read_do_not_hide_the_rest(tmp_path: Path) -> None:
    fake_run(tmp_path, ["0"], [0])
    (tmp_path / "arrays" / "row0_seed0.npz").write_bytes(b"half")
    text = page.write(tmp_path).read_text()
    assert "row0_seed0.npz: not an npz file" in text and "curves_row0.svg" in text
