"""Dependency trees: CoNLL-U files, trees of highest score, attachment scores (W&C §3.2)."""

import itertools
import os
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from xling_jax import numerals
from xling_jax.corpora import sources

ROOT = 0  # the head of a sentence's root; words count from 1
PUNCTUATION = "PUNCT"
_COLUMNS = 10
_NOTHING = "_"  # of an empty column
_RANGE = re.compile(r"(\d{1,6})-(\d{1,6})", re.ASCII)  # of words that are written as one
_EMPTY_NODE = re.compile(r"\d{1,6}\.\d{1,6}", re.ASCII)  # a word that is not there


class Tree(NamedTuple):
    """A sentence: words, their heads (0 for the root), relations, and universal parts of speech."""

    words: list[str]
    heads: list[int]
    relations: list[str]
    tags: list[str]


def read(path: str | os.PathLike[str]) -> list[Tree]:
    """Reads a treebank in CoNLL-U.

    Multiword tokens stand for their words, which have lines of their own; empty nodes are left
    out. Both are checked.

    Raises:
      FileNotFoundError: there is no such file.
      ValueError: it is no text in UTF-8, no CoNLL-U, has no word or is published without them, or
        a sentence is no tree with one root; the line is named.
    """
    return parse(sources.numbered(path), path)


def parse(
    lines: Iterable[tuple[int, str]], path: str | os.PathLike[str] = "the text"
) -> list[Tree]:
    """The sentences of numbered lines of CoNLL-U; see `read`."""
    trees: list[Tree] = []
    sentence: list[tuple[int, str]] = []
    for number, line in itertools.chain(lines, [(0, "")]):
        if line.strip():
            sentence.append((number, line))
            continue
        trees += _trees(sentence, path)
        sentence = []
    if not trees:
        raise ValueError(f"{path} has no word: give a treebank in CoNLL-U")
    if all(word == _NOTHING for tree in trees for word in tree.words):
        raise ValueError(
            f"{path} is published without its words, each is _: put them back with the treebank's "
            "own script"
        )
    return trees


def _trees(sentence: Sequence[tuple[int, str]], path: str | os.PathLike[str]) -> list[Tree]:
    """The tree of a sentence's lines; none of comments alone."""
    tree = Tree([], [], [], [])
    end = 0  # of the last range of words
    empty_nodes = 0  # behind the last word
    for number, line in sentence:
        if line.startswith("#") and not tree.words:
            continue
        try:
            columns = _columns(line)
            name, words = columns[0], len(tree.words)
            if match := _RANGE.fullmatch(name):
                start, last = int(match[1]), int(match[2])
                if not end < start == words + 1 <= last:
                    raise ValueError(f"the range {name} of words: word {words + 1} is next")
                end = last
            elif match := _EMPTY_NODE.fullmatch(name):
                empty_nodes += 1
                if name != f"{words}.{empty_nodes}":
                    raise ValueError(f"the empty node {name}: {words}.{empty_nodes} is next")
            elif name == str(words + 1):
                tree.words.append(columns[1])
                tree.tags.append(columns[3])
                tree.heads.append(_head(columns[6]))
                tree.relations.append(_relation(columns[7]))
                empty_nodes = 0
            elif name == "1":
                raise ValueError("ids begin anew: a blank line is missing between two sentences")
            else:
                raise ValueError(
                    f"the id {name!r}: {words + 1} is next, as words count from 1 without gaps"
                )
        except ValueError as error:
            raise sources.wrong(path, number, error) from error
    if not tree.words and not end and not empty_nodes:
        return []
    try:
        if end > len(tree.words):
            raise ValueError(f"word {end} of a range is not there")
        _require_tree(tree.heads)
    except ValueError as error:
        raise sources.wrong(path, sentence[0][0], f"the sentence from here on: {error}") from error
    return [tree]


def _columns(line: str) -> list[str]:
    columns = line.split("\t")
    if len(columns) != _COLUMNS:
        raise ValueError(f"{len(columns)} columns and not {_COLUMNS} with tabs: {line[:60]!r}")
    if not all(column.strip() for column in columns):
        raise ValueError(f"an empty column, where CoNLL-U writes _: {line[:60]!r}")
    return columns


