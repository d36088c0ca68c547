"""Updates of parameters of which each language has a part (`models.partition`).

A language that a step's batch lacks does not change: neither its parameters nor its moments,
their count, nor by weight decay. The learning rate follows the step all languages share.
"""

import jax
import jax.numpy as jnp

from xling_jax.models.partition import LANGUAGE, SHARED
from xling_jax.training import optimizer, sharding
from xling_jax.training.optimizer import OptimizerConfig, adam, clipped


def initial_moments(config: OptimizerConfig, params):
    """The optimiser's state: one for what is shared, and one for each language."""
    init, own = adam(config).init, params[LANGUAGE]
    return {
        SHARED: optimizer.initial_moments(init, params[SHARED]),
        LANGUAGE: optimizer.initial_moments(jax.vmap(init), own) if own else {},
    }


def mean_gradient(summed, counts_K: jax.Array):
    """Gradients of mean losses from those of sums, over counts_K (float32) tokens of each language.

    What is shared follows the mean over all tokens, what belongs to a language the mean over its
    own: so that a language with nothing shared is trained as if there were no other.
    """

    def own(leaf):
        return leaf / jnp.maximum(counts_K, 1.0).reshape(-1, *[1] * (leaf.ndim - 1))

    total = jnp.maximum(counts_K.sum(), 1.0)
    return {
        SHARED: jax.tree.map(lambda leaf: leaf / total, summed[SHARED]),
        LANGUAGE: jax.tree.map(own, summed[LANGUAGE]),
    }


def norms(gradient, dims, axis: str | None) -> tuple[jax.Array, jax.Array]:
    """The norm of the whole gradient, and of each language's model's, [K] (or a scalar, if no
    language has anything for itself).

    A language's model is what is shared and its own part. See `sharding.square_sum`.
    """
    shared = sharding.square_sum(gradient[SHARED], dims[SHARED], axis)
    own_K = sharding.square_sum(gradient[LANGUAGE], dims[LANGUAGE], axis, first=1)
    return jnp.sqrt(shared + own_K.sum()), jnp.sqrt(shared + own_K)


def update(
    config: OptimizerConfig,
    gradient,
    moments,
    params,
    present_K: jax.Array,
    norm: jax.Array,
    norm_K: jax.Array,
):
    """The update before the learning rate, and the new moments.

    Each part is clipped by the norm of the model it is of (see `norms`): what is shared by that of
    the whole gradient, a language's part by that of the language's model. present_K (bool) are the
    languages of the step.
    """
    direction = adam(config).update
    shared = clipped(config, gradient[SHARED], norm)
    shared_update, shared_moments = direction(shared, moments[SHARED], params[SHARED])

    def one(gradient, moments, params, norm, is_present):
        change, new = direction(clipped(config, gradient, norm), moments, params)
        change = jax.tree.map(lambda leaf: jnp.where(is_present, leaf, 0.0), change)
        return change, jax.tree.map(lambda a, b: jnp.where(is_present, a, b), new, moments)

    own_update, own_moments = params[LANGUAGE], moments[LANGUAGE]
    if own_update:
        own_update, own_moments = jax.vmap(one)(
            gradient[LANGUAGE], own_moments, own_update, norm_K, present_K
        )
    changes = {SHARED: shared_update, LANGUAGE: own_update}
    return changes, {SHARED: shared_moments, LANGUAGE: own_moments}
