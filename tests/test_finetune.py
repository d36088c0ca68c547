"""Fine-tuning: heads learn, what is frozen stays, devices do not matter, languages are swapped."""

import dataclasses
import functools
import json

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import replicas_run

from xling_jax import devices
from xling_jax.batches import labelled, tasks
from xling_jax.batches.labelled import CLASSIFIER, PARSER, Examples
from xling_jax.batches.tasks import TaskSampler
from xling_jax.models import heads, task_heads
from xling_jax.models.bert import BertConfig
from xling_jax.models.task_heads import HeadConfig
from xling_jax.tasks.finetune import (
    ENCODER,
    HEAD,
    Predictor,
    TaskProgram,
    TaskSetting,
    TaskStore,
    divide,
    word_states,
)
from xling_jax.training import loop
from xling_jax.training.checkpoints import Checkpoints
from xling_jax.training.input_pipeline import TaskPipeline
from xling_jax.training.metrics import MetricsFile
from xling_jax.training.optimizer import OptimizerConfig

MODEL = BertConfig(
    vocabulary_size=30, layers=2, hidden=32, intermediate=64, heads=2, positions=16, token_types=1
)
SIZES = {"arcs": 24, "relations": 12, "parser_dropout": 0.1}
FROZEN = frozenset(["embeddings/tokens", "embeddings/positions", "layers/0/output/kernel"])
LABELS, BATCH = 3, 8


def sentences(number=64, seed=0):
    """Words of one or two pieces; a word's class is its first id's rest of a division by 3, its
    head the word before it, and the relation the head's class."""
    random = np.random.default_rng(seed)
    encoded, classes, trees = [], [], []
    for _ in range(number):
        words = [
            random.integers(5, 30, random.integers(1, 3)) for _ in range(random.integers(2, 9))
        ]
        encoded.append(labelled.sentence(words, (2, 3), 12))
        kinds = [word[0] % LABELS for word in words]
        classes.append(np.array(kinds, np.int32)[:, None])
        trees.append(np.array([*enumerate([0, *kinds[:-1]])], np.int32))
    return encoded, {CLASSIFIER: classes, PARSER: trees}


def program(kind, frozen=frozenset(), **changes):
    fields = {
        "model": MODEL,
        "head": HeadConfig(kind, LABELS, **SIZES),
        "optimizer": OptimizerConfig(total_steps=200, warmup_steps=10, weight_decay=0.01),
        "frozen": frozen,
    }
    return TaskProgram(**fields | changes)


def train(one, data=1, steps=24, *, rates=((2e-3, 5e-3),), call=4):
    """Trains replicas with different rates; returns the last state and the metrics of steps."""
    encoded, labels = sentences()
    some = Examples.of(encoded, labels[one.head.kind])
    plain = heads.initial_params(MODEL, 0)
    mesh = devices.make_mesh(len(rates), jax.devices()[:data])
    sampler = TaskSampler(some, BATCH, mesh.shape[devices.DATA], 0, epochs=40)
    store = TaskStore(some, divide(plain, one.frozen)[1])
    states, settings = [one.state_of(plain, 0)] * len(rates), [TaskSetting.of(0, *x) for x in rates]
    plan = TaskPipeline(sampler, len(rates)).steps
    found, metrics = replicas_run.run(one, mesh, states, settings, store, plan, steps, call)
    return found[-1], metrics


@functools.lru_cache
def trained(kind, data=1, frozen=frozenset(), steps=24, shards=1):
    return train(program(kind, frozen, shards=shards), data, steps)


def predictions(one, state, encoded, plain, data=1):
    mesh = devices.make_mesh(1, jax.devices()[:data])
    predictor = Predictor(one, mesh, encoded, divide(plain, one.frozen)[1])
    return predictor(devices.place(state.params, mesh, devices.A_REPLICA))[0]


