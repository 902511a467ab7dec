"""Laws of over-optimisation curves: where they peak, what best of n costs, and the published fits to their digits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate

from rmjax.diagnostics import OveroptimizationCurve, kl_best_of_n, n_of_kl
from rmjax.errors import DataError

# Gao, Schulman and Hilton 2023, figure 3, digitised by a third party: α and β of best of n, with the peaks they imply.
PUBLISHED = {  # proxy parameters: alpha, beta, distance, reward, n
    "3M": (0.490, 0.120, 2.042, 0.5002, 175),
    "12M": (0.513, 0.120, 2.138, 0.5483, 261),
    "25M": (0.558, 0.115, 2.426, 0.6769, 977),
    "42M": (0.548, 0.111, 2.468, 0.6764, 1_203),
    "85M": (0.599, 0.106, 2.825, 0.8462, 7_968),
    "300M": (0.633, 0.0995, 3.181, 1.0068, 67e3),
    "680M": (0.649, 0.098, 3.311, 1.0745, 157e3),
    "1.2B": (0.653, 0.0965, 3.383, 1.1047, 255e3),
    "3B": (0.662, 0.090, 3.678, 1.2173, 2.0e6),
}
# The open reproduction with a policy of Qwen2.5-1.5B (rush-srik/Overoptimization-Repro): pairs, α, β, n of the peak.
REPRODUCED = {
    500: (0.3860, 0.1355, 20),
    1_000: (0.4613, 0.1233, 89),
    4_000: (0.6155, 0.1213, 1.7e3),
    8_000: (0.7411, 0.1181, 51e3),
    60_000: (0.9131, 0.1220, 3.3e6),
}
DIVERGENCES = {  # Stiennon et al. 2020, appendix G.3
    2: 0.19314718055994531,
    4: 0.63629436111989062,
    8: 1.2044415416798359,
    16: 1.8350887222397812,
    64: 3.1745080833596719,
}
coefficients = st.tuples(st.floats(0.05, 2.0), st.floats(0.02, 0.5))
each_method = pytest.mark.parametrize("method", ["best_of_n", "rl"])


def rounded(value, figures):
    return float(f"{value:.{figures}g}")


@pytest.mark.parametrize(("alpha", "beta", "distance", "reward", "n"), PUBLISHED.values(), ids=PUBLISHED)
def test_published_fits_peak_where_they_are_said_to(alpha, beta, distance, reward, n):
    peak = OveroptimizationCurve("best_of_n", alpha, beta).peak
    assert peak.distance == pytest.approx(distance, abs=5.1e-4)
    assert peak.reward == pytest.approx(reward, abs=5.1e-5)
    assert rounded(peak.n, len(f"{n:.0f}".rstrip("0"))) == n or abs(peak.n - n) < 0.5


@pytest.mark.parametrize(("alpha", "beta", "n"), REPRODUCED.values(), ids=map(str, REPRODUCED))
def test_reproduced_fits_peak_where_they_are_said_to(alpha, beta, n):
    assert rounded(OveroptimizationCurve("best_of_n", alpha, beta).peak.n, 2) == n


@each_method
@given(coefficients=coefficients, distance=st.floats(0, 50))
def test_no_distance_has_more_reward_than_the_peak(method, coefficients, distance):
    curve = OveroptimizationCurve(method, *coefficients)
    best = curve.peak.reward
    assert curve.reward(distance) <= best + 1e-12 * max(best, 1)


@each_method
@given(coefficients=coefficients)
def test_the_peak_is_where_the_slope_is_0_in_the_closed_form(method, coefficients):
    alpha, beta = coefficients
    curve = OveroptimizationCurve(method, alpha, beta)
    peak = curve.peak
    slope = alpha - (2 * beta * peak.distance if method == "best_of_n" else beta * (np.log(peak.distance) + 1))
    assert abs(slope) < 1e-12
    closed = alpha**2 / (4 * beta) if method == "best_of_n" else beta * peak.distance
    assert peak.reward == pytest.approx(closed, rel=1e-12)
    assert peak.kl == pytest.approx(peak.distance**2)
    assert curve.reward(0) == 0


def test_best_of_n_that_starts_downhill_is_best_left_alone():
    peak = OveroptimizationCurve("best_of_n", -0.5, 0.1).peak
    assert (peak.distance, peak.kl, peak.reward, peak.n) == (0, 0, 0, 1)


@pytest.mark.parametrize(("n", "nats"), DIVERGENCES.items())
def test_divergence_of_best_of_n_to_the_printed_digits(n, nats):
    assert kl_best_of_n(n) == pytest.approx(nats, rel=4e-16)
    assert kl_best_of_n(1_000) == pytest.approx(5.908755, abs=5e-7)
    assert kl_best_of_n(60_000) == pytest.approx(10.002117, abs=5e-7)


@given(st.floats(1, 1e3))
def test_divergence_of_best_of_n_is_the_integral_of_its_density(n):
    """The rank of the best of n has density n u^(n-1) against a uniform one."""
    integral, _ = integrate.quad(lambda t: n * np.exp(-n * t) * (np.log(n) - (n - 1) * t), 0, np.inf, epsabs=1e-13)
    assert kl_best_of_n(n) == pytest.approx(integral, abs=1e-10)


@given(st.lists(st.floats(1, 1e12), min_size=2, max_size=20))
def test_divergence_of_best_of_n_increases_from_0_and_stays_below_log_n(numbers):
    n = np.sort(numbers)
    kl = kl_best_of_n(n)
    assert (np.diff(kl) >= -1e-14).all()
    assert (kl <= np.log(n)).all()
    assert kl_best_of_n(1) == 0


@given(st.floats(1, 1e6), st.integers(1, 5))
def test_best_of_n_again_and_again_is_best_of_a_power(n, times):
    """Ranks after t rounds have density of the best of n^t, so that their divergence is its own."""
    rounds = n**times
    assert n_of_kl(kl_best_of_n(rounds)) == pytest.approx(rounds, rel=1e-12)


@given(st.floats(0, 700))
def test_samples_of_a_divergence_have_it(nats):
    n = n_of_kl(nats)
    assert n >= 1
    assert kl_best_of_n(n) == pytest.approx(nats, rel=1e-12, abs=1e-15)


@given(st.floats(1, 2))
def test_samples_are_told_to_the_last_digit_near_one(n):
    """Where Lambert's W branches, and a plain inverse loses half of the digits."""
    assert n_of_kl(kl_best_of_n(n)) == pytest.approx(n, abs=2e-15)


