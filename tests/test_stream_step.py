"""The step on streams: partitions, absent languages, devices, resuming, what is predicted."""

import dataclasses
import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import replicas_run
import stream_run
from stream_run import OPTIMIZER, SEP_EMB, SIZES, program, run, sampler, store

from xling_jax.batches.windows import StreamStore
from xling_jax.models import partition
from xling_jax.training import optimizer
from xling_jax.training.input_pipeline import StreamingPipeline
from xling_jax.training.stream_step import StreamProgram, Vocabularies
from xling_jax.vocabulary.sharing import LanguageVocabulary


@functools.lru_cache
def trained(data=1, accumulate=1, paths=(*SEP_EMB, "layers/0"), steps=12, shards=1):
    one = sampler(shards=data, accumulate=accumulate)
    return run([one], program(one.layout, paths, shards=shards), steps, data=data)


def close(a, b, **tolerance):
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, **tolerance), a, b)


def test_the_loss_falls():
    one = sampler()
    _, metrics = run([one], program(one.layout, SEP_EMB), steps=150, call=6)
    assert metrics.loss[0, 0] == pytest.approx(np.log(np.mean(SIZES)), rel=0.1)
    assert metrics.loss[0, -3:].mean() < metrics.loss[0, 0] - 0.25


def test_steps_are_as_long_as_the_schedule_says():
    one = sampler()
    tested = program(one.layout, SEP_EMB)
    first = tested.initial_state(0)
    states, metrics = run([one], tested, steps=4, initial=[first], call=1)
    rates = 1e-2 * np.arange(4) / OPTIMIZER.warmup_steps
    np.testing.assert_allclose(metrics.learning_rate[0], rates, rtol=1e-6)
    passed = [jax.tree.map(lambda x: x[None], first.params), *(x.params for x in states)]
    for rate, old, new in zip(rates, passed, passed[1:], strict=False):
        for part in ("shared", "language"):
            assert replicas_run.largest_change(old[part], new[part]) == pytest.approx(rate, rel=0.1)


def test_a_language_that_a_step_lacks_keeps_every_bit():
    one = sampler(draws=(1.0, 0.0))
    tested = program(one.layout, (*SEP_EMB, "layers/0"))
    initial = tested.initial_state(0)
    both, _ = run([sampler()], tested, steps=3, initial=[initial])  # moments of both languages
    begin = jax.tree.map(lambda x: np.asarray(x)[0], both[-1])
    states, _ = run([one], tested, steps=3, initial=[begin])
    before = (begin.params["language"], begin.moments["language"])
    after = (states[-1].params["language"], states[-1].moments["language"])
    for old, new in zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True):
        np.testing.assert_array_equal(np.asarray(old)[1], np.asarray(new)[0, 1])
    changed = [
        (np.asarray(old)[0] != np.asarray(new)[0, 0]).any()
        for old, new in zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True)
    ]
    assert all(changed)
    assert (
        states[-1].params["shared"]["layers"]["1"]["output"]["kernel"][0]
        != begin.params["shared"]["layers"]["1"]["output"]["kernel"]
    ).any()


