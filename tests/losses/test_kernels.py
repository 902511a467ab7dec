"""Laws of the elementwise losses: exact values, gradients and curvatures at every magnitude."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from precision import EPS, exact, few, relative

from rmjax import losses
from rmjax.losses.kernels import times_votes
from rmjax.testing import margins, shares

SIZE = 4096
HUGE = float(np.float32(1e30))


def each(fun):
    return jax.jit(jax.vmap(fun))


loss = jax.jit(losses.bradley_terry)
slope = each(jax.grad(losses.bradley_terry))
bend = each(jax.grad(jax.grad(losses.bradley_terry)))
bend_forwards = each(jax.hessian(losses.bradley_terry))
third = each(jax.grad(jax.grad(jax.grad(losses.bradley_terry))))
curvature = jax.jit(losses.curvature)
probability = jax.jit(losses.probability)
soft = jax.jit(losses.soft_label)
soft_slope = each(jax.grad(losses.soft_label))


# Value


@pytest.mark.parametrize(("dtype", "largest"), [(np.float32, HUGE), (np.float64, 1e300)])
@given(data=st.data())
def test_the_loss_is_finite_not_negative_and_falls(dtype, largest, data):
    d = data.draw(margins(largest=largest, dtype=dtype))
    with jax.enable_x64(dtype is np.float64):
        value = np.asarray(loss(d))
        assert value.dtype == dtype
        assert np.isfinite(value).all()
        assert (value >= 0).all()
        ordered = np.asarray(loss(np.sort(d)), np.float64)
    assert (np.diff(ordered) <= 4 * EPS[dtype] * ordered[1:]).all()  # two values of 2 ulp each


def test_float64_reaches_its_own_ends(x64):
    d = np.array([-1e300, 1e300, 0.0])
    np.testing.assert_array_equal(loss(d), [1e300, 0.0, np.log(2)])
    np.testing.assert_array_equal(slope(d), [-1.0, 0.0, -0.5])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_infinite_margins_have_limits_and_no_nan(dtype):
    with jax.enable_x64(dtype is np.float64):
        d = np.array([-np.inf, np.inf], dtype)
        np.testing.assert_array_equal(loss(d), [np.inf, 0.0])
        np.testing.assert_array_equal(slope(d), [-1.0, 0.0])
        np.testing.assert_array_equal(curvature(d), [0.0, 0.0])
        np.testing.assert_array_equal(probability(d), [0.0, 1.0])
        np.testing.assert_array_equal(soft(d, np.array([0, 1], dtype)), [0.0, 0.0])
        np.testing.assert_array_equal(soft(d, np.array([0.5, 0.5], dtype)), [np.inf, np.inf])


@pytest.mark.parametrize(("dtype", "largest"), [(np.float32, HUGE), (np.float64, 1e300)])
@given(data=st.data())
def test_the_loss_from_the_other_side_differs_by_the_margin(dtype, largest, data):
    d = data.draw(margins(largest=largest, dtype=dtype))
    with jax.enable_x64(dtype is np.float64):
        here, there = (np.asarray(loss(x), np.float64) for x in (d, -d))
    assert (np.abs(there - here - d) <= 2 * EPS[dtype] * np.maximum(1, np.abs(d))).all()


@given(margins())
def test_values_have_full_relative_precision(d):
    wide = d.astype(np.float64)
    assert relative(loss(d), np.logaddexp(0, -wide)) <= 4 * EPS[np.float32]
    assert relative(probability(d), 1 / (1 + np.exp(-wide))) <= 4 * EPS[np.float32]


@given(margins(largest=700.0, dtype=np.float64))
def test_float64_values_and_derivatives_have_full_relative_precision(d):
    d, eps = few(d[:64], 32), EPS[np.float64]
    with jax.enable_x64():
        assert relative(loss(d), exact(lambda x: mpmath.log1p(mpmath.exp(-x)), d)) <= 4 * eps
        assert relative(slope(d), exact(lambda x: -1 / (1 + mpmath.exp(x)), d)) <= 8 * eps
        bent = exact(lambda x: 1 / (2 + mpmath.exp(x) + mpmath.exp(-x)), d)
        for fun in (bend, bend_forwards, curvature):
            assert relative(fun(d), bent) <= 16 * eps
            np.testing.assert_array_equal(fun(d), fun(-d))


# Gradient and curvature


@given(margins())
def test_the_gradient_is_minus_the_chance_of_the_other_side(d):
    assert relative(slope(d), -1 / (1 + np.exp(d.astype(np.float64)))) <= 8 * EPS[np.float32]


@given(margins())
def test_the_curvature_of_the_public_loss_is_exact_and_even(d):
    """Nested grad and hessian of the loss, and the closed form: one function, to 16 ulp, the same on both sides."""
    wide = d.astype(np.float64)
    want = 1 / (2 + np.exp(wide) + np.exp(-wide))
    for fun in (bend, bend_forwards, curvature):
        got = np.asarray(fun(d))
        assert relative(got, want) <= 16 * EPS[np.float32]
        np.testing.assert_array_equal(got, fun(-d))


@given(margins(largest=40.0))
def test_the_third_derivative_is_exact_as_well(d):
    """σ(Δ)σ(-Δ)(σ(-Δ) - σ(Δ)), by another formula. The last factor cancels near 0: the bound is of the curvature."""
    wide = d.astype(np.float64)
    curved = 1 / (2 + np.exp(wide) + np.exp(-wide))
    assert (np.abs(third(d) + curved * np.tanh(wide / 2)) <= 16 * EPS[np.float32] * curved).all()


def test_the_obvious_formulas_are_wrong_where_ours_is_right():
    """What the closed forms are for: each formula here loses the answer that the law beside it demands."""
    d = np.float32(20.0)
    assert 1 - jax.nn.sigmoid(d) == 0  # and not 2.06e-9
    assert slope(d[None])[0] == pytest.approx(-2.0611536181902036e-9, rel=8 * EPS[np.float32])

    plain = jax.grad(jax.grad(lambda x: -jax.nn.log_sigmoid(x)))
    assert plain(np.float32(-15.0)) == 0  # and not 3.06e-7
    assert bend(np.array([-15.0], np.float32))[0] == pytest.approx(3.059022e-7, rel=1e-6)

    assert loss(np.float32(-20.0)) - d == 0  # ℓ(Δ) + (1 - q)Δ at q = 0
    assert soft(np.float32(-20.0), np.float32(0.0)) == pytest.approx(2.0611536203143807e-9, rel=4 * EPS[np.float32])


OBVIOUS = (lambda x: -jax.nn.log_sigmoid(x), lambda x: jnp.logaddexp(0, -x))


def test_how_far_the_obvious_curvatures_are_off():
    """Twice the derivative of `jax.nn.log_sigmoid`, and of the same by `logaddexp`; and s(1 - s) on the other side."""
    twice = jax.jit(jax.vmap(lambda x: jnp.stack([jax.grad(jax.grad(formula))(x) for formula in OBVIOUS])))
    exactly = lambda d: 1 / (2 + np.exp(d) + np.exp(-d))[:, None]  # noqa: E731
    narrow, wide, other = np.float32([-10, -12, -15, -80]), np.array([-30.0, -40.0]), np.float32([15, 20])
    off = np.abs(1 - twice(narrow) / exactly(np.float64(narrow)))
    assert [[f"{x:.1%}" for x in row] for row in off] == [["0.8%"] * 2, ["6.9%"] * 2, ["100.0%"] * 2, ["100.0%"] * 2]
    with jax.enable_x64():
        off = np.abs(1 - twice(wide) / exactly(wide))
    assert [[f"{x:.1%}" for x in row] for row in off] == [["1.3%"] * 2, ["100.0%"] * 2]
    s = np.asarray(probability(other))
    assert [f"{abs(x):.0%}" for x in s * (1 - s) / exactly(np.float64(other))[:, 0] - 1] == ["17%", "100%"]


def test_the_obvious_losses_are_lost_in_the_tails():
    """log σ(-88) is -inf and its gradient NaN in float32; log(1 - p) is -inf from 37 logits on in float64."""
    value, gradient = jax.value_and_grad(lambda x: jnp.log(jax.nn.sigmoid(x)))(np.float32(-88))
    assert value == -np.inf
    assert np.isnan(gradient)  # as it stands; a compiler may simplify the product of infinity and 0
    far = np.float32([-88, 37])
    assert (loss(far)[0], slope(far)[0]) == (88, -1)
    assert 1 - 1 / (1 + np.exp(-36.0)) > 0
    assert 1 - 1 / (1 + np.exp(-37.0)) == 0  # and its logarithm times a label of 0 is NaN
    assert loss(far)[1] == pytest.approx(np.exp(-37.0), rel=4 * EPS[np.float32])


def test_rounding_at_whole_margins():
    """Up to 80 either way: 1.1 ulp of the value, 4.3 of the gradient and 1.4e-7 of the curvature."""
    d = np.arange(-80, 81).astype(np.float32)
    wide = d.astype(np.float64)
    assert relative(loss(d), np.logaddexp(0, -wide)) <= 1.1 * EPS[np.float32]
    assert relative(slope(d), -1 / (1 + np.exp(wide))) <= 4.3 * EPS[np.float32]
    assert relative(curvature(d), 1 / (2 + np.exp(wide) + np.exp(-wide))) <= 1.4e-7


# Soft labels


@given(margins(), shares())
def test_soft_labels_weigh_the_two_hard_ones(d, q):
    """In float64, by the form that cancels in float32; there it is a bound of 4 ulp of its largest part."""
    wide, share = d.astype(np.float64), q.astype(np.float64)
    want = np.logaddexp(0, -wide) + (1 - share) * wide
    bound = 4 * EPS[np.float32] * want + 4 * EPS[np.float64] * np.abs(wide)
    assert (np.abs(soft(d, q) - want) <= bound).all()


@given(shares())
def test_the_best_margin_is_the_log_odds_and_leaves_the_entropy(q):
    q = np.clip(q, 1e-6, 1 - 1e-6)
    share = q.astype(np.float64)
    best = (np.log(share) - np.log1p(-share)).astype(np.float32)
    # The margin is rounded by half an ulp, and |Δ|σ(Δ)σ(-Δ) < 1/4; two products of at most 1 round in the gradient.
    assert (np.abs(soft_slope(best, q)) <= 4 * EPS[np.float32]).all()
    entropy = -share * np.log(share) - (1 - share) * np.log1p(-share)
    assert (np.abs(soft(best, q) - entropy) <= 4 * EPS[np.float32] * (entropy + np.abs(best) * (1 - share))).all()


@given(margins())
def test_a_unanimous_vote_has_no_best_margin(d):
    ones, zeros = np.ones(SIZE, np.float32), np.zeros(SIZE, np.float32)
    assert (np.asarray(soft_slope(d, ones)) < 0).all()
    assert (np.asarray(soft_slope(d, zeros)) > 0).all()
    np.testing.assert_array_equal(soft(d, ones), loss(d))
    np.testing.assert_array_equal(soft(d, zeros), loss(-d))


@given(margins(), st.integers(0, 2**32 - 1))
def test_swapping_sides_together_with_the_label_changes_nothing(d, seed):
    q = (np.random.default_rng(seed).integers(0, 4097, SIZE) / 4096).astype(np.float32)  # so that 1 - q is exact
    # Only the order of two summands differs, and which of two products a fused multiply-add rounds.
    assert relative(soft(d, q), np.asarray(soft(-d, 1 - q), np.float64)) <= 2 * EPS[np.float32]
    assert (np.abs(soft_slope(d, q) + soft_slope(-d, 1 - q)) <= 2 * EPS[np.float32]).all()


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_where_there_is_no_vote_there_is_no_loss(bad):
    np.testing.assert_array_equal(times_votes(jnp.array([0.0, 2.0]), jnp.array([bad, 3.0])), [0.0, 6.0])


# Precision


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
def test_narrow_margins_are_computed_in_float32(dtype):
    d = jnp.array([-20.0, 0.5, 20.0], dtype)
    for fun in (losses.bradley_terry, losses.probability, losses.curvature):
        np.testing.assert_array_equal(fun(d), fun(d.astype(jnp.float32)))
        assert fun(d).dtype == jnp.float32


# Worked numbers

# Margin, probability and loss, as article 003 prints them.
TABLE = [
    (3.0, "0.9526", "0.049"),
    (2.0, "0.8808", "0.127"),
    (1.0, "0.7311", "0.313"),
    (0.0, "0.5000", "0.693"),
    (-1.0, "0.2689", "1.313"),
    (-3.0, "0.0474", "3.049"),
]


@pytest.mark.parametrize(("margin", "chance", "nats"), TABLE)
def test_margin_table_of_article_003(margin, chance, nats):
    assert f"{losses.probability(np.float32(margin)):.4f}" == chance
    assert f"{losses.bradley_terry(np.float32(margin)):.3f}" == nats


def test_worked_losses_of_article_004():
    numbers = {0.0: "0.6931", np.log(3): "0.2877", -np.log(3): "1.3863"}
    assert {d: f"{losses.bradley_terry(np.float32(d)):.4f}" for d in numbers} == numbers
    assert losses.bradley_terry(np.float32(0)) == np.float32(np.log(2))
    # The pairs (2, 1) and (102, 101) are the same pair.
    assert losses.probability(np.float32(2) - np.float32(1)) == losses.probability(np.float32(102) - np.float32(101))


# Loss, gradient and curvature at 17 digits, computed with mpmath at 40.
UNITS = [
    (-20.0, 20.000000002061154, -0.99999999793884638, 2.0611536139418493e-9),
    (-3.0, 3.0485873515737421, -0.95257412682243322, 0.045176659730912133),
    (-1.0, 1.3132616875182228, -0.73105857863000488, 0.19661193324148185),
    (0.0, 0.69314718055994531, -0.5, 0.25),
    (1.0, 0.31326168751822283, -0.26894142136999512, 0.19661193324148185),
    (3.0, 0.048587351573742059, -0.047425873177566781, 0.045176659730912133),
    (20.0, 2.0611536203143807e-9, -2.0611536181902036e-9, 2.0611536139418493e-9),
    (100.0, 3.720075976020836e-44, -3.720075976020836e-44, 3.720075976020836e-44),
    (700.0, 9.8596765437597709e-305, -9.8596765437597709e-305, 9.8596765437597709e-305),
]


@pytest.mark.parametrize(("margin", "value", "first", "second"), UNITS)
def test_unit_values_in_float64(x64, margin, value, first, second):
    at = np.array([margin])
    got = np.concatenate([loss(at), slope(at), bend(at)])
    np.testing.assert_allclose(got, [value, first, second], rtol=16 * EPS[np.float64])


def test_losses_of_log_odds_in_float64(x64):
    """Of article 004: log 4/3 and log 4."""
    got = [loss(np.array([d]))[0] for d in (np.log(3), -np.log(3))]
    assert [f"{x:.14f}" for x in got] == ["0.28768207245178", "1.38629436111989"]


@pytest.mark.parametrize(("margin", "time"), [(7.597598207405007, 1e3), (14.508650984175917, 1e6)])
def test_a_margin_that_nothing_holds_grows_like_the_logarithm_of_time(x64, margin, time):
    """Gradient flow of both scores of one win, Δ' = -2ℓ'(Δ), has Δ + e^Δ - 1 = 2t: by quadrature of dt/dΔ."""
    nodes, weights = np.polynomial.legendre.leggauss(32)
    panels = np.linspace(0, margin, 17)
    at = (panels[:-1, None] + np.diff(panels)[:, None] * (nodes + 1) / 2).ravel()
    passed = (np.diff(panels)[:, None] * weights / 2).ravel() @ (-0.5 / np.asarray(slope(at)))
    assert passed == pytest.approx(time, rel=1e-14)


def test_a_soft_label_in_float64(x64):
    assert float(losses.soft_label(np.float64(0.5), np.float64(0.7))) == pytest.approx(0.62407698418010668, rel=4e-16)
