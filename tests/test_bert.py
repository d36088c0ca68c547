"""models.bert: what a sentence's states depend on, and what they do not."""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from weights import randomized

from xling_jax.batches import hashing, packing
from xling_jax.models import bert, heads
from xling_jax.models.bert import Bert, BertConfig, gelu
from xling_jax.models.dropout import (
    ATTENTION,
    ATTENTION_OUTPUT,
    EMBEDDINGS,
    FEED_FORWARD,
    DropoutBits,
)

CONFIG = BertConfig(vocabulary_size=50, layers=2, hidden=24, intermediate=40, heads=2, positions=64)


@pytest.fixture(scope="module")
def params():
    """Parameters far from the initial ones, so that every part counts."""
    return randomized(CONFIG, spread=0.2)


@functools.partial(jax.jit, static_argnames=("config", "rows", "layers"))
def forward(params, tokens, positions, segments, token_types, bits, *, config, rows, layers):
    return Bert(config).apply(
        {"params": params},
        *(tokens, positions, segments, token_types),
        rows=rows,
        bits=bits,
        layers=layers,
    )


@dataclasses.dataclass
class Laid:
    """Sentences laid out in rows: flat arrays [M], `sentence` being -1 where there is none."""

    rows: packing.Rows
    tokens: np.ndarray
    sentence: np.ndarray
    place: np.ndarray

    def states(self, params, config=CONFIG, bits=None, layers=None) -> list[np.ndarray]:
        """The states of all sentences' tokens, sentence after sentence."""
        found = forward(
            params,
            *(self.tokens, self.place, self.sentence, self.sentence % 2),
            bits,
            config=config,
            rows=self.rows,
            layers=layers,
        )
        order = np.lexsort((self.place, self.sentence))
        return [np.asarray(x)[order[self.sentence[order] >= 0]] for x in found]

    def bits(self, seed: int = 0, step: int = 0) -> DropoutBits:
        """Dropout's bits as the training step makes them."""
        token_M = hashing.token_hash(seed, step, self.sentence, self.place)
        return DropoutBits(token_M, jnp.asarray(self.place))


def some_sentences(count: int = 20) -> list[np.ndarray]:
    random = np.random.default_rng(1)
    return [random.integers(0, 50, n) for n in random.integers(1, 21, count)]


def alone(sentences, length: int = 24, filling: int = 0) -> Laid:
    """One sentence a row of this length."""
    shape = len(sentences), length
    tokens = np.full(shape, filling)
    sentence, place = np.full(shape, -1), np.zeros(shape, int)
    for row, ids in enumerate(sentences):
        tokens[row, : len(ids)] = ids
        sentence[row, : len(ids)] = row
        place[row, : len(ids)] = np.arange(len(ids))
    return Laid((shape,), tokens.reshape(-1), sentence.reshape(-1), place.reshape(-1))


def packed(sentences, rows: packing.Rows = ((4, 24), (6, 32)), order: int = 0) -> Laid:
    """Several sentences a row, in rows of two lengths."""
    lengths = np.array([len(ids) for ids in sentences])
    shuffled = np.random.default_rng(order).permutation(len(sentences))
    plan = packing.planned([shuffled], lengths, packing.Layout(rows, len(sentences)))
    owner = plan.owner[0, 0].astype(int)
    slot = np.maximum(owner, 0)
    sentence = np.where(owner < 0, -1, plan.sentence[0][slot])
    place = np.where(owner < 0, 0, np.arange(len(owner)) - plan.start[0][slot])
    tokens = np.array([sentences[s][p] for s, p in zip(sentence, place, strict=True)])
    return Laid(rows, tokens, sentence, place)


def require_close(first, second, tolerance: float = 2e-5) -> None:
    for a, b in zip(first, second, strict=True):
        assert np.abs(a - b).max() < tolerance * np.abs(b).max()


def test_packed_sentences_have_the_states_of_lone_ones_in_every_layer(params):
    sentences = some_sentences()
    wanted = alone(sentences).states(params)
    assert len(wanted) == CONFIG.layers + 1
    for order in range(2):
        require_close(packed(sentences, order=order).states(params), wanted)
    exchanged = alone([sentences[0][::-1], *sentences[1:]]).states(params)
    assert np.abs(exchanged[-1] - wanted[-1])[: len(sentences[0])].max() > 0.1


def test_padding_changes_nothing(params):
    sentences = some_sentences()
    wanted = alone(sentences).states(params)
    require_close(alone(sentences, length=40).states(params), wanted)
    for filled in alone(sentences, filling=7), packed(sentences):
        filled.tokens[filled.sentence < 0] = 7
        require_close(filled.states(params), wanted)


