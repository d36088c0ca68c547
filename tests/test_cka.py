"""cka: against a float64 computation, invariances, streaming, degenerate input."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from xling_jax.linalg import cka


def exact(x, y):
    x, y = (np.asarray(z, np.float64) for z in (x, y))
    x, y = x - x.mean(0), y - y.mean(0)
    within = np.linalg.norm(x.T @ x) * np.linalg.norm(y.T @ y)
    return np.linalg.norm(y.T @ x) ** 2 / within


def pair(n=500, d=24, e=16, noise=1.0, seed=0):
    random = np.random.default_rng(seed)
    x = random.normal(size=(n, d)) * np.linspace(0.1, 3, d) + 5
    y = x @ random.normal(size=(d, e)) + noise * random.normal(size=(n, e))
    return x.astype(np.float32), y.astype(np.float32)


@pytest.mark.parametrize("n", [30, 500, 2 * cka.BLOCK + 17])
def test_it_equals_the_formula_in_float64(n):
    x, y = pair(n)
    assert float(cka.linear_cka(x, y)) == pytest.approx(exact(x, y), rel=1e-5)


def test_samples_have_the_cka_of_their_items():
    x, y = pair(60)
    drawn = np.random.default_rng(1).integers(60, size=(5, 60))
    counts = np.stack([np.bincount(each, minlength=60) for each in drawn])
    found = cka.resampled_cka(x, y, jnp.asarray(counts, jnp.float32))
    np.testing.assert_allclose(found, [exact(x[each], y[each]) for each in drawn], rtol=1e-4)


def test_orthogonal_maps_shifts_and_scaling_change_nothing():
    x, y = pair()
    rotation = np.linalg.qr(np.random.default_rng(1).normal(size=(24, 24)))[0].astype(np.float32)
    moved = 7 * x @ rotation - 100
    assert float(cka.linear_cka(moved, y)) == pytest.approx(float(cka.linear_cka(x, y)), rel=1e-4)
    assert float(cka.linear_cka(x, moved)) == pytest.approx(1, abs=1e-5)


def test_unrelated_points_are_unlike_and_noise_lowers_likeness():
    values = [float(cka.linear_cka(*pair(5000, noise=noise))) for noise in (0, 10, 1000)]
    assert values[0] > values[1] > values[2] and values[2] < 0.05


@pytest.mark.parametrize("cuts", [(100,), (1, 2, 400), (250, 499)])
def test_a_stream_in_any_parts_gives_the_whole(cuts):
    x, y = pair()
    total, start = cka.Moments.nothing(24, 16), 0
    for stop in (*cuts, len(x)):
        total = total.add(cka.moments(jnp.asarray(x[start:stop]), jnp.asarray(y[start:stop])))
        start = stop
    assert float(total.cka()) == pytest.approx(exact(x, y), rel=1e-5)
    np.testing.assert_allclose(total.mean_x, x.mean(0), rtol=1e-5)


def test_large_and_small_numbers_neither_overflow_nor_vanish():
    x, y = pair()
    for scale in (1e18, 1e-18, 1e36, 1e-36):
        large = jnp.asarray(x * np.float32(scale))
        assert float(cka.linear_cka(large, y)) == pytest.approx(exact(x, y), rel=1e-4)
        assert float(cka.linear_cka(large, large)) == pytest.approx(1, rel=1e-4)
        parts = [cka.moments(large[part], y[part]) for part in (slice(100), slice(100, None))]
        assert float(parts[0].add(parts[1]).cka()) == pytest.approx(exact(x, y), rel=1e-4)


def test_parts_of_a_stream_may_differ_in_size_of_their_numbers():
    x, y = pair()
    x[:100] *= np.float32(1e-9)
    parts = [cka.moments(x[part], y[part]) for part in (slice(100), slice(100, None))]
    assert float(parts[0].add(parts[1]).cka()) == pytest.approx(exact(x, y), rel=1e-4)


@pytest.mark.parametrize("value", [1.0, 0.1, 1e18, 1e-18, 0.0])
@pytest.mark.parametrize("n", [1, 50, cka.BLOCK + 17])
def test_what_does_not_vary_is_like_nothing(value, n):
    x, y = np.full((n, 5), value, np.float32), pair(n)[1]
    assert float(cka.linear_cka(x, x)) == float(cka.linear_cka(x, y)) == 0
    assert float(cka.linear_cka(y, x)) == 0
    rounded = x * (1 + 6e-8 * np.random.default_rng(0).choice([-1, 0, 1], x.shape))
    assert float(cka.linear_cka(rounded.astype(np.float32), y)) == 0


def test_degenerate_input_has_a_defined_result_or_an_error():
    x, y = pair(30)
    # In a compiled program no value can be refused.
    assert np.isnan(float(jax.jit(cka.linear_cka)(np.full_like(x, np.nan), y)))
    for n in (2, 3, 23):  # fewer points than dimensions: 1 but for rounding
        for seed in range(10):
            few = pair(n, seed=seed)[0]
            assert float(cka.linear_cka(few, few)) <= 1
    with pytest.raises(ValueError, match="row i of one"):
        cka.linear_cka(x, y[:-1])


def test_it_can_be_differentiated():
    x, y = pair(50)
    gradient = jax.grad(lambda z: cka.linear_cka(z, y))(jnp.asarray(x))
    step = 1e-2 * gradient / jnp.linalg.norm(gradient)
    assert float(cka.linear_cka(x + step, y)) > float(cka.linear_cka(x, y))
