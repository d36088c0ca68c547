"""Dependency trees: CoNLL-U files, the best tree of scores, attachment scores (W&C §3.2)."""

import collections
import dataclasses
import itertools
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from xling_jax import numerals, schema
from xling_jax.batches import labelled
from xling_jax.corpora import sources
from xling_jax.corpora.embedded.grammar import Constituent
from xling_jax.corpora.embedded.language import Language
from xling_jax.tasks.task import Predictions, Scores, WordTask, numbered

SEED = 0  # of the heads drawn for the chance baseline
ROOT = 0  # the head of a sentence's root; words count from 1
PUNCTUATION = "PUNCT"
_COLUMNS = 10
_NOTHING = "_"  # stands in an empty column
_RANGE = re.compile(r"(\d{1,6})-(\d{1,6})", re.ASCII)  # the id of words written as one token
_EMPTY_NODE = re.compile(r"\d{1,6}\.\d{1,6}", re.ASCII)  # the id of a word that is not in the text

Attachments = Sequence[tuple[int, str]]  # the head and the relation of each word


class Tree(NamedTuple):
    """A sentence: words, their heads (0 for the root), relations, and universal parts of speech."""

    words: list[str]
    heads: list[int]
    relations: list[str]
    tags: list[str]

    @property
    def arcs(self) -> Attachments:
        return list(zip(self.heads, self.relations, strict=True))


def gold(language: Language, derivation: Constituent) -> Tree:
    """The tree of a sentence of an embedded language."""
    (found,) = parse(enumerate(language.conllu(derivation), 1))
    return found


def read(path: str | os.PathLike[str], *, with_trees: bool = True) -> list[Tree]:
    """Reads a treebank in CoNLL-U. Multiword tokens are left out, because their words have lines of
    their own; so are empty nodes. Without `with_trees` heads and relations are not read, and empty.

    ValueError, naming the line if it is about one: the file is not UTF-8 or not CoNLL-U, has no
    words or is published without them, or, `with_trees`, a sentence is not a tree with one root.
    """
    return parse(sources.numbered(path), path, with_trees)


def require_tags(path: str | os.PathLike[str], trees: Sequence[Tree], or_else: str = "") -> None:
    """ValueError if a word of a file's sentences has no part of speech; `or_else` ends the message
    with another way out than giving them."""
    for number, tree in enumerate(trees, 1):
        if _NOTHING in tree.tags:
            word = tree.words[tree.tags.index(_NOTHING)]
            raise ValueError(
                f"{path}, sentence {number}: {word!r} has no part of speech in column 4: give a "
                f"treebank with UPOS tags{or_else}"
            )


def parse(
    lines: Iterable[tuple[int, str]],
    path: str | os.PathLike[str] = "the text",
    with_trees: bool = True,
) -> list[Tree]:
    """The sentences of numbered lines of CoNLL-U; see `read`."""
    found: list[Tree] = []
    sentence: list[tuple[int, str]] = []
    for number, line in itertools.chain(lines, [(0, "")]):
        if line.strip():
            sentence.append((number, line))
            continue
        found += _trees(sentence, path, with_trees)
        sentence = []
    if not found:
        raise ValueError(f"{path} has no word: give a treebank in CoNLL-U")
    masked = {n: len(x.words) for n, x in enumerate(found, 1) if set(x.words) == {_NOTHING}}
    longest = max(masked, key=lambda number: masked[number], default=0)
    if longest and (masked[longest] > 1 or len(masked) == len(found)):  # a single _ may be a word
        raise ValueError(
            f"{path}, sentence {longest}: all its words are _, since the treebank is published "
            "without them: put them back with its own script"
        )
    return found


