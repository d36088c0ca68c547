"""The training step on streams, where languages may have parameters of their own (W&C §3.1, §4)."""

import dataclasses
from collections.abc import Sequence
from functools import partial
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from xling_jax import devices
from xling_jax.batches import hashing
from xling_jax.batches.corruption import MASKING_RATE, corrupt
from xling_jax.batches.packing import Rows
from xling_jax.batches.setting import MARGINALS
from xling_jax.batches.streams import StreamLayout
from xling_jax.batches.windows import PieceTables, StreamStore, stream_batch
from xling_jax.models import heads, partition
from xling_jax.models.bert import BertConfig
from xling_jax.models.dropout import DropoutBits
from xling_jax.models.partition import LANGUAGE, SHARED
from xling_jax.training import optimizer, sharding
from xling_jax.training.optimizer import OptimizerConfig
from xling_jax.training.step import Candidates, State, StepMetrics, masked_language_loss, taken

SHARED_SOFTMAX, LANGUAGE_SOFTMAX = "shared", "language"


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class StreamSetting:
    """The values of one replica: the seed (uint32) and the peak learning rate (float32)."""

    seed: jax.Array
    learning_rate: jax.Array

    @classmethod
    def of(cls, seed: int, learning_rate: float) -> "StreamSetting":
        return cls(jnp.uint32(seed), jnp.float32(learning_rate))


@dataclasses.dataclass(frozen=True)
class Vocabularies:
    """What a program knows of the vocabularies.

    Attributes:
      languages: how many there are.
      separate: whether an id stands for a different piece in each language.
      softmax: whether a prediction chooses among all pieces, SHARED_SOFTMAX, or among those of its
        language, LANGUAGE_SOFTMAX.
    """

    languages: int
    separate: bool
    softmax: str

    def __post_init__(self):
        if self.separate and self.softmax == SHARED_SOFTMAX:
            raise ValueError(
                f"softmax={SHARED_SOFTMAX!r}: languages with token embeddings of their own "
                f"have no pieces in common to choose from; choose {LANGUAGE_SOFTMAX!r}"
            )

    def candidates(self, tables: PieceTables, language: jax.Array) -> Candidates | None:
        """What a prediction in a language chooses from; None: all pieces."""
        if self.softmax == SHARED_SOFTMAX:
            return None
        size = tables.sizes[language]
        if self.separate:
            return Candidates(size)
        return Candidates(size, tables.pieces[language], tables.local[language])


@dataclasses.dataclass(frozen=True)
class StreamProgram:
    """What a compiled program fixes.

    Attributes:
      partition: patterns of the parameters that each language has for itself, see
        `partition.is_under`.
      axis, shards, masking_rate: see `step.Program`.
      start_alike: whether the languages' own parameters begin with the same values, embeddings of
        tokens excepted.
    """

    model: BertConfig
    optimizer: OptimizerConfig
    layout: StreamLayout
    vocabularies: Vocabularies
    partition: tuple[str, ...] = ()
    axis: str | None = devices.DATA
    shards: int = 1
    masking_rate: float = MASKING_RATE
    start_alike: bool = False

    # How the fields of a `StreamPlan` lie on the mesh.
    plan_specs: ClassVar[tuple[P, ...]] = (devices.A_REPLICA_AND_SHARD,) * 3

    def initial_state(self, seed: int, numbers: Sequence[int] = ()) -> State:
        """The state of an untrained replica.

        Each language draws its own parameters by its number in `numbers` (default: its place among
        the program's languages). Shared parameters are the first language's; if languages start
        alike, so is everything but the embeddings of tokens.
        """
        numbers = numbers or range(self.vocabularies.languages)
        plain = [heads.initial_params(self.model, seed, number) for number in numbers]
        if self.start_alike:
            tables = [own["embeddings"]["tokens"] for own in plain]
            plain = [partition.with_tokens(plain[0], table_VxD) for table_VxD in tables]
        return self.state_of(partition.split(plain, self.partition))

    def state_of(self, params) -> State:
        return State.begin(params, optimizer.partitioned_moments(self.optimizer, params))

    def update(
        self, state: State, setting: StreamSetting, store: StreamStore, *plan: jax.Array
    ) -> tuple[State, StepMetrics]:
        """One update; `plan` holds the fields of one step's `StreamPlan`, without step axis."""
        return train_step(self, state, setting, store, *(field[0] for field in plan))


