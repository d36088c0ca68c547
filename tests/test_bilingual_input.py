"""Texts, fields and rows given to bilingual experiments: used, or refused with the way out."""

from pathlib import Path

import numpy as np
import pytest
from bilingual_run import config, run

from xling_jax.experiments.bilingual import experiment, group
from xling_jax.experiments.bilingual.data import Preparer
from xling_jax.experiments.bilingual.experiment import Experiment
from xling_jax.experiments.bilingual.rows import parse
from xling_jax.training import loop


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
    counts = {"corpora.train_sentences": 0, "corpora.dev_sentences": 0}
    return {**fields, **sizes, **counts, "models.layers": 1, "evaluators.layers": ()}  # all


@pytest.mark.slow
def test_files_of_three_languages_train_with_a_row_of_your_own(files, tmp_path):
    options = "row=extra-anchors;sep[layers/0],pair=en-fr-ru,seeds=0+1"
    table, metrics = run(tmp_path / "run", options, **files)
    assert len(metrics) == 2
    found = metrics["extra-anchors;sep[layers/0]", 1]
    assert {"retrieval_fr_0", "retrieval_ru_1", "words_fr_1", "perplexity_dev_ru"} <= set(found)
    assert "±" in table


@pytest.mark.parametrize(("sentences", "is_counted"), [(0, True), (100, False)])
def test_the_text_that_another_domain_is_as_long_as_is_hashed(
    sentences, is_counted, files, tmp_path
):
    files |= {f"corpora.{name}.other": files[f"corpora.{name}.train"] for name in ("fr", "ru")}
    files["corpora.train_sentences"] = sentences
    made = config("row=wiki_cc,pair=en-fr-ru", **files)
    found = Preparer(made, tmp_path).manifest(experiment.rows(made))
    fields = {entry["field"] for entry in found if entry["language"] == "fr"}
    assert ("train" in fields) == is_counted and "other" in fields


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
        ({"corpora.en.dictionary": "x"}, r"corpora\.en\.dictionary: .* give it for fr, ru"),
        ({"corpora.en.test_dictionary": "x"}, r"en\.test_dictionary: .* give it for fr, ru"),
        ({"vocabulary.joint_size": 9000}, r"joint_size, .*, corpora\.ru\.train: size=9000 is too"),
        (
            {"corpora.dev_sentences": 9999},
            r"corpora\.en\.dev, corpora\.dev_sentences: 9999 sentences are wanted, but .*: lower",
        ),
        ({"batches.length": 64}, r"batches\.length=64: choose 3 to models\.positions=48"),
        ({"models.token_types": 2}, r"models\.token_types=2: .* choose 1"),
        (
            {"batches.begin": "line"},
            r"batches\.begin='line': give 'anywhere' or 'sentence'",
        ),
        ({"batches.accumulate": 0}, r"batches\.accumulate=0: give a whole number from 1"),
        ({"batches.resident_tokens": 2**31}, r"batches\.resident_tokens=.* to 2,147,483,647"),
        ({"evaluators.layers": (3,)}, r"evaluators\.layers=\(3,\): the model has layers 0\.\.1"),
        ({"batches.sequences": 5, "batches.parts": 1}, r"batches\.sequences=5 .* choose 8 "),
    ],
)
def test_bad_input_is_named_with_the_way_out(files, tmp_path, changes, message):
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        run(tmp_path / "run", "row=extra_anchors,pair=en-fr-ru", 8, **{**files, **changes})
    assert not (tmp_path / "run" / "config.json").exists()


def test_training_text_of_the_first_language_is_no_side_of_a_test(files, tmp_path):
    files["corpora.fr.test_first"] = files["corpora.en.train"].partition("+")[0]
    with pytest.raises(ValueError, match=r"en\.0 is both train and test_first of en"):
        run(tmp_path / "run", "row=default,pair=en-fr-ru", 8, **files)


def test_text_that_the_vocabulary_cannot_write_is_refused(files, tmp_path):
    files["corpora.fr.dev"] = write(tmp_path, "other.dev", ["狗猫人水 水人猫狗"] * 60)
    with pytest.raises(ValueError, match=r"fr\.dev: \d+ % of its pieces are \[UNK\].* or more tr"):
        run(tmp_path / "run", "row=default,pair=en-fr-ru", 8, **files)


@pytest.mark.parametrize(
    ("row", "purpose", "message"),
    [
        ("sep_emb", "train", r"own_size, corpora\.ru\.train: size=60 is too large"),
        ("default", "train", r"ru\.train, corpora\.train_.*: \d+ tokens are no window of 31"),
        ("wiki_cc", "other", r"ru\.other: 2 sentences, .*ru\.train has 480: .*train_sentences=2,"),
    ],
)
def test_a_language_with_too_little_text_is_named(files, tmp_path, row, purpose, message):
    files |= {f"corpora.{name}.other": files[f"corpora.{name}.train"] for name in ("fr", "ru")}
    files[f"corpora.ru.{purpose}"] = write(tmp_path, "few", ["абвг", "дежз"])
    with pytest.raises(ValueError, match=message):
        Experiment(config(f"row={row},pair=en-fr-ru", **files), tmp_path / "run").prepare()


def test_a_dictionary_without_a_word_of_the_text_is_named(files, tmp_path):
    files["corpora.ru.dictionary"] = write(tmp_path, "zh", ["abcd\t狗", "efgh\t猫"])
    made = Experiment(config("row=extra_anchors,pair=en-fr-ru", **files), tmp_path / "run")
    with pytest.raises(ValueError, match=r"^corpora\.ru\.dictionary: no word of ru .*; give"):
        made.prepare()


