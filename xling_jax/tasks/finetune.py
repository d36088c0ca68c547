"""Fine-tuning an encoder and a head on labelled examples: the training step, and predictions."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from xling_jax import devices
from xling_jax.batches import hashing, labelled, tasks
from xling_jax.batches.labelled import CLASSIFIER, KINDS, Encoded, Examples
from xling_jax.batches.tasks import TaskBatch, TaskLayout, TaskPlan
from xling_jax.models import heads, partition, task_heads
from xling_jax.models.bert import Bert, BertConfig, Stack, segment_bias
from xling_jax.models.dropout import DropoutBits
from xling_jax.models.task_heads import HeadConfig
from xling_jax.training import sharding
from xling_jax.training.optimizer import OptimizerConfig, adam, initial_moments
from xling_jax.training.step import State, StepMetrics, direction, taken

ENCODER, HEAD = "encoder", "head"
ADDED, MAP = "added", "map"  # new layers on a pretrained encoder, and the map to their inputs
EXAMPLES, FEW = 64, 16  # per device in a batch to predict; two sizes, to compile few programs
PAIRS = 2**18  # pairs of words per device in such a batch, because a parser scores each


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class TaskSetting:
    """The values of one replica: the seed (uint32), and the peak learning rates of the encoder and
    the head (float32)."""

    seed: jax.Array
    encoder: jax.Array
    head: jax.Array

    @classmethod
    def of(cls, seed: int, encoder: float, head: float) -> "TaskSetting":
        return cls(jnp.uint32(seed), jnp.float32(encoder), jnp.float32(head))


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class TaskStore:
    """What a step reads: the examples, and the frozen leaves of the encoder (see `divide`)."""

    examples: Examples
    frozen: Any


@dataclasses.dataclass(frozen=True)
class TaskProgram:
    """What a compiled program fixes.

    Attributes:
      frozen: paths of the encoder's leaves that do not change (W&C §4.3: a language's own).
      added: how many new layers stand on the encoder's first `base` layers, which are frozen (W&C
        §5.1.2); 0: the encoder is used as it is.
      axis, shards: see `training.step.Program`.
    """

    model: BertConfig
    head: HeadConfig
    optimizer: OptimizerConfig
    frozen: frozenset[str] = frozenset()
    base: int = 0
    added: int = 0
    axis: str | None = devices.DATA
    shards: int = 1

    masking_rate: ClassVar[float] = 0.0
    # How the fields of a `TaskPlan` lie on the mesh.
    plan_specs: ClassVar[tuple[P, ...]] = (devices.A_REPLICA_AND_SHARD,) * 7

    def initial_state(self, seed: int) -> State:
        return self.state_of(heads.initial_params(self.model, seed), seed)

    def state_of(self, plain, seed: int) -> State:
        """The state of a replica at the start: a model's plain parameters and a new head."""
        trained, _ = divide(plain, self.frozen)
        if self.added:
            new = dataclasses.replace(self.model, layers=self.added)
            # With `seed` itself they would begin as the pretrained model's own first layers did.
            untrained = heads.initial_params(new, heads.FIRST_UNTRAINED_SEED + seed)
            trained = {ADDED: untrained["layers"]}
        head = task_heads.initial_params(self.head, self.model.hidden, seed)
        params = {ENCODER: trained, HEAD: head}
        return State.begin(params, initial_moments(adam(self.optimizer).init, params))

    def update(
        self, state: State, setting: TaskSetting, store: TaskStore, *plan: jax.Array
    ) -> tuple[State, StepMetrics]:
        """One update; `plan` holds the fields of one step's `TaskPlan`, without step axis."""
        return train_step(self, state, setting, store, TaskPlan(*(field[0] for field in plan)))


def divide(plain, frozen: frozenset[str]):
    """The encoder's trained leaves and its frozen ones, as two trees; the head that predicts pieces
    is in neither."""
    encoder = {name: tree for name, tree in plain.items() if name != "mlm"}
    return partition.divide(encoder, frozen)


