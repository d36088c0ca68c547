"""Checks of the arguments of this folder's public functions: matrices of finite points, as rows.

They are checked before anything is compiled, so that a bad one raises a ValueError that names it.
Inside a compiled program only shapes are known, and NaNs spread as usual in JAX.
"""

import jax
import jax.numpy as jnp
import numpy as np


def magnitude(x: jax.Array, axis: int | None = None) -> jax.Array:
    """The largest power of two up to the largest |x|, of all x or along an axis, which is kept; 1/2
    for zeros. Dividing by it is exact, and afterwards neither squares nor long sums overflow or
    vanish."""
    largest = jax.lax.stop_gradient(jnp.abs(x).max(axis, keepdims=axis is not None, initial=0.0))
    _, exponent = jnp.frexp(largest)
    return jnp.ldexp(jnp.float32(1), jnp.clip(exponent - 1, -126, 127))


def as_array(name: str, given: object, form: str) -> np.ndarray:
    """An argument as NumPy has it; ValueError, which says what `form` to give, if NumPy cannot read
    it, or it has other values than real numbers."""
    try:
        found = np.asarray(given)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"{name}: give {form}, as a NumPy array ({error}). Of a PyTorch tensor give "
            "tensor.detach().cpu().float().numpy()"
        ) from error
    _require_real(name, found, form)
    return found


def _require_real(name: str, given: np.ndarray | jax.Array, form: str) -> None:
    if not any(jnp.issubdtype(given.dtype, kind) for kind in (jnp.floating, jnp.integer)):
        raise ValueError(f"{name} {given.shape} of {given.dtype}: give {form}")


def points(
    *, one_space: bool = False, counterparts: bool = False, **sides: jax.typing.ArrayLike
) -> list[jax.Array]:
    """The arguments, checked, as float32 matrices [n, d].

    NumPy checks the values, because XLA would compile a program for every shape; so points on an
    accelerator are copied to the host.

    Args:
      one_space: whether all must have the same number of columns.
      counterparts: whether all must have the same number of rows: row i of one belongs to row i of
        the others.

    Raises:
      ValueError: one of them, which is named, is not a matrix of real numbers, is empty, or has a
        row with a value that is NaN or infinite in float32; or they do not fit together.
    """
    found = []
    for name, side in sides.items():
        form = "a matrix [n, d] of real numbers"
        given = side if isinstance(side, jax.Array) else as_array(name, side, form)
        _require_real(name, given, form)
        if given.ndim != 2 or not given.size:
            raise ValueError(
                f"{name} {given.shape} of {given.dtype}: give {form}, with at least one row and "
                "one column"
            )
        with np.errstate(over="ignore"):  # what overflows is infinite, and refused below
            found.append(jnp.asarray(given, jnp.float32))
    shapes = " and ".join(f"{name} {x.shape}" for name, x in zip(sides, found, strict=True))
    if one_space and len({x.shape[1] for x in found}) > 1:
        raise ValueError(f"{shapes}: give points of one space, with as many columns")
    if counterparts and len({len(x) for x in found}) > 1:
        raise ValueError(f"{shapes}: row i of one belongs to row i of the other, so give as many")
    for name, x in zip(sides, found, strict=True):
        if isinstance(x, jax.core.Tracer):
            continue
        is_bad = ~np.isfinite(np.asarray(x)).all(axis=1)
        if is_bad.any():
            raise ValueError(
                f"{name}: row {is_bad.argmax()} holds a NaN or an infinity; one such point would "
                "spoil the results of all, so leave it out"
            )
    return found


def require_count(name: str, value: int, most: int | None = None) -> None:
    """Raises ValueError unless a number is an integer of at least 1, and of at most `most`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"{name}={value!r}: choose an integer from 1 on")
    if most is not None and value > most:
        raise ValueError(f"{name}={value}: choose 1 to {most}, for there are no more")


def row_pairs(name: str, pairs: np.ndarray, sizes: tuple[int, int]) -> np.ndarray:
    """Pairs (i, j) of row numbers, [n, 2]; ValueError if there is none or a row does not exist."""
    pairs = np.asarray(pairs)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not len(pairs):
        raise ValueError(f"{name} {pairs.shape}: give at least one row (i, j) of row numbers")
    if pairs.dtype.kind not in "iu" or (pairs < 0).any() or (pairs >= sizes).any():
        raise ValueError(
            f"{name} from {pairs.min(0)} to {pairs.max(0)}: row numbers are integers from 0, below "
            f"{sizes[0]} in the source and {sizes[1]} in the target"
        )
    return pairs
