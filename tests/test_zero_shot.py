"""Zero-shot experiments from a config to results: tasks, rows, files, resuming, bad input."""

import dataclasses
import json
import re
import shutil
from contextlib import nullcontext
from types import SimpleNamespace

import jax
import numpy as np
import pytest
import safetensors.numpy
from bilingual_run import UNMEASURED
from bilingual_run import run as train
from flax import traverse_util
from small_run import ROOT, config_of, on_devices
from test_hugging_face_text import bert

from xling_jax import records
from xling_jax.evaluators.registry import paper_layers
from xling_jax.evaluators.word_order import contextual_links, similarity
from xling_jax.experiments.zero_shot import group, jobs, pretrained
from xling_jax.experiments.zero_shot.experiment import Experiment
from xling_jax.linalg import word_aligner
from xling_jax.models import stored
from xling_jax.models.hugging_face.text import HuggingFaceModel
from xling_jax.runs import best, results
from xling_jax.runs.store import models_of
from xling_jax.runs.texts import of_run
from xling_jax.tasks import TASKS
from xling_jax.tasks.task import pieces_of_words

SMALL = {
    "sentences.train": 60,
    "sentences.dev": 12,
    "sentences.test": 16,
    "sentences.parallel": 60,
    "models.arcs": 8,
    "models.relations": 8,
    "models.added": 1,
    "training.steps_per_call": 4,
    "settings.nli.epochs": 2,
    "settings.ner.epochs": 2,
    "settings.parsing.epochs": 2,
    "settings.ner.examples": 0,
    "settings.parsing.examples": 0,
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A bilingual model, one with separate embeddings, and one of each language alone."""
    workdir = tmp_path_factory.mktemp("models") / "trained"
    train(workdir, "row=default+sep_emb+alone,pair=en-far", **UNMEASURED)
    return workdir


def config(models, options="", **changes):
    return config_of(
        ROOT / "configs" / "zero_shot.py", f"pair=en-far,from={models}{options}",
        {**SMALL, **changes},
    )  # fmt: skip


def run(models, workdir, options="", devices=1, **changes):
    with on_devices(devices):
        table = Experiment(config(models, options, **changes), workdir).run()
    return table, {r.row: r.metrics for r in results.read_results(workdir / "results.json")}


@pytest.fixture(scope="module")
def finished(trained, tmp_path_factory):
    workdir = tmp_path_factory.mktemp("zero_shot") / "whole"
    return workdir, *run(trained, workdir, ",row=default,task=all")


def test_every_task_is_learned_and_tested_on_both_languages(finished):
    _, table, metrics = finished
    found = {name.split("/")[2]: values for name, values in metrics.items()}
    assert found.keys() == {"nli", "ner", "parsing"} and "default" in table
    for task, scores in {"nli": ["accuracy"], "ner": ["f1", "precision", "recall"],
                         "parsing": ["las", "uas"]}.items():  # fmt: skip
        values = found[task]
        for language in ("dev", "en", "far"):
            assert all(0 <= values[f"{score}_{language}"] <= 1 for score in scores)
        assert values["examples_far"] == 16 and values["best_epoch"] in (1, 2)
        assert 0 <= values["chance_far"] and 0 <= values["majority_en"] < 1
    assert found["parsing"]["uas_en"] >= found["parsing"]["las_en"] > 0


def test_a_task_beyond_the_papers_is_asked_for_by_name():
    assert config("RUN", ",task=all").tasks == ("nli", "ner", "parsing")
    assert "pos" not in config("RUN", ",task=all").settings
    assert config("RUN", ",task=all+pos").tasks == ("nli", "ner", "parsing", "pos")


@pytest.mark.slow
def test_a_table_grows_by_a_task_beyond_the_papers(trained, tmp_path):
    fields = {"sentences.train": 400}
    table, first = run(trained, tmp_path, ",row=default,task=pos", **fields)
    (values,) = first.values()
    assert values["accuracy_en"] > values["majority_en"] > values["chance_en"] > 0
    assert "POS" in table and (tmp_path / "report" / "tables" / "table1_pos.csv").exists()
    fields["settings.ner.epochs"] = 1  # the table grows
    table, both = run(trained, tmp_path, ",row=default,task=ner", **fields)
    assert "POS" in table and "NER" in table
    assert len(both) == 2 and both.items() >= first.items()


def test_a_setting_is_taken_at_its_best_epoch(finished):
    workdir, _, metrics = finished
    lines = [json.loads(x) for x in (workdir / "metrics.jsonl").read_text().splitlines()]
    for name, values in metrics.items():
        score = {"nli": "accuracy", "ner": "f1", "parsing": "las"}[name.split("/")[2]]
        own = [x["metrics"] for x in lines if x["kind"] == "evaluation" and x["row"] == name]
        assert len(own) == 2
        assert values[f"{score}_dev"] == max(x[f"{score}_dev"] for x in own)


def their_predictions(kept, language, task, items):
    """What `transformers` predicts with a model that was kept, as `Predictor` gives it."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    kind = "SequenceClassification" if task.name == "nli" else "TokenClassification"
    model = getattr(transformers, f"AutoModelFor{kind}").from_pretrained(kept / language).eval()
    reader, found = HuggingFaceModel.load(kept / language, language), []
    for each in task.encode(items, reader, reader.config.positions):
        logits = []
        for ids, types in zip(each.rows, each.types, strict=True):
            with torch.no_grad():
                given = (torch.tensor(x)[None] for x in (ids, types))
                named = zip(("input_ids", "token_type_ids"), given, strict=True)
                logits.append(model(**dict(named)).logits[0].numpy())
        chosen = logits if task.name == "nli" else [logits[row][at] for row, at in each.places]
        found.append((np.argmax(chosen, -1),))
    return found, tuple(model.config.id2label.values())


@pytest.mark.slow
def test_what_was_scored_is_kept_for_transformers(trained, tmp_path):
    enough = {"settings.nli.epochs": 60, "settings.nli.rates": ((3e-3, 3e-3),)}
    _, metrics = run(trained, tmp_path, ",row=sep_emb,task=nli", **enough)
    ((job, values),) = metrics.items()
    task = TASKS["nli"](**config(trained).nli.to_dict())
    both = of_run(str(trained), ("en", "far")).pair("far")
    made, scores, seen = task.make(both, 16, "test"), {}, set()
    for language, items in zip(("en", "far"), made, strict=True):
        predicted, labels = their_predictions(models_of(tmp_path, job, 0), language, task, items)
        seen |= {int(label) for (own,) in predicted for label in own}
        scores |= {f"accuracy_{language}": task.scores(items, predicted, labels)["accuracy"]}
    assert len(seen) > 1
    assert scores == {name: pytest.approx(values[name]) for name in scores}


def test_a_parser_is_kept_beside_its_encoder(finished):
    workdir, _, metrics = finished
    (job,) = (job for job in metrics if "/parsing/" in job)
    folder = models_of(workdir, job, 0) / "far"
    head = safetensors.numpy.load_file(folder / "parser.safetensors")
    assert head["arc_scores/kernel"].shape == (9, 1, 8)
    assert "mlm" not in HuggingFaceModel.load(folder, "far").params
    said = json.loads((folder / "config.json").read_text())  # not the pretraining's dropout
    assert said["hidden_dropout_prob"] == said["attention_probs_dropout_prob"] == 0.1


def test_the_last_epoch_may_be_tested_instead_and_a_resumed_run_does_so_too(trained, tmp_path):
    changes = {"settings.ner.select": "last"}
    _, found = run(trained, tmp_path, ",row=default", **changes)
    path = tmp_path / "metrics.jsonl"
    lines = [json.loads(x) for x in path.read_text().splitlines()]
    first, last = [x for x in lines if x["kind"] == "evaluation"]
    first["metrics"]["f1_dev"] = 2.0  # as if the first were the best
    path.write_text("".join(json.dumps(records.sealed(x)) + "\n" for x in lines))
    (tmp_path / "results.json").unlink()
    assert run(trained, tmp_path, ",row=default", **changes)[1] == found
    (replica,) = results.read_results(tmp_path / "results.json")
    assert replica.scored_at == last["step"] > first["step"]
    assert {name: replica.metrics[name] for name in last["metrics"]} == last["metrics"]
    assert "best_epoch" not in replica.metrics
    path.write_text("".join(json.dumps(records.sealed(x)) + "\n" for x in lines if x != first))
    (tmp_path / "results.json").unlink()
    assert run(trained, tmp_path, ",row=default", **changes)[1] == found


def test_the_search_of_dufter_and_schuetze_tests_the_last_epoch(trained):
    for search, select in {"one": "best", "paper": "best", "dufter": "last"}.items():
        settings = config(trained, f",search={search}").settings
        assert {settings[task].select for task in settings} == {select}


@pytest.mark.parametrize("row", ["default", "default;first[2]", "ü" * 140])
def test_checkpoints_of_many_settings_have_a_name_that_file_systems_allow(tmp_path, row):
    members = [(f"en-far/{row}/nli/4/{rate}e-06/0.000125", 0) for rate in range(1, 30)]
    paths = [group.checkpoints_of(tmp_path, members[:number]) for number in (28, 29)]
    assert len({*paths}) == 2
    for path in paths:
        assert re.fullmatch(r"[\w.-]+", path.name)
        path.mkdir(parents=True)
    short = group.checkpoints_of(tmp_path, [("en-far/default/ner/16/0.0005/0.002", 3)])
    assert short.name == "en-far_default_ner_16-0.0005-0.002_seed3"  # which resumes older runs


class Killed(Exception):
    pass


@pytest.mark.slow
def test_settings_side_by_side_cut_off_after_an_epoch_end_with_the_same_numbers(
    trained, tmp_path, monkeypatch
):
    changes = {"settings.ner.rates": ((5e-4, 2e-3), (1e-3, 1e-3))}
    _, whole = run(trained, tmp_path / "whole", ",row=sep_emb", 2, **changes)
    (members,) = json.loads((tmp_path / "whole/config.json").read_text())["groups"]
    assert members == [[name, 0] for name in whole] and len(whole) == 2
    evaluator, calls = group.Group._evaluator, []

    def breaking(self, *args):
        evaluate = evaluator(self, *args)

        def killed(*args):
            found = evaluate(*args)
            calls.append(args[0])
            if len(calls) == 2:
                raise Killed
            return found

        return killed

    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(group.Group, "_evaluator", breaking)
        run(trained, tmp_path / "cut", ",row=sep_emb", 2, **changes)
    (folder,) = (tmp_path / "cut" / "checkpoints").iterdir()
    assert (folder / str(calls[0])).is_dir()
    (tmp_path / "cut" / "metrics.jsonl").unlink()  # a log, from which nothing is read back
    _, found = run(trained, tmp_path / "cut", ",row=sep_emb", 2, **changes)
    assert found == whole
    for name in whole:
        for language in ("en", "far"):
            kept = [models_of(tmp_path / x, name, 0) / language for x in ("whole", "cut")]
            first, second = ((x / "model.safetensors").read_bytes() for x in kept)
            assert first == second


@pytest.mark.slow
def test_a_setting_that_diverges_leaves_the_others_alone(trained, tmp_path):
    changes = {"settings.parsing.rates": ((5e-4, 2e-3), (1e38, 1e38))}
    table, found = run(trained, tmp_path, ",row=default,task=parsing", 2, **changes)
    good, bad = found.values()
    assert good["las_en"] > 0 and not bad and "default" in table
    kept = [(models_of(tmp_path, name, 0) / "en").is_dir() for name in found]
    assert kept == [True, False]


def test_what_was_kept_from_the_middle_of_a_training_is_dropped(trained, tmp_path):
    table, _ = run(trained, tmp_path, ",row=default", keep_models=False)
    lines = [json.loads(x) for x in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    (result,) = results.read_results(tmp_path / "results.json")
    folder = models_of(tmp_path, result.row, 0)
    assert not folder.exists() and "default" in table and lines
    (tmp_path / "results.json").unlink()  # as if it had been cut off before its result
    best.Record(result.scored_at + 1, -1.0).write(folder)
    run(trained, tmp_path, ",row=default")
    assert not folder.exists()


def test_layers_of_monolingual_models_are_read_through_a_map(trained, tmp_path):
    table, found = run(trained, tmp_path, ",row=alone;first[1];map", word_order=True)
    ((name, values),) = found.items()
    assert name.startswith("en-far/alone;first[1];map/ner/") and "alone;first[1];map" in table
    assert 0 <= values["f1_far"] <= 1 and 0 < values["order_far"] < 1


@pytest.mark.parametrize("known", ["", "synthetic"])
def test_the_order_of_words_is_that_in_which_models_read(trained, tmp_path, known):
    changes = {"word_order": True, "parallel.far.links": known}
    with on_devices(1):
        experiment = Experiment(config(trained, ",row=default", **changes), tmp_path)
    job = jobs.Job("en-far", jobs.parse("default", "default"), "ner", str(trained))
    found = pretrained.of_folders(job.folders(0))
    backwards = dataclasses.replace(found.models["far"], inverted=True)
    both = [found, dataclasses.replace(found, models={**found.models, "far": backwards})]
    sentences, given = experiment._texts.parallel("en-far", "far")
    assert bool(given) == bool(known)
    layer = paper_layers(found.config.layers)[1]
    for read, is_inverted in zip(both, (False, True), strict=True):
        experiment._orders.clear()
        links = given or contextual_links(*read.models.values(), layer, sentences)
        order = experiment._word_order(job, 0, read)["order_far"]
        assert order == similarity(links, is_inverted) != similarity(links, not is_inverted)


def test_words_of_models_that_share_nothing_are_linked_by_the_aligner(trained, tmp_path):
    """Wherever the models lie, which new layers on them leaves as they are."""
    (tmp_path / "given").symlink_to(trained / "models")
    orders = []
    for source, models in (("", "alone"), ("given/row{language}_seed{seed}/{language}", "given")):
        options = f",models={tmp_path / source}" * bool(source) + f",row={models};first[1]"
        made = config(trained, options, word_order=True)
        (job,) = jobs.jobs(made)
        with on_devices(1):
            experiment = Experiment(made, tmp_path / models / "run")
            orders.append(experiment._word_order(job, 0, experiment._pretrained(job, 0)))
    sentences, _ = experiment._texts.parallel("en-far", "far")
    models = experiment._read(job, 0).models.values()
    links = list(word_aligner.align(*pretrained.words(*models, sentences, one_by_one=False)))
    assert orders == [{"order_far": similarity(links)}] * 2


def test_a_table_of_zeros_is_nothing_to_transfer(trained, monkeypatch):
    job = jobs.Job("en-far", jobs.parse("default", "default"), "ner", str(trained))
    found = pretrained.of_folders(job.folders(0))
    assert found.is_shared
    first = traverse_util.flatten_dict(dict(found.first.params), sep="/")
    first["embeddings/token_types"] = zeros = np.zeros_like(first["embeddings/token_types"])
    other = {path: zeros if leaf is zeros else leaf + 1 for path, leaf in first.items()}
    apart = {
        language: dataclasses.replace(
            found.first, params=traverse_util.unflatten_dict(params, sep="/"), own=None
        )
        for language, params in (("en", first), ("far", other))
    }
    monkeypatch.setattr(pretrained.folders, "load", lambda _, language: apart[language])
    assert not pretrained.of_folders(job.folders(0)).is_shared


def test_what_languages_do_not_share_is_not_trained(trained, monkeypatch):
    for row, frozen in [("default", set()), ("sep_emb", {"embeddings"})]:
        job = jobs.Job("en-far", jobs.parse(row, row), "ner", str(trained))
        found = pretrained.of_folders(job.folders(0))
        assert {path.split("/")[0] for path in found.frozen} == frozen
        # Of folders that do not say it, what differs is a language's own.
        unsaid = {x: dataclasses.replace(m, own=None) for x, m in found.models.items()}
        monkeypatch.setattr(pretrained.folders, "load", lambda _, name, of=unsaid: of[name])
        assert pretrained.of_folders(job.folders(0)).frozen == found.frozen
        monkeypatch.undo()
        own = found.own("far")
        if frozen:
            table = found.models["far"].params["embeddings"]["tokens"]
            np.testing.assert_array_equal(own["embeddings"]["tokens"], table)


def test_embeddings_may_stay_as_they_are(trained, finished):
    """As they do by default in inference, where they are kept once for both languages."""
    workdir, _, metrics = finished
    before = stored.load(trained / "models/rowdefault_seed0/en").params
    for name in metrics:
        folders = [models_of(workdir, name, 0) / language for language in ("en", "far")]
        after = [HuggingFaceModel.load(each, each.name).params for each in folders]
        is_trained = "/nli/" not in name
        for own in after:
            same = jax.tree.map(np.array_equal, own["embeddings"], dict(before["embeddings"]))
            assert all(jax.tree.leaves(same)) != is_trained, name
            assert not np.array_equal(
                own["layers"]["0"]["output"]["kernel"], before["layers"]["0"]["output"]["kernel"]
            )
        files = [each / "model.safetensors" for each in folders]
        assert files[0].samefile(files[1]), name


def test_words_are_written_as_the_model_writes_them(trained):
    model = stored.load(trained / "models/rowdefault_seed0/en")
    (found,) = pieces_of_words(model, [["the", "“", "", "the"]])
    assert found[0].tolist() == found[3].tolist() == model.encode(["the"])[0].tolist()
    assert found[1].tolist() == model.encode(['"'])[0].tolist()
    assert found[2].tolist() == [model.special_ids[1]]


@pytest.fixture
def files(tmp_path):
    sentence = "the\tO\nJohn\tB-PER\nof\tI-PER\nsees\tO\n\n"
    fields = {}
    sizes = {"en.train": 21, "en.dev": 19, "en.test": 20, "far.test": 18}
    for name, number in sizes.items():
        path = tmp_path / f"{name}.tsv"
        path.write_text(sentence * number)
        fields[f"texts.ner.{name}"] = str(path)
    return fields


def test_files_are_learned_from(trained, tmp_path, files):
    quick = {"settings.ner.epochs": 12, "settings.ner.rates": ((5e-3, 2e-2),)}
    _, found = run(trained, tmp_path / "run", ",row=sep_emb", **files, **quick)
    ((name, values),) = found.items()
    assert name.startswith("en-far/sep_emb/ner/") and values["f1_en"] > 0.5
    task = TASKS["ner"]()
    for language in ("en", "far"):
        items = task.read(files[f"texts.ner.{language}.test"], language)
        kept = models_of(tmp_path / "run", name, 0)
        predicted, labels = their_predictions(kept, language, task, items)
        assert task.scores(items, predicted, labels)["f1"] == values[f"f1_{language}"]


def test_models_with_token_types_that_were_not_trained_are_refused(trained, tmp_path, monkeypatch):
    read = stored.config_of
    monkeypatch.setattr(
        stored, "config_of", lambda folder: dataclasses.replace(read(folder), token_types=2)
    )
    with pytest.raises(ValueError, match="en has 2 token types, .* pretrain row sep_emb anew"):
        run(trained, tmp_path / "run", ",row=sep_emb")
    assert not (tmp_path / "run" / "config.json").exists()


def test_labels_of_another_set_are_refused_and_single_ones_are_said(trained, tmp_path, files):
    far = tmp_path / "far.test.tsv"
    text = far.read_text()
    far.write_text(text.replace("PER", "GPE"))
    message = r"texts\.ner\.far\.test: .* it has O, B-GPE, I-GPE, and learned are O, B-PER, I-PER"
    with pytest.raises(ValueError, match=message):
        run(trained, tmp_path, ",row=default", **files)
    assert not (tmp_path / "config.json").exists()
    far.write_text(f"{text}猫\tB-LOC\n\n")
    _, found = run(trained, tmp_path, ",row=default", **files)
    ((_, values),) = found.items()
    assert values["unknown_far"] == 2 and "unknown_en" not in values
    page = (tmp_path / "report/report.html").read_text()
    assert "words with them are always wrong: 2 (far)." in page
    assert values["unwritten_far"] > values.get("unwritten_en", 0)
    assert "pieces that the model does not know, at most of a row: " in page


@pytest.mark.parametrize("part", ["train", "dev"])
def test_examples_of_one_language_are_not_tested_in_another(trained, tmp_path, files, part):
    copy = tmp_path / "copy.tsv"
    copy.write_text((tmp_path / f"en.{part}.tsv").read_text() + "\n")
    wrong = files | {"texts.ner.far.test": str(copy)}
    message = rf"texts\.ner\.far\.test: .*copy.tsv has the examples of texts\.ner\.en\.{part}: give"
    with pytest.raises(ValueError, match=message):
        run(trained, tmp_path / "run", ",row=default", **wrong)
    assert not (tmp_path / "run" / "config.json").exists()


def test_two_languages_with_the_same_tests_are_said(trained, tmp_path, files, capsys):
    """As Fake-English may have, which reads the text of English."""
    same = files | {"texts.ner.far.test": files["texts.ner.en.test"]}
    _, found = run(trained, tmp_path / "run", ",row=default", **same)
    message = (
        r"texts\.ner\.far\.test: .* has the examples of texts\.ner\.en\.test: is it text in far"
    )
    assert found and re.search(message, capsys.readouterr().err)


def test_models_from_elsewhere_are_fine_tuned(tmp_path, files):
    bert(tmp_path / "bert")
    fields = {f"texts.ner.{x}": y for x, y in (("de.test", files["texts.ner.far.test"]),)}
    fields |= {name: path for name, path in files.items() if ".en." in name}
    changes = {**SMALL, **fields, "settings.ner.epochs": 20, "models.dropout": 0.0}
    changes["settings.ner.rates"] = ((5e-3, 2e-2),)
    options = f"pair=en-de,task=ner,models={tmp_path / 'bert'}"
    made = config_of(ROOT / "configs" / "zero_shot.py", options, changes)
    with on_devices(1):
        table = Experiment(made, tmp_path / "run").run()
    (found,) = results.read_results(tmp_path / "run" / "results.json")
    assert "bert" in table and found.row.startswith("en-de/bert/ner/")
    assert found.metrics["f1_en"] == found.metrics["f1_de"] > 0.5  # the same text and model
    kept = models_of(tmp_path / "run", found.row, 0)
    weights = [(kept / name / "model.safetensors").read_bytes() for name in ("en", "de")]
    assert weights[0] == weights[1]
    another = config_of(ROOT / "configs" / "zero_shot.py", f"{options},seeds=1", changes)
    Experiment(another, tmp_path / "run")  # a second seed of fine-tuning
    bert(tmp_path / "bert", seed=1)
    with pytest.raises(ValueError, match=r"the content of en-de/bert_seed1/en/model\.safetensors"):
        Experiment(another, tmp_path / "run")
    (tmp_path / "bert" / "tokenizer.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"pretrained\.bert: .*tokenizer\.json: no such"):
        Experiment(made, tmp_path / "other")
    made.row = "default"
    with pytest.raises(ValueError, match="row=default: there is no model 'default' among bert:"):
        Experiment(made, tmp_path / "other")


@pytest.mark.parametrize(
    ("options", "changes", "message"),
    [
        (",task=gone", {}, r"tasks=\('gone',\): give a tuple of 1 or more, each once: 'nli'"),
        ("", {"tasks": ("pos",)}, r"tasks: settings\.pos is missing .*task=all\+pos"),
        (",row=gone", {}, r"runs\.en-far: .*rowgone_seed0.* holds no model\. Train it with"),
        (",row=default", {"texts.ner.far.test": "gone.tsv"}, r"texts\.ner\.far\.test: .*gone\.tsv"),
        (",row=default", {"texts.ner.en.dev": ""}, r"texts\.ner\.en\.dev is empty"),
        (",row=alone", {}, "models of one language each share nothing"),
        (",row=default;map", {}, "say which layer's states are mapped"),
        (",row=default;first[7]", {}, r"first\[7\] of a model of 2 layers"),
        (",row=default+default;first[7]", {}, r"first\[7\] of a model of 2 layers"),
        (
            ",row=alone;first[1];map",
            {"parallel.far.first": ""},
            r"parallel\.far: give files for both",
        ),
        (
            ",row=alone;first[1];map",
            {"parallel.far.links": __file__},
            r"parallel\.far: give files for both",
        ),
        (
            ",row=default,task=nli",
            {"models.train_own": True},
            r"settings\.nli\.embeddings=False none: set settings\.nli\.embeddings=True, or",
        ),
        (",row=default,seeds=3", {}, r"rowdefault_seed3.*seeds=3 --workdir"),
    ],
)
def test_bad_input_is_named_with_the_way_out(trained, tmp_path, options, changes, message):
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        run(trained, tmp_path, options, **changes)
    assert not any((tmp_path / name).exists() for name in ("config.json", "results.json"))


@pytest.mark.parametrize(
    ("description", "message"),
    [
        ("default;last[2]", r"unknown modification 'last\[2\]': choose from first, map"),
        ("default;first", "needs an argument in brackets"),
        ("default;first[]", "needs an argument in brackets"),
        *(
            (f"default;first[{bad}]", r"'first\[.*\]': give a whole number from 0")
            for bad in ("-1", "１", "1_0", "2.0", "9" * 30)
        ),
        ("default;first[1];first[2]", "first is given twice"),
        ("default;first[1];map;map", "'map' is there twice"),
        ("default;first[1];map[2]", "map has no argument"),
        ("default;;map", "a part is empty"),
        ("default;", "a part is empty"),
        (";first[1]", "begin with a row of the pretraining"),
        ("first[1];map", "begin with a row of the pretraining"),
        ("../default", "begin with a row of the pretraining"),
    ],
)
def test_descriptions_that_mean_nothing_are_refused(description, message):
    with pytest.raises(ValueError, match=message):
        jobs.parse("mine", description)


def test_batches_that_processes_cannot_share_are_refused_before_anything_is_read(monkeypatch):
    made = config("nowhere", tasks=("nli",))
    six_devices = [SimpleNamespace(process_index=number // 2) for number in range(6)]
    monkeypatch.setattr(jax, "devices", lambda: six_devices)
    assert jobs.sharing_of("nli", 18, 1, 0) == six_devices
    assert jobs.sharing_of("nli", 15, 1, 0) == six_devices[::2]  # one of each process
    made.settings.nli.batches, made.settings.nli.rates = (16,), ((1e-4, 1e-4),) * 3
    jobs.require_sharing(made)  # each process has a setting of its own
    for changes in ({"side_by_side": 1}, {"side_by_side": 0, "replica_axis_at_most": 1}):
        made.devices.update(changes)
        with pytest.raises(ValueError, match=r"nli.batches: 3 processes .* of 16; choose 18"):
            jobs.require_sharing(made)
    made.settings.nli.batches = (18,)
    jobs.require_sharing(made)


def test_settings_of_one_name_are_refused():
    made = config("nowhere", tasks=("nli",))
    made.settings.nli.batches, made.settings.nli.rates = (
        (16,),
        ((1e-3, 1.00000001e-3), (1e-3, 1e-3)),
    )
    with pytest.raises(ValueError, match=r"settings\.nli\.batches and \.rates: 16/0.001/0.001 is"):
        jobs.choices(made, "nli")


def test_another_setting_is_refused_in_the_same_workdir(trained, finished):
    workdir, _, _ = finished
    with pytest.raises(ValueError, match=r"sentences\.train: 60 there, 61 now"):
        run(trained, workdir, ",row=default,task=all", **{"sentences.train": 61})


TEXT = r"the content of en-far/far.txt \(far\)"


def test_a_run_may_be_moved_but_not_be_another(trained, finished, tmp_path):
    workdir, table, _ = finished
    moved = tmp_path / "moved"
    shutil.copytree(trained, moved, ignore=shutil.ignore_patterns("checkpoints", "tokens"))
    assert run(moved, workdir, ",row=default,task=all")[0] == table
    stored_config = json.loads((moved / "config.json").read_text())
    stored_config["config"]["training"]["learning_rate"] *= 2
    (moved / "config.json").write_text(json.dumps(records.sealed(stored_config)))
    with pytest.raises(ValueError, match=r"the content of en-far \(runs\)"):
        Experiment(config(moved, ",row=sep_emb"), workdir)
    weights = moved / "models" / "rowdefault_seed0" / "far" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-4] + b"\0\0\0\0")
    shutil.copy(trained / "config.json", moved / "config.json")
    with pytest.raises(ValueError, match=r"en-far/rowdefault_seed0/far/model\.safetensors"):
        Experiment(config(moved, ",row=default"), workdir)
    made = Experiment(config(moved, ",row=default"), tmp_path / "late")
    shutil.copy(trained / weights.relative_to(moved), weights)
    with pytest.raises(ValueError, match=f"{weights} is not what it was when this run began: put"):
        made.run()
    again = tmp_path / "again"
    shutil.copytree(workdir, again)
    for digest, refused in [("1", nullcontext()), ("2", pytest.raises(ValueError, match=TEXT))]:
        text = {"source": "far.txt", "language": "far", "field": "train", "sha256": digest}
        stored_config = json.loads((trained / "config.json").read_text()) | {"texts": [text]}
        (moved / "config.json").write_text(json.dumps(records.sealed(stored_config)))
        with refused:
            assert run(moved, again, ",row=default,task=all")[0] == table
    (moved / "config.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"runs\.en-far: .*config\.json is not there"):
        Experiment(config(moved, ",row=default"), tmp_path / "unknown")


def test_a_field_of_one_task_is_not_that_of_another(trained):
    made = config(trained, **{"settings.ner.epochs": 7})
    assert made.settings.ner.epochs == 7 and made.settings.parsing.epochs == 2
