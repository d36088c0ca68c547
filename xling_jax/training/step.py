"""The state and the pure training step of one replica, and many steps in one compiled call."""

import dataclasses
import time
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from xling_jax import devices
from xling_jax.batches import hashing
from xling_jax.batches.assembly import Batch, assemble
from xling_jax.batches.corruption import MASKING_RATE, Corrupted, PieceRange, corrupt
from xling_jax.batches.packing import Plan, Rows
from xling_jax.batches.setting import Setting
from xling_jax.batches.store import TokenStore
from xling_jax.models import heads, partition
from xling_jax.models.bert import Bert, BertConfig
from xling_jax.models.dropout import DropoutBits
from xling_jax.training import sharding
from xling_jax.training.metrics import say
from xling_jax.training.optimizer import OptimizerConfig, adam, clipped, initial_moments
from xling_jax.training.sharding import AnyProgram, StepLayout, state_shapes, state_specs

RUNNING = -1  # `stopped_at` of a replica that has not diverged


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class State:
    """Everything in a replica that training changes.

    Attributes:
      step: int32, updates made; it goes on counting when the replica is frozen.
      params: see `models.partition`.
      moments: the optimiser's.
      stopped_at: int32, the first step with a loss or gradient that was not finite; parameters and
        moments are frozen from it on. RUNNING until then.
    """

    step: jax.Array
    params: Any
    moments: Any
    stopped_at: jax.Array

    @classmethod
    def begin(cls, params, moments) -> "State":
        return cls(jnp.zeros((), jnp.int32), params, moments, jnp.full((), RUNNING, jnp.int32))


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class StepMetrics:
    """float32 each: the mean loss (nats per token to predict), the gradient's norm before clipping,
    the learning rate, and the number of tokens without padding."""

    loss: jax.Array
    gradient_norm: jax.Array
    learning_rate: jax.Array
    tokens: jax.Array


@dataclasses.dataclass(frozen=True)
class Program:
    """What a compiled program fixes: all but the replicas' values.

    Attributes:
      rows: one shard's rows.
      axis: the mesh axis that the batch is divided over; None outside a mesh.
      shards: the number of devices along it that parameters and moments are divided among, see
        `sharding`; 1: each device has all of them.
      masking_rate: share of the pieces that are predicted.
    """

    model: BertConfig
    optimizer: OptimizerConfig
    pieces: PieceRange
    rows: Rows
    axis: str | None = devices.DATA
    shards: int = 1
    masking_rate: float = MASKING_RATE

    # How the fields of a `packing.Plan` lie on the mesh.
    plan_specs: ClassVar[tuple[P, ...]] = (
        devices.A_REPLICA,
        devices.A_REPLICA,
        devices.A_REPLICA_AND_SHARD,
    )

    def initial_state(self, seed: int) -> State:
        params = partition.split([heads.initial_params(self.model, seed)])
        return State.begin(params, initial_moments(adam(self.optimizer).init, params))

    def update(
        self, state: State, setting: Setting, store: TokenStore, *plan: jax.Array
    ) -> tuple[State, StepMetrics]:
        """One update; `plan` holds the fields of one step's `packing.Plan`, without step axis."""
        sentence, start, owner = plan
        return train_step(self, state, setting, store, Plan(sentence, start, owner[0]))


def direction(config: OptimizerConfig, state: State, gradient, dims, axis: str | None):
    """The changes of the parameters, before the learning rate; the new moments; and the norm of the
    whole gradient. `gradient` is this device's, as differentiating through `sharding.gather` gives
    it."""
    gradient = sharding.total_gradient(gradient, dims, axis)
    norm = jnp.sqrt(sharding.square_sum(gradient, dims, axis))
    shortened = clipped(config, gradient, norm)
    return *adam(config).update(shortened, state.moments, state.params), norm


def taken(
    state: State, changes, moments, metrics: StepMetrics, rates: Mapping[str, jax.Array]
) -> State:
    """The state after a step; parameters and moments stay as they are if the loss or gradient is
    not finite, or was not in an earlier step.

    Args:
      changes: of the parameters, before the learning rate.
      moments: the new ones.
      rates: the learning rate of each part of the parameters.
    """
    chex.assert_trees_all_equal_shapes_and_dtypes(changes, state.params)
    chex.assert_trees_all_equal_shapes_and_dtypes(moments, state.moments)
    params = {
        name: jax.tree.map(lambda p, change, rate=rates[name]: p - rate * change, *trees)
        for name, trees in ((name, (state.params[name], changes[name])) for name in state.params)
    }
    is_finite = jnp.isfinite(metrics.loss) & jnp.isfinite(metrics.gradient_norm)
    is_running = state.stopped_at == RUNNING
    stopped_at = jnp.where(is_finite | ~is_running, state.stopped_at, state.step)
    params, moments = jax.tree.map(
        lambda new, old: jnp.where(is_finite & is_running, new, old),
        (params, moments),
        (state.params, state.moments),
    )
    return State(state.step + 1, params, moments, stopped_at)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Candidates:
    """The pieces that a prediction chooses from.

    Attributes:
      size: int32, how many.
      ids: int32 [N], their ids in the first `size` places; None: ids 0 to size - 1.
      local: int32 [V], the place in `ids` of each id of the vocabulary, -1 of ids that are not
        among them; None if `ids` is.
    """

    size: jax.Array
    ids: jax.Array | None = None
    local: jax.Array | None = None