def test_a_neighbour_in_the_row_changes_no_bit(params):
    sentences = some_sentences()
    lain = packed(sentences)
    others = packed([sentences[0], *(49 - ids for ids in sentences[1:])])
    own = len(sentences[0])
    for a, b in zip(lain.states(params), others.states(params), strict=True):
        assert np.array_equal(a[:own], b[:own])
        assert not np.array_equal(a[own:], b[own:])


def test_arrays_of_two_axes_are_rows(params):
    lain = alone(some_sentences(), length=24)
    inputs = lain.tokens, lain.place, lain.sentence, lain.place % 2
    rest = {"bits": None, "config": CONFIG, "layers": None}
    flat = forward(params, *inputs, rows=lain.rows, **rest)
    square = forward(params, *(x.reshape(-1, 24) for x in inputs), rows=None, **rest)
    for a, b in zip(square, flat, strict=True):
        assert a.shape == (20, 24, 24) and np.array_equal(a.reshape(b.shape), b)


def test_chosen_layers_are_those_of_all(params):
    lain = packed(some_sentences())
    every = lain.states(params)
    for chosen in [(0,), (1,), (2, 0)]:
        found = lain.states(params, layers=chosen)
        assert len(found) == len(chosen)
        require_close(found, [every[layer] for layer in chosen], 1e-6)
    lower = {**params, "layers": {"0": params["layers"]["0"]}}
    require_close(lain.states(lower, layers=(1,)), [every[1]], 1e-6)


@pytest.mark.parametrize(
    ("dtype", "of_states"), [("bfloat16", "bfloat16"), ("bfloat16_products", "float32")]
)
def test_bfloat16_is_close_and_logits_are_float32(params, dtype, of_states):
    config = dataclasses.replace(CONFIG, dtype=dtype)
    lain = packed(some_sentences())
    states = lain.states(params, config)
    assert {state.dtype for state in states} == {jnp.dtype(of_states)}
    wanted = lain.states(params)
    for layer in range(CONFIG.layers + 1):
        error = states[layer].astype(np.float32) - wanted[layer]
        assert layer == 0 or error.any()
        assert np.sqrt(np.mean(error**2)) < 0.02 * np.sqrt(np.mean(wanted[layer] ** 2))
    logits = heads.masked_language_logits(config, params, jnp.asarray(states[-1]))
    exact = heads.masked_language_logits(CONFIG, params, jnp.asarray(wanted[-1]))
    assert logits.dtype == jnp.float32 and logits.shape == exact.shape
    assert np.abs(logits - exact).mean() < 0.05 * np.abs(exact).mean()
    of_same_states = heads.masked_language_logits(config, params, jnp.asarray(wanted[-1]))
    assert (of_same_states != exact).any()
    shapes = heads.param_shapes(config)
    assert {str(leaf.dtype) for leaf in jax.tree.leaves(shapes)} == {"float32"}


def test_the_initial_parameters_are_those_of_the_seed():
    first, again, other = (heads.initial_params(CONFIG, seed) for seed in (0, 0, 1))
    assert all(jax.tree.leaves(jax.tree.map(np.array_equal, first, again)))
    kernel = first["layers"]["0"]["attention"]["query_key_value"]["kernel"]
    assert not np.array_equal(
        kernel, other["layers"]["0"]["attention"]["query_key_value"]["kernel"]
    )
    assert abs(float(kernel.std()) - CONFIG.initial_sd) < 0.002
    assert abs(float(first["embeddings"]["tokens"].std()) - CONFIG.initial_sd) < 0.002


def test_the_paper_s_model_has_its_size():
    shapes = heads.param_shapes(BertConfig(vocabulary_size=4096))
    encoder = 12 * (4 * 64 * 64 + 2 * 64 * 256 + 4 * 64 + 256 + 64 + 4 * 64)
    embeddings = (4096 + 512 + 2 + 2) * 64
    head = 64 * 64 + 64 + 2 * 64 + 4096
    assert sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(shapes)) == (
        encoder + embeddings + head
    )


def test_gelu_is_the_exact_form():
    x = jnp.linspace(-6, 6, 101)
    assert np.allclose(gelu(x), jax.nn.gelu(x, approximate=False), atol=1e-6)


@pytest.mark.parametrize(
    "field, value", [("heads", 5), ("dtype", "float16"), ("dropout", 1.0), ("dropout", -0.1)]
)
def test_configs_that_mean_nothing_are_refused_by_field(field, value):
    name = "hidden" if field == "heads" else field
    with pytest.raises(ValueError, match=f"models.{name}=.*choose"):
        dataclasses.replace(CONFIG, **{field: value})


def test_with_dropout_packed_sentences_have_the_states_of_lone_ones(params):
    """So a sentence's bits depend on nothing of its row."""
    sentences = some_sentences()
    lone, lain = alone(sentences), packed(sentences)
    wanted = lone.states(params, bits=lone.bits())
    require_close(lain.states(params, bits=lain.bits()), wanted)
    for other in lone.bits(seed=1), lone.bits(step=1), None:
        assert np.abs(lone.states(params, bits=other)[-1] - wanted[-1]).max() > 0.1


