"""corpora: dictionaries are read whole, whatever their form, and errors name file and line."""

import pathlib
import unicodedata

import numpy as np
import pytest

from xling_jax.corpora import dictionaries


def write(path: pathlib.Path, text: str) -> str:
    path.write_bytes(text.encode())
    return str(path)


def read(folder: pathlib.Path, text: str, **options) -> dictionaries.Dictionary:
    return dictionaries.read(write(folder / "en-fr.txt", text), "en", "fr", **options)


THE_DOG = {"the": (("le", 1.0), ("la", 1.0)), "dog": (("chien", 1.0),)}


@pytest.mark.parametrize("between", ["\t", " ", "   ", " \t "])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_line_is_a_pair_whatever_the_blanks_and_line_ends(tmp_path, between, end):
    pairs = ["the le", "", "the la", "dog chien", ""]
    found = read(tmp_path, end.join(pair.replace(" ", between) for pair in pairs))
    assert found == dictionaries.Dictionary("en", "fr", THE_DOG)
    assert list(found.entries) == ["the", "dog"]


def test_lines_with_tabs_and_with_blanks_may_be_mixed(tmp_path):
    assert read(tmp_path, "the le\nthe\tla\ndog chien").entries == THE_DOG


def test_tabs_allow_phrases(tmp_path):
    found = read(tmp_path, "sugar  cane\tcanne à sucre\ndog\tchien\n")
    assert found.entries == {"sugar cane": (("canne à sucre", 1.0),), "dog": (("chien", 1.0),)}


def test_weights_are_read_and_those_of_repeated_pairs_summed(tmp_path):
    found = read(tmp_path, "the\tle\t2.5\nthe\tla\t1e1\ndog\tchien\nthe\tle\t0.5\n")
    assert found.entries == {"the": (("le", 3.0), ("la", 10.0)), "dog": (("chien", 1.0),)}


def test_a_weight_may_follow_words_with_a_blank_if_it_does_in_every_line(tmp_path):
    assert read(tmp_path, "the le\t2\nthe la\t3\n").entries == {"the": (("le", 2.0), ("la", 3.0))}
    found = read(tmp_path, "twenty four\t24\ndog\tchien\n")
    assert found.entries == {"twenty four": (("24", 1.0),), "dog": (("chien", 1.0),)}
    with pytest.raises(ValueError, match="en-fr.txt, line 1: no weight, 'the le'"):
        read(tmp_path, "the le\nthe la\ncat chat\ndog chien\t3\n")


def test_text_is_composed_and_without_a_byte_order_mark(tmp_path):
    found = read(tmp_path, "\ufeff" + unicodedata.normalize("NFD", "bébé\tété"))
    assert found.entries == {"bébé": (("été", 1.0),)}


def test_lowercase_is_for_the_words_alone(tmp_path):
    found = read(tmp_path, "Word\tWort\nword\tWort\nWORD\tWörtchen\n", lowercase=True)
    assert found.entries == {"word": (("Wort", 2.0), ("Wörtchen", 1.0))}
    assert list(read(tmp_path, "Word\tWort\nword\tWort\n").entries) == ["Word", "word"]


def test_pairs_apart_from_others_share_no_word_with_them(tmp_path):
    learned = read(tmp_path, "dog chien\nhound chien\nthe le\nthe la\ncat chat\ncat dog")
    tested = read(tmp_path, "dog chien\na le")
    assert learned.apart_from(tested).entries == {
        "the": (("la", 1.0),), "cat": (("chat", 1.0), ("dog", 1.0))
    }  # fmt: skip


def test_reverse_keeps_every_pair_and_its_weight(tmp_path):
    found = read(tmp_path, "the\tle\t2\nthe\tla\t3\nit\tle\t4\n").reverse()
    assert (found.source_language, found.target_language) == ("fr", "en")
    assert found.entries == {"le": (("the", 2.0), ("it", 4.0)), "la": (("the", 3.0),)}
    assert found.reverse().reverse() == found


def test_words_are_rewritten_and_what_becomes_empty_is_left_out(tmp_path):
    found = read(tmp_path, "l'eau\twater\nL'eau\tWATER\n!\tmark\n")
    changed = found.map(lambda w: w.lower().replace("'", "' ").strip("!"), str.lower)
    assert changed.entries == {"l' eau": (("water", 2.0),)}
    assert changed.source_language == found.source_language


