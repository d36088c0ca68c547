"""Bilingual experiments: rows train, are measured and stored as they say, and are gone on with."""

import dataclasses
import json
import shutil

import jax.numpy as jnp
import numpy as np
import pytest
from bilingual_run import config, run

from xling_jax import records
from xling_jax.batches import code_switch
from xling_jax.batches.streams import beginnings, sentence_starts
from xling_jax.experiments.bilingual import group
from xling_jax.experiments.bilingual.data import Preparer
from xling_jax.experiments.bilingual.experiment import Experiment
from xling_jax.experiments.bilingual.experiment import rows as rows_of
from xling_jax.experiments.bilingual.rows import parse
from xling_jax.experiments.bilingual.selection import Best
from xling_jax.models import partition, stored
from xling_jax.models.heads import is_candidate
from xling_jax.runs import results
from xling_jax.runs.best import Record
from xling_jax.runs.best import read as read_record
from xling_jax.runs.run import Run
from xling_jax.runs.store import models_of
from xling_jax.runs.texts import Texts
from xling_jax.training.checkpoints import read_parameters
from xling_jax.training.step import RUNNING, State
from xling_jax.vocabulary.pieces import SPECIALS


@pytest.fixture(scope="module")
def bilingual(tmp_path_factory):
    """A run with rows of each kind on the far pair: its workdir, table and metrics."""
    workdir = tmp_path_factory.mktemp("runs") / "whole"
    names = "default+default_anchors+extra_anchors+sep_emb+sep_l1+far"
    changes = {"rows.sep_l1": "default-anchors;sep[layers/0]"}
    return workdir, *run(workdir, f"row={names},pair=en-far", **changes)


# Rows.


def test_every_row_trains_and_is_in_the_table(bilingual):
    workdir, table, metrics = bilingual
    assert len(metrics) == 6 and all(metrics.values())
    for row, _ in metrics:
        assert row in table
    stored = (workdir / "report/tables/table1.md").read_text().replace("\\", "")  # Markdown
    assert all(f"| {row} |" in stored for row, _ in metrics)
    for name in ("retrieval", "words", "perplexity_dev_en", "perplexity_dev_far"):
        assert name in metrics["default", 0]


def test_anchors_are_counted_as_the_row_says(bilingual):
    _, _, metrics = bilingual
    anchors = {row: found["anchors"] for (row, _), found in metrics.items()}
    assert anchors["sep_emb"] == 0
    assert 0 < anchors["default_anchors"]
    tokens = {row: found["anchor_tokens"] for (row, _), found in metrics.items()}
    assert tokens["extra_anchors"] > tokens["default"] > 0


def test_fertility_is_the_number_of_pieces_of_a_word_of_training_text(bilingual, tmp_path):
    workdir, _, metrics = bilingual
    texts = Texts.of_corpora(config("pair=en-far").corpora)
    for row in ("default", "sep_emb"):
        for name in ("en", "far"):
            model = stored.load(workdir / "models" / f"row{row}_seed0" / name)
            lines = texts.sample(name, 10**6, tmp_path, limit=None).sentences
            words = sum(len(line.split()) for line in lines)
            pieces = sum(map(len, model.encode(lines)))
            assert metrics[row, 0][f"fertility_{name}"] == pytest.approx(pieces / words)


def test_a_language_alone_has_nothing_to_translate(bilingual):
    _, _, metrics = bilingual
    assert "retrieval" not in metrics["far", 0] and "perplexity_dev_en" not in metrics["far", 0]


def test_each_languages_model_is_stored(bilingual):
    workdir, _, _ = bilingual
    for row, size in [("default", 260), ("sep_emb", 160)]:
        models = [stored.load(workdir / "models" / f"row{row}_seed0" / n) for n in ("en", "far")]
        assert all(m.config.vocabulary_size == size for m in models)
        tables = [m.params["embeddings"]["tokens"] for m in models]
        assert np.array_equal(*tables) == (row == "default")
        special = [table[:SPECIALS] for table in tables]
        np.testing.assert_array_equal(*special)  # which sep_emb shares
        layers = [m.params["layers"]["0"]["output"]["kernel"] for m in models]
        np.testing.assert_array_equal(*layers)
        assert models[1].language == "far" and len(models[1].encode(["a b ."])[0])