def test_more_samples_than_numbers_reach_are_infinite():
    np.testing.assert_array_equal(n_of_kl([800.0, 1e308, np.inf]), np.inf)
    assert kl_best_of_n(np.inf) == np.inf
    assert kl_best_of_n(1.7e308) == pytest.approx(np.log(1.7e308) - 1)


def test_rewards_far_away_fall_without_end():
    assert OveroptimizationCurve("best_of_n", 1.0, 0.1).reward(1e300) == -np.inf
    assert OveroptimizationCurve("rl", 1.0, 0.1).reward(1e300) < -1e301


@pytest.mark.parametrize(
    ("of", "match"),
    [
        (lambda: kl_best_of_n([3, 0.5]), "one sample or more.*position=1, value=0.5"),
        (lambda: n_of_kl(-1e-9), "divergence"),
        (lambda: n_of_kl(float("nan")), "divergence"),
        (lambda: OveroptimizationCurve("rl", 1, 1).reward([1, -1]), "distance.*position=1"),
        (lambda: OveroptimizationCurve("rl", 1, 1).reward(-0.5), "distance.*value=-0.5"),
        (lambda: OveroptimizationCurve("rl", 1, 1).reward(np.inf), "distance.*value=inf.*Give finite"),
        (lambda: OveroptimizationCurve("rl", 1, 1).reward("far"), "holds numbers"),
        (lambda: kl_best_of_n("many"), "holds numbers"),
        (lambda: n_of_kl([[1], [1, 2]]), "holds numbers"),
        (lambda: OveroptimizationCurve("rl", 1, 0.001), "beyond all numbers"),
        (lambda: OveroptimizationCurve("rl", 360, 1), "beyond all numbers"),
        (lambda: OveroptimizationCurve("best_of_n", 1.0, 1e-200), "beyond all numbers"),
        (lambda: OveroptimizationCurve("best_of_n", 1e300, 1e-300), "beyond all numbers"),
        (lambda: OveroptimizationCurve("rl", "a", 1), "alpha holds numbers"),
        (lambda: OveroptimizationCurve("rl", 1, None), "does not bend"),
        (lambda: OveroptimizationCurve("rl", [1, 2], 1), "one coefficient of each"),
        (lambda: OveroptimizationCurve("rl", 1, 0), "does not bend"),
        (lambda: OveroptimizationCurve("rl", float("nan"), 1), "does not bend"),
        (lambda: OveroptimizationCurve("ppo", 1, 1), "method"),
    ],
)
def test_what_means_nothing_is_refused(of, match):
    with pytest.raises(DataError, match=match):
        of()