def test_steps_of_two_shapes_compute_what_one_shape_does(tmp_path):
    encoded, labels = sentences()
    words = [np.array([5 + n % 25]) for n in range(60)]
    encoded.append(labelled.sentence(words, (2, 3), 12))
    some = Examples.of(encoded, [*labels[PARSER], np.array([(n, n % LABELS) for n in range(60)])])
    one, plain = program(PARSER), heads.initial_params(MODEL, 0)
    found = []
    for shapes in (2, 1):
        sampler = TaskSampler(some, BATCH, 1, 0, epochs=2)
        assert len(sampler.layouts) == 2
        sampler.__dict__["layouts"] = sampler.layouts[-shapes:]
        each, folder = sampler.steps_per_epoch, tmp_path / str(shapes)
        folder.mkdir()
        checkpoints = Checkpoints(folder / "checkpoints")
        state = loop.Training(
            one,
            devices.make_mesh(1, jax.devices()[:1]),
            [loop.Replica("row", "row", 0, TaskSetting.of(0, 2e-3, 5e-3))],
            TaskStore(some, {}),
            TaskPipeline(sampler, 1),
            loop.Schedule(2 * each, each, (2 * each,), each, call=4),
            checkpoints,
            MetricsFile(folder / "metrics.jsonl"),
            lambda *_: [{}],
            initial_state=functools.partial(one.state_of, plain),
        ).run()
        checkpoints.close()
        lines = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
        losses = [(line["step"], line["loss"]) for line in lines if line["kind"] == "train"]
        found.append((jax.device_get(state.params), losses))
    (params, losses), (expected, others) = found
    np.testing.assert_allclose(losses, others, rtol=1e-5)
    chex.assert_trees_all_close(params, expected, atol=1e-4)


@pytest.mark.parametrize("kind", [CLASSIFIER, PARSER])
def test_a_task_is_learned_from_its_examples(kind):
    state, metrics = train(program(kind), steps=120, rates=((3e-3, 1e-2),))
    assert metrics.loss[0, -8:].mean() < 0.2 * metrics.loss[0, 0]
    encoded, labels = sentences(40, seed=1)
    found = predictions(program(kind), state, encoded, heads.initial_params(MODEL, 0))
    right = []
    for own, known in zip(found, labels[kind], strict=True):
        if kind == CLASSIFIER:
            right += (own[0] == known[:, 0]).tolist()
        else:
            guessed = own[0].argmax(1)
            right += (guessed == known[:, 0]).tolist()
            relation = own[1][np.arange(len(guessed)), known[:, 0]]
            right += (relation == known[:, 1]).tolist()
    assert np.mean(right) > 0.85


@pytest.mark.parametrize(
    ("kind", "data", "shards"),
    [(CLASSIFIER, 8, 1), pytest.param(PARSER, 4, 4, marks=pytest.mark.slow)],
)
def test_devices_compute_the_run_of_one(kind, data, shards):
    state, metrics = trained(kind)
    other_state, other = trained(kind, data, shards=shards)
    np.testing.assert_allclose(other.loss[:, :20], metrics.loss[:, :20], rtol=1e-5)
    np.testing.assert_allclose(other.gradient_norm[:, :20], metrics.gradient_norm[:, :20],
                               rtol=1e-5)  # fmt: skip
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, atol=1e-4), state.params, other_state.params
    )
    encoded, plain = sentences(10, seed=2)[0], heads.initial_params(MODEL, 0)
    one, several = (predictions(program(kind), state, encoded, plain, n) for n in (1, data))
    for a, b in zip(one, several, strict=True):
        jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, atol=1e-4), a, b)


def test_steps_of_encoder_and_head_are_as_long_as_their_rates_and_the_schedule_say():
    one, (encoder, head) = program(CLASSIFIER), (2e-3, 3e-2)
    (old, _), (new, metrics) = (train(one, steps=n, rates=((encoder, head),)) for n in (2, 3))
    shares = np.arange(3) / one.optimizer.warmup_steps
    np.testing.assert_allclose(metrics.learning_rate[0], encoder * shares, rtol=1e-6)
    for part, rate in ((ENCODER, encoder), (HEAD, head)):
        found = replicas_run.largest_change(old.params[part], new.params[part])
        assert found == pytest.approx(rate * shares[2], rel=0.1)


def test_settings_side_by_side_are_what_each_is_alone():
    rates = ((2e-3, 5e-3), (1e-3, 1e-3))
    state, metrics = train(program(CLASSIFIER), data=2, steps=8, rates=rates)
    for number, own in enumerate(rates):
        alone, alone_metrics = train(program(CLASSIFIER), steps=8, rates=(own,))
        np.testing.assert_allclose(alone_metrics.loss[0], metrics.loss[number], rtol=1e-5)
        jax.tree.map(
            lambda a, b, n=number: np.testing.assert_allclose(a[0], b[n], atol=1e-5),
            alone.params,
            state.params,
        )