def masked_language_loss(
    model: BertConfig,
    params,
    batch: Batch,
    corrupted: Corrupted,
    rows: Rows,
    bits: DropoutBits | None = None,
    candidates: Candidates | None = None,
) -> tuple[jax.Array, jax.Array]:
    """The summed cross-entropy (nats) of the selected tokens, and their number, float32.

    Args:
      params: plain.
      batch: of one shard, P places.
      corrupted: the batch's tokens as the model reads them, and the tokens to predict.
      rows: the shape of the P places.
      bits: for dropout; None turns it off.
      candidates: what predictions choose from; None: all pieces.
    """
    (hidden_PxD,) = Bert(model).apply(
        {"params": params},
        corrupted.tokens,
        batch.positions,
        batch.segments,
        batch.token_types,
        rows=rows,
        bits=bits,
        layers=(model.layers,),
    )  # type: ignore[misc]
    chosen_CxD = hidden_PxD.at[corrupted.selected].get(mode="fill", fill_value=0)
    targets_C, ids, size = corrupted.targets, None, None
    if candidates is not None:
        ids, size = candidates.ids, candidates.size
        if candidates.local is not None:
            targets_C = candidates.local[targets_C]
    losses_C = heads.cross_entropy(model, params, chosen_CxD, targets_C, ids, size)
    if ids is not None:  # a target that is no candidate has no probability
        losses_C = jnp.where(targets_C < 0, jnp.nan, losses_C)
    return (losses_C * corrupted.weights).sum(), corrupted.weights.sum()


def train_step(
    program: Program, state: State, setting: Setting, store: TokenStore, plan: Plan
) -> tuple[State, StepMetrics]:
    """One update of one replica, by one shard of a batch. The loss is a sum over the global batch
    divided by the global number of selected tokens, so how the batch is divided does not matter."""
    batch = assemble(store, plan, setting)
    token_P = hashing.token_hash(setting.seed, state.step, plan.owner, batch.places)
    changes = setting.marginals, setting.neighbours, program.pieces.draw
    corrupted = corrupt(batch, token_P, *changes, program.masking_rate)
    everywhere = partial(sharding.total, axis=program.axis)
    selected = jnp.maximum(everywhere(corrupted.weights.sum()), 1.0)

    dims = sharding.parameter_dimensions(program)

    def loss_of(params):
        plain = partition.select(sharding.gather(params, dims, program.axis))
        bits = DropoutBits(token_P, batch.places)
        found, _ = masked_language_loss(program.model, plain, batch, corrupted, program.rows, bits)
        return found / selected

    loss, gradient = jax.value_and_grad(loss_of)(state.params)
    changes, moments, norm = direction(program.optimizer, state, gradient, dims, program.axis)
    rate = setting.learning_rate * program.optimizer.schedule(state.step)
    tokens = everywhere(batch.is_token.sum().astype(jnp.float32))
    metrics = StepMetrics(everywhere(loss), norm, rate, tokens)
    return taken(state, changes, moments, metrics, dict.fromkeys(state.params, rate)), metrics


def train_steps(program: AnyProgram, mesh: Mesh) -> jax.stages.Wrapped:
    """A jitted function that makes many updates of many replicas in one call.

    It takes (state [R, …], setting [R, …], store, count, and the fields of a plan of K steps,
    [R, K, …]), makes the first `count` updates of the plan, and returns the new state and
    `StepMetrics` of [R, K], zeros after the first `count`. The buffers of the old state are
    reused. One compilation serves any count.
    """

    def steps(state, setting, store, count, *plan):
        metrics = StepMetrics(*(jnp.zeros(plan[0].shape[0]) for _ in range(4)))

        def body(i, carry):
            state, metrics = carry
            state, one = program.update(state, setting, store, *(field[i] for field in plan))
            return state, jax.tree.map(lambda all_K, x: all_K.at[i].set(x), metrics, one)

        return jax.lax.fori_loop(0, count, body, (state, metrics))

    state, replica, shared = state_specs(program), devices.A_REPLICA, devices.SHARED
    inputs = [state, replica, shared, shared, *program.plan_specs]
    mapped = devices.per_replica(steps, mesh, inputs, (state, replica))
    return jax.jit(mapped, donate_argnums=0, compiler_options=devices.compiler_options(mesh))


@dataclasses.dataclass(frozen=True)
class Compiled:
    """A compiled `train_steps`, and the bytes it needs on each device (0: not known)."""

    function: jax.stages.Compiled
    bytes_needed: int


class StepCompiler:
    """Compiles `train_steps` for programs and numbers of replicas, and keeps what it compiled until
    `discard`. `store` is the training text, a tree of arrays that a step gathers from."""

    def __init__(self, store: Any):
        self._store = store
        self._compiled: dict[tuple, Compiled] = {}  # by what decides the program

    def __call__(
        self,
        program: AnyProgram,
        mesh: Mesh,
        layout: StepLayout,
        steps: int,
        replicas: int,
        setting: Any,
    ) -> Compiled:
        """The compiled function for these arguments.

        Args:
          layout: of a step.
          steps: the length of a call's plan.
          replicas: the number trained in one call.
          setting: any replica's, for its shapes.
        """
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
