"""batches.packing: every sentence once an epoch, with little padding."""

import re

import numpy as np
import pytest

from xling_jax import devices
from xling_jax.batches import packing
from xling_jax.batches.packing import Sampler


@pytest.fixture(scope="module")
def lengths():
    """Lengths like a real text's: mean 22, a long tail."""
    random = np.random.default_rng(0)
    return np.clip(random.gamma(4.0, 5.5, size=3000), 3, 90).astype(np.int64)


def sampler(lengths, shards=1, sentences=64, **kwargs):
    layout = packing.choose_layout(
        lengths, [np.arange(len(lengths))], sentences, (48,), shards=shards
    )
    return Sampler(lengths, 2, layout, **{"seed": 0, **kwargs})


def test_an_epoch_holds_every_sentence_once(lengths):
    plan = sampler(lengths).plan(0)
    assert sorted(plan.sentence[plan.sentence >= 0]) == list(range(len(lengths)))


def test_every_sentence_owns_as_many_places_as_it_is_long(lengths):
    plan = sampler(lengths, shards=4).plan(0)
    for step in range(len(plan)):
        slots, counts = np.unique(plan.owner[step], return_counts=True)
        owned = dict(zip(slots.tolist(), counts.tolist(), strict=True))
        owned.pop(-1, None)
        held = plan.sentence[step][plan.sentence[step] >= 0]
        assert owned == {slot: lengths[sentence] for slot, sentence in enumerate(held)}


def test_a_sentence_stands_in_one_row_without_a_gap(lengths):
    chosen = sampler(lengths, shards=2)
    plan, layout = chosen.plan(0), chosen.layout
    row_of = np.concatenate(
        [
            np.repeat(np.arange(count) + 1000 * block, length)
            for block, (count, length) in enumerate(layout.shard_rows)
        ]
    )
    for step in range(len(plan)):
        for shard in range(2):
            owner = plan.owner[step, shard]
            for slot in set(owner.tolist()) - {-1}:
                places = np.flatnonzero(owner == slot)
                assert places[0] == plan.start[step, slot]
                assert (np.diff(places) == 1).all()
                assert len(set(row_of[places])) == 1


def test_long_sentences_that_differ_in_number_from_step_to_step_get_rows_enough():
    # 7.8 long ones a step on average, which fill a row each; 8 rows are too few for some steps.
    random = np.random.default_rng(0)
    lengths = np.concatenate([random.integers(44, 58, 980), random.integers(5, 23, 7020)])
    order = np.arange(len(lengths))
    layout = packing.choose_layout(lengths, [order], 64, (40,))
    assert layout.rows[-1][0] > 8
    assert len(Sampler(lengths, 1, layout, 0).plan(0)) == 125


@pytest.mark.parametrize("parallel", [True, False])
def test_at_least_88_percent_of_the_places_hold_tokens(lengths, parallel):
    one = sampler(lengths, sentences=256, parallel=parallel)
    assert one.fill == (one.plan(0).owner >= 0).mean() >= 0.88


