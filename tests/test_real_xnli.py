"""D&S §5: languages with a vocabulary each are pretrained, exported, fine-tuned and compared."""

import contextlib
import dataclasses
import io
import itertools
import json
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from fake_zero_shot import fake_run
from real_xnli_run import config, run
from small_run import ROOT, config_of, on_devices

from xling_jax import devices
from xling_jax.batches.assembly import assemble
from xling_jax.batches.packing import Plan
from xling_jax.batches.setting import make, parse
from xling_jax.evaluators.text_encoder import TextEncoder
from xling_jax.experiments.fake_english.neighbours import quality, whole_pieces
from xling_jax.experiments.fake_english.programs import Programs
from xling_jax.experiments.real_xnli import claims, report
from xling_jax.experiments.real_xnli.data import export, read, sentences_to_find, words_to_find
from xling_jax.experiments.real_xnli.experiment import Experiment, transfer
from xling_jax.experiments.zero_shot import experiment as fine_tuning
from xling_jax.experiments.zero_shot import group
from xling_jax.experiments.zero_shot.pretrained import of_folders
from xling_jax.gather import gather
from xling_jax.models import heads, partition, stored
from xling_jax.models.bert import Bert, BertConfig
from xling_jax.report.claims import HELD, NOT_RUN, Evidence, RowEvidence
from xling_jax.report.frame import Run, decoded
from xling_jax.report.table import to_csv
from xling_jax.runs import results, store
from xling_jax.runs.texts import Embedded, Texts
from xling_jax.training.interruption import Interrupted
from xling_jax.training.loop import Diverged, Replica, stack
from xling_jax.vocabulary import neighbours
from xling_jax.vocabulary.pieces import BLANK

