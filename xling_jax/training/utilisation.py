"""The share of a machine's speed in matrix products that training makes use of."""

import functools
import time

import jax
import jax.numpy as jnp
from jax.sharding import Mesh

from xling_jax.models.bert import BertConfig

PASSES = 3  # the forward pass, and the backward pass, which takes twice as many operations
PRODUCT = 2  # operations: a multiplication and an addition
SIDE, LARGE_SIDE = 1024, 8192  # of the matrices on CPUs, and on accelerators
REPEATS = 10  # the fastest counts, because other programs may use the machine too


def needed_flops(model: BertConfig, tokens: float, squares: float, predicted: float) -> float:
    """The fewest floating-point operations that updates on so much text need.

    They are those of the dense layers at all tokens, of attention, and of the head at predicted
    tokens. Padding, and the head at other tokens, do not count; nor do softmax, norms, GELU,
    dropout and the optimiser.

    Args:
      model: its size.
      tokens: how many, special tokens included and padding not.
      squares: the number of tokens that a token attends to, summed over all tokens.
      predicted: how many tokens are predicted.
    """
    width = model.hidden
    dense = 4 * width * width + 2 * width * model.intermediate  # multiplications a token
    attention = 2 * width * squares  # scores, and their sums of values
    hidden = width * width if model.head == "bert" else 0
    head = predicted * (hidden + width * model.vocabulary_size)
    return PASSES * PRODUCT * (model.layers * (tokens * dense + attention) + head)


def matrix_rate(mesh: Mesh, model: BertConfig) -> float:
    """FLOP/s of large matrix products, in the model's number types, on all devices of a mesh at
    once. Measured on this process's devices, the first time only."""
    own = tuple(mesh.local_devices)
    return _rate(own, model.factors_dtype, model.states_dtype) * mesh.size / len(own)


@functools.cache
def _rate(devices: tuple[jax.Device, ...], factors: jnp.dtype, result: jnp.dtype) -> float:
    side = SIDE if devices[0].platform == "cpu" else LARGE_SIDE
    product = jax.jit(functools.partial(jnp.matmul, preferred_element_type=result))
    given = [jax.device_put(jnp.ones((side, side), factors), device) for device in devices]
    took = []
    for _ in range(1 + REPEATS):  # the first one compiles
        began = time.perf_counter()
        jax.block_until_ready([product(x, x) for x in given])
        took.append(time.perf_counter() - began)
    return len(devices) * PRODUCT * side**3 / min(took[1:])
