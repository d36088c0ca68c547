"""Parameters and moments divided among the devices that share a batch.

Each device keeps a part of every large leaf, with its moments. A step gathers the parameters, and
sums each part's gradient where the part is (ZeRO, Rajbhandari et al. 2020; also called FSDP). So
between steps a device has 12 bytes a parameter, parameters and moments, over the number of devices;
within a step it has 4 bytes a parameter more for the gathered ones. Parameters of single languages
are gathered for all languages at once, and their gradients, whole too, take as much again. What a
device sends and receives is what summing whole gradients would take: once a microbatch, and once a
step for parameters of single languages. Each of the replicas that share devices needs all of that.
"""

import functools
from collections.abc import Hashable
from typing import Any, ClassVar, Protocol

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from xling_jax import devices
from xling_jax.models.bert import BertConfig
from xling_jax.models.partition import LANGUAGE

WHOLE = -1  # in place of a dimension: every device has all of the leaf


class AnyProgram(Hashable, Protocol):
    """What training needs to know of a program: a model, the share of the pieces that it predicts,
    its state, which may be divided among some devices (`shards`), and its update."""

    plan_specs: ClassVar[tuple[P, ...]]

    @property
    def model(self) -> BertConfig: ...

    @property
    def masking_rate(self) -> float: ...

    @property
    def shards(self) -> int: ...

    def initial_state(self, seed: int) -> Any: ...

    def update(self, state, setting, store, *plan: jax.Array) -> tuple[Any, Any]:
        """One update of one replica, and its `StepMetrics`."""


class StepLayout(Hashable, Protocol):
    """The shape of a step."""

    def step_shapes(self) -> list[tuple[int, ...]]:
        """The shapes of the fields of one step's plan; all are int32."""


def shards_of(devices_section, mesh: Mesh) -> int:
    """Among how many devices a config divides parameters and moments: 1 unless it asks for it;
    ValueError if there are several devices, and none shares a batch with another."""
    if not devices_section.shard_parameters:
        return 1
    if mesh.size > 1 and mesh.shape[devices.DATA] == 1:
        raise ValueError(
            f"devices.shard_parameters=True: the replicas take a device each of {mesh.size}, and "
            "none is left to share parameters with; set devices.replica_axis_at_most=1"
        )
    return mesh.shape[devices.DATA]


@functools.lru_cache(maxsize=64)
def state_shapes(program: AnyProgram):
    """The shapes and types of a replica's whole state."""
    return jax.eval_shape(lambda: program.initial_state(0))


def dimensions(tree, shards: int):
    """The dimension of each leaf of whole arrays, or shapes, that is divided: the largest that the
    number of shards divides; WHOLE where none can be. Vectors are not divided, nor is the axis
    of the languages."""

    def dimension(path, leaf) -> int:
        first = int(any(getattr(key, "key", None) == LANGUAGE for key in path))
        found = [d for d in range(first, leaf.ndim) if leaf.shape[d] % shards == 0]
        if shards == 1 or leaf.ndim < first + 2 or not found:
            return WHOLE
        return max(found, key=lambda d: (leaf.shape[d], -d))

    return jax.tree.map_with_path(dimension, tree)


def state_specs(program: AnyProgram):
    """How each leaf of the replicas' states, with a replica axis in front, lies on the mesh;
    ValueError if the state is to be divided, and no leaf can be."""
    found = dimensions(state_shapes(program), program.shards)
    if program.shards > 1 and all(d == WHOLE for d in jax.tree.leaves(found)):
        raise ValueError(
            f"devices.shard_parameters=True: {program.shards} devices divide no dimension of this "
            "model; use another number of them, such as a power of two"
        )
    return jax.tree.map(lambda d: devices.a_replica_and_part(None if d == WHOLE else d), found)


def parameter_dimensions(program: AnyProgram):
    """`dimensions` of the program's parameters."""
    return dimensions(state_shapes(program).params, program.shards)


def gather(parts, dims, axis: str | None):
    """Whole leaves from the devices' parts; the gradient of a part is summed over the devices."""

    def whole(leaf, d):
        return leaf if d == WHOLE else jax.lax.all_gather(leaf, axis, axis=d, tiled=True)

    return jax.tree.map(whole, parts, dims)


def scatter(gradient, dims, axis: str | None):
    """The sum over the devices of whole gradients, of which each device gets its parts."""

    def part(leaf, d):
        if d == WHOLE:
            return total(leaf, axis)
        return jax.lax.psum_scatter(leaf, axis, scatter_dimension=d, tiled=True)

    return jax.tree.map(part, gradient, dims)


def total(x, axis: str | None):
    """The sum over the shards of a batch; None: there is one."""
    return x if axis is None else jax.lax.psum(x, axis)


def total_gradient(gradient, dims, axis: str | None):
    """A gradient by the parts, which `gather` has summed already, with its whole leaves summed."""
    if axis is None or jax.lax.axis_size(axis) == 1:
        return gradient
    whole = [leaf for leaf, d in _with_dimensions(gradient, dims) if d == WHOLE]
    by_leaf = functools.partial(jax.lax.psum, axis_name=axis)
    at_once = functools.partial(_at_once, by_leaf)
    summed = iter(jax.lax.platform_dependent(whole, cpu=at_once, default=by_leaf))
    return jax.tree.map(lambda leaf, d: next(summed) if d == WHOLE else leaf, gradient, dims)


def _with_dimensions(tree, dims):
    """Pairs of each leaf and the dimension that is divided."""
    return zip(jax.tree.leaves(tree), jax.tree.leaves(dims), strict=True)


def _at_once(function, leaves: list[jax.Array]) -> list[jax.Array]:
    """A function of all leaves in one vector: CPU devices wait for each other once a leaf."""
    vector, unravel = ravel_pytree(leaves)
    return unravel(function(vector))


def square_sum(tree, dims, axis: str | None, first: int = 0) -> jax.Array:
    """The sum of the squares of whole leaves, over all but their first `first` axes."""
    whole = divided = jnp.zeros(())
    for leaf, d in _with_dimensions(tree, dims):
        squares = jnp.sum(leaf**2, axis=tuple(range(first, leaf.ndim)))
        if d == WHOLE:
            whole += squares
        else:
            divided += squares
    return whole + total(divided, axis) if any(d != WHOLE for d in jax.tree.leaves(dims)) else whole


def bytes_of(tree) -> int:
    """The bytes that this tree of arrays takes on the first of the devices that it lies on."""
    return sum(leaf.addressable_shards[0].data.nbytes for leaf in jax.tree.leaves(tree))
