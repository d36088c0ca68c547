"""alignment.vecmap: two views of one space are brought together, with and without a dictionary."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from xling_jax.linalg import vecmap
from xling_jax.linalg.csls import top_k
from xling_jax.linalg.retrieval import unit_length
from xling_jax.linalg.vecmap import map_unsupervised, reweighted_map, unit_center_unit

N, D = 600, 50


def two_views(seed, noise=0.02, shuffled=N):
    """A space of unequal clusters and directions, seen twice: rotated, permuted, with noise.

    Returns:
      source [N, D], target [N, D], and the target's row of each source word.
    """
    random = np.random.default_rng(seed)
    clusters = random.normal(size=(40, D))
    share = 1 / np.arange(1, 41)
    member = random.choice(40, size=N, p=share / share.sum())
    spread = random.uniform(0.3, 1.5, size=(40, 1))[member]
    space = clusters[member] + spread * random.normal(size=(N, D))
    space *= 1 / np.sqrt(np.arange(1, D + 1))

    def view():
        turn = np.linalg.qr(random.normal(size=(D, D)))[0]
        return (space + noise * space.std() * random.normal(size=space.shape)) @ turn

    source, target = view(), view()
    order = np.concatenate([random.permutation(shuffled), np.arange(shuffled, N)])
    return source.astype(np.float32), target[order].astype(np.float32), np.argsort(order)


def share_found(source, target, gold):
    return (top_k(source, target)[1][:, 0] == gold).mean()


@pytest.fixture(scope="module")
def mapped():
    return map_unsupervised(*two_views(0)[:2])


def test_two_views_of_a_space_are_matched_without_a_dictionary(mapped):
    source, target, gold = two_views(0)
    assert share_found(source, target, gold) < 0.05
    assert share_found(*mapped, gold) > 0.95
    assert mapped[0].dtype == mapped[1].dtype == jnp.float32
    assert mapped[0].shape == mapped[1].shape == (N, D)


def test_the_first_dictionary_is_better_than_chance_and_self_learning_is_better_still():
    source, target, gold = two_views(1, noise=0.1)
    pairs = vecmap.first_pairs(*map(unit_center_unit, (source, target)))
    at_first = (pairs[:N, 1] == gold).mean()
    assert 5 / N < at_first < 0.9
    assert share_found(*map_unsupervised(source, target), gold) > max(0.9, at_first)


def test_the_best_of_several_tries_is_taken(monkeypatch):
    source, target, gold = two_views(0)
    wrong = np.stack([np.arange(N), np.roll(gold, 1)], axis=1)
    right = np.stack([np.arange(N), gold], axis=1)
    tries = iter([(wrong, 0.3), (right, 0.5), (wrong, 0.4), (wrong, 0.3)])
    keys = []

    def learn(source, target, first, key):
        keys.append(jax.random.key_data(key).tolist())
        return next(tries)

    monkeypatch.setattr(vecmap, "_self_learn", learn)
    assert share_found(*map_unsupervised(source, target, tries=3), gold) > 0.95
    assert share_found(*map_unsupervised(source, target), gold) < 0.05
    assert len(set(map(tuple, keys[:3]))) == 3 and keys[3] == keys[0]


def test_the_map_of_the_frequent_words_fits_the_rare_ones():
    source, target, gold = two_views(2, shuffled=400)
    assert share_found(*map_unsupervised(source, target, cutoff=400), gold) > 0.95


def test_a_seed_gives_the_same_bits_and_another_another_path(mapped):
    source, target, _ = two_views(0)
    again = map_unsupervised(source, target)
    np.testing.assert_array_equal(mapped[0], again[0])
    np.testing.assert_array_equal(mapped[1], again[1])
    normal = unit_center_unit(source), unit_center_unit(target)
    chosen = [vecmap.induce(*normal, jax.random.key(seed), 0.1)[0] for seed in (0, 1)]
    assert (chosen[0] != chosen[1]).any()


def by_dictionary(source, target, pairs):
    """Both languages in the space of the last map, of normalised vectors."""
    return reweighted_map(unit_center_unit(source), unit_center_unit(target), pairs)


def test_a_dictionary_of_half_the_words_maps_the_other_half():
    source, target, gold = two_views(3, noise=0.1)
    pairs = np.stack([np.arange(N // 2), gold[: N // 2]], axis=1)
    found = top_k(*by_dictionary(source, target, pairs))[1][:, 0] == gold
    assert found[N // 2 :].mean() > 0.95


def root(matrix, power):
    """A symmetric matrix to a power."""
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * values**power) @ vectors.T


def test_the_last_map_whitens_rotates_reweights_and_colours_again():
    source, target, gold = two_views(2)
    pairs = np.stack([np.arange(300), gold[:300]], axis=1)
    x, y = (np.asarray(unit_center_unit(v), np.float64) for v in (source, target))
    x_known, y_known = x[pairs[:, 0]], y[pairs[:, 1]]
    cov_x, cov_y = x_known.T @ x_known, y_known.T @ y_known
    white_x, white_y = root(cov_x, -0.5), root(cov_y, -0.5)
    left, correlations, right = np.linalg.svd((x_known @ white_x).T @ (y_known @ white_y))
    weights = np.sqrt(correlations)
    expected = [
        v @ white @ turn * weights @ (turn.T @ root(cov, 0.5) @ turn)
        for v, white, cov, turn in [(x, white_x, cov_x, left), (y, white_y, cov_y, right.T)]
    ]
    for found, wanted in zip(by_dictionary(source, target, pairs), expected, strict=True):
        # The signs of singular vectors are free, and so is the sign of a common direction.
        np.testing.assert_allclose(found @ found.T, wanted @ wanted.T, atol=2e-3)
    found_x, found_y = by_dictionary(source, target, pairs)
    np.testing.assert_allclose(found_x @ found_y.T, expected[0] @ expected[1].T, atol=2e-3)


def test_a_share_of_all_similarities_may_be_chosen_alike_in_both_directions():
    source, target, _ = two_views(0)
    normal = unit_center_unit(source), unit_center_unit(target)
    every, best = vecmap.induce(*normal, jax.random.key(0), 1.0)
    nearest = top_k(*normal)[1][:, 0], top_k(*normal[::-1])[1][:, 0]
    np.testing.assert_array_equal(every[:N], np.stack([np.arange(N), nearest[0]], axis=1))
    np.testing.assert_array_equal(every[N:], np.stack([nearest[1], np.arange(N)], axis=1))
    some, same = vecmap.induce(*normal, jax.random.key(0), 0.3)
    assert 0.2 < (some[:N, 1] == nearest[0]).mean() < 0.4
    assert 0.2 < (some[N:, 0] == nearest[1]).mean() < 0.4
    assert best == same
    blocked, _ = vecmap.induce(*normal, jax.random.key(0), 0.3, block=77)
    np.testing.assert_array_equal(blocked, some)


def test_few_words_beside_many_are_compared_at_once(monkeypatch):
    """So that a word to which chance leaves none has all as candidates."""
    source, target, _ = two_views(0)
    few = unit_center_unit(source[:30]), unit_center_unit(target)
    expected, _ = vecmap.induce(*few, jax.random.key(0), 0.1, block=30)
    monkeypatch.setattr(vecmap, "SCORES", len(target))
    found, _ = vecmap.induce(*few, jax.random.key(0), 0.1)
    np.testing.assert_array_equal(found, expected)


def test_blocks_and_groups_give_the_nearest_of_all():
    random = np.random.default_rng(0)
    normal = [unit_length(jnp.asarray(random.normal(size=(n, 20)))) for n in (1300, 519)]
    pairs, best = vecmap.induce(*normal, jax.random.key(0), 1.0, block=77)
    (_, forward), (_, backward) = top_k(*normal), top_k(*normal[::-1])
    np.testing.assert_array_equal(pairs[:1300], np.stack([np.arange(1300), forward[:, 0]], axis=1))
    np.testing.assert_array_equal(pairs[1300:], np.stack([backward[:, 0], np.arange(519)], axis=1))
    cosine = np.asarray(normal[0] @ normal[1].T)
    assert best == pytest.approx((cosine.max(1).mean() + cosine.max(0).mean()) / 2, abs=1e-6)


def test_without_chance_learning_ends_when_the_dictionary_stands_still(monkeypatch):
    source, target, _ = two_views(0)
    steps, improve = [], vecmap.improve
    monkeypatch.setattr(vecmap, "improve", lambda *a: steps.append(a[-1]) or improve(*a))
    monkeypatch.setattr(vecmap, "FIRST_KEEP", 0.6)
    monkeypatch.setattr(vecmap, "PATIENCE", 20)
    map_unsupervised(source, target)
    assert steps[0] == 0.6 and 2 <= steps.count(1.0) < 20


def test_each_direction_leaves_out_pairs_of_its_own():
    words = unit_length(jnp.asarray(np.random.default_rng(0).normal(size=(2000, 64))))
    pairs, _ = vecmap.induce(words, words, jax.random.key(0), 0.3)
    forward, backward = (pairs[:, 0] == pairs[:, 1]).reshape(2, -1)
    for share, expected in [(forward, 0.3), (backward, 0.3), (forward & backward, 0.09)]:
        assert share.mean() == pytest.approx(expected, abs=0.04)


def test_a_word_that_chance_leaves_nothing_has_its_nearest():
    """Not the first word of all: of 20 words at a share of .1, one in eight has nothing left."""
    words = unit_length(jnp.asarray(np.random.default_rng(0).normal(size=(20, 64))))
    to_first = 0
    for seed in range(20):
        pairs = np.asarray(vecmap.induce(words, words, jax.random.key(seed), 0.1)[0])
        to_first += (pairs[1:20, 1] == 0).sum() + (pairs[21:, 0] == 0).sum()
    assert to_first < 70  # of 760: the first word is the best that is left in about 1 of 20


def test_an_exact_rotation_of_points_without_structure_is_found():
    n, random = 500, np.random.default_rng(0)
    source, order = random.normal(size=(n, 100)), random.permutation(n)
    target = (source @ np.linalg.qr(random.normal(size=(100, 100)))[0])[order]
    assert share_found(*map_unsupervised(source, target), np.argsort(order)) == 1


def test_vectors_that_do_not_span_the_space_stay_finite():
    source, target, gold = two_views(4)
    source[[5, 9]] = target[[5, 9]] = 0
    source[:, 30:] = target[:, 30:] = 0
    assert all(jnp.isfinite(x).all() for x in map_unsupervised(source, target))
    assert all(jnp.isfinite(x).all() for x in map_unsupervised(source[:30], target[:25]))
    pairs = np.stack([np.arange(10), gold[:10]], axis=1)
    assert all(jnp.isfinite(x).all() for x in by_dictionary(source, target, pairs))


def test_no_matrix_of_all_pairs_is_made():
    n, d = 20_000, 8
    x, key = jax.ShapeDtypeStruct((n, d), jnp.float32), jax.eval_shape(jax.random.key, 0)
    memory = vecmap.induce.lower(x, x, key, 1.0, block=256).compile().memory_analysis()
    assert memory.temp_size_in_bytes < n * n  # a quarter of one float32 matrix


def test_input_that_means_nothing_is_refused():
    source, target, _ = two_views(0)
    with pytest.raises(ValueError, match=r"target \(19, 50\): give at least 20"):
        map_unsupervised(source, target[:19])
    with pytest.raises(ValueError, match="as many columns"):
        map_unsupervised(source, target[:, :40])
    with pytest.raises(ValueError, match="cutoff=5"):
        map_unsupervised(source, target, cutoff=5)
    with pytest.raises(ValueError, match="tries=0"):
        map_unsupervised(source, target, tries=0)
    spoilt = source.copy()
    spoilt[7, 3] = np.nan
    with pytest.raises(ValueError, match="source: row 7 holds a NaN"):
        map_unsupervised(spoilt, target)