def test_models_with_nothing_in_common_train_as_each_does_alone():
    """The lone model sees its language's parts of the same batches, at the same steps."""
    language, one = 1, sampler()
    together = program(one.layout, partition.EVERYTHING)
    initial = together.initial_state(0)
    states, _ = run([one], together, steps=12, initial=[initial])

    size = SIZES[language]
    vocabulary = LanguageVocabulary("separate", ("x",), (None,), (np.arange(size, dtype=np.int32),))
    model = dataclasses.replace(stream_run.MODEL, vocabulary_size=size)
    alone = StreamProgram(model, OPTIMIZER, one.layout, Vocabularies(1, True, "language"))
    params = partition.split([partition.export(initial.params, language, size)])
    text = store()
    first = sum(text.sizes[:language])
    tokens = text.tokens[first : first + text.sizes[language]]
    own = StreamStore.of([tokens], stream_run.tables(vocabulary))
    present = [one.plan(step, step + 1).language[0, 0] == language for step in range(12)]
    state = alone.state_of(params)
    for step in np.flatnonzero([found.any() for found in present]):
        plan = one.plan(step, step + 1)
        mine = plan.language[0, 0] == language
        layout = dataclasses.replace(one.layout, parts=int(mine.sum()))
        lone = dataclasses.replace(alone, layout=layout, axis=None)
        state = dataclasses.replace(state, step=jnp.int32(step))
        state, _ = jax.jit(lone.update)(
            state,
            stream_run.StreamSetting.of(0, 1e-2),
            own,
            np.zeros((1, mine.sum()), np.int32),
            plan.windows[0][:, mine].astype(np.int32),
            plan.slot[0][:, mine],
        )
    found = jax.tree.map(lambda leaf: leaf[0], states[-1].params)
    close(partition.export(found, language, size), state.params["shared"], atol=2e-5)
    counts = optimizer.partitioned_moments(OPTIMIZER, initial.params)["language"][0].count
    assert counts.shape == (2,)
    assert states[-1].moments["language"][0].count[0, language] == sum(p.any() for p in present)


def test_languages_that_start_alike_differ_in_the_embeddings_of_tokens_alone():
    def initial(**changes):
        whole = program(sampler().layout, partition.EVERYTHING, **changes).initial_state(0, (1, 2))
        return [partition.select(whole.params, language) for language in (0, 1)]

    (first, second), (own, _) = initial(start_alike=True), initial()
    chex.assert_trees_all_equal(first, own)
    tables = [plain["embeddings"].pop("tokens") for plain in (first, second)]
    assert (tables[0] != tables[1]).all()
    chex.assert_trees_all_equal(first, second)
    assert (first["embeddings"]["positions"] != initial()[1]["embeddings"]["positions"]).all()


def test_a_step_masks_at_its_programs_rate():
    def first_losses(**changes):
        one = sampler()
        return run([one], program(one.layout, **changes), steps=3)[1].loss

    usual = first_losses(masking_rate=0.15)
    np.testing.assert_array_equal(usual, first_losses())
    assert (usual != first_losses(masking_rate=0.4)).all()


@pytest.mark.parametrize(
    ("data", "accumulate", "shards"),
    [
        (2, 1, 1),
        pytest.param(1, 4, 1, marks=pytest.mark.slow),
        pytest.param(8, 1, 8, marks=pytest.mark.slow),
        (2, 2, 2),
    ],
)
def test_devices_and_accumulation_compute_the_run_of_one(data, accumulate, shards):
    states, metrics = trained(steps=21)
    other_states, other = trained(data, accumulate, steps=21, shards=shards)
    np.testing.assert_allclose(other.loss, metrics.loss, rtol=1e-5)
    np.testing.assert_allclose(other.gradient_norm, metrics.gradient_norm, rtol=1e-5)
    close(other_states[-1].params, states[-1].params, atol=1e-4)


def test_one_compilation_serves_all_languages():
    one = sampler()
    tested = program(one.layout, SEP_EMB)
    update, traced = jax.jit(dataclasses.replace(tested, axis=None).update), []
    setting = stream_run.StreamSetting.of(0, 1e-2)
    state, text = jax.tree.map(jnp.asarray, (tested.initial_state(0), store()))
    for step in range(6):
        plan = one.plan(step, step + 1)
        fields = (plan.language[0], plan.windows[0].astype(np.int32), plan.slot[0])
        state, _ = update(state, setting, text, *fields)
        traced += plan.language.ravel().tolist()
    assert set(traced) == {0, 1} and update._cache_size() == 1


