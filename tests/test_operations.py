"""models.operations and attention: gradients written out are those that JAX derives."""

import functools
import math

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from xling_jax.batches import hashing
from xling_jax.models import bert
from xling_jax.models.bert import BertConfig
from xling_jax.models.dropout import DropoutBits, dropout
from xling_jax.models.operations import LayerNorm, product


def drawn(*shape: int, dtype="float32") -> jax.Array:
    return jnp.asarray(np.random.default_rng(sum(shape)).normal(size=shape), dtype)


def assert_same(function, expected, *arguments, tolerance=2e-6):
    """Values and gradients agree to rounding, in units of the largest number of each."""

    def all_of(of):
        value, pull = jax.vjp(of, *arguments)
        return value, *pull(drawn(*value.shape).astype(value.dtype))

    for found, wanted in zip(
        jax.jit(all_of, static_argnums=0)(function),
        jax.jit(all_of, static_argnums=0)(expected),
        strict=True,
    ):
        assert found.dtype == wanted.dtype
        found, wanted = (np.asarray(x, np.float32) for x in (found, wanted))
        np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance * np.abs(wanted).max())


SIDES = pytest.mark.parametrize(("inner", "outer"), [(8, 24), (24, 8), (8, 8), (7, 24)])


@SIDES
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 2e-6), ("bfloat16", 2e-2)])
def test_a_product(inner, outer, dtype, tolerance):
    x, kernel = drawn(50, inner, dtype=dtype), drawn(inner, outer, dtype=dtype)

    def plain(x, kernel):
        return jnp.einsum("ni,io->no", x, kernel, preferred_element_type=jnp.float32)

    for result, expected in (("float32", plain), (dtype, jnp.matmul)):
        ours = functools.partial(product, factors=dtype, dtype=result)
        assert_same(ours, expected, x, kernel, tolerance=tolerance)


@SIDES
def test_a_product_of_rounded_numbers(inner, outer):
    """Whole numbers, which bfloat16 holds, give what float32 gives. Thirds are rounded first, in
    the product and in both gradients."""
    whole = [jnp.round(4 * drawn(*shape)) for shape in ((50, inner), (inner, outer), (50, outer))]

    def all_of(of, x, kernel, gradient):
        value, pull = jax.vjp(of, x, kernel)
        return value, *pull(gradient)

    ours = functools.partial(product, factors="bfloat16", dtype="float32")
    for found, exact in zip(all_of(ours, *whole), all_of(jnp.matmul, *whole), strict=True):
        np.testing.assert_array_equal(found, exact)
    thirds = [each / 3 for each in whole]
    rounded = [each.astype("bfloat16").astype("float32") for each in thirds]
    for found, expected, exact in zip(
        *(all_of(ours, *thirds), all_of(jnp.matmul, *rounded), all_of(jnp.matmul, *thirds)),
        strict=True,
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
        assert np.abs(found - exact).max() > 1e-3


@pytest.mark.parametrize(("factors", "tolerance"), [("float32", 2e-6), ("bfloat16", 1e-2)])
def test_a_product_of_several_replicas(factors, tolerance):
    ours = jax.vmap(functools.partial(product, factors=factors, dtype="float32"))
    for inner, outer in ((24, 8), (8, 24)):
        x, kernel = drawn(3, 50, inner), drawn(3, inner, outer)
        assert_same(ours, jax.vmap(jnp.matmul), x, kernel, tolerance=tolerance)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_layer_norm(dtype):
    ours = LayerNorm(1e-6, jnp.dtype(dtype))
    theirs = nn.LayerNorm(1e-6, jnp.dtype(dtype), use_fast_variance=False)
    x = 3.0 + drawn(50, 24, dtype=dtype)

    def applied(module, x, scale, bias):
        return module.apply({"params": {"scale": scale, "bias": bias}}, x)

    assert_same(
        functools.partial(applied, ours),
        functools.partial(applied, theirs),
        *(x, 1.0 + drawn(24), drawn(24)),
        tolerance=5e-6 if dtype == "float32" else 2e-2,
    )
    shapes = [jax.eval_shape(m.init, jax.random.key(0), x) for m in (ours, theirs)]
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("has_dropout", [False, True])
@pytest.mark.parametrize("has_bias", [False, True])
def test_attention(heads, has_dropout, has_bias):
    n, t, width, layer = 3, 6, 4, 2
    config = BertConfig(vocabulary_size=9, heads=heads, hidden=heads * width, dropout=0.3)
    rows = ((n, t),)
    bias = bert.segment_bias(jnp.arange(n * t) // 4, rows)[0] if has_bias else None
    sentence, place = np.divmod(np.arange(n * t), t)
    bits = DropoutBits(hashing.token_hash(7, 1, sentence, place), jnp.asarray(place))
    bits = bits.of_rows(slice(None), (n, t)) if has_dropout else None

    def ours(q, k, v):
        return bert.attend(config, layer, (q, k, v, bias, bits))

    def plain(q, k, v):
        scores = jnp.einsum("nqhd,nkhd->nhqk", q, k) / math.sqrt(width)
        weights = jax.nn.softmax(scores if bias is None else scores + bias)
        if bits is not None:
            weights = dropout(weights, bits.pairs(heads, layer), config.dropout)
        return jnp.einsum("nhqk,nkhd->nqhd", weights, v)

    q, k, v = (drawn(n, t, heads, width) + i for i in range(3))
    assert_same(ours, plain, q, k, v, tolerance=1e-5)
