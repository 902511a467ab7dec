"""Laws of the beta-binomial: published numbers, a zero gradient, two edges that are refused, errors that cover."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import optimize, stats

from rmjax.errors import DataError, IdentifiabilityError, SampleSizeError
from rmjax.preferences.overdispersion import beta_binomial

ITEMS = 60


@st.composite
def histories(draw):
    """Votes on ITEMS items of 0 to 9 votes, with an edge of the likelihood now and then."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    a, b = rng.uniform(0.2, draw(st.sampled_from([1.0, 5.0, 500.0])), 2)
    m = rng.integers(0, 10, ITEMS)
    return rng.binomial(m, rng.beta(a, b, ITEMS)), m


def fitted(k, m):
    try:
        return beta_binomial(k, m)
    except IdentifiabilityError:
        assume(False)


def likelihood(k, m, a, b):
    return -stats.betabinom.logpmf(k, m, a, b).sum()


def test_five_votes_on_130_items_to_the_printed_digits():
    """30, 18, 12, 14, 20 and 36 items of 0 to 5 votes; computed independently, with binomial coefficients."""
    fit = beta_binomial(np.repeat(np.arange(6), [30, 18, 12, 14, 20, 36]), np.full(130, 5))
    assert fit.alpha == pytest.approx(0.489250, abs=5e-7)
    assert fit.beta == pytest.approx(0.437555, abs=5e-7)
    assert fit.rho == pytest.approx(0.518994, abs=5e-7)
    assert fit.negative_log_likelihood == pytest.approx(223.445214, abs=5e-7)
    assert fit.items == 130


@given(histories())
def test_the_likelihood_is_scipys_and_flat_at_the_estimate(counts):
    """By log-gamma functions: the value, and central differences of it in log alpha and log beta."""
    k, m = counts
    fit = fitted(k, m)
    a, b = fit.alpha, fit.beta
    here = likelihood(k, m, a, b)
    assert fit.negative_log_likelihood == pytest.approx(here, rel=1e-9)
    for da, db in ((0.01, 0), (0, 0.01), (0.01, 0.01), (0.01, -0.01)):
        up, down = (likelihood(k, m, a * np.exp(s * da), b * np.exp(s * db)) for s in (1, -1))
        assert min(up, down) >= here - 1e-7
        # What is left of a third derivative over two steps of 1 %, and rounding of log-gammas of up to 1e6.
        assert abs(up - down) <= 1e-5 * k.size + 1e-8 * (a + b)
    assert fit.mean == pytest.approx(a / (a + b))
    assert fit.rho == pytest.approx(1 / (a + b + 1))


@given(histories())
def test_no_other_optimiser_finds_a_better_one(counts):
    k, m = counts
    fit = fitted(k, m)
    other = optimize.minimize(lambda x: likelihood(k, m, *np.exp(x)), [0, 0], method="Nelder-Mead")
    assert fit.negative_log_likelihood <= other.fun + 1e-8


@given(st.integers(1, 50), st.integers(1, 50), st.integers(1, 50), st.sampled_from([1, 1000]))
def test_with_two_votes_an_item_the_estimate_is_a_formula(none, one, both, times):
    """With two votes the beta-binomial fits any histogram: p is the share, and rho is 1 - P(differ) / 2p(1 - p)."""
    p = (one + 2 * both) / (2 * (none + one + both))
    rho = 1 - one / (none + one + both) / (2 * p * (1 - p))
    assume(rho > 1e-9)
    k = np.repeat([0, 1, 2], np.multiply(times, [none, one, both]))
    fit = beta_binomial(k, np.full(len(k), 2))
    assert fit.mean == pytest.approx(p, rel=1e-12)
    assert fit.rho == pytest.approx(rho, rel=1e-9, abs=1e-14)


@given(histories())
def test_exchanging_successes_and_failures_exchanges_alpha_and_beta(counts):
    k, m = counts
    one, other = fitted(k, m), beta_binomial(m - k, m)
    assert (one.alpha, one.beta) == pytest.approx((other.beta, other.alpha), rel=1e-6)
    assert one.rho == pytest.approx(other.rho, rel=1e-6)
    assert one.standard_errors["alpha"] == pytest.approx(other.standard_errors["beta"], rel=1e-5)


@given(histories())
def test_an_item_without_votes_and_the_order_change_nothing(counts):
    k, m = counts
    one = fitted(k, m)
    other = beta_binomial(np.append(k[::-1], [0, 0]), np.append(m[::-1], [0, 0]))
    assert other.rho == pytest.approx(one.rho, rel=1e-9)
    assert other.items == one.items == (m > 0).sum()


