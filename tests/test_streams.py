"""streams: windows, the order of languages and passes, layouts."""

import weakref

import numpy as np
import pytest
import stream_run
from stream_run import EPOCH, LENGTH, PARTS, SEQUENCES, sampler

from xling_jax.batches.streams import (
    StreamLayout,
    StreamSampler,
    beginnings,
    probabilities,
    sentence_starts,
)
from xling_jax.vocabulary.pieces import CLS, SEP


def plan_of(one, steps):
    """Languages [steps, parts·sequences] and first tokens of that many updates, in slot order."""
    plans = [one.plan(step, step + 1) for step in range(steps)]
    order = [np.argsort(plan.slot.ravel()) for plan in plans]
    languages = [
        np.repeat(plan.language.ravel(), plan.windows.shape[-1])[o]
        for plan, o in zip(plans, order, strict=True)
    ]
    windows = [plan.windows.ravel()[o] for plan, o in zip(plans, order, strict=True)]
    return np.array(languages), np.array(windows)


def test_languages_are_drawn_by_their_share_of_sentences_to_the_power_alpha():
    draws = probabilities([900, 100], 0.7)
    np.testing.assert_allclose(draws, np.array([0.9, 0.1]) ** 0.7 / (0.9**0.7 + 0.1**0.7))
    assert probabilities([900, 100], 0.0).tolist() == [0.5, 0.5]
    layout = StreamLayout.choose(8, 1, 256, 1, 1)
    one = StreamSampler((9000, 5000), tuple(draws), layout, 0, 1000)
    drawn = one.plan(0, 1000).language
    assert (drawn == 1).mean() == pytest.approx(draws[1], abs=0.02)


def test_a_part_is_of_one_language():
    languages, _ = plan_of(sampler(), 3 * EPOCH)
    parts = languages.reshape(-1, SEQUENCES)
    assert (parts == parts[:, :1]).all()
    assert len(np.unique(languages)) == 2


def test_a_pass_reads_every_token_and_passes_differ():
    one = sampler(draws=(1.0, 0.0))
    windows = one.windows(0)
    _, starts = plan_of(one, 2 + 2 * windows // (PARTS * SEQUENCES))
    starts, size = starts.ravel(), stream_run.store().sizes[0]
    for number in range(2):
        first = starts[number * windows : (number + 1) * windows]
        read = (first[:, None] + np.arange(LENGTH - 1)) % size
        assert set(read.ravel()) == set(range(size))
        assert read.size - size < LENGTH - 1
    assert set(starts[:windows]) != set(starts[windows : 2 * windows])


def test_windows_begin_with_a_sentence_or_a_piece_of_a_long_one():
    """Whatever a pass leaves out or reads twice, no token is read much less than others."""
    random, window = np.random.default_rng(0), LENGTH - 1
    lengths = random.integers(1, 40, 300)  # most are longer than a window, with [SEP]
    tokens = np.concatenate([np.append(np.full(n, 7), SEP) for n in lengths])
    sentences = sentence_starts(np.array_split(tokens, [100, 100, 350]))
    assert sentences.tolist() == [0, *(np.cumsum(lengths + 1)[:-1])]
    layout = StreamLayout.choose(PARTS, SEQUENCES, LENGTH, 1, 1)
    begin = beginnings(sentences, len(tokens), window)
    pieces = [np.arange(0, n, window) + x for x, n in zip(sentences, lengths + 1, strict=True)]
    assert begin.tolist() == [*np.concatenate(pieces), len(tokens)]
    one = StreamSampler((len(tokens),), (1.0,), layout, 0, EPOCH, [begin])
    passes = 200
    starts = one.starts(0, np.arange(passes * one.windows(0)))
    assert set(starts) == set(begin[:-1])
    read = (starts[:, None] + np.arange(window)) % len(tokens)
    counts = np.bincount(read.ravel(), minlength=len(tokens)) / passes
    assert counts.min() > 0.45 and counts.max() < 2.05


@pytest.mark.parametrize("changes", [{"shards": 2}, {"shards": 8}, {"accumulate": 4}])
def test_the_order_does_not_depend_on_shards_or_accumulation(changes):
    expected = plan_of(sampler(), 8)
    for found, wanted in zip(plan_of(sampler(**changes), 8), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_a_plan_needs_no_earlier_one():
    straight, fresh = sampler(), sampler()
    expected = [straight.plan(step, step + 1).windows for step in range(3 * EPOCH)]
    np.testing.assert_array_equal(fresh.plan(15, 16).windows, expected[15])
    np.testing.assert_array_equal(fresh.plan(12, 18).windows, np.concatenate(expected[12:18]))
    assert fresh.passes(15)[0] == pytest.approx(
        sum(np.count_nonzero(straight.plan(s, s + 1).language == 0) for s in range(15))
        * SEQUENCES
        / straight.windows(0)
    )


def test_a_sampler_is_freed_with_what_it_remembers():
    one = sampler()
    one.plan(3 * EPOCH, 3 * EPOCH + 2)
    known = weakref.ref(one), weakref.ref(one._passes[0](0))
    del one
    assert [reference() for reference in known] == [None] * 2


def test_seeds_give_different_orders():
    assert (plan_of(sampler(), 4)[1] != plan_of(sampler(seed=1), 4)[1]).any()


def test_windows_run_across_sentences_and_round_the_end():
    store = stream_run.store()
    size = store.sizes[1]
    found = np.asarray(store.read(1, np.array([3, size - 2]), 15))
    own = store.tokens[store.sizes[0] :]
    np.testing.assert_array_equal(found[0], own[3:18])
    np.testing.assert_array_equal(found[1], np.concatenate([own[-2:], own[:13]]))
    assert (found == SEP).any() and (found != CLS).all()


@pytest.mark.parametrize(
    ("shards", "accumulate", "microbatch"), [(1, 1, 8), (2, 1, 8), (8, 1, 2), (1, 4, 2), (4, 1, 4)]
)
def test_layouts_divide_parts_first_and_then_sequences(shards, accumulate, microbatch):
    layout = StreamLayout.choose(2, 8, 16, shards, accumulate)
    assert layout.microbatch == microbatch
    assert layout.microbatches * layout.microbatch * shards == 16


@pytest.mark.parametrize(("accumulate", "numbers"), [(1, (6, 8)), (7, (8,))])
def test_sequences_that_devices_cannot_share_are_refused_with_the_way_out(accumulate, numbers):
    choose = f"choose {' or '.join(map(str, numbers))} sequences"
    with pytest.raises(ValueError, match=f"batches.sequences=7 .* 4 devices: {choose}"):
        StreamLayout.choose(2, 7, 16, 4, accumulate)
    for number in numbers:
        StreamLayout.choose(2, number, 16, 4, accumulate)


def test_a_step_cannot_be_worked_through_in_more_pieces_than_it_has_sequences():
    with pytest.raises(ValueError, match="batches.accumulate=9"):
        StreamLayout.choose(2, 8, 16, 1, 9)
