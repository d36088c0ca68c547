"""How alike the word order of two languages is (D&S Appendix B.2; Birch & Osborne 2011)."""

import math
from collections.abc import Sequence

import numpy as np

from xling_jax.evaluators.text_encoder import TextEncoder
from xling_jax.evaluators.word_alignment import contextual_words, linked
from xling_jax.linalg.word_aligner import Links
from xling_jax.models.text_model import TextModel


def kendall(links: Links) -> float | None:
    """1 - √(discordant pairs / all pairs) of a sentence's links (Birch & Osborne 2011, §3).

    A pair of links is discordant if its words stand in opposite orders in the two languages; links
    of the same word are in order. None with fewer than two links.
    """
    if len(links) < 2:
        return None
    source, target = np.array(sorted(links)).T
    first, second = np.triu_indices(len(links), 1)
    discordant = (source[first] < source[second]) & (target[first] > target[second])
    return 1 - math.sqrt(discordant.mean())


def match(similarity_NxM: np.ndarray) -> Links:
    """The min(N, M) links (source place, target place) of a maximum-weight bipartite matching,
    sorted (Jalili Sabet et al. 2020, Match)."""
    from scipy.optimize import linear_sum_assignment  # imported late: it is slow

    rows, columns = linear_sum_assignment(similarity_NxM, maximize=True)
    return sorted(zip(rows.tolist(), columns.tolist(), strict=True))


def contextual_links(
    first: TextModel, second: TextModel, layer: int, sentences: tuple[Sequence[str], Sequence[str]]
) -> list[Links]:
    """Links between the words of sentences and their translations: for each sentence a
    maximum-weight matching (`match`) by the cosines of the words' states in context at a layer (D&S
    B.2). Each side has a model that reads it, which may be the same."""
    sides = []
    for model, texts in zip((first, second), sentences, strict=True):
        written = [model.write(text) for text in texts]
        sides.append(contextual_words(TextEncoder(model, [layer]), written, max(len(written), 1)))
    return [
        linked((x[0], y[0]), (is_x, is_y), match)
        for (x, is_x), (y, is_y) in zip(*sides, strict=True)
    ]


def similarity(links: Sequence[Links], is_inverted: bool = False) -> float:
    """The mean of `kendall` over sentences; NaN if none has two links. Links number words as they
    are written; with `is_inverted` the words of the target are taken from the last to the
    first."""
    if is_inverted:
        links = [[(source, -target) for source, target in own] for own in links]
    found = [value for own in links if (value := kendall(own)) is not None]
    return float(np.mean(found)) if found else float("nan")
