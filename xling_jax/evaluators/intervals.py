"""Scores with bootstrap intervals: what is measured of two languages at one layer, and of a text.

Samples of the sentences (or pairs of words) are drawn with replacement, each as large as the whole;
an interval holds the middle 95 % of a score over the samples. In a sample, too, translations are
looked for among all sentences.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from xling_jax.evaluators import registry
from xling_jax.evaluators.comparison import (
    COMPARISONS,
    Numbers,
    Parallel,
    Ranks,
    can_learn_on_half,
    centred_ranks,
    csls_ranks,
    map_learned_on_half,
    precision,
)
from xling_jax.evaluators.dictionary_induction import Pairs, hits
from xling_jax.evaluators.text_encoder import TextEncoder
from xling_jax.evaluators.word_alignment import f1
from xling_jax.linalg import cka

SAMPLES, SEED = 1000, 0  # of an interval
INTERVAL = 2.5, 97.5  # percent
# Numbers n of sentences for which CKA has an interval: few say little, and it takes n x n matrices.
RESAMPLED = range(20, 5001)

RANKS: Mapping[str, Callable[[Parallel], Ranks]] = {
    "retrieval": lambda pair: pair.ranks,
    "mapped": lambda pair: map_learned_on_half(pair).ranks,
    "centred": centred_ranks,
    "csls": csls_ranks,
}


@dataclasses.dataclass(frozen=True)
class Score:
    """A number, and its values in the samples, float64 [S]; None if it has no interval."""

    value: float
    samples: np.ndarray | None = None

    @property
    def limits(self) -> tuple[float, float]:
        """The interval; NaN without samples."""
        if self.samples is None:
            return float("nan"), float("nan")
        low, high = np.percentile(self.samples, INTERVAL)
        return float(low), float(high)

    @classmethod
    def mean(cls, scores: Sequence["Score"], geometric: bool = False) -> "Score":
        """The mean of some scores, also sample by sample if all have samples."""

        def average(values: Sequence) -> np.ndarray:
            stacked = np.asarray(values, float)
            return np.exp(np.log(stacked).mean(0)) if geometric else stacked.mean(0)

        samples = [each.samples for each in scores if each.samples is not None]
        is_sampled = len(samples) == len(scores)
        value = float(average([each.value for each in scores]))
        return cls(value, average(samples) if is_sampled else None)


@functools.lru_cache(maxsize=8)
def _counts(number: int) -> np.ndarray:
    """How often each of `number` items is in each sample, float32 [S, n]."""
    random = np.random.default_rng([SEED, number])
    drawn = random.multinomial(number, np.full(number, 1 / number), size=SAMPLES)
    return drawn.astype(np.float32)


def _mean_score(values_N: np.ndarray) -> Score:
    values_N = np.asarray(values_N, np.float64)
    return Score(float(values_N.mean()), _counts(len(values_N)) @ values_N / len(values_N))


def _of_words(pairs: Pairs, directions: Sequence[np.ndarray]) -> Score:
    """The mean over both directions of the share of words whose translation is found.

    The pairs of words are sampled, and both directions have the same samples. In them, too, a word
    counts once, however many translations it has: each of its k pairs counts 1/k.

    Args:
      directions: bool [n] of each, whether a word's translation is found, in the order of
        `Pairs.gold`.
    """
    drawn_SxP, samples = _counts(len(pairs.rows)), []
    for word_P, found in zip(pairs.rows.T, directions, strict=True):
        _, place_P, numbers = np.unique(word_P, return_inverse=True, return_counts=True)
        part_P = 1 / numbers[place_P]
        samples.append(drawn_SxP @ (part_P * found[place_P]) / (drawn_SxP @ part_P))
    return Score(float(np.mean([found.mean() for found in directions])), np.mean(samples, axis=0))


@functools.partial(jax.jit, static_argnums=(0, 1))
def _compared(
    ranked: tuple[str, ...], others: tuple[str, ...], pair_2xNxD: jax.Array
) -> tuple[dict[str, Ranks], dict[str, Numbers]]:
    pair = Parallel(*pair_2xNxD)
    return {x: RANKS[x](pair) for x in ranked}, {x: COMPARISONS[x](pair) for x in others}


def _ranked(name: str, ranks: Ranks, with_mrr: bool) -> dict[tuple[str, str], Score]:
    """The scores that follow from ranks, by (metric, part)."""
    forward, backward = map(np.asarray, ranks)
    parts = {end.lstrip("_"): float(value) for end, value in precision(ranks).items()}
    found = {(name, part): Score(value) for part, value in parts.items() if part}
    # The same sentences are drawn for both directions.
    found[name, ""] = _mean_score(((forward < 1) * 1.0 + (backward < 1)) / 2)
    if with_mrr:
        found["mrr", ""] = _mean_score((1 / (1 + forward) + 1 / (1 + backward)) / 2)
    return found


def compare_sentences(
    first_NxD: np.ndarray, second_NxE: np.ndarray, names: Iterable[str]
) -> dict[tuple[str, str], Score]:
    """What can be measured of translations' vectors at one layer, by (metric, part).

    Of vectors of different widths that is only CKA.
    """
    names = set(names)
    sides = jnp.asarray(first_NxD, jnp.float32), jnp.asarray(second_NxE, jnp.float32)
    found: dict[tuple[str, str], Score] = {}
    number = len(first_NxD)
    if sides[0].shape == sides[1].shape:
        ranked = names | ({"retrieval"} if "mrr" in names else set())
        others = names & set(registry.names(registry.SENTENCES)) - RANKS.keys() - {"mrr", "cka"}
        if not can_learn_on_half(number):
            ranked -= {"mapped"}
        asked = tuple(name for name in RANKS if name in ranked)
        of_ranks, numbers = _compared(asked, tuple(sorted(others)), jnp.stack(sides))
        for name, ranks in of_ranks.items():
            found |= _ranked(name, ranks, name == "retrieval" and "mrr" in names)
        for name, own in numbers.items():
            found |= {(name, part.lstrip("_")): Score(float(x)) for part, x in own.items()}
    if "cka" in names:
        value, samples = float(cka.linear_cka(*sides)), None
        if number in RESAMPLED:
            drawn = np.asarray(cka.resampled_cka(*sides, jnp.asarray(_counts(number))))
            # Items drawn twice raise CKA: of the samples only the spread is kept, not the mean.
            samples = np.clip(value + drawn - drawn.mean(dtype=np.float64), 0, 1)
        found["cka", ""] = Score(value, samples)
    return {key: score for key, score in found.items() if key[0] in names}


def compare_words(
    first_NxD: np.ndarray, second_MxD: np.ndarray, pairs: Pairs, names: Iterable[str]
) -> dict[tuple[str, str], Score]:
    """Word translation at one layer, by (metric, part): `words` by CSLS among all words, and
    `translation`, as in D&S, by cosine among words paired one to one."""
    found: dict[tuple[str, str], Score] = {}
    sides = jnp.asarray(first_NxD), jnp.asarray(second_MxD)
    if "words" in names:
        forward = hits(*sides, pairs.gold())
        backward = hits(*sides[::-1], pairs.reverse().gold())
        for k in registry.CUTOFFS:
            both = forward[k], backward[k]
            found["words", "" if k == 1 else f"p{k}"] = _of_words(pairs, both)
            for way, own in zip(("forward", "backward"), both, strict=True):
                found["words", f"{way}_p{k}"] = Score(float(own.mean()))
    if "translation" in names:
        one, other = pairs.one_to_one().rows.T
        found |= _ranked("translation", Parallel(sides[0][one], sides[1][other]).ranks, False)
    return found


def compare_links(counts_NxC: np.ndarray) -> Score:
    """Word alignment at one layer, from `link_counts`."""
    samples = f1(_counts(len(counts_NxC)) @ counts_NxC)
    return Score(float(f1(counts_NxC.sum(0))), samples)


def pseudo_perplexity(
    encoder: TextEncoder, texts: Sequence[str], every: int, passes: int
) -> Score | None:
    """exp of the mean loss of masked pieces, see `TextEncoder.masked_losses`; None if no piece was
    masked."""
    losses_N, counts_N = encoder.masked_losses(texts, every, passes)
    if not counts_N.sum():
        return None
    drawn = _counts(len(texts))
    in_sample_S = drawn @ counts_N
    samples = np.exp((drawn @ losses_N) / in_sample_S) if in_sample_S.all() else None
    return Score(float(np.exp(losses_N.sum() / counts_N.sum())), samples)