def test_a_dictionary_in_the_wrong_direction_is_refused(tmp_path):
    pairs = [(f"word{n}", f"Mot{n}") for n in range(20)] + [("Paris", "paris"), ("on", "on")]
    found = read(tmp_path, "".join(f"{x}\t{y}\n" for x, y in pairs))

    def text(word, numbers):
        return ["ON dit Paris", " ".join(f"{word}{n}" for n in numbers)]

    english, french = text("Word", range(10)), text("mot", range(10))
    found.require_direction(english, french)
    message = "20 of its words .* language alone, 0 in .* the words of en before those of fr"
    with pytest.raises(ValueError, match=message):
        found.require_direction(french, english)
    # Some words may be where they are by chance.
    found.require_direction(text("mot", range(4)), text("word", range(5)))
    found.require_direction(french + text("word", range(10, 20)), english)


def test_capitals_are_added_where_there_are_none(tmp_path):
    found = read(tmp_path, "dog\tchien\nwill\tsera\nWill\tGuillaume\nUN\tONU\n").with_capitals()
    assert {word: pairs[0][0] for word, pairs in found.entries.items()} == {
        "dog": "chien",
        "Dog": "Chien",
        "will": "sera",
        "Will": "Guillaume",
        "UN": "ONU",
    }


def test_pairs_in_memory_weigh_as_often_as_they_come():
    pairs = [("the", "le"), ("the", " la "), ("dog", "chien"), ("the", "le")]
    found = dictionaries.from_pairs(iter(pairs), "en", "fr")
    assert dictionaries.from_pairs(np.array(pairs), "en", "fr") == found
    assert found.entries == {"the": (("le", 2.0), ("la", 1.0)), "dog": (("chien", 1.0),)}


@pytest.mark.parametrize(
    "pairs", [[], ["ab"], [("dog", "Hund", 1.0)], [("dog", None)], [5], [{"dog", "Hund"}]]
)
def test_pairs_are_of_two_words(pairs):
    with pytest.raises(ValueError, match="give (a word and its translation|words)"):
        dictionaries.from_pairs(pairs, "en", "de")


def test_several_dictionaries_have_one_source_and_different_targets():
    def one(source, target):
        return dictionaries.from_pairs([("a", "b")], source, target)

    assert dictionaries.common_source([one("en", "fr"), one("en", "ru")]) == "en"
    for wrong in ([], [one("en", "fr"), one("fr", "en")], [one("en", "fr"), one("en", "fr")]):
        with pytest.raises(ValueError, match="one source language, one for each target"):
            dictionaries.common_source(wrong)


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("dog", "one column, 'dog'"),
        ("dog\t", "an empty column"),
        ("dog\t\tchien", "an empty column"),
        ("hot dog\t", "an empty column"),
        ("\ttrès bien", "an empty column"),
        ("sugar cane canne", "3 columns.* put tabs between"),
        ("dog\tchien\t1\t2", "4 columns.* 3 are the most"),
        ("dog\tchien\tgood", "the weight 'good' is no positive number"),
        ("dog\tchien\t0", "the weight '0' is no"),
        ("dog\tchien\t-1", "the weight '-1' is no"),
        ("dog\tchien\tnan", "the weight 'nan' is no"),
        ("dog\tchien\tinf", "the weight 'inf' is no"),
        ("dog\tchien\t1_0", "the weight '1_0' is no"),
        ("dog\tchien\t١", "the weight '١' is no"),
        ("dog\tchien\t1e300", "the weight '1e300' is no positive number from 1e-100 to 1e.100"),
    ],
)
def test_a_wrong_line_is_named(tmp_path, line, error):
    with pytest.raises(ValueError, match=f"en-fr.txt, line 3: {error}"):
        read(tmp_path, f"the\tle\n\n{line}\ncat\tchat\n")


@pytest.mark.parametrize("weight", ["inf", "nan", "-1", "1_0", "x"])
def test_a_wrong_weight_behind_blanks_is_no_translation(tmp_path, weight):
    with pytest.raises(ValueError, match="en-fr.txt, line 2: "):
        read(tmp_path, f"the le\t2\nthe la\t{weight}\ndog chien\t3\n")


def test_what_is_no_dictionary_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere.txt: no such file"):
        dictionaries.read(tmp_path / "nowhere.txt", "en", "fr")
    with pytest.raises(ValueError, match="is a folder"):
        dictionaries.read(tmp_path, "en", "fr")
    for nothing in ("", "\n \n"):
        with pytest.raises(ValueError, match="en-fr.txt has no pairs"):
            read(tmp_path, nothing)
    (tmp_path / "latin.txt").write_bytes("dog chien\r\nsummer été".encode("latin-1"))
    with pytest.raises(ValueError, match="latin.txt, line 2: not valid UTF-8 .byte 0xe9"):
        dictionaries.read(tmp_path / "latin.txt", "en", "fr")