ABLATED = "lang-pos;shift-special;no-random;inv-order[near]"


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The rows of the table."""
    workdir = tmp_path_factory.mktemp("natural") / "whole"
    return workdir, run(workdir)


def test_every_row_is_pretrained_and_fine_tuned_and_stands_beside_the_paper(finished):
    workdir, table = finished
    found = {r.row: r.metrics for r in results.read_results(workdir / "results.json")}
    assert found.keys() == {"0", "3", "8", "30"}
    for metrics in found.values():
        own = [metrics[f"perplexity_dev_{name}"] for name in ("en", "near", "middle")]
        assert metrics["perplexity_dev"] == pytest.approx(np.exp(np.log(own).mean()), rel=1e-5)
    assert found["30"]["neighbours_known"] > 0
    tuned = results.read_results(workdir / "transfer" / "results.json")
    assert len(tuned) == 4
    lines = report.result(Run(workdir), report.board(workdir)).lines
    ours = {line.row: line.cells for line in lines if line.ours}
    for each in tuned:
        for name in ("en", "near", "middle"):
            metric = f"accuracy_{name}"
            shown = ours[each.row.split("/")[1]][metric].mean
            assert shown == pytest.approx(each.metrics[metric], abs=1e-6)
    decided = report.decide(Run(workdir), report.board(workdir))
    assert len(decided) == 5 and NOT_RUN not in {each.outcome for each in decided}
    assert table.count(claims.SOURCE) == 5 and "0.57" not in table and ".57±.02" in table
    assert "inv-order[near]" in table and "majority" in table
    assert "inverting-harms-the-inverted-language" in (
        workdir / "report" / "tables" / "claims.md"
    ).read_text("utf-8")


def test_a_copy_of_the_small_files_has_the_same_table(finished, tmp_path):
    workdir, table = finished
    for folder in (workdir, workdir / "transfer"):
        small = tmp_path / "small" / folder.relative_to(workdir)
        small.mkdir(parents=True)
        for name in (results.CONFIG, results.RESULTS):
            shutil.copy(folder / name, small)
    assert gather([tmp_path / "small"], tmp_path / "copy") == table


def nearest_share(x, y):
    """P@1 by cosine, mean of both directions."""
    x, y = (side / np.linalg.norm(side, axis=-1, keepdims=True) for side in (x, y))
    own = np.arange(len(x))
    return np.mean([(x @ y.T).argmax(1) == own, (y @ x.T).argmax(1) == own])


def test_translations_are_found_as_the_exported_models_find_them(finished):
    """Sentences and words of every pair of languages, of rows with their ablations."""
    workdir, _ = finished
    made, names = config(), ("en", "near", "middle")
    texts = Texts.of_corpora(made.corpora)
    for result in results.read_results(workdir / "results.json"):
        folder = workdir / "models" / f"row{result.row}_seed0"
        models = [stored.load(folder / name) for name in names]
        to_find = {
            "retrieval": sentences_to_find(made, texts),
            "translation": words_to_find(texts, [model.pieces for model in models]),
        }
        assert len(to_find["retrieval"]) == 30 and len(to_find["translation"]) > 100
        found = {"mu": []}
        for task, lines in to_find.items():
            vectors = [
                TextEncoder(model, (0, 1)).sentences(side)
                for model, side in zip(models, zip(*lines, strict=True), strict=True)
            ]
            for layer in (0, 1):
                for one, other in itertools.combinations(range(3), 2):
                    share = nearest_share(vectors[one][layer], vectors[other][layer])
                    found[f"{task}_{names[one]}-{names[other]}_{layer}"] = share
                    found.setdefault(f"{task}_{layer}", []).append(share)
                    found["mu"].append(share)
        for name, expected in found.items():
            assert result.metrics[name] == pytest.approx(np.mean(expected), abs=0.02), name


@pytest.mark.pictures
def test_the_report_has_pretraining_too(finished):
    workdir, table = finished
    report.write(workdir)
    page = (workdir / "report" / "report.html").read_text("utf-8")
    assert "Pretraining" in table and "mu_near-middle" in page and "over training" in page
    assert (workdir / "report" / "tables" / "pretraining.csv").exists()


def test_the_report_has_pretraining_of_layer_0_alone(finished, tmp_path):
    shutil.copy(finished[0] / results.CONFIG, tmp_path)
    ended = [
        dataclasses.replace(
            each, metrics={k: v for k, v in each.metrics.items() if not decoded(k).layer}
        )
        for each in results.read_results(finished[0] / results.RESULTS)
    ]
    results.write_results(tmp_path / results.RESULTS, ended)
    table = report.write(tmp_path)
    assert "Pretraining" in table and "perplexity alone" not in table


def test_the_same_command_again_trains_nothing(finished, capsys):
    workdir, table = finished
    before = (workdir / "results.json").read_bytes()
    assert run(workdir) == table
    assert (workdir / "results.json").read_bytes() == before
    told = capsys.readouterr().err
    assert "held out" in told and "compiled" not in told


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """The config, and its texts before and after they are cut into pieces."""
    made = config()
    return made, read(made)[1](tmp_path_factory.mktemp("texts"))


def test_other_fine_tuning_is_refused_before_anything_is_pretrained(finished, tmp_path):
    workdir = shutil.copytree(finished[0], tmp_path / "copy")
    other = {"transfer.settings.nli.epochs": 4}
    stored = (workdir / results.CONFIG).read_bytes()
    with pytest.raises(ValueError, match=r"(?s)transfer holds a run of another.*nli\.epochs: "):
        Experiment(config(**other), workdir)
    assert (workdir / results.CONFIG).read_bytes() == stored
    Experiment(config("tasks=none", **other), workdir)
    before, now = json.loads(stored), results.read_config(workdir / results.CONFIG)
    assert now["config"]["transfer"] == before["config"]["transfer"]  # of what is fine-tuned


def test_neighbours_are_right_if_a_dictionary_has_them(tmp_path):
    made = config(**{"vocabulary.size": 250})
    _, prepare = read(made)
    data = prepare(tmp_path)
    names, known = data.vocabulary.names(), whole_pieces(data.evaluated.words, 3)
    words = words_to_find(Texts.of_corpora(made.corpora), data.vocabulary.pieces)
    assert 20 < len(known) < len(words)
    assert {tuple(names[piece].removeprefix(BLANK) for piece in row) for row in known} < set(words)
    assert (known // data.vocabulary.shift == [0, 1, 2]).all()

    table = neighbours.nothing(data.vocabulary.size, 4)
    for own in range(3):
        table[known[:, own], ::2] = np.delete(known, own, axis=1)
    assert quality(data, table)["neighbours_right"] == 1
    table[known[:, 0], 0] += 1
    shares = quality(data, table)
    assert shares["neighbours_right"] == pytest.approx(5 / 6)
    assert (shares["neighbours_right_en-near"], shares["neighbours_right_en-middle"]) == (0.5, 1)


def setting_of(description, vocabulary, max_length):
    return make(
        parse(description, vocabulary.languages),
        vocabulary.languages,
        seed=0,
        learning_rate=1.0,
        max_length=max_length,
        shift=vocabulary.shift,
        neighbours=neighbours.nothing(vocabulary.size),
    )


@pytest.mark.parametrize("description", ["original", "inv-order[near]", ABLATED])
def test_an_exported_model_computes_what_the_pretrained_one_does(prepared, tmp_path, description):
    """A language's folder has its part of every table, its order and its special tokens."""
    made, data = prepared
    vocabulary = data.vocabulary
    sizes = {**made.models.to_dict(), "vocabulary_size": vocabulary.size, "initial_sd": 0.5}
    model = BertConfig(**sizes)
    params = heads.initial_params(model, 0)
    places = made.batches.max_length
    setting = setting_of(description, vocabulary, places)
    replica = Replica(row="x", description=description, seed=0, setting=setting)
    texts = Texts.of_corpora(made.corpora)
    export(tmp_path, replica, model, params, vocabulary, texts.normalization, places)
    store = jax.tree.map(jnp.asarray, data.train)
    for number, name in enumerate(vocabulary.languages):
        own = stored.load(tmp_path / "models" / "rowx_seed0" / name)
        every = texts.sample(name, made.corpora.train_sentences, tmp_path, limit=None)
        written = every.sentences  # as they were encoded
        first = int(np.flatnonzero(data.train.languages == number)[3])
        length = int(data.train.lengths[first])
        plan = Plan(jnp.array([first]), jnp.array([0]), jnp.zeros(length, jnp.int32))
        batch = assemble(store, plan, setting)
        (expected,) = Bert(model).apply(
            {"params": params},
            batch.tokens,
            batch.positions,
            batch.segments,
            batch.token_types,
            rows=((1, length),),
            layers=(model.layers,),
        )
        ids = own.encode([written[3]])[0]
        assert own.inverted == bool(setting.inverted[number])
        row = np.array([own.special_ids[0], *ids, own.special_ids[1]])
        assert own.config.positions == places < model.positions
        assert own.config.token_types == 1 < model.token_types
        (found,) = Bert(own.config).apply(
            {"params": own.params},
            row[None],
            np.arange(length)[None],
            None,
            np.zeros((1, length), np.int32),
            layers=(model.layers,),
        )
        np.testing.assert_allclose(found[0], expected, atol=2e-5)
        encoder = TextEncoder(own, layers=(2,))
        vectors = encoder.sentences([written[3]])
        np.testing.assert_allclose(vectors[0, 0], expected[1:-1].mean(0), atol=2e-5)


