"""tasks.parsing: treebanks, trees of highest score, attachment scores."""

import itertools
import os
from pathlib import Path

import numpy as np
import pytest

from xling_jax.tasks.parsing import (
    DependencyParsing,
    attachment_scores,
    best_tree,
    not_punctuation,
    read,
)

SENTENCE = """# text = vámonos al mar.
1-2\tvámonos\t_\t_\t_\t_\t_\t_\t_\t_
1\tvamos\tir\tVERB\t_\t_\t0\troot\t_\t_
2\tnos\tnosotros\tPRON\t_\t_\t1\tobj:refl\t_\t_
2.1\tx\tx\tX\t_\t_\t_\t_\t_\t_
3\tmar\tmar\tNOUN\t_\t_\t1\tobl\t_\t_
4\t.\t.\tPUNCT\t_\t_\t1\tpunct\t_\t_

"""


def test_multiword_tokens_and_empty_nodes_are_no_words(tmp_path):
    path = tmp_path / "a.conllu"
    path.write_text(SENTENCE * 2)
    one, other = read(path)
    assert one == other and one.words == ["vamos", "nos", "mar", "."]
    assert one.heads == [0, 1, 1, 1] and one.relations[1] == "obj:refl"
    assert not_punctuation([one]) == [[True, True, True, False]]


def test_a_byte_order_mark_and_comments_are_no_words(tmp_path):
    path = tmp_path / "a.conllu"
    path.write_text("\ufeff# generator\n\n" + SENTENCE.rstrip())
    assert [tree.words[0] for tree in read(path)] == ["vamos"]


def test_a_word_may_be_a_wide_blank(tmp_path):
    path = tmp_path / "a.conllu"
    path.write_text(SENTENCE.replace("4\t.", "4\t\u3000"))
    assert [tree.words[3] for tree in read(path)] == ["\u3000"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("3\tmar\tmar\tNOUN\t_\t_\t1", "3\tmar\tmar\tNOUN\t_\t_\t9", "line 9: .* the head 9, of 4"),
        ("\t0\troot", "\t3\tdep", "line 9: .* no root, and a tree has one"),
        ("\t1\tobl", "\t0\troot", "line 9: .* the roots 1, 3, and a tree has one"),
        ("\t1\tobl", "\t4\tobl", None),
        ("\t1\tpunct", "\t4\tpunct", "line 9: .* word 4 does not lead to the root"),
        ("\t1\tobl", "\t_\tobl", "line 14: the head '_'"),
        ("\t1\tobl", "\t١\tobl", "line 14: the head '١'"),
        ("\t1\tobl", "\t-1\tobl", "line 14: the head '-1'"),
        ("\t1\tobl", "\t1\t_", "line 14: the relation _"),
        ("3\tmar", "4\tmar", "line 14: the id '4': 3 is next"),
        ("3\tmar", "2\tmar", "line 14: the id '2': 3 is next"),
        ("3\tmar", "03\tmar", "line 14: the id '03': 3 is next"),
        ("1\tvamos", "0\tvamos", "line 11: the id '0': 1 is next"),
        ("3\tmar", "1\tmar", "line 14: ids begin anew: a blank line is missing"),
        ("3\tmar", "3\t", "line 14: an empty column"),
        ("3\tmar", "3\tx\tmar", "line 14: 11 columns and not 10"),
        ("\tobl\t_\t_", "\tobl\t_", "line 14: 9 columns and not 10"),
        ("3\tmar\tmar", "3 mar mar", "line 14: 8 columns and not 10"),
        ("1-2\t", "2-3\t", "line 10: the range 2-3 of words: word 1 is next"),
        ("1-2\t", "1-0\t", "line 10: the range 1-0 of words"),
        ("1-2\t", "1-5\t", "line 9: .* word 5 of a range is not there"),
        ("3\tmar", "2-3\tx\tx\tX\t_\t_\t_\t_\t_\t_\n3\tmar", "line 14: the range 2-3"),
        ("2.1\t", "1.1\t", "line 13: the empty node 1.1: 2.1 is next"),
        ("2.1\t", "2.2\t", "line 13: the empty node 2.2: 2.1 is next"),
        ("# text", "x text", "line 9: 1 columns"),
    ],
)
def test_what_is_no_tree_is_named(tmp_path, old, new, message):
    path = tmp_path / "a.conllu"
    assert old in SENTENCE
    path.write_text(SENTENCE + SENTENCE.replace(old, new))
    if message is None:
        assert len(read(path)) == 2
        return
    with pytest.raises(ValueError, match=message):
        read(path)


