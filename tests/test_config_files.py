"""Config files: options, the names of languages, and the rows and seeds that are asked for."""

import re

import pytest
from ml_collections import ConfigDict
from small_run import ROOT, config_of

from xling_jax.runs import config_files


def test_options_are_read_over_their_defaults():
    read = config_files.parse_options("row=8,scale=paper", {"row": "0", "scale": "", "seeds": "0"})
    assert read == {"row": "8", "scale": "paper", "seeds": "0"}


@pytest.mark.parametrize("argument", ["rows=8", "row", "row=", "=8"])
def test_an_unknown_option_is_refused_with_the_names_there_are(argument):
    with pytest.raises(ValueError, match="unknown option .* names from row, scale"):
        config_files.parse_options(argument, {"row": "0", "scale": ""})


def test_seeds_are_whole_numbers():
    assert config_files.integers("seeds", "0+42") == (0, 42)
    for wrong in ("0,1", "0++1", "1_0", "-1", " 1", "１", "²", "", "9" * 5000):
        with pytest.raises(ValueError, match=f"seeds='{re.escape(wrong)}'"):
            config_files.integers("seeds", wrong)
        with pytest.raises(ValueError, match=f"epochs='{re.escape(wrong)}'"):
            config_files.integer("epochs", wrong)


def test_an_option_given_twice_is_refused():
    with pytest.raises(ValueError, match="option 'row=3' of the config: row is given twice"):
        config_files.parse_options("row=8,row=3", {"row": "0"})


@pytest.mark.parametrize(
    ("value", "message"),
    [
        *((value, "two languages or more") for value in ("", "-", "en", "en-", "en--fr")),
        *((f"en-{name}", "can be called") for name in ("a b", "a.b", "a/b", "2", "../x", "get")),
        *((f"en-{name}", "behind the last _") for name in ("de_1", "de_deep", "de_low", "de_p5")),
        *((f"en-{name}", "before the first _") for name in ("cut", "candidates", "repeated_x")),
        ("en-fr-en", "'en' is named twice"),
    ],
)
def test_languages_have_names_that_a_config_can_have(value, message):
    assert config_files.languages("pair", "en-pt_BR-日本-de1") == ("en", "pt_BR", "日本", "de1")
    with pytest.raises(ValueError, match=f"pair='{value}'.*{message}"):
        config_files.languages("pair", value)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("bilingual", "pair=en-processes", "corpora.processes is something else"),
        ("bilingual", "pair=en-default", "rows.default is something else"),
        ("bilingual", "pair=no-anchors", "rows.no_anchors is something else"),
        ("bilingual", "pair=en-all", "rows.all is something else"),
        ("real_xnli", "languages=en-tokenize", "corpora.tokenize is something else"),
        ("fake_english", "languages=dev-fake", "corpora.dev is something else"),
        ("zero_shot", "pair=en-dev", "texts.dev is something else"),
        ("zero_shot", "pair=en-near+en-near", "a pair is named twice"),
        ("similarity", "pair=en-other-en_other", "models.en_other is something else"),
    ],
)
def test_no_language_takes_the_place_of_something_else(name, options, message):
    with pytest.raises(ValueError, match=message):
        config_of(ROOT / "configs" / f"{name}.py", options, {})


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("fake_english", "row=lang-pos;epochs[50]"),
        ("fake_english", "row=" + "+".join(["lang-pos;epochs[50]"] * 20)),
        ("bilingual", "row=sep[layers/0]"),
        ("zero_shot", "row=default;first[2]"),
        ("real_xnli", "row=lang-pos;epochs[50]"),
        ("evaluate", "model=runs/*/models/row0_seed0/{language}"),
        ("similarity", "row=en|near @near"),
    ],
)
def test_the_default_workdir_is_a_plain_folder(name, options):
    folder = config_of(ROOT / "configs" / f"{name}.py", options, {}).workdir
    assert re.fullmatch(r"[\w+.-]{1,255}", folder)


def test_a_language_may_be_first_in_one_pair_and_second_in_another():
    made = config_of(ROOT / "configs" / "zero_shot.py", "pair=en-fr+fr-en", {})
    for name in ("en", "fr"):
        assert set(made.texts.ner[name]) == {"train", "dev", "test"}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"row": "0+8+0"}, "row 0 named twice"),
        *(
            ({"row": row}, f"row='{re.escape(row)}' has an empty name")
            for row in ("", "0++8", "0+", "0+ ")
        ),
        ({"row": "a/b+a b"}, "row='a b' and row='a/b' would have the same folder, a_b"),
        ({"row": "a" * 230}, "a': too long for the name of a folder"),
        ({"row": "none"}, "row=none: there is none"),
        ({"row": "small+8"}, "row 8 named twice"),
        ({"seeds": (1, 1)}, "seed 1 named twice"),
        (
            {"row": "wrong"},
            "row='wrong': no such thing; or a row: 0, 8, 9; or a set of rows: none, small",
        ),
        ({"row": "9"}, r"row='9' \(wrong\): no such thing"),
    ],
)
def test_rows_and_seeds_that_cannot_be_used_are_refused(fields, message):
    def parse(name, description):
        if description == "wrong":
            raise ValueError("no such thing")

    made = ConfigDict(
        {
            "row": "0",
            "rows": {"0": "original", "8": "a;b", "9": "wrong"},
            "sets": {"small": ("0", "8"), "none": ()},
            "seeds": (0,),
        }
    )
    made.update(fields)
    with pytest.raises(ValueError, match=message):
        config_files.chosen_rows(made, parse)
