"""The report shows what a run stored, whole or half, and needs nothing but itself."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from fake_run import add_line, fake_arrays, fake_run
from snapshot import Page

from xling_jax.experiments.fake_english import report as page
from xling_jax.report.frame import Run
from xling_jax.report.page import FOLDED, write
from xling_jax.report.table import Line, Table
from xling_jax.runs import results
from xling_jax.runs.fields import EXPERIMENTS


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that ended, with its report."""
    workdir = fake_run(tmp_path_factory.mktemp("ended"))
    page.write(workdir)
    return workdir


def page_of(workdir: Path) -> str:
    page.write(workdir)
    return (workdir / "report" / "report.html").read_text()


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


def files_of(workdir: Path, folder: str) -> set[str]:
    """The names of the files in a folder of a run's report."""
    return {path.name for path in (workdir / "report" / folder).iterdir()}


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
    text = page_of(tmp_path)
    assert "script" not in Page(text).tags and "&lt;script&gt;" in text
    assert "<script" not in (tmp_path / "report" / "tables" / "results.md").read_text()


@pytest.mark.parametrize(("seeds", "folded"), [(FOLDED, False), (FOLDED + 1, True)])
def test_the_table_of_many_running_replicas_is_folded(
    tmp_path: Path, seeds: int, folded: bool
) -> None:
    for seed in range(seeds):
        add_line(tmp_path, kind="train", row="0", seed=seed, step=1, loss=1.0)
    text = page_of(tmp_path)
    assert (f"<details><summary>The {seeds} replicas in training" in text) == folded
    assert text.count("<td>1</td>") >= seeds - 1


def test_a_papers_line_names_its_row_unless_the_line_above_does(tmp_path: Path) -> None:
    names = [("0", "ours"), ("0", "the paper"), ("mBERT", "the paper"), ("mBERT", "others")]
    table = Table("t", "T", "", [], [Line(row, "", source=source) for row, source in names])
    write(Run(tmp_path), "", {"Results": [table]}, [])
    text = Page((tmp_path / "report" / "report.html").read_text()).text
    assert "| 0 |\n| | the paper\n| mBERT | the paper\n| | others\n" in text


def test_a_workdir_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nowhere is not a folder"):
        page.write(tmp_path / "nowhere")


@pytest.mark.pictures
def test_arrays_that_cannot_be_read_do_not_hide_the_rest(tmp_path: Path) -> None:
    fake_run(tmp_path, ["0"], [0])
    (tmp_path / "arrays" / "row0_seed0.npz").write_bytes(b"half")
    text = page_of(tmp_path)
    assert "row0_seed0.npz: not an npz file" in text and "curves_row0.svg" in text


def test_reports_are_written_without_jax() -> None:
    """So a report costs no accelerator, and can be written where there is none."""
    reports = ", ".join(f"xling_jax.experiments.{name}.report" for name in EXPERIMENTS)
    program = f"import sys, {reports}; print(*sys.modules)"
    command = [sys.executable, "-c", program]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert not {"jax", "flax", "matplotlib"} & set(loaded)
