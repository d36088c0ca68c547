"""evaluators.comparison: a map learned on some sentences translates the others."""

import jax
import numpy as np
import pytest
import scipy.stats

from xling_jax.evaluators.comparison import COMPARISONS, Parallel, map_learned_on, retrieval


def points(n=200, d=16, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)


def alignment_scores(x, y):
    """CKA and retrieval after a map."""
    pair = Parallel(x, y)
    found = {name: COMPARISONS[name](pair) for name in ("cka", "mapped")}
    return {name: values[""] for name, values in found.items() if values}


def mapped_precisions(x, y, learned):
    return retrieval(map_learned_on(Parallel(x, y), learned))


def rotated(x):
    rotation = scipy.stats.ortho_group.rvs(x.shape[1], random_state=0)
    return (3 * x @ rotation + 5).astype(np.float32)


def test_a_rotation_is_found_and_is_no_difference():
    x = points()
    found = jax.jit(alignment_scores)(x, rotated(x))
    assert found["cka"] == pytest.approx(1, abs=1e-4) and found["mapped"] == 1


def test_what_has_nothing_in_common_is_not_aligned():
    found = alignment_scores(points(seed=1), points(seed=2))
    assert found["cka"] < 0.3 and found["mapped"] < 0.1


def test_few_sentences_are_not_mapped():
    assert alignment_scores(points(4), points(4)).keys() == {"cka", "mapped"}
    for n in (1, 2, 3):  # a single one to search among would always be found
        assert alignment_scores(points(n), points(n)).keys() == {"cka"}
    for learned in (0, 200):
        with pytest.raises(ValueError, match=f"learned={learned} of 200 sentences"):
            mapped_precisions(points(), points(), learned)
    broken = points()
    broken[7] = np.nan
    with pytest.raises(ValueError, match="^second: row 7"):
        mapped_precisions(points(), broken, 100)


def test_only_sentences_that_the_map_was_not_learned_on_are_tested():
    x = points()
    y = rotated(x)
    y[150:] = points(50, seed=3)  # whose translations are wrong
    found = mapped_precisions(x, y, 150)
    assert found[""] < 0.2
    y[:] = rotated(x)
    assert mapped_precisions(x, y, 150)["_p5"] == 1
