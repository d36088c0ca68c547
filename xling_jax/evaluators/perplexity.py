"""Perplexity of masked tokens (D&S §2.2.2), in sentences and in streams.

15 % of the pieces are masked, whatever share a model was trained to predict, so that perplexities
can be compared.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from xling_jax import devices
from xling_jax.batches import hashing
from xling_jax.batches.assembly import assemble
from xling_jax.batches.corruption import MASKING_RATE, PieceRange, corrupt
from xling_jax.batches.packing import Plan
from xling_jax.batches.setting import Setting
from xling_jax.batches.store import TokenStore
from xling_jax.batches.streams import beginnings, nearest_beginning, sentence_starts
from xling_jax.batches.windows import StreamStore
from xling_jax.evaluators.representations import Encoder, accumulate, step_of
from xling_jax.models import partition
from xling_jax.training.step import masked_language_loss
from xling_jax.training.stream_step import StreamProgram, masked_loss

SEED = 0  # of the selection of places, the same for all replicas and steps
ALL_MASKED = (1.0, 0.0, 0.0, 0.0)  # every selected token becomes [MASK]


def perplexities(
    encoder: Encoder,
    params,
    setting: Setting,
    store: TokenStore,
    plan: Plan,
    pieces: PieceRange,
) -> dict[str, jax.Array]:
    """Perplexity over all sentences of the plan; the same places are masked at every call.

    Returns:
      Under `""` exp of the mean loss of all masked tokens, and under `_batch_mean` exp of the mean
      of the batches' mean losses, as the published code of D&S reports it.
    """

    def one(i):
        step = step_of(plan, i)
        batch = assemble(store, step, setting)
        sentence_P = step.sentence[jnp.maximum(step.owner, 0)]
        token_P = hashing.token_hash(jnp.uint32(SEED), 0, sentence_P, batch.places)
        changes = jnp.array(ALL_MASKED), setting.neighbours, pieces.draw
        corrupted = corrupt(batch, token_P, *changes, MASKING_RATE)
        found = masked_language_loss(encoder.model, params, batch, corrupted, encoder.rows)
        loss, count = jax.lax.psum(found, encoder.axis)
        return jnp.stack([loss, count, loss / jnp.maximum(count, 1.0), (count > 0) * 1.0])

    loss, count, means, batches = accumulate(plan, one, jnp.zeros(4))
    return {"": jnp.exp(loss / count), "_batch_mean": jnp.exp(means / batches)}


class StreamPerplexity:
    """Perplexity of replicas side by side, on a held-out stream of each language.

    The same places of the same windows are masked at every call. A stream is cut into adjacent
    windows, and a rest that is shorter than a window is not measured. If windows begin with a
    sentence, each of these is moved to the nearest beginning: some tokens are then in no window or
    in two, and windows that run past the end are left out.
    """

    def __init__(
        self,
        program: StreamProgram,
        mesh: Mesh,
        dev: StreamStore,
        languages: Sequence[str],
        begins_with_sentence: bool = False,
    ):
        """Plans the windows, moved as in training if they begin with a sentence
        (`nearest_beginning`), and puts the text on the devices."""
        layout = program.layout
        self._program, self._languages = program, languages
        self._text = devices.place(dev, mesh, devices.SHARED)
        shards = mesh.shape[devices.DATA]
        windows = np.array([size // layout.window for size in dev.sizes])
        rows = min(layout.microbatch, -(-int(windows.max()) // shards))
        self._steps = -(-windows // (rows * shards))
        start = np.full((len(languages), int(self._steps.max()) * shards * rows), -1, np.int32)
        own_text = np.split(dev.tokens, np.cumsum(dev.sizes)[:-1])
        for number, (count, tokens) in enumerate(zip(windows, own_text, strict=True)):
            found = np.arange(count) * layout.window
            if begins_with_sentence:
                begin = beginnings(sentence_starts([tokens]), len(tokens), layout.window)
                found = nearest_beginning(found, begin)
                found = found[found + layout.window <= len(tokens)]
            start[number, : len(found)] = found
        start_KxNxSxR = start.reshape(len(languages), -1, shards, rows)
        self._starts = [devices.place(start, mesh, devices.A_SHARD) for start in start_KxNxSxR]
        inputs = [devices.A_REPLICA] + [devices.SHARED] * 3 + [devices.A_SHARD]
        self._mean_loss = jax.jit(
            devices.per_replica(self._mean, mesh, inputs, devices.A_REPLICA, one_by_one=True)
        )

    def _mean(self, params, text, language, steps, start):
        """Mean loss of one replica in a language, over the first `steps` of `start` [N, 1, R], the
        places where windows start."""
        layout = self._program.layout
        plain = partition.select(params, language)
        rows = start.shape[2]
        place_P = jnp.tile(jnp.arange(layout.length), rows)

        def one(i, total):
            first_S = start[i, 0]
            tokens_SxW = text.read(language, jnp.maximum(first_S, 0), layout.window)
            # Rows that only fill a batch up hold nothing that may be predicted.
            tokens_SxW = jnp.where(first_S[:, None] < 0, 0, tokens_SxW)
            slot_P = jnp.repeat(first_S, layout.length)
            token_P = hashing.token_hash(jnp.uint32(SEED), 0, slot_P, place_P)
            found = masked_loss(
                self._program,
                plain,
                text,
                language,
                tokens_SxW,
                token_P,
                ((rows, layout.length),),
                MASKING_RATE,
                ALL_MASKED,
                has_dropout=False,
            )
            return total + jnp.stack(found)

        loss, count = jax.lax.psum(
            jax.lax.fori_loop(0, steps, one, jnp.zeros(2)), self._program.axis
        )
        return loss / count

    def __call__(self, params) -> list[dict[str, float]]:
        """`perplexity_dev_NAME` of each replica in each language, and `perplexity_dev`, their
        geometric mean."""
        losses = []
        for number, (steps, start) in enumerate(zip(self._steps, self._starts, strict=True)):
            which = jnp.int32(number), jnp.int32(steps)
            losses.append(self._mean_loss(params, self._text, *which, start))
        found = []
        for replica in np.stack(devices.fetch(losses), axis=1):
            with np.errstate(over="ignore"):  # what overflows is infinite
                every, mean = np.exp(replica).tolist(), float(np.exp(replica.mean()))
            named = zip(self._languages, every, strict=True)
            values = {f"perplexity_dev_{name}": value for name, value in named}
            found.append(values | {"perplexity_dev": mean})
        return found
