"""Maps between two models' states, learned from linked words, and new layers that read them."""

import dataclasses
import functools
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import traverse_util
from ml_collections import ConfigDict

from xling_jax import devices
from xling_jax.batches import labelled
from xling_jax.batches.labelled import CLASSIFIER, Examples
from xling_jax.batches.tasks import TaskSampler
from xling_jax.corpora.normalize import Normalization
from xling_jax.experiments.zero_shot.experiment import Experiment
from xling_jax.experiments.zero_shot.pretrained import Pretrained, learn, read_links, words
from xling_jax.experiments.zero_shot.texts import LabelledReader
from xling_jax.linalg import word_aligner
from xling_jax.linalg.procrustes import AffineMap
from xling_jax.models import heads, stored
from xling_jax.models.bert import BertConfig
from xling_jax.models.task_heads import HeadConfig
from xling_jax.tasks.finetune import (
    ADDED,
    ENCODER,
    Predictor,
    TaskProgram,
    TaskSetting,
    TaskStore,
)
from xling_jax.training import loop
from xling_jax.training.optimizer import OptimizerConfig
from xling_jax.training.step import train_steps
from xling_jax.vocabulary import pieces as vocabulary

WORDS = [f"{a}{b}" for a in "bdfgk" for b in ("ano", "eli", "uro", "ipa")]
CONFIG = BertConfig(
    vocabulary_size=60, layers=2, hidden=16, intermediate=32, heads=2, positions=24, initial_sd=0.3
)
ORDER = np.random.default_rng(5).permutation(CONFIG.hidden)


@functools.lru_cache
def texts(number=400):
    random = np.random.default_rng(0)
    return [" ".join(random.choice(WORDS, random.integers(3, 9))) for _ in range(number)]


@functools.lru_cache
def models():
    """Two models of which the second has the first's embeddings in another order of dimensions,
    so that its layer 0 is a rotation of the first's."""
    pieces = vocabulary.train(texts(), 60)
    ids = np.arange(60, dtype=np.int32)
    params = heads.initial_params(CONFIG, 0)
    first = stored.StoredModel(CONFIG, params, "en", pieces, ids, Normalization())
    turned = jax.tree.map(lambda leaf: leaf[..., ORDER], params["embeddings"])
    second = dataclasses.replace(first, params=params | {"embeddings": turned})
    return first, second


def pretrained():
    first, second = models()
    both = words(first, second, (texts(), texts()), one_by_one=False)
    learned = learn(second, first, 0, both, list(word_aligner.align(*both)))
    both = Pretrained({"en": first, "xx": second}, frozenset(), is_shared=True)
    return both.all_frozen({"en": AffineMap.identity(CONFIG.hidden), "xx": learned})


def test_a_map_learned_from_linked_words_turns_one_layer_into_the_other():
    learned = pretrained().maps["xx"]
    # After a layer norm no state varies along the mean of all dimensions.
    varies = np.eye(CONFIG.hidden) - 1 / CONFIG.hidden
    turned = varies @ np.eye(CONFIG.hidden)[:, ORDER].T
    np.testing.assert_allclose(varies @ learned.rotation, turned, atol=1e-3)
    states = np.random.default_rng(1).standard_normal((5, CONFIG.hidden)) @ varies
    states = states.astype(np.float32)
    np.testing.assert_allclose(learned.apply(jnp.asarray(states[:, ORDER])), states, atol=1e-2)


def test_a_word_with_a_blank_in_it_is_named_where_links_count_words(tmp_path):
    files = {name: tmp_path / name for name in ("first", "second", "links")}
    files["first"].write_text("a dog\n10\u00a0000 dogs\n")
    files["second"].write_text("ein Hund\n10000 Hunde\n")
    files["links"].write_text("0-0 1-1\n0-0 1-1\n")
    given = {name: str(path) for name, path in files.items()}
    config = ConfigDict({"parallel": {"de": given}, "sentences": {"parallel": 9}})
    with pytest.raises(
        ValueError, match=r"parallel\.de: .*first, line 2: '10\\xa0000' would be read as 2 words"
    ):
        LabelledReader(config).parallel("en-de", "de")
    config.parallel.de.links = ""
    (first, _), links = LabelledReader(config).parallel("en-de", "de")
    assert links is None and len(first) == 2


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([[(0, 0), (2, 2)]], ([["Yes ,", "he", "can 't ."]], [["Non ,", "il", "peut ."]])),
        (None, ([["Yes", ",", "he", "can", "'t", "."]], [["Non", ",", "il", "peut", "."]])),
    ],
)
def test_given_links_join_the_words_of_the_lines_and_others_those_of_the_models(given, words):
    en = models()[0]
    fr = dataclasses.replace(en, language="fr")
    texts = SimpleNamespace(parallel=lambda *_: ((["Yes, he can't."], ["Non, il peut."]), given))
    found = Experiment._parallel(
        SimpleNamespace(_texts=texts, _links={}),
        SimpleNamespace(pair="en-fr", given=""),
        SimpleNamespace(first=en, models={"fr": fr}),
        "fr",
    )
    assert found == (words, given or list(word_aligner.align(*words)))


