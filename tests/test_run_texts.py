"""runs.texts: a text is found by its language and purpose, wherever it is from."""

import hashlib

import pytest
from ml_collections import ConfigDict
from small_run import ROOT
from test_bilingual import config

from xling_jax.runs import store
from xling_jax.runs.config_files import load_config
from xling_jax.runs.texts import Embedded, Texts, of_run


@pytest.fixture(scope="module")
def embedded():
    return Texts.of_corpora(config("pair=en-near").corpora)


def given(tmp_path, **fields):
    for name in ("one.txt", "two.txt", "a+b.txt"):
        (tmp_path / name).write_text(f"{name} has this\n", "utf-8")
    (tmp_path / "words.txt").write_text("one\tun\ntwo\n", "utf-8")
    own = {name: value and str(tmp_path / value) for name, value in fields.items()}
    section = {"languages": ("en", "fr"), "en": {"train": "x"}, "fr": {"train": "x", **own}}
    return Texts.of_corpora(ConfigDict(section))


def test_a_field_names_one_file_or_several_joined_by_a_plus(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    texts = given(tmp_path, dev="a+b.txt", other="one.txt")
    texts._section.fr.train = f"{tmp_path}/one.txt+{tmp_path}/two.txt"
    assert texts.sources("fr", "train") == (f"{tmp_path}/one.txt", f"{tmp_path}/two.txt")
    assert texts.sources("fr", "dev", True) == (f"{tmp_path}/a+b.txt",)
    texts._section.en.dev = "~/a+b.txt"
    assert texts.sources("en", "dev") == ("~/a+b.txt",)
    assert texts.sources("fr", "train", True) == (f"{tmp_path}/one.txt",)
    manifest = texts.manifest("fr", ("train", "test", "dev"), False)
    assert [(entry["language"], entry["field"]) for entry in manifest] == [
        ("fr", "train"),
        ("fr", "train"),
        ("fr", "dev"),
    ]
    assert manifest[0]["sha256"] != manifest[1]["sha256"]


def test_what_is_wrong_is_named_by_its_field(tmp_path):
    texts = given(tmp_path, test="one.txt", test_first="none.txt", dictionary="words.txt", dev="")
    texts._section.fr.train = "none.txt"
    for call, message in [
        (
            lambda: texts.manifest("fr", ["train"], False),
            r"^corpora\.fr\.train: none\.txt: no such",
        ),
        (lambda: texts.parallel("fr", "test", 9), r"^corpora\.fr\.test_first, corpora\.fr\.test: "),
        (lambda: texts.dictionary("fr", "dictionary"), r"^corpora\.fr\.dictionary: .*line 2"),
        (lambda: texts.sources("fr", "dev"), r"^corpora\.fr\.dev is empty: give a file"),
    ]:
        with pytest.raises((ValueError, FileNotFoundError), match=message):
            call()
    assert texts.parallel("fr", "test", 0) is texts.dictionary("fr", "test_dictionary") is None
    texts._section.fr.test_first = ""
    with pytest.raises(ValueError, match=r"corpora\.fr\.test and corpora\.fr\.test_first: give"):
        texts.require_both_sides("test")
    texts._section.fr.train = "synthetic"
    with pytest.raises(ValueError, match="some languages are embedded ones and some are not"):
        Texts.of_corpora(texts._section)
    section = config("pair=en-near", **{"corpora.en.second.inverted": True}).corpora
    with pytest.raises(ValueError, match="en.second.inverted=True: en is no second language"):
        Texts.of_corpora(section)


def test_a_language_without_rules_of_its_own_is_said_once(embedded, capsys):
    sections = {name: {"train": "x"} for name in ("fr", "zh_TW", "EN", "zho")}
    rules = {"split_sentences": True, "split_clauses": False}
    texts = Texts.of_corpora(ConfigDict({"languages": tuple(sections), **sections, **rules}))
    for name in (*sections, *sections):
        texts.split(name)
    embedded.split("near")
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(
        "zho is no code of two letters, such as fr: English rules apply to its text"
    )


def test_embedded_texts_differ_by_purpose_and_domain(embedded):
    texts = [
        embedded.sources("near", *purpose)[0].lines
        for purpose in (("train",), ("dev",), ("train", True), ("dev", True))
    ]
    assert [len(lines) for lines in texts] == [400, 60, 400, 60]
    assert len(set(map(tuple, texts))) == 3 and texts[3] == texts[1]  # held out is the same
    assert embedded.sources("en", "train", True) == embedded.sources("en", "train")


@pytest.mark.parametrize(
    ("language", "digest"),
    [
        ("en", "2daeb06ec4a58e4f"),
        ("near", "00fafa23078e3b18"),
        ("middle", "e234fa34bbe8f4bf"),
        ("far", "2306200505f83c37"),
    ],
)
def test_embedded_text_is_that_of_the_recorded_results(language, digest):
    corpora = load_config(str(ROOT / "configs/bilingual.py"), "pair=en-near-middle-far").corpora
    made = Embedded(corpora).text(language, "train", 500).lines
    assert hashlib.sha256("\n".join(made).encode()).hexdigest()[:16] == digest


def test_languages_that_are_made_otherwise_now_are_not_those_of_a_run(
    embedded, tmp_path, monkeypatch
):
    manifest = embedded.manifest("near", ["train"])
    assert [(each["language"], each["field"]) for each in manifest] == [("near", "made")]
    store.write(tmp_path, store.describe(config("pair=en-near"), manifest, {}))
    assert of_run(str(tmp_path), ["en", "near"]).manifest("near") == manifest[0]
    monkeypatch.setattr("xling_jax.runs.texts.HASHED", 50)  # as if they were made otherwise
    with pytest.raises(ValueError, match=r"another language near than is made now: .*numpy==\d"):
        of_run(str(tmp_path), ["en", "near"])


def test_embedded_dictionaries_have_every_word_once(embedded):
    train, test = (embedded.dictionary("near", x) for x in ("dictionary", "test_dictionary"))
    assert not train.entries.keys() & test.entries.keys()
    pairs = dict(embedded.embedded.pair("near").dictionary())
    assert pairs.keys() == train.entries.keys() | test.entries.keys()
    assert embedded.dictionary("en", "dictionary") is None
    assert embedded.parallel("en", "test", 5) is None
    assert len(embedded.parallel("near", "test", 5)[1]) == 5
