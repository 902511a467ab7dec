"""Laws of parameters beside the scores: estimates exist exactly where no direction leaves every vote as likely."""

import numpy as np
import pytest
from games import CHAIN, CIRCLE
from hypothesis import given
from hypothesis import strategies as st

from rmjax import Comparisons
from rmjax.errors import IdentifiabilityError
from rmjax.preferences import fit

TIED = ("rao_kupper", "davidson")


@pytest.mark.parametrize("link", TIED)
def test_without_ties_and_with_nothing_else_there_is_no_tie_parameter(link):
    for a, b, t in ((3, 1, 0), (0, 0, 5)):
        c = Comparisons.from_votes([0], [1], [a], [b], prompt=[0, 0], ties=[t])
        with pytest.raises(IdentifiabilityError, match="end of its range"):
            fit(c, link=link)


@pytest.mark.parametrize("link", TIED)
def test_one_side_wins_or_ties_and_the_parameter_runs_away_with_the_score(link):
    """Strongly connected through the ties, and still without a maximum."""
    c = Comparisons.from_votes([0], [1], [3], [0], prompt=[0, 0], ties=[2])
    with pytest.raises(IdentifiabilityError, match="tie parameter would be infinite"):
        fit(c, link=link)


@pytest.mark.parametrize("link", TIED)
def test_a_circle_of_wins_holds_the_tie_parameter(link):
    """No pair was won by both sides; three wins in a circle and a tie are enough."""
    c = Comparisons.from_votes([0, 1, 2], [1, 2, 0], [2, 2, 2], [0, 0, 0], prompt=[0] * 3, ties=[1, 1, 1])
    assert np.abs(fit(c, link=link).scores).max() <= 1e-9
    assert np.isfinite(list(fit(c, link=link).parameters.values())).all()


@pytest.mark.parametrize("link", TIED)
@given(st.integers(0, 2**32 - 1))
def test_a_refusal_is_right_and_so_is_an_estimate(link, seed):
    """Against the likelihood itself: far out along a ridge of the likelihood it is above every finite estimate."""
    rng = np.random.default_rng(seed)
    won = rng.integers(0, 3, (3, 2)) * (rng.random((3, 2)) < 0.6)
    tied = rng.integers(0, 3, 3)
    c = Comparisons.from_votes([0, 1, 0], [1, 2, 2], won[:, 0], won[:, 1], prompt=[0] * 3, ties=tied)
    try:
        estimate = fit(c, link=link)
    except IdentifiabilityError:
        return
    if np.isfinite(estimate.scores).all():
        votes = won.sum() + tied.sum()
        assert estimate.gradient_norm <= 1e-8 * votes
        assert np.abs(estimate.scores).max() < 50


def test_the_effect_of_position_needs_both_orders():
    """Always shown first in the same pairs, it is part of the score."""
    c = Comparisons.from_votes([0, 1], [1, 2], [3, 2], [1, 2], prompt=[0] * 3, order=[1, 1])
    with pytest.raises(IdentifiabilityError, match="nothing of position"):
        fit(c, position=True)


def test_the_effect_of_position_is_infinite_where_the_first_always_won():
    c = Comparisons.from_pairs([0, 1, 1, 2, 0, 2], [1, 0, 2, 1, 2, 0], prompt=[0] * 3, order=[1] * 6)
    with pytest.raises(IdentifiabilityError, match="effect of position would be infinite"):
        fit(c, position=True)


def test_no_pair_in_both_orders_and_still_an_effect():
    """The orders differ between the pairs of a triangle: the scores cannot imitate that."""
    c = Comparisons.from_votes([0, 1, 2], [1, 2, 0], [5, 4, 6], [3, 4, 2], prompt=[0] * 3, order=[1, 1, 1])
    estimate = fit(c, position=True)
    p = estimate.parameters["position"]
    assert p == pytest.approx((np.log(5 / 3) + 0 + np.log(3)) / 3, abs=1e-9)


def test_where_no_contrast_is_finite_no_parameter_is_asked_for():
    assert fit(CHAIN, position=False, link="thurstone").parameters == {}
    assert np.isfinite(fit(CIRCLE, link="thurstone").scores).all()
