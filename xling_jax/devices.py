"""The mesh of devices, and functions of one replica that are spread over it."""

import contextlib
import functools
import math
import os
import platform
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.experimental.mesh_utils import create_device_mesh
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from xling_jax import processes
from xling_jax.errors import OUT_OF_MEMORY

TUNABLES = "GLIBC_TUNABLES"
BLAS_THREADS = "OPENBLAS_NUM_THREADS"
CPU_SHARE = 0.7  # the share of the machine's memory that programs may use
# The files of control groups, versions 1 and 2.
CONTAINER_LIMITS = "/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory.max"
ACCELERATOR_SHARE = 0.9  # of an accelerator's memory; evaluators and libraries need the rest
REPLICA, DATA = "replica", "data"
SHARED = P()  # the same everywhere
A_REPLICA = P(REPLICA)  # leading axis: replicas
A_SHARD = P(None, DATA)  # second axis: shards of the batch
A_REPLICA_AND_SHARD = P(REPLICA, None, DATA)  # replicas, steps, shards


def a_replica_and_part(dimension: int | None) -> P:
    """Leading axis: replicas. Of the other axes, number `dimension` is divided like the batch, or
    none for None."""
    return A_REPLICA if dimension is None else P(REPLICA, *[None] * dimension, DATA)


def set_cpu_devices(count: int) -> None:
    """Splits the CPU into `count` devices, before any computation. 0: the largest power of two that
    is not above the number of cores, and at most 8.

    With one device a core, replicas or parts of a batch run side by side: XLA spreads the small
    operations of one device badly over several cores.
    """
    if not count:
        affinity = getattr(os, "sched_getaffinity", None)  # Linux only
        cores = len(affinity(0)) if affinity else os.cpu_count() or 1
        count = min(8, 2 ** (cores.bit_length() - 1))
    jax.config.update("jax_num_cpu_devices", count)


def compiler_options(mesh: Mesh) -> dict[str, Any] | None:
    """XLA's options for a program on this mesh. On CPUs that have vectors of 512 bits these are
    used, which halves the time of GELU: LLVM by itself keeps to 256 bits, because some older
    processors slow down."""
    is_cpu = mesh.devices.flat[0].platform == "cpu"
    return {"xla_cpu_prefer_vector_width": 512} if is_cpu else None


def suit_libraries(arguments: Sequence[str]) -> None:
    """Sets variables that libraries read from the environment, unless they are set.

    OpenBLAS, with which XLA factorises matrices on CPUs if scipy brings it, gets one thread: more
    threads would spin for a while after every call, on the cores that XLA computes on. On Linux the
    program also starts again, with an allocator that uses huge pages: on CPUs, XLA frees and takes
    hundreds of MiB in every call, which costs page faults, and glibc reads its tunables only when a
    process starts.
    """
    os.environ.setdefault(BLAS_THREADS, "1")
    if sys.platform == "linux" and TUNABLES not in os.environ:
        os.environ[TUNABLES] = "glibc.malloc.hugetlb=1"
        os.execv(sys.executable, [sys.executable, "-m", "xling_jax.main", *arguments[1:]])


def side_by_side(replicas: int, at_most: int) -> int:
    """How many of the replicas to train side by side, if `at_most` fit in memory.

    On CPUs the number divides that of devices, so that no device has two: this is as fast as one
    replica after the other for large steps, and faster for small ones (`benchmarks/README.md`). On
    accelerators, where a small model leaves most of a device idle, as many are trained together as
    fit; if those are not all, in groups of nearly equal size, multiples of the number of devices.
    """
    limit, count = min(replicas, at_most), jax.device_count()
    if jax.default_backend() == "cpu":
        return next(n for n in range(min(limit, count), 0, -1) if count % n == 0)
    if replicas <= limit:
        return replicas
    if limit < count:
        return limit
    even = math.ceil(replicas / math.ceil(replicas / (limit - limit % count)))
    return even + -even % count


def memory_limit() -> int | None:
    """Bytes that a program may use on each device; None if that is not known.

    An accelerator says what its allocator may take. CPU devices share the machine's memory, or the
    part of it that a container has, with the run's other processes on the same host. The lowest
    limit of all processes counts, so all of them must call this.
    """
    hosts = processes.of_all(zlib.crc32(platform.node().encode()) % 2**20)
    limits = processes.of_all(_own_memory_limit())
    if jax.default_backend() == "cpu":
        limits = [each / hosts.count(host) for each, host in zip(limits, hosts, strict=True)]
    least = min(limits)
    return int(least) if math.isfinite(least) else None


def _own_memory_limit() -> float:
    """Bytes on each device, as far as this process knows; infinity if it does not."""
    device = jax.local_devices()[0]
    if device.platform != "cpu":
        limit = (device.memory_stats() or {}).get("bytes_limit")
        return limit * ACCELERATOR_SHARE if limit else math.inf
    limits = []
    for path in CONTAINER_LIMITS:
        with contextlib.suppress(OSError, ValueError):  # not there, or "max"
            limits.append(int(Path(path).read_text()))
    with contextlib.suppress(AttributeError, ValueError):  # a system that does not tell
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return min(limits) * CPU_SHARE / jax.local_device_count() if limits else math.inf


def less_memory(smaller: str, section: str = "") -> str:
    """Advice for when memory does not suffice. `smaller` says by which fields a step gets smaller;
    `section` is put before the name of the section `models`."""
    return (
        f"Set {section}models.remat=True, or devices.shard_parameters=True where several devices "
        f"share a batch (all do with devices.replica_axis_at_most=1), {smaller}, or take more "
        "devices"
    )


