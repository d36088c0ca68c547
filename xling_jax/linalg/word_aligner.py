"""Word alignment of parallel sentences: IBM model 2 with a prior for the diagonal.

Dyer et al. 2013 ("A simple, fast, and effective reparameterization of IBM model 2"). A target word
is linked to one source word or to none; the prior of source place j for target place i falls with
the distance from the diagonal as exp(-tension · |i/m - j/n|). Translation probabilities have a
Dirichlet prior (variational Bayes), and after every iteration the tension takes the value that
fits the expected links best. Both directions are put together by grow-diag-final-and (Koehn et
al. 2003).
"""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from xling_jax.linalg.points import require_count

Links = list[tuple[int, int]]
ITERATIONS, NULL, ALPHA, TENSION = 5, 0.08, 0.01, 4.0  # as published
LIMITS = (0.1, 14.0)  # of the tension
NEWTON_STEPS = 6
SHORTEST = 16  # words of the shortest padded sentences; longer ones are twice as long, and so on
PLACES = 2**19  # candidate links of a batch
NEIGHBOURS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))
LONGEST = 4096  # words of a sentence, for the candidate links of a pair are their product
NO_WORD = -1


class _Batch(NamedTuple):
    """Sentences of about equal length.

    pair_BxMxN: the number of the pair of words, of target place i and, first, no word and then
    each source place. sizes_Bx2: target and source words, 0 for none.
    """

    pair_BxMxN: jax.Array
    sizes_Bx2: jax.Array


def numbered(sentences: Sequence[Sequence[str]]) -> list[np.ndarray]:
    """Sentences as numbers of words from 1; 0 stands for no word."""
    known: dict[str, int] = {}
    return [
        np.array([known.setdefault(w, len(known) + 1) for w in words], np.int64)
        for words in sentences
    ]


def _padded(size: int) -> int:
    return max(SHORTEST, 1 << (size - 1).bit_length())