@pytest.mark.parametrize(
    "compare",
    [
        functools.partial(close, rtol=1e-3, atol=1e-6),
        pytest.param(chex.assert_trees_all_equal, marks=pytest.mark.slow),
    ],
    ids=["close", "bits"],
)
def test_tokens_fed_from_the_host_train_as_resident_ones_do(compare):
    one = sampler()
    resident, _ = trained()
    text = store()

    def read(language, start, step):
        first, size = sum(text.sizes[:language]), text.sizes[language]
        return text.tokens[first + (start + np.arange(one.layout.window)) % size]

    pipeline = StreamingPipeline([one], read, 12, {0, 1})
    fed, _ = run([one], program(pipeline.layouts[0], (*SEP_EMB, "layers/0")), pipeline=pipeline)
    compare(fed[-1], resident[-1])
    pipeline = StreamingPipeline([one], read, 12, {0, 1})
    later = pipeline.steps(6, 9)
    for found, wanted in zip(
        later, StreamingPipeline([one], read, 12, {0, 1}).steps(0, 12), strict=True
    ):
        np.testing.assert_array_equal(found, wanted[:, 6:9])


def test_a_process_reads_only_the_windows_of_its_own_shards():
    one = sampler(shards=2)
    reads = []

    def read(language, start, step):
        reads.append((step, language, start))
        return np.full(one.layout.window, 1 + start, np.int32)

    *_, windows, slot = StreamingPipeline([one], read, 3, {0, 1}).steps(0, 3)
    every, _ = sorted(reads), reads.clear()
    *_, own, _ = StreamingPipeline([one], read, 3, {1}).steps(0, 3)
    assert len(reads) == len(every) / 2 and set(reads) < set(every)
    np.testing.assert_array_equal(own[:, :, 1], windows[:, :, 1])
    assert not own[:, :, 0].any() and windows[:, :, 0].all()


def test_a_run_cut_in_two_gives_the_same_bits():
    states, _ = trained()
    one = sampler()
    half = jax.tree.map(lambda leaf: leaf[0], states[1])

    class Later:
        def steps(self, start, stop):
            from xling_jax.training.input_pipeline import InputPipeline

            return InputPipeline([sampler()]).steps(start + 6, stop + 6)

    again, _ = run([one], program(one.layout, (*SEP_EMB, "layers/0")), 6, [half], Later())
    chex.assert_trees_all_equal(again[-1], states[-1])


def test_only_the_languages_own_pieces_can_be_predicted_or_put_in():
    tables = stream_run.tables(stream_run.vocabulary("prefixed"))
    bits = jnp.arange(4000, dtype=jnp.uint32) * jnp.uint32(2654435761)
    for language, ids in enumerate(stream_run.vocabulary("prefixed").ids):
        assert set(np.asarray(tables.draw(language, bits)).tolist()) == set(ids[5:].tolist())
        found = Vocabularies(2, False, "language").candidates(tables, language)
        assert set(np.asarray(found.ids[: found.size]).tolist()) == set(ids.tolist())
        np.testing.assert_array_equal(found.ids[found.local[ids]], ids)
    anywhere = stream_run.tables(stream_run.vocabulary("prefixed"), "anywhere")
    every = set(range(5, sum(SIZES) - 5))
    assert set(np.asarray(anywhere.draw(0, bits)).tolist()) == every


def test_a_softmax_over_the_language_equals_one_over_all_with_the_others_left_out():
    one, way = sampler(), "prefixed"
    text = store(way)
    losses = {}
    for softmax in ("shared", "language"):
        tested = program(one.layout, (), way, softmax)
        _, losses[softmax] = run([one], tested, 3, text=text)
    assert (losses["language"].loss < losses["shared"].loss).all()
    assert losses["language"].loss[0, 0] == pytest.approx(np.log(np.mean(SIZES)), rel=0.1)
    assert losses["shared"].loss[0, 0] == pytest.approx(np.log(sum(SIZES) - 5), rel=0.1)


def test_choices_that_exclude_each_other_are_refused():
    with pytest.raises(ValueError, match="^softmax='shared'"):
        Vocabularies(2, True, "shared")
    with pytest.raises(ValueError, match="^random_pieces='anywhere'"):
        stream_run.tables(stream_run.vocabulary("separate"), "anywhere")
