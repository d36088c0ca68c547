"""Word alignment by the states of words in context, against gold links (Jalili Sabet et al. 2020).

The experiments of D&S count links between pieces that are known to be each other's
(`comparison.count_links`); here words are linked by hand.
"""

from collections.abc import Sequence

import numpy as np

from xling_jax.corpora.word_links import GoldLinks, Links
from xling_jax.evaluators.text_encoder import TextEncoder

AT_ONCE = 128  # sentences whose words' states are in memory at all layers


def mutual_argmax(first_NxD: np.ndarray, second_MxD: np.ndarray) -> Links:
    """Links of words each of which is the other's nearest by cosine."""
    units = [x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)
             for x in (first_NxD, second_MxD)]  # fmt: skip
    similarity_NxM = units[0] @ units[1].T
    forward, backward = similarity_NxM.argmax(1), similarity_NxM.argmax(0)
    return [(i, int(j)) for i, j in enumerate(forward) if backward[j] == i]


def link_counts(
    encoders: tuple[TextEncoder, TextEncoder],
    sentences: tuple[Sequence[str], Sequence[str]],
    gold: Sequence[GoldLinks],
) -> np.ndarray:
    """What `f1` needs of each sentence at each layer, float64 [L, n, 4]: predicted links that are
    possible, predicted links, sure links that are predicted, sure links.

    Words stand between blanks: sentences are not normalised.

    Raises:
      ValueError: a link to a word that a sentence does not have.
    """
    counts = np.zeros((len(encoders[0].layers), len(gold), 4))
    for first in range(0, len(gold), AT_ONCE):
        sides = []
        for encoder, texts in zip(encoders, sentences, strict=True):
            some = texts[first : first + AT_ONCE]
            written = [" ".join(text.split()) for text in some]
            wanted = [range(len(text.split())) for text in written]
            states, is_there = encoder.occurrences(written, wanted)
            ends = np.cumsum([len(words) for words in wanted])[:-1]
            sides.append((np.split(states, ends, axis=1), np.split(is_there, ends)))
        (x, is_x), (y, is_y) = sides
        for number, links in enumerate(gold[first : first + AT_ONCE]):
            sizes = x[number].shape[1], y[number].shape[1]
            for link in (*links.sure, *links.possible):
                if not all(0 <= word < size for word, size in zip(link, sizes, strict=True)):
                    raise ValueError(
                        f"sentence {first + number + 1} has {sizes[0]} and {sizes[1]} words, and a "
                        f"link {link[0]}-{link[1]}: words are counted from 0, as they stand "
                        "between blanks"
                    )
            sure = set(links.sure)
            possible = sure | set(links.possible)
            places = np.flatnonzero(is_x[number]), np.flatnonzero(is_y[number])
            for layer in range(len(counts)):
                found = set()
                if all(map(len, places)):
                    own = x[number][layer, places[0]], y[number][layer, places[1]]
                    found = {(int(places[0][i]), int(places[1][j])) for i, j in mutual_argmax(*own)}
                counts[layer, first + number] = (
                    len(found & possible), len(found), len(found & sure), len(sure)
                )  # fmt: skip
    return counts


def f1(counts: np.ndarray) -> np.ndarray:
    """The harmonic mean of precision, of possible links among the predicted ones, and recall, of
    predicted links among the sure ones (Och & Ney 2003), from sums [..., 4] of `link_counts`; 0
    where nothing is right."""
    possible, predicted, right, sure = np.moveaxis(counts, -1, 0)
    precision, recall = possible / np.maximum(predicted, 1), right / np.maximum(sure, 1)
    total = precision + recall
    return 2 * precision * recall / np.where(total == 0, 1, total)