@contextlib.contextmanager
def memory_explained(replicas: int, advice: str) -> Iterator[None]:
    """Turns XLA's error for a lack of memory into a ValueError with a way out."""
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        if OUT_OF_MEMORY not in str(error):
            raise
        raise ValueError(
            f"{replicas} replicas side by side need more memory than there is. Give a lower "
            "--config.devices.side_by_side: in the same workdir, what has no checkpoint yet then "
            f"trains in smaller groups. {advice}"
        ) from error


def replica_axis(replicas: int, count: int, at_most: int = 0) -> int:
    """The length of a mesh's replica axis: the largest common divisor of the numbers of replicas
    and devices that is not above `at_most` (`devices.replica_axis_at_most`; 0: no limit)."""
    common = math.gcd(replicas, count)
    return max(n for n in range(1, common + 1) if common % n == 0 and n <= (at_most or common))


def make_mesh(replicas: int, devices: Sequence[jax.Device] | None = None, at_most: int = 0) -> Mesh:
    """A mesh ("replica", "data") over all devices, or the given ones; see `replica_axis`.

    On TPUs JAX puts what is near in the mesh on chips that are near each other, where it can. Some
    chips of a pod, and chips for some shapes, are taken as they come.
    """
    devices = list(jax.devices() if devices is None else devices)
    groups = replica_axis(replicas, len(devices), at_most)
    shape = groups, len(devices) // groups
    try:
        placed = create_device_mesh(shape, devices, allow_split_physical_axes=True)
    except (AssertionError, NotImplementedError):
        placed = np.array(devices).reshape(shape)
    return Mesh(placed, (REPLICA, DATA), axis_types=(AxisType.Auto, AxisType.Auto))


def own_shards(mesh: Mesh) -> frozenset[int]:
    """The numbers of the shards of a batch that lie on this process's devices."""
    here = [
        shard
        for (_, shard), device in np.ndenumerate(mesh.devices)
        if device.process_index == jax.process_index()
    ]
    return frozenset(here)


def shares(number: int, mesh: Mesh) -> str:
    """How a replica's batch of `number` sequences or sentences is divided, in words."""

    def share(devices: int) -> str:
        each = number * devices / mesh.shape[DATA]
        return f"{each:,.0f}" if each == round(each) else f"about {each:,.1f}"

    process = f"{share(len(own_shards(mesh)))} in each process, " if jax.process_count() > 1 else ""
    return f"{process}{share(1)} on each device"


def abstract(tree, mesh: Mesh, spec, leading: Sequence[int] = ()):
    """The shapes of a tree of arrays that lie on a mesh (see `place`), with the axes `leading` put
    in front."""

    def shape(x, spec: P):
        sharding = NamedSharding(mesh, spec)
        return jax.ShapeDtypeStruct((*leading, *x.shape), x.dtype, sharding=sharding)

    return _for_each(shape, tree, spec)


def _for_each(function: Callable, tree, spec):
    """Applies a function to each leaf and its spec."""
    if isinstance(spec, P):
        return jax.tree.map(lambda x: function(x, spec), tree)
    return jax.tree.map(function, tree, spec)


def place(tree, mesh: Mesh, spec):
    """Puts a tree of arrays on the mesh; `spec` is that of all leaves, or a tree with one for each.
    All processes give the same values; those in others' shards (see `own_shards`) are not read."""

    def placed(x, spec: P):
        sharding = NamedSharding(mesh, spec)
        if sharding.is_fully_addressable:
            return jax.device_put(x, sharding)
        x = np.asarray(x)
        return jax.make_array_from_callback(x.shape, sharding, lambda index: x[index])

    return _for_each(placed, tree, spec)


def fetch(tree):
    """A tree of arrays as numpy arrays, complete in every process; all processes must call this."""

    def near(x):
        if not isinstance(x, jax.Array) or x.is_fully_addressable or x.is_fully_replicated:
            return x
        from jax.experimental import multihost_utils

        return multihost_utils.process_allgather(x, tiled=True)

    with processes.together():
        return jax.device_get(jax.tree.map(near, tree))


def per_replica(
    function: Callable, mesh: Mesh, inputs: Sequence[Any], outputs: Any, one_by_one: bool = False
) -> Callable:
    """Spreads a function of one replica and one shard of the batch over the mesh.

    Args:
      function: takes arguments without the replica axis; sharded ones keep their shard axis, of
        size 1. It may use collectives over `DATA`.
      inputs, outputs: how each argument, and the results, lie on the mesh: a spec, or a tree of
        specs. Of an argument's specs all or none must begin with the replica axis.
      one_by_one: whether a device computes its replicas one after the other, to save memory.

    Returns:
      A function of global arrays. If a device holds one replica, its axis is dropped, since `vmap`
      over a single one costs a quarter of the speed on CPUs; several replicas are vectorised.
    """
    replicated = []
    for specs in inputs:
        found = {bool(spec) and spec[0] == REPLICA for spec in jax.tree.leaves(specs)}
        if len(found) > 1:
            raise ValueError("of a tree of specs all or none must begin with the replica axis")
        replicated.append(found == {True})

    @functools.wraps(function)  # for the compiled program to have its name
    def local(*args):
        own = [a for a, is_own in zip(args, replicated, strict=True) if is_own]

        def one(own):
            given = iter(own)
            pairs = zip(args, replicated, strict=True)
            return function(*(next(given) if is_own else a for a, is_own in pairs))

        if jax.tree.leaves(own)[0].shape[0] == 1:
            result = one(jax.tree.map(lambda x: x[0], own))
            return jax.tree.map(lambda x: x[None], result)
        return jax.lax.map(one, own) if one_by_one else jax.vmap(one)(own)

    return jax.shard_map(
        local, mesh=mesh, in_specs=tuple(inputs), out_specs=outputs, check_vma=False
    )
