"""Word alignment of parallel sentences: IBM model 2 with a prior for the diagonal.

Dyer et al. 2013 ("A simple, fast, and effective reparameterization of IBM model 2"). A target word
is linked to one source word or to none; the prior of source place j for target place i falls with
the distance from the diagonal as exp(-tension · |i/m - j/n|). Translation probabilities have a
Dirichlet prior (variational Bayes), and after every iteration the tension is fitted to the expected
links. Both directions are combined by grow-diag-final-and (Koehn et al. 2003).
"""

import dataclasses
import heapq
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import digamma

from xling_jax.linalg.points import require_count

Links = list[tuple[int, int]]
Pair = tuple[Sequence[str], Sequence[str]]  # the words of a sentence and of its translation
# Takes the words of source and target sentences as numbers, and a number of iterations; returns for
# each sentence the place of each target word's source word, or NO_WORD.
Directed = Callable[[list[np.ndarray], list[np.ndarray], int], list[np.ndarray]]
ITERATIONS, NULL, ALPHA, TENSION = 5, 0.08, 0.01, 4.0  # as published
LIMITS = (0.1, 14.0)  # of the tension
NEWTON_STEPS = 6
CANDIDATES = 2**20  # candidate links in a chunk of whole sentences, about
BLOCK = 2**26  # candidate links of the pairs aligned together; a pair counts as PAIR_COST more
PAIR_COST = 2**8
NEIGHBOURS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))
LONGEST = 4096  # words of a sentence, because a pair's candidate links are the product of two
NO_WORD = -1


def numbered(sentences: Sequence[Sequence[str]]) -> list[np.ndarray]:
    """Sentences as numbers of words from 1; 0 stands for no word."""
    known: dict[str, int] = {}
    return [
        np.array([known.setdefault(w, len(known) + 1) for w in words], np.int64)
        for words in sentences
    ]


