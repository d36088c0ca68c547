"""models.dropout, batches.hashing: the right share is kept, by bits unrelated to each other."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from xling_jax.batches import hashing
from xling_jax.batches.labelled import PARSER
from xling_jax.models import task_heads
from xling_jax.models.dropout import (
    ATTENTION_OUTPUT,
    EMBEDDINGS,
    FEED_FORWARD,
    DropoutBits,
    dropout,
)

SIGMAS = 5.5  # a chance of 4e-8 for each of the thousands of figures


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.5, 0.9])
def test_dropout_zeroes_its_share_and_keeps_the_mean(rate):
    x = jnp.ones((400, 500))
    bits = hashing.count(hashing.mix(jnp.arange(400, dtype=jnp.uint32))[:, None], jnp.arange(500))
    found = np.asarray(dropout(x, bits, rate))
    assert set(np.unique(found)) <= {np.float32(0), np.float32(1 / (1 - rate))}
    sd = math.sqrt(rate * (1 - rate) / x.size)
    assert abs((found == 0).mean() - rate) <= SIGMAS * sd
    assert abs(found.mean() - 1) <= SIGMAS * sd / (1 - rate) + 1e-6


STEPS, SENTENCES, PLACES, FEATURES, LAYERS, RATE = 3, 40, 30, 64, 4, 0.1


@pytest.fixture(scope="module")
def features() -> np.ndarray:
    """Which elements are kept: [steps, sentences, places, layers, uses, features]."""
    uses = EMBEDDINGS, ATTENTION_OUTPUT, FEED_FORWARD
    kept = []
    for step in range(STEPS):
        bits = some_bits(step)
        a_step = [[bits.features(FEATURES, n, use) for use in uses] for n in range(LAYERS)]
        kept.append(np.array(a_step).transpose(2, 0, 1, 3))
    shape = STEPS, SENTENCES, PLACES, LAYERS, len(uses), FEATURES
    return np.stack(kept).reshape(shape) >= np.uint32(RATE * 2**32)


@pytest.fixture(scope="module")
def pairs() -> np.ndarray:
    """The same of attention: [steps, sentences, queries, keys, layers, heads]."""
    kept = []
    for step in range(STEPS):
        bits, shape = some_bits(step), (SENTENCES, PLACES)
        a_step = [bits.of_rows(slice(None), shape).pairs(4, layer + 1) for layer in range(LAYERS)]
        kept.append(np.asarray(a_step).transpose(1, 3, 4, 0, 2))
    return np.stack(kept) >= np.uint32(RATE * 2**32)


def some_bits(step: int) -> DropoutBits:
    sentence, place = np.divmod(np.arange(SENTENCES * PLACES), PLACES)
    return DropoutBits(hashing.token_hash(42, step, sentence, place), jnp.asarray(place))


@pytest.mark.parametrize("kind", ["features", "pairs"])
def test_the_share_kept_is_right_along_every_axis(kind, request):
    kept = request.getfixturevalue(kind)
    for axes in [(), *((axis,) for axis in range(6)), (2, 3), (3, 4), (3, 5), (4, 5), (2, 5)]:
        share = kept.mean(axis=tuple(set(range(6)) - set(axes)))
        sd = math.sqrt(RATE * (1 - RATE) * share.size / kept.size)
        assert np.abs(share - (1 - RATE)).max() < SIGMAS * sd, axes


def correlation_of_shifted(kept: np.ndarray, shifts: dict[int, int]) -> float:
    """Between elements and those so far away along some axes, in standard deviations."""
    ahead, behind = [slice(None)] * 6, [slice(None)] * 6
    for axis, shift in shifts.items():
        size, far = kept.shape[axis], abs(shift)
        pair = slice(far, size), slice(0, size - far)
        ahead[axis], behind[axis] = pair if shift > 0 else pair[::-1]
    products = (kept[tuple(ahead)] - (1 - RATE)) * (kept[tuple(behind)] - (1 - RATE))
    return float(products.mean() / (RATE * (1 - RATE)) * math.sqrt(products.size))


@pytest.mark.parametrize("kind", ["features", "pairs"])
def test_neighbours_are_uncorrelated(kind, request):
    kept = request.getfixturevalue(kind)
    for axis in range(6):
        for distance in range(1, min(8, kept.shape[axis])):
            assert abs(correlation_of_shifted(kept, {axis: distance})) < SIGMAS, (axis, distance)
    for first, second in itertools.combinations(range(6), 2):
        for sign in (1, -1):
            shifts = {first: 1, second: sign}
            assert abs(correlation_of_shifted(kept, shifts)) < SIGMAS, shifts


def test_attention_and_features_use_other_bits(features, pairs):
    """The first features of every use against the first keys of one head, layer by layer."""
    theirs = pairs[..., : LAYERS - 1, 0].transpose(0, 1, 2, 4, 3) - (1 - RATE)
    for use in range(3):
        ours = features[:, :, :, 1:, use, :PLACES] - (1 - RATE)
        correlation = (ours * theirs).mean() / (RATE * (1 - RATE))
        assert abs(correlation) < SIGMAS / math.sqrt(ours.size)


def output_flips(before: jax.Array, after: jax.Array) -> np.ndarray:
    """The share of samples in which each of the 32 output bits differs."""
    changed = np.asarray(before ^ after)
    return np.array([((changed >> bit) & 1).mean() for bit in range(32)])


SAMPLES = 20_000
BOUND = SIGMAS * 0.5 / math.sqrt(SAMPLES) + 0.005  # with the mixer's own bias


def test_every_input_bit_flips_every_output_bit_half_of_the_time():
    random = np.random.default_rng(0)
    x = jnp.asarray(random.integers(0, 2**32, SAMPLES, dtype=np.uint32))
    for bit in range(32):
        flips = output_flips(hashing.mix(x), hashing.mix(x ^ jnp.uint32(1 << bit)))
        assert np.abs(flips - 0.5).max() < BOUND, bit


def test_counters_that_differ_a_little_have_unrelated_hashes():
    """Seeds, steps, sentences, places, features and heads are small numbers, not random ones."""
    random = np.random.default_rng(0)
    seed, step, slot, place = (
        random.integers(0, high, SAMPLES).astype(np.uint32) for high in (5, 7000, 300, 128)
    )
    whole = hashing.token_hash(seed, step, slot, place)
    for distance in (1, 2, 4, 64):
        for changed in [
            (seed + distance, step, slot, place),
            (seed, step + distance, slot, place),
            (seed, step, slot + distance, place),
            (seed, step, slot, place + distance),
            (seed, step + distance, slot, place - distance),
        ]:
            flips = output_flips(whole, hashing.token_hash(*changed))
            assert np.abs(flips - 0.5).max() < BOUND
        for far in (distance, distance * 65_537):
            flips = output_flips(
                hashing.count(whole, jnp.asarray(place)),
                hashing.count(whole, jnp.asarray(place + np.uint32(far))),
            )
            assert np.abs(flips - 0.5).max() < BOUND
    for use in range(4):
        flips = output_flips(hashing.combine(whole, use), hashing.combine(whole, use + 1))
        assert np.abs(flips - 0.5).max() < BOUND


def test_the_vectors_of_a_parser_have_bits_of_their_own(monkeypatch):
    uses = []
    monkeypatch.setattr(task_heads, "_drop", lambda x, rate, bits, use: uses.append(use) or x)
    parser = task_heads.module(task_heads.HeadConfig(PARSER, labels=3, arcs=4, relations=4))
    jax.eval_shape(parser.init, jax.random.key(0), jnp.ones((1, 2, 8)))
    assert len(uses) == len(set(uses)) == 5


def test_hashes_are_uniform_and_the_mixer_loses_nothing():
    place, slot = np.meshgrid(np.arange(128), np.arange(256))
    hashes = np.asarray(hashing.token_hash(0, 0, slot.reshape(-1), place.reshape(-1)))
    for shift in (0, 8, 16, 24):
        counts = np.bincount((hashes >> shift) & 255, minlength=256)
        chi_square = ((counts - 128) ** 2 / 128).sum()
        assert abs(chi_square - 255) < SIGMAS * math.sqrt(2 * 255)
    assert len(hashes) - len(np.unique(hashes)) <= 3  # 0.125 by chance
    block = np.asarray(hashing.mix(jnp.arange(2**20, dtype=jnp.uint32)))
    assert len(np.unique(block)) == 2**20
