"""Replicas trained side by side, without the loop around the steps."""

import jax
import jax.numpy as jnp
import numpy as np

from xling_jax import devices
from xling_jax.training import loop
from xling_jax.training.sharding import state_specs
from xling_jax.training.step import train_steps


def largest_change(old, new):
    """The largest change of a parameter, which for Adam is about the learning rate."""
    changes = jax.tree.map(lambda a, b: np.abs(a - b).max(), old, new)
    return max(jax.tree.leaves(changes))


def run(one, mesh, states, settings, text, plan, steps, call):
    """Makes `steps` updates, at most `call` at a time; returns the states after each call and the
    metrics of every step. `plan` takes the first update of a call and the first after it, and gives
    the fields of the replicas' plans from there on, [R, K, …]."""
    state = devices.place(loop.stack(states), mesh, state_specs(one))
    settings = devices.place(loop.stack(settings), mesh, devices.A_REPLICA)
    text = devices.place(text, mesh, devices.SHARED)
    function, found, collected = train_steps(one, mesh), [], []
    for start in range(0, steps, call):
        count = min(call, steps - start)
        fields = [
            devices.place(x.astype(np.int32), mesh, spec)
            for x, spec in zip(plan(start, start + count), one.plan_specs, strict=True)
        ]
        state, metrics = function(state, settings, text, jnp.int32(count), *fields)
        found.append(jax.device_get(state))
        collected.append(jax.tree.map(lambda x, n=count: np.asarray(x)[:, :n], metrics))
    return found, jax.tree.map(lambda *x: np.concatenate(x, 1), *collected)