@pytest.mark.parametrize("text", ["", "\n\n", "# a comment\n\n"])
def test_a_treebank_has_words(tmp_path, text):
    path = tmp_path / "a.conllu"
    path.write_text(text)
    with pytest.raises(ValueError, match="a.conllu has no word"):
        read(path)
    path.write_text("1\t_\t_\tX\t_\t_\t0\troot\t_\t_\n2\t_\t_\tX\t_\t_\t1\tdep\t_\t_\n")
    with pytest.raises(ValueError, match="a.conllu, sentence 1: all its words are _"):
        read(path)
    with pytest.raises(FileNotFoundError, match="none.conllu: no such file"):
        read(tmp_path / "none.conllu")


def is_tree(heads):
    for word in range(1, len(heads) + 1):
        place, steps = word, 0
        while place and steps <= len(heads):
            place, steps = heads[place - 1], steps + 1
        if place:
            return False
    return True


@pytest.mark.parametrize("seed", range(6))
def test_the_tree_of_highest_score_with_one_root_is_found(seed):
    words = 4
    scores = np.random.default_rng(seed).normal(size=(words + 1, words + 1))
    scores[:, 0] += 2 * (seed % 2)  # many words would be roots
    trees = [
        heads
        for heads in itertools.product(range(words + 1), repeat=words)
        if heads.count(0) == 1 and is_tree(heads)
    ]
    best = max(trees, key=lambda heads: sum(scores[i + 1, h] for i, h in enumerate(heads)))
    assert best_tree(scores) == list(best)


def test_scores_that_mean_nothing_are_refused():
    with pytest.raises(ValueError, match="give a square matrix"):
        best_tree(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="not finite"):
        best_tree(np.full((3, 3), np.nan))


def test_attachment_scores():
    gold = [[(0, "root"), (1, "obj:refl"), (1, "punct")]]
    predicted = [[(0, "root"), (1, "obj"), (2, "punct")]]
    assert attachment_scores(gold, predicted) == {"uas": 2 / 3, "las": 1 / 3}
    assert attachment_scores(gold, predicted, with_subtypes=False)["las"] == 2 / 3
    counted = [[True, True, False]]
    assert attachment_scores(gold, predicted, counted) == {"uas": 1.0, "las": 0.5}
    with pytest.raises(ValueError, match="shorter"):
        attachment_scores(gold, [[(0, "root")]])
    with pytest.raises(ValueError, match="no word counts"):
        attachment_scores(gold, predicted, [[False] * 3])


def test_punctuation_can_be_left_out_only_where_it_is_told(tmp_path):
    path = tmp_path / "a.conllu"
    path.write_text(SENTENCE.replace("\tPUNCT\t", "\tPUNCT \t"))
    (tree,) = DependencyParsing(punctuation=False).read(str(path), "es")
    assert not_punctuation([tree]) == [[True, True, True, False]]
    path.write_text(SENTENCE.replace("\tPUNCT\t", "\t_\t"))
    assert DependencyParsing().read(str(path), "es")
    with pytest.raises(ValueError, match="sentence 1: '.' has no part of speech in column 4"):
        DependencyParsing(punctuation=False).read(str(path), "es")


DATA = os.environ.get("XLING_DATA", "")


@pytest.mark.skipif(not DATA, reason="XLING_DATA names no folder of real data")
@pytest.mark.parametrize(("language", "number"), [("en", 2077), ("fr", 416), ("zh", 500)])
def test_real_treebanks_are_read(language, number):
    trees = read(Path(DATA) / "ud" / f"{language}.test.conllu")
    assert len(trees) == number
    gold = [list(zip(tree.heads, tree.relations, strict=True)) for tree in trees]
    assert attachment_scores(gold, gold, not_punctuation(trees)) == {"uas": 1, "las": 1}
