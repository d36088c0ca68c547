"""The experiment evaluate: what it stores is what the experiments' own evaluators found of the same
models, and the report shows it."""

import csv
import itertools
import json
from dataclasses import replace

import bilingual_run
import pytest
import small_run
from small_run import ROOT, config_of, on_devices

from xling_jax import evaluate
from xling_jax.experiments.evaluate import report
from xling_jax.experiments.evaluate.experiment import Experiment
from xling_jax.experiments.fake_english import experiment as fake_english
from xling_jax.runs import results, texts

RATES = {"training.learning_rate": 5e-3, "training.warmup_steps": 1}


def config(options, **changes):
    return config_of(ROOT / "configs" / "evaluate.py", options, {"sentences": 60, **changes})


def found(workdir):
    return {(r.row, r.seed): r.metrics for r in results.read_results(workdir / "results.json")}


@pytest.fixture(scope="module", autouse=True)
def one_device():
    with on_devices(1):
        yield


@pytest.mark.slow
def test_models_of_fake_english_score_as_in_their_run(tmp_path):
    rows, workdir, scored = "083", tmp_path / "trained", tmp_path / "scored"
    made = small_run.config(f"row={'+'.join(rows)},epochs=2", **RATES)
    fake_english.Experiment(made, workdir).run()
    models = "+".join(f"{workdir}/models/row{row}_seed{{seed}}/{{language}}" for row in rows)
    table = Experiment(config(f"model={models},run={workdir}"), scored).run()
    own, scores = found(workdir), found(scored)
    for row, name in itertools.product(rows, ("retrieval_0", "retrieval_1_p5", "mrr_1")):
        metric, _, rest = name.partition("_")
        of_pair = scores[f"row{row}", 0][f"{metric}_en-fake_{rest}"]
        assert of_pair == pytest.approx(own[row, 0][name], abs=1e-6), (row, name)
    shown = [f"row{row}" for row in rows]
    assert {row for row, _ in scores} == {*shown, "random_row0"}
    random, trained = scores["random_row0", 0], scores["row0", 0]
    assert random["pseudo_perplexity"] > 1.2 * trained["pseudo_perplexity"] > 10
    assert all(name in table for name in (*shown, "random[row0]"))


@pytest.fixture(scope="module")
def bilingual(tmp_path_factory):
    workdir = tmp_path_factory.mktemp("bilingual")
    _, metrics = bilingual_run.run(workdir, "row=default+sep_emb,pair=en-near-far")
    return workdir, metrics


def test_models_of_bilingual_runs_score_as_in_their_run(bilingual):
    workdir, metrics = bilingual
    embedded = texts.of_run(str(workdir), ("en", "near"))
    sentences = dict(zip(("en", "near"), embedded.pair("near").parallel(40, 3), strict=True))
    known = {("en", "near"): embedded.dictionary("near", "test_dictionary")}
    for row in ("default", "sep_emb"):
        folder = workdir / "models" / f"row{row}_seed0" / "{language}"
        scores = evaluate(folder, sentences, dictionaries=known).set_index(
            ["metric", "languages", "layer", "part"]
        )
        for metric in ("retrieval", "mrr", "mapped", "cka", "words"):
            own = metrics[row, 0][f"{metric}_near_1"]
            value = scores.value[metric, "en-near", 1, ""]
            assert value == pytest.approx(own, abs=0.01), (row, metric)


@pytest.mark.pictures
def test_three_languages_have_maps_a_tree_and_every_number_in_a_file(bilingual, tmp_path):
    workdir, _ = bilingual
    model = f"{workdir}/models/rowdefault_seed{{seed}}/{{language}}"
    made = config(f"model={model},languages=en-near-far,run={workdir}", row="models", sentences=40)
    table = Experiment(made, tmp_path).run()
    assert all(pair in table for pair in ("en-near", "en-far", "near-far"))
    report = tmp_path / "report"
    drawn = {path.stem for path in (report / "figures").glob("*.svg")}
    assert drawn >= {"layers", "pairs_default", "retrieval_default", "cka_default", "tree_default"}
    lines = (report / "tables" / "scores.csv").read_text().splitlines()
    (metrics,) = found(tmp_path).values()
    assert len(lines) == 1 + len(metrics)
    bounded = [name.removesuffix("_low") for name in metrics if name.endswith("_low")]
    assert "words_en-near_1" in bounded
    words = texts.of_run(str(workdir), ("en", "near")).dictionary("near", "test_dictionary")
    assert metrics["words_en-near_words"] == len(set(words.triples))
    for name in bounded:
        assert metrics[f"{name}_low"] <= metrics[name] <= metrics[f"{name}_high"], name
    value = metrics["retrieval_near-far_1_forward"]
    assert f"default,0,retrieval,near-far,1,forward,{value:.6g}" in lines
    assert metrics["cka_1"] == pytest.approx(
        sum(metrics[f"cka_{pair}_1"] for pair in ("en-near", "en-far", "near-far")) / 3
    )
    before = (tmp_path / "results.json").read_text()
    Experiment(made, tmp_path).run()
    assert (tmp_path / "results.json").read_text() == before


