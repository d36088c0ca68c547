"""training: one update, many updates, devices, replicas, resuming, divergence."""

import contextlib
import dataclasses
import functools
import json
from unittest import mock

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import replicas_run

from xling_jax import devices
from xling_jax.batches import packing, setting
from xling_jax.batches.corruption import PieceRange
from xling_jax.batches.packing import Sampler
from xling_jax.batches.store import TokenStore
from xling_jax.models import partition
from xling_jax.models.bert import BertConfig
from xling_jax.records import UNKNOWN, Identity
from xling_jax.training import loop, optimizer, sharding, step
from xling_jax.training.checkpoints import Checkpoints, read
from xling_jax.training.input_pipeline import SentencePipeline
from xling_jax.training.metrics import MetricsFile
from xling_jax.training.optimizer import OptimizerConfig, adam, is_decayed
from xling_jax.training.step import RUNNING, Program, State, train_steps
from xling_jax.vocabulary import neighbours

LANGUAGES = ("en", "fake")
SHIFT = 30
MODEL = BertConfig(
    vocabulary_size=2 * SHIFT, layers=1, hidden=16, intermediate=32, heads=2, positions=256
)
OPTIMIZER = OptimizerConfig(total_steps=305, warmup_steps=5)


@functools.lru_cache
def text():
    """Sentences that count upwards, so that a masked piece can be told from its neighbours."""
    random = np.random.default_rng(0)
    ids = [5 + (random.integers(25) + np.arange(random.integers(3, 14))) % 25 for _ in range(120)]
    return TokenStore.from_languages([ids, [sentence + SHIFT for sentence in ids]], 128)


@dataclasses.dataclass(frozen=True)
class Sampled(loop.Replica):
    """A replica with the order of its sentences."""

    sampler: Sampler


def replica(description="original", seed=0, shards=1, learning_rate=1e-2):
    store = text()
    layout = packing.choose_layout(store.lengths, [np.arange(len(store))], 48, (24,), shards=shards)
    modifications = setting.parse(description, LANGUAGES)
    return Sampled(
        row=description,
        description=description,
        seed=seed,
        setting=setting.make(
            modifications,
            LANGUAGES,
            seed=seed,
            learning_rate=learning_rate,
            max_length=128,
            shift=SHIFT,
            neighbours=neighbours.nothing(2 * SHIFT),
        ),
        sampler=Sampler(store.lengths, 2, layout, seed, modifications.is_parallel),
    )


def program(replicas, **changes):
    layout = replicas[0].sampler.layout
    fields = {
        "model": MODEL,
        "optimizer": OPTIMIZER,
        "pieces": PieceRange(2, SHIFT),
        "rows": layout.shard_rows,
    }
    return Program(**{**fields, **changes})