@pytest.mark.slow
def test_text_from_disk_trains_to_the_same_bits_as_text_in_memory(bilingual, tmp_path):
    _, _, metrics = bilingual
    names = "row=extra_anchors+sep_l1,pair=en-far"
    changes = {"batches.resident_tokens": 0, "rows.sep_l1": "default-anchors;sep[layers/0]"}
    _, fed = run(tmp_path / "fed", names, **changes)
    assert fed == {key: metrics[key] for key in fed} and len(fed) == 2


@pytest.mark.parametrize("begin", ["anywhere", "sentence"])
def test_training_and_held_out_windows_begin_where_the_config_says(begin, tmp_path):
    made = config("pair=en-far", **{"batches.begin": begin})
    (row,) = rows_of(made)
    data = Preparer(made, tmp_path)(row)
    one = group.Group(made, Run(tmp_path, str), row, [0], data)
    windows = made.batches.length - 1
    starts = one._samplers[0].starts(0, np.arange(200))
    held_out = np.concatenate([np.ravel(x) for x in one._stream_perplexity()._starts[:1]])
    for found, tokens in (
        (starts, data.train.tokens[: data.train.sizes[0]]),
        (held_out[held_out >= 0], data.dev.tokens[: data.dev.sizes[0]]),
    ):
        allowed = beginnings(sentence_starts([tokens]), len(tokens), windows)
        assert set(found.tolist()) <= set(allowed.tolist()) or begin == "anywhere"
        assert len(set(found.tolist()) - set(allowed.tolist())) > 5 or begin == "sentence"


@pytest.mark.slow
def test_windows_may_begin_anywhere_from_disk_as_in_memory(tmp_path):
    changes, names = {"batches.begin": "anywhere"}, "row=extra_anchors,pair=en-far"
    _, resident = run(tmp_path / "memory", names, **changes)
    _, fed = run(tmp_path / "fed", names, **changes, **{"batches.resident_tokens": 0})
    assert resident == fed


@pytest.mark.slow
def test_parameters_divided_among_devices_are_trained_evaluated_and_stored(bilingual, tmp_path):
    _, found = run(tmp_path, "row=sep_emb,pair=en-far", 2, **{"devices.shard_parameters": True})
    whole = bilingual[2]["sep_emb", 0]
    assert found["sep_emb", 0] == pytest.approx(whole, rel=1e-3, abs=1e-3)


@pytest.fixture(scope="module")
def side_by_side(tmp_path_factory):
    """Metrics of two seeds in one program, with words replaced beforehand and online."""
    workdir, names = tmp_path_factory.mktemp("both"), "row=extra_anchors+extra-anchors-online"
    return run(workdir, names + ",pair=en-far,seeds=0+1", 2, **{"devices.side_by_side": 2})[1]


@pytest.mark.slow
def test_seeds_side_by_side_train_as_each_does_alone(bilingual, side_by_side, tmp_path):
    _, alone = run(tmp_path, "row=extra-anchors-online,pair=en-far,seeds=1")
    alone["extra_anchors", 0] = bilingual[2]["extra_anchors", 0]
    for key, found in alone.items():
        for name, value in found.items():
            assert side_by_side[key][name] == pytest.approx(value, rel=1e-3, abs=0.03), (key, name)
    key, loss = ("extra_anchors", 0), "perplexity_dev_en"
    assert side_by_side[key][loss] == pytest.approx(alone[key][loss], rel=1e-4)


@pytest.mark.slow
def test_words_replaced_online_are_drawn_anew(bilingual, side_by_side):
    found = side_by_side["extra-anchors-online", 0]["perplexity_dev"]
    others = side_by_side["extra_anchors", 0], bilingual[2]["default", 0]
    assert np.isfinite(found) and found not in [other["perplexity_dev"] for other in others]


