"""Training steps, compiled once for each program, and the memory that they take."""

import dataclasses
import time
from collections.abc import Hashable
from typing import Any, Protocol

import jax
import numpy as np
from jax.sharding import Mesh

from xling_jax import devices
from xling_jax.training.metrics import say
from xling_jax.training.sharding import AnyProgram, state_shapes, state_specs
from xling_jax.training.step import train_steps


class StepLayout(Hashable, Protocol):
    """The shape of a step."""

    def step_shapes(self) -> list[tuple[int, ...]]:
        """The shapes of the fields of one step's plan; all are int32."""


@dataclasses.dataclass(frozen=True)
class Compiled:
    """A compiled `train_steps`, and the bytes that it takes on each device (0: not known)."""

    function: jax.stages.Compiled
    bytes_needed: int


class StepCompiler:
    """Compiles `train_steps` for a program and a number of replicas, each once. `store` is the
    training text, a tree of arrays that a step gathers from."""

    def __init__(self, store: Any):
        self._store = store
        self._compiled: dict[tuple, Compiled] = {}  # by all that fixes the arguments' shapes

    def __call__(
        self,
        program: AnyProgram,
        mesh: Mesh,
        layout: StepLayout,
        steps: int,
        replicas: int,
        setting: Any,
    ) -> Compiled:
        """The compiled function. layout: of a step. steps: the length of a call's plan. replicas:
        how many the function trains. setting: any replica's, for its shapes."""
        of_setting = tuple((x.shape, str(x.dtype)) for x in jax.tree.leaves(setting))
        key = (program, mesh, layout, steps, replicas, of_setting)
        if key in self._compiled:
            return self._compiled[key]
        began = time.perf_counter()
        own, plans = devices.A_REPLICA, (replicas, steps)
        shapes = [jax.ShapeDtypeStruct(shape, np.int32) for shape in layout.step_shapes()]
        compiled = (
            train_steps(program, mesh)
            .lower(
                devices.abstract(state_shapes(program), mesh, state_specs(program), [replicas]),
                devices.abstract(setting, mesh, own, [replicas]),
                devices.abstract(self._store, mesh, devices.SHARED),
                jax.ShapeDtypeStruct((), np.int32),
                *(
                    devices.abstract(shape, mesh, spec, plans)
                    for shape, spec in zip(shapes, program.plan_specs, strict=True)
                ),
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
        self._compiled[key] = Compiled(compiled, needed)
        return self._compiled[key]

    def discard(self, compiled: Compiled) -> None:
        self._compiled = {k: kept for k, kept in self._compiled.items() if kept is not compiled}
