"""Laws of parameters beside the scores: estimates exist exactly where no direction leaves every vote as likely."""

import dataclasses
import functools
import itertools

import jax
import numpy as np
import pytest
from games import CHAIN, CIRCLE
from hypothesis import given
from hypothesis import strategies as st

from rmjax import Comparisons, losses
from rmjax.errors import DataError, IdentifiabilityError
from rmjax.identifiability import identify
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
    """Against the likelihood itself: it is refused where some direction never costs a vote, and nowhere else."""
    rng = np.random.default_rng(seed)
    won = rng.integers(0, 3, (3, 2)) * (rng.random((3, 2)) < 0.6)
    tied = rng.integers(0, 3, 3)
    c = Comparisons.from_votes([0, 1, 0], [1, 2, 2], won[:, 0], won[:, 1], prompt=[0] * 3, ties=tied)
    try:
        estimate = fit(c, link=link)
    except IdentifiabilityError:
        # Where sets of items are fitted apart, directions of all of them are no witness.
        assert not tied.any() or not identify(c, link=link).exists or _some_direction_gains(c, link)
        return
    assert not identify(c, link=link).exists or not _some_direction_gains(c, link)
    if np.isfinite(estimate.scores).all():
        votes = won.sum() + tied.sum()
        assert estimate.gradient_norm <= 1e-8 * votes
        assert np.abs(estimate.scores).max() < 50


PARAMETER = {"rao_kupper": "log_threshold", "davidson": "log_tie"}
# Of three items and a tie parameter; small whole numbers are enough, as the conditions are.
DIRECTIONS = np.array([(0, *d) for d in itertools.product(range(-4, 5), range(-4, 5), range(-2, 3))], np.float32)


@functools.partial(jax.jit, static_argnames="link")
@functools.partial(jax.vmap, in_axes=(0, None, None))
def _loss_at(x, c, link):
    return losses.negative_log_likelihood(x[:3], c, link=link, parameters={PARAMETER[link]: x[3]})[0]


def _some_direction_gains(c, link):
    """Whether the loss, which is convex, falls along a direction and does not rise again however far."""
    start = np.float32([0, 0, 0, 1])
    directions = DIRECTIONS[DIRECTIONS[:, 3] >= 0] if link == "rao_kupper" else DIRECTIONS
    here, far, farther = (_loss_at(start + np.float32(t) * directions, c, link) for t in (0, 30, 60))
    # A vote that gets less likely costs at least half a nat a step, 15 in 30 steps; float32 rounds far less.
    return bool(((far < here - 1e-3) & (farther <= far + 0.1)).any())


@pytest.mark.parametrize("link", TIED)
@given(st.integers(0, 2**32 - 1))
def test_a_ridge_holds_the_tie_parameter_wherever_something_tied_and_something_won(link, seed):
    """Scores cannot run away under it, and no tie parameter makes both a tie and a win more likely for ever."""
    rng = np.random.default_rng(seed)
    won = rng.integers(0, 3, (3, 2)) * (rng.random((3, 2)) < 0.3)
    tied = rng.integers(0, 2, 3)
    won[0, 0] += 1
    tied[rng.integers(3)] += 1
    c = Comparisons.from_votes([0, 1, 0], [1, 2, 2], won[:, 0], won[:, 1], prompt=[0] * 3, ties=tied)
    estimate = fit(c, link=link, ridge=1.0)
    assert np.isfinite([*estimate.scores, *estimate.parameters.values()]).all()
    assert estimate.gradient_norm <= 1e-8 * (won.sum() + tied.sum())


def test_a_penalty_on_scores_that_never_lost_leaves_the_effect_of_position():
    """3 of 3 in either order: both rows say the same of the score, and nothing of the order."""
    c = Comparisons.from_votes([0, 0], [1, 1], [3, 3], [0, 0], prompt=[0, 0], order=[1, -1])
    reduced, held = fit(c, position=True, bias_reduction=True), fit(c, position=True, ridge=1.0)
    # Two rows and two unknowns: every row has half a vote more for either side.
    assert reduced.contrast(0, 1).value == pytest.approx(np.log(3.5 / 0.5), abs=1e-9)
    margin = held.contrast(0, 1).value
    assert 6 / (1 + np.exp(margin)) == pytest.approx(margin / 2, abs=1e-9)
    for estimate in (reduced, held):
        assert estimate.parameters["position"] == pytest.approx(0, abs=1e-9)


def test_a_ridge_on_scores_holds_no_effect_of_position():
    always = Comparisons.from_pairs([0, 1, 1, 2, 0, 2], [1, 0, 2, 1, 2, 0], prompt=[0] * 3, order=[1] * 6)
    with pytest.raises(IdentifiabilityError, match="the effect of position would be infinite"):
        fit(always, position=True, ridge=1.0)
    # One pair in one order: what its score does, the order does as well, whatever the scores cost.
    aliased = Comparisons.from_votes([0], [1], [3], [1], prompt=[0, 0, 0], order=[1])
    with pytest.raises(IdentifiabilityError, match="nothing of position"):
        fit(aliased, position=True, ridge=1.0)


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


@pytest.mark.parametrize("link", ["thurstone", *TIED])
def test_where_no_contrast_is_finite_no_parameter_is_asked_for(link):
    """And none is told: a start is no estimate."""
    for c in (CHAIN, Comparisons.from_pairs([], [], prompt=[0, 0], order=[], cluster=[])):
        c = dataclasses.replace(c, order=np.zeros(c.num_comparisons, np.float32))
        estimate = fit(c, link=link, position=True)
        assert estimate.parameters == {}
        with pytest.raises(DataError, match="name"):
            estimate.parameter_error("log_tie")
    assert np.isfinite(fit(CIRCLE, link="thurstone").scores).all()


def test_what_no_vote_counts_for_has_no_position():
    """The one comparison has weight 0: a ridge holds the scores, and nothing holds the effect of the order."""
    none = Comparisons.from_votes([0], [1], [1], [1], [0, 0], order=[1], weight=[0.0])
    with pytest.raises(IdentifiabilityError, match="say nothing of position"):
        fit(none, position=True, ridge=1.0)