def test_separate_layers_start_from_shared_ones_of_another_run(bilingual, tmp_path):
    workdir, _, metrics = bilingual
    folder = workdir / "checkpoints" / "rowdefault_anchors_seeds0" / "best" / "seed0"
    still = {"training.learning_rate": 1e-9, "training.start_from": str(folder)}
    changes = {"rows.sep_l1": "default-anchors;sep[layers/0]", **still}
    _, started = run(tmp_path / "started", "row=sep_l1,pair=en-far", **changes)
    best = metrics["default_anchors", 0]["best_perplexity"]
    assert started["sep_l1", 0]["perplexity_dev_en"] == pytest.approx(best, rel=1e-4)
    with pytest.raises(ValueError, match="start_from=.*has other pieces"):
        run(tmp_path / "other", "row=default,pair=en-far", **still)
    with pytest.raises(ValueError, match="start_from=.* has 2 heads, not 1: set models.heads=2"):
        run(tmp_path / "heads", "row=sep_l1,pair=en-far", **{**changes, "models.heads": 1})
    with pytest.raises(FileNotFoundError, match="there is no best.json"):
        run(tmp_path / "gone", "row=default,pair=en-far", **{**still, "training.start_from": "x"})


def test_embedded_languages_are_paired_with_english_and_translate_nothing(tmp_path):
    with pytest.raises(ValueError, match="of which en comes first"):
        config("pair=far-near")
    given = Texts.of_corpora(config("pair=en-near-far").corpora)
    texts = [given.sources(name, "train")[0].lines for name in given.languages]
    lengths = [[len(line.split()) for line in text] for text in texts]
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert np.corrcoef(lengths[one], lengths[other])[0, 1] < 0.3


def test_the_rows_of_the_paper_say_what_its_table_says():
    made = config("row=all,pair=en-far")
    rows = {name: parse(name, text, ("en", "far")) for name, text in made.rows.items()}
    assert [row for row in made.sets["all"] if rows[row].sharing == "joint"] == [
        "default",
        "wiki_cc",
        "extra_anchors",
    ]
    assert rows["sep_emb_l1_6"].partition[-1] == "layers/0..5"
    assert rows["sep_emb"].softmax == "language" and rows["sep_emb"].random_pieces == "inside"
    assert partition.PIECES in rows["sep_emb"].partition
    assert partition.TOKENS in parse("mine", "sep-emb", ("en", "far")).partition
    assert rows["sep_l1_3"].sharing == "union" and rows["sep_l1_3"].softmax == "shared"
    assert rows["wiki_cc"].is_other_domain and rows["far"].languages == ("far",)
    assert rows["en_twin"].languages == ("en", "twin") and rows["en_twin"].sharing == "separate"


def test_a_twin_reads_the_first_languages_text_with_a_vocabulary_of_its_own(tmp_path):
    made = config("row=en_twin,pair=en-far")
    data = Preparer(made, tmp_path)(rows_of(made)[0])
    assert data.files[0].folder == data.files[1].folder and not data.items
    assert data.vocabulary.way == "separate" and len(data.vocabulary.ids) == 2


SEP = ("sep_emb", "sep_l1_3", "sep_l1_6", "sep_emb_l1_3", "sep_emb_l1_6")


@pytest.mark.parametrize(
    ("row", "is_inside"),
    [
        *((row, True) for row in SEP),
        ("default-anchors;sep[layers/0..1/attention]", True),
        ("default-anchors;random-inside", True),
        ("default_anchors", False),
        ("no_anchors", False),
        ("default", False),
        ("sep[layers/0]", True),  # of a joint vocabulary those that occur in the language's text
    ],
)
def test_random_words_of_rows_with_separate_parameters_are_of_the_language(
    row, is_inside, tmp_path_factory
):
    """W&C §4.3. Pieces that the other language has too are the language's own."""
    special = set(range(SPECIALS))
    made = config(f"row={row},pair=en-near", **{"models.layers": 6})
    workdir = tmp_path_factory.getbasetemp() / "vocabularies"
    data = Preparer(made, workdir)(rows_of(made)[0])
    own = [set(ids.tolist()) - special for ids in data.vocabulary.ids]
    if data.vocabulary.way == "joint" and is_inside:
        assert own[0] == own[1]
        own = [set(each.read(0, each.total).tolist()) - special for each in data.files]
        assert own[0] - own[1] and own[1] - own[0]
    if row == "no_anchors":
        assert not own[0] & own[1]
    if row == "default_anchors":
        assert len(own[0] & own[1]) > 10 and own[0] - own[1] and own[1] - own[0]
    bits = jnp.arange(2**16, dtype=jnp.uint32) * jnp.uint32(2654435761)
    for language, ids in enumerate(own):
        drawn, counts = np.unique(data.tables.draw(language, bits), return_counts=True)
        assert set(drawn.tolist()) == (ids if is_inside else own[0] | own[1])
        assert counts.max() < 2 * counts.min()