def test_no_file_is_read_for_an_embedded_language(files, tmp_path):
    own = {"corpora.near.dictionary": files["corpora.fr.dictionary"]}
    with pytest.raises(ValueError, match=r"corpora\.near\.dictionary=.*fr\.dict: all text of emb"):
        run(tmp_path / "run", "row=extra_anchors,pair=en-near", **own)


def test_parallel_files_of_unequal_length_are_refused(files, tmp_path):
    files["corpora.fr.test"] = write(tmp_path, "short", ["abcd"] * 3)
    with pytest.raises(
        ValueError, match=r"corpora\.fr\.test_first, corpora\.fr\.test: .*short ends after 3 lines"
    ):
        run(tmp_path / "run", "pair=en-fr-ru", **files)
    made = {path.name for path in tmp_path.glob("run/*")}
    assert not made & {"vocabulary", "tokens"}  # it is found before the long work


@pytest.mark.parametrize("purpose", ["dictionary", "test_dictionary"])
def test_a_dictionary_in_the_wrong_direction_is_refused(files, tmp_path, purpose):
    field = f"corpora.ru.{purpose}"
    pairs = [line.split("\t") for line in Path(files[field]).read_text("utf-8").splitlines()]
    files[field] = write(tmp_path, "ru-en", [f"{b.title()}\t{a}" for a, b in pairs])
    with pytest.raises(ValueError, match=rf"{field}: \d+ of its words .* alone, 0 in"):
        run(tmp_path / "run", "row=extra_anchors,pair=en-fr-ru", **files)
    assert not {path.name for path in tmp_path.glob("run/*")} & {"vocabulary", "tokens"}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"vocabulary.own_size": 10**5}, r"own_size, corpora\.en\.train: size=100000 is too large"),
        ({"batches.sequences": 1, "batches.accumulate": 2}, "batches.accumulate=2"),
        ({"corpora.dev_sentences": 1}, r"en\.dev, corpora\.dev_.*: \d+ tokens are no window of 31"),
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


@pytest.mark.parametrize("purpose", ["train", "dev"])
def test_text_that_changed_since_it_was_hashed_is_refused_by_name(files, tmp_path, purpose):
    made = Experiment(config("row=sep_emb,pair=en-fr-ru", **files), tmp_path / "run")
    path = Path(files[f"corpora.fr.{purpose}"].partition("+")[0])
    path.write_text(path.read_text("utf-8") + "abcd ijke\n", "utf-8")
    with pytest.raises(ValueError, match=rf"{path} is not what it was when this run began: put"):
        made.prepare()
    assert not (tmp_path / "run" / "config.json").exists()


def test_a_language_alone_among_three_is_not_compared_with_the_first():
    rows = {name: parse(name, f"only[{name}]", ("en", "fr", "ru")) for name in ("fr", "ru")}
    assert rows["ru"].languages == ("ru",)
    with pytest.raises(ValueError, match="compared with en, so name it too"):
        parse("mine", "only[fr|ru]", ("en", "fr", "ru"))
    assert parse("mine", "only[ru|en]", ("en", "fr", "ru")).languages == ("en", "ru")


@pytest.mark.parametrize(
    ("description", "message"),
    [
        ("sep-emb;extra-anchors", "extra-anchors and sep-emb exclude each other"),
        ("shared-special;no-anchors", "shared-special needs sep-emb"),
        ("sep-emb;shared-special;sep[*]", r"sep\[\*\] separates what shared-special shares"),
        ("twin", "twin needs sep-emb"),
        ("sep-emb;twin;only[en]", "twin needs sep-emb, and cannot be combined with only"),
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
    ],
)
def test_descriptions_that_mean_nothing_are_refused(description, message):
    with pytest.raises(ValueError, match=message):
        parse("mine", description, ("en", "fr"))


@pytest.mark.parametrize(
    ("every", "message"),
    [
        ("language-softmaxes", "every_row: unknown modification 'language-softmaxes'"),
        ("default", "every_row: unknown modification 'default'"),
        (
            "extra-anchors",
            r"row='sep_emb' .*: with every_row='extra-anchors': extra-anchors and sep-emb exclude",
        ),
    ],
)
def test_what_every_row_has_must_go_with_each(every, message):
    with pytest.raises(ValueError, match=message):
        experiment.rows(config("row=default+sep_emb", every_row=every))


def test_what_every_row_has_may_be_in_a_row_too():
    made = config("row=default+sep_l1_3", every_row="sep[layers/1|mlm];random-inside")
    default, separate = experiment.rows(made)
    assert default.partition == ("layers/1", "mlm") and default.random_pieces == "inside"
    assert separate.partition == ("layers/0..2", "layers/1", "mlm")
    made = config("row=only[en];random-inside", every_row="random-inside;only[en]")
    assert experiment.rows(made)[0].languages == ("en",)


@pytest.mark.parametrize("paths", ["layers/*/nothing", "layers/0..2", "layers/1..0", "mlm/x"])
def test_paths_without_parameters_are_refused_before_anything_is_written(paths, tmp_path):
    with pytest.raises(ValueError, match=r"row='sep\[.*\]': partition: no parameter lies under"):
        Experiment(config(f"row=sep[{paths}]"), tmp_path / "run")
    assert not (tmp_path / "run").exists()
