"""evaluators.registry: names of metrics are read as they are written; what is named is computed."""

import fake_run
import pytest
import test_bilingual_report

from xling_jax.evaluators import registry
from xling_jax.evaluators.comparison import COMPARISONS
from xling_jax.experiments.bilingual import report as bilingual
from xling_jax.experiments.fake_english import report as fake_english
from xling_jax.report.frame import Metric, by_language, by_layer, decoded, named_deep
from xling_jax.report.table import FORMATS

EVIL = "<a>|_$\n9"


@pytest.mark.parametrize("language", ["near", "zh_2", "9", "forward", EVIL])
def test_every_name_is_read_as_it_is_written(language):
    for name, each in registry.EVALUATORS.items():
        for part in ("", *each.parts):
            for layer in (0, 12, "deep") if each.layers else ("",):
                for of in ("", language) if each.languages else ("",):
                    metric = Metric(name, of, layer, part)
                    assert decoded(str(metric)) == metric, str(metric)


def test_names_that_nobody_registered_stay_whole():
    for name in ("best_step", "accuracy_dev", "retrieval_cut_off_3", "knn_share"):
        assert str(decoded(name)) == name
    assert decoded("best_step") == Metric("best_step")


def test_metrics_are_picked_by_layer_and_by_language():
    values = {"cka_near_10": 1, "cka_near_2": 2, "cka_far_2": 3, "cka": 4, "words_near_2": 5}
    assert list(by_layer(values, "cka", "near").items()) == [(2, 2), (10, 1)]
    assert by_language({"perplexity_dev_a": 1, "perplexity_dev": 2}, "perplexity_dev") == {"a": 1}
    deep = named_deep({"retrieval_0": 1, "retrieval_8": 2, "mu": 3}, None)
    assert deep == {"retrieval_0": 1, "retrieval_deep": 2, "mu": 3}
    # Of what was measured beyond the paper's two layers, its deeper one is meant.
    values = {"retrieval_4": 1, "retrieval_8": 2, "retrieval_12": 3}
    assert named_deep(values, 12) == {"retrieval_4": 1, "retrieval_deep": 2, "retrieval_12": 3}
    assert named_deep(values, 9) == {"retrieval_4": 1, "retrieval_8": 2, "retrieval_deep": 3}


def test_what_is_named_is_computed_and_can_be_shown():
    assert set(COMPARISONS) == set(registry.names(registry.SENTENCES, registry.PIECES))
    # Evaluators compute the one metric of these kinds by themselves.
    assert registry.names(registry.DICTIONARY, registry.TOKENS) == ("alignment_f1", "words")
    assert {each.format for each in registry.EVALUATORS.values()} <= FORMATS.keys()


@pytest.mark.pictures
@pytest.mark.parametrize(
    ("run", "function", "write", "found", "column", "figure"),
    [(fake_run, "fake_metrics", fake_english.write, {"mrr_0": 0.25, "mrr_3": 0.5}, "mrr_deep",
      "curves_row0"),
     (test_bilingual_report, "metrics_of", bilingual.write, {"mrr": 0.5, "mrr_far_2": 0.5}, "mrr",
      "layers_far")],
    ids=["fake_english", "bilingual"],
)  # fmt: skip
def test_a_metric_that_is_registered_is_in_table_figure_and_page(
    tmp_path, monkeypatch, run, function, write, found, column, figure
):
    known = getattr(run, function)
    monkeypatch.setattr(run, function, lambda *given: {**known(*given), **found})
    row = "0" if run is fake_run else "default"
    text = write(run.fake_run(tmp_path / "run", [row]))
    report = tmp_path / "run" / "report"
    header = (report / "tables" / "table1.csv").read_text().split("\n")[0]
    assert "MRR" in text and column in header.split(",")
    page = (report / "report.html").read_text()
    assert "<th>MRR</th>" in page and "MRR: the mean reciprocal rank" in page
    drawn = (report / "figures" / f"{figure}.svg").read_text()
    assert "mrr" in drawn or "mean reciprocal rank" in drawn
