"""Perplexity of masked tokens (D&S §2.2.2)."""

import jax
import jax.numpy as jnp

from xling_jax.batches import hashing
from xling_jax.batches.assembly import assemble
from xling_jax.batches.corruption import PieceRange, corrupt
from xling_jax.batches.setting import Setting
from xling_jax.batches.store import DeviceStore
from xling_jax.evaluators.representations import Encoder, EvaluationPlan
from xling_jax.training.step import masked_language_loss

SEED = 0  # of the selection, the same for all replicas and steps
ALL_MASKED = (1.0, 0.0, 0.0, 0.0)  # every selected token becomes [MASK]


def perplexities(
    encoder: Encoder,
    params,
    setting: Setting,
    store: DeviceStore,
    plan: EvaluationPlan,
    pieces: PieceRange,
) -> dict[str, jax.Array]:
    """Perplexity over all sentences of the plan; the same places are selected at every call.

    Returns:
      `""`: exp of the mean loss of all selected tokens. `_batch_mean`: exp of the mean of the
      batches' means, which the published code of D&S reports.
    """

    def one(i):
        step = plan.step(i)
        batch = assemble(store, step, setting)
        sentence_P = step.sentence[jnp.maximum(step.owner, 0)]
        token_P = hashing.token_hash(jnp.uint32(SEED), 0, sentence_P, batch.places)
        corrupted = corrupt(batch, token_P, jnp.array(ALL_MASKED), setting.neighbours, pieces)
        found = masked_language_loss(encoder.model, params, batch, corrupted, encoder.rows)
        loss, count = jax.lax.psum(found, encoder.axis)
        return jnp.stack([loss, count, loss / jnp.maximum(count, 1.0), (count > 0) * 1.0])

    loss, count, means, batches = plan.accumulate(one, jnp.zeros(4))
    return {"": jnp.exp(loss / count), "_batch_mean": jnp.exp(means / batches)}
