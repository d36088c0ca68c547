"""Fake-English with more than two languages: the ablations, a run and its report."""

import itertools

import numpy as np
import pandas as pd
import pytest
from small_run import config, on_devices, results

from xling_jax.batches import setting
from xling_jax.batches.packing import own_parts
from xling_jax.evaluators.multilinguality import EncodedTexts
from xling_jax.evaluators.registry import EVALUATORS
from xling_jax.experiments.fake_english import data
from xling_jax.experiments.fake_english.experiment import Experiment
from xling_jax.experiments.fake_english.figures import word_sample
from xling_jax.report.frame import Metric, decoded
from xling_jax.runs.results import read_arrays
from xling_jax.vocabulary import neighbours
from xling_jax.vocabulary.static_vectors import Vectors

LANGUAGES = ("en", "fake", "fake2")
OPTIONS = "languages=en-fake-fake2,epochs=1,row="
ALL_THREE = "lang-pos;shift-special;inv-order"
SMALL = {"corpora.dev_sentences": 20, "batches.sentences": 32}


def parsed(row):
    made = setting.parse(row, LANGUAGES)
    return setting.make(
        made,
        LANGUAGES,
        seed=0,
        learning_rate=1.0,
        max_length=128,
        shift=50,
        neighbours=neighbours.nothing(150),
    )


def test_every_further_language_has_positions_types_and_special_tokens_of_its_own():
    found = parsed("lang-pos;shift-special")
    assert (found.position_offset, found.token_type_step, found.special_shift) == (128, 1, 50)


@pytest.mark.parametrize(
    ("row", "inverted"),
    [
        ("inv-order", (False, True, False)),
        ("inv-order[fake2]", (False, False, True)),
        ("inv-order[en];inv-order[fake2]", (True, False, True)),
    ],
)
def test_the_second_language_is_inverted_unless_others_are_named(row, inverted):
    assert tuple(parsed(row).inverted) == inverted


def test_train_perplexity_is_of_sentences_from_all_parts_of_the_text(tmp_path, monkeypatch):
    train, dev = [np.array([k]) for k in range(90)], [np.array([k]) for k in range(10)]
    found = np.concatenate(data.fit_sample(train, dev))
    assert (found[0], found[-1]) == (0, 89)
    assert set(np.diff(found)) <= {9, 10}
    assert data.fit_sample(dev, train) == dev
    measured = []

    def texts(languages, texts, **rest):
        measured.append(texts)
        return EncodedTexts(languages, texts, **rest)

    monkeypatch.setattr(data, "EncodedTexts", texts)
    made = data.read(config("row=0", **SMALL))[1](tmp_path)
    assert len(made.train) == 600
    assert {name: len(text) for name, text in measured[0].items()} == {"train": 40, "dev": 40}


def test_without_parallel_text_each_language_has_a_part_that_no_other_has():
    parts = [own % 10 for own in np.split(own_parts(30, 3), [4, 7])]
    assert sorted(np.concatenate(parts)) == list(range(10))


def test_neighbours_are_of_every_other_language():
    points = np.random.default_rng(0).normal(size=(30, 8)).astype(np.float32)
    every = [Vectors(np.arange(30) + 30 * k, points) for k in range(3)]
    table = neighbours.find(every, 90, 2, 0)
    assert table.shape == (90, 4)
    for piece, row in enumerate(table):
        others = [k for k in range(3) if k != piece // 30]
        assert (row // 30).tolist() == [others[0], others[0], others[1], others[1]]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Two rows, trained for an epoch."""
    workdir = tmp_path_factory.mktemp("three") / "run"
    made = config(f"{OPTIONS}{ALL_THREE}+no-parallel", **SMALL)
    with on_devices(1):
        return workdir, Experiment(made, workdir).run()


def test_a_run_measures_every_pair_and_reports_their_mean(finished):
    workdir, table = finished
    pairs = ["-".join(pair) for pair in itertools.combinations(LANGUAGES, 2)]
    for (row, _), result in results(workdir).items():
        metrics = result["metrics"]
        for name in ("mu", "retrieval_1", "translation_0", "mrr_1", "alignment_f1_1"):
            whole = decoded(name)
            own = [metrics[str(whole._replace(language=pair))] for pair in pairs]
            assert metrics[name] == pytest.approx(np.mean(own), abs=1e-6), row
        assert {decoded(name).language for name in metrics} <= {"", *pairs}
    assert decoded("retrieval_en-fake2_8_forward") == Metric("retrieval", "en-fake2", 8, "forward")
    assert EVALUATORS["mu"].languages
    columns = pd.read_csv(workdir / "report" / "tables" / "results.csv").columns
    assert {"mu", "mu_fake-fake2", "retrieval_en-fake_deep", "mrr_0"} <= set(columns)
    assert "means over all pairs of en, fake and fake2" in table.replace("\n  ", " ")
    assert "mu_fake-fake2" in (workdir / "report" / "report.html").read_text("utf-8")
    assert "en-fake" not in (workdir / "report" / "tables" / "otherrows.md").read_text("utf-8")


def test_a_run_keeps_the_models_and_embeddings_of_all_languages(finished):
    workdir, _ = finished
    (kept,) = (workdir / "models").glob("rowlang-pos*")
    assert {path.name for path in kept.iterdir()} == set(LANGUAGES)
    (path,) = (workdir / "arrays").glob("rowlang-pos*")
    arrays = read_arrays(path)
    assert arrays.language_names == LANGUAGES
    assert np.bincount(arrays.token_languages).tolist() == [200] * 3
    for word in word_sample(arrays, 5):
        names = [str(arrays.token_names[n]) for n in word]
        assert names[1:] == [f"::{names[0]}", f"::::{names[0]}"]


def test_more_languages_have_more_positions_and_token_types():
    made = config("languages=en-f1-f2-f3-f4,row=1,scale=paper").models
    assert (made.positions, made.token_types) == (640, 5)
    usual = config("row=1,scale=paper").models
    assert (usual.positions, usual.token_types) == (512, 2)
