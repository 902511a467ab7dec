"""Laws of losses for smoothed, flipped, guessed and graded labels."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from precision import EPS, TINY, exact, few, relative
from scipy import special

from rmjax import losses
from rmjax.testing import margins

SIZE = 4096
eps = EPS[np.float32]
FAMILY = {
    "label_smoothed": (losses.label_smoothed, lambda e: e),
    "noise_corrected": (losses.noise_corrected, lambda e: -e / (1 - 2 * e)),
}
rates = st.floats(0, 0.49).map(np.float32)
loss = {name: jax.jit(fun) for name, (fun, _) in FAMILY.items()} | {"lapse": jax.jit(losses.lapse)}
slope = {name: jax.jit(jax.vmap(jax.grad(fun), (0, None))) for name, (fun, _) in FAMILY.items()}
bend = {name: jax.jit(jax.vmap(jax.grad(jax.grad(fun)), (0, None))) for name, (fun, _) in FAMILY.items()}
lapse_slope = jax.jit(jax.vmap(jax.grad(losses.lapse), (0, None)))
lapse_bend = jax.jit(jax.vmap(jax.grad(jax.grad(losses.lapse)), (0, None)))
lapse_by_rate = jax.jit(jax.vmap(jax.grad(losses.lapse, argnums=1), (0, None)))
smoothed_by_rate = jax.jit(jax.vmap(jax.value_and_grad(losses.label_smoothed)))
graded = jax.jit(losses.with_target_margin)


@pytest.mark.parametrize("name", FAMILY)
@given(margins(), rates)
def test_smoothing_and_correction_are_bradley_terry_plus_a_multiple_of_the_margin(name, d, rate):
    """softplus(-Δ) + cΔ, in float64; it cancels there too, so the bound is of the parts that the loss sums."""
    wide, e = d.astype(np.float64), float(rate)
    c = FAMILY[name][1](e)
    parts = (1 - e) * np.logaddexp(0, -wide) + e * np.logaddexp(0, wide)
    want = np.logaddexp(0, -wide) + c * wide
    scale = 1 - 2 * e if name == "noise_corrected" else 1
    bound = 8 * eps * parts / scale + 4 * EPS[np.float64] * np.abs(wide) / scale
    assert (np.abs(loss[name](d, rate) - want) <= bound).all()


@given(margins(largest=1e4), rates)
def test_they_pull_in_opposite_directions(d, rate):
    """The one slope lies above that of Bradley-Terry by ε, the other below it by ε/(1-2ε)."""
    plain = -special.expit(-d.astype(np.float64))
    for name, (_, factor) in FAMILY.items():
        c = factor(float(rate))
        got = np.asarray(slope[name](d, rate), np.float64)
        assert (np.abs(got - plain - c) <= 8 * eps * (1 + abs(c)) / (1 - 2 * float(rate))).all()


@given(margins(largest=60.0), rates)  # beyond, a small rate times a curvature is flushed to 0
def test_their_curvature_is_that_of_bradley_terry(d, rate):
    want = np.asarray(losses.curvature(d), np.float64)
    for name in FAMILY:
        bound = 16 * eps / (1 - 2 * float(rate)) * want + TINY  # a part of it is flushed
        assert (np.abs(bend[name](d, rate) - want) <= bound).all()


@given(st.integers(0, 2**32 - 1))
def test_the_best_smoothed_margin_is_the_log_odds_and_leaves_the_entropy(seed):
    rate = np.random.default_rng(seed).uniform(1e-3, 0.49, SIZE)
    best = np.log1p(-rate) - np.log(rate)
    with jax.enable_x64():
        nats, uphill = smoothed_by_rate(best, rate)
    assert np.abs(uphill).max() <= 4 * EPS[np.float64]
    assert relative(nats, -rate * np.log(rate) - (1 - rate) * np.log1p(-rate)) <= 8 * EPS[np.float64]


@given(margins(), rates)
def test_the_corrected_loss_is_unbiased_over_flips(d, rate):
    """(1-ε)L(Δ) + εL(-Δ) = ℓ(Δ)."""
    e, wide = np.float64(rate), np.abs(d.astype(np.float64))
    here, there = (np.asarray(loss["noise_corrected"](x, rate), np.float64) for x in (d, -d))
    bound = 8 * eps * (1 + wide) / (1 - 2 * e)
    assert (np.abs((1 - e) * here + e * there - np.logaddexp(0, -d.astype(np.float64))) <= bound).all()


@given(st.floats(0.01, 0.45))
def test_the_corrected_loss_is_negative_for_large_margins_and_has_no_least_value(rate):
    far = np.array([50.0, 500.0, 5000.0], np.float32) / np.float32(rate)
    value = np.asarray(loss["noise_corrected"](far, np.float32(rate)))
    assert (value < 0).all()
    assert (np.diff(value) < 0).all()


@given(margins(), (st.just(0.0) | st.floats(1e-6, 0.99)).map(np.float32))
def test_a_lapse_has_full_precision_in_value_and_gradient(d, rate):
    d = few(d[:96], 32)

    def value(x, r):
        return -mpmath.log((1 - r) / (1 + mpmath.exp(-x)) + r / 2)

    def derivative(x, r):
        s = 1 / (1 + mpmath.exp(-x))
        return -(1 - r) * s / (1 + mpmath.exp(x)) / ((1 - r) * s + r / 2)

    rate_ = np.full_like(d, rate)
    chances = np.clip([float(rate), 1 - float(rate)], 1e-30, 1)
    conditioned = 1 - np.log(chances).sum()  # the loss is a difference of logarithms of both
    assert relative(losses.lapse(d, rate), exact(value, d, rate_)) <= 8 * eps * conditioned
    assert relative(lapse_slope(d, rate), exact(derivative, d, rate_)) <= (16 + np.abs(d).max()) * eps * conditioned


@given(margins(largest=1e4), st.floats(1e-3, 0.9).map(np.float32))
def test_a_lapse_bounds_the_loss_and_the_gradient_falls_back(d, rate):
    assert (np.asarray(loss["lapse"](d, rate)) <= -np.log(float(rate) / 2) * (1 + 4 * eps)).all()
    pull = np.asarray(lapse_slope(d, rate))
    assert ((pull <= 0) & (pull >= -1)).all()
    assert (pull[d < -100] == 0).all()


@given(margins(), st.floats(0.05, 0.9).map(np.float32))
def test_the_lapse_differentiates_twice_and_by_its_rate(d, rate):
    """By hand in float64: p = (1-λ)σ + λ/2."""
    x, r = d.astype(np.float64), float(rate)
    s, t = 1 / (1 + np.exp(-x)), 1 / (1 + np.exp(x))
    p = (1 - r) * s + r / 2
    first = (1 - r) * s * t / p
    second = first * first - first * (t - s)
    assert (np.abs(lapse_bend(d, rate) - second) <= 8 * eps * (8 + np.abs(x)) * (first + first * first)).all()
    assert (np.abs(lapse_by_rate(d, rate) - (s - 0.5) / p) <= 16 * eps * (1 + np.abs(s - 0.5) / p)).all()


@given(margins(largest=1e4))
def test_without_noise_each_is_bradley_terry(d):
    plain = np.asarray(losses.bradley_terry(d))
    for name in loss:
        assert relative(loss[name](d, np.float32(0)), plain) <= 4 * eps
    assert relative(graded(d, np.zeros_like(d)), plain) <= 4 * eps
    assert (np.asarray(lapse_slope(d, np.float32(0))) == np.asarray(jax.vmap(jax.grad(losses.bradley_terry))(d))).all()


@given(margins(), st.integers(-5, 5).map(np.float32))
def test_only_the_excess_over_the_target_counts(d, target):
    assert relative(graded(d, np.full_like(d, target)), losses.bradley_terry(d - target)) <= 4 * eps


@jax.jit
@jax.vmap
@jax.grad
def graded_slope(d, share, target):
    graded = losses.with_target_margin
    return share * graded(d, target) + (1 - share) * graded(-d, -target)


@given(st.integers(0, 2**32 - 1))
def test_a_target_margin_moves_the_optimum_away_from_the_log_odds(seed):
    """To m + logit q: at the log-odds themselves the loss still falls towards the target."""
    rng = np.random.default_rng(seed)
    share, target = rng.uniform(1e-3, 1 - 1e-3, SIZE), rng.uniform(0.1, 5, SIZE) * rng.choice([-1, 1], SIZE)
    odds = np.log(share) - np.log1p(-share)
    with jax.enable_x64():
        assert (np.abs(graded_slope(target + odds, share, target)) <= 4 * EPS[np.float64]).all()
        np.testing.assert_array_equal(np.sign(graded_slope(odds, share, target)), -np.sign(target))


# At 17 digits, by mpmath at 40: rates of .1; Llama 2's margins at Δ = 1 (Touvron et al. 2023, table 27).
UNITS = {
    "label_smoothed": [
        (-3.0, 2.7485873515737421),
        (-1.0, 1.2132616875182228),
        (0.0, 0.69314718055994531),
        (1.0, 0.41326168751822283),
        (3.0, 0.34858735157374206),
        (2.1972245773362196, 0.32508297339144820),
    ],
    "noise_corrected": [
        (-3.0, 3.4235873515737421),
        (-1.0, 1.4382616875182228),
        (0.0, 0.69314718055994531),
        (1.0, 0.18826168751822283),
        (3.0, -0.32641264842625794),
    ],
    "lapse": [
        (-100.0, 2.995732273553991),
        (-3.0, 2.378567126228888),
        (0.0, 0.69314718055994531),
        (3.0, 0.097263701130989906),
    ],
}
TARGETS = [
    (0.0, 0.31326168751822283),
    (1 / 3, 0.41437008685207206),
    (2 / 3, 0.54030557468940845),
    (1.0, 0.69314718055994531),
    (3.0, 2.1269280110429725),
]


@pytest.mark.parametrize("name", UNITS)
def test_unit_values(x64, name):
    for d, value in UNITS[name]:
        assert float(loss[name](jnp.float64(d), jnp.float64(0.1))) == pytest.approx(value, rel=8 * EPS[np.float64])


def test_unit_values_of_graded_labels(x64):
    for target, value in TARGETS:
        got = losses.with_target_margin(jnp.float64(1.0), target)
        assert float(got) == pytest.approx(value, rel=8 * EPS[np.float64])
