"""corpora.splitting: sentences end where the rules of their language say, and lose no character."""

import os
import pathlib
import random
from types import SimpleNamespace

import pytest

from xling_jax.corpora import text
from xling_jax.corpora.splitting import Splitter, of_config

DATA = pathlib.Path(os.environ.get("XLING_DATA", "."), "bible")


@pytest.mark.parametrize(
    ("language", "sentences"),
    [
        ("en", ["Mr. Smith met J. R. R. Tolkien.", "He came; she went: all.", "Why?"]),
        ("en", ['He said: "Go (now)."', "And left.", "It cost 3.5 at 10:30 e.g. here."]),
        ("en", ["See Art. 5 there.", "He likes Art.", "She saw No. 5."]),
        ("fake", ["Mr. Smith came.", "He left Yahoo!News and v.Chr."]),
        ("de", ["Am 3. Oktober kam Dr. Müller.", "„Nein.“", "Im 19. Jahrhundert z. B. nicht."]),
        ("pl", ["Na str. 5 jest ust. 3.", "Widzi str.", "Tak."]),
        ("fr", ["Il vit M. Dupont.", "« Oui. »", "Et alors ?"]),
        ("ru", ["А. С. Пушкин жил на ул. Ленина.", "Да!", "«Нет.»", "Так."]),
        ("hi", ["तब डॉ. सिंह आए।", "क्या?", "हाँ॥", "और"]),
        ("", []),
    ],
)
def test_sentences_end_where_the_rules_of_the_language_say(language, sentences):
    assert Splitter(language)(" ".join(sentences)) == sentences


@pytest.mark.parametrize("language", ["zh", "zh-cn", "en"])
def test_full_width_marks_and_dandas_end_sentences_without_blanks(language):
    sentences = ["他说：“好。”", "2010年他走了；是。", "『好！』", "（见此。）", "यह है।", "यह"]
    assert Splitter(language)("".join(sentences)) == sentences


@pytest.mark.parametrize("language", ["zh", "ja"])
def test_what_opens_a_quotation_begins_a_sentence(language):
    sentences = ["神说。", "“要有光。”", "她答。", "‘我！’", "完。"]
    assert Splitter(language)("".join(sentences)) == sentences
    assert Splitter(language).identity != Splitter("ko").identity.replace("ko", language)


def test_clauses_end_at_semicolons_and_colons_too():
    line = 'He came; she "went;" and: at 10:30 (a; b) Mr. Xu. Why? 是；不'
    clauses = [
        "He came;",
        'she "went;"',
        "and:",
        "at 10:30 (a;",
        "b) Mr. Xu.",
        "Why?",
        "是；",
        "不",
    ]
    assert Splitter("en", clauses=True)(line) == clauses
    assert Splitter("en")(line) == [" ".join(clauses[:5]), "Why?", "是；不"]


ALPHABET = [
    *"aA1 .!?;:\"'“”„«»()[]{}<>。！？；」』）।॥\u0301é中日हिЯж…—-@/🙂𝄞",
    *(" ", " ", ". ", "Mr. ", "3. Oktober", "http://x.y ", "''", "``", "А. "),
]


@pytest.mark.parametrize("language", ["en", "de", "fr", "ru", "hi", "zh", "ja", "x"])
def test_no_character_is_lost_whatever_the_text(language):
    draw = random.Random(language)
    for number in range(1000):
        line = text.clean("".join(draw.choices(ALPHABET, k=draw.randint(0, 40))))
        found = Splitter(language, clauses=bool(number % 2))(line)
        assert "".join(found).replace(" ", "") == line.replace(" ", "")
        assert all(found) and found == [sentence.strip() for sentence in found]
        assert found == Splitter(language, clauses=bool(number % 2))(line)


def test_a_long_line_is_cut_as_a_short_one():
    line = "He saw Mr. Smith at noon. Then “she left.” What? "
    assert Splitter("en")((line * 1000).strip()) == Splitter("en")(line) * 1000
    assert Splitter("zh")("好" * 9000 + "。是") == ["好" * 9000 + "。", "是"]
    assert Splitter("en")("word " * 2000) == [("word " * 2000).strip()]
    assert Splitter("en")("word " * 2000 + "end. Why?") == ["word " * 2000 + "end.", "Why?"]


def test_what_decides_the_cut_is_named():
    names = [Splitter(*own).identity for own in [("en",), ("fr",), ("en", True)]]
    assert len(set(names)) == 3 and "sentencex " in names[0] and "sacremoses " in names[0]
    assert Splitter("fake").identity == names[0]


def test_a_config_says_how_lines_are_cut():
    def section(sentences, clauses):
        return SimpleNamespace(split_sentences=sentences, split_clauses=clauses)

    assert of_config(section(False, False), "en") is None
    assert of_config(section(True, False), "fr") == Splitter("fr")
    assert of_config(section(True, True), "fr") == Splitter("fr", clauses=True)
    with pytest.raises(ValueError, match="split_clauses=True cuts .*split_sentences=True too"):
        of_config(section(False, True), "fr")


@pytest.mark.skipif(not DATA.is_dir(), reason="XLING_DATA names no folder with the Bibles")
def test_bibles_keep_their_words_when_split():
    verses = text.read(str(DATA / "en.nt.txt"), "en")
    sentences = text.read(str(DATA / "en.nt.txt"), "en", split=Splitter("en"))
    clauses = text.read(str(DATA / "en.nt.txt"), "en", split=Splitter("en", clauses=True))
    whole, *cut = text.manifest([verses, sentences, clauses])
    assert {each["words"] for each in cut} == {whole["words"]}
    assert [each["sentences"] for each in cut] == [8841, 11_522]