@functools.lru_cache
def train(descriptions, mesh, steps=12, seeds=(0,), model=MODEL, shards=1, **changes):
    """Trains replicas on a mesh; returns the state and the metrics of every step."""
    replicas = [
        replica(d, s, mesh.shape[devices.DATA]) for d, s in zip(descriptions, seeds, strict=True)
    ]
    one = program(replicas, model=model, shards=shards, **changes)
    states, settings = zip(*((one.initial_state(r.seed), r.setting) for r in replicas), strict=True)
    epoch = replicas[0].sampler.steps_per_epoch

    def plan(start, _):
        """The whole epoch, so that one compilation serves its last updates too."""
        plans = [vars(r.sampler.plan(start // epoch)).values() for r in replicas]
        return [np.stack(fields) for fields in zip(*plans, strict=True)]

    found, metrics = replicas_run.run(one, mesh, states, settings, text(), plan, steps, epoch)
    return found[-1], metrics


def mesh_of(replicas, data):
    return devices.make_mesh(replicas, jax.devices()[: replicas * data])


def test_the_loss_falls():
    _, metrics = train(("original",), mesh_of(1, 1), steps=300)
    assert metrics.loss[0, 0] == pytest.approx(np.log(2 * SHIFT), rel=0.05)
    assert metrics.loss[0, -3:].mean() < np.log(SHIFT)


@pytest.mark.parametrize(("data", "shards"), [(2, 1), (8, 8)])
def test_several_devices_compute_the_run_of_one(data, shards):
    state, metrics = train(("original",), mesh_of(1, 1), steps=20)
    other_state, other = train(("original",), mesh_of(1, data), steps=20, shards=shards)
    np.testing.assert_allclose(other.loss, metrics.loss, rtol=1e-5)
    np.testing.assert_allclose(other.gradient_norm, metrics.gradient_norm, rtol=1e-5)
    np.testing.assert_array_equal(other.tokens, metrics.tokens)
    for a, b in zip(
        jax.tree.leaves(other_state.params), jax.tree.leaves(state.params), strict=True
    ):
        np.testing.assert_allclose(a, b, atol=1e-4)


ROWS = ("original", "lang-pos;shift-special", "inv-order", "no-parallel", "no-random")


def test_replicas_may_each_be_divided_among_their_devices():
    states, metrics = train(ROWS[:2], mesh_of(2, 4), seeds=(0, 1), shards=4)
    for number, (row, seed) in enumerate(zip(ROWS[:2], (0, 1), strict=True)):
        state, alone = train((row,), mesh_of(1, 1), seeds=(seed,))
        np.testing.assert_allclose(metrics.loss[number], alone.loss[0], rtol=2e-5)
        for a, b in zip(*map(jax.tree.leaves, (states.params, state.params)), strict=True):
            np.testing.assert_allclose(a[number], b[0], atol=1e-4)


@pytest.mark.parametrize("mesh", [(1, 1), (5, 1)], ids=["one device", "a device each"])
def test_replicas_of_different_rows_train_as_each_does_alone(mesh):
    seeds = (0, 1, 2, 3, 4)
    devices_used = mesh[0]
    together = devices.make_mesh(5, jax.devices()[:devices_used])
    _, metrics = train(ROWS, together, seeds=seeds)
    for number, (row, seed) in enumerate(zip(ROWS, seeds, strict=True)):
        _, alone = train((row,), mesh_of(1, 1), seeds=(seed,))
        np.testing.assert_allclose(metrics.loss[number], alone.loss[0], rtol=2e-5)


def test_the_same_seed_gives_the_same_bits_and_another_seed_does_not():
    first = train(("original",), mesh_of(1, 2))[1].loss
    train.cache_clear()
    again = train(("original",), mesh_of(1, 2))[1].loss
    other = train(("original",), mesh_of(1, 2), seeds=(1,))[1].loss
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_a_step_masks_at_its_programs_rate():
    usual, more = (
        train(("original",), mesh_of(1, 1), masking_rate=rate)[1].loss for rate in (0.15, 0.4)
    )
    np.testing.assert_array_equal(usual, train(("original",), mesh_of(1, 1))[1].loss)
    assert (usual != more).all()


@pytest.mark.parametrize("dtype", ["bfloat16", "bfloat16_products"])
def test_bfloat16_follows_float32(dtype):
    _, single = train(("original",), mesh_of(1, 1))
    _, half = train(("original",), mesh_of(1, 1), model=dataclasses.replace(MODEL, dtype=dtype))
    np.testing.assert_allclose(half.loss, single.loss, rtol=0.02)
    assert (half.loss != single.loss).any()


def test_a_diverged_replica_is_frozen_and_takes_no_other_along():
    replicas = [replica(seed=0), replica(seed=1)]
    mesh = mesh_of(2, 1)
    one = program(replicas)
    stacked = loop.stack([one.initial_state(r.seed) for r in replicas])
    bias = stacked.params["shared"]["mlm"]["bias"]
    bias[0, 0] = np.nan
    state = devices.place(stacked, mesh, devices.A_REPLICA)
    settings = devices.place(loop.stack([r.setting for r in replicas]), mesh, devices.A_REPLICA)
    plans = [r.sampler.plan(0) for r in replicas]
    state, metrics = train_steps(one, mesh)(
        state,
        settings,
        text(),
        jnp.int32(3),
        *(np.stack([getattr(p, n) for p in plans]) for n in ("sentence", "start", "owner")),
    )
    assert state.stopped_at.tolist() == [0, -1]
    for new, old in zip(
        jax.tree.leaves(state.params), jax.tree.leaves(stacked.params), strict=True
    ):
        np.testing.assert_array_equal(new[0], old[0])
    assert np.isfinite(np.asarray(metrics.loss)[1, :3]).all()


def test_weight_decay_spares_biases_and_layer_norms_only():
    params = program([replica()]).initial_state(0).params
    spared = {
        path[-1].key
        for path, _ in jax.tree_util.tree_leaves_with_path(params)
        if not is_decayed(path)
    }
    decayed = {
        path[-1].key for path, _ in jax.tree_util.tree_leaves_with_path(params) if is_decayed(path)
    }
    assert spared == {"bias", "scale"}
    assert decayed == {"kernel", "tokens", "positions", "token_types"}
    zero = jax.tree.map(jnp.zeros_like, params)
    update, _ = adam(OPTIMIZER).update(zero, adam(OPTIMIZER).init(params), params)
    tokens = partition.select(update)["embeddings"]["tokens"]
    expected = 0.01 * partition.select(params)["embeddings"]["tokens"]
    np.testing.assert_allclose(tokens, expected, rtol=1e-6)


def by_optax(gradients, params):
    """The update by the last of some gradients, clipped by the norm of the whole tree."""
    reference = optax.chain(
        optax.clip_by_global_norm(OPTIMIZER.clip),
        optax.scale_by_adam(OPTIMIZER.beta1, OPTIMIZER.beta2, OPTIMIZER.epsilon),
    )
    state = reference.init(params)
    for gradient in gradients:
        update, state = reference.update(gradient, state)
    decay = jax.tree.map_with_path(lambda path, _: 0.01 * (path[-1].key == "kernel"), params)
    return jax.tree.map(lambda change, p, d: change + d * p, update, params, decay)


def test_long_gradients_are_shortened_to_the_norm_of_each_languages_model():
    random, own = np.random.default_rng(0), partition.LANGUAGE

    def drawn(scale, *leading):
        shapes = {"kernel": (*leading, 3, 4), "bias": (*leading, 4)}
        return {name: jnp.float32(scale * random.normal(size=x)) for name, x in shapes.items()}

    def model(tree, k):  # what is shared and a language's part
        return {**tree, own: jax.tree.map(lambda x: x[k], tree[own])}

    # Of a gradient alone, or of several equally long, Adam takes the direction only.
    params, *gradients = [{partition.SHARED: drawn(x), own: drawn(x, 2)} for x in (1.0, 100.0, 0.1)]
    dims = jax.tree.map(lambda _: sharding.WHOLE, params)
    moments, parts = adam(OPTIMIZER).init(params), optimizer.partitioned_moments(OPTIMIZER, params)
    for gradient in gradients:
        state = State.begin(params, moments)
        whole, moments, _ = step.direction(OPTIMIZER, state, gradient, dims, None)
        lengths = optimizer.norms(gradient, dims, None)
        present_K = jnp.ones(2, bool)
        parted, parts = optimizer.partitioned_update(
            OPTIMIZER, gradient, parts, params, present_K, *lengths
        )
    expected = by_optax(gradients, params)
    close = functools.partial(chex.assert_trees_all_close, rtol=1e-5)
    close(whole, expected)
    close(parted[partition.SHARED], expected[partition.SHARED])
    for k in range(2):
        alone = by_optax([model(gradient, k) for gradient in gradients], model(params, k))
        close(model(parted, k)[own], alone[own])


@pytest.mark.parametrize(
    ("decay", "expected"),
    [
        ("linear", [0, 0.2, 1, 0.4, 0]),
        ("inverse_sqrt", [0, 0.2, 1, (5 / 185) ** 0.5, (5 / 305) ** 0.5]),
        ("constant", [0, 0.2, 1, 1, 1]),
    ],
)
def test_the_learning_rate_rises_from_zero_and_then_decays(decay, expected):
    chosen = dataclasses.replace(OPTIMIZER, decay=decay)
    shares = [float(chosen.schedule(step)) for step in (0, 1, 5, 185, 305)]
    np.testing.assert_allclose(shares, expected, rtol=1e-6)


def test_replicas_that_share_a_sampler_share_its_plan():
    samplers = [replica(seed=seed, shards=1).sampler for seed in (0, 1)]
    counted = [mock.Mock(wraps=sampler) for sampler in samplers]
    for sampler, count in zip(samplers, counted, strict=True):
        count.layout, count.steps_per_epoch = sampler.layout, sampler.steps_per_epoch
        count.lengths = sampler.lengths
    epoch = samplers[0].steps_per_epoch
    pipeline = SentencePipeline([counted[0], counted[0], counted[1]], 2 * epoch)
    both, again, other = pipeline.steps(0, 3)[0]
    parts = [pipeline.steps(start, start + 1) for start in range(epoch, 2 * epoch)]
    pipeline.close()
    np.testing.assert_array_equal(both, again)
    assert not np.array_equal(both, other)
    for field, name in enumerate(("sentence", "start", "owner")):
        steps = np.concatenate([part[field][2] for part in parts])
        np.testing.assert_array_equal(steps, getattr(samplers[1].plan(1), name))
    for each in counted:  # an epoch after the last is not assigned
        assert each.assign.call_args_list == [mock.call(0), mock.call(1)]


class Stop(Exception):
    """Ends a run as a kill would, after some evaluations."""


def run_loop(folder, stop_after=None, replicas=None, save_every=4, **more):
    """Trains with the loop; returns the final state and the metrics file's lines."""
    replicas = replicas or [replica(seed=s, shards=1) for s in (0, 1)]
    mesh = mesh_of(2, 1)
    evaluated = []

    def evaluate(step, state, settings):
        evaluated.append(step)
        found = [{"step": float(step)} for _ in replicas]
        if stop_after is not None and step >= stop_after:
            raise Stop
        return found

    checkpoints = Checkpoints(folder / "checkpoints")
    metrics = MetricsFile(folder / "metrics.jsonl")
    pipeline = SentencePipeline([r.sampler for r in replicas], 15)
    schedule = loop.Schedule(
        total=15, epoch=5, evaluations=(6, 11, 15), save_every=save_every, call=3
    )
    parts = program(replicas), mesh, replicas, text(), pipeline, schedule, checkpoints, metrics
    training = loop.Training(*parts, evaluate, **more)
    try:
        state = training.run()
    finally:
        checkpoints.close()
    return jax.device_get(state), (folder / "metrics.jsonl").read_text(), evaluated


def test_a_run_resumed_twice_ends_with_the_bits_of_an_undisturbed_one(tmp_path):
    (tmp_path / "whole").mkdir()
    whole, _, evaluated = run_loop(tmp_path / "whole")
    assert evaluated == [6, 11, 15]
    broken = tmp_path / "broken"
    broken.mkdir()
    for stop_after in (6, 11):
        with pytest.raises(Stop):
            run_loop(broken, stop_after)
    resumed, lines, _ = run_loop(broken)
    for a, b in zip(jax.tree.leaves(resumed), jax.tree.leaves(whole), strict=True):
        np.testing.assert_array_equal(a, b)

    def without_speed(text):
        return [line.split(', "tokens_per_second"')[0] for line in text.splitlines()]

    whole_lines = (tmp_path / "whole" / "metrics.jsonl").read_text()
    assert sorted(without_speed(lines)) == sorted(without_speed(whole_lines))
    of_calls = [x for x in map(json.loads, whole_lines.splitlines()) if x["kind"] == "train"]
    assert len({line["loss"] for line in of_calls}) == len(of_calls) > 10  # two seeds
    for line in of_calls:
        rate = 1e-2 * OPTIMIZER.schedule(line["step"] - 1)
        assert line["learning_rate"] == pytest.approx(float(rate), rel=1e-5)


def test_a_step_that_needs_more_than_there_is_is_announced(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(devices, "memory_limit", lambda: 2**20)
    run_loop(tmp_path)
    (line,) = (x for x in capsys.readouterr().err.splitlines() if "may run out of memory" in x)
    assert "and 1 are there" in line and "models.remat=True" in line


def test_a_trace_of_one_call_is_written_on_request(tmp_path, capsys):
    run_loop(tmp_path, profile=tmp_path / "profile")
    (trace,) = tmp_path.glob("profile/plugins/profile/*/*.xplane.pb")
    assert trace.stat().st_size > 1000
    assert capsys.readouterr().err.count("a trace of this call is in") == 1


def test_a_torn_checkpoint_is_refused_naming_it_and_the_way_out(tmp_path):
    run_loop(tmp_path)
    latest = tmp_path / "checkpoints" / "15"
    for file in latest.rglob("*"):
        if file.is_file() and "/d/" in str(file):
            file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(ValueError, match=r"checkpoints/15 cannot be read .* resume from step"):
        run_loop(tmp_path)


@pytest.fixture
def saved(tmp_path):
    """Two checkpoints of a small state, and how to open them."""
    state = State(jnp.int32([3]), {"w": jnp.arange(600.0)[None]}, {}, jnp.int32([RUNNING]))
    state = jax.tree.map(lambda x: jax.device_put(x, jax.devices()[0]), state)

    def opened(identity=UNKNOWN, replicas=(("0", 0),)):
        return contextlib.closing(Checkpoints(tmp_path, 2, identity, replicas))

    with opened(Identity("e", "a")) as checkpoints:
        for step in (2, 3):
            checkpoints.save(step, state)
    return tmp_path, state, opened


def test_a_checkpoint_that_orbax_left_in_parts_is_not_kept(saved, tmp_path):
    """It looks for the parts of the processes by a pattern, which does not escape the path."""
    _, state, _ = saved
    with pytest.raises(ValueError, match=r"x\[1\].*: Orbax did not write manifest.ocdbt"):  # noqa: SIM117
        with contextlib.closing(Checkpoints(tmp_path / "x[1]")) as checkpoints:
            checkpoints.save(1, state)


def test_a_checkpoint_with_a_flipped_bit_is_refused_wherever_it_is(saved):
    folder, state, opened = saved
    random = np.random.default_rng(0)
    files = [path for path in (folder / "3" / "default").rglob("*") if path.is_file()]
    for path in [*files, folder / "3" / "record.json"]:
        whole = path.read_bytes()
        place, bit = random.integers(len(whole)), random.integers(8)
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << bit]) + whole[place + 1 :])
        with opened() as checkpoints, pytest.raises(ValueError, match="3 cannot .* from step 2"):
            checkpoints.restore(state)
        with pytest.raises(ValueError, match="3 cannot be read .* damaged"):
            read(folder, 3)
        path.write_bytes(whole)
    with opened() as checkpoints:
        np.testing.assert_array_equal(checkpoints.restore(state).params["w"], state.params["w"])


def test_a_checkpoint_of_another_experiment_or_of_other_replicas_is_refused(saved):
    folder, state, opened = saved
    with opened(Identity("e", "b", ("a",))) as checkpoints:  # the table has grown
        assert checkpoints.restore(state).step == 3
    with (
        opened(Identity("e", "b")) as checkpoints,
        pytest.raises(ValueError, match="3 is of another experiment"),
    ):
        checkpoints.restore(state)
    with (
        opened(replicas=[("0", 1)]) as checkpoints,
        pytest.raises(ValueError, match="3 is of other replicas"),
    ):
        checkpoints.restore(state)
    (folder / "3" / "record.json").unlink()  # of an older version
    with opened() as checkpoints:
        assert checkpoints.restore(state).step == 3


def test_an_unfinished_checkpoint_of_a_killed_run_is_ignored(tmp_path):
    whole, _, _ = run_loop(tmp_path)
    unfinished = tmp_path / "checkpoints" / "99.orbax-checkpoint-tmp"
    unfinished.mkdir()
    (unfinished / "d").write_text("half")
    state, _, _ = run_loop(tmp_path)
    assert int(state.step[0]) == 15


def test_a_run_whose_replicas_all_diverge_stops_and_names_the_last_good_checkpoint(tmp_path):
    bad = [replica(seed=s, learning_rate=1e30) for s in (0, 1)]
    with pytest.raises(loop.Diverged, match=r"row original, seed 1 at step 2.*checkpoints/2"):
        run_loop(tmp_path, replicas=bad, save_every=1)
