"""The matrix product and the layer norm of the encoder, with gradients written by hand, because
those that JAX derives are slower on CPUs. Some steps differ between CPUs and other platforms."""

import math
from functools import partial

import flax.linen as nn
import jax
import jax.numpy as jnp


@partial(jax.custom_vjp, nondiff_argnums=(2, 3))
def product(x_NxI: jax.Array, kernel_IxO: jax.Array, factors, dtype) -> jax.Array:
    """x @ kernel, [N, O], of matrices rounded to `factors`, added up and returned in `dtype`.
    Gradients are products of `factors` as well, and have the dtypes of x and kernel."""
    return _contract(x_NxI.astype(factors), kernel_IxO.astype(factors), 1, 0, dtype)


def _contract(x: jax.Array, y: jax.Array, of_x: int, of_y: int, dtype) -> jax.Array:
    """The product of two matrices over an axis of each."""
    return jax.lax.dot_general(x, y, (((of_x,), (of_y,)), ((), ())), preferred_element_type=dtype)


def _product_forward(x_NxI, kernel_IxO, factors, dtype):
    return product(x_NxI, kernel_IxO, factors, dtype), (x_NxI, kernel_IxO)


def _product_backward(factors, dtype, saved, gradient_NxO):
    x_NxI, kernel_IxO = saved
    x, kernel, gradient = (each.astype(factors) for each in (x_NxI, kernel_IxO, gradient_NxO))
    of_x_NxI = _contract(gradient, kernel, 1, 1, x_NxI.dtype)
    of_kernel_IxO = jax.lax.platform_dependent(
        x,
        gradient,
        cpu=partial(_kernel_gradient_on_cpu, dtype=kernel_IxO.dtype),
        default=partial(_contract, of_x=0, of_y=0, dtype=kernel_IxO.dtype),
    )
    return of_x_NxI, of_kernel_IxO


def _kernel_gradient_on_cpu(x_NxI: jax.Array, y_NxO: jax.Array, dtype) -> jax.Array:
    """x.T @ y, [I, O], with the narrower matrix first, which takes half the time in float32,
    and in bfloat16 saves transposing the wider one. The barrier keeps XLA from swapping them."""
    if y_NxO.shape[1] < x_NxI.shape[1]:
        return _kernel_gradient_on_cpu(y_NxO, x_NxI, dtype).T
    if x_NxI.dtype == jnp.bfloat16:
        product_IxO = _contract(_turned(x_NxI), y_NxO, 1, 0, jnp.float32)
    else:
        product_IxO = _contract(x_NxI, y_NxO, 0, 0, jnp.float32)
    return jax.lax.optimization_barrier(product_IxO).astype(dtype)


def _turned(x_NxI: jax.Array) -> jax.Array:
    """x.T, [I, N], as a factor of a product on a CPU. XLA uses a CPU's instructions for bfloat16
    only if the first factor is not read against its layout, and it makes a plain transposition part
    of the product, even behind the barrier of `transposed` if the program has other products. Pairs
    of columns hide it; if I is odd there are none, and the product is slower."""
    n, i = x_NxI.shape
    together = math.gcd(i, 2)
    return x_NxI.reshape(n, i // together, together).transpose(1, 2, 0).reshape(i, n)


product.defvjp(_product_forward, _product_backward)


def flax_dot_general(
    factors, x: jax.Array, kernel: jax.Array, dimensions, precision=None
) -> jax.Array:
    """With `factors` bound, `product` in the form in which `nn.Dense` calls `lax.dot_general`."""
    return product(x, kernel, factors, x.dtype)


def transposed(x: jax.Array) -> jax.Array:
    """Matrices [..., N, M] as [..., M, N]. On a CPU the barrier makes XLA store the result, which
    multiplies faster than a matrix read against its layout."""
    swapped = partial(jnp.swapaxes, axis1=-1, axis2=-2)
    return jax.lax.platform_dependent(
        x, cpu=lambda x: jax.lax.optimization_barrier(swapped(x)), default=swapped
    )


class LayerNorm(nn.Module):
    """A layer norm over the last axis of [N, D], computed in float32 and returned in `dtype`."""

    epsilon: float
    dtype: jnp.dtype

    @nn.compact
    def __call__(self, x_NxD: jax.Array) -> jax.Array:
        scale_D = self.param("scale", nn.initializers.ones, x_NxD.shape[-1:])
        bias_D = self.param("bias", nn.initializers.zeros, x_NxD.shape[-1:])
        return normalized(self.epsilon, x_NxD.astype(jnp.float32), scale_D, bias_D).astype(
            self.dtype
        )


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def normalized(epsilon: float, x_NxD: jax.Array, scale_D: jax.Array, bias_D: jax.Array):
    """Each row minus its mean, over its standard deviation, times the scale plus the bias."""
    return _norm_forward(epsilon, x_NxD, scale_D, bias_D)[0]


def _norm_forward(epsilon: float, x_NxD, scale_D, bias_D):
    centred_NxD = x_NxD - x_NxD.mean(axis=-1, keepdims=True)
    variance_Nx1 = jnp.square(centred_NxD).mean(axis=-1, keepdims=True)
    inverse_Nx1 = jax.lax.rsqrt(variance_Nx1 + epsilon)
    result_NxD = centred_NxD * (inverse_Nx1 * scale_D) + bias_D
    return result_NxD, (centred_NxD, inverse_Nx1, scale_D)


def _norm_backward(epsilon: float, saved, gradient_NxD):
    centred_NxD, inverse_Nx1, scale_D = saved
    unit_NxD, scaled_NxD = centred_NxD * inverse_Nx1, gradient_NxD * scale_D
    along_N = jnp.einsum("nd,nd->n", scaled_NxD, unit_NxD) / len(scale_D)
    of_x_NxD = scaled_NxD - scaled_NxD.mean(axis=-1, keepdims=True) - unit_NxD * along_N[:, None]
    return inverse_Nx1 * of_x_NxD, (gradient_NxD * unit_NxD).sum(axis=0), gradient_NxD.sum(axis=0)


normalized.defvjp(_norm_forward, _norm_backward)
