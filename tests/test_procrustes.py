"""Rotations found, lengths and means set, decompositions that fail."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.lax.linalg import SvdAlgorithm

from xling_jax.linalg import decomposition
from xling_jax.linalg.normalization import iterative_normalize, unit_center_unit
from xling_jax.linalg.procrustes import orthogonal_map
from xling_jax.linalg.retrieval import unit_length


def rotation(seed, d):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))[0].astype(np.float32)


def points(seed, n, d):
    return np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)


@pytest.mark.parametrize("reflected", [False, True])
def test_a_rotation_is_recovered(reflected):
    source, turn = points(0, 400, 64), rotation(1, 64)
    turn[0] *= -np.sign(np.linalg.det(turn)) if reflected else np.sign(np.linalg.det(turn))
    np.testing.assert_allclose(orthogonal_map(source, source @ turn), turn, atol=1e-4)


def test_the_map_is_orthogonal_and_no_other_is_nearer():
    source = points(0, 100, 10)
    target = source @ rotation(1, 10) + points(2, 100, 10)
    best = orthogonal_map(source, target)
    np.testing.assert_allclose(best @ best.T, np.eye(10), atol=1e-5)
    distance = np.linalg.norm(source @ best - target)
    for seed in range(20):
        small = 0.05 * points(seed, 10, 10)
        other = best @ np.linalg.qr(np.eye(10) + small - small.T)[0]
        assert np.linalg.norm(source @ other - target) > distance


def test_fewer_points_than_dimensions_still_give_an_orthogonal_map():
    source, turn = points(0, 5, 16), rotation(1, 16)
    found = orthogonal_map(source, source @ turn)
    np.testing.assert_allclose(found @ found.T, np.eye(16), atol=1e-5)
    np.testing.assert_allclose(source @ found, source @ turn, atol=1e-4)


@pytest.mark.parametrize("scale", [1e-30, 1e-18, 1e18, 1e36])
def test_the_size_of_the_numbers_does_not_change_the_map(scale):
    source, turn = points(0, 100, 16), rotation(1, 16)
    large, expected = source * np.float32(scale), orthogonal_map(source, source @ turn)
    np.testing.assert_allclose(orthogonal_map(large, source @ turn), expected, atol=1e-5)
    np.testing.assert_allclose(orthogonal_map(large, large @ turn), expected, atol=1e-5)


def test_unit_center_unit_has_unit_lengths_and_forgets_scale():
    x = points(0, 200, 8) + 2.0
    normal = unit_center_unit(x)
    np.testing.assert_allclose(jnp.linalg.norm(normal, axis=1), 1, atol=1e-6)
    assert jnp.abs(normal.mean(0)).max() < 0.1 < jnp.abs(unit_length(x).mean(0)).min()
    scale = np.random.default_rng(1).uniform(0.1, 10, size=(200, 1)).astype(np.float32)
    np.testing.assert_allclose(unit_center_unit(scale * x), normal, atol=1e-5)


def test_iterative_normalization_reaches_unit_length_and_mean_zero_together():
    x = points(0, 200, 8) + np.linspace(0, 1, 8, dtype=np.float32)

    def length_error(rounds):
        return jnp.abs(jnp.linalg.norm(iterative_normalize(x, rounds), axis=1) - 1).max()

    assert length_error(5) < 0.01 < length_error(1)
    assert length_error(20) < 1e-5
    assert jnp.abs(iterative_normalize(x).mean(0)).max() < 1e-6


def test_zero_rows_stay_finite():
    x = points(0, 30, 8)
    x[[3, 7]] = 0
    for normalize in (iterative_normalize, unit_center_unit):
        assert jnp.isfinite(normalize(x)).all()
        for value in (0.0, 0.1, 1e30):
            assert (normalize(jnp.full((30, 8), value)) == 0).all()


@pytest.mark.parametrize("shape", [(7, 7), (9, 5), (5, 9)])
def test_qr_iteration_takes_the_place_of_a_decomposition_that_does_not_converge(monkeypatch, shape):
    x, by = points(0, *shape), decomposition._svd

    def failing(x, algorithm=SvdAlgorithm.DEFAULT):
        lost = 1 if algorithm is SvdAlgorithm.QR else jnp.nan
        return jax.tree.map(lambda part: part * lost, by(x, algorithm))

    monkeypatch.setattr(decomposition, "_svd", failing)
    left, singular, right = decomposition.svd(x)
    np.testing.assert_allclose((left * singular) @ right, x, atol=1e-5)
    np.testing.assert_allclose(singular, np.linalg.svd(x)[1], rtol=1e-5)
