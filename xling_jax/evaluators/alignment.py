"""How well one orthogonal map aligns two sets of sentences, inside a compiled program (W&C §5)."""

import jax
import jax.numpy as jnp

from xling_jax.evaluators.sentence_retrieval import precisions
from xling_jax.linalg import cka
from xling_jax.linalg.normalization import iterative_normalize
from xling_jax.linalg.points import points
from xling_jax.linalg.procrustes import orthogonal_map


def mapped_precisions(
    first_NxD: jax.Array, second_NxD: jax.Array, learned: int
) -> dict[str, jax.Array]:
    """Retrieval of sentences after a map learned on others (W&C §5.1.3).

    Both sides are normalised (Zhang et al. 2019), each with all its sentences, so that the same
    mean is taken off those of the map and those that are tested.

    Args:
      first_NxD, second_NxD: vectors of sentences and of their translations.
      learned: how many of them, from the beginning, the map is learned on; the rest is tested.

    Returns:
      What `sentence_retrieval.precisions` gives for the rest.

    Raises:
      ValueError: none to learn from, or none to test; or vectors that are not finite points of one
        space, row by row.
    """
    first_NxD, second_NxD = points(
        one_space=True, counterparts=True, first=first_NxD, second=second_NxD
    )
    if not 1 <= learned < len(first_NxD):
        raise ValueError(f"learned={learned} of {len(first_NxD)} sentences: leave some to test")
    x, y = iterative_normalize(first_NxD), iterative_normalize(second_NxD)
    rotation = orthogonal_map(x[:learned], y[:learned])
    mapped = jnp.matmul(x[learned:], rotation, precision=jax.lax.Precision.HIGHEST)
    return precisions(jnp.stack([mapped, y[learned:]]))


def alignment_scores(first_NxD: jax.Array, second_NxD: jax.Array) -> dict[str, jax.Array]:
    """What tells whether two languages become alike during training.

    Args:
      first_NxD, second_NxD: vectors of sentences and of their translations.

    Returns:
      `cka`, of all of them; `mapped`, P@1 of the second half after a map learned on the first,
      unless there is but one.
    """
    found = {"cka": cka.linear_cka(first_NxD, second_NxD)}
    if len(first_NxD) > 1:
        found["mapped"] = mapped_precisions(first_NxD, second_NxD, len(first_NxD) // 2)[""]
    return found