OF_ITS_LANGUAGE = "language-softmax;random-inside"


@pytest.mark.parametrize(
    "row",
    [
        "default",
        "wiki_cc",
        "extra_anchors",
        "extra-anchors-online",
        "no-anchors;extra-anchors",
        "no-anchors;extra-anchors-online",
        "en_middle",
        "en_twin",
        "middle",
    ],
)
def test_what_may_stand_in_a_languages_text_can_be_predicted_and_no_more(row, tmp_path_factory):
    made = config(f"row={row},pair=en-near-middle", every_row=OF_ITS_LANGUAGE)
    asked = rows_of(made)[0]
    assert asked.softmax == "language" and asked.description == made.rows.get(row, row)
    data = Preparer(made, tmp_path_factory.getbasetemp() / "vocabularies")(asked)
    vocabulary, held_out = data.vocabulary, np.split(data.dev.tokens, data.dev.firsts[1:])
    special, is_joint = set(range(SPECIALS)), vocabulary.way == "joint"
    for number, (files, other) in enumerate(zip(data.files, held_out, strict=True)):
        trained = set(files.read(0, files.total).tolist())
        occurring = trained | set(other.tolist())
        known = special if is_joint else set(vocabulary.ids[number].tolist())
        is_switched = number in data.switch
        translations = data.switch[number].translation_ids.tolist() if is_switched else []
        predicted = data.tables.predicted(number)
        assert set(predicted.tolist()) == known | occurring | set(translations)
        assert (np.asarray(data.tables.local)[number, predicted] == np.arange(len(predicted))).all()
        drawn = data.tables.draw(number, jnp.arange(2000, dtype=jnp.uint32))
        assert set(drawn.tolist()) == (trained if is_joint else known) - special
        if is_switched:  # translations come only as the text is read
            probability = {"probability": 1.0, "most": 0.9}
            read = [
                code_switch.switch_window(
                    files.read, start, 500, data.switch[number], (0, start), **probability
                )
                for start in range(0, files.total, 500)
            ]
            put_in = {piece for window in read for piece in window.tokens.tolist()}
            assert put_in - occurring and put_in <= set(predicted.tolist())


@pytest.mark.slow
def test_rows_that_predict_their_languages_pieces_train_with_any_vocabulary(tmp_path):
    rows = "default+extra-anchors-online"
    _, metrics = run(
        tmp_path, f"row={rows},pair=en-near-middle", every_row=OF_ITS_LANGUAGE,
        **{"training.epochs": 1, "training.steps_per_epoch": 60},
    )  # fmt: skip
    for row, found in metrics.items():
        for language in ("en", "near", "middle"):
            model = stored.load(models_of(tmp_path, *row) / language)
            are_candidates = is_candidate(model.params["mlm"]["bias"])
            assert not are_candidates.all()
            assert 1 < found[f"perplexity_dev_{language}"] < are_candidates.sum()
    with pytest.raises(ValueError, match=f"every_row: {OF_ITS_LANGUAGE} there, nothing now"):
        run(tmp_path, f"row={rows},pair=en-near-middle")


# Selecting, stopping, going on and growing.


def read_best(folder):
    found = read_record(folder)
    return found.step, found.value


def test_checkpoints_of_many_seeds_have_a_name_that_file_systems_allow(tmp_path):
    found = [
        group.checkpoints_of(tmp_path, [("default", seed) for seed in range(first, 101)])
        for first in (0, 1)
    ]
    assert found[0] != found[1]
    found[0].mkdir(parents=True)


def test_the_best_checkpoint_is_kept_apart_from_the_latest(bilingual):
    workdir, _, metrics = bilingual
    folder = workdir / "checkpoints" / "rowdefault_seeds0" / "best" / "seed0"
    step, value = read_best(folder)
    lines = [json.loads(x) for x in (workdir / "metrics.jsonl").read_text().splitlines()]
    values = {
        x["step"]: x["metrics"]["perplexity_dev_en"]
        for x in lines
        if x["kind"] == "evaluation" and x["row"] == "default"
    }
    assert value == min(values.values()) and values[step] == value
    assert (folder / str(step)).is_dir()
    assert metrics["default", 0]["best_step"] == step
    assert metrics["default", 0]["perplexity_dev_en"] == value


