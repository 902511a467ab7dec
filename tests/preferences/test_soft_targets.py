"""Laws of soft targets: finite log-odds, honest widths, and two sides that mirror."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rmjax.errors import DataError
from rmjax.preferences.soft_targets import soft_targets

E = 256
EPS = float(np.finfo(np.float64).eps)
priors = st.sampled_from([1e-3, 0.5, 1.0, 7.0])


@st.composite
def votes(draw, largest=20):
    """Counts for both sides, unanimous and empty ones and halves among them."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    first, second = rng.integers(0, largest, (2, E)) / draw(st.sampled_from([1, 2]))
    first[:3], second[:3] = (0, 0, 5), (0, 5, 0)
    return first, second


def test_two_votes_for_one_side_are_five_to_one():
    """With the prior of Jeffreys: a share of 2.5 / 3 and log 5, where the share of the votes has infinite log-odds."""
    both = soft_targets([2], [0])
    assert both.mean[0] == pytest.approx(0.8333, abs=5e-5)
    assert both.logit[0] == pytest.approx(1.6094, abs=5e-5)
    assert both.logit[0] == pytest.approx(np.log(5), rel=4 * EPS)


@given(votes(), priors)
def test_the_numbers_are_those_of_the_posterior(counts, prior):
    first, second = counts
    got = soft_targets(first, second, prior=prior, level=0.9)
    posterior = stats.beta(first + prior, second + prior)
    np.testing.assert_allclose(got.mean, posterior.mean(), rtol=8 * EPS)
    np.testing.assert_allclose(got.standard_deviation, posterior.std(), rtol=1e-12)
    if prior > 0.1:  # else an end of a unanimous vote is 0 or 1 to the last digit
        np.testing.assert_allclose(posterior.cdf(got.lower), 0.05, rtol=1e-9)
        np.testing.assert_allclose(posterior.sf(got.upper), 0.05, rtol=1e-7)
    np.testing.assert_array_equal(got.votes, first + second)
    assert (got.prior, got.level) == (prior, 0.9)


@given(votes(largest=10_000), priors)
def test_the_share_is_inside_and_the_log_odds_are_finite(counts, prior):
    got = soft_targets(*counts, prior=prior)
    assert ((got.mean > 0) & (got.mean < 1)).all()
    assert np.isfinite(got.logit).all()
    assert ((got.lower <= got.upper) & (got.lower >= 0) & (got.upper <= 1)).all()
    np.testing.assert_allclose(got.logit, np.log(got.mean) - np.log1p(-got.mean), atol=1e-9)


@given(votes(), priors)
def test_exchanging_the_sides_mirrors_everything(counts, prior):
    one, other = soft_targets(*counts, prior=prior), soft_targets(*counts[::-1], prior=prior)
    np.testing.assert_array_equal(one.logit, -other.logit)
    np.testing.assert_array_equal(one.standard_deviation, other.standard_deviation)
    for a, b in ((one.mean, other.mean), (one.lower, other.upper), (one.upper, other.lower)):
        assert (np.abs(a - (1 - b)) <= 2 * EPS).all()


@given(votes(), priors, st.integers(2, 9))
def test_at_one_share_more_votes_are_narrower(counts, prior, times):
    """Deviation and interval. With a prior of almost nothing few votes have all of [0, 1] to the last digit."""
    first, second = (x[counts[0] + counts[1] > 0] for x in counts)
    few, many = (soft_targets(n * first, n * second, prior=prior) for n in (1, times))
    assert (many.standard_deviation < few.standard_deviation).all()
    narrower = (many.upper - many.lower) - (few.upper - few.lower)
    assert (narrower < 0).all() if prior > 0.1 else (narrower <= 2 * EPS).all()


@given(votes(), priors)
def test_a_vote_narrows_on_average_over_what_it_may_say(counts, prior):
    first, second = counts
    now = soft_targets(first, second, prior=prior)
    yes, no = soft_targets(first + 1, second, prior=prior), soft_targets(first, second + 1, prior=prior)
    after = now.mean * yes.standard_deviation**2 + (1 - now.mean) * no.standard_deviation**2
    assert (after < now.standard_deviation**2).all()


def test_a_vote_that_surprises_widens():
    sure, surprised = soft_targets([5], [0]), soft_targets([5], [1])
    assert surprised.standard_deviation[0] > sure.standard_deviation[0]


@given(priors)
def test_a_comparison_without_votes_has_the_prior(prior):
    got = soft_targets([0], [0], prior=prior)
    assert (got.mean[0], got.logit[0]) == (0.5, 0)
    assert got.standard_deviation[0] == pytest.approx(0.5 / np.sqrt(2 * prior + 1))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1, -1], [0, 0]), "row=1, wins_first=-1"),
        (([1, 1], [0, np.nan]), "row=1, wins_second=nan"),
        (([1], [np.inf]), "wins_second=inf"),
        (([1, 1], [0]), "one length"),
        (([[1]], [[0]]), "one length"),
        ((["many"], [0]), "wins_first holds no numbers"),
    ],
)
def test_votes_that_are_none_are_refused(arguments, message):
    with pytest.raises(DataError, match=message):
        soft_targets(*arguments)


@pytest.mark.parametrize("options", [{"prior": 0.0}, {"prior": -1}, {"prior": np.inf}, {"prior": np.nan}, {"level": 1}])
def test_a_prior_or_level_that_is_none_is_refused(options):
    with pytest.raises(DataError, match=next(iter(options))):
        soft_targets([1], [0], **options)
