"""What is given to experiments of D&S §5: texts are read, and what cannot be used is refused."""

import re

import numpy as np
import pytest
from real_xnli_run import config

from xling_jax.batches import prepare as preparation
from xling_jax.experiments.real_xnli.data import prepare, read, sentences_to_find, words_to_find
from xling_jax.experiments.real_xnli.experiment import Experiment, transfer
from xling_jax.experiments.real_xnli.fields import WHOLE
from xling_jax.experiments.zero_shot import experiment as fine_tuning
from xling_jax.runs import config_files, fields
from xling_jax.runs.texts import Texts
from xling_jax.vocabulary import samples
from xling_jax.vocabulary.pieces import SPECIALS, UNK


@pytest.mark.parametrize(
    ("options", "changes", "message"),
    [
        ("row=no-parallel", {}, "no-parallel means nothing"),
        ("row=overparam", {}, "overparam means nothing here"),
        ("row=inv-order[xx]", {}, "choose a language from en, near, middle"),
        ("", {"batches.max_length": 65}, r"models\.positions=192.*needs 3 x batches\.max_len.*=65"),
        ("languages=en-de-hi", {}, r"--config\.transfer\.texts\.nli\.en\.train=FILE"),
        ("", {"transfer.tasks": ("pos",)}, "transfer.tasks=.*each once: 'nli'$"),
        ("", {"vocabulary.size": 5000}, r"vocabulary\.size, corpora\.en: size=5000 is too large"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_before_training(tmp_path, options, changes, message):
    with pytest.raises(ValueError, match=message):
        Experiment(config(options, **changes), tmp_path)
    assert not (tmp_path / "results.json").exists()


@pytest.fixture
def files(tmp_path):
    """Texts of three languages and translations to find, by their fields."""
    written = {
        "en.test": "a cat\n\nno dog\n",
        "de.test": "eine Katze\n\nkein Hund\n",
        "fr.test": "un chat\n\naucun chien\n",
        "de.words": "cat\tKater\t1\ncat\tKatze\t2\ndog\tHund\t1\nhound\tHund\t1\nelk\tElch\t1\n",
        "fr.words": "dog chien\nhound limier\ncat chat\n",
    }
    fields = {}
    for name, text in written.items():
        (tmp_path / name).write_text(text)
        fields[f"corpora.{name}"] = str(tmp_path / name)
    for language in ("en", "de", "fr"):
        fields[f"corpora.{language}.train"] = fields[f"corpora.{language}.test"]
    return fields


def texts_of(fields):
    return Texts.of_corpora(config("languages=en-de-fr", **fields).corpora)


class Writes:
    """Pieces that write all words but some."""

    def __init__(self, *unknown):
        self.unknown = unknown

    def encode(self, words):
        return [np.array([UNK if word in self.unknown else 7]) for word in words]


def test_translations_are_read_from_files(files):
    made = config("languages=en-de-fr", **files)
    lines = [("a cat", "eine Katze", "un chat"), ("no dog", "kein Hund", "aucun chien")]
    assert sentences_to_find(made, texts_of(files)) == lines
    made.corpora.test_sentences = 1
    assert sentences_to_find(made, texts_of(files)) == lines[:1]
    made.corpora.test_sentences = 0
    assert sentences_to_find(made, texts_of(files)) == []
    every = words_to_find(texts_of(files), [Writes()] * 3)
    assert every == [("cat", "Katze", "chat"), ("dog", "Hund", "chien")]
    assert words_to_find(texts_of(files), [Writes(), Writes("Hund"), Writes()]) == every[:1]


@pytest.mark.parametrize("field", ["test", "words"])
def test_translations_are_given_for_all_languages_or_for_none(files, field):
    given = {name: "" if name.endswith(field) else path for name, path in files.items()}
    made = config("languages=en-de-fr", **given)
    both = sentences_to_find(made, texts_of(given)), words_to_find(texts_of(given), [Writes()] * 3)
    assert [bool(found) for found in both] == [field != "test", field != "words"]
    given[f"corpora.de.{field}"] = files[f"corpora.de.{field}"]
    missing = r"corpora\.\w+\.{} is empty: give it for (en, )?de, fr, or for none"
    with pytest.raises(ValueError, match=missing.format(field)):
        sentences_to_find(made, texts_of(given))
        words_to_find(texts_of(given), [Writes()] * 3)


def test_a_dictionary_in_the_wrong_direction_is_refused(files, tmp_path):
    english, german = "one two three four five".split(), "eins zwei drei vier elf".split()
    for name, words in (("en", english), ("de", german)):
        (tmp_path / f"{name}.train").write_text(" ".join(words))
        files |= dict.fromkeys((f"corpora.{name}.{x}" for x in ("train", "dev")),
                               str(tmp_path / f"{name}.train"))  # fmt: skip
    pairs = zip(german, english, strict=True)
    (tmp_path / "de.words").write_text("".join(f"{x}\t{y}\n" for x, y in pairs))
    files |= {"corpora.fr.dev": files["corpora.fr.train"], "vocabulary.size": 24}
    made = config("languages=en-de-fr", **files)
    with pytest.raises(ValueError, match=r"corpora\.de\.words: 10 of its words .* 0 in"):
        prepare(made, Texts.of_corpora(made.corpora), tmp_path)


@pytest.fixture
def two_languages(tmp_path):
    """The fields of texts of ten and twenty sentences."""
    fields = {"corpora.train_sentences": 15, "corpora.dev_sentences": 12, "vocabulary.size": 24}
    for name, letters, number in (("en", "abcdefg", 10), ("de", "hijklmn", 20)):
        lines = [f"{a}{b} {b}{c}" for a in letters for b in letters for c in letters]
        for part, own in (("train", lines[:number]), ("dev", lines[-number:])):
            (tmp_path / f"{name}.{part}").write_text("\n".join(own))
            fields[f"corpora.{name}.{part}"] = str(tmp_path / f"{name}.{part}")
    return fields


def test_a_text_has_at_most_as_many_sentences_as_are_wanted(two_languages, tmp_path):
    made = config("languages=en-de,tasks=none", **two_languages)
    _, prepare = read(made)
    data = prepare(tmp_path)
    assert np.bincount(data.train.languages).tolist() == [10, 15]
    assert np.bincount(data.evaluated.texts["dev"].languages).tolist() == [10, 12]
    names = np.array(data.vocabulary.names())
    first, second = (data.train.sentence(number) for number in (0, 10))
    assert "".join(names[first]) == "▁aa▁aa" and "".join(names[second]) == "▁hh▁hh"
    assert (first < 24).all() and (second >= 24 + SPECIALS).all()


def test_text_that_was_prepared_is_not_encoded_again(two_languages, tmp_path, monkeypatch):
    made = config("languages=en-de,tasks=none", **two_languages)
    one = read(made)[1](tmp_path)
    for name in ("make_shard", "_encode"):
        monkeypatch.delattr(preparation, name)
    monkeypatch.delattr(samples, "draw")
    two = read(made)[1](tmp_path)
    np.testing.assert_array_equal(one.train.tokens, two.train.tokens)


@pytest.mark.parametrize(
    ("part", "text", "message"),
    [
        ("dev", "狗猫人水 水人猫狗\n", r"\d+ % of its pieces are \[UNK\]"),
        ("dev", "\n", r".*de\.dev has no text: it is empty"),
        ("train", "\n", r".*de\.train has no text: it is empty"),
    ],
)
def test_text_that_cannot_be_used_is_refused(two_languages, tmp_path, part, text, message):
    with open(two_languages[f"corpora.de.{part}"], "w") as file:
        file.write(text)
    with pytest.raises(ValueError, match=rf"^corpora\.de\.{part}: {message}"):
        Experiment(config("languages=en-de,tasks=none", **two_languages), tmp_path / "run")


def test_fine_tuning_is_run_as_the_whole_config_says(tmp_path):
    changes = {"devices.side_by_side": 1, "log.tensorboard": True, "profile": True}
    made = config(**changes)
    tuned = transfer(made, tmp_path)
    tuned.row, tuned.seeds = "0", made.seeds
    fields.check(tuned)
    assert [tuned[name] for name in WHOLE] == [made[name] for name in WHOLE]
    assert tuned.devices.shard_parameters and tuned.log.tensorboard


def test_the_way_out_of_too_little_memory_names_fields_that_there_are():
    named = re.findall(r"[a-z_]+\.[A-Za-z_.]+[a-z]", fine_tuning.less_memory("transfer."))
    there = config_files.flatten(config().to_dict())
    assert len(named) == 5 and {name.replace("TASK", "nli") for name in named} <= there.keys()


def test_a_file_that_is_not_there_is_named(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("a sentence\n")
    changes = {
        f"corpora.{x}.{field}": str(text) for x in ("en", "de") for field in ("train", "dev")
    }
    changes["corpora.de.train"] = str(tmp_path / "none.txt")
    with pytest.raises(FileNotFoundError, match=r"corpora\.de\.train: .*none\.txt"):
        Experiment(config("languages=en-de,tasks=none", **changes), tmp_path)


def test_a_file_to_fine_tune_on_is_read_before_training(tmp_path):
    text, pairs = tmp_path / "text.txt", tmp_path / "pairs.tsv"
    text.write_text("a sentence\n")
    pairs.write_text("A .\tB .\tperhaps\n")
    changes = {
        f"corpora.{x}.{field}": str(text) for x in ("en", "de") for field in ("train", "dev")
    }
    for part in ("en.train", "en.dev", "en.test", "de.test"):
        changes[f"transfer.texts.nli.{part}"] = str(pairs)
    with pytest.raises(ValueError, match=r"transfer\.texts\.nli\.en\.train: .*line 1: 'perhaps'"):
        Experiment(config("languages=en-de", **changes), tmp_path / "run")
    pairs.write_text("A .\tB .\tneutral\nA .\tA .\tentailment\n")
    with pytest.raises(ValueError, match=r"transfer\.texts\.nli\.en\.test: .* chosen by \(dev\)"):
        Experiment(config("languages=en-de", **changes), tmp_path / "run")
    (dev := tmp_path / "dev.tsv").write_text("B .\tA .\tneutral\nB .\tB .\tentailment\n")
    changes["transfer.texts.nli.en.dev"] = str(dev)
    with pytest.raises(ValueError, match=r"de\.test: .* has the examples of .*\.en\.train: give"):
        Experiment(config("languages=en-de", **changes), tmp_path / "run")
    (german := tmp_path / "german.tsv").write_text("C .\tA .\tneutral\nC .\tC .\tentailment\n")
    changes["transfer.texts.nli.de.test"] = str(german)
    with pytest.raises(
        ValueError, match=r"transfer: .* is both nli\.en\.train and nli\.en\.test of en"
    ):
        Experiment(config("languages=en-de", **changes), tmp_path / "run")
    (test := tmp_path / "test.tsv").write_text("D .\tA .\tneutral\nD .\tD .\tentailment\n")
    changes["transfer.texts.nli.en.test"] = str(test)
    changes["transfer.word_order"] = True
    with pytest.raises(ValueError, match=r"transfer\.parallel\.de\.first is empty"):
        Experiment(config("languages=en-de", **changes), tmp_path / "run")
    text.write_text("a sentence\n")
    (shorter := tmp_path / "shorter.txt").write_text("")
    changes |= {
        "transfer.parallel.de.first": str(text),
        "transfer.parallel.de.second": str(shorter),
    }
    with pytest.raises(ValueError, match=r"transfer\.parallel\.de: "):
        Experiment(config("languages=en-de", **changes), tmp_path / "run")
    assert not (tmp_path / "run" / "config.json").exists()
