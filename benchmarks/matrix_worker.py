"""The machine's own rate: large float32 matrix products in JAX, on all cores."""

import statistics
import time

import jax
import jax.numpy as jnp
from turns import Referee

SHAPES = ((1024, 1024, 1024), (2048, 2048, 2048), (3072, 3072, 3072), (8192, 512, 2048))


def rates(seconds: float) -> dict[str, float]:
    """FLOP/s of each shape, the median over products for its share of the seconds."""
    found = {}
    product = jax.jit(jnp.matmul)
    for n, k, m in SHAPES:
        first_key, second_key = jax.random.split(jax.random.key(0))
        a_NxK, b_KxM = jax.random.normal(first_key, (n, k)), jax.random.normal(second_key, (k, m))
        product(a_NxK, b_KxM).block_until_ready()
        took: list[float] = []
        while sum(took) < seconds / len(SHAPES) or len(took) < 3:
            began = time.perf_counter()
            product(a_NxK, b_KxM).block_until_ready()
            took.append(time.perf_counter() - began)
        found[f"{n} x {k} x {m}"] = 2 * n * k * m / statistics.median(took)
    return found


def main() -> None:
    """Measures in every turn."""
    referee = Referee()
    result = {"rates": rates(0.0)}
    while True:
        result = {"rates": rates(referee.report(result))}


if __name__ == "__main__":
    main()
