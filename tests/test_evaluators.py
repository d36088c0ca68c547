"""evaluators: the D&S metrics against a plain computation, one sentence at a time, in numpy."""

import dataclasses
import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from xling_jax import devices
from xling_jax.batches import hashing, setting
from xling_jax.batches.corruption import PieceRange
from xling_jax.batches.store import TokenStore
from xling_jax.evaluators import perplexity, registry
from xling_jax.evaluators.multilinguality import EncodedTexts, Multilinguality
from xling_jax.models import heads, partition
from xling_jax.models.bert import Bert, BertConfig
from xling_jax.training.loop import stack
from xling_jax.vocabulary import neighbours

LANGUAGES = ("en", "fake", "fake2")  # of which most tests have the first two
SHIFT = 40
CLS, SEP, MASK = 2, 3, 4
MODEL = BertConfig(
    vocabulary_size=3 * SHIFT,
    layers=2,
    hidden=16,
    intermediate=32,
    heads=2,
    positions=384,
    token_types=3,
)
LAYERS = (0, 1, 2)
NAMES = registry.names(registry.SENTENCES, registry.PIECES, registry.TOKENS)
ROWS = ("original", "lang-pos;shift-special", "inv-order")
CUT = 2  # sentences that are said to be cut
PAIRS = list(itertools.combinations(range(3), 2))


@functools.lru_cache
def sentences(name):
    random = np.random.default_rng(len(name))
    return [random.integers(5, SHIFT, random.choice([1, 3, 6, 11])) for _ in range(37)]


def store(ids, languages):
    shifted = [[sentence + k * SHIFT for sentence in ids] for k in range(languages)]
    return TokenStore.from_languages(shifted, 128)


@functools.lru_cache
def params():
    """Parameters large enough for contexts to matter."""
    shapes, random = heads.param_shapes(MODEL), np.random.default_rng(1)

    def draw(path, leaf):
        base = np.float32(path[-1].key == "scale")
        return base + 0.3 * random.normal(size=leaf.shape).astype(np.float32)

    tree = jax.tree.map_with_path(draw, shapes)
    tokens = tree["embeddings"]["tokens"].reshape(3, SHIFT, -1)
    tokens[1:] = tokens[0] + 0.3 * random.normal(size=tokens[1:].shape)
    return tree


def values(row, languages):
    return setting.make(
        setting.parse(row, languages),
        languages,
        seed=0,
        learning_rate=0.0,
        max_length=128,
        shift=SHIFT,
        neighbours=neighbours.nothing(3 * SHIFT),
    )


@functools.lru_cache
def evaluated(replicas=1, data=1, languages=2, layers=LAYERS, names=NAMES):
    """The metrics of the rows, each computed with `replicas` side by side on a mesh."""
    pieces = [np.array([piece]) for piece in range(SHIFT)]
    train, dev = (store(sentences(name), languages) for name in ("train", "dev"))
    dev = dataclasses.replace(dev, truncated=CUT)
    own = LANGUAGES[:languages]
    texts = EncodedTexts(own, {"train": train, "dev": dev}, dev, store(pieces, languages))
    mesh = devices.make_mesh(replicas, jax.devices()[: replicas * data])
    evaluation = Multilinguality(
        MODEL,
        texts,
        PieceRange(languages, SHIFT),
        mesh,
        names=names,
        layers=layers,
        sentences=16,
        row_lengths=(16,),
    )
    found = []
    for start in range(0, len(ROWS), replicas):
        rows = ROWS[start : start + replicas]
        states = stack([partition.split([params()]) for _ in rows])
        found += evaluation(states, stack([values(row, own) for row in rows]))[0]
    return dict(zip(ROWS, found, strict=True))


def plain_tokens(sentence, language, row):
    """Ids, positions and token types of one sentence, by the paper's words."""
    own = language * SHIFT if "shift-special" in row else 0
    pieces = sentence + language * SHIFT
    if "inv-order" in row and language == 1:
        pieces = pieces[::-1]
    tokens = np.concatenate([[CLS + own], pieces, [SEP + own]])
    own_type = language if "lang-pos" in row else 0
    return tokens, np.arange(len(tokens)) + 128 * own_type, np.full(len(tokens), own_type)


@jax.jit
def forward(params, tokens, positions, token_types):
    segments = jnp.zeros_like(tokens)
    return Bert(MODEL).apply({"params": params}, tokens, positions, segments, token_types)


