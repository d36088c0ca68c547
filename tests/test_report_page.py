"""The report shows what a run stored, whole or half, and needs nothing but itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from fake_run import add_line, fake_arrays, fake_metrics, fake_run, replica

from xling_jax.experiments.fake_english import report as page
from xling_jax.experiments.fake_english import report_tables
from xling_jax.report import drawn, state, style
from xling_jax.runs import results


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that ended, with its report."""
    workdir = fake_run(tmp_path_factory.mktemp("ended"))
    page.write(workdir)
    return workdir


def test_arrays_come_back_as_written(tmp_path: Path) -> None:
    content = fake_arrays("1", 8, 4, 4) | {"token_counts": None, "language_names": ("en", "fake")}
    stored = results.Arrays(**content)
    back = results.read_arrays(results.write_arrays(tmp_path / "row1_seed0.npz", stored))
    for name, value in vars(stored).items():
        np.testing.assert_array_equal(getattr(back, name), value)
    assert results.array_files(tmp_path) == {"1": (0, tmp_path / "row1_seed0.npz")}


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


def assert_loads_nothing(workdir: Path, images: int) -> None:
    """Raises unless a run's page has so many images, all within itself, and needs no other file."""
    parsed = Addresses((workdir / "report" / "report.html").read_text())
    assert len(parsed.loads) == images
    assert all(address.startswith("data:image/") for address in parsed.loads)
    assert not parsed.tags & {"script", "link", "iframe", "object"}


def assert_drawn_once(
    workdir: Path, write: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Raises unless a report of the same numbers is written to the same bytes, without drawing."""
    files = (path for path in (workdir / "report").rglob("*") if path.is_file())
    before = {path: path.read_bytes() for path in files}
    monkeypatch.setattr(drawn, "save", lambda *_: pytest.fail("drawn anew"))
    write(workdir)
    assert before == {path: path.read_bytes() for path in before}


def files_of(workdir: Path, folder: str) -> set[str]:
    """The names of the files in a folder of a run's report."""
    return {path.name for path in (workdir / "report" / folder).iterdir()}


def test_the_page_needs_no_other_file_and_is_small(ended: Path) -> None:
    # Overview, overlay and loss; a curve and a scatter a row; the positions of the one row that
    # has its own.
    assert_loads_nothing(ended, images=3 + 3 + 3 + 1)
    assert "url(" not in style.CSS
    assert (ended / "report" / "report.html").stat().st_size < 3_000_000
    saved = files_of(ended, "figures")
    assert {"overview.svg", "curves_row3.svg", "tokens_row0.png", "positions_row1.svg"} <= saved


def test_nothing_a_user_wrote_becomes_markup(tmp_path: Path) -> None:
    evil = "<script>alert('&\"')</script>|"
    config = {
        "experiment": evil, "fingerprint": evil, "scale": evil, "versions": {evil: evil},
        "rows": {evil: evil}, "texts": [{"source": evil, "language": evil, "sha256": evil}],
        "config": {evil: {"a": [evil]}}, "vocabulary": {evil: evil},
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))
    add_line(tmp_path, kind="evaluation", row=evil, seed=0, step=1, metrics={evil: 1.0})
    add_line(tmp_path, kind="train", row=evil, seed=0, step=1, loss=1.0)
    text = page.write(tmp_path).read_text()
    assert "script" not in Addresses(text).tags and "&lt;script&gt;" in text
    assert "<script" not in (tmp_path / "report" / "tables" / "results.md").read_text()


def test_the_page_has_every_table_and_says_what_diverged(tmp_path: Path) -> None:
    ended = [replica(row, 0, fake_metrics(row, 0, 1.0)) for row in ("0", "3", "21", "lr1e-3")]
    ended.append(replica("lr2e-2", 0, {}, 77, diverged=77))
    results.write_results(tmp_path / "results.json", ended)
    text = page.write(tmp_path).read_text()
    for title in ("Table 1:", "Table 2:", "Search:", "diverged at step 77", "All metrics"):
        assert title in text
    assert "Table 10:" not in text and "<sub>" in text
    # Claims that rows 0 and 3 decide, and those that wait for others.
    assert '<span class="held">held</span>' in text and "Not run" in text
    written = {path.name for path in (tmp_path / "report" / "tables").iterdir()}
    names = ("table1", "table2", "search", "claims")
    assert written == {"results.csv"} | {
        f"{n}.{kind}" for n in names for kind in ("md", "csv", "tex")
    }


@pytest.mark.parametrize(("seeds", "folded"), [(state.FOLDED, False), (state.FOLDED + 1, True)])
def test_the_table_of_many_running_replicas_is_folded(
    tmp_path: Path, seeds: int, folded: bool
) -> None:
    for seed in range(seeds):
        add_line(tmp_path, kind="train", row="0", seed=seed, step=1, loss=1.0)
    text = page.write(tmp_path).read_text()
    assert (f"<details><summary>The {seeds} replicas in training" in text) == folded
    assert text.count("<td>1</td>") >= seeds - 1


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


def test_a_page_written_twice_is_the_same_to_the_byte(ended: Path) -> None:
    report = ended / "report"
    before = {path: path.read_bytes() for path in report.rglob("*") if path.is_file()}
    page.write(ended)
    assert before == {path: path.read_bytes() for path in report.rglob("*") if path.is_file()}


def test_an_empty_workdir_gives_a_page_and_none_an_error(tmp_path: Path) -> None:
    assert "Nothing has been logged yet" in page.write(tmp_path).read_text()
    with pytest.raises(ValueError, match="nowhere is not a folder"):
        report_tables.terminal(tmp_path / "nowhere")


def test_arrays_that_cannot_be_read_do_not_hide_the_rest(tmp_path: Path) -> None:
    fake_run(tmp_path, ["0"], [0])
    (tmp_path / "arrays" / "row0_seed0.npz").write_bytes(b"half")
    text = page.write(tmp_path).read_text()
    assert "row0_seed0.npz: not an npz file" in text and "curves_row0.svg" in text
