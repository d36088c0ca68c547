"""linalg.csls: the nearest by CSLS against the whole matrix in float64."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from xling_jax.linalg.csls import counterpart_ranks, top_k


def brute_force(queries, keys, sources, neighbours):
    """CSLS of all pairs, in float64."""
    queries, keys, sources = (
        x.astype(np.float64) / np.linalg.norm(x.astype(np.float64), axis=1, keepdims=True)
        for x in (queries, keys, sources)
    )

    def density(x, y):
        return np.sort(x @ y.T, axis=1)[:, -neighbours:].mean(1)

    return 2 * queries @ keys.T - density(queries, keys)[:, None] - density(keys, sources)


def points(seed, n, d=12):
    random = np.random.default_rng(seed)
    return (random.normal(size=(n, d)) * random.uniform(0.1, 9, size=(n, 1))).astype(np.float32)


@pytest.mark.parametrize("block", [1, 7, 64, 1000])
@pytest.mark.parametrize("n_sources", [None, 120])
def test_scores_and_indices_equal_those_of_the_full_matrix(block, n_sources):
    queries, keys = points(0, 90), points(1, 130)
    sources = None if n_sources is None else points(2, n_sources)
    scores, indices = top_k(queries, keys, k=3, neighbours=5, sources=sources, block=block)
    expected = brute_force(queries, keys, queries if sources is None else sources, 5)
    order = np.argsort(-expected, axis=1, kind="stable")[:, :3]
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_allclose(scores, np.take_along_axis(expected, order, 1), atol=1e-5)


def test_a_key_that_is_near_to_everything_is_not_chosen():
    random = np.random.default_rng(0)
    keys, noise = random.normal(size=(2, 40, 100)) / 10
    hub = random.normal(size=(1, 100)) / 10
    queries, keys = keys + 1.5 * noise + 1.3 * hub, np.concatenate([hub, keys])
    cosine = queries @ (keys / np.linalg.norm(keys, axis=1, keepdims=True)).T
    assert (cosine.argmax(1) == 0).mean() > 0.8
    assert (top_k(queries, keys)[1][:, 0] == np.arange(1, 41)).mean() > 0.9


def test_of_equal_keys_the_lower_index_comes_first():
    keys = jnp.concatenate([jnp.eye(4)] * 3)
    scores, indices = top_k(jnp.eye(4), keys, k=3)
    assert indices.tolist() == [[i, i + 4, i + 8] for i in range(4)]
    assert (scores == scores[:, :1]).all()


@pytest.mark.parametrize("number", [300, 1000])  # in one block, and in several
def test_of_equal_counterparts_the_first_is_found_in_an_optimised_program(number):
    x = np.repeat(points(0, number, 64), 3, axis=0)
    options = {"xla_backend_optimization_level": 3, "xla_llvm_disable_expensive_passes": False}
    optimised = jax.jit(counterpart_ranks).lower(x, x).compile(compiler_options=options)
    for ranks in optimised(x, x):
        np.testing.assert_array_equal(ranks, np.arange(3 * number) % 3)


def test_more_neighbours_than_points_are_all_points():
    queries, keys = points(0, 5), points(1, 8)
    few, many = top_k(queries, keys, neighbours=8), top_k(queries, keys, neighbours=99)
    np.testing.assert_array_equal(few[0], many[0])
    expected = brute_force(queries, keys, queries, 99).max(1)
    np.testing.assert_allclose(many[0][:, 0], expected, atol=1e-5)


def test_zero_points_stay_finite():
    queries = points(0, 6)
    queries[2] = 0
    scores, _ = top_k(queries, points(1, 9))
    assert jnp.isfinite(scores).all()


def test_no_matrix_of_all_pairs_is_made():
    n, d = 20_000, 8
    shape = jax.ShapeDtypeStruct((n, d), jnp.float32)
    compiled = jax.jit(functools.partial(top_k, block=256))
    memory = compiled.lower(shape, shape).compile().memory_analysis()
    assert memory.temp_size_in_bytes < n * n  # a quarter of one float32 matrix


def test_sources_of_another_space_are_refused():
    with pytest.raises(ValueError, match="as many columns"):
        top_k(points(0, 6), points(1, 9), sources=points(1, 9, d=11))
