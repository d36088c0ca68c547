"""Parameters and moments divided among the devices that share a batch.

Each device keeps a part of every large leaf, with its moments. A step gathers the parameters, and
sums the gradient of each part on the device that keeps it (ZeRO, Rajbhandari et al. 2020; also
called FSDP).

Between steps a device holds 12 bytes per parameter (parameters and moments) divided by the number
of devices. During a step it needs 4 more bytes per parameter for the gathered ones. The languages'
own parameters are gathered for all languages at once, and their gradients, whole too, need as much
again. A device sends and receives as much as for summing whole gradients: in every microbatch for
shared parameters, and once a step for the languages' own. Every replica on the same devices needs
all of that.
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

WHOLE = -1  # instead of a dimension: every device keeps the whole leaf


class AnyProgram(Hashable, Protocol):
    """What training needs of a program: its model, the share of the pieces that it predicts, the
    number of devices that its state is divided among (`shards`), its initial state and its update.
    """

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
    """The number of devices that a config divides parameters and moments among: 1 unless it asks
    for more; ValueError if there are several devices and each has other replicas."""
    if not devices_section.shard_parameters:
        return 1
    if mesh.size > 1 and mesh.shape[devices.DATA] == 1:
        raise ValueError(
            f"devices.shard_parameters=True: each of the {mesh.size} devices has other replicas, "
            "so that none can share parameters; set devices.replica_axis_at_most=1"
        )
    return mesh.shape[devices.DATA]


@functools.lru_cache(maxsize=64)
def state_shapes(program: AnyProgram):
    """The shapes and types of a replica's whole state."""
    return jax.eval_shape(lambda: program.initial_state(0))


def dimensions(tree, shards: int):
    """The dimension along which each leaf of a tree of whole arrays, or of shapes, is divided: the
    largest that is a multiple of the number of shards; WHOLE if there is none. Vectors and scalars
    are never divided, nor is the language axis."""

    def dimension(path, leaf) -> int:
        first = int(any(getattr(key, "key", None) == LANGUAGE for key in path))
        found = [d for d in range(first, leaf.ndim) if leaf.shape[d] % shards == 0]
        if shards == 1 or leaf.ndim < first + 2 or not found:
            return WHOLE
        return max(found, key=lambda d: (leaf.shape[d], -d))

    return jax.tree.map_with_path(dimension, tree)


def state_specs(program: AnyProgram):
    """How each leaf of the replicas' states, with a replica axis in front, lies on the mesh;
    ValueError if the state is to be divided but no leaf can be."""
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
    """Whole leaves from the devices' parts. Differentiating through it sums the gradient of each
    part over the devices; gradients of leaves that are not divided are not summed."""

    def whole(leaf, d):
        return leaf if d == WHOLE else jax.lax.all_gather(leaf, axis, axis=d, tiled=True)

    return jax.tree.map(whole, parts, dims)


def scatter(gradient, dims, axis: str | None):
    """The sum over the devices of whole gradients; each device gets its parts of the sum."""

    def part(leaf, d):
        if d == WHOLE:
            return total(leaf, axis)
        return jax.lax.psum_scatter(leaf, axis, scatter_dimension=d, tiled=True)

    return jax.tree.map(part, gradient, dims)


def total(x, axis: str | None):
    """The sum over the shards of a batch; `x` itself without an axis."""
    return x if axis is None else jax.lax.psum(x, axis)


def total_gradient(gradient, dims, axis: str | None):
    """A gradient with all leaves summed over the devices: `gather` has summed the divided ones, and
    this sums the others."""
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
    """Applies a function to all leaves in one vector, because CPU devices would wait for each other
    at every leaf."""
    vector, unravel = ravel_pytree(leaves)
    return unravel(function(vector))


def square_sum(tree, dims, axis: str | None, first: int = 0) -> jax.Array:
    """The sum of squares over all leaves and all but their first `first` axes, including the parts
    of divided leaves that other devices keep."""
    whole = divided = jnp.zeros(())
    for leaf, d in _with_dimensions(tree, dims):
        squares = jnp.sum(leaf**2, axis=tuple(range(first, leaf.ndim)))
        if d == WHOLE:
            whole += squares
        else:
            divided += squares
    return whole + total(divided, axis) if any(d != WHOLE for d in jax.tree.leaves(dims)) else whole


def bytes_of(tree) -> int:
    """The bytes that a tree of arrays takes on one device, the first of this process's."""
    return sum(leaf.addressable_shards[0].data.nbytes for leaf in jax.tree.leaves(tree))
