"""Whatever state a run is in, its report says what it said before and needs nothing but itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import fake_run as fake_english_run
import fake_zero_shot
import pytest
import test_bilingual_report as bilingual_run
import test_similarity_report as similarity_run
from snapshot import Page, assert_as_before
from test_browser import BROWSER, look

from xling_jax.experiments.bilingual import report as bilingual
from xling_jax.experiments.fake_english import report as fake_english
from xling_jax.experiments.real_xnli import report as real_xnli
from xling_jax.experiments.similarity import report as similarity
from xling_jax.experiments.zero_shot import report as zero_shot
from xling_jax.report import figures
from xling_jax.runs import results

pytestmark = pytest.mark.pictures

EVIL = "<script>alert('&\"')</script>|_$"
ROWS = {"0": "original", "3": "inv-order[near]", "8": "lang-pos;shift-special", "30": "knn-replace"}


def fine_tuned(folder: Path, rows: list[str]) -> Path:
    """Rows that were pretrained, the last one not to its end, some of them fine-tuned."""
    folder.mkdir()
    languages = ["en", "near", "far"]
    synthetic = dict.fromkeys(languages, {"train": "synthetic"})
    config = {
        "experiment": "real_xnli", "rows": ROWS, "groups": [[[row, 0] for row in ROWS]],
        "config": {"corpora": {"languages": languages, **synthetic}},
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    for number, (row, description) in enumerate(list(ROWS.items())[:-1]):
        metrics = {f"perplexity_dev_{name}": 9.0 + number for name in languages}
        ended = results.Replica("real_xnli", row, description, 0, 9, metrics)
        results.add_result(folder / "results.json", ended)
    metrics = {f"perplexity_dev_{name}": 12.0 for name in languages}
    fake_english_run.add_line(folder, kind="evaluation", row="30", seed=0, step=5, metrics=metrics)
    fake_zero_shot.fake_run(folder / "transfer", rows, ["nli"], ["en-near-far"], (0, 1))
    return folder


RUNS: dict[str, tuple[Callable[[Path], Path], Callable[[Path], str]]] = {
    "fake_english-ended": (fake_english_run.fake_run, fake_english.write),
    "fake_english-search": (
        lambda folder: fake_english_run.fake_run(
            folder, ("0", "15", "17-250", "21", "lr1e-4", "lr2e-3", "lr2e-2", "ep10", "99"),
            diverged={"lr2e-2": (0, 42), "15": (42,)},
        ),
        fake_english.write,
    ),
    "fake_english-begun": (
        lambda folder: fake_english_run.fake_run(folder, ["0", "1"], share={"0": 0.25, "1": 0.0}),
        fake_english.write,
    ),
    "fake_english-logged": (
        lambda folder: fake_english_run.fake_run(folder, ["0"], share=0.03), fake_english.write,
    ),
    "bilingual-ended": (bilingual_run.fake_run, bilingual.write),
    "bilingual-going": (bilingual_run.going_run, bilingual.write),
    "bilingual-evil": (
        lambda folder: bilingual_run.fake_run(folder, [EVIL], [0], languages=(EVIL, EVIL + "2")),
        bilingual.write,
    ),
    "similarity-ended": (similarity_run.fake_run, similarity.write),
    "similarity-going": (similarity_run.going_run, similarity.write),
    "zero_shot-ended": (
        lambda folder: fake_zero_shot.fake_run(
            folder, ("default", "sep_l1_3", "mine"), ("ner", "parsing"), ("en-fr", "en-ru"), (0, 1)
        ),
        zero_shot.write,
    ),
    "zero_shot-going": (
        lambda folder: fake_zero_shot.fake_run(
            folder, ["default", "sep_emb", "sep_l1_3"], ["ner"], ["en-fr", "en-ru"],
            extras=(0.0, 1.0), going=[("en-fr/sep_emb/ner/16/2e-05", 0), ("en-ru/default", 0)],
            waiting=[("en-fr/sep_l1_3", 0), ("en-ru/sep", 0)],
            diverged=[("en-fr/default/ner/16/2e-05", 0)],
        ),
        zero_shot.write,
    ),
    "similarity-evil": (
        lambda folder: similarity_run.fake_run(folder, [EVIL], languages=(EVIL, EVIL + "2")),
        similarity.write,
    ),
    "zero_shot-evil": (
        lambda folder: fake_zero_shot.fake_run(
            folder, ["default", EVIL.replace("/", "")], ["ner"], ["en-" + EVIL.replace("/", "")]
        ),
        zero_shot.write,
    ),
    "real_xnli-going": (lambda folder: fine_tuned(folder, ["0", "3"]), real_xnli.write),
}  # fmt: skip


Report = tuple[str, Path, str]  # the run's name, its workdir and what the terminal says


@pytest.fixture(scope="module", params=RUNS)
def report(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Report:
    make, write = RUNS[request.param]
    workdir = make(tmp_path_factory.mktemp("runs") / request.param)
    return request.param, workdir, write(workdir)


def test_a_report_is_as_before(report: Report) -> None:
    assert_as_before(*report)


def test_a_page_needs_no_other_file_and_holds_every_figure(report: Report) -> None:
    folder = report[1] / "report"
    page = Page((folder / "report.html").read_text())
    assert all(address.startswith("data:image/") for address in page.loads)
    assert not page.tags & {"script", "link", "iframe", "object"}
    drawn = {path.stem for path in (folder / "figures").glob("*.svg")}
    assert len(drawn) == len(page.loads) == len(list((folder / "figures").glob("*.png")))
    assert (folder / "report.html").stat().st_size < 3_000_000
    for path in (folder / "tables").glob("*.md"):
        assert "<script" not in path.read_text()


def test_a_report_of_the_same_numbers_is_the_same_and_draws_nothing(
    report: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, workdir, text = report
    before = {path: path.read_bytes() for path in (workdir / "report").rglob("*.*")}
    monkeypatch.setattr(figures, "save", lambda *_: pytest.fail("drawn anew"))
    assert RUNS[name][1](workdir) == text
    assert before == {path: path.read_bytes() for path in (workdir / "report").rglob("*.*")}


@pytest.mark.parametrize("name", [name for name in RUNS if name.endswith("ended")])
def test_without_matplotlib_there_are_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr("xling_jax.report.figures.find_spec", lambda _: None)
    make, write = RUNS[name]
    write(make(tmp_path))
    text = (tmp_path / "report" / "report.html").read_text()
    assert "matplotlib is not installed" in text and "<h3>" in text
    assert not (tmp_path / "report" / "figures").exists()


@pytest.mark.parametrize("write", sorted({write for _, write in RUNS.values()}, key=repr))
def test_an_empty_workdir_gives_a_page(tmp_path: Path, write: Callable[[Path], str]) -> None:
    write(tmp_path)
    assert "Nothing has been logged yet." in (tmp_path / "report" / "report.html").read_text()


@pytest.mark.skipif(not BROWSER, reason="no Chromium is installed")
@pytest.mark.parametrize(("width", "dark"), [(390, True), (1440, False)], ids=["narrow", "wide"])
def test_the_page_fits_shows_and_can_be_read(
    report: Report, tmp_path: Path, width: int, dark: bool
) -> None:
    found = look(report[1] / "report" / "report.html", tmp_path, width, dark)
    assert found["window"] == width
    assert found["folded"] <= width and found["unfolded"] <= width
    assert all(min(sizes) > 0 for sizes in found["pictures"])
    assert found["refused"] == [] and found["faint"] == [] and found["overlap"] == []
    assert (found["background"] == "rgb(255, 255, 255)") != dark
