"""tasks.ner: files of tagged words, repaired spans, F1 as conlleval counts."""

import os
from pathlib import Path

import pytest

from xling_jax.tasks.ner import Span, read, repair, span_f1, spans


def test_tsv_and_columns_are_read(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("fr:New\tB-LOC\nfr:York\tI-LOC\n\n\nfr::\tO\n")
    assert read(path) == [(["New", "York"], ["B-LOC", "I-LOC"]), ([":"], ["O"])]
    path.write_text(
        "-DOCSTART- -X- O O\n\nEU NNP I-NP B-ORG\nrejects VBZ I-VP O\n\nfr:x\u00a0y a b O\n"
    )
    assert read(path) == [(["EU", "rejects"], ["B-ORG", "O"]), (["fr:x\u00a0y"], ["O"])]
    path.write_text("simple:New\tB-LOC\nsimple:York\tI-LOC\n")
    assert read(path) == [(["New", "York"], ["B-LOC", "I-LOC"])]
    path.write_text("US I-MISC\nMichael I-PER\nChang I-PER\nBob B-PER\nran O\n")  # CoNLL 2003's
    ((_, tags),) = read(path)
    assert tags == ["B-MISC", "B-PER", "I-PER", "B-PER", "O"] == repair(tags)
    for columns in ("\u3000\tO\n\u00a0\tO\u00a0\n\u00a0\n", "\u3000 O\n\u00a0 O \n \n"):
        path.write_text(columns)
        assert read(path) == [(["\u3000", "\u00a0"], ["O", "O"])]
    path.write_text("\ufeffParis\tB-LOC\n")
    assert read(path) == [(["Paris"], ["B-LOC"])]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\tO\nb\n", r"line 2: 'b' is not a word and a tag"),
        ("a\tPER\n", r"line 1: 'a\\tPER' is not"),
        ("\n\n", "has no tagged words|blank lines"),
        ("fr:a\tO\nfr:\tO\n", "'fr:' stands before all words, and once before nothing"),
        ("fr:a\tO\nfr:b\tO\nen:c\tO\n", "before most words, but not 'fr:' before 'en:c'"),
        ("en:a\tO\nen:b\tO\n\nc\tO\n", "before most words, but not 'en:' before 'c'"),
        (b"a\tO\n\xff\tO\n", "line 2.*UTF-8"),
        ("a\tO\n\nNew York O\n", "line 3: 3 columns between blanks, and .* 2 columns between tabs"),
        ("a O\nNew York O\n", "line 2: 3 columns between blanks, and .* 2 columns between blanks"),
        ("1\ta\tO\n2\tb\tO\n\n1\tc\tO\n", "a.tsv: the first column numbers the words: leave"),
        ("1\tO\n\n1\tO\n", "first column numbers the words"),
        ("0\t-DOCSTART-\tO\n\n0\ta\tO\n1\tb\tO\n\n0\tc\tO\n", "first column numbers the words"),
        ("a\tx\tO\nb\tO\n", "line 2: 2 columns between tabs, and .* 3 columns between tabs"),
    ],
)
def test_bad_lines_are_named(tmp_path, text, message):
    path = tmp_path / "a.tsv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError, match=message):
        read(path)


@pytest.mark.parametrize(
    ("tags", "repaired"),
    [
        ("O I-X O", "O B-X O"),
        ("B-X I-Y I-Z", "B-Z I-Z I-Z"),
        ("I-X I-Y B-Z B-Z I-Z O I-X", "B-Y I-Y B-Z B-Z I-Z O B-X"),
        ("B-X I-X O", "B-X I-X O"),
    ],
)
def test_spans_are_repaired_as_the_paper_says(tags, repaired):
    assert repair(tags.split()) == repaired.split()
    assert repair(repaired.split()) == repaired.split()


def test_spans_of_tags():
    tags = "B-X I-X I-Y O I-X B-X".split()
    assert spans(tags) == [Span(0, 2, "X"), Span(2, 3, "Y"), Span(4, 5, "X"), Span(5, 6, "X")]
    assert spans([]) == []


def test_f1_counts_whole_spans():
    gold = ["B-X I-X O B-Y".split(), ["O"], ["B-X"]]
    predicted = ["B-X I-X O B-X".split(), ["B-Y"], ["B-X"]]
    found = span_f1(gold, predicted)
    assert found["precision"] == pytest.approx(2 / 4) and found["recall"] == pytest.approx(2 / 3)
    assert found["f1"] == pytest.approx(4 / 7)
    assert span_f1([["O"]], [["O"]])["f1"] == 0
    with pytest.raises(ValueError, match="1 gold tags of a sentence, 2 predicted"):
        span_f1([["O"], ["O"]], [["O"], ["O", "O"]])


DATA = os.environ.get("XLING_DATA", "")


@pytest.mark.skipif(not DATA, reason="XLING_DATA names no folder of real data")
@pytest.mark.parametrize("language", ["en", "fr", "de", "ru", "zh"])
def test_real_files_are_read(language):
    sentences = read(Path(DATA) / "ner" / f"{language}.test.tsv")
    assert len(sentences) == 1000
    for words, tags in sentences:
        assert len(words) == len(tags) and repair(tags)
    assert span_f1([s.tags for s in sentences], [s.tags for s in sentences])["f1"] == 1
