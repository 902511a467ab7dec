"""The precision in which scores, margins and losses live."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rmjax.arrays import accumulator, at_least_float32


@pytest.mark.parametrize(
    ("dtype", "wide"),
    [("bfloat16", "float32"), ("float16", "float32"), ("float32", "float32"), ("float64", "float64")],
)
def test_narrow_floats_are_widened_and_wide_ones_kept(x64, dtype, wide):
    x = jnp.arange(4).astype(dtype)
    assert accumulator(dtype) == at_least_float32(x).dtype == wide
    np.testing.assert_array_equal(at_least_float32(x), np.arange(4))


@pytest.mark.parametrize("x", [np.arange(3), np.array([True, False]), 2])
def test_what_is_no_float_becomes_float32(x):
    assert at_least_float32(x).dtype == jnp.float32


def test_widening_is_exact_and_has_gradient_1():
    x = jnp.array([0.1, 1000.0], jnp.bfloat16)
    assert (at_least_float32(x).astype(jnp.bfloat16) == x).all()
    np.testing.assert_array_equal(jax.grad(lambda v: at_least_float32(v).sum())(x), jnp.ones(2, jnp.bfloat16))
