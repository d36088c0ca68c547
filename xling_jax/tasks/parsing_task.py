"""Dependency parsing as a task (W&C §3.2)."""

import collections
import dataclasses
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from xling_jax.batches import labelled
from xling_jax.batches.labelled import Encoded
from xling_jax.corpora.embedded.pair import Pair
from xling_jax.models.task_heads import PARSER
from xling_jax.models.text_model import TextModel
from xling_jax.tasks import parsing
from xling_jax.tasks.parsing import Tree
from xling_jax.tasks.task import Prediction, numbered, pieces_of_words

SEED = 0  # of the heads that are drawn by chance


@dataclasses.dataclass(frozen=True)
class DependencyParsing:
    """See `Task`.

    subtypes: whether `nsubj:pass` is another relation than `nsubj`. punctuation: whether it counts.
    """

    name: ClassVar[str] = "parsing"
    head: ClassVar[str] = PARSER
    metric: ClassVar[str] = "las"

    subtypes: bool = False
    punctuation: bool = True

    def read(self, path: str, language: str) -> list[Tree]:
        """See `parsing.read`."""
        return parsing.read(path)

    def make(self, pair: Pair, number: int, seed: int) -> tuple[list[Tree], list[Tree]]:
        """See `Task`."""
        both: tuple[list[Tree], list[Tree]] = ([], [])
        derivations = pair.languages[0].derivations(seed)
        for _, derivation in zip(range(number), derivations, strict=False):
            for language, found in zip(pair.languages, both, strict=True):
                lines = enumerate(language.conllu(derivation), 1)
                found.extend(parsing.parse(lines))
        return both

    def _relation(self, name: str) -> str:
        return name if self.subtypes else name.split(":")[0]

    def labels(self, items: Sequence[Tree]) -> tuple[str, ...]:
        """The relations."""
        return tuple(sorted({self._relation(name) for tree in items for name in tree.relations}))

    def encode(self, items: Sequence[Tree], model: TextModel, longest: int) -> list[Encoded]:
        """See `Task`; a sentence that is too long goes on in further rows."""
        pieces = pieces_of_words(model, [tree.words for tree in items])
        return [
            labelled.sentence(own, model.special_ids, longest, model.inverted) for own in pieces
        ]

    def targets(self, items: Sequence[Tree], labels: Sequence[str]) -> list[np.ndarray]:
        """See `Task`."""
        number = numbered(labels)
        return [
            np.array(
                [
                    (head, number[self._relation(name)])
                    for head, name in zip(tree.heads, tree.relations, strict=True)
                ],
                np.int32,
            )
            for tree in items
        ]

    def scores(
        self, items: Sequence[Tree], predictions: Sequence[Prediction], labels: Sequence[str]
    ) -> dict[str, float]:
        """`uas` and `las` of the trees of highest score."""
        predicted = []
        for arcs, relations in predictions:
            square = np.zeros((arcs.shape[1], arcs.shape[1]))
            square[1:] = arcs
            heads = parsing.best_tree(square)
            predicted.append(
                [(head, labels[relations[word, head]]) for word, head in enumerate(heads)]
            )
        return self._scores(items, predicted)

    def _scores(
        self, items: Sequence[Tree], predicted: Sequence[list[tuple[int, str]]]
    ) -> dict[str, float]:
        gold = [list(zip(tree.heads, tree.relations, strict=True)) for tree in items]
        counted = None if self.punctuation else parsing.not_punctuation(items)
        return parsing.attachment_scores(gold, predicted, counted, with_subtypes=self.subtypes)

    def counted(self, items: Sequence[Tree]) -> dict[str, float]:
        """Nothing."""
        return {}

    def baselines(self, known: Sequence[Tree], items: Sequence[Tree]) -> dict[str, float]:
        """The LAS of the most frequent pair of a distance to the head and a relation, for all
        words; and of heads drawn at random with relations drawn as often as they are known."""
        pool = [self._relation(name) for tree in known for name in tree.relations]
        pairs = collections.Counter(
            (head - word, self._relation(name))
            for tree in known
            for word, (head, name) in enumerate(zip(tree.heads, tree.relations, strict=True), 1)
            if head
        )
        step, most = max(pairs, key=pairs.__getitem__, default=(1, pool[0]))
        constant = [
            [(word + step, most) for word in range(1, len(tree.words) + 1)] for tree in items
        ]
        random = np.random.default_rng(SEED)
        drawn = [
            [
                (int(random.integers(len(tree.words) + 1)), pool[int(random.integers(len(pool)))])
                for _ in tree.words
            ]
            for tree in items
        ]
        return {
            "majority": self._scores(items, constant)["las"],
            "chance": self._scores(items, drawn)["las"],
        }