def test_what_a_language_has_for_itself_is_trained_and_swapped(finished, tmp_path, monkeypatch):
    """Row 8's positions differ by language: English ones are trained, others tested as they are."""
    workdir, _ = finished
    own = {"embeddings/positions", "embeddings/token_types"}
    folders = {x: workdir / "models" / "row8_seed0" / x for x in ("en", "near", "middle")}
    pretrained = of_folders(folders)
    assert pretrained.frozen == own
    plain = {x: workdir / "models" / "row0_seed0" / x for x in folders}
    assert not of_folders(plain).frozen
    made = []

    class Recorded(group.Predictor):
        def __init__(self, program, mesh, encoded, frozen):
            super().__init__(program, mesh, encoded, frozen)
            self.frozen, self.tree, self.seen = program.frozen, frozen, []
            made.append(self)

        def __call__(self, params):
            self.seen.append(params["encoder"]["embeddings"])
            return super().__call__(params)

    monkeypatch.setattr(group, "Predictor", Recorded)
    tuned = transfer(config(), workdir)
    tuned.row, tuned.seeds = "8", (0,)
    with on_devices(2):
        fine_tuning.Experiment(tuned, tmp_path).run()
    dev, *tests = made
    for first in (dev, tests[0]):
        assert not first.frozen and not first.tree
        before = pretrained.first.params["embeddings"]["positions"]
        assert (np.asarray(first.seen[-1]["positions"][0]) != before).any()
    for name, other in zip(("near", "middle"), tests[1:], strict=True):
        assert other.frozen == own and set(other.seen[-1]) == {"tokens", "norm"}
        np.testing.assert_array_equal(
            other.tree["embeddings"]["positions"],
            pretrained.models[name].params["embeddings"]["positions"],
        )