def test_what_is_frozen_is_not_trained_and_all_else_is():
    state, _ = trained(CLASSIFIER, frozen=FROZEN)
    before = heads.initial_params(MODEL, 0)
    assert "tokens" not in state.params[ENCODER]["embeddings"]
    changed = jax.tree.map(
        lambda a, b: bool((a != b[0]).any()),
        divide(before, FROZEN)[0],
        state.params[ENCODER],
    )
    assert all(jax.tree.leaves(changed))
    head = task_heads.initial_params(program(CLASSIFIER).head, MODEL.hidden, 0)
    assert (head["output"]["kernel"] != state.params[HEAD]["output"]["kernel"][0]).any()


def test_a_language_is_tested_with_its_own_part():
    """A language whose pieces have other numbers finds what the first one learned."""
    one = program(CLASSIFIER, frozenset(["embeddings/tokens"]))
    state, _ = train(one, steps=120, rates=((3e-3, 1e-2),))
    plain, encoded = heads.initial_params(MODEL, 0), sentences(20, seed=3)[0]
    order = np.concatenate([np.arange(5), 5 + np.random.default_rng(0).permutation(25)])
    tokens = np.zeros((40, MODEL.hidden), np.float32)  # a larger vocabulary
    tokens[order] = plain["embeddings"]["tokens"]
    other = plain | {"embeddings": plain["embeddings"] | {"tokens": tokens}}
    written = [dataclasses.replace(x, rows=[order[row] for row in x.rows]) for x in encoded]
    first = predictions(one, state, encoded, plain)
    second = predictions(one, state, written, other)
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a[0], b[0])


def test_sets_of_examples_and_programs_share_a_compiled_prediction():
    plain = heads.initial_params(MODEL, 0)
    mesh = devices.make_mesh(1, jax.devices()[:1])
    compiled, shapes, head = [], [], HeadConfig(CLASSIFIER, LABELS + 1, **SIZES)  # of no other test
    for number, frozen, steps in ((30, (), 200), (130, (), 200), (150, ["unused"], 300)):
        optimizer = OptimizerConfig(total_steps=steps)
        one = program(CLASSIFIER, frozenset(frozen), head=head, optimizer=optimizer)
        predictor = Predictor(one, mesh, sentences(number)[0], {})
        params = loop.stack([one.state_of(plain, 0)]).params
        found = predictor(devices.place(params, mesh, devices.A_REPLICA))[0]
        assert len(found) == number and None not in found
        compiled.append(predictor._predict)
        shapes += [{(x.tokens.shape, x.places.shape) for x, *_ in predictor._batches}]
    assert len(set(compiled)) == 1 and [len(own) for own in shapes] == [2, 2, 2]
    assert compiled[0]._cache_size() == len(set().union(*shapes)) == 3


def test_states_of_words_do_not_depend_on_other_examples_or_filling():
    one, plain = program(CLASSIFIER), heads.initial_params(MODEL, 0)
    encoded, labels = sentences(6)

    def states(numbers, shape=None):
        some = Examples.of([encoded[n] for n in numbers], [labels[CLASSIFIER][n] for n in numbers],
                           shape)  # fmt: skip
        chosen = np.arange(len(numbers))[None]
        sizes = tasks.needed(chosen, some, 1)[0].tolist()
        layout = tasks.TaskLayout(1, len(numbers), *sizes, some.tokens.shape[1])
        plan = tasks.plan(chosen, some, layout)
        plan = dataclasses.replace(plan, **{k: v[0, 0] for k, v in vars(plan).items()})
        batch = tasks.gather(jax.tree.map(jnp.asarray, some), plan)
        compiled = jax.jit(
            lambda params, batch: word_states(one, params, batch, layout.length, None)
        )
        found = compiled(divide(plain, frozenset())[0], batch)
        return {int(number): np.asarray(x)[np.asarray(is_word)] for number, x, is_word in
                zip(plan.example, found, batch.is_word, strict=True)}  # fmt: skip

    together = states(range(6), (9, 32, 16))
    for number in range(3):
        np.testing.assert_allclose(states([number])[0], together[number], atol=1e-5)
