"""The report shows what a run stored, whole or half, and needs nothing but itself."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from fake_run import WORDS, add_line, fake_arrays, fake_run

from xling_jax.reports import embeddings, figures, page, results, rows, tables


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that ended, with its report."""
    workdir = fake_run(tmp_path_factory.mktemp("ended"))
    page.write(workdir)
    return workdir


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
