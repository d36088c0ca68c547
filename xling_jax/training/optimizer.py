"""AdamW as Dufter & Schütze 2020 (§2.1, Table 9) use it, and the schedule of Wu et al. 2020."""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import optax

NOT_DECAYED = ("bias", "scale")  # biases and layer norms


@dataclasses.dataclass(frozen=True)
class OptimizerConfig:
    """Constants of the optimiser; the peak learning rate is a value of the replica's setting."""

    total_steps: int
    warmup_steps: int = 50
    weight_decay: float = 0.01
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-6
    clip: float = 1.0  # of the gradient's global norm
    decay: str = "linear"  # after the warm-up, to 0; "inverse_sqrt" (W&C §3.1), or "constant"

    def schedule(self, step: jax.Array) -> jax.Array:
        """The share of the peak learning rate at `step` (from 0): linear up, then the decay. An
        inverse square root falls from the peak at the warm-up's end as 1 / sqrt(step)."""
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
    """The gradient, shortened to the length `clip` if its norm is longer."""
    scale = jnp.minimum(1.0, config.clip / jnp.maximum(norm, 1e-30))
    return jax.tree.map(lambda leaf: leaf * scale, gradient)


def initial_moments(init: Callable, params):
    """What `adam` begins with, by its `init`: zeros, in the memory of the host."""
    shapes = jax.eval_shape(init, params)
    return jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), shapes)


def adam(config: OptimizerConfig) -> optax.GradientTransformation:
    """The update before the learning rate by a clipped gradient: bias-corrected Adam, decay."""
    return optax.chain(
        optax.scale_by_adam(config.beta1, config.beta2, config.epsilon),
        optax.add_decayed_weights(
            config.weight_decay,
            mask=lambda params: jax.tree.map_with_path(lambda path, _: is_decayed(path), params),
        ),
    )
