"""Parts of speech: Universal Dependencies' UPOS, as in XTREME (Hu et al. 2020)."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from xling_jax.corpora.embedded.grammar import Constituent
from xling_jax.corpora.embedded.language import Language
from xling_jax.tasks import parsing
from xling_jax.tasks.parsing import Tree
from xling_jax.tasks.task import Predictions, Scores, WordTask, by_frequency, numbered


@dataclasses.dataclass(frozen=True)
class PartsOfSpeech(WordTask[Tree]):
    """Words with their universal parts of speech."""

    name, title = "pos", "POS"
    metric = measure = "accuracy"
    note = "accuracy, the share of words with the right universal part of speech"

    def read(self, path: str, language: str) -> list[Tree]:
        """The sentences of a treebank, with or without trees, see `parsing.read`; ValueError if a
        word has no tag."""
        found = parsing.read(path, with_trees=False)
        parsing.require_tags(path, found)
        return found

    def gold(self, language: Language, derivation: Constituent) -> Tree:
        return parsing.gold(language, derivation)

    def labels(self, items: Sequence[Tree]) -> tuple[str, ...]:
        return tuple(sorted({tag for tree in items for tag in tree.tags}))

    def targets(self, items: Sequence[Tree], labels: Sequence[str]) -> list[np.ndarray]:
        number = numbered(labels)
        return [np.array([[number[tag]] for tag in tree.tags], np.int32) for tree in items]

    def scores(
        self, items: Sequence[Tree], predictions: Predictions, labels: Sequence[str]
    ) -> Scores:
        right = [
            labels[number] == tag
            for tree, (found,) in zip(items, predictions, strict=True)
            for tag, number in zip(tree.tags, found, strict=True)
        ]
        return {"accuracy": float(np.mean(right))}

    def baselines(self, known: Sequence[Tree], items: Sequence[Tree]) -> Scores:
        first, second = ([tag for tree in some for tag in tree.tags] for some in (known, items))
        return by_frequency(first, second)