def packed_slowly(order, lengths, layout):
    """What `packing.planned` is to give, place by place."""
    size = [length for count, length in layout.rows for _ in range(count)]
    needed = [size[0]] * len(lengths) if layout.attend_padding else lengths.tolist()
    number = -(-len(order) // layout.sentences)
    steps, free = [[] for _ in range(number)], [list(size) for _ in range(number)]

    def put(step, candidates):
        room = layout.most_sentences - len(steps[step])
        tried, row_of = candidates[:room], {}
        for sentence in sorted(tried, key=lambda s: -needed[s]):
            left = [room - needed[sentence] for room in free[step]]
            fits = [(room, row) for row, room in enumerate(left) if room >= 0]
            if fits:
                row_of[sentence] = row = min(fits)[1]
                free[step][row] = left[row]
        steps[step] += [(sentence, row_of[sentence]) for sentence in tried if sentence in row_of]
        return [sentence for sentence in tried if sentence not in row_of] + candidates[room:]

    waiting, coming = [], list(order)
    for step in range(number):
        fresh = max(0, layout.sentences - len(waiting))
        waiting, coming = put(step, waiting + coming[:fresh]), coming[fresh:]
    waiting += coming
    for step in reversed(range(number)):
        waiting = put(step, waiting)
    assert not waiting
    shard_of, first_of = layout.addresses()
    sentence, start = np.full((2, number, layout.most_sentences), -1)
    start[:] = 0
    owner = np.full((number, layout.shards, layout.shard_places), -1)
    for step, held in enumerate(steps):
        next_place = list(first_of)
        for slot, (index, row) in enumerate(held):
            every = [index for index, _ in held] if layout.attend_padding else [index]
            begin, taken = next_place[row], max(lengths[each] for each in every)
            sentence[step, slot], start[step, slot] = index, begin
            owner[step, shard_of[row], begin : begin + taken] = slot
            next_place[row] += taken
    return sentence, start, owner


@pytest.mark.parametrize("attend_padding", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_a_plan_is_what_packing_place_by_place_gives(seed, attend_padding):
    random = np.random.default_rng(seed)
    lengths = np.clip(random.gamma(2.5, 6.0, random.integers(1, 300)).astype(np.int32), 3, 60)
    order = random.permutation(len(lengths))
    shards, rows = int(2 ** random.integers(4)), [[24], [8, 32], [48]][seed % 3]
    layout = packing.choose_layout(lengths, [order], 16, rows, shards, attend_padding)
    plan = packing.planned([order], lengths, layout)
    found = plan.sentence, plan.start, plan.owner
    for field, expected in zip(found, packed_slowly(order, lengths, layout), strict=True):
        assert field.dtype == np.int32
        np.testing.assert_array_equal(field, expected)


def test_steps_hold_the_nominal_number_of_sentences_on_average(lengths):
    plan = sampler(lengths).plan(0)
    held = (plan.sentence >= 0).sum(1)
    assert len(plan) == -(-len(lengths) // 64)
    assert (held[:-1] >= 0.8 * 64).all() and held[:-1].mean() == pytest.approx(64, rel=0.03)


@pytest.mark.parametrize("shards", [2, 4, 8])
def test_what_a_step_holds_does_not_depend_on_the_number_of_shards(lengths, shards):
    one, many = sampler(lengths).plan(3), sampler(lengths, shards=shards).plan(3)
    np.testing.assert_array_equal(one.sentence, many.sentence)


def test_epochs_and_seeds_differ_and_repeat(lengths):
    first = sampler(lengths).plan(0).sentence
    assert (first != sampler(lengths).plan(1).sentence).any()
    assert (first != sampler(lengths, seed=1).plan(0).sentence).any()
    np.testing.assert_array_equal(first, sampler(lengths).plan(0).sentence)


def test_no_parallel_gives_each_language_its_own_half_twice(lengths):
    plan = sampler(lengths, parallel=False).plan(0)
    held, times = np.unique(plan.sentence[plan.sentence >= 0], return_counts=True)
    half = len(lengths) // 4
    assert (times == 2).all()
    assert set(held) == set(range(half)) | set(range(3 * half, 4 * half))
    assert len(plan) == len(sampler(lengths).plan(0))


def test_sentences_that_do_not_fit_wait_for_the_next_step_and_are_never_dropped():
    lengths = np.array([10, 10, 10, 2, 2, 2])
    layout = packing.Layout(((1, 22),), 3)
    plan = packing.planned([np.arange(6)], lengths, layout)
    assert plan.sentence[0].tolist()[:3] == [0, 1, -1]
    assert sorted(plan.sentence[plan.sentence >= 0]) == list(range(6))


def test_a_layout_that_is_too_small_is_refused_with_the_way_out():
    with pytest.raises(packing.DoesNotFit, match="batches.row_lengths"):
        packing.planned([np.arange(4)], np.full(4, 10), packing.Layout(((1, 16),), 4))


@pytest.mark.parametrize("sentences", [6, 99, 256])
@pytest.mark.parametrize("count", range(1, 17))
def test_whoever_follows_the_errors_trains_on_any_number_of_devices(count, sentences):
    def choose(sentences, replicas):
        shards = count // devices.replica_axis(replicas, count)
        packing.choose_layout(np.full(300, 5), [np.arange(300)], sentences, (16,), shards)

    replicas = 1
    try:
        choose(sentences, replicas)
    except ValueError as error:
        if times := re.search(r"train (\d+) times as many replicas", str(error)):
            replicas = int(times[1])
    try:
        choose(sentences, replicas)
    except ValueError as error:
        advised = re.search(rf"batches.sentences={sentences} .* choose (\d+) or (\d+)", str(error))
        for each in advised.groups():
            choose(int(each), replicas)


def test_attend_padding_keeps_one_sentence_a_row_and_owns_its_padding(lengths):
    layout = packing.choose_layout(
        lengths, [np.arange(len(lengths))], 64, (48,), attend_padding=True
    )
    plan = packing.planned([np.arange(len(lengths))], lengths, layout)
    for step in range(len(plan)):
        held = plan.sentence[step][plan.sentence[step] >= 0]
        _, counts = np.unique(plan.owner[step][plan.owner[step] >= 0], return_counts=True)
        assert (counts == lengths[held].max()).all()


def test_many_small_groups_are_packed_as_one_at_a_time():
    random = np.random.default_rng(0)
    lengths_GxN = random.integers(1, 33, (50, 12)) * (random.random((50, 12)) < 0.8)
    row_GxN, begin_GxN = packing.pack(lengths_GxN, 32)
    for lengths, rows, begins in zip(lengths_GxN, row_GxN, begin_GxN, strict=True):
        there = lengths > 0
        alone = packing._place(lengths[there], np.full(12, 32))
        np.testing.assert_array_equal(rows[there], alone)
        assert (rows[~there] == -1).all() and (begins[~there] == 0).all()
        owned = np.zeros((12, 32), int)
        for row, begin, length in zip(rows[there], begins[there], lengths[there], strict=True):
            owned[row, begin : begin + length] += 1
        assert owned.max() == 1