def state_of(value):
    return State(jnp.int32([0]), {"x": jnp.full((1, 2), value)}, {}, jnp.int32([RUNNING]))


class Killed(Exception):
    pass


def test_the_best_state_survives_what_is_not_finite_and_an_earlier_start(tmp_path, monkeypatch):
    best = Best(tmp_path, [("0", 0)], "v", 1)
    for step, value in [(1, float("nan")), (2, 5.0), (3, 6.0), (4, 4.0), (5, 4.0)]:
        best.offer(step, state_of(step), [value])
    assert read_best(tmp_path / "seed0") == (4, 4.0)
    best.offer(3, state_of(30), [3.5])  # after a start from step 2
    assert read_best(tmp_path / "seed0") == (3, 3.5)
    np.testing.assert_array_equal(read_parameters(tmp_path / "seed0", 3)["x"], [30, 30])

    def cut_off(*_):
        raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(Record, "write", cut_off)
        best.offer(4, state_of(4), [3.0])
    assert best.read() == [None]  # the checkpoint of step 3 is gone
    for value, perplexity in ((40, 3.2), (41, 3.3)):  # repeated with other numbers
        best.offer(4, state_of(value), [perplexity])
        assert read_best(tmp_path / "seed0") == (4, perplexity)
        np.testing.assert_array_equal(read_parameters(tmp_path / "seed0", 4)["x"], [value] * 2)
    best.close()


