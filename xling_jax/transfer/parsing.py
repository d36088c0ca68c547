"""Dependency trees: CoNLL-U files, trees of highest score, attachment scores (W&C §3.2)."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, TextIO

import numpy as np

ROOT = 0  # the head of a sentence's root; words count from 1
PUNCTUATION = "PUNCT"


class Tree(NamedTuple):
    """A sentence: words, their heads (0 for the root), relations, and universal parts of speech."""

    words: list[str]
    heads: list[int]
    relations: list[str]
    tags: list[str]


def read(path: str | os.PathLike[str]) -> list[Tree]:
    """Reads a treebank in CoNLL-U.

    Multiword tokens stand for their words, which have lines of their own; empty nodes are left
    out.

    Raises:
      FileNotFoundError: there is no such file.
      ValueError: it is no CoNLL-U, has no sentence, or a sentence is no tree; its number is named.
    """
    file = Path(path).expanduser()
    if not file.is_file():
        raise FileNotFoundError(f"{path}: no such file; give a treebank in CoNLL-U")
    with open(file, encoding="utf-8") as lines:
        trees = parse(lines, str(path))
    if not trees:
        raise ValueError(f"{path} has no sentence")
    return trees


def parse(lines: TextIO, name: str = "the text") -> list[Tree]:
    """The sentences of lines of CoNLL-U; see `read`."""
    import conllu  # imported late: only parsing needs it

    trees: list[Tree] = []
    try:
        for sentence in conllu.parse_incr(lines):
            words = [token for token in sentence if isinstance(token["id"], int)]
            tree = Tree(
                [str(token["form"]) for token in words],
                [_head(token["head"]) for token in words],
                [str(token["deprel"]) for token in words],
                [str(token["upos"]) for token in words],
            )
            _require_tree(tree.heads)
            trees.append(tree)
    except (ValueError, conllu.exceptions.ParseException) as error:
        raise ValueError(f"{name}, sentence {len(trees) + 1}: {error}") from error
    return trees


def _head(value: object) -> int:
    if not isinstance(value, int):
        raise ValueError("a word has no head")
    return value


def _require_tree(heads: Sequence[int]) -> None:
    """Raises ValueError unless every word leads to the root."""
    if any(not 0 <= head <= len(heads) for head in heads):
        raise ValueError(f"heads {list(heads)}: not all are words of the sentence")
    for word in range(1, len(heads) + 1):
        place, steps = word, 0
        while place != ROOT:
            place, steps = heads[place - 1], steps + 1
            if steps > len(heads):
                raise ValueError(f"word {word} does not lead to the root")


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
