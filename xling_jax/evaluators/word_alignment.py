"""Words linked by their states in context, and scored by gold links (Jalili Sabet et al. 2020).

In the experiments of D&S the true links of pieces are known by construction
(`comparison.count_links`); here the gold links of words are given, such as those made by hand.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from xling_jax import errors
from xling_jax.corpora.word_links import GoldLinks, Links
from xling_jax.evaluators.text_encoder import TextEncoder

AT_ONCE = 512  # sentences whose words' states are in memory at all layers


def contextual_words(
    encoder: TextEncoder, written: Sequence[str], at_once: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Of each sentence, the states of its words in context, of unit length, [L, words, D], and
    which words are whole within the model's length; `at_once` sentences are encoded at a time."""
    for first in range(0, len(written), at_once):
        some = [text.split() for text in written[first : first + at_once]]
        wanted = [range(len(words)) for words in some]
        found_LxNxD, is_there_N = encoder.occurrences(some, wanted)
        ends = np.cumsum([len(words) for words in wanted])[:-1]
        norms = np.linalg.norm(found_LxNxD, axis=-1, keepdims=True)
        unit_LxNxD = found_LxNxD / np.maximum(norms, 1e-12)
        yield from zip(np.split(unit_LxNxD, ends, axis=1), np.split(is_there_N, ends), strict=True)


def linked(
    states: tuple[np.ndarray, np.ndarray],
    is_there: tuple[np.ndarray, np.ndarray],
    choose: Callable[[np.ndarray], Links],
) -> Links:
    """The links that `choose` makes from the cosines [n, m] of the words that are whole; the states
    of both sides are [words, D], of unit length."""
    source, target = map(np.flatnonzero, is_there)
    if not len(source) or not len(target):
        return []
    found = choose(states[0][source] @ states[1][target].T)
    return [(int(source[i]), int(target[j])) for i, j in found]


def mutual_argmax(similarity_NxM: np.ndarray) -> Links:
    """Links between words that are each other's nearest."""
    forward, backward = similarity_NxM.argmax(1), similarity_NxM.argmax(0)
    return [(i, int(j)) for i, j in enumerate(forward) if backward[j] == i]


def link_counts(
    encoders: tuple[TextEncoder, TextEncoder],
    sentences: tuple[Sequence[str], Sequence[str]],
    gold: Sequence[GoldLinks],
) -> np.ndarray:
    """What `f1` needs of each sentence at each layer, float64 [L, n, 4]: predicted links that are
    possible (sure ones are too), predicted links, sure links that are predicted, sure links.

    Words are what stands between blanks: sentences are not normalised.

    Raises:
      ValueError: a link to a word that a sentence does not have.
    """
    counts = np.zeros((len(encoders[0].layers), len(gold), 4))
    sides = [
        contextual_words(encoder, texts[: len(gold)], AT_ONCE)
        for encoder, texts in zip(encoders, sentences, strict=True)
    ]
    for number, ((x, is_x), (y, is_y), links) in enumerate(zip(*sides, gold, strict=True)):
        with errors.in_field(f"sentence {number + 1}"):
            links.require_words(len(is_x), len(is_y))
        sure = set(links.sure)
        possible = sure | set(links.possible)
        for layer in range(len(counts)):
            found = set(linked((x[layer], y[layer]), (is_x, is_y), mutual_argmax))
            counts[layer, number] = (
                len(found & possible), len(found), len(found & sure), len(sure)
            )  # fmt: skip
    return counts


def f1(counts: np.ndarray) -> np.ndarray:
    """The harmonic mean of precision, the share of predicted links that are possible, and recall,
    the share of sure links that are predicted (Och & Ney 2003), from sums [..., 4] of
    `link_counts`; 0 where nothing is right."""
    possible, predicted, right, sure = np.moveaxis(counts, -1, 0)
    precision, recall = possible / np.maximum(predicted, 1), right / np.maximum(sure, 1)
    total = precision + recall
    return 2 * precision * recall / np.where(total == 0, 1, total)
