"""Evaluators of models of several languages: perplexity, translations, devices, replicas."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import stream_run
from stream_run import SEP_EMB, program, sampler, store

from xling_jax import devices
from xling_jax.batches import hashing
from xling_jax.evaluators import perplexity, registry
from xling_jax.evaluators.comparison import word_precision
from xling_jax.evaluators.perplexity import StreamPerplexity
from xling_jax.evaluators.translations import Translated, Translations
from xling_jax.models import heads, partition
from xling_jax.models.bert import Bert
from xling_jax.training import loop
from xling_jax.vocabulary.pieces import CLS, MASK

NAMES = registry.names(registry.SENTENCES, registry.DICTIONARY)
PARTITION = (*SEP_EMB, "layers/0")


@functools.lru_cache
def states(seeds):
    """Untrained replicas with lively embeddings, so that sentences differ."""
    one = program(sampler().layout, PARTITION)
    found = [one.initial_state(seed).params for seed in seeds]
    return loop.stack([jax.tree.map(lambda x: 20 * x, params) for params in found])


def placed(seeds, mesh):
    return devices.place(states(seeds), mesh, devices.A_REPLICA)


def mesh_of(replicas, data):
    return devices.make_mesh(replicas, jax.devices()[: replicas * data])


def perplexities(seeds, data=1, **changes):
    mesh = mesh_of(len(seeds), data)
    one = program(sampler(shards=data).layout, PARTITION, **changes)
    return StreamPerplexity(one, mesh, store(), ["a", "b"])(placed(seeds, mesh))


def items():
    random = np.random.default_rng(3)
    texts = [
        [random.integers(5, size, random.integers(2, 12)) for _ in range(60)]
        for size in stream_run.SIZES
    ]
    words = [[np.array([5 + k]) for k in range(number)] for number in (12, 9)]
    gold = [[k % 9, (k + 1) % 9] for k in range(12)]
    return [
        Translated("b", (0, 1), tuple(texts)),
        Translated("b", (0, 1), tuple(words), gold),
    ]


def translations(seeds, data=1, names=NAMES):
    mesh = mesh_of(len(seeds), data)
    found = Translations(
        program(sampler().layout, PARTITION).model,
        mesh,
        items(),
        names=names,
        layers=(0, 1, 2),
        max_length=16,
        sentences=10,
        row_lengths=(8,),
    )
    return found(placed(seeds, mesh))


@pytest.mark.parametrize(
    ("measure", "data"),
    [pytest.param(perplexities, 2, marks=pytest.mark.slow), (perplexities, 8), (translations, 8)],
)
def test_several_devices_measure_what_one_does(measure, data):
    (one,), (other,) = measure((0,)), measure((0,), data)
    assert one.keys() == other.keys()
    for name, value in one.items():
        assert other[name] == pytest.approx(value, rel=1e-4, abs=1e-5), name


@pytest.mark.parametrize("measure", [perplexities, translations])
def test_replicas_are_measured_as_each_is_alone(measure):
    both = measure((0, 1))
    for number, seed in enumerate((0, 1)):
        (alone,) = measure((seed,))
        assert both[number] == pytest.approx(alone, rel=1e-4, abs=1e-5)
    assert both[0] != both[1]


def test_perplexity_is_of_the_same_places_whatever_share_is_masked_in_training():
    assert perplexities((0,), masking_rate=0.4) == perplexities((0,))


def test_perplexity_is_of_the_masked_pieces_of_adjacent_windows():
    (found,), layout, text = perplexities((0,)), sampler().layout, store()
    config = program(layout).model
    whole = jax.tree.map(lambda x: x[0], states((0,)))
    places = np.arange(layout.length)

    @jax.jit
    def loss_and_count(plain, start, window_T, language):
        row_T = jnp.concatenate([jnp.array([CLS]), window_T])
        token_T = hashing.token_hash(jnp.uint32(perplexity.SEED), 0, start, places)
        is_masked_T = (hashing.combine(token_T, 0) < round(0.15 * 2**32)) & (row_T > MASK)
        given_1xT = jnp.where(is_masked_T, MASK, row_T)[None]
        tokens = given_1xT, places[None], None, jnp.zeros_like(given_1xT)
        *_, (state_TxD,) = Bert(config).apply({"params": plain}, *tokens)
        logits_TxV = heads.masked_language_logits(config, plain, state_TxD)
        is_own_V = jnp.arange(logits_TxV.shape[1]) < jnp.array(stream_run.SIZES)[language]
        chance_TxV = jax.nn.log_softmax(jnp.where(is_own_V, logits_TxV, -jnp.inf))
        return -(chance_TxV[places, row_T] * is_masked_T).sum(), is_masked_T.sum()

    for language, tokens in enumerate(np.split(text.tokens, np.cumsum(text.sizes)[:-1])):
        plain = partition.select(whole, language)
        sums = [
            loss_and_count(plain, start, tokens[start : start + layout.window], language)
            for start in range(0, len(tokens) - layout.window + 1, layout.window)
        ]
        loss, count = np.sum(sums, axis=0)
        assert count > 30
        expected = pytest.approx(np.exp(loss / count), rel=1e-4)
        assert found[f"perplexity_dev_{'ab'[language]}"] == expected


def test_perplexity_of_a_model_that_knows_nothing_is_the_number_of_pieces():
    one = program(sampler().layout, PARTITION)
    mesh = mesh_of(1, 1)
    params = jax.tree.map(np.zeros_like, states((0,)))
    (found,) = StreamPerplexity(one, mesh, store(), ["a", "b"])(params)
    for name, size in zip("ab", stream_run.SIZES, strict=True):
        assert found[f"perplexity_dev_{name}"] == pytest.approx(size, rel=1e-4)
    assert found["perplexity_dev"] == pytest.approx(np.sqrt(np.prod(stream_run.SIZES)), rel=1e-4)


def test_languages_with_the_same_parameters_find_their_own_sentences():
    params = states((0,))
    plain = jax.tree.map(lambda x: x[0], params)
    same = partition.split([partition.select(plain, 0)] * 2, PARTITION)
    texts = items()[0].texts[0]
    mesh = mesh_of(1, 1)
    found = Translations(
        program(sampler().layout, PARTITION).model, mesh,
        [Translated("b", (0, 1), (texts, texts))],
        names=NAMES, layers=(0, 2), max_length=16, sentences=10, row_lengths=(8,),
    )(jax.tree.map(lambda x: x[None], same))[0]  # fmt: skip
    assert found["retrieval_b_0"] == found["retrieval_b_2"] == 1
    assert translations((0,))[0]["retrieval_b_2"] < 0.5


def test_only_what_is_named_is_measured():
    assert translations((0, 1), names=()) == [{}, {}]
    found, every = translations((0,), names=("words",))[0], translations((0,))[0]
    assert found == {name: value for name, value in every.items() if name.startswith("words")}


def test_any_of_a_words_translations_is_right_and_words_without_one_do_not_count():
    x, y = jnp.eye(4)[:3], jnp.eye(4)[jnp.array([1, 0, 3])]
    gold = [jnp.array([[1, -1], [2, 0], [-1, -1]]), jnp.array([[1], [0], [1]])]
    assert float(word_precision([x, y], gold)) == pytest.approx((1.0 + 2 / 3) / 2)