def word_states(
    program: TaskProgram, encoder, batch: TaskBatch, length: int, token_P: jax.Array | None
) -> jax.Array:
    """The last layer's states of the labelled items in one shard's batch, [B, W, D].

    Args:
      encoder: plain parameters, and those of `ADDED` and `MAP` if there are any.
      length: of packed rows.
      token_P: uint32, the hash that dropout starts from; None turns it off.
    """
    rows = ((batch.tokens.size // length, length),)
    bits = None if token_P is None else DropoutBits(token_P, batch.places)
    # Languages may have vocabularies of different sizes.
    size = encoder["embeddings"]["tokens"].shape[0]
    model = dataclasses.replace(program.model, vocabulary_size=size)
    (hidden_PxD,) = Bert(model).apply(
        {"params": encoder},
        batch.tokens,
        batch.positions,
        batch.segments,
        batch.types,
        rows=rows,
        bits=None if program.added else bits,
        layers=(program.base if program.added else model.layers,),
    )  # type: ignore[misc]
    if program.added:
        if MAP in encoder:
            hidden_PxD = encoder[MAP].apply(hidden_PxD)
        *_, hidden_PxD = Stack(model).apply(
            {"params": encoder[ADDED]},
            hidden_PxD,
            segment_bias(batch.segments, rows),
            rows,
            bits if model.dropout else None,
            program.added,
        )
    return hidden_PxD[batch.words]


def train_step(
    program: TaskProgram, state: State, setting: TaskSetting, store: TaskStore, plan: TaskPlan
) -> tuple[State, StepMetrics]:
    """One update of one replica, by one shard of a batch.

    The loss is a sum over the labelled items of the global batch, divided by their number. The
    learning rate in the metrics is the encoder's.
    """
    batch = tasks.gather(store.examples, plan)
    length = store.examples.tokens.shape[1]
    token_P = hashing.token_hash(setting.seed, state.step, batch.slots, batch.places)
    everywhere = functools.partial(sharding.total, axis=program.axis)
    counted = jnp.maximum(everywhere(batch.is_word.sum().astype(jnp.float32)), 1.0)

    dims = sharding.parameter_dimensions(program)

    def loss_of(params):
        params = sharding.gather(params, dims, program.axis)
        encoder = partition.merge(store.frozen, params[ENCODER])
        states = word_states(program, encoder, batch, length, token_P)
        losses = task_heads.losses(
            program.head, params[HEAD], states, batch.is_word, batch.labels, token_P[batch.words]
        )
        return losses.sum() / counted

    loss, gradient = jax.value_and_grad(loss_of)(state.params)
    changes, moments, norm = direction(program.optimizer, state, gradient, dims, program.axis)
    share = program.optimizer.schedule(state.step)
    rates = {ENCODER: setting.encoder * share, HEAD: setting.head * share}
    tokens = everywhere(batch.is_token.sum().astype(jnp.float32))
    metrics = StepMetrics(everywhere(loss), norm, rates[ENCODER], tokens)
    return taken(state, changes, moments, metrics, rates), metrics


@functools.lru_cache
def _compiled(program: TaskProgram, mesh: Mesh):
    def predict(params, frozen, store, *fields):
        batch = tasks.gather(store, TaskPlan(*(field[0, 0] for field in fields)))
        encoder = partition.merge(frozen, params[ENCODER])
        states = word_states(program, encoder, batch, store.tokens.shape[1], None)
        head = task_heads.module(program.head)
        found = head.apply({"params": params[HEAD]}, states)
        if program.head.kind == CLASSIFIER:
            found = (found.argmax(-1).astype(jnp.int32),)
        else:
            found = (task_heads.without_filling(found[0], batch.is_word), found[1])
        return tuple(field[None, None] for field in found)

    inputs = [devices.A_REPLICA, devices.SHARED, devices.SHARED] + [devices.A_SHARD] * 7
    return jax.jit(devices.per_replica(predict, mesh, inputs, devices.A_REPLICA_AND_SHARD))


class Predictor:
    """Predicts for all replicas side by side. Batches hold examples of similar length and have few
    shapes, so that sets of examples share compiled programs."""

    def __init__(self, program: TaskProgram, mesh: Mesh, encoded: Sequence[Encoded], frozen: Any):
        """Puts the examples on the devices, and `frozen`, the leaves of their language's encoder
        that were not trained."""
        self._number = len(encoded)
        # How a program is trained makes no difference to predictions.
        none = OptimizerConfig(total_steps=1)
        alike = dataclasses.replace(program, optimizer=none, frozen=frozenset(), shards=1)
        self._predict = _compiled(alike, mesh)
        self._frozen = devices.place(frozen, mesh, devices.SHARED)
        # For each batch: the examples, its plan, and for each example the place of its prediction,
        # its number and its width.
        self._batches: list[tuple[Any, list[jax.Array], list[tuple[int, int, int]]]] = []
        shards, kinds = mesh.shape[devices.DATA], KINDS[program.head.kind]
        for numbers, (most, length, width) in labelled.buckets(encoded):
            is_small = len(numbers) <= FEW * shards
            each = min(FEW if is_small else EXAMPLES, max(1, PAIRS // width**2))
            rows = each * most
            layout = TaskLayout(shards, each, rows=rows, packed=rows, width=width, length=length)
            for first in range(0, len(numbers), size := each * shards):
                own = numbers[first : first + size]
                filled = [encoded[number] for number in own + own[:1] * (size - len(own))]
                unknown = [np.zeros((len(x.places), kinds), np.int32) for x in filled]
                examples = Examples.of(filled, unknown, (rows * shards, length, width))
                chosen = np.where(np.arange(size) < len(own), np.arange(size), labelled.NONE)
                plan = tasks.plan(chosen[None], examples, layout)
                whose = [
                    (place, own[x], len(filled[x].places))
                    for place, x in enumerate(plan.example.ravel().tolist())
                    if x >= 0
                ]
                store = devices.place(examples, mesh, devices.SHARED)
                fields = [devices.place(x, mesh, devices.A_SHARD) for x in vars(plan).values()]
                self._batches.append((store, fields, whose))

    def __call__(self, params) -> list[list[tuple[np.ndarray, ...]]]:
        """The predictions of each replica for each example; `params` are [R, …].

        A classifier's are the best class of each labelled item, int32 [W]; a parser's the scores
        of heads, float32 [W, 1 + W], and the best relation to each head, int32 [W, 1 + W].
        """
        replicas = jax.tree.leaves(params)[0].shape[0]
        found: list[list[Any]] = [[None] * self._number for _ in range(replicas)]
        for store, fields, whose in self._batches:
            results = self._predict(params, self._frozen, store, *fields)
            # [R, 1, shards, B, W, …] as [R, shards x B, W, …]
            flat = devices.fetch(list(results))
            flat = [x.reshape(replicas, -1, *x.shape[4:]) for x in flat]
            for place, number, width in whose:
                without_filling = slice(width), slice(1 + width)
                for replica, own in enumerate(found):
                    values = (field[replica, place] for field in flat)
                    own[number] = tuple(x[without_filling[: x.ndim]] for x in values)
        return found
