"""Laws of Thurstone's loss: exact values, gradients and curvatures in both tails."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from hypothesis import given
from precision import EPS, TINY, exact, few

from rmjax import losses
from rmjax.testing import margins

loss = jax.jit(losses.thurstone)
chance = jax.jit(losses.thurstone_probability)
curvature = jax.jit(losses.thurstone_curvature)
slope = jax.jit(jax.vmap(jax.grad(losses.thurstone)))
bend = jax.jit(jax.vmap(jax.grad(jax.grad(losses.thurstone))))
third = jax.jit(jax.vmap(jax.grad(jax.grad(jax.grad(losses.thurstone)))))


def negative_log_cdf(x):
    return -mpmath.log(mpmath.ncdf(x)) if x < 0 else -mpmath.log1p(-mpmath.ncdf(-x))


def hazard(x):
    return mpmath.npdf(x) / mpmath.ncdf(x)


def check(got, want, x, eps, ulp):
    """A relative bound that grows with x², which is rounded in e^(-x²/2); there is none below the normal numbers."""
    got, want = np.asarray(got, np.float64), np.asarray(want)
    bound = ulp * eps * (1 + np.minimum(x.astype(np.float64) ** 2, 200)) * np.abs(want) + 40 * TINY
    wrong = np.abs(got - want) > bound
    assert not wrong.any(), (x[wrong], got[wrong], want[wrong])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(d=margins(largest=1e4, size=40))
def test_value_gradient_and_curvature_have_full_precision_in_both_tails(dtype, d):
    d, eps = few(d, 20).astype(dtype), EPS[dtype]
    with jax.enable_x64(dtype is np.float64):
        check(loss(d), exact(negative_log_cdf, d), d, eps, 4)
        check(-slope(d), exact(hazard, d), d, eps, 4)
        want = exact(lambda x: hazard(x) * (hazard(x) + x) if x > -3000 else 1 - 1 / x**2 + 6 / x**4, d)
        check(bend(d), want, d, eps, 16)
        check(curvature(d), want, d, eps, 16)
        check(chance(d), exact(mpmath.ncdf, d), d, eps, 4)


@given(margins(largest=1e4))
def test_it_is_not_negative_falls_and_is_convex(d):
    ordered = np.sort(d)
    value = np.asarray(loss(ordered), np.float64)
    assert (value >= 0).all()
    assert (np.diff(value) <= 64 * EPS[np.float32] * value[:-1]).all()
    assert (np.asarray(slope(ordered)) <= 0).all()
    bent = np.asarray(curvature(ordered))
    assert ((bent >= 0) & (bent <= 1)).all()


@given(margins())
def test_probabilities_of_both_sides_sum_to_one(d):
    total = np.asarray(chance(d), np.float64) + np.asarray(chance(-d), np.float64)
    assert (np.abs(total - 1) <= 4 * EPS[np.float32]).all()


@given(margins(largest=2.0))
def test_the_third_derivative_follows(d):
    x = d.astype(np.float64)
    h = np.array([float(hazard(mpmath.mpf(float(v)))) for v in x[:64]])
    k = h + x[:64]
    want = h * (1 - h * k) - h * k * k
    assert (np.abs(third(d)[:64] - want) <= 256 * EPS[np.float32]).all()


def test_autodiff_of_the_formula_is_lost_where_ours_is_right():
    plain = jax.grad(lambda x: -jnp.log(jax.scipy.special.ndtr(x)))
    assert not np.isfinite(plain(np.float32(-20.0)))
    assert slope(np.array([-20.0], np.float32))[0] == pytest.approx(-20.049752, rel=1e-6)


# By mpmath at 40 digits; Φ(1/√2) is the convention of unit variance for each of the two values.
def test_unit_values(x64):
    rel = 16 * EPS[np.float64]
    assert float(chance(1.0)) == pytest.approx(0.84134474606854295, rel=rel)
    assert float(chance(2**-0.5)) == pytest.approx(0.76024993890652327, rel=rel)
    assert float(loss(-10.0)) == pytest.approx(53.231285150512471, rel=rel)
    assert float(loss(-40.0)) == pytest.approx(804.60844201375379, rel=rel)


def test_narrow_margins_are_computed_in_float32():
    d = jnp.array([-20.0, 0.5, 20.0], jnp.bfloat16)
    for fun in (loss, chance, curvature):
        np.testing.assert_array_equal(fun(d), fun(d.astype(jnp.float32)))