def test_scores_are_those_of_what_is_selected_and_a_cut_changes_nothing(tmp_path, monkeypatch):
    """Of two seeds side by side one is best half-way, the other one at the end."""
    offer = Best.offer
    options = "row=sep_l1,pair=en-far,seeds=0+1"
    changes = {"devices.side_by_side": 2, "rows.sep_l1": "default-anchors;sep[layers/0]"}

    def offered(self, step, state, _):
        offer(self, step, state, [1.0 + abs(step - 6), 20.0 - step])

    def killed(*_):
        raise Killed

    monkeypatch.setattr(Best, "offer", offered)
    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(group.Group, "_scores", killed)
        run(tmp_path, options, **changes)
    assert not (tmp_path / "results.json").exists()
    table, _ = run(tmp_path, options, **changes)
    lines = [json.loads(x) for x in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    lines = [x for x in lines if x["kind"] == "evaluation"]
    assert {x["step"] for x in lines} == {4, 6, 8, 12}
    evaluated = {(x["seed"], x["step"]): x["metrics"] for x in lines}
    for replica, step in zip(results.read_results(tmp_path / "results.json"), (6, 12), strict=True):
        assert (replica.scored_at, replica.step, replica.metrics["best_step"]) == (step, 12, step)
        own = evaluated[replica.seed, step]
        assert {name: replica.metrics[name] for name in own} == own
    mean = np.mean([evaluated[0, 6]["perplexity_dev_en"], evaluated[1, 12]["perplexity_dev_en"]])
    assert f"{mean:.0f}±" in table


@pytest.mark.slow
def test_what_diverges_leaves_no_model(tmp_path, monkeypatch):
    """Of two seeds side by side the second one diverges after it had a best state."""
    store = group.Group._store

    def diverged(self, training):
        stopped_at = jnp.int32([RUNNING, 4])
        training.state = dataclasses.replace(training.state, stopped_at=stopped_at)
        store(self, training)

    monkeypatch.setattr(group.Group, "_store", diverged)
    run(tmp_path, "row=default,pair=en-far,seeds=0+1", **{"devices.side_by_side": 2})
    ended = results.read_results(tmp_path / "results.json")
    assert [each.diverged_at for each in ended] == [None, 4]
    assert [path.name for path in (tmp_path / "models").iterdir()] == ["rowdefault_seed0"]


def test_what_is_never_finite_on_held_out_text_leaves_no_model_and_says_so(tmp_path, capsys):
    """Losses are far above 709, whose exponential overflows, but finite."""
    given = {"training.learning_rate": 8.0, "training.warmup_steps": 0, "evaluators.names": ()}
    _, metrics = run(tmp_path, "row=near,seeds=0+1", **given)
    assert list(metrics) == [("near", 0), ("near", 1)]
    assert not any("perplexity_dev" in own or "best_step" in own for own in metrics.values())
    assert not (tmp_path / "models").exists()
    assert "row near, seed 1: no perplexity on held-out text was finite" in capsys.readouterr().err
    page = (tmp_path / "report" / "report.html").read_text()
    assert "No perplexity on held-out text was finite with some seed" in page
    assert "of the checkpoint with the lowest perplexity" not in page
    entries = json.loads((tmp_path / "results.json").read_text())
    assert all(None not in entry["metrics"].values() for entry in entries)


@pytest.mark.slow
def test_a_run_cut_off_twice_ends_with_the_same_numbers(bilingual, tmp_path, monkeypatch):
    _, _, metrics = bilingual
    workdir, names = tmp_path / "broken", "row=sep_emb,pair=en-far"
    evaluator = group.Group._evaluator
    for kill_at in (1, 3):
        calls = []

        def breaking(self, *args, kill_at=kill_at, calls=calls):
            evaluate = evaluator(self, *args)

            def counted(*args):
                found = evaluate(*args)
                calls.append(args[0])
                if len(calls) == kill_at:
                    raise Killed
                return found

            return counted

        monkeypatch.setattr(group.Group, "_evaluator", breaking)
        with pytest.raises(Killed):
            run(workdir, names)
    monkeypatch.setattr(group.Group, "_evaluator", evaluator)
    _, found = run(workdir, names)
    assert found == {("sep_emb", 0): metrics["sep_emb", 0]}


def test_another_config_is_refused_in_the_same_workdir(bilingual):
    workdir, _, _ = bilingual
    with pytest.raises(ValueError, match="holds a run of another config.*\n.*corpora.far"):
        Experiment(config("row=default,pair=en-near"), workdir)


def test_a_run_goes_on_only_with_the_pieces_that_it_began_with(bilingual, tmp_path):
    workdir = tmp_path / "run"
    shutil.copytree(bilingual[0], workdir)
    path, made = workdir / "config.json", config("row=default+far,pair=en-far")
    content = json.loads(path.read_text())
    for kind, other in (("prepared", {"vocabulary": "", "text": []}), ("tables", "")):
        changed = {**content, kind: {**content[kind], "far": other}}
        path.write_text(json.dumps(records.sealed(changed)))
        with pytest.raises(ValueError, match="row far: the text prepared now is not the one"):
            Experiment(made, workdir).prepare()
    older = {key: value for key, value in content.items() if key != "tables"}
    path.write_text(json.dumps(records.sealed(older)))
    Experiment(made, workdir).prepare()
    found = json.loads(path.read_text())["tables"]
    assert found == {row: content["tables"][row] for row in ("default", "far")}


def test_a_table_grows_by_the_rows_and_seeds_that_it_is_asked_for(bilingual, tmp_path, monkeypatch):
    workdir, trained = tmp_path / "grown", []
    shutil.copytree(bilingual[0], workdir)

    def record(self, *_):
        trained.append([(replica.row, replica.seed) for replica in self._replicas])

    monkeypatch.setattr(group.Group, "run", record)
    new = "no-anchors;language-softmax"
    run(workdir, f"row=default+{new},seeds=0+1,pair=en-far", 2)
    assert trained == [[("default", 1)], [(new, 0), (new, 1)]]
    stored = json.loads((workdir / "config.json").read_text())
    assert len(stored["groups"]) == len(bilingual[2]) + 2
    assert stored["rows"].keys() == stored["steps"].keys()


def test_a_checkpoint_to_start_from_must_stay_the_same(tmp_path):
    best, workdir = tmp_path / "best.json", tmp_path / "run"
    best.write_text('{"step": 3}')
    made = config("row=default,pair=en-far", **{"training.start_from": str(tmp_path)})
    Experiment(made, workdir)._run.store()
    (workdir / "checkpoints" / "row" / "1").mkdir(parents=True)  # as if it had trained
    Experiment(made, workdir)
    best.write_text('{"step": 4}')  # that run went on
    with pytest.raises(ValueError, match=r"the content of .*best\.json"):
        Experiment(made, workdir)
