"""alignment.points: what the public functions of alignment refuse, each by the argument's name."""

import jax
import numpy as np
import pytest

from xling_jax.linalg import cka, csls, procrustes, retrieval, vecmap
from xling_jax.linalg.normalization import iterative_normalize, unit_center_unit
from xling_jax.linalg.procrustes import AffineMap

N, D = 30, 4
GOOD = np.random.default_rng(0).normal(size=(N, D)).astype(np.float32)
FUNCTIONS = {
    "csls": (csls.top_k, ("queries", "keys", "sources")),
    "cosine": (retrieval.top_k, ("queries", "keys")),
    "ranks": (retrieval.counterpart_ranks, ("x", "y")),
    "map": (procrustes.orthogonal_map, ("source", "target")),
    "affine": (AffineMap.learn, ("source", "target")),
    "cka": (cka.linear_cka, ("x", "y")),
    "moments": (cka.moments, ("x", "y")),
    "iterative": (iterative_normalize, ("x",)),
    "unit": (unit_center_unit, ("x",)),
    "unsupervised": (vecmap.map_unsupervised, ("source", "target")),
}
SIDES = [(name, side) for name, (_, sides) in FUNCTIONS.items() for side in sides]


class Tensor:
    """One that NumPy cannot read: PyTorch raises such errors for bfloat16 and for gradients."""

    def __init__(self, error):
        self.error = error

    def __array__(self, *_, **__):
        raise self.error


def spoilt(value):
    x = GOOD.astype(np.float64)
    x[7, 2] = value
    return x


BAD = {
    "nan": (spoilt(np.nan), "row 7 holds a NaN"),
    "infinite": (spoilt(-np.inf), "row 7 holds"),
    "beyond float32": (spoilt(1e300), "row 7 holds"),
    "no rows": (GOOD[:0], r"\(0, 4\) of float32: give a matrix"),
    "no columns": (GOOD[:, :0], r"\(30, 0\) of float32: give a matrix"),
    "one point": (GOOD[0], r"\(4,\) of float32: give a matrix"),
    "three axes": (GOOD[None], r"\(1, 30, 4\) of float32: give a matrix"),
    "complex": (GOOD + 1j, "of complex64: give a matrix"),
    "text": ([["a"]], "give a matrix"),
    "ragged": ([[1.0], [1.0, 2.0]], "give a matrix"),
    "digits": ([["1", "2"]], "give a matrix"),
    "nothing": (None, "give a matrix"),
    "bfloat16": (Tensor(TypeError("ScalarType")), r"give a matrix.*ScalarType.*\.float\(\)"),
    "gradients": (Tensor(RuntimeError("grad")), r"give a matrix.*grad.*\.detach\(\)"),
}


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize(("name", "side"), SIDES)
def test_points_that_cannot_be_used_are_refused_by_name(name, side, bad):
    function, sides = FUNCTIONS[name]
    value, message = BAD[bad]
    if (name, side, bad) == ("csls", "sources", "nothing"):
        return  # the default
    with pytest.raises(ValueError, match=f"^{side}.*{message}"):
        function(**{own: GOOD for own in sides} | {side: value})


@pytest.mark.parametrize("other", [GOOD[:, :3], GOOD[:-1]])
@pytest.mark.parametrize("name", ["map", "affine", "ranks"])
def test_counterparts_have_one_shape(name, other):
    function, (first, second) = FUNCTIONS[name]
    with pytest.raises(ValueError, match=rf"^{first} \(30, 4\) and {second}"):
        function(**{first: GOOD, second: other})


@pytest.mark.parametrize("name", ["csls", "cosine", "unsupervised"])
def test_points_are_of_one_space(name):
    function, sides = FUNCTIONS[name]
    with pytest.raises(ValueError, match="with as many columns"):
        function(**{own: GOOD for own in sides} | {sides[1]: GOOD[:, :3]})


@pytest.mark.parametrize("value", [0, -1, 31, 1.5, True, "2", None])
@pytest.mark.parametrize(
    ("function", "field"),
    [
        (csls.top_k, "k"),
        (csls.top_k, "neighbours"),
        (csls.top_k, "block"),
        (retrieval.top_k, "k"),
        (retrieval.top_k, "block"),
        (retrieval.counterpart_ranks, "block"),
        (lambda x, y, **k: iterative_normalize(x, **k), "rounds"),
        (vecmap.map_unsupervised, "cutoff"),
        (lambda x, y, **k: AffineMap.identity(**k), "width"),
    ],
)
def test_counts_are_integers_from_one_on(function, field, value):
    if value == 31 and field != "k":
        return  # there is no most of the others
    with pytest.raises(ValueError, match=f"^{field}="):
        function(GOOD, GOOD, **{field: value})


def test_an_affine_map_takes_points_of_its_own_width():
    with pytest.raises(ValueError, match=r"x \(30, 4\): the map takes points of 5 dimensions"):
        AffineMap.identity(5).apply(GOOD)


def test_a_compiled_caller_is_not_asked_for_values():
    bad = spoilt(np.nan)
    for name in ("csls", "cosine", "ranks", "map", "cka", "iterative", "unit"):
        function, sides = FUNCTIONS[name]
        jax.jit(function)(**{own: bad for own in sides})
    with pytest.raises(ValueError, match="^keys"):
        jax.jit(retrieval.top_k)(GOOD, GOOD[:0])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_do_not_depend_on_jax_enable_x64(name):
    function, sides = FUNCTIONS[name]
    points = {side: GOOD for side in sides}
    expected = function(**points)
    with jax.enable_x64():
        found = function(**points)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
