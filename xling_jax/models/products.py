"""Products of matrices whose gradients XLA's CPU backend would compute slowly."""

from functools import partial

import jax


@partial(jax.custom_vjp, nondiff_argnums=(2,))
def product(x_NxI: jax.Array, kernel_IxO: jax.Array, dtype=None) -> jax.Array:
    """x @ kernel, [N, O], accumulated and returned in `dtype` (None: that of the arguments)."""
    return _contract(x_NxI, kernel_IxO, 1, 0, dtype)


def _contract(x: jax.Array, y: jax.Array, of_x: int, of_y: int, dtype) -> jax.Array:
    """The product of two matrices over an axis of each."""
    return jax.lax.dot_general(x, y, (((of_x,), (of_y,)), ((), ())), preferred_element_type=dtype)


def _forward(x_NxI, kernel_IxO, dtype):
    return product(x_NxI, kernel_IxO, dtype), (x_NxI, kernel_IxO)


def _backward(dtype, saved, gradient_NxO):
    x_NxI, kernel_IxO = saved
    of_x_NxI = _contract(gradient_NxO, kernel_IxO, 1, 1, x_NxI.dtype)
    plain = partial(_contract, of_x=0, of_y=0, dtype=kernel_IxO.dtype)
    of_kernel_IxO = jax.lax.platform_dependent(
        x_NxI, gradient_NxO, cpu=partial(_short_side_first, plain), default=plain
    )
    return of_x_NxI, of_kernel_IxO


def _short_side_first(contract, x_NxI: jax.Array, y_NxO: jax.Array) -> jax.Array:
    """x.T @ y, [I, O], with the shorter of the two sides first: on a CPU that takes half the time.
    The barrier keeps XLA from turning it round again."""
    if x_NxI.shape[1] <= y_NxO.shape[1]:
        return jax.lax.optimization_barrier(contract(x_NxI, y_NxO))
    return jax.lax.optimization_barrier(contract(y_NxO, x_NxI)).T


product.defvjp(_forward, _backward)


def flax_dot_general(x: jax.Array, kernel: jax.Array, dimensions, precision=None) -> jax.Array:
    """`product` in the form that `nn.Dense` asks for."""
    return product(x, kernel)
