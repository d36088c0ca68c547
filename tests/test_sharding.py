"""Parameters and moments divided among devices: what is divided, and what that saves."""

import dataclasses
import os

import jax
import numpy as np
import pytest
from ml_collections import ConfigDict
from stream_run import SEP_EMB, program, sampler, store

from xling_jax import devices
from xling_jax.training import loop, sharding
from xling_jax.training.checkpoints import Checkpoints
from xling_jax.training.step import StepCompiler
from xling_jax.training.stream_step import StreamSetting


def wide(shards, data=8):
    """A program of which the parameters weigh more than the batch."""
    one = sampler(shards=data)
    built = program(one.layout, SEP_EMB, shards=shards)
    model = dataclasses.replace(built.model, hidden=128, intermediate=512, layers=4)
    return one, dataclasses.replace(built, model=model)


def test_the_largest_dimension_that_the_shards_divide_is_divided():
    def leaf(*shape):
        return jax.ShapeDtypeStruct(shape, np.float32)

    tree = {
        "shared": {"a": leaf(6, 12), "b": leaf(12, 12), "c": leaf(8), "d": leaf(9, 7)},
        "language": {"a": leaf(2, 6, 12), "b": leaf(4, 8), "c": leaf(4, 12, 3)},
    }
    assert sharding.dimensions(tree, 4) == {
        "shared": {"a": 1, "b": 0, "c": sharding.WHOLE, "d": sharding.WHOLE},
        "language": {"a": 2, "b": sharding.WHOLE, "c": 1},
    }
    assert set(jax.tree.leaves(sharding.dimensions(tree, 1))) == {sharding.WHOLE}


@pytest.mark.parametrize(
    ("replicas", "at_most", "shape"),
    [(4, 0, (4, 2)), (4, 2, (2, 4)), (4, 3, (2, 4)), (6, 0, (2, 4)), (6, 1, (1, 8))],
)
def test_the_replica_axis_is_chosen_and_can_be_limited(replicas, at_most, shape):
    mesh = devices.make_mesh(replicas, jax.devices()[:8], at_most)
    assert tuple(mesh.shape.values()) == shape


@pytest.mark.parametrize(("cores", "count"), [(1, 1), (3, 2), (7, 4), (8, 8), (96, 8)])
def test_a_cpu_has_a_power_of_two_of_devices(monkeypatch, cores, count):
    chosen = {}
    monkeypatch.setattr(jax.config, "update", chosen.__setitem__)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)), raising=False)
    devices.set_cpu_devices(0)
    assert chosen == {"jax_num_cpu_devices": count}


@pytest.mark.parametrize("error", [AssertionError, NotImplementedError])
def test_devices_that_have_no_layout_are_taken_in_their_order(monkeypatch, error):
    """As some chips of a TPU pod, and some shapes of whole ones."""

    def no_layout(*_, **__):
        raise error

    monkeypatch.setattr(devices, "create_device_mesh", no_layout)
    mesh = devices.make_mesh(2, jax.devices()[:6])
    assert mesh.devices.tolist() == [jax.devices()[:3], jax.devices()[3:6]]


def test_what_cannot_be_divided_is_refused_with_the_way_out():
    section = ConfigDict({"shard_parameters": True})
    with pytest.raises(ValueError, match=r"each of the 4 devices has other.*at_most=1"):
        sharding.shards_of(section, devices.make_mesh(4, jax.devices()[:4]))
    assert sharding.shards_of(section, devices.make_mesh(4, jax.devices()[:1])) == 1
    with pytest.raises(ValueError, match="7 devices divide no dimension of this model"):
        sharding.state_specs(wide(7, data=1)[1])


def test_a_device_keeps_its_part_of_parameters_and_moments():
    mesh = devices.make_mesh(1, jax.devices()[:8])
    sizes = []
    for shards in (1, 8):
        _, one = wide(shards)
        state = devices.place(loop.stack([one.initial_state(0)]), mesh, sharding.state_specs(one))
        sizes.append(sharding.bytes_of(state))
    assert sizes[1] < 0.15 * sizes[0]


@pytest.mark.slow
def test_a_compiled_step_needs_less_memory():
    mesh = devices.make_mesh(1, jax.devices()[:8])
    needed = []
    for shards in (1, 8):
        one, built = wide(shards)
        compiler, setting = StepCompiler(store()), StreamSetting.of(0, 1e-3)
        needed.append(compiler(built, mesh, one.layout, 2, 1, setting).bytes_needed)
    assert needed[1] < 0.6 * needed[0]


@pytest.mark.parametrize(("written", "read"), [(8, 1), (1, 8)])
def test_a_checkpoint_is_read_whether_it_was_divided_or_not(tmp_path, written, read):
    mesh = devices.make_mesh(1, jax.devices()[:8])

    def placed(shards, seed):
        _, one = wide(shards)
        states = loop.stack([one.initial_state(seed)])
        return devices.place(states, mesh, sharding.state_specs(one))

    checkpoints = Checkpoints(tmp_path)
    saved, like = placed(written, 0), placed(read, 1)
    checkpoints.save(3, saved)
    checkpoints.wait()
    found = checkpoints.restore(like)
    checkpoints.close()
    for a, b, c in zip(*map(jax.tree.leaves, (found, saved, like)), strict=True):
        np.testing.assert_array_equal(a, b)
        assert a.sharding == c.sharding