def _trees(
    sentence: Sequence[tuple[int, str]], path: str | os.PathLike[str], with_trees: bool
) -> list[Tree]:
    """The tree of a sentence's lines; none if they are comments alone."""
    tree = Tree([], [], [], [])
    end = 0  # of the last range of words
    empty_nodes = 0  # after the last word
    for number, line in sentence:
        if line.startswith("#") and not tree.words:
            continue
        try:
            columns, words = [x.strip(" ") for x in line.split("\t")], len(tree.words)
            if len(columns) != _COLUMNS:
                raise ValueError(
                    f"{len(columns)} columns and not {_COLUMNS} between tabs: {line[:60]!r}"
                )
            if not all(columns):
                raise ValueError(f"an empty column, where CoNLL-U writes _: {line[:60]!r}")
            name = columns[0]
            if match := _RANGE.fullmatch(name):
                start, last = int(match[1]), int(match[2])
                if not end < start == words + 1 <= last:
                    raise ValueError(f"the range {name} of words: word {words + 1} is next")
                end = last
            elif _EMPTY_NODE.fullmatch(name):
                empty_nodes += 1
                if name != f"{words}.{empty_nodes}":
                    raise ValueError(f"the empty node {name}: {words}.{empty_nodes} is next")
            elif name == str(words + 1):
                if with_trees:
                    _add_arc(tree, columns)
                tree.words.append(columns[1])
                tree.tags.append(columns[3])
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
        if with_trees:
            _require_tree(tree.heads)
    except ValueError as error:
        raise sources.wrong(path, sentence[0][0], f"the sentence from here on: {error}") from error
    return [tree]


def _add_arc(tree: Tree, columns: Sequence[str]) -> None:
    try:
        tree.heads.append(numerals.whole(columns[6]))
    except ValueError as error:
        raise ValueError(f"the head {columns[6]!r}: give the number of a word, or 0") from error
    if columns[7] == _NOTHING:
        raise ValueError("the relation _: give the word's relation to its head")
    tree.relations.append(columns[7])


def _require_tree(heads: Sequence[int]) -> None:
    """Raises ValueError unless one word is the root and the heads of all others lead to it."""
    for word, head in enumerate(heads, 1):
        if head > len(heads):
            raise ValueError(f"word {word} has the head {head}, of {len(heads)} words")
    roots = [word for word, head in enumerate(heads, 1) if head == ROOT]
    if len(roots) != 1:
        found = f"the roots {', '.join(map(str, roots))}" if roots else "no root"
        raise ValueError(f"{found}, and a tree has one")
    leading = {ROOT}
    for first in range(1, len(heads) + 1):
        path, word = set[int](), first
        while word not in leading:
            if word in path:
                raise ValueError(f"word {first} does not lead to the root")
            path.add(word)
            word = heads[word - 1]
        leading |= path


