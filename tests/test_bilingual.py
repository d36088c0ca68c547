"""Bilingual experiments from a config to a table: rows, files, resuming, bad input."""

import json
import shutil

import jax.numpy as jnp
import numpy as np
import pytest
from small_run import ROOT, config_of

from xling_jax.batches.assembly import SPECIALS
from xling_jax.batches.streams import beginnings, sentence_starts
from xling_jax.experiments.bilingual import experiment, group
from xling_jax.experiments.bilingual.data import Preparer
from xling_jax.experiments.bilingual.experiment import Experiment
from xling_jax.experiments.bilingual.experiment import rows as rows_of
from xling_jax.experiments.bilingual.rows import parse
from xling_jax.experiments.bilingual.selection import Best
from xling_jax.experiments.bilingual.selection import read as read_best
from xling_jax.models import stored
from xling_jax.records import UNKNOWN
from xling_jax.runs import results
from xling_jax.runs.texts import Texts
from xling_jax.training import loop
from xling_jax.training.checkpoints import read_parameters
from xling_jax.training.step import RUNNING, State

SMALL = {
    "corpora.train_sentences": 400,
    "corpora.dev_sentences": 60,
    "corpora.test_sentences": 40,
    "corpora.synthetic.word_types": 200,
    "vocabulary.joint_size": 260,
    "vocabulary.own_size": 160,
    "batches.parts": 2,
    "batches.sequences": 4,
    "batches.length": 32,
    "models.layers": 2,
    "models.hidden": 16,
    "models.intermediate": 32,
    "models.positions": 32,
    "training.epochs": 3,
    "training.steps_per_epoch": 4,
    "training.steps_per_call": 2,
    "training.warmup_steps": 2,
    "evaluators.curve": (50, 100),
    "evaluators.row_lengths": (16,),
    "evaluators.sentences": 40,
}


def config(options="", **changes):
    return config_of(ROOT / "configs" / "bilingual.py", options or None, {**SMALL, **changes})


