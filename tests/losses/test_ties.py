"""Laws of both models of ties: probabilities, limits, symmetry, closed-form derivatives."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from precision import EPS, TINY, exact, few

from rmjax import losses
from rmjax.losses.ties import FIRST, SECOND, TIE
from rmjax.testing import margins

eps = EPS[np.float32]
MODELS = {"rao_kupper": losses.rao_kupper, "davidson": losses.davidson}
loss = {name: jax.jit(fun) for name, fun in MODELS.items()}
slope = {name: jax.jit(jax.vmap(jax.grad(fun), (0, None, None))) for name, fun in MODELS.items()}
bend = {name: jax.jit(jax.vmap(jax.grad(jax.grad(fun)), (0, None, None))) for name, fun in MODELS.items()}
by_parameter = {name: jax.jit(jax.vmap(jax.grad(fun, argnums=2), (0, None, None))) for name, fun in MODELS.items()}
outcomes = st.sampled_from([FIRST, SECOND, TIE])
parameters = st.floats(0.02, 8).map(np.float32)


def odds(name, d, parameter):
    """Unnormalised chances of first, second and tie, as the papers have them, at 40 digits."""
    if name == "davidson":
        return mpmath.exp(d / 2), mpmath.exp(-d / 2), mpmath.exp(parameter)
    a, b, t = mpmath.exp(d), mpmath.mpf(1), mpmath.exp(parameter)
    return a / (a + t * b), b / (t * a + b), (t * t - 1) * a * b / ((a + t * b) * (t * a + b))


def oracle(name, outcome, what):
    def value(d, parameter):
        p = odds(name, d, parameter)
        rivals = sum(x for k, x in enumerate(p) if k != outcome)
        return mpmath.log1p(rivals / p[outcome])

    if what == "value":
        return value
    return lambda d, parameter: mpmath.diff(value, (d, parameter), what)


@pytest.mark.parametrize("name", MODELS)
@given(margins(size=40), parameters)
def test_values_and_derivatives_have_full_precision(name, d, parameter):
    d = few(d, 16)
    there = np.full_like(d, parameter)
    scale = 16 * eps * (1 + np.abs(d) + parameter)
    for outcome in (FIRST, SECOND, TIE):
        want = exact(oracle(name, outcome, "value"), d, there)
        assert (np.abs(loss[name](d, outcome, parameter) - want) <= scale * want + TINY).all()
        got = np.asarray(slope[name](d, outcome, parameter), np.float64)
        want = exact(oracle(name, outcome, (1, 0)), d, there)
        assert (np.abs(got - want) <= scale * np.abs(want) + TINY).all()


@pytest.mark.parametrize("name", MODELS)
@given(margins(size=40, largest=40.0), parameters, outcomes)
def test_curvature_and_the_derivative_of_the_parameter(name, d, parameter, outcome):
    d = few(d, 16)
    there = np.full_like(d, parameter)
    scale = 64 * eps * (1 + np.abs(d) + parameter)
    want = exact(oracle(name, outcome, (2, 0)), d, there)
    assert (np.abs(bend[name](d, outcome, parameter) - want) <= scale * np.abs(want) + 1e-30).all()
    want = exact(oracle(name, outcome, (0, 1)), d, there)
    assert (np.abs(by_parameter[name](d, outcome, parameter) - want) <= scale * np.abs(want) + 1e-30).all()


@pytest.mark.parametrize("name", MODELS)
@given(margins(largest=1e4), parameters)
def test_the_probabilities_sum_to_one_and_nothing_is_lost_far_out(name, d, parameter):
    p = [np.exp(-np.asarray(loss[name](d, outcome, parameter), np.float64)) for outcome in (FIRST, SECOND, TIE)]
    assert (np.abs(sum(p) - 1) <= 4 * eps).all()
    for outcome in (FIRST, SECOND, TIE):
        for fun in (loss, slope, bend):
            assert np.isfinite(fun[name](d, outcome, parameter)).all()
        assert (np.asarray(bend[name](d, outcome, parameter)) >= 0).all()


@pytest.mark.parametrize("name", MODELS)
@given(margins(), parameters)
def test_swapping_sides_and_outcome_changes_nothing(name, d, parameter):
    for here, there in ((FIRST, SECOND), (TIE, TIE)):
        one, two = loss[name](d, here, parameter), loss[name](-d, there, parameter)
        assert (np.abs(one - two) <= 4 * eps * np.abs(one)).all()


@given(margins(largest=20.0), st.floats(-8, 8).map(np.float32))
def test_given_no_tie_davidson_is_bradley_terry(d, log_tie):
    first, second = (np.asarray(loss["davidson"](d, k, log_tie), np.float64) for k in (FIRST, SECOND))
    scale = 16 * eps * (1 + np.abs(d) + np.abs(log_tie))
    assert (np.abs(second - first - d) <= scale * (1 + first + second)).all()


@given(margins(largest=20.0))
def test_without_ties_both_are_bradley_terry(d):
    plain = np.asarray(losses.bradley_terry(d), np.float64)
    np.testing.assert_allclose(loss["rao_kupper"](d, FIRST, np.float32(0)), plain, rtol=4 * eps)
    np.testing.assert_allclose(loss["davidson"](d, FIRST, np.float32(-60)), plain, rtol=16 * eps)
    assert np.isinf(loss["rao_kupper"](d, TIE, np.float32(0))).all()


@given(parameters)
def test_equals_tie_at_the_rate_that_the_parameter_says(parameter):
    zero, big = np.zeros(1, np.float32), np.exp(np.float64(parameter))
    for name, want in (("rao_kupper", (big - 1) / (big + 1)), ("davidson", big / (2 + big))):
        got = np.exp(-np.float64(loss[name](zero, TIE, parameter)[0]))
        assert got == pytest.approx(want, rel=32 * eps * (1 + float(parameter)))


def test_a_tie_of_certain_ties_keeps_its_loss():
    """The sum of both losses minus log(ϑ² - 1) is 0 or noise here; the loss is 2 e^-20."""
    eta = np.float32(20.0)
    assert 2 * losses.bradley_terry(-eta) - jnp.log(jnp.expm1(2 * eta)) in (0, pytest.approx(0, abs=1e-5))
    assert losses.rao_kupper(np.float32(0), TIE, eta) == pytest.approx(2 * np.exp(-20.0), rel=1e-5)


# First, second, tie; by mpmath at 40 digits.
UNITS = [
    ("rao_kupper", 1.0, np.log(2.0), (0.57611688476582911, 0.15536240349696361, 0.26852071173720728)),
    ("davidson", 1.0, np.log(0.5), (0.59839220236137711, 0.22013618900605204, 0.18147160863257085)),
]


@pytest.mark.parametrize(("name", "d", "parameter", "chances"), UNITS)
def test_unit_values(x64, name, d, parameter, chances):
    got = np.exp(-np.asarray(loss[name](np.float64(d), np.arange(3), parameter)))
    np.testing.assert_allclose(got, chances, rtol=16 * EPS[np.float64])


def test_chances_of_ties_of_equals_in_the_pudding_experiment(x64):
    """Davidson 1970: P(tie | equal) is .27189 under his model and .27232 under Rao and Kupper's."""
    at = np.float64(0)
    assert f"{np.exp(-loss['davidson'](at, TIE, np.log(0.7468229877))):.5f}" == "0.27189"
    assert f"{np.exp(-loss['rao_kupper'](at, TIE, np.log(1.7484572547))):.5f}" == "0.27232"