def masked_loss(
    program: StreamProgram,
    plain,
    store: StreamStore,
    language: jax.Array,
    windows_SxW: jax.Array,
    token_P: jax.Array,
    rows: Rows,
    rate: float,
    marginals: tuple[float, ...] = MARGINALS,
    has_dropout: bool = True,
) -> tuple[jax.Array, jax.Array]:
    """The summed loss (nats) of sequences of one language, and the number of tokens it is over.

    Args:
      plain: the language's parameters.
      store: for its tables of pieces.
      windows_SxW: token ids of windows of the language's stream.
      token_P: uint32, the hash that all random choices at a place start from.
      rows: the shape of the S sequences.
      rate: share of the pieces that are selected.
      marginals: shares of the selected tokens, as in `MARGINALS`; there are no neighbours.
      has_dropout: whether it is on.
    """
    batch = stream_batch(windows_SxW)
    draw = partial(store.tables.draw, language)
    corrupted = corrupt(batch, token_P, jnp.array(marginals), None, draw, rate)
    bits = DropoutBits(token_P, batch.places) if has_dropout else None
    candidates = program.vocabularies.candidates(store.tables, language)
    return masked_language_loss(program.model, plain, batch, corrupted, rows, bits, candidates)


def train_step(
    program: StreamProgram,
    state: State,
    setting: StreamSetting,
    store: StreamStore,
    language_M: jax.Array,
    windows: jax.Array,
    slot_MxS: jax.Array,
) -> tuple[State, StepMetrics]:
    """One update of one replica, by one shard of a batch: M microbatches of S sequences.

    Sums over the global batch are divided by global counts at the end, so it does not matter how
    the batch is divided.

    Args:
      language_M: of each microbatch.
      windows: the first token of each sequence's window in its stream, [M, S]; or the window's
        tokens, [M, S, window], if the layout is fed.
      slot_MxS: each sequence's number in the global batch.
    """
    layout, languages = program.layout, program.vocabularies.languages
    rows = ((layout.microbatch, layout.length),)
    place_P = jnp.tile(jnp.arange(layout.length), layout.microbatch)
    params, dims = state.params, sharding.parameter_dimensions(program)
    # Shards may work on different languages at a time, so the languages' own parameters cannot be
    # gathered inside the loop.
    every = sharding.gather(params[LANGUAGE], dims[LANGUAGE], program.axis)

    def one(i, carry):
        summed, loss, count_K, parts_K = carry
        language = language_M[i]
        tokens_SxW = (
            windows[i] if layout.is_fed else store.read(language, windows[i], layout.window)
        )
        slot_P = jnp.repeat(slot_MxS[i], layout.length)
        token_P = hashing.token_hash(setting.seed, state.step, slot_P, place_P)
        own = jax.tree.map(lambda leaf: leaf[language], every)

        def loss_of(shared, own):
            plain = partition.merge(sharding.gather(shared, dims[SHARED], program.axis), own)
            given = store, language, tokens_SxW, token_P, rows, program.masking_rate
            return masked_loss(program, plain, *given)

        (found, count), (of_shared, of_own) = jax.value_and_grad(
            loss_of, argnums=(0, 1), has_aux=True
        )(params[SHARED], own)
        summed = {
            SHARED: jax.tree.map(jnp.add, summed[SHARED], of_shared),
            LANGUAGE: jax.tree.map(
                lambda all_K, leaf: all_K.at[language].add(leaf), summed[LANGUAGE], of_own
            ),
        }
        is_it_K = (jnp.arange(languages) == language).astype(jnp.float32)
        return summed, loss + found, count_K + count * is_it_K, parts_K + is_it_K

    gradients = jax.tree.map(jnp.zeros_like, {SHARED: params[SHARED], LANGUAGE: every})
    nothing = (gradients, jnp.zeros(()), *[jnp.zeros(languages)] * 2)
    sums = jax.lax.fori_loop(0, layout.microbatches, one, nothing)
    summed = {
        SHARED: sharding.total_gradient(sums[0][SHARED], dims[SHARED], program.axis),
        LANGUAGE: sharding.scatter(sums[0][LANGUAGE], dims[LANGUAGE], program.axis),
    }
    loss, count_K, parts_K = jax.tree.map(partial(sharding.total, axis=program.axis), sums[1:])

    gradient = optimizer.mean_gradient(summed, count_K)
    norm, norm_K = optimizer.norms(gradient, dims, program.axis)
    rate = setting.learning_rate * program.optimizer.schedule(state.step)
    changes, moments = optimizer.partitioned_update(
        program.optimizer, gradient, state.moments, params, parts_K > 0, norm, norm_K
    )
    tokens = jnp.float32(np.prod([layout.parts, layout.sequences, layout.length]))
    metrics = StepMetrics(loss / jnp.maximum(count_K.sum(), 1.0), norm, rate, tokens)
    return taken(state, changes, moments, metrics, dict.fromkeys(params, rate)), metrics