def test_given_links_are_read_and_used(tmp_path):
    path, sides = tmp_path / "links", (texts(), texts())
    links = [[(n, n) for n in range(len(text.split()))] for text in texts()]
    path.write_text("".join(" ".join(f"{a}-{b}" for a, b in own) + "\n" for own in links))
    assert read_links(path, sides) == links
    first, second = models()
    learned = learn(second, first, 0, words(first, second, sides, one_by_one=True), links)
    np.testing.assert_allclose(learned.rotation, pretrained().maps["xx"].rotation, atol=1e-3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0-0\n1:2\n", "line 2: '1:2' is no link"),
        ("0-0\n1-²\n", "line 2: '1-²' is no link"),
        ("0-0\n1-1_0\n", "line 2: '1-1_0' is no link"),
        (
            "0-0\n1p2\n",
            "line 2: .* is a possible link: leave possible links out, or write 1p2 as 1-2",
        ),
        ("0-0\n", "links for 1 sentences, and there are 2: .* none for lines that are blank"),
        ("0-0\n0-0 1-3\n", "line 2: the link 1-3 joins sentences of 2 and 3 words"),
    ],
)
def test_links_that_are_none_are_refused(tmp_path, text, message):
    path = tmp_path / "links"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_links(path, (["a dog", "two dogs"], ["ein Hund", "zwei große Hunde"]))


def test_too_few_links_are_refused():
    first, second = models()
    with pytest.raises(ValueError, match="2 linked words are too few"):
        learn(second, first, 0, ([WORDS[:3]], [WORDS[:3]]), [[(0, 0), (1, 1)]])


def test_new_layers_learn_on_frozen_ones_and_read_another_model_through_its_map():
    both, steps = pretrained(), 180
    program = TaskProgram(
        CONFIG,
        HeadConfig(CLASSIFIER, 2),
        OptimizerConfig(total_steps=steps, warmup_steps=6),
        both.frozen,
        base=0,
        added=2,
    )
    encoded, labels = [], []
    for text in texts(120):
        own = [both.first.encode([word])[0] for word in text.split()]
        encoded.append(labelled.sentence(own, both.first.special_ids, 24))
        labels.append(np.array([[word[0] in "bd"] for word in text.split()], np.int32))
    some = Examples.of(encoded, labels)
    mesh = devices.make_mesh(1, jax.devices()[:1])
    state = program.state_of(both.first.params, 0)
    added = state.params[ENCODER][ADDED]
    assert set(state.params[ENCODER]) == {ADDED} and set(added) == {"0", "1"}
    began = traverse_util.flatten_dict(heads.initial_params(CONFIG, 0)["layers"])
    for path, value in traverse_util.flatten_dict(added).items():
        if path[-1] == "kernel":  # a model that was trained with the same seed began otherwise
            assert (value != began[path]).all()
    before = jax.tree.leaves(state.params)
    store = TaskStore(some, both.own("en"))
    plan = TaskSampler(some, 8, 1, 0, epochs=4).plan(0, 15)
    function = train_steps(program, mesh)
    state = devices.place(loop.stack([state]), mesh, devices.A_REPLICA)
    settings = devices.place(loop.stack([TaskSetting.of(0, 1e-2, 2e-2)]), mesh, devices.A_REPLICA)
    fields = [x[None] for x in vars(plan).values()]
    losses = []
    for _ in range(steps // 15):
        state, metrics = function(state, settings, store, jnp.int32(15), *fields)
        losses += np.asarray(metrics.loss[0]).tolist()
    assert np.mean(losses[-5:]) < 0.3 * losses[0]
    assert all(
        (a != b[0]).any() for a, b in zip(before, jax.tree.leaves(state.params), strict=True)
    )

    def predicted(language, own):
        found = Predictor(program, mesh, encoded, own)(state.params)[0]
        return np.concatenate([x[0] for x in found])

    first = predicted("en", both.own("en"))
    gold = np.concatenate([x[:, 0] for x in labels])
    assert (first == gold).mean() > 0.95
    assert (predicted("xx", both.own("xx")) == first).mean() > 0.99
    unmapped = {**both.own("xx"), "map": AffineMap.identity(CONFIG.hidden)}
    assert (predicted("xx", unmapped) == first).mean() < 0.9


def test_all_of_an_encoder_is_frozen():
    paths = pretrained().frozen
    flat = traverse_util.flatten_dict(heads.initial_params(CONFIG, 0), sep="/")
    assert paths == {path for path in flat if not path.startswith("mlm/")}