def test_every_column_of_panels_names_the_languages_beneath_it():
    layers = {layer: [[float("nan"), 0.5], [0.5, float("nan")]] for layer in range(13)}
    panels = report.heat("model", ["en", "fr"], layers).axes[:13]
    named = [axes.xaxis.get_tick_params()["labelbottom"] for axes in panels]
    assert named == [False] * 8 + [True] * 5


def test_embedded_languages_have_dictionaries_in_any_order(bilingual, tmp_path):
    model = f"{bilingual[0]}/models/rowdefault_seed{{seed}}/{{language}}"
    options = f"model={model},languages=near-en,run={bilingual[0]}"
    Experiment(config(options, row="models", sentences=40), tmp_path).run()
    (metrics,) = found(tmp_path).values()
    assert {"words_near-en_1", "translation_near-en_1"} <= metrics.keys()


def test_files_are_read_with_dictionaries_and_links(bilingual, tmp_path):
    workdir, _ = bilingual
    embedded = texts.of_run(str(workdir), ("en", "near"))
    sides = embedded.pair("near").parallel(30, 3)
    files = {name: tmp_path / f"{name}.txt" for name in ("en", "near")}
    for path, lines in zip(files.values(), sides, strict=True):
        path.write_text("\n".join(lines) + "\n\n\n")
    words, links = tmp_path / "words.txt", tmp_path / "links.txt"
    words.write_text("".join(f"{a}\t{b}\n" for a, b in embedded.pair("near").dictionary()[:40]))
    links.write_text("0-0 1p1\n" * 20)
    back = tmp_path / "back.txt"
    back.write_text("".join(f"{b}\t{a}\n" for a, b in embedded.pair("near").dictionary()))
    more = tmp_path / "more.txt"
    more.write_text("0-0\n" * 31)
    blank = tmp_path / "blank.txt"
    blank.write_text("\n".join(["", *sides[0]]) + "\n")
    narrow = tmp_path / "narrow.txt"
    narrow.write_text("\n".join([sides[0][0].replace(" ", "\u202f", 1), *sides[0][1:]]) + "\n")
    model = f"{workdir}/models/rowdefault_seed{{seed}}/{{language}}"
    options = f"model={model},languages=en-near"
    fields = {
        "row": "models",
        **{f"texts.{name}": str(path) for name, path in files.items()},
        "dictionaries.en_near": str(words),
        "links.en_near": str(links),
    }
    Experiment(config(options, **fields), tmp_path / "run").run()
    (metrics,) = found(tmp_path / "run").values()
    assert {"words_en-near_2", "mu_en-near", "alignment_f1_en-near_2"} <= set(metrics)
    assert metrics["words_en-near_words"] == 40 >= metrics["words_en-near_covered"]
    page = (tmp_path / "run" / "report" / "report.html").read_text()
    assert f"{metrics['words_en-near_covered']:.0f} of 40 (" in page and "spelled alike" in page
    stored = json.loads((tmp_path / "run" / "config.json").read_text())
    sources = {entry["source"] for entry in stored["texts"]}
    assert {str(words), str(links), *map(str, files.values())} <= sources

    for changes, message in (
        ({**fields, "texts.near": ""}, "texts.near is empty: give a file"),
        ({**fields, "texts.near": "synthetic"}, "some are synthetic and some are not"),
        ({**fields, "texts.en": str(blank), "texts.near": str(blank)}, "line 1 .* is blank"),
        ({**fields, "texts.en": str(narrow)}, "links.en_near: .*narrow.*line 1.* read as 2 words"),
        ({**fields, "dictionaries.en_near": "", "measures": ("cka", "mu")},
         "measures: mu needs dictionaries .*--config.dictionaries.en_near=FILE"),
        ({**fields, "links.en_near": "", "measures": ("alignment_f1",)},
         "measures: alignment_f1 needs links"),
        ({**fields, "row": "other"}, "there is no model 'other'"),
        ({**fields, "dictionaries.en_near": "/no"}, "dictionaries.en_near: .*/no"),
        ({**fields, "dictionaries.en_near": str(back)}, "en_near: .* of the wrong language alone"),
        ({**fields, "models.default": "/no"}, "models.default: .*/no"),
        ({**fields, "models.default": str(workdir)}, "is a run's folder: name one of its models"),
        ({**fields, "links.en_near": str(more)}, "links of 31 sentences, and .* has 30: give"),
    ):  # fmt: skip
        with pytest.raises((ValueError, FileNotFoundError), match=message):
            Experiment(config(options, **changes), tmp_path / "other")
    files["near"].write_text("\n".join(sides[1][:20]) + "\n")
    with pytest.raises(ValueError, match="texts.en, texts.near: .* ends after 20 lines"):
        Experiment(config(options, **fields), tmp_path / "other")


