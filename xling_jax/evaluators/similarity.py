"""How alike two models are, layer by layer (W&C §5.1.3, §5.2)."""

import itertools
from collections.abc import Iterable, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from xling_jax.evaluators.comparison import Parallel, map_learned_on, retrieval
from xling_jax.evaluators.text_encoder import TextEncoder
from xling_jax.linalg import cka

CHUNK = 4096  # sentences encoded at once


def layer_cka(
    first: TextEncoder, second: TextEncoder, pairs: Iterable[tuple[str, str]]
) -> np.ndarray:
    """Linear CKA of mean-pooled sentences at each layer, float32 [L], in bounded memory. Each pair
    has a sentence for each encoder.

    Raises:
      ValueError: different numbers of layers, fewer than two pairs, or states that are not finite.
    """
    if len(first.layers) != len(second.layers):
        raise ValueError(
            f"layers {first.layers} and {second.layers}: compare as many of both models"
        )
    moments = jax.jit(jax.vmap(cka.moments))
    add = jax.jit(jax.vmap(cka.Moments.add))
    number, total, rest = 0, None, iter(pairs)
    while chunk := list(itertools.islice(rest, CHUNK)):
        sides = [
            jnp.asarray(encoder.sentences([pair[side] for pair in chunk]))
            for side, encoder in enumerate((first, second))
        ]
        found = moments(*sides)
        total = found if total is None else add(total, found)
        number += len(chunk)
    if total is None or number < 2:
        raise ValueError("CKA compares sentences: give at least two")
    found = np.asarray(jax.vmap(cka.Moments.cka)(total))
    if spoilt := np.flatnonzero(~np.isfinite(found)).tolist():
        raise ValueError(
            f"CKA of layer {first.layers[spoilt[0]]} with layer {second.layers[spoilt[0]]}: a "
            "state is a NaN or too large for float32. Give a model that has not diverged"
        )
    return found


def sentence_translation(
    first: TextEncoder,
    second: TextEncoder,
    learned: Sequence[tuple[str, str]] | None,
    tested: Sequence[tuple[str, str]],
) -> list[dict[str, float]]:
    """Retrieval of translations at each layer: of each, what `comparison.retrieval` returns.

    If there are parallel sentences `learned`, the vectors are first mapped by what is learned on
    them; see `comparison.map_learned_on`.
    """

    learned = learned or ()
    first_LxNxD, second_LxNxD = (
        jnp.asarray(encoder.sentences([pair[side] for pair in (*learned, *tested)]))
        for side, encoder in enumerate((first, second))
    )
    found = []
    for pair in map(Parallel, first_LxNxD, second_LxNxD):
        values = retrieval(map_learned_on(pair, len(learned)) if learned else pair)
        found.append({name: float(value) for name, value in values.items()})
    return found


def layer_correlation(similarity: Sequence[float], accuracy: Sequence[float]) -> float:
    """Pearson correlation over layers (W&C §5.2); NaN for fewer than two layers, or if one of the
    two does not vary."""
    x, y = np.asarray(similarity, float), np.asarray(accuracy, float)
    if len(x) < 2 or not np.ptp(x) or not np.ptp(y):
        return float("nan")
    return float(np.corrcoef(x, y)[0, 1])