@pytest.mark.parametrize("inverted", [False, True])
def test_words_and_cuts_of_a_model_that_reads_backwards(finished, inverted):
    """Words stand where they were; of a long sentence the end is cut, wherever it stands."""
    workdir, _ = finished
    row = "row3_seed0" if inverted else "row0_seed0"
    own = stored.load(workdir / "models" / row / "near")
    assert own.inverted == inverted
    text = Embedded(config().corpora).pair("near").parallel(5, 7)[1][0]
    ((ids, number),) = own.encode_words([text])
    plain, number = (ids[::-1], number[::-1]) if inverted else (ids, number)
    np.testing.assert_array_equal(plain, own.ids[own.pieces.encode([text])[0]])
    assert sorted(set(number.tolist())) == list(range(len(text.split())))
    assert (np.diff(number) >= 0).all()
    config_of_short = dataclasses.replace(own.config, positions=12)
    tables = {**own.params["embeddings"]}
    tables["positions"] = tables["positions"][:12]
    params = {**own.params, "embeddings": tables}
    short = dataclasses.replace(own, config=config_of_short, params=params)
    assert number[-1] > number[9]
    whole = number[9] + (number[10] != number[9])  # words that end within the 10 places
    encoder, words = TextEncoder(short, layers=(2,)), text.split()
    states, is_there = encoder.occurrences([words], [range(len(words))])
    assert is_there.tolist() == [word < whole for word in range(number[-1] + 1)]
    beginning = ids[-10:] if inverted else ids[:10]
    alone = np.array([own.special_ids[0], *beginning, own.special_ids[1]])[None]
    (found,) = Bert(short.config).apply(
        {"params": params}, alone, np.arange(12)[None], None, np.zeros((1, 12), np.int32),
        layers=(2,),
    )  # fmt: skip
    order = np.arange(10)[::-1] if inverted else np.arange(10)
    of_first = 1 + order[number[:10] == 0]
    np.testing.assert_allclose(states[0, 0], found[0][of_first].mean(0), atol=2e-5)


@pytest.mark.slow
def test_a_row_written_out_is_fine_tuned_and_shown_and_one_that_diverged_is_not(tmp_path, capsys):
    rows = "row=epochs[2x]+learning-rate[1e30]"
    table = run(tmp_path, rows, **{"corpora.train_sentences": 100})
    assert "row learning-rate[1e30], seed 0 diverged" in capsys.readouterr().err
    (tuned,) = results.read_results(tmp_path / "transfer" / "results.json")
    assert tuned.row.startswith("en-near-middle/epochs_2x_/nli/") and "diverged" in table
    line = next(x for x in table.splitlines() if x.startswith("epochs[2x]"))  # of Table 3
    assert f"{tuned.metrics['accuracy_middle']:.2f}".lstrip("0") in line


@pytest.fixture
def pretrained(finished, tmp_path, monkeypatch):
    """The table's experiment, pretrained but not fine-tuned."""
    workdir, _ = finished
    shutil.copytree(workdir, tmp_path / "run", ignore=shutil.ignore_patterns("transfer"))
    with on_devices(2):
        experiment = Experiment(config(), tmp_path / "run")
    monkeypatch.setattr(experiment._pretraining, "run", lambda: "")
    return experiment


def test_a_run_that_is_asked_to_end_after_pretraining_goes_on_with_fine_tuning(
    pretrained, tmp_path
):
    pretrained._pretraining._run.was_interrupted = True
    with pytest.raises(Interrupted, match="before fine-tuning; the same command goes on"):
        pretrained.run()
    assert not (tmp_path / "run" / "transfer").exists()


@pytest.mark.parametrize("diverging", ["0", "03"])
def test_rows_that_diverge_do_not_keep_others_from_being_fine_tuned(
    pretrained, monkeypatch, diverging
):
    monkeypatch.setattr(pretrained, "_by_seeds", lambda: [[("0", 0)], [("3", 1)]])
    begun = []

    class FineTuning:
        was_interrupted = False

        def __init__(self, config, *_):
            begun.append(config.row)

        def run(self):
            if begun[-1] in diverging:
                raise Diverged("every replica diverged")

    monkeypatch.setattr(fine_tuning, "Experiment", FineTuning)
    has_nothing = diverging == "03"
    with pytest.raises(Diverged) if has_nothing else contextlib.nullcontext():
        pretrained.run()
    assert begun == ["0", "3"]


@pytest.mark.slow
def test_what_is_measured_does_not_depend_on_the_number_of_devices(prepared, tmp_path):
    made, data = prepared
    model = BertConfig(**{**made.models.to_dict(), "vocabulary_size": data.vocabulary.size})
    params = stack([partition.split([heads.initial_params(model, 0)])])
    setting = setting_of("original", data.vocabulary, made.batches.max_length)
    programs, found = Programs(made, data, (), tmp_path, {}), []
    for number in (1, 8):
        mesh = devices.make_mesh(1, jax.devices()[:number])
        places = [devices.place(x, mesh, devices.A_REPLICA) for x in (params, stack([setting]))]
        (metrics,), _ = programs.evaluator(model, mesh)(*places)
        found.append(metrics)
    assert found[0].keys() == found[1].keys()
    for name, value in found[0].items():
        is_perplexity = name.startswith("perplexity")
        assert value == pytest.approx(found[1][name], rel=1e-5, abs=0.05 * (not is_perplexity))
        if is_perplexity:
            assert value == pytest.approx(data.vocabulary.size, rel=0.1), name  # untrained