@jax.jit
def log_probabilities(params, states_PxD):
    return jax.nn.log_softmax(heads.masked_language_logits(MODEL, params, states_PxD))


def encode(tokens, positions, token_types):
    states = forward(params(), *(np.asarray(x)[None] for x in (tokens, positions, token_types)))
    return [np.asarray(state[0]) for state in states]


def cosine(x, y):
    x = x / np.linalg.norm(x, axis=-1, keepdims=True)
    return x @ (y / np.linalg.norm(y, axis=-1, keepdims=True)).T


@functools.lru_cache
def plain_states(name, row):
    ids = [np.array([p]) for p in range(SHIFT)] if name == "pieces" else sentences(name)
    return [[encode(*plain_tokens(s, language, row)) for s in ids] for language in range(3)]


def sentence_means(name, row, layer):
    return [
        np.stack([states[layer][1:-1].mean(0) for states in language])
        for language in plain_states(name, row)
    ]


def plain_similarity(name, row, layer, pair=(0, 1)):
    means = sentence_means(name, row, layer)
    return cosine(*(means[language] for language in pair))


def plain_precision(name, row, layer, k, pair=(0, 1)):
    similarity = plain_similarity(name, row, layer, pair)

    def found(s):
        return np.mean([i in np.argsort(-line)[:k] for i, line in enumerate(s)])

    return found(similarity), found(similarity.T)


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize(("task", "name"), [("retrieval", "dev"), ("translation", "pieces")])
def test_retrieval_and_translation(task, name, row):
    metrics = evaluated()[row]
    for layer in LAYERS:
        for k, suffix in [(1, ""), (5, "_p5"), (10, "_p10")]:
            forward, backward = plain_precision(name, row, layer, k)
            mean = (forward + backward) / 2
            assert metrics[f"{task}_{layer}{suffix}"] == pytest.approx(mean, abs=1e-6)
            if k == 1:
                assert metrics[f"{task}_{layer}_forward"] == pytest.approx(forward, abs=1e-6)
                assert metrics[f"{task}_{layer}_backward"] == pytest.approx(backward, abs=1e-6)
                assert 0 < mean < 1


@pytest.mark.parametrize("row", ROWS)
def test_mean_reciprocal_rank(row):
    for layer in LAYERS:
        assert evaluated()[row][f"mrr_{layer}"] == pytest.approx(plain_rank(row, layer), abs=1e-6)


def plain_rank(row, layer, pair=(0, 1)):
    similarity = plain_similarity("dev", row, layer, pair)
    ranks = [
        1 + np.sum(side > np.diag(side)[:, None], axis=1) for side in (similarity, similarity.T)
    ]
    return np.mean(1 / np.array(ranks))


@pytest.mark.parametrize("row", ROWS)
def test_word_alignment(row):
    for layer in LAYERS:
        expected = plain_f1(row, layer)
        assert evaluated()[row][f"alignment_f1_{layer}"] == pytest.approx(expected, abs=1e-6)


def plain_f1(row, layer, pair=(0, 1)):
    """Of the pair's languages the second one alone, if any, is inverted."""
    right = predicted = true = 0
    states = plain_states("dev", row)
    for x, y in zip(*(states[language] for language in pair), strict=True):
        similarity = cosine(x[layer][1:-1], y[layer][1:-1])
        n = len(similarity)
        for i in range(n):
            j = similarity[i].argmax()
            if similarity[:, j].argmax() == i:
                predicted += 1
                right += j == (n - 1 - i if row == "inv-order" and 1 in pair else i)
        true += n
    precision, recall = right / predicted, right / true
    return 2 * precision * recall / (precision + recall)


