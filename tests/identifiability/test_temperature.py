"""Laws of the one scale that votes can set: where it is, where there is none, and what it leaves alone."""

import dataclasses

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rmjax import Comparisons
from rmjax.errors import DataError, IdentifiabilityError
from rmjax.identifiability.temperature import best_temperature

E = 24
EPS = float(np.finfo(np.float64).eps)
seeds = st.integers(0, 2**32 - 1)


def judged(first, second, **optional):
    """One comparison of two responses of its own for every pair of counts."""
    at = 2 * np.arange(len(first))
    return Comparisons.from_votes(at, at + 1, first, second, np.repeat(np.arange(len(first)), 2), **optional)


@st.composite
def questions(draw):
    """Margins of one scale, and votes that are right more than chance but not always."""
    rng = np.random.default_rng(draw(seeds))
    margin = draw(st.sampled_from([1e-3, 1.0, 30.0])) * rng.normal(size=E)
    margin[0] = draw(st.sampled_from([0.0, 1e-12, 1.0]))
    a, b = rng.integers(0, 9, (2, E))
    weight = rng.integers(0, 5, E) / 4
    gain = (weight * margin * (a - b)).sum()
    margin = margin * np.sign(gain)
    assume(abs(gain) > 0.01 * (weight * np.abs(margin) * (a + b)).sum())
    return margin, judged(a, b, weight=weight)


def loss(margin, votes, temperature):
    """Weighted negative log-likelihood in float64, by another formula than that of the library."""
    a, b, w = (np.asarray(x, np.float64) for x in (votes.wins_first, votes.wins_second, votes.weight))
    z = margin / temperature
    return (w * ((a + b) * (np.log1p(np.exp(-np.abs(z))) + np.maximum(-z, 0)) + b * z)).sum()


def rounding(margin, votes, found):
    """Relative error of T that a sum of E terms leaves: rounding of the slope over T times the bend."""
    pull = (np.asarray(votes.counted("drop")) * np.abs(margin)).sum()
    bend = (found.value / found.standard_error) ** 2 * found.value  # in 1/T times 1/T, that is of the slope
    return 4 * E * EPS * (1 + pull / bend)


@given(questions())
def test_no_temperature_fits_better(question):
    margin, votes = question
    found = best_temperature(margin, votes)
    best = loss(margin, votes, found.value)
    for step in (1e-6, 1e-3, 0.1, 0.5):
        for other in (found.value * (1 + step), found.value / (1 + step)):
            assert best <= loss(margin, votes, other) * (1 + E * EPS)
    assert best < loss(margin, votes, found.value * 2)
    assert best < loss(margin, votes, found.value / 2)
    assert found.votes == votes.counted("drop").sum()
    assert found.negative_log_likelihood * found.votes == pytest.approx(best, rel=E * EPS)
    assert found.before * found.votes == pytest.approx(loss(margin, votes, 1.0), rel=E * EPS)
    assert found.negative_log_likelihood <= found.before * (1 + E * EPS)


@given(questions())
def test_the_slope_is_0_at_40_digits(question):
    margin, votes = question
    found = best_temperature(margin, votes)

    def slope(temperature):
        rows = zip(votes.weight, votes.wins_first, votes.wins_second, margin)
        with mpmath.workdps(40):
            scale = 1 / mpmath.mpf(temperature)
            return sum(
                float(w) * d * ((float(a) + float(b)) / (1 + mpmath.exp(-d * scale)) - float(a)) for w, a, b, d in rows
            )

    around = 1e-9 + rounding(margin, votes, found)
    assert slope(found.value * (1 - around)) > 0 > slope(found.value * (1 + around))


@given(questions(), st.floats(1e-6, 1e6))
def test_the_temperature_of_scaled_margins_is_scaled(question, scale):
    margin, votes = question
    plain, scaled = best_temperature(margin, votes), best_temperature(scale * margin, votes)
    assert scaled.value == pytest.approx(scale * plain.value, rel=1e-10 + rounding(margin, votes, plain))
    assert scaled.negative_log_likelihood == pytest.approx(plain.negative_log_likelihood, rel=1e-10)
    # So the pair (r, T) is known up to a factor: both explain every vote alike.
    np.testing.assert_allclose(scale * margin / scaled.value, margin / plain.value, rtol=1e-9)


@given(questions())
def test_a_power_of_two_scales_the_temperature_exactly(question):
    margin, votes = question
    assert best_temperature(2.0**40 * margin, votes).value == 2.0**40 * best_temperature(margin, votes).value


@given(questions())
def test_the_accuracy_stays(question):
    margin, votes = question
    np.testing.assert_array_equal(np.sign(margin / best_temperature(margin, votes).value), np.sign(margin))


@given(questions())
def test_the_side_that_is_called_first_does_not_matter(question):
    margin, votes = question
    other = dataclasses.replace(votes, wins_first=votes.wins_second, wins_second=votes.wins_first)
    plain, swapped = best_temperature(margin, votes), best_temperature(-margin, other)
    assert swapped.value == pytest.approx(plain.value, rel=1e-10 + rounding(margin, votes, plain))


