"""The floating-point operations that training cannot do without."""

from collections.abc import Mapping
from typing import Any

from xling_jax.batches.corruption import SHARE
from xling_jax.models.bert import BertConfig

PASSES = 3  # forward, and the backward pass, which takes twice as many
PRODUCT = 2  # a multiplication and an addition


def needed_flops(model: BertConfig, tokens: float, squares: float, pieces: float) -> float:
    """What updates on so much text need.

    The dense layers at real tokens, attention inside each sequence, the head at 15 % of the
    pieces. What is done for padding, or for places that are not predicted, does not count; nor do
    softmax, norms, GELU, dropout and the optimiser.

    Args:
      model: its size.
      tokens: real ones, special tokens included.
      squares: for each token, how many tokens it attends to, summed.
      pieces: the tokens that are not special, of which 15 % are predicted.
    """
    width = model.hidden
    dense = 4 * width * width + 2 * width * model.intermediate  # multiplications a token
    attention = 2 * width * squares  # scores, and their sums of values
    hidden = width * width if model.head == "bert" else 0
    head = SHARE * pieces * (hidden + width * model.vocabulary_size)
    return PASSES * PRODUCT * (model.layers * (tokens * dense + attention) + head)


def flops_of(model: BertConfig, result: Mapping[str, Any]) -> float:
    """What the steps of a worker's turn needed."""
    return needed_flops(model, result["tokens"], result["squares"], result["pieces"])
