"""Labelled examples: every word is there, every example is taken, whatever the shards."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from xling_jax.batches import labelled, tasks
from xling_jax.batches.labelled import Examples
from xling_jax.batches.tasks import TaskPlan, TaskSampler
from xling_jax.training.input_pipeline import TaskPipeline

FRAME = (2, 3)
LONGEST = 10


def words(seed, number):
    """Words of one to four pieces, each with ids of its own."""
    random = np.random.default_rng(seed)
    ends = np.cumsum(random.integers(1, 5, number))
    return [np.arange(a, b) + 10 for a, b in zip([0, *ends[:-1]], ends, strict=True)]


def examples(number=13):
    sentences = [words(seed, 1 + seed % 9) for seed in range(number)]
    encoded = [labelled.sentence(own, FRAME, LONGEST) for own in sentences]
    encoded = [dataclasses.replace(x, types=[row % 3 for row in x.rows]) for x in encoded]
    labels = [np.arange(len(own))[:, None].astype(np.int32) + 100 * n for n, own in
              enumerate(sentences)]  # fmt: skip
    return sentences, encoded, labels


def test_a_long_sentence_goes_on_in_further_rows_cut_between_words():
    own = words(0, 30)
    encoded = labelled.sentence(own, FRAME, LONGEST)
    assert len(encoded.rows) > 3 and encoded.cut == 0
    assert all(len(row) <= LONGEST for row in encoded.rows)
    assert all(row[0] == 2 and row[-1] == 3 for row in encoded.rows)
    inner = np.concatenate([row[1:-1] for row in encoded.rows])
    np.testing.assert_array_equal(inner, np.concatenate(own))
    for (row, place), word in zip(encoded.places, own, strict=True):
        np.testing.assert_array_equal(encoded.rows[row][place : place + len(word)], word)


def test_a_word_longer_than_a_row_keeps_its_beginning_and_is_counted():
    encoded = labelled.sentence([np.arange(4), np.arange(20), np.arange(2)], FRAME, LONGEST)
    assert encoded.cut == 12
    assert encoded.places == [(0, 1), (1, 1), (2, 1)]


def test_a_sentence_that_is_read_backwards_has_its_words_in_their_places():
    own = words(0, 30)
    reversed_words = [word[::-1] for word in own]
    encoded = labelled.sentence(reversed_words, FRAME, LONGEST, inverted=True)
    inner = np.concatenate([row[1:-1] for row in encoded.rows])
    np.testing.assert_array_equal(inner, np.concatenate(own)[::-1])
    for (row, place), word in zip(encoded.places, own, strict=True):
        here = encoded.rows[row][place - len(word) + 1 : place + 1]
        np.testing.assert_array_equal(here, word[::-1])  # the first piece stands last
    cut = labelled.sentence([np.arange(20)[::-1]], FRAME, LONGEST, inverted=True)
    assert cut.cut == 12 and cut.rows[0].tolist() == [2, *range(7, -1, -1), 3]


def test_a_pair_that_is_read_backwards_loses_the_same_pieces():
    first, second = np.arange(9) + 10, np.arange(9) + 50
    (row,) = labelled.pair(first[::-1], second[::-1], FRAME, LONGEST, False, inverted=True).rows
    assert row.tolist() == [2, 12, 11, 10, 3, 53, 52, 51, 50, 3]


@pytest.mark.parametrize(("sizes", "kept"), [((3, 3), (3, 3)), ((20, 2), (5, 2)), ((9, 9), (3, 4))])
def test_a_pair_loses_the_end_of_the_longer_sentence(sizes, kept):
    first, second = np.arange(sizes[0]) + 10, np.arange(sizes[1]) + 50
    encoded = labelled.pair(first, second, FRAME, LONGEST, has_types=True)
    (row,), (types,) = encoded.rows, encoded.types
    assert row.tolist() == [2, *first[: kept[0]], 3, *second[: kept[1]], 3]
    assert types.tolist() == [0] * (kept[0] + 2) + [1] * (kept[1] + 1)
    assert encoded.cut == sum(sizes) - sum(kept)
    plain = labelled.pair(first, second, FRAME, LONGEST, has_types=False)
    assert not plain.types[0].any()


@pytest.mark.parametrize("shards", [1, 2, 4])
def test_an_epoch_takes_every_example_once_with_all_its_rows(shards):
    sentences, encoded, labels = examples()
    all_of_them = Examples.of(encoded, labels)
    sampler = TaskSampler(all_of_them, batch=4, shards=shards, seed=0, epochs=2)
    assert sampler.steps_per_epoch == 4
    store = jax.tree.map(jnp.asarray, all_of_them)
    seen = []
    plan = sampler.plan(4, 8)
    for step, shard in np.ndindex(4, shards):
        one = TaskPlan(*(jnp.asarray(x[step, shard]) for x in vars(plan).values()))
        batch = tasks.gather(store, one)
        flat = np.asarray(batch.tokens)
        for place, number in enumerate(plan.example[step, shard]):
            is_word = np.asarray(batch.is_word)[place]
            if number < 0:
                assert not is_word.any()
                continue
            seen.append(number)
            first = flat[np.asarray(batch.words)[place]][is_word]
            assert first.tolist() == [word[0] for word in sentences[number]]
            found = np.asarray(batch.labels)[place][is_word]
            np.testing.assert_array_equal(found, labels[number])
            slot = np.flatnonzero(sampler.epoch(1)[step] == number)
            own = np.asarray(batch.slots) == slot
            own_rows = encoded[number].rows
            assert sorted(flat[own]) == sorted(np.concatenate(own_rows))
            segments = np.asarray(batch.segments)[own]
            assert len(set(segments)) == len(own_rows)
            for segment in dict.fromkeys(segments):
                here = own & (np.asarray(batch.segments) == segment)
                (row,) = (r for r in own_rows if r.tolist() == flat[here].tolist())
                assert np.asarray(batch.positions)[here].tolist() == list(range(len(row)))
                assert np.asarray(batch.types)[here].tolist() == (row % 3).tolist()
    assert sorted(seen) == list(range(len(sentences)))


def test_rows_of_a_step_share_packed_rows_without_touching():
    some = Examples.of(*examples(40)[1:])
    sampler = TaskSampler(some, batch=8, shards=2, seed=0, epochs=3)
    layout, places = sampler.layouts[-1], []
    assert layout.packed < layout.rows
    for epoch in range(3):
        plan = sampler.plan(epoch * sampler.steps_per_epoch, (epoch + 1) * sampler.steps_per_epoch)
        for own in np.ndindex(plan.row.shape):
            number = plan.row[own]
            if number < 0:
                continue
            start, size = plan.start[own], some.lengths[number]
            assert start % layout.length + size <= layout.length
            here = np.flatnonzero(plan.owner[own[:2]] == own[2])
            assert here.tolist() == list(range(start, start + size))
        places.append((plan.owner >= 0).mean())
    assert min(places) > 0.5


def test_shards_get_about_as_much():
    """Of a batch the longest example goes to one shard, the next to another."""
    some = Examples.of(*examples(64)[1:])
    sampler = TaskSampler(some, batch=32, shards=4, seed=0, epochs=1)
    plan = sampler.plan(0, 2)
    used = (plan.owner >= 0).sum(axis=2)
    assert (used.max(axis=1) - used.min(axis=1)).max() <= 2 * LONGEST
    one = TaskSampler(some, batch=32, shards=1, seed=0, epochs=1)
    assert 4 * sampler.layouts[-1].packed <= one.layouts[-1].packed + 4
    np.testing.assert_array_equal(np.sort(plan.example.reshape(2, -1)), np.sort(one.epoch(0)))


def test_epochs_have_orders_of_their_own_and_a_seed_repeats_them():
    sampler = TaskSampler(Examples.of(*examples()[1:]), batch=4, shards=1, seed=3, epochs=2)
    assert sampler.epoch(0).tolist() != sampler.epoch(1).tolist()
    again = TaskSampler(Examples.of(*examples()[1:]), batch=4, shards=1, seed=3, epochs=2)
    assert sampler.epoch(1).tolist() == again.epoch(1).tolist()


def test_epochs_of_so_many_examples_go_on_where_the_last_ended():
    sampler = TaskSampler(Examples.of(*examples()[1:]), 2, 1, seed=0, epochs=5, per_epoch=6)
    taken = np.concatenate([sampler.epoch(n).ravel() for n in range(5)])
    assert len(taken) == 30
    assert sorted(taken[:13]) == sorted(taken[13:26]) == list(range(13))


def test_buckets_are_of_examples_of_about_the_same_shape():
    def example(rows, length, words):
        return labelled.Encoded([np.zeros(length, np.int32)] * rows, [], [(0, 0)] * words)

    encoded = [example(*x) for x in [(1, 9, 1), (1, 33, 17), (3, 16, 40), (1, 16, 16), (4, 2, 64)]]
    found = labelled.buckets(encoded)
    assert found == [([0, 3], (1, 16, 16)), ([1], (1, 64, 32)), ([2, 4], (4, 16, 64))]


def test_examples_are_filled_up_to_a_shape():
    _, encoded, labels = examples(40)
    usual, filled = Examples.of(encoded, labels), Examples.of(encoded, labels, (200, 16, 16))
    rows, length = usual.tokens.shape
    assert rows > 40 and filled.tokens.shape == filled.types.shape == (200, 16)
    np.testing.assert_array_equal(filled.tokens[:rows, :length], usual.tokens)
    np.testing.assert_array_equal(filled.lengths[:rows], usual.lengths)
    assert not filled.tokens[rows:].any() and not filled.lengths[rows:].any()
    assert filled.places.shape == (40, 16)
    np.testing.assert_array_equal((filled.places >= 0).sum(1), [len(x.places) for x in encoded])


def test_a_batch_that_shards_cannot_share_is_refused():
    some = Examples.of(*examples()[1:])
    with pytest.raises(ValueError, match="6 examples cannot be divided among 4 devices: choose 8"):
        tasks.needed(np.arange(6)[None], some, shards=4)


def test_where_few_steps_have_long_examples_the_others_have_a_smaller_shape():
    def example(rows):
        places = [(row, 1) for row in range(rows)]
        return labelled.Encoded([np.arange(8)] * rows, [np.zeros(8, int)] * rows, places)

    encoded = [example(1)] * 99 + [example(20)]
    known = [np.zeros((len(each.places), 1), np.int32) for each in encoded]
    some = Examples.of(encoded, known)
    sampler = TaskSampler(some, batch=5, shards=1, seed=0, epochs=2)
    sizes = [(each.rows, each.packed, each.width) for each in sampler.layouts]
    assert sizes == [(5, 5, 1), (24, 24, 20)]
    large = [step for step in range(40) if 99 in sampler.epoch(step // 20)[step % 20]]
    shapes = [sampler.layout_of(step, step + 1) for step in range(40)]
    assert [step for step in range(40) if shapes[step] is sampler.layouts[1]] == large
    pipeline = TaskPipeline(sampler, 2)
    for step in (large[0], next(step for step in range(20) if step not in large)):
        fields = pipeline.steps(step, step + 1)
        sizes = [(2, 1, *shape) for shape in shapes[step].step_shapes()]
        assert [field.shape for field in fields] == sizes
    alike = TaskSampler(Examples.of(encoded[:99], known[:99]), 5, 1, seed=0, epochs=2)
    assert len(alike.layouts) == 1
