"""alignment.retrieval: ranks of counterparts against the whole similarity matrix."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from xling_jax.linalg.retrieval import (
    FEWEST_GROUPED,
    counterpart_ranks,
    grouped,
    highest,
    top_k,
    ungrouped,
    unit_length,
)


def brute_force(x, y):
    """Ranks from the full matrix in float64, ties to the lower index."""
    x = x / np.linalg.norm(x, axis=1, keepdims=True)
    y = y / np.linalg.norm(y, axis=1, keepdims=True)
    similarity = x.astype(np.float64) @ y.T.astype(np.float64)

    def ranks(s):
        order = np.argsort(-s, axis=1, kind="stable")
        return np.array([list(row).index(i) for i, row in enumerate(order)])

    return ranks(similarity), ranks(similarity.T)


@pytest.mark.parametrize("block", [1, 7, 64, 1000])
def test_ranks_equal_those_of_the_full_matrix(block):
    random = np.random.default_rng(0)
    x = random.normal(size=(150, 12)).astype(np.float32)
    y = x + 1.5 * random.normal(size=(150, 12)).astype(np.float32)
    forward, backward = counterpart_ranks(jnp.asarray(x), jnp.asarray(y), block=block)
    expected = brute_force(x, y)
    np.testing.assert_array_equal(forward, expected[0])
    np.testing.assert_array_equal(backward, expected[1])
    assert 0 < (expected[0] == 0).mean() < 1


def test_identical_points_are_found_by_the_lowest_index_only():
    x = jnp.ones((5, 3))
    forward, backward = counterpart_ranks(x, x)
    assert forward.tolist() == backward.tolist() == [0, 1, 2, 3, 4]


def test_zero_points_and_nan_points_are_never_found_before_others():
    x = jnp.eye(4)
    # In a compiled program no value can be refused.
    forward, backward = jax.jit(counterpart_ranks)(x.at[1].set(jnp.nan), x)
    assert forward.tolist() == [0, 4, 0, 0] and backward.tolist() == [0, 4, 0, 0]
    forward, _ = counterpart_ranks(x.at[2].set(0.0), x)
    assert forward.tolist() == [0, 0, 2, 0]


def test_no_matrix_of_all_pairs_is_made():
    n, d = 20_000, 8
    points = jax.ShapeDtypeStruct((n, d), jnp.float32)
    ranks = jax.jit(functools.partial(counterpart_ranks, block=256))
    memory = ranks.lower(points, points).compile().memory_analysis()
    assert memory.temp_size_in_bytes < n * n  # a quarter of one float32 matrix


@pytest.mark.parametrize("block", [1, 7, 1000])
def test_the_nearest_are_those_of_the_full_matrix(block):
    random = np.random.default_rng(0)
    queries, keys = random.normal(size=(40, 12)), random.normal(size=(70, 12)) + 1
    keys[9] = 0
    scores, indices = top_k(queries, keys, k=70, block=block)
    cosine = unit_length(jnp.asarray(queries)) @ unit_length(jnp.asarray(keys)).T
    expected = np.argsort(-np.asarray(cosine, np.float64), axis=1, kind="stable")
    np.testing.assert_array_equal(indices, expected)
    np.testing.assert_allclose(scores, np.take_along_axis(cosine, expected, 1), atol=1e-6)
    assert top_k(queries, keys)[1].shape == (40, 1)


@pytest.mark.parametrize("scale", [1e-30, 1e-13, 1e18, 1e30])
def test_the_length_of_a_point_changes_nothing(scale):
    x = np.random.default_rng(0).normal(size=(20, 6)).astype(np.float32)
    assert (top_k(x * np.float32(scale), x)[1][:, 0] == np.arange(20)).all()
    np.testing.assert_allclose(unit_length(x * np.float32(scale)), unit_length(x), atol=1e-6)


@pytest.mark.parametrize("m", [7, FEWEST_GROUPED - 1, FEWEST_GROUPED, 1024, 5003])
@pytest.mark.parametrize("k", [1, 7])
def test_the_highest_of_groups_are_those_of_all_with_equal_ones_in_their_order(m, k):
    random = np.random.default_rng(m)
    scores = random.integers(-30, 0, size=(40, m)).astype(np.float32)  # each comes many times
    scores[0], scores[1, m // 2 :] = 0, -jnp.inf
    by_group = jax.vmap(grouped)(scores)
    assert (m >= FEWEST_GROUPED) == (by_group.groups.size > 0)
    values, places = jax.jit(highest, static_argnums=1)(by_group, k)
    expected = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(places, expected)
    np.testing.assert_array_equal(values, np.take_along_axis(scores, expected, axis=1))
    np.testing.assert_array_equal(jax.vmap(ungrouped)(by_group), scores)