@pytest.mark.parametrize("row", ROWS)
def test_of_three_languages_every_pair_is_measured_and_the_mean_over_them(row):
    metrics, usual = evaluated(languages=3)[row], evaluated()[row]
    for layer in LAYERS:
        found = {}
        for pair in PAIRS:
            forward, backward = plain_precision("dev", row, layer, 1, pair)
            words = plain_precision("pieces", row, layer, 1, pair)
            found["-".join(LANGUAGES[language] for language in pair)] = {
                f"retrieval_{layer}": (forward + backward) / 2,
                f"retrieval_{layer}_forward": forward,
                f"translation_{layer}": np.mean(words),
                f"mrr_{layer}": plain_rank(row, layer, pair),
                f"alignment_f1_{layer}": plain_f1(row, layer, pair),
            }
        assert len({own[f"mrr_{layer}"] for own in found.values()}) == 3
        for name in found["en-fake"]:
            for pair, own in found.items():
                metric = name.replace(f"_{layer}", f"_{pair}_{layer}")
                assert metrics[metric] == pytest.approx(own[name], abs=1e-6), metric
            mean = np.mean([own[name] for own in found.values()])
            assert metrics[name] == pytest.approx(mean, abs=1e-6)
            assert metrics[name.replace(f"_{layer}", f"_en-fake_{layer}")] == pytest.approx(
                usual[name], abs=1e-6
            )  # a third language changes nothing
    for end in ("", *(f"_{pair}" for pair in found)):
        tasks = [f"{task}{end}_{n}" for task in ("retrieval", "translation") for n in (0, 1)]
        mu = np.mean([metrics[name] for name in tasks])
        assert metrics[f"mu{end}"] == pytest.approx(mu, abs=1e-6)
    assert metrics["retrieval_candidates"] == len(sentences("dev"))


def test_two_languages_have_no_names_of_pairs():
    assert not [name for name in evaluated()["original"] if "-" in name]


@jax.jit
def chances(index, places_T):
    token_T = hashing.token_hash(jnp.uint32(perplexity.SEED), 0, index, places_T)
    return hashing.combine(token_T, 0)


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("name", ["train", "dev"])
def test_perplexity(name, row):
    losses = []
    for language in range(2):
        for number, sentence in enumerate(sentences(name)):
            tokens, positions, types = plain_tokens(sentence, language, row)
            index = np.uint32(language * len(sentences(name)) + number)
            places = np.arange(len(tokens), dtype=np.uint32)
            drawn = np.asarray(chances(index, places)) < round(0.15 * 2**32)
            drawn[[0, -1]] = False
            own = language * SHIFT if "shift-special" in row else 0
            states = encode(np.where(drawn, MASK + own, tokens), positions, types)
            probability_PxV = np.asarray(log_probabilities(params(), states[-1]))
            losses += list(-probability_PxV[drawn, tokens[drawn]])
    assert len(losses) > 30
    expected = float(np.exp(np.mean(losses)))
    assert evaluated()[row][f"perplexity_{name}"] == pytest.approx(expected, rel=1e-4)


def test_mu_is_the_mean_of_retrieval_and_translation_at_the_papers_layers():
    for metrics in evaluated().values():
        parts = [metrics[f"{t}_{n}"] for t in ("retrieval", "translation") for n in (0, 1)]
        assert metrics["mu"] == pytest.approx(np.mean(parts), abs=1e-6)
        assert metrics["retrieval_candidates"] == len(sentences("dev"))
        assert metrics["retrieval_cut"] == CUT / (2 * len(sentences("dev")))


@pytest.mark.parametrize(("replicas", "data"), [(1, 8), pytest.param(3, 2, marks=pytest.mark.slow)])
def test_devices_and_replicas_do_not_change_the_metrics(replicas, data):
    several = evaluated(replicas, data)
    for row, metrics in evaluated().items():
        for name, value in metrics.items():
            assert several[row][name] == pytest.approx(value, rel=1e-5), (row, name)


def test_the_papers_layers_at_other_depths():
    assert [registry.paper_layers(depth)[1] for depth in (12, 8, 6, 4, 2)] == [8, 5, 4, 3, 1]


@pytest.mark.slow
def test_there_is_no_mu_without_the_papers_layers():
    for metrics in evaluated(layers=(0, 2), names=("retrieval", "translation")).values():
        assert "retrieval_2" in metrics and "translation_0" in metrics and "mu" not in metrics


def test_a_layer_that_the_model_lacks_is_refused():
    dev = store(sentences("dev"), 2)
    texts = EncodedTexts(LANGUAGES[:2], {"dev": dev}, dev, None)
    with pytest.raises(ValueError, match=r"evaluators.layers=\(0, 9\): the model has layers 0..2"):
        Multilinguality(
            MODEL,
            texts,
            PieceRange(2, SHIFT),
            devices.make_mesh(1),
            names=NAMES,
            layers=(0, 9),
            sentences=16,
            row_lengths=(16,),
        )