def _problem(
    sources: list[np.ndarray], targets: list[np.ndarray]
) -> tuple[list[tuple[np.ndarray, _Batch]], jax.Array]:
    """Numbers the pairs of words, and puts sentences of about equal length together: which ones
    each row of a batch is, and the batch; and the source word of each pair, 0 for no word."""
    keys = [
        np.append(0, source)[None, :] << 32 | target[:, None]
        for source, target in zip(sources, targets, strict=True)
    ]
    known, inverse = np.unique(np.concatenate([key.ravel() for key in keys]), return_inverse=True)
    ends = np.cumsum([key.size for key in keys])
    buckets: dict[tuple[int, int], list[int]] = {}
    for number, key in enumerate(keys):
        shape = _padded(key.shape[0]), _padded(key.shape[1])
        buckets.setdefault(shape, []).append(number)
    batches = []
    for (m, n), members in sorted(buckets.items()):
        rows = max(1, PLACES // (m * n))
        for first in range(0, len(members), rows):
            some = np.array(members[first : first + rows])
            pair = np.full((rows, m, n), len(known), np.int32)
            sizes = np.zeros((rows, 2), np.int32)
            for row, number in enumerate(some.tolist()):
                own = keys[number].shape
                values = inverse[ends[number] - keys[number].size : ends[number]]
                pair[row, : own[0], : own[1]] = values.reshape(own)
                sizes[row] = own[0], own[1] - 1
            batches.append((some, _Batch(jnp.asarray(pair), jnp.asarray(sizes))))
    return batches, jnp.asarray((known >> 32).astype(np.int32))


def _distances(batch: _Batch) -> tuple[jax.Array, jax.Array]:
    """How far each source place is from the diagonal, [B, M, N], and whether it is one."""
    m_Bx1, n_Bx1 = batch.sizes_Bx2[:, :1, None], batch.sizes_Bx2[:, 1:, None]
    _, most, longest = batch.pair_BxMxN.shape
    i_M, j_N = jnp.arange(most)[:, None], jnp.arange(longest)  # source places count from 1 here
    distance = jnp.abs((i_M + 1) / jnp.maximum(m_Bx1, 1) - j_N / jnp.maximum(n_Bx1, 1))
    is_place = (j_N > 0) & (j_N <= n_Bx1) & (i_M < m_Bx1)
    return distance, is_place


def _prior(distance, is_place, tension) -> jax.Array:
    """The share of each source place among all, [B, M, N]."""
    logits = jnp.where(is_place, -tension * distance, -jnp.inf)
    weights = jnp.exp(logits - jnp.maximum(logits.max(axis=2, keepdims=True), -1e30))
    return weights / jnp.maximum(weights.sum(axis=2, keepdims=True), 1e-30)


def _shares(batch: _Batch, probability_P, tension) -> jax.Array:
    """The posterior of every candidate link, [B, M, N], the first being that to no word."""
    distance, is_place = _distances(batch)
    prior = (1 - NULL) * _prior(distance, is_place, tension)
    prior = prior.at[:, :, 0].set(NULL)
    weight = prior * probability_P.at[batch.pair_BxMxN].get(mode="fill", fill_value=0.0)
    return weight / jnp.maximum(weight.sum(axis=2, keepdims=True), 1e-30)


@functools.partial(jax.jit, donate_argnums=(2,))
def _expect(batch: _Batch, probability_P, counts_P, tension):
    """Adds expected counts of pairs; the links of each target place, and their sum of distances."""
    share = _shares(batch, probability_P, tension)
    counts_P = counts_P.at[batch.pair_BxMxN].add(share, mode="drop")
    distance, is_place = _distances(batch)
    to_words = jnp.where(is_place, share, 0.0)
    return counts_P, to_words.sum(axis=2), (to_words * distance).sum()


@jax.jit
def _maximize(counts_P, source_P, kinds_V):
    """The translation probabilities that the expected counts give under a Dirichlet prior."""
    total_V = jnp.zeros(len(kinds_V)).at[source_P].add(counts_P)
    digamma = jax.scipy.special.digamma
    below = digamma(total_V + ALPHA * kinds_V)
    return jnp.exp(digamma(counts_P + ALPHA) - below[source_P])


@jax.jit
def _slope(batch: _Batch, links_BxM, tension):
    """The distances that the prior expects for so many links, and its variance."""
    distance, is_place = _distances(batch)
    prior = _prior(distance, is_place, tension)
    mean = (prior * distance).sum(axis=2)
    variance = (prior * distance**2).sum(axis=2) - mean**2
    return (links_BxM * mean).sum(), (links_BxM * variance).sum()


def _best_tension(batches, links, observed: float, tension: float) -> float:
    """The tension under which the prior expects the distances that were observed (Newton)."""
    for _ in range(NEWTON_STEPS):
        found = [_slope(batch, own, tension) for batch, own in zip(batches, links, strict=True)]
        expected, variance = (sum(float(x[k]) for x in found) for k in (0, 1))
        tension += (expected - observed) / max(variance, 1e-6)
        tension = min(max(tension, LIMITS[0]), LIMITS[1])
    return tension


def directed(
    sources: list[np.ndarray], targets: list[np.ndarray], iterations: int
) -> list[np.ndarray]:
    """For each target word the place of its source word, or NO_WORD."""
    numbered_batches, source_P = _problem(sources, targets)
    batches = [batch for _, batch in numbered_batches]
    kinds_V = jnp.bincount(source_P)  # with how many target words each source word is paired
    # Before anything is known, a word is as likely a translation of one word as of another.
    probability_P = jnp.ones(len(source_P))
    tension = TENSION
    for _ in range(iterations):
        counts_P, links, observed = jnp.zeros(len(probability_P)), [], 0.0
        for batch in batches:
            counts_P, own, distance = _expect(batch, probability_P, counts_P, tension)
            links.append(own)
            observed += float(distance)
        probability_P = _maximize(counts_P, source_P, kinds_V)
        tension = _best_tension(batches, links, observed, tension)
    found = [np.full(len(target), NO_WORD) for target in targets]
    for numbers, batch in numbered_batches:
        best = np.asarray(_shares(batch, probability_P, tension).argmax(axis=2)) - 1
        for row, number in enumerate(numbers.tolist()):
            found[number] = best[row, : len(targets[number])]
    return found


def symmetrize(forward: Links, backward: Links) -> Links:
    """Both directions' links (source place, target place) put together by grow-diag-final-and
    (Koehn et al. 2003).

    Begins with the links that both have, adds neighbouring ones of either where a word has none
    yet, and at last links of either between two words that have none.
    """
    union = set(forward) | set(backward)
    links = set(forward) & set(backward)
    has_source, has_target = ({link[k] for link in links} for k in (0, 1))

    def add(link: tuple[int, int]) -> None:
        links.add(link)
        has_source.add(link[0])
        has_target.add(link[1])

    grown = True
    while grown:
        grown = False
        for link in sorted(links):
            for step in NEIGHBOURS:
                near = link[0] + step[0], link[1] + step[1]
                is_free = near[0] not in has_source or near[1] not in has_target
                if near in union and near not in links and is_free:
                    add(near)
                    grown = True
    for own in (forward, backward):
        for link in sorted(own):
            if link[0] not in has_source and link[1] not in has_target:
                add(link)
    return sorted(links)


def align(
    source_sentences: Sequence[Sequence[str]],
    target_sentences: Sequence[Sequence[str]],
    iterations: int = ITERATIONS,
) -> list[Links]:
    """Links the words of parallel sentences, line by line translations, by so many iterations of
    expectation maximisation in either direction.

    Each pair of sentences gets its links (source place, target place), from 0, sorted; none where a
    sentence has no word. Such a pair changes nothing for the others. ValueError: different numbers
    of sentences, or none with words; a sentence that is not cut into words, or is too long; no
    iterations.
    """
    require_count("iterations", iterations)
    if len(source_sentences) != len(target_sentences):
        raise ValueError(
            f"{len(source_sentences)} source and {len(target_sentences)} target sentences: give "
            "line by line translations"
        )
    for name, side in (("source", source_sentences), ("target", target_sentences)):
        for number, words in enumerate(side, 1):
            if isinstance(words, str):
                raise ValueError(f"{name} sentence {number} is a string: give a list of its words")
            if len(words) > LONGEST:
                raise ValueError(
                    f"{name} sentence {number} has {len(words):,} words, and at most {LONGEST:,} "
                    "can be aligned: leave it out, or cut the text into sentences"
                )
    pairs = enumerate(zip(source_sentences, target_sentences, strict=True))
    whole = [number for number, (source, target) in pairs if len(source) and len(target)]
    if not whole:
        raise ValueError("no pair of sentences has words on both sides")
    sources, targets = (
        numbered([side[number] for number in whole])
        for side in (source_sentences, target_sentences)
    )
    forward = directed(sources, targets, iterations)
    backward = directed(targets, sources, iterations)
    links: list[Links] = [[] for _ in source_sentences]
    for number, ahead, back in zip(whole, forward, backward, strict=True):
        links[number] = symmetrize(
            [(int(s), t) for t, s in enumerate(ahead) if s != NO_WORD],
            [(s, int(t)) for s, t in enumerate(back) if t != NO_WORD],
        )
    return links
