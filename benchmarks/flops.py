"""The floating-point operations that a worker's turn needs at least."""

from collections.abc import Mapping
from typing import Any

from xling_jax.batches.corruption import MASKING_RATE
from xling_jax.models.bert import BertConfig
from xling_jax.training.utilisation import needed_flops


def flops_of(model: BertConfig, result: Mapping[str, Any]) -> float:
    """The operations that the steps of a worker's turn needed."""
    return needed_flops(model, result["tokens"], result["squares"], MASKING_RATE * result["pieces"])