def test_the_claims_hold_on_the_papers_table():
    every = {line.row: line.cells.values() for line in claims.LINES}
    evidence = Evidence({row: RowEvidence(dict(zip(claims.ROLES, own, strict=True)))
                         for row, own in every.items()})  # fmt: skip
    assert {c.decide(evidence).outcome for c in claims.CLAIMS} == {HELD}


def test_a_row_is_judged_when_all_of_its_seeds_are_fine_tuned(tmp_path):
    config = {"experiment": "real_xnli", "config": {"corpora": {"languages": ["en", "de", "hi"]}}}
    (tmp_path / results.CONFIG).write_text(json.dumps(config))
    pretrained = [results.Replica("real_xnli", row, "", seed, 9) for row in "03" for seed in (0, 1)]
    results.write_results(tmp_path / results.RESULTS, pretrained)
    for seeds, is_told in (((0,), True), ((0, 1), False)):
        fake_run(tmp_path / report.TRANSFER, ["0", "3"], ["nli"], ["en-de-hi"], seeds)
        every = report.decide(Run(tmp_path), report.board(tmp_path))
        found = {each.claim.id: each.numbers for each in every}
        numbers = found["inverting-harms-the-inverted-language"]
        assert (numbers == "not fine-tuned (1 of 2 seeds are): rows 3, 0") == is_told


@pytest.mark.parametrize(("tasks", "more"), [(["nli"], " Not fine-tuned yet."), ([], "")])
def test_a_run_that_was_only_pretrained_says_so(tmp_path, tasks, more):
    config = {"experiment": "real_xnli", "config": {"transfer": {"tasks": tasks}}}
    (tmp_path / results.CONFIG).write_text(json.dumps(config))
    ended = results.Replica("real_xnli", "0", "original", 0, 9, {"perplexity_dev": 9.0})
    results.write_results(tmp_path / results.RESULTS, [ended])
    expected = f"Ended: 1 of 1 rows done; 1 of 1 replicas have ended.{more}"
    assert report.state(Run(tmp_path), report.board(tmp_path)) == expected


def test_seeds_are_those_that_were_fine_tuned_and_the_paper_inverted_german(tmp_path):
    names = ("en", "hi", "de", "source")  # the last is called as a column of the files
    options = f"languages={'-'.join(names)},row=0+3,seeds=0+1"
    made = config_of(ROOT / "configs" / "real_xnli.py", options, {})
    described = {
        tmp_path: store.describe(made, [], {row: made.rows[row] for row in "03"}),
        tmp_path / report.TRANSFER: store.describe(
            transfer(made, tmp_path), [], {f"{'-'.join(names)}/{row}/nli": row for row in "03"}
        ),
    }
    tuned = [f"{'-'.join(names)}/{row}/nli/16/0.0005/0.001" for row in "03"]
    for folder, rows in zip(described, ("03", tuned), strict=True):
        folder.mkdir(exist_ok=True)
        groups = [[[row, seed]] for row in rows for seed in (0, 1)]
        store.write(folder, described[folder] | {"groups": groups})
        ended = [
            results.Replica(
                "real_xnli" if folder == tmp_path else "zero_shot", row, "", seed, 9,
                {"accuracy_dev": 0.5, **{f"accuracy_{name}": 0.5 for name in names}},
                9 if seed and folder != tmp_path else None,
                fingerprint=described[folder]["fingerprint"],
            )
            for row in rows
            for seed in (0, 1)
        ]  # fmt: skip
        results.write_results(folder / "results.json", ended)
    table = report.result(Run(tmp_path), report.board(tmp_path))
    assert [(line.row, line.source, line.seeds) for line in table.lines[:3]] == [
        ("0", "ours", "1/2 (1 diverged)"), ("0", claims.SOURCE, "3"),
        ("3", "ours", "1/2 (1 diverged)"),
    ]  # fmt: skip
    written = pd.read_csv(io.StringIO(to_csv(table)))
    assert [*written["source"][:2]] == ["ours", claims.SOURCE]
    assert table.lines[1].cells["accuracy_hi"].mean == 0.45 and table.lines[3].row == claims.MBERT
    decided = {each.claim.id: each for each in report.decide(Run(tmp_path), report.board(tmp_path))}
    assert "seed 1 of row 3 diverged" in decided["inverting-harms-the-inverted-language"].numbers
