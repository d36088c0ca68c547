"""Word translation after an orthogonal map learned from a dictionary (W&C §5.1.1)."""

import dataclasses
from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np

from xling_jax.corpora.dictionaries import Dictionary
from xling_jax.evaluators.registry import CUTOFFS
from xling_jax.linalg import csls
from xling_jax.linalg.normalization import iterative_normalize
from xling_jax.linalg.points import points, row_pairs
from xling_jax.linalg.procrustes import orthogonal_map


@dataclasses.dataclass(frozen=True)
class Pairs:
    """A dictionary in terms of the rows of two tables of word vectors.

    Attributes:
      rows: int32 [n, 2], the row of a word and the row of a translation of it, no pair twice;
        several words may have one row.
      words: number of different source words in the dictionary.
      covered: how many of them are among the pairs.
    """

    rows: np.ndarray
    words: int
    covered: int

    @classmethod
    def of(
        cls, dictionary: Dictionary, source: Mapping[str, int], target: Mapping[str, int]
    ) -> "Pairs":
        """The pairs of a dictionary in which both words have a row; ValueError if there is none."""
        known = [
            (word, text)
            for word, translations in dictionary.entries.items()
            if word in source
            for text, _ in translations
            if text in target
        ]
        if not known:
            raise ValueError(
                f"none of the dictionary's {len(dictionary.entries)} words of "
                f"{dictionary.source_language} is known together with a translation into "
                f"{dictionary.target_language}"
            )
        rows = list(dict.fromkeys((source[word], target[text]) for word, text in known))
        words = len({word for word, _ in known})
        return cls(np.array(rows, np.int32), len(dictionary.entries), words)

    def reverse(self) -> "Pairs":
        """The other direction; `words` and `covered` both count the rows among the pairs."""
        turned = self.rows[:, ::-1]
        words = len(np.unique(turned[:, 0]))
        return Pairs(turned, words, words)

    def one_to_one(self) -> "Pairs":
        """The pairs in order, without those that share a word with one that was kept before."""
        seen: tuple[set[int], set[int]] = (set(), set())
        kept = []
        for one, other in self.rows.tolist():
            if one not in seen[0] and other not in seen[1]:
                kept.append((one, other))
                seen[0].add(one)
                seen[1].add(other)
        return Pairs(np.array(kept, np.int32), self.words, len(kept))

    def gold(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows of the different source words, [n], in ascending order, and of their
        translations, [n, G], filled up with -1."""
        order = np.argsort(self.rows[:, 0], kind="stable")
        words, starts, counts = np.unique(
            self.rows[order, 0], return_index=True, return_counts=True
        )
        table = np.full((len(words), counts.max()), -1, np.int32)
        for row, start, count in zip(table, starts, counts, strict=True):
            row[:count] = self.rows[order[start : start + count], 1]
        return words, table


def hits(
    queries_QxD: jax.Array,
    keys_MxD: jax.Array,
    gold: tuple[np.ndarray, np.ndarray],
    neighbours: int = csls.NEIGHBOURS,
) -> dict[int, np.ndarray]:
    """Whether each of the n words of `gold` has a translation among its k nearest by CSLS: bool [n]
    for each k of `CUTOFFS`.

    Args:
      queries_QxD: all words of one language, mapped into the other's space.
      keys_MxD: all words of the other language.
      gold: see `Pairs.gold`; ValueError if it has no word.
      neighbours: K of CSLS; neighbours are looked for among all words of both languages.
    """
    if not len(gold[0]):
        raise ValueError("gold: give at least one word with a translation")
    words, table = gold
    most = min(max(CUTOFFS), len(keys_MxD))
    _, nearest = csls.top_k(
        queries_QxD[words], keys_MxD, k=most, neighbours=neighbours, sources=queries_QxD
    )
    is_right = (np.asarray(nearest)[:, :, None] == table[:, None, :]).any(axis=2)
    return {k: is_right[:, :k].any(axis=1) for k in CUTOFFS}


def induce(
    source_NxD: jax.Array,
    target_MxD: jax.Array,
    train: Pairs | None,
    test: Pairs,
) -> dict[str, float]:
    """Translates words in both directions.

    Vectors are normalised (Zhang et al. 2019). An orthogonal map learned from the pairs of `train`
    (Schönemann 1966) takes the source into the target's space, and its transpose the target into
    the source's; without `train` there is no map.

    Returns:
      `forward_p1`, `forward_p5`, …, `backward_p1`, …, their means as `p1`, `p5`, `p10`, `words`
      and `covered` of `test`, and `learned`, the number of pairs that the map was learned from.

    Raises:
      ValueError: the vectors are not finite points of one space, or a pair has a row that they do
        not have.
    """
    source_NxD, target_MxD = points(one_space=True, source=source_NxD, target=target_MxD)
    sizes = len(source_NxD), len(target_MxD)
    for name, pairs in (("train", train), ("test", test)):
        if pairs is not None:
            row_pairs(f"{name}.rows", pairs.rows, sizes)
    source, target = iterative_normalize(source_NxD), iterative_normalize(target_MxD)
    mapped, turned = source, target
    if train is not None:
        one, other = train.rows.T
        rotation = orthogonal_map(source[one], target[other])
        mapped = jnp.matmul(source, rotation, precision=jax.lax.Precision.HIGHEST)
        turned = jnp.matmul(target, rotation.T, precision=jax.lax.Precision.HIGHEST)
    forward = hits(mapped, target, test.gold())
    backward = hits(turned, source, test.reverse().gold())
    metrics: dict[str, float] = {}
    for k in CUTOFFS:
        both = float(forward[k].mean()), float(backward[k].mean())
        metrics |= {f"forward_p{k}": both[0], f"backward_p{k}": both[1], f"p{k}": sum(both) / 2}
    learned = 0 if train is None else len(train.rows)
    counts = {"words": test.words, "covered": test.covered, "learned": learned}
    return metrics | {name: float(number) for name, number in counts.items()}