def test_folders_may_have_a_plus_and_names_are_apart(tmp_path):
    for name in ("a+b", "c", "random_c"):
        (tmp_path / name).mkdir()
    made = config(f"model={tmp_path}/a+b+{tmp_path}/c")
    assert dict(made.models) == {"a_b": f"{tmp_path}/a+b", "c": f"{tmp_path}/c"}
    assert made.sets["all"] == ("a_b", "c", "random_a_b") and made.texts.en == ""
    with pytest.raises(ValueError, match="random_c is what random weights are called"):
        config(f"model={tmp_path}/c+{tmp_path}/random_c")


def test_measures_belong_to_the_run_and_seeds_to_the_folder(bilingual, tmp_path):
    workdir, _ = bilingual
    run = f"run={workdir},languages=en-near"
    options = f"model={workdir}/models/rowdefault_seed{{seed}}/{{language}},{run}"
    only = {"row": "models", "measures": ("cka",)}
    table = Experiment(config(options, **only), tmp_path).run()
    assert "CKA" in table and "retr." not in table
    header = (tmp_path / "report" / "tables" / "models.csv").read_text().splitlines()[0]
    assert "cka_half_interval" in header and "cka_sd" not in header  # of one seed
    with pytest.raises(ValueError, match="measures"):
        Experiment(config(options, row="models", measures=("cka", "mrr")), tmp_path)
    one = f"model={workdir}/models/rowdefault_seed0/{{language}},{run},seeds=0+1,row=models"
    with pytest.raises(ValueError, match="put {seed} into its folder"):
        Experiment(config(one), tmp_path / "seeds")


def test_tables_have_every_measure_its_spread_and_what_seeds_lack(tmp_path):
    names = {"translation": [0.4, 0.6], "cka": [0.3, 0.5], "mapped": [0.3, 0.5], "words": [0.2]}
    ended = []
    for seed in (0, 1):
        own = {name: values[seed] for name, values in names.items() if seed < len(values)}
        found = {f"{name}{pair}_0": x for name, x in own.items() for pair in ("", "_en-fr")}
        ended.append(results.Replica("evaluate", "m", "m", seed, 0, found))
    results.write_results(tmp_path / "results.json", ended)
    report.write(tmp_path)
    columns = {"models": "translation", "pairs": "translation", "layers_cka": "L0"}
    for file, column in columns.items():
        (line,) = csv.DictReader(open(tmp_path / "report" / "tables" / f"{file}.csv"))
        assert float(line[f"{column}_sd"]) == pytest.approx(0.1), file
    page = (tmp_path / "report" / "report.html").read_text()
    assert "Row m: some of its 2 seeds lack a finite words_0, words_en-fr_0;" in page
    assert "Translation: of the dictionary&#39;s words paired one to one" in page
    assert page.count("Among half as many sentences each is found more easily") == 1
    alone = [replace(x, metrics={"translation_0": 0.5, "translation_1": 0.6}) for x in ended]
    results.write_results(tmp_path / "results.json", alone)
    assert ".600" in report.write(tmp_path)  # at its best layer


def test_a_run_that_is_not_there_says_how_to_make_it(tmp_path):
    with pytest.raises(ValueError, match="--config=configs/fake_english.py:epochs=40 --workdir="):
        Experiment(config(f"run={tmp_path}/no"), tmp_path / "run")
    made = config_of(ROOT / "configs" / "fake_english.py", "epochs=40", {})
    assert made.training.epochs == 40 and not made.overparam.epochs  # which are as many then
    assert config("").run == f"runs/{made.workdir}"
    assert "--config=configs/fake_english.py:epochs=40\n" in (ROOT / "README.md").read_text()