def run(workdir, options="", **changes):
    table = Experiment(config(options, **changes), workdir).run()
    return table, {
        (r.row, r.seed): r.metrics for r in results.read_results(workdir / "results.json")
    }


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Rows of each kind on the far pair."""
    workdir = tmp_path_factory.mktemp("runs") / "whole"
    names = "default+no_anchors+default_anchors+extra_anchors+sep_emb+sep_l1+far"
    changes = {"rows.sep_l1": "default-anchors;sep[layers/0]"}
    return workdir, *run(workdir, f"row={names},pair=en-far", **changes)


def test_every_row_trains_and_is_in_the_table(finished):
    workdir, table, metrics = finished
    assert len(metrics) == 7 and all(metrics.values())
    for row, _ in metrics:
        assert row in table
    stored = (workdir / "report/tables/table1.md").read_text()
    assert all(f"| {row} |" in stored for row, _ in metrics)
    for name in ("retrieval", "words", "perplexity_dev_en", "perplexity_dev_far"):
        assert name in metrics["default", 0]


def test_anchors_are_counted_as_the_row_says(finished):
    _, _, metrics = finished
    anchors = {row: found["anchors"] for (row, _), found in metrics.items()}
    assert anchors["no_anchors"] == anchors["sep_emb"] == 0
    assert 0 < anchors["default_anchors"]
    tokens = {row: found["anchor_tokens"] for (row, _), found in metrics.items()}
    assert tokens["extra_anchors"] > tokens["default"] > 0


def test_a_language_alone_has_nothing_to_translate(finished):
    _, _, metrics = finished
    assert "retrieval" not in metrics["far", 0] and "perplexity_dev_en" not in metrics["far", 0]


def test_the_best_checkpoint_is_kept_apart_from_the_latest(finished):
    workdir, _, metrics = finished
    folder = workdir / "checkpoints" / "rowdefault_seeds0" / group.BEST / "seed0"
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


def test_each_languages_model_is_stored(finished):
    workdir, _, _ = finished
    for row, size in [("default", 260), ("sep_emb", 160)]:
        models = [stored.load(workdir / "models" / f"row{row}_seed0" / n) for n in ("en", "far")]
        assert all(m.config.vocabulary_size == size for m in models)
        tables = [m.params["embeddings"]["tokens"] for m in models]
        assert np.array_equal(*tables) == (row == "default")
        layers = [m.params["layers"]["0"]["output"]["kernel"] for m in models]
        np.testing.assert_array_equal(*layers)
        assert models[1].language == "far" and len(models[1].encode(["a b ."])[0])


def test_text_from_disk_trains_to_the_same_bits_as_text_in_memory(finished, tmp_path):
    _, _, metrics = finished
    names = "row=default+extra_anchors+sep_l1,pair=en-far"
    changes = {"batches.resident_tokens": 0, "rows.sep_l1": "default-anchors;sep[layers/0]"}
    _, fed = run(tmp_path / "fed", names, **changes)
    assert fed == {key: metrics[key] for key in fed} and len(fed) == 3


@pytest.mark.parametrize("begin", ["anywhere", "sentence"])
def test_training_and_held_out_windows_begin_where_the_config_says(begin, tmp_path):
    made = config("pair=en-far", **{"batches.begin": begin})
    (row,) = rows_of(made)
    data = Preparer(made, tmp_path)(row)
    one = group.Group(made, tmp_path, row, [0], data, UNKNOWN)
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


def test_windows_may_begin_anywhere_from_disk_as_in_memory(tmp_path):
    changes = {"batches.begin": "anywhere"}
    _, resident = run(tmp_path / "memory", "pair=en-far", **changes)
    _, fed = run(tmp_path / "fed", "pair=en-far", **changes, **{"batches.resident_tokens": 0})
    assert resident == fed


def test_parameters_divided_among_devices_are_trained_evaluated_and_stored(finished, tmp_path):
    _, found = run(tmp_path, "row=sep_emb,pair=en-far", **{"devices.shard_parameters": True})
    whole = finished[2]["sep_emb", 0]
    assert found["sep_emb", 0] == pytest.approx(whole, rel=1e-3, abs=1e-3)


def test_seeds_side_by_side_train_as_each_does_alone(finished, tmp_path):
    names = "row=extra_anchors+extra-anchors-online,pair=en-far"
    _, both = run(tmp_path / "both", names + ",seeds=0+1", **{"devices.side_by_side": 2})
    _, alone = run(tmp_path / "alone", names + ",seeds=1")
    for key, found in alone.items():
        for name, value in found.items():
            assert both[key][name] == pytest.approx(value, rel=1e-3, abs=0.03), (key, name)
    _, _, metrics = finished
    loss = "perplexity_dev_en"
    assert both["extra_anchors", 0][loss] == pytest.approx(
        metrics["extra_anchors", 0][loss], rel=1e-4
    )


def test_separate_layers_start_from_shared_ones_of_another_run(finished, tmp_path):
    workdir, _, metrics = finished
    folder = workdir / "checkpoints" / "rowdefault_anchors_seeds0" / "best" / "seed0"
    still = {"training.learning_rate": 1e-9, "training.start_from": str(folder)}
    changes = {"rows.sep_l1": "default-anchors;sep[layers/0]", **still}
    _, started = run(tmp_path / "started", "row=sep_l1,pair=en-far", **changes)
    best = metrics["default_anchors", 0]["best_perplexity"]
    assert started["sep_l1", 0]["perplexity_dev_en"] == pytest.approx(best, rel=1e-4)
    with pytest.raises(ValueError, match="start_from=.*has other pieces"):
        run(tmp_path / "other", "row=default,pair=en-far", **still)
    with pytest.raises(FileNotFoundError, match="there is no best.json"):
        run(tmp_path / "gone", "row=default,pair=en-far", **{**still, "training.start_from": "x"})


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


def test_words_replaced_online_are_drawn_anew(finished, tmp_path):
    _, _, metrics = finished
    _, online = run(tmp_path / "online", "row=extra-anchors-online,pair=en-far")
    found = online["extra-anchors-online", 0]
    assert np.isfinite(found["perplexity_dev"])
    assert found["perplexity_dev"] != metrics["default", 0]["perplexity_dev"]


class Killed(Exception):
    pass


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


def test_a_run_cut_off_twice_ends_with_the_same_numbers(finished, tmp_path, monkeypatch):
    _, _, metrics = finished
    workdir, names = tmp_path / "broken", "row=default+sep_emb,pair=en-far"
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
    assert found == {key: metrics[key] for key in found} and len(found) == 2


def test_another_config_is_refused_in_the_same_workdir(finished):
    workdir, _, _ = finished
    with pytest.raises(ValueError, match="holds a run of another config.*\n.*corpora.far"):
        Experiment(config("row=default,pair=en-near"), workdir)


def test_a_table_grows_by_the_rows_and_seeds_that_it_is_asked_for(finished, tmp_path, monkeypatch):
    workdir, trained = tmp_path / "grown", []
    shutil.copytree(finished[0], workdir)

    def record(self, *_):
        trained.append([(replica.row, replica.seed) for replica in self._replicas])

    monkeypatch.setattr(group.Group, "run", record)
    new = "no-anchors;language-softmax"
    run(workdir, f"row=default+{new},seeds=0+1,pair=en-far")
    assert trained == [[("default", 1)], [(new, 0), (new, 1)]]
    stored = json.loads((workdir / "config.json").read_text())
    assert len(stored["groups"]) == 9 and stored["rows"].keys() == stored["steps"].keys()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"vocabulary.own_size": 10**5}, r"vocabulary\.own_size: size=100000 is too large"),
        ({"batches.sequences": 1, "batches.accumulate": 2}, "batches.accumulate=2"),
        ({"corpora.dev_sentences": 1}, r"corpora\.en\.dev: .* no window of 31"),
        ({"training.start_from": "gone"}, "there is no best.json"),
    ],
)  # fmt: skip
def test_an_error_in_any_row_is_found_before_the_first_is_trained_and_binds_nothing(
    tmp_path, monkeypatch, wrong, message
):
    trained = []
    monkeypatch.setattr(group.Group, "run", lambda self, *_: trained.append(self._row.name))
    names = "row=default+sep_emb,pair=en-far"
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        run(tmp_path, names, **wrong)
    assert not trained and not (tmp_path / "config.json").exists()
    monkeypatch.setattr(experiment.report, "write", lambda _: "")
    with pytest.raises(loop.Diverged):  # nothing is trained here, so there is no result
        run(tmp_path, names)
    assert trained == ["default", "sep_emb"] and (tmp_path / "config.json").exists()


def test_a_language_alone_among_three_is_not_compared_with_the_first():
    rows = {name: parse(name, f"only[{name}]", ("en", "fr", "ru")) for name in ("fr", "ru")}
    assert rows["ru"].languages == ("ru",)
    with pytest.raises(ValueError, match="compared with en, so name it too"):
        parse("mine", "only[fr|ru]", ("en", "fr", "ru"))
    assert parse("mine", "only[ru|en]", ("en", "fr", "ru")).languages == ("en", "ru")


def test_embedded_languages_are_paired_with_english_and_translate_nothing(tmp_path):
    with pytest.raises(ValueError, match="of which en comes first"):
        config("pair=far-near")
    given = Texts.of_corpora(config("pair=en-near-far").corpora)
    texts = [given.sources(name, "train")[0].lines for name in given.languages]
    lengths = [[len(line.split()) for line in text] for text in texts]
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert np.corrcoef(lengths[one], lengths[other])[0, 1] < 0.3


def state_of(value):
    return State(jnp.int32([0]), {"x": jnp.full((1, 2), value)}, {}, jnp.int32([RUNNING]))


def test_the_best_state_survives_what_is_not_finite_and_an_earlier_start(tmp_path):
    best = Best(tmp_path, [("0", 0)], "v")
    for step, value in [(1, float("nan")), (2, 5.0), (3, 6.0), (4, 4.0), (5, 4.0)]:
        best.offer(step, state_of(step), [value])
    assert read_best(tmp_path / "seed0") == (4, 4.0)
    best.offer(3, state_of(30), [3.5])  # after a start from step 2
    best.close()
    assert read_best(tmp_path / "seed0") == (3, 3.5)
    np.testing.assert_array_equal(read_parameters(tmp_path / "seed0", 3)["x"], [30, 30])


def write(folder, name, lines):
    path = folder / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


@pytest.fixture
def files(tmp_path):
    """Text, translations and dictionaries of three languages, as fields of the config."""
    random = np.random.default_rng(0)
    languages = {"en": "abcdefgh", "fr": "abcdeijk", "ru": "абвгдежз"}
    words = {
        name: ["".join(random.choice(list(letters), 4)) for _ in range(60)]
        for name, letters in languages.items()
    }
    drawn = [random.integers(60, size=8) for _ in range(300)]
    text = {name: [" ".join(own[k] for k in ks) for ks in drawn] for name, own in words.items()}
    fields = {}
    for name, lines in text.items():
        halves = [write(tmp_path, f"{name}.{k}", lines[k : 240 + k]) for k in (0, 1)]
        fields[f"corpora.{name}.train"] = "+".join(halves)
        fields[f"corpora.{name}.dev"] = write(tmp_path, f"{name}.dev", lines[200:260])
        if name != "en":
            fields[f"corpora.{name}.test_first"] = write(tmp_path, f"en-{name}", text["en"][260:])
            fields[f"corpora.{name}.test"] = write(tmp_path, f"{name}.test", lines[260:])
            pairs = [f"{a}\t{b}" for a, b in zip(words["en"], words[name], strict=True)]
            fields[f"corpora.{name}.dictionary"] = write(tmp_path, f"{name}.dict", pairs[:40])
            fields[f"corpora.{name}.test_dictionary"] = write(tmp_path, f"{name}.td", pairs[40:])
    sizes = {"vocabulary.joint_size": 120, "vocabulary.own_size": 60}
    return {**fields, **sizes, "corpora.train_sentences": 0, "corpora.dev_sentences": 0}


def test_files_of_three_languages_train_with_a_row_of_your_own(files, tmp_path):
    options = "row=extra-anchors;sep[layers/0],pair=en-fr-ru,seeds=0+1"
    table, metrics = run(tmp_path / "run", options, **files)
    assert len(metrics) == 2
    found = metrics["extra-anchors;sep[layers/0]", 1]
    assert {"retrieval_fr_0", "retrieval_ru_2", "words_fr_1", "perplexity_dev_ru"} <= set(found)
    assert "±" in table


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"corpora.fr.train": "gone.txt"}, r"corpora\.fr.*gone\.txt: no such file"),
        ({"corpora.ru.dev": ""}, r"corpora\.ru\.dev=.*: give files"),
        (
            {"corpora.fr.test_first": ""},
            r"corpora\.fr\.test and corpora\.fr\.test_first: give both",
        ),
        ({"corpora.fr.dictionary": ""}, r"corpora\.fr\.dictionary is empty: row extra"),
        ({"vocabulary.joint_size": 9000}, r"vocabulary\.joint_size: size=9000 is too large"),
        ({"batches.length": 64}, r"batches\.length=64: choose 2 to models\.positions=32"),
        (
            {"batches.begin": "line"},
            r"batches\.begin='line': give 'anywhere' or 'sentence'",
        ),
        ({"batches.accumulate": 0}, r"batches\.accumulate=0: give a whole number from 1"),
        ({"batches.resident_tokens": 2**31}, r"batches\.resident_tokens=.* to 2,147,483,647"),
        ({"evaluators.layers": (3,)}, r"evaluators\.layers=\(3,\): the model has layers 0\.\.2"),
        ({"batches.sequences": 5, "batches.parts": 1}, r"batches\.sequences=5 .* choose 8 "),
    ],
)
def test_bad_input_is_named_with_the_way_out(files, tmp_path, changes, message):
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        run(tmp_path / "run", "row=extra_anchors,pair=en-fr-ru", **{**files, **changes})
    assert not (tmp_path / "run" / "config.json").exists()


def test_parallel_files_of_unequal_length_are_refused(files, tmp_path):
    files["corpora.fr.test"] = write(tmp_path, "short", ["abcd"] * 3)
    with pytest.raises(
        ValueError, match=r"corpora\.fr\.test_first, corpora\.fr\.test: .*short ends after 3 lines"
    ):
        run(tmp_path / "run", "pair=en-fr-ru", **files)


@pytest.mark.parametrize(
    ("description", "message"),
    [
        ("sep-emb;extra-anchors", "extra-anchors and sep-emb exclude each other"),
        ("twin", "twin needs sep-emb"),
        ("sep-emb;twin;only[en]", "twin needs sep-emb, and stands with no only"),
        ("sep-emb;twin;wiki-cc", "wiki-cc needs two different languages"),
        ("sep", "'sep' needs an argument in brackets: sep.PATHS."),
        ("sep[]", "needs an argument in brackets"),
        ("sep[layers/0", "unknown modification 'sep.layers/0'"),
        ("sep[layers/0|layers/0]", "name each path once"),
        ("sep[layers/0|]", "name each path once"),
        ("sep-emb[2]", "sep-emb has no argument"),
        ("sep-emb;sep-emb", "'sep-emb' is there twice"),
        ("default;sep-emb", "default stands alone"),
        ("only[en];only[fr]", "only is given twice"),
        ("first[99]", "unknown modification 'first.99.'"),
        ("", "a part is empty"),
        ("sep-emb;", "a part is empty"),
        ("only[de]", "name languages among en, fr, each once"),
        ("no-anchors;default-anchors", "exclude each other"),
        ("seperate", "unknown modification 'seperate'"),
        ("only[fr|fr]", "name languages among en, fr, each once"),
        ("only[fr];extra-anchors", "extra-anchors needs two different languages"),
        ("language-softmax", "language-softmax needs a vocabulary for each language"),
        ("no-anchors;language-softmax;extra-anchors", "exclude each other"),
    ],
)
def test_descriptions_that_mean_nothing_are_refused(description, message):
    with pytest.raises(ValueError, match=message):
        parse("mine", description, ("en", "fr"))


@pytest.mark.parametrize("paths", ["layers/*/nothing", "layers/0..2", "layers/1..0", "mlm/x"])
def test_paths_without_parameters_are_refused_before_anything_is_written(paths, tmp_path):
    with pytest.raises(ValueError, match=r"row='sep\[.*\]': partition: no parameter lies under"):
        Experiment(config(f"row=sep[{paths}]"), tmp_path / "run")
    assert not (tmp_path / "run").exists()


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
        ("default", True),  # all pieces of a joint vocabulary are both languages'
        ("sep[layers/0]", True),
    ],
)
def test_random_words_of_rows_with_separate_parameters_are_of_the_language(
    row, is_inside, tmp_path_factory
):
    """W&C §4.3. Pieces that the other language has too are the language's own."""
    made = config(f"row={row},pair=en-near", **{"models.layers": 6})
    workdir = tmp_path_factory.getbasetemp() / "vocabularies"
    data = Preparer(made, workdir)(rows_of(made)[0])
    own = [set(ids.tolist()) - set(range(SPECIALS)) for ids in data.vocabulary.ids]
    if row == "default_anchors":
        assert len(own[0] & own[1]) > 10 and own[0] - own[1] and own[1] - own[0]
    bits = jnp.arange(2**16, dtype=jnp.uint32) * jnp.uint32(2654435761)
    for language, ids in enumerate(own):
        drawn, counts = np.unique(data.tables.choice(language).draw(bits), return_counts=True)
        assert set(drawn.tolist()) == (ids if is_inside else own[0] | own[1])
        assert counts.max() < 2 * counts.min()