class _Prior:
    """The prior of source places, given the target place, for T target words.

    It depends only on the place i and the numbers of words m and n, so on U kinds of target places.
    The distances |i/m - j/n| of the source places are two arithmetic progressions, one on each side
    of the diagonal, so that sums over them are looked up in cumulative sums.
    """

    def __init__(self, place_T: np.ndarray, m_T: np.ndarray, n_T: np.ndarray):
        """Takes i (from 1), m and n of each target word."""
        self.kind_T, kinds = pd.factorize(place_T << 40 | m_T << 20 | n_T)
        place_U, m_U, n_U = kinds >> 40, kinds >> 20 & 0xFFFFF, kinds & 0xFFFFF
        diagonal_U = place_U * n_U / m_U
        below_U = np.floor(diagonal_U).astype(np.int64)
        nearest_U = (diagonal_U - below_U) / n_U
        self._sides = ((nearest_U, below_U), (1 / n_U - nearest_U, n_U - below_U))
        self._sizes, size_U = np.unique(n_U, return_inverse=True)
        self._offset_U = (np.cumsum(self._sizes + 1) - self._sizes - 1)[size_U]

    def moments(self, tension: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """For each kind of place, the sum of exp(-tension · distance), and the mean and variance of
        the distance."""
        powers = np.arange(3)[:, None]
        sums = []  # of (k/n)^power · exp(-tension · k/n) for less than 0, 1, ..., n steps of 1/n
        for n in self._sizes.tolist():
            step = np.arange(n) / n
            sums.append(
                np.pad(np.cumsum(step**powers * np.exp(-tension * step), axis=1), ((0, 0), (1, 0)))
            )
        table_3xS = np.concatenate(sums, axis=1)
        total_3xU = np.zeros((3, len(self._offset_U)))
        for nearest_U, number_U in self._sides:
            own_3xU = table_3xS[:, self._offset_U + number_U] * np.exp(-tension * nearest_U)
            total_3xU += (
                own_3xU[0],
                nearest_U * own_3xU[0] + own_3xU[1],
                nearest_U**2 * own_3xU[0] + 2 * nearest_U * own_3xU[1] + own_3xU[2],
            )
        mean_U = total_3xU[1] / total_3xU[0]
        return total_3xU[0], mean_U, total_3xU[2] / total_3xU[0] - mean_U**2

    def fitted(self, links_U: np.ndarray, observed: float, tension: float) -> float:
        """The tension under which the links' distances are expected to add up to `observed`, given
        the number of links of each kind of place (by Newton's method)."""
        for _ in range(NEWTON_STEPS):
            _, mean_U, variance_U = self.moments(tension)
            tension += (links_U @ mean_U - observed) / max(links_U @ variance_U, 1e-6)
            tension = min(max(tension, LIMITS[0]), LIMITS[1])
        return tension


@dataclasses.dataclass
class _Chunk:
    """The C candidate links of the T target words of some sentences, word after word: for each
    target word first the link to no word, then those to the source words in order.

    Attributes:
      start_T, width_T: where a word's links begin, and how many it has.
      pair_C: each link's pair of words, as a number among the K pairs that occur here.
      pair_K: the number of each of these pairs in the whole text.
      distance_C: from the diagonal, 0 for no word.
    """

    start_T: np.ndarray
    width_T: np.ndarray
    pair_C: np.ndarray
    pair_K: np.ndarray
    distance_C: np.ndarray

    @classmethod
    def of(cls, sources: list[np.ndarray], targets: list[np.ndarray]) -> "_Chunk":
        """The chunk of these sentences; pair_K holds the pairs themselves, source << 32 | target,
        until `_chunks` numbers them."""
        place_T, m_T, n_T = _places(sources, targets)
        width_T = n_T + 1
        start_T = np.cumsum(width_T) - width_T
        text = np.concatenate([x for source in sources for x in (np.zeros(1, np.int64), source)])
        begins_S = np.cumsum([0, *(len(source) + 1 for source in sources[:-1])])
        begins_T = np.repeat(begins_S, [len(target) for target in targets])
        j_C = np.arange(width_T.sum()) - np.repeat(start_T, width_T)
        source_C = text[np.repeat(begins_T, width_T) + j_C]
        pair_C, pair_K = pd.factorize(source_C << 32 | np.repeat(np.concatenate(targets), width_T))
        distance_C = np.abs(np.repeat(place_T / m_T, width_T) - j_C / np.repeat(n_T, width_T))
        distance_C[start_T] = 0.0
        return cls(start_T, width_T, pair_C.astype(np.int32), pair_K, distance_C.astype(np.float32))

    def _weights(self, probability_P, normalizer_T, tension: float) -> np.ndarray:
        """The probability of each candidate, [C], up to a constant factor for each target word."""
        weight_C = np.exp(-tension * self.distance_C, dtype=np.float64)
        weight_C *= np.repeat((1 - NULL) / normalizer_T, self.width_T)
        weight_C[self.start_T] = NULL
        weight_C *= probability_P[self.pair_K][self.pair_C]
        return weight_C

    def expect(self, *model) -> tuple[np.ndarray, np.ndarray, float]:
        """Expected values: the count of each pair of words, [K], the number of links of each target
        word to source words, [T], and the sum of their distances."""
        weight_C = self._weights(*model)
        total_T = np.add.reduceat(weight_C, self.start_T)
        links_T = 1 - weight_C[self.start_T] / total_T
        weight_C /= np.repeat(total_T, self.width_T)
        return np.bincount(self.pair_C, weight_C), links_T, float(weight_C @ self.distance_C)

    def best(self, *model) -> np.ndarray:
        """The likeliest candidate of each target word, a source place or NO_WORD; the first of
        several."""
        weight_C = self._weights(*model)
        is_best_C = weight_C == np.repeat(np.maximum.reduceat(weight_C, self.start_T), self.width_T)
        best = np.flatnonzero(is_best_C)
        return best[np.searchsorted(best, self.start_T)] - self.start_T + NO_WORD


def _places(sources: list[np.ndarray], targets: list[np.ndarray]) -> np.ndarray:
    """For each target word its place from 1 and the numbers of target and source words, [3, T]."""
    sizes_2xS = np.array([[len(x) for x in side] for side in (targets, sources)])
    m_T, n_T = np.repeat(sizes_2xS, sizes_2xS[0], axis=1)
    place_T = np.concatenate([np.arange(1, m + 1) for m in sizes_2xS[0].tolist()])
    return np.stack([place_T, m_T, n_T])


def _chunks(
    sources: list[np.ndarray], targets: list[np.ndarray], pool: ThreadPoolExecutor
) -> tuple[list[_Chunk], np.ndarray]:
    """The candidates of all sentences, and the source word of each pair of words, 0 for no word."""
    sizes_S = [len(t) * (len(s) + 1) for s, t in zip(sources, targets, strict=True)]
    number_S = np.cumsum(sizes_S) // CANDIDATES
    ends = [0, *(np.flatnonzero(np.diff(number_S)) + 1).tolist(), len(sources)]

    def between(start: int, stop: int) -> _Chunk:
        return _Chunk.of(sources[start:stop], targets[start:stop])

    chunks = list(pool.map(between, ends[:-1], ends[1:]))
    number_of, pair_P = pd.factorize(np.concatenate([chunk.pair_K for chunk in chunks]))
    parts = np.split(number_of, np.cumsum([len(chunk.pair_K) for chunk in chunks])[:-1])
    for chunk, part in zip(chunks, parts, strict=True):
        chunk.pair_K = part
    return chunks, pair_P >> 32


def directed(
    sources: list[np.ndarray], targets: list[np.ndarray], iterations: int
) -> list[np.ndarray]:
    """For each sentence, the place of each target word's source word, or NO_WORD; ValueError if a
    sentence has no words.

    Memory: 8 bytes per candidate link, 8 per distinct pair of words in each chunk, about 40 per
    distinct pair in all, and a few arrays of a chunk's size per thread.
    """
    if not all(map(len, [*sources, *targets])):
        raise ValueError("a sentence has no words: leave its pair out")
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # NumPy's loops release the GIL
        chunks, source_P = _chunks(sources, targets, pool)
        ends = np.cumsum([len(chunk.start_T) for chunk in chunks])
        prior = _Prior(*_places(sources, targets))
        kinds_V = np.bincount(source_P)  # with how many target words each source word is paired
        # At first every word is equally likely as a translation of any other.
        probability_P, tension = np.ones(len(source_P)), TENSION

        def in_all(function):
            """The results of a function of a chunk and the model, for every chunk."""
            normalizer_T = prior.moments(tension)[0][prior.kind_T]
            model = (
                [probability_P] * len(chunks), np.split(normalizer_T, ends[:-1]),
                [tension] * len(chunks),
            )  # fmt: skip
            return pool.map(function, chunks, *model)

        for _ in range(iterations):
            count_P, links, observed = np.zeros(len(source_P)), [], 0.0
            for chunk, (count_K, links_T, distance) in zip(
                chunks, in_all(_Chunk.expect), strict=True
            ):
                count_P[chunk.pair_K] += count_K
                links.append(links_T)
                observed += distance
            below_V = digamma(np.bincount(source_P, count_P) + ALPHA * kinds_V)
            probability_P = np.exp(digamma(count_P + ALPHA) - below_V[source_P])
            links_U = np.bincount(prior.kind_T, np.concatenate(links))
            tension = prior.fitted(links_U, observed, tension)
        found_T = np.concatenate(list(in_all(_Chunk.best)))
    return np.split(found_T, np.cumsum([len(target) for target in targets])[:-1])


def symmetrize(forward: Links, backward: Links) -> Links:
    """Combines the links (source place, target place) of both directions by grow-diag-final-and
    (Koehn et al. 2003).

    Begins with the links that both directions have. Then goes through all links in order, new ones
    included, and adds neighbouring links of either direction if a word of theirs has no link yet,
    until there are no more. Finally adds links of either direction whose words both have none.
    """
    union = set(forward) | set(backward)
    links = set(forward) & set(backward)
    has_source, has_target = ({link[k] for link in links} for k in (0, 1))

    def add(link: tuple[int, int]) -> None:
        links.add(link)
        has_source.add(link[0])
        has_target.add(link[1])

    rest, has_grown = union - links, True
    while rest and has_grown:
        has_grown = False
        near_rest = {(link[0] - a, link[1] - b) for link in rest for a, b in NEIGHBOURS}
        to_visit = sorted(links & near_rest)  # a heap; later links that are new join it
        while to_visit:
            link = heapq.heappop(to_visit)
            for step in NEIGHBOURS:
                near = link[0] + step[0], link[1] + step[1]
                is_free = near[0] not in has_source or near[1] not in has_target
                if near in rest and is_free:
                    rest.remove(near)
                    add(near)
                    has_grown = True
                    if near > link:
                        heapq.heappush(to_visit, near)
    for own in (forward, backward):
        for link in sorted(own):
            if link[0] not in has_source and link[1] not in has_target:
                add(link)
    return sorted(links)


def _checked(
    source_sentences: Iterable[Sequence[str]], target_sentences: Iterable[Sequence[str]]
) -> Iterator[Pair]:
    """The checked pairs of sentences; for errors see `align`."""
    names = ("source", "target")
    nothing: Any = object()
    both = itertools.zip_longest(source_sentences, target_sentences, fillvalue=nothing)
    for number, pair in enumerate(both, 1):
        if any(words is nothing for words in pair):
            ended, other = names if pair[0] is nothing else reversed(names)
            raise ValueError(
                f"the {ended} sentences end after {number - 1:,}, and the {other} ones go on: give "
                "line by line translations"
            )
        for name, words in zip(names, pair, strict=True):
            if isinstance(words, str):
                raise ValueError(f"{name} sentence {number} is a string: give a list of its words")
            if len(words) > LONGEST:
                raise ValueError(
                    f"{name} sentence {number} has {len(words):,} words, and at most {LONGEST:,} "
                    "can be aligned: leave it out, or cut the text into sentences"
                )
        yield pair


def _blocks(pairs: Iterable[Pair]) -> Iterator[list[Pair]]:
    """Pairs in blocks of cost `BLOCK` or a little more; the last block has up to twice that, or all
    pairs if they cost less."""
    block: list[Pair] = []
    later: list[Pair] = []
    sizes = [0, 0]  # of the two blocks
    for pair in pairs:
        is_full = sizes[0] >= BLOCK
        (later if is_full else block).append(pair)
        sizes[is_full] += (len(pair[0]) + 1) * (len(pair[1]) + 1) + PAIR_COST
        if sizes[1] >= BLOCK:
            yield block
            block, later, sizes = later, [], [sizes[1], 0]
    yield block + later


def align(
    source_sentences: Iterable[Sequence[str]],
    target_sentences: Iterable[Sequence[str]],
    iterations: int = ITERATIONS,
) -> Iterator[Links]:
    """Links the words of parallel sentences by so many iterations of expectation maximisation in
    each direction.

    Long text is read and aligned in blocks (of some 55,000 pairs of 30 words, or more), each on its
    own, so that memory does not grow with the text. A pair without words changes nothing for the
    others of its block.

    Yields:
      The links (source place, target place) of each pair of sentences, counted from 0 and sorted;
      none if one of the sentences has no words.

    Raises:
      ValueError, as links are taken, before those of the last pairs read: different numbers of
        sentences, or none with words; a sentence that is not cut into words, or is too long; fewer
        than one iteration.
    """
    require_count("iterations", iterations)
    has_words = False
    for block in _blocks(_checked(source_sentences, target_sentences)):
        whole = [all(map(len, pair)) for pair in block]
        has_words |= any(whole)
        links = itertools.starmap(
            symmetrize, directions(itertools.compress(block, whole), iterations)
        )
        for is_whole in whole:
            yield next(links) if is_whole else []
    if not has_words:
        raise ValueError("no pair of sentences has words on both sides")


def directions(
    pairs: Iterable[Pair], iterations: int, model: Directed = directed
) -> Iterator[tuple[Links, Links]]:
    """The links (source place, target place) of each pair of sentences that the model finds from
    source to target, and from target to source. All sentences must have words."""
    if not (both := list(pairs)):
        return
    sources, targets = (numbered(side) for side in zip(*both, strict=True))
    forward, backward = model(sources, targets, iterations), model(targets, sources, iterations)
    for ahead, back in zip(forward, backward, strict=True):
        yield (
            [(s, t) for t, s in enumerate(ahead.tolist()) if s != NO_WORD],
            [(s, t) for s, t in enumerate(back.tolist()) if t != NO_WORD],
        )