@given(questions())
def test_the_standard_error_is_the_bend_of_the_likelihood(question):
    margin, votes = question
    found = best_temperature(margin, votes)
    rows = list(zip(votes.weight, votes.wins_first, votes.wins_second, margin))
    with mpmath.workdps(40):

        def total(temperature):
            return sum(
                float(w)
                * (
                    float(a) * mpmath.log1p(mpmath.exp(-d / temperature))
                    + float(b) * mpmath.log1p(mpmath.exp(d / temperature))
                )
                for w, a, b, d in rows
            )

        t = mpmath.mpf(found.value)
        h = t * mpmath.mpf(10) ** -8
        bend = float((total(t + h) - 2 * total(t) + total(t - h)) / h**2)
    assert found.standard_error == pytest.approx(bend**-0.5, rel=1e-6)


@given(questions(), st.sampled_from([np.nan, np.inf]), seeds)
def test_a_comparison_that_counts_no_vote_does_not_matter(question, bad, seed):
    margin, votes = question
    gone = np.random.default_rng(seed).random(E) < 0.1
    kept = dataclasses.replace(votes, weight=np.where(gone, 0, votes.weight).astype(np.float32))
    try:
        plain = best_temperature(margin, kept)
    except IdentifiabilityError:
        assume(False)
    assert best_temperature(np.where(gone, bad, margin), kept) == plain


# Known numbers

# Guo et al., ICML 2017, section 4.2 is the method; the numbers were computed with Newton to 1e-12.
BINS = (0.1, 0.3, 0.5, 0.7, 0.9), (10, 20, 30, 20, 10), (2, 5, 16, 13, 9)


def test_the_temperature_of_five_bins():
    p, n, k = (np.array(x, float) for x in BINS)
    found = best_temperature(np.log(p / (1 - p)), judged(k, n - k))
    assert f"{found.value:.5f}" == "1.15956"
    assert f"{found.negative_log_likelihood:.10f}" == "0.5974741944"
    assert f"{found.before:.10f}" == "0.5991985727"


def test_a_model_that_says_9_in_10_where_6_in_10_agree():
    """Article 004: T = logit 0.9 / logit 0.6, and the loss falls to the entropy of 0.6."""
    found = best_temperature([np.log(9)], judged([6], [4]))
    assert found.value == pytest.approx(5.419022582702912, rel=4 * EPS)
    assert found.before == pytest.approx(0.984250346592314, rel=1e-14)
    assert f"{found.negative_log_likelihood:.9f}" == "0.673011667"
    assert f"{found.before - found.negative_log_likelihood:.10f}" == "0.3112386796"


# Where there is none


@given(questions())
def test_margins_that_contradict_no_vote_have_none(question):
    margin, votes = question
    right = dataclasses.replace(
        votes,
        wins_first=np.where(margin < 0, 0, votes.wins_first).astype(np.float32),
        wins_second=np.where(margin > 0, 0, votes.wins_second).astype(np.float32),
    )
    assume(((right.counted("drop") > 0) & (margin != 0)).any())
    with pytest.raises(IdentifiabilityError, match="temperature at 0") as caught:
        best_temperature(margin, right)
    assert caught.value.numbers["sum_of_margins_against_one"] == 0


@given(questions())
def test_margins_that_are_no_better_than_chance_have_none(question):
    margin, votes = question
    with pytest.raises(IdentifiabilityError, match="temperature at infinity"):
        best_temperature(-margin, votes)
    even = dataclasses.replace(votes, wins_second=votes.wins_first)
    assume((even.counted("drop")[margin != 0] > 0).any())
    with pytest.raises(IdentifiabilityError, match="temperature at infinity"):
        best_temperature(margin, even)


def test_margins_of_0_have_none():
    with pytest.raises(IdentifiabilityError, match="margins of 0"):
        best_temperature([0.0, 0.0], judged([3, 1], [1, 0]))


def test_a_vote_against_a_margin_that_is_nothing_beside_the_others_is_none():
    with pytest.raises(IdentifiabilityError, match="temperature at 0"):
        best_temperature([1e300, 1e-300], judged([3, 0], [0, 1]))


# What enters


def test_ties_are_a_stated_choice():
    votes = judged([6], [2], ties=[4])
    with pytest.raises(DataError, match="ties=4"):
        best_temperature([1.0], votes)
    assert best_temperature([1.0], votes, ties="drop").value == pytest.approx(1 / np.log(3), rel=1e-14)
    assert best_temperature([1.0], votes, ties="half").value == pytest.approx(1 / np.log(2), rel=1e-14)


@pytest.mark.parametrize("margins", [[1.0], 1.0, [[1.0, 2.0]], ["a", "b"], [[1.0], [1.0, 2.0]]])
def test_other_shapes_and_words_are_refused(margins):
    with pytest.raises(DataError, match="margin"):
        best_temperature(margins, judged([2, 2], [1, 1]))


def test_the_first_margin_that_is_not_finite_is_named():
    with pytest.raises(DataError, match=r"comparison=2, margin=nan"):
        best_temperature([1.0, np.inf, np.nan, np.nan], judged([2, 0, 2, 2], [1, 0, 1, 1]))


def test_no_votes_are_refused():
    with pytest.raises(DataError, match="no comparison counts a vote"):
        best_temperature([1.0], judged([0], [0]))