@given(histories())
def test_errors_are_of_the_curvature_and_shrink_with_the_root_of_the_items(counts):
    k, m = counts
    fit = fitted(k, m)
    four = beta_binomial(np.tile(k, 4), np.tile(m, 4))
    for name, error in fit.standard_errors.items():
        assert four.standard_errors[name] == pytest.approx(error / 2, rel=1e-4)
    assume(0.01 < fit.rho < 0.95)  # where differences of log-gammas hold five digits
    step = 1e-3

    def at(p, rho):
        total = (1 - rho) / rho
        return likelihood(k, m, p * total, (1 - p) * total)

    h = step * np.array([fit.mean * (1 - fit.mean), fit.rho * (1 - fit.rho)])
    hessian = np.zeros((2, 2))
    for i, j in ((0, 0), (1, 1), (0, 1)):
        one, two = np.eye(2)[i] * h, np.eye(2)[j] * h
        x = np.array([fit.mean, fit.rho])
        bend = at(*(x + one + two)) - at(*(x + one - two)) - at(*(x - one + two)) + at(*(x - one - two))
        hessian[i, j] = hessian[j, i] = bend / (4 * h[i] * h[j])
    scale = np.sqrt(np.outer(np.diag(fit.covariance), np.diag(fit.covariance)))
    assert (np.abs(np.linalg.inv(hessian) - fit.covariance) <= 2e-3 * scale).all()
    errors = [fit.standard_errors["mean"], fit.standard_errors["rho"]]
    np.testing.assert_allclose(errors, np.sqrt(np.diag(fit.covariance)))


def test_intervals_of_two_errors_cover_the_truth():
    """200 worlds of 300 items of 1 to 6 votes: 95.4 % each, within 4 standard errors of 200 trials."""
    rng = np.random.default_rng(0)
    truth = {"alpha": 1.2, "beta": 0.7, "mean": 1.2 / 1.9, "rho": 1 / 2.9}
    inside = dict.fromkeys(truth, 0)
    for _ in range(200):
        m = rng.integers(1, 7, 300)
        fit = beta_binomial(rng.binomial(m, rng.beta(1.2, 0.7, 300)), m)
        for name, value in truth.items():
            inside[name] += abs(getattr(fit, name) - value) <= 2 * fit.standard_errors[name]
    for name, covered in inside.items():
        assert abs(covered / 200 - 0.954) <= 4 * np.sqrt(0.954 * 0.046 / 200) + 0.01, name  # 0.01: alpha is skewed


@given(histories())
def test_where_it_is_refused_no_spread_is_better_than_any(counts):
    """The likelihood of one share for all items is at least that of every beta-binomial on a grid."""
    k, m = counts
    p = k.sum() / m.sum()
    assume(0 < p < 1)
    moment = (k * (k - 1) / p + (m - k) * (m - k - 1) / (1 - p)).sum() / (m * (m - 1)).sum() - 1
    grid = np.array([0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 0.6, 0.9])
    spread = [likelihood(k, m, p * (1 / rho - 1), (1 - p) * (1 / rho - 1)) for rho in grid]
    none = -stats.binom.logpmf(k, m, p).sum()
    if moment > 0:
        assert beta_binomial(k, m).negative_log_likelihood <= min(none, *spread) + 1e-8
    else:
        assert none <= min(spread)
        with pytest.raises(IdentifiabilityError, match="rho = 0"):
            beta_binomial(k, m)


@pytest.mark.parametrize(
    ("k", "m", "error", "message"),
    [
        ([0, 3, 2, 0], [2, 3, 2, 1], IdentifiabilityError, "rho = 1"),
        ([1, 1, 1], [2, 2, 2], IdentifiabilityError, "rho = 0"),
        ([2, 2], [2, 2], IdentifiabilityError, "one side"),
        ([0, 0], [2, 2], IdentifiabilityError, "one side"),
        ([1, 0], [1, 1], SampleSizeError, "no item has two votes"),
        ([], [], SampleSizeError, "no item has two votes"),
        ([0, 3], [2, 2], DataError, "item=1, successes=3, trials=2"),
        ([0, -1], [2, 2], DataError, "item=1, successes=-1"),
        ([0.5, 1], [2, 2], DataError, "successes=0.5"),
        ([0, 1], [2, np.nan], DataError, "trials=nan"),
        ([0, 1], [2], DataError, "one length"),
    ],
)
def test_what_has_no_estimate_is_refused(k, m, error, message):
    with pytest.raises(error, match=message):
        beta_binomial(k, m)