def _head(value: str) -> int:
    try:
        return numerals.whole(value)
    except ValueError as error:
        raise ValueError(f"the head {value!r}: give the number of a word, or 0") from error


def _relation(value: str) -> str:
    if value == _NOTHING:
        raise ValueError("the relation _: give the word's relation to its head")
    return value


def _require_tree(heads: Sequence[int]) -> None:
    """Raises ValueError unless one word is the root and every other leads to it."""
    for word, head in enumerate(heads, 1):
        if head > len(heads):
            raise ValueError(f"word {word} has the head {head}, of {len(heads)} words")
    roots = [word for word, head in enumerate(heads, 1) if head == ROOT]
    if len(roots) != 1:
        found = f"the roots {', '.join(map(str, roots))}" if roots else "no root"
        raise ValueError(f"{found}, and a tree has one")
    leading = {ROOT}
    for word in range(1, len(heads) + 1):
        path: list[int] = []
        while word not in leading:
            if len(path) > len(heads):
                raise ValueError(f"word {path[0]} does not lead to the root")
            path.append(word)
            word = heads[word - 1]
        leading.update(path)


def best_tree(scores_NxN: np.ndarray) -> list[int]:
    """The heads of the tree of highest score that has one root (Chu & Liu 1965, Edmonds 1967).

    Args:
      scores_NxN: float [1 + words, 1 + words], the score of each word i having head j; word 0 is
        the root. Log-probabilities serve.

    Returns:
      The head of each word.

    Raises:
      ValueError: no square matrix, or a score that is not finite.
    """
    from ufal.chu_liu_edmonds import chu_liu_edmonds  # imported late: only parsing needs it

    scores = np.array(scores_NxN, np.float64)
    size = len(scores)
    if scores.shape != (size, size) or size < 2:
        raise ValueError(f"scores {scores.shape}: give a square matrix with the root and a word")
    if not np.isfinite(scores[1:]).all():
        raise ValueError("scores that are not finite")
    np.fill_diagonal(scores, np.nan)
    scores[0] = np.nan
    heads = chu_liu_edmonds(scores)[0]
    if sum(head == ROOT for head in heads[1:]) > 1:
        best, total = None, -np.inf
        for root in range(1, size):
            one = scores.copy()
            one[1:, 0] = np.nan
            one[root, 0] = scores[root, 0]
            found = chu_liu_edmonds(one)[0]
            value = sum(scores[word, found[word]] for word in range(1, size))
            if value > total:
                best, total = found, value
        assert best is not None
        heads = best
    return [int(head) for head in heads[1:]]


Attachments = Sequence[tuple[int, str]]  # (head, relation) of each word


def attachment_scores(
    gold: Sequence[Attachments],
    predicted: Sequence[Attachments],
    counted: Sequence[Sequence[bool]] | None = None,
    *,
    with_subtypes: bool = True,
) -> dict[str, float]:
    """The share of words with the right head, and with the right relation to it too.

    Args:
      gold, predicted: the sentences.
      counted: which words count; all by default. `not_punctuation` leaves out punctuation.
      with_subtypes: whether `nsubj:pass` is another relation than `nsubj`.

    Returns:
      `uas` and `las`, from 0 to 1.

    Raises:
      ValueError: sentences of different numbers or lengths, or no word counts.
    """
    if len(gold) != len(predicted):
        raise ValueError(f"{len(gold)} gold sentences, {len(predicted)} predicted ones")

    def kind(relation: str) -> str:
        return relation if with_subtypes else relation.split(":")[0]

    words = heads = both = 0
    for number, (one, other) in enumerate(zip(gold, predicted, strict=True)):
        if len(one) != len(other):
            raise ValueError(f"sentence {number}: {len(one)} gold words, {len(other)} predicted")
        for place, ((head, relation), (guess, name)) in enumerate(zip(one, other, strict=True)):
            if counted is not None and not counted[number][place]:
                continue
            words += 1
            heads += head == guess
            both += head == guess and kind(relation) == kind(name)
    if not words:
        raise ValueError("no word counts")
    return {"uas": heads / words, "las": both / words}


def not_punctuation(trees: Sequence[Tree]) -> list[list[bool]]:
    """Which words of trees are no punctuation."""
    return [[tag != PUNCTUATION for tag in tree.tags] for tree in trees]
