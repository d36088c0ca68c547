"""Retrieval of translations by cosine (D&S §2.2.1), for sentences and for words alone."""

import jax
import jax.numpy as jnp

from xling_jax.linalg.retrieval import counterpart_ranks

CUTOFFS = (1, 5, 10)


def precisions(vectors_2xNxD: jax.Array) -> dict[str, jax.Array]:
    """The share of points whose counterpart is among the k nearest.

    Args:
      vectors_2xNxD: points of one language, and their counterparts.

    Returns:
      p@1 as `""`, its two directions as `_forward` and `_backward`, p@k as `_pk`; all but the
      directions are means of both directions.
    """
    forward, backward = counterpart_ranks(vectors_2xNxD[0], vectors_2xNxD[1])
    found = {}
    for k in CUTOFFS:
        both = jnp.mean(forward < k), jnp.mean(backward < k)
        found["" if k == 1 else f"_p{k}"] = (both[0] + both[1]) / 2
        if k == 1:
            found["_forward"], found["_backward"] = both
    return found
