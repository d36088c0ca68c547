"""The machine's own rate: large matrix products in JAX, on all cores, or on an accelerator."""

import functools
import statistics
import time

import jax
import jax.numpy as jnp
from turns import Referee

from xling_jax.models.bert import BertConfig

SHAPES = ((1024, 1024, 1024), (2048, 2048, 2048), (3072, 3072, 3072), (8192, 512, 2048))
# An accelerator needs larger products, several in a row, or it waits for the next call.
LARGE_SHAPES = ((4096, 4096, 4096), (8192, 8192, 8192), (16384, 8192, 8192))
IN_A_ROW = 8


def rates(seconds: float, model: BertConfig) -> dict[str, float]:
    """FLOP/s of each shape, in the model's number types, the median of as many products as its
    share of the seconds allows."""
    is_cpu = jax.default_backend() == "cpu"
    shapes, count = (SHAPES, 1) if is_cpu else (LARGE_SHAPES, IN_A_ROW)
    found = {}
    product = jax.jit(functools.partial(jnp.matmul, preferred_element_type=model.states_dtype))
    for n, k, m in shapes:
        first_key, second_key = jax.random.split(jax.random.key(0))
        a_NxK = jax.random.normal(first_key, (n, k), model.factors_dtype)
        b_KxM = jax.random.normal(second_key, (k, m), model.factors_dtype)
        product(a_NxK, b_KxM).block_until_ready()
        took: list[float] = []
        while sum(took) < seconds / len(shapes) or len(took) < 3:
            began = time.perf_counter()
            jax.block_until_ready([product(a_NxK, b_KxM) for _ in range(count)])
            took.append(time.perf_counter() - began)
        found[f"{n} x {k} x {m}"] = count * 2 * n * k * m / statistics.median(took)
    return found


def main() -> None:
    """Measures the rates in every turn."""
    referee = Referee()
    model = BertConfig(**referee.options["model"])
    result = {"rates": rates(0.0, model)}
    while True:
        result = {"rates": rates(referee.report(result), model)}


if __name__ == "__main__":
    main()
