"""AdamW as in Dufter & Schütze 2020 (§2.1, Table 9), with the schedules of both papers, also for
parameters that each language has for itself (`models.partition`).

If a language is not in a step's batch, nothing of its own changes: neither its parameters, by
weight decay or otherwise, nor its moments, nor the count of its updates. The learning rate follows
the step, which all languages share.
"""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import optax

from xling_jax.models.partition import LANGUAGE, SHARED
from xling_jax.training import sharding

NOT_DECAYED = ("bias", "scale")  # biases and layer norms


@dataclasses.dataclass(frozen=True)
class OptimizerConfig:
    """Constants of the optimiser; the peak learning rate is in the replica's setting instead."""

    total_steps: int
    warmup_steps: int = 50
    weight_decay: float = 0.01
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-6
    clip: float = 1.0  # of the gradient's global norm
    decay: str = "linear"  # to 0 after the warm-up; or "inverse_sqrt" (W&C §3.1), or "constant"

    def schedule(self, step: jax.Array) -> jax.Array:
        """The share of the peak learning rate at `step` (from 0): a linear warm-up, then the decay.
        The inverse square root begins at the peak and falls as 1 / sqrt(step)."""
        up = step / self.warmup_steps if self.warmup_steps else 1.0
        if self.decay == "constant":
            return jnp.minimum(up, 1.0)
        if self.decay == "inverse_sqrt":
            first = max(1, self.warmup_steps)
            return jnp.minimum(up, jnp.sqrt(first / jnp.maximum(step, first)))
        down = (self.total_steps - step) / max(1, self.total_steps - self.warmup_steps)
        return jnp.clip(jnp.minimum(up, down), 0.0, 1.0)


def is_decayed(path: tuple) -> bool:
    """Whether weight decay applies to the leaf at a tree path."""
    return path[-1].key not in NOT_DECAYED


def clipped(config: OptimizerConfig, gradient, norm: jax.Array):
    """The gradient, scaled down to the norm `clip` if its norm is larger."""
    scale = jnp.minimum(1.0, config.clip / jnp.maximum(norm, 1e-30))
    return jax.tree.map(lambda leaf: leaf * scale, gradient)


def initial_moments(init: Callable, params):
    """The state that `init`, that of `adam`, would give: zeros, here as NumPy arrays."""
    shapes = jax.eval_shape(init, params)
    return jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), shapes)


def adam(config: OptimizerConfig) -> optax.GradientTransformation:
    """From a clipped gradient to the change before the learning rate: bias-corrected Adam plus
    weight decay. The change is subtracted from the parameters."""
    return optax.chain(
        optax.scale_by_adam(config.beta1, config.beta2, config.epsilon),
        optax.add_decayed_weights(
            config.weight_decay,
            mask=lambda params: jax.tree.map_with_path(lambda path, _: is_decayed(path), params),
        ),
    )


def partitioned_moments(config: OptimizerConfig, params):
    """The optimiser's initial state: one for what is shared, and one for each language."""
    init, own = adam(config).init, params[LANGUAGE]
    return {
        SHARED: initial_moments(init, params[SHARED]),
        LANGUAGE: initial_moments(jax.vmap(init), own) if own else {},
    }


def mean_gradient(summed, counts_K: jax.Array):
    """The gradient of mean losses, from that of losses summed over counts_K (float32) tokens of
    each language.

    Shared parameters follow the mean over all tokens, a language's own the mean over its tokens, so
    that a language that shares nothing is trained as if there were no other.
    """

    def own(leaf):
        return leaf / jnp.maximum(counts_K, 1.0).reshape(-1, *[1] * (leaf.ndim - 1))

    total = jnp.maximum(counts_K.sum(), 1.0)
    return {
        SHARED: jax.tree.map(lambda leaf: leaf / total, summed[SHARED]),
        LANGUAGE: jax.tree.map(own, summed[LANGUAGE]),
    }


def norms(gradient, dims, axis: str | None) -> tuple[jax.Array, jax.Array]:
    """The norm of the whole gradient, and that of each language's model, [K] (a scalar if languages
    have nothing for themselves).

    A language's model is what is shared and its own part. For `dims` see `sharding.dimensions`.
    """
    shared = sharding.square_sum(gradient[SHARED], dims[SHARED], axis)
    own_K = sharding.square_sum(gradient[LANGUAGE], dims[LANGUAGE], axis, first=1)
    return jnp.sqrt(shared + own_K.sum()), jnp.sqrt(shared + own_K)


def partitioned_update(
    config: OptimizerConfig,
    gradient,
    moments,
    params,
    present_K: jax.Array,
    norm: jax.Array,
    norm_K: jax.Array,
):
    """The changes of the parameters, before the learning rate, and the new moments.

    Args:
      present_K: bool, whether each language is in the step's batch.
      norm: of the whole gradient (see `norms`), by which shared parameters are clipped.
      norm_K: of each language's model, by which the language's own parameters are clipped.
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