def best_tree(scores_NxN: np.ndarray) -> list[int]:
    """The heads of the tree with the highest score and one root (Chu & Liu 1965, Edmonds 1967).

    scores_NxN, [1 + words, 1 + words], holds the score of head j for each word i; number 0 is the
    root, and row 0 and the diagonal do not count. ValueError unless it is square and, from row 1
    on, finite.
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
        found = []
        for root in range(1, size):
            one = scores.copy()
            one[1:, 0] = np.nan
            one[root, 0] = scores[root, 0]
            found.append(chu_liu_edmonds(one)[0])
        heads = max(found, key=lambda own: sum(scores[word, own[word]] for word in range(1, size)))
    return [int(head) for head in heads[1:]]


def attachment_scores(
    gold: Sequence[Attachments],
    predicted: Sequence[Attachments],
    counted: Sequence[Sequence[bool]] | None = None,
    *,
    with_subtypes: bool = True,
) -> Scores:
    """The shares of words with the right head, `uas`, and with the right head and relation, `las`.

    `counted` says which words count, by default all; `with_subtypes` says whether `nsubj:pass` and
    `nsubj` are different relations. ValueError: numbers or lengths of sentences differ, or no word
    counts.
    """

    heads, both = [], []
    for number, (one, other) in enumerate(zip(gold, predicted, strict=True)):
        for place, ((head, *names), (guess, *guesses)) in enumerate(zip(one, other, strict=True)):
            if counted is None or counted[number][place]:
                if not with_subtypes:
                    names, guesses = ([x.split(":")[0] for x in some] for some in (names, guesses))
                heads.append(head == guess)
                both.append(head == guess and names == guesses)
    if not heads:
        raise ValueError("no word counts")
    return {"uas": sum(heads) / len(heads), "las": sum(both) / len(both)}


def not_punctuation(trees: Sequence[Tree]) -> list[list[bool]]:
    """Whether each word of each tree is something other than punctuation."""
    return [[tag != PUNCTUATION for tag in tree.tags] for tree in trees]


@dataclasses.dataclass(frozen=True)
class DependencyParsing(WordTask[Tree]):
    """Trees of words, with their relations."""

    name, title, column = "parsing", "Parsing", "parsing"
    head, metric, measure = labelled.PARSER, "las", "LAS"
    note = "LAS, the share of words with the right head and relation"
    options = {
        "subtypes": schema.flag("keep what follows the colon of a relation"),
        "punctuation": schema.flag("score punctuation too"),
    }

    subtypes: bool = False
    punctuation: bool = True

    @classmethod
    def described(cls, options: Mapping[str, Any]) -> str:
        relations = "relations with subtypes" if options.get("subtypes") else "universal relations"
        said = {None: "", True: ", punctuation is counted", False: ", punctuation is not counted"}
        return f"{cls.note}; {relations}{said[options.get('punctuation')]}"

    def read(self, path: str, language: str) -> list[Tree]:
        """See `read`; ValueError also if punctuation is not to be scored and words have no tags to
        tell it by."""
        found = read(path)
        if not self.punctuation:
            require_tags(path, found, ", or set parsing.punctuation=True")
        return found

    def gold(self, language: Language, derivation: Constituent) -> Tree:
        return gold(language, derivation)

    def _relation(self, name: str) -> str:
        return name if self.subtypes else name.split(":")[0]

    def labels(self, items: Sequence[Tree]) -> tuple[str, ...]:
        return tuple(sorted({self._relation(name) for tree in items for name in tree.relations}))

    def targets(self, items: Sequence[Tree], labels: Sequence[str]) -> list[np.ndarray]:
        number = numbered(labels)
        return [
            np.array([(head, number[self._relation(name)]) for head, name in tree.arcs], np.int32)
            for tree in items
        ]

    def scores(
        self, items: Sequence[Tree], predictions: Predictions, labels: Sequence[str]
    ) -> Scores:
        """`uas` and `las` of the trees with the highest scores."""
        predicted = []
        for arcs, relations in predictions:
            heads = enumerate(best_tree(np.pad(arcs, [(1, 0), (0, 0)])))
            predicted.append([(head, labels[relations[word, head]]) for word, head in heads])
        return self._scores(items, predicted)

    def _scores(self, items: Sequence[Tree], predicted: Sequence[Attachments]) -> Scores:
        counted = None if self.punctuation else not_punctuation(items)
        gold = [tree.arcs for tree in items]
        return attachment_scores(gold, predicted, counted, with_subtypes=self.subtypes)

    def baselines(self, known: Sequence[Tree], items: Sequence[Tree]) -> Scores:
        """The LAS of giving all words the most frequent pair (roots not counted) of a distance to
        the head and a relation; and of random heads with relations drawn with the known
        frequencies."""
        pool = [self._relation(name) for tree in known for name in tree.relations]
        pairs = collections.Counter(
            (head - word, self._relation(name))
            for tree in known
            for word, (head, name) in enumerate(tree.arcs, 1)
            if head
        )
        step, most = max(pairs, key=pairs.__getitem__, default=(1, pool[0]))
        sizes = [len(tree.words) for tree in items]
        constant = [[(word + step, most) for word in range(1, size + 1)] for size in sizes]
        random = np.random.default_rng(SEED)
        drawn = [
            [(int(random.integers(n + 1)), pool[random.integers(len(pool))]) for _ in range(n)]
            for n in sizes
        ]
        return {
            "majority": self._scores(items, constant)["las"],
            "chance": self._scores(items, drawn)["las"],
        }
