"""Training steps, compiled once for each program, and the memory that they take."""

import dataclasses
import time
from collections.abc import Sequence

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from xling_jax import devices
from xling_jax.batches.packing import Layout
from xling_jax.batches.setting import Setting
from xling_jax.batches.store import TokenStore
from xling_jax.training.metrics import say
from xling_jax.training.step import Program, initial_state, train_steps


def _abstract(tree, mesh: Mesh, spec: P, leading: Sequence[int] = ()):
    """Shapes of arrays that lie on a mesh, with more axes in front."""
    sharding = NamedSharding(mesh, spec)
    return jax.tree.map(
        lambda x: jax.ShapeDtypeStruct((*leading, *x.shape), x.dtype, sharding=sharding), tree
    )


@dataclasses.dataclass(frozen=True)
class Compiled:
    """A compiled `train_steps`, and the bytes that it takes on each device (0: not known)."""

    function: jax.stages.Compiled
    bytes_needed: int


class StepCompiler:
    """Compiles `train_steps` for a program and a number of replicas, each once."""

    def __init__(self, store: TokenStore):
        """Takes the training text."""
        self._store = store
        self._compiled: dict[tuple, Compiled] = {}  # by all that fixes the arguments' shapes

    def __call__(
        self,
        program: Program,
        mesh: Mesh,
        layout: Layout,
        steps: int,
        replicas: int,
        setting: Setting,
    ) -> Compiled:
        """The compiled function.

        Args:
          program: the model, the optimiser and a shard's rows.
          mesh: the devices.
          layout: of a step.
          steps: the length of a call's plan.
          replicas: how many the function trains.
          setting: any replica's, for its shapes.
        """
        shapes = tuple((x.shape, str(x.dtype)) for x in jax.tree.leaves(setting))
        key = (program, mesh, layout, steps, replicas, shapes)
        if key not in self._compiled:
            self._compiled[key] = self._compile(*key[:-1], setting)
        return self._compiled[key]

    def discard(self, compiled: Compiled) -> None:
        """Frees a function that is not going to be used."""
        self._compiled = {k: kept for k, kept in self._compiled.items() if kept is not compiled}

    def _compile(self, program, mesh, layout, steps, replicas, setting) -> Compiled:
        began = time.perf_counter()
        slots = jax.ShapeDtypeStruct((layout.most_sentences,), np.int32)
        places = jax.ShapeDtypeStruct((layout.shards, layout.shard_places), np.int32)
        state = jax.eval_shape(lambda: initial_state(program, 0))
        own, plans = devices.A_REPLICA, (replicas, steps)
        compiled = (
            train_steps(program, mesh)
            .lower(
                _abstract(state, mesh, own, [replicas]),
                _abstract(setting, mesh, own, [replicas]),
                _abstract(jax.eval_shape(self._store.to_device), mesh, devices.SHARED),
                _abstract(slots, mesh, own, plans),
                _abstract(slots, mesh, own, plans),
                _abstract(places, mesh, devices.A_REPLICA_AND_SHARD, plans),
                jax.ShapeDtypeStruct((), np.int32),
            )
            .compile()
        )
        memory = compiled.memory_analysis()
        needed = 0
        if memory is not None:
            needed = memory.temp_size_in_bytes + memory.argument_size_in_bytes
            needed += memory.output_size_in_bytes - memory.alias_size_in_bytes
        say(
            f"training step of {replicas} replicas compiled in "
            f"{time.perf_counter() - began:.0f} s"
            + (f", {needed / 2**20:,.0f} MiB a device" if needed else "")
        )
        return Compiled(compiled, needed)