def test_without_a_rate_bits_do_nothing(params):
    config = dataclasses.replace(CONFIG, dropout=0.0)
    lain = packed(some_sentences())
    for a, b in zip(lain.states(params, config, lain.bits()), lain.states(params), strict=True):
        assert np.array_equal(a, b)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class DropsOne(DropoutBits):
    """Keeps everything but one use in one layer, of which nothing is kept."""

    dropped: jax.Array = dataclasses.field(default_factory=lambda: jnp.array([-1, -1]))

    def _all(self, shape, layer, use):
        is_dropped = (self.dropped == jnp.array([layer, use])).all()
        return jnp.where(is_dropped, jnp.zeros(shape, jnp.uint32), jnp.uint32(2**32 - 1))

    def features(self, features, layer, use):
        return self._all((len(self.place_M), features), layer, use)

    def pairs(self, heads, layer):
        n, t = self.place_M.shape
        return self._all((n, heads, t, t), layer, ATTENTION)


def test_every_use_of_dropout_acts_in_its_layer(params):
    lain = alone(some_sentences(4))
    nothing = DropsOne(*vars(lain.bits()).values())
    wanted = lain.states(params, bits=nothing)
    uses = [(layer, use) for layer in (1, 2) for use in (ATTENTION, ATTENTION_OUTPUT, FEED_FORWARD)]
    for layer, use in [(0, EMBEDDINGS), *uses]:
        bits = dataclasses.replace(nothing, dropped=jnp.array([layer, use]))
        for number, (a, b) in enumerate(zip(lain.states(params, bits=bits), wanted, strict=True)):
            assert np.array_equal(a, b) == (number < layer), (layer, use)


def test_the_embeddings_lose_their_share(params):
    lain = alone(some_sentences())
    lost = np.isclose(lain.states(params, bits=lain.bits())[0], 0.0)
    assert 0.08 < lost.mean() < 0.12
    scaled = np.where(lost, 0.0, lain.states(params)[0] / (1 - CONFIG.dropout))
    assert np.allclose(lain.states(params, bits=lain.bits())[0], scaled, atol=1e-5)


def test_attention_and_logits_in_parts_have_the_gradient_of_the_whole(params, monkeypatch):
    """With the same bits of dropout; neither rows nor candidates are a multiple of a part's."""
    rows, places = ((7, 8),), np.tile(np.arange(8), 7)
    tokens, zero = np.arange(56) % 50, np.zeros(56, np.int32)
    bits = DropoutBits(hashing.token_hash(0, 0, zero, places), jnp.asarray(places))
    segments, targets, ids = places // 5, np.arange(56) % 41, np.arange(43) + 3

    def loss(params):
        (states,) = Bert(CONFIG).apply(
            {"params": params}, tokens, places, segments, zero, rows=rows, bits=bits, layers=(2,)
        )
        return heads.cross_entropy(CONFIG, params, states, targets, ids, jnp.int32(41)).mean()

    whole = jax.jit(jax.value_and_grad(loss))(params)
    monkeypatch.setattr(bert, "SCORES_AT_ONCE", 4 * 2 * 8 * 8)
    monkeypatch.setattr(heads, "LOGITS_AT_ONCE", 56 * 10)
    assert str(jax.make_jaxpr(loss)(params)).count("scan[") == CONFIG.layers + 1
    parts = jax.jit(jax.value_and_grad(loss))(params)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6), whole, parts)
    monkeypatch.setattr(heads, "LOGITS_AT_ONCE", 1)
    assert np.isclose(jax.jit(lambda x: loss(x))(params), whole[0])


def test_computing_layers_again_changes_the_memory_and_not_the_gradient():
    config = dataclasses.replace(CONFIG, layers=3, dropout=0.1)
    rows, places = ((16, 32),), np.tile(np.arange(32), 16)
    tokens, zero = np.arange(512) % 50, np.zeros(512, np.int32)
    bits = DropoutBits(hashing.token_hash(0, 0, zero, places), jnp.asarray(places))

    def loss(params, config):
        (states,) = Bert(config).apply(
            {"params": params}, tokens, places, None, zero, rows=rows, bits=bits, layers=(3,)
        )
        return jnp.square(states[:, ::2]).mean()  # of all features it would be constant

    params = heads.initial_params(config, 0)
    found, kept = [], []
    for remat in (False, True):
        own = functools.partial(loss, config=dataclasses.replace(config, remat=remat))
        _, backward = jax.eval_shape(functools.partial(jax.vjp, own), params)
        found.append(jax.jit(jax.grad(own))(params))
        kept.append(sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(backward)))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-6), *found)
    assert np.abs(found[0]["layers"]["0"]["output"]["kernel"]).max() > 1e-4
    assert kept[1] < 0.3 * kept[0]  # from the forward pass to the backward one
