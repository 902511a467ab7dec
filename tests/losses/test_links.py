"""Laws of links: one table, the same losses, deletion under every link, and parameters that are checked."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from precision import EPS

from rmjax import Comparisons, losses
from rmjax.errors import DataError
from rmjax.losses.links import LINKS, WITH_TIES, check_link
from rmjax.testing import scored_comparisons

eps = EPS[np.float32]
PARAMETERS = {
    "bradley_terry": {},
    "label_smoothed": {"rate": 0.1},
    "noise_corrected": {"flip_rate": 0.1},
    "lapse": {"rate": 0.1},
    "target_margin": {},
    "thurstone": {},
    "rao_kupper": {"log_threshold": 0.7},
    "davidson": {"log_tie": -0.3},
}
ELEMENTWISE = {
    "bradley_terry": losses.bradley_terry,
    "label_smoothed": lambda d: losses.label_smoothed(d, 0.1),
    "noise_corrected": lambda d: losses.noise_corrected(d, 0.1),
    "lapse": lambda d: losses.lapse(d, 0.1),
    "target_margin": losses.bradley_terry,
    "thurstone": losses.thurstone,
}


def policy(link):
    return None if link in WITH_TIES else "drop"


def summed(link):
    def fun(scores, comparisons, parameters):
        return losses.negative_log_likelihood(scores, comparisons, link=link, parameters=parameters, ties=policy(link))

    return fun


value = {link: jax.jit(summed(link)) for link in LINKS}
slope = {link: jax.jit(jax.grad(summed(link), has_aux=True)) for link in LINKS}
bend = {link: jax.jit(jax.hessian(lambda *x, link=link: summed(link)(*x)[0])) for link in LINKS}


def given_all(link):
    return {**PARAMETERS[link], "position": 0.4}


@st.composite
def worlds(draw):
    """Scores small enough that every loss is far from rounding, with margins to reach and orders."""
    scores, c = draw(scored_comparisons(ties=True))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    target = rng.normal(size=c.num_comparisons).astype(np.float32)
    order = rng.integers(-1, 2, c.num_comparisons).astype(np.float32)
    return np.clip(scores, -4, 4), dataclasses.replace(c, target_margin=target, order=order)


@pytest.mark.parametrize("link", LINKS)
@given(worlds())
def test_the_sum_is_over_votes_of_the_loss_of_each(link, world):
    scores, c = world
    d = scores[c.first] - scores[c.second] + np.float32(0.4) * c.order
    d = d - c.target_margin if link == "target_margin" else d
    if link in WITH_TIES:
        fun, parameter = getattr(losses, link), next(iter(PARAMETERS[link].values()))
        sides = [np.asarray(fun(d, outcome, parameter), np.float64) for outcome in range(3)]
        votes = [c.wins_first, c.wins_second, c.ties]
    else:
        sides = [np.asarray(ELEMENTWISE[link](x), np.float64) for x in (d, -d)]
        votes = [c.wins_first, c.wins_second]
    parts = [np.float64(c.weight) * v * s for v, s in zip(votes, sides)]
    total, count = value[link](scores, c, given_all(link))
    bound = 64 * eps * sum(np.abs(p).sum() + 1 for p in parts)
    assert abs(float(total) - sum(p.sum() for p in parts)) <= bound
    assert float(count) == (np.float64(c.weight) * sum(np.float64(v) for v in votes)).sum()


@pytest.mark.parametrize("link", LINKS)
@given(worlds(), st.sampled_from([np.inf, -np.inf, np.nan]), st.booleans())
def test_weight_0_and_no_vote_are_deletion_in_value_gradient_and_curvature(link, world, bad, by_weight):
    """Also where the deleted score, margin or order is infinite or not a number."""
    scores, c = world
    victim = int(c.first[0])
    touched = (c.first == victim) | (c.second == victim)
    kinds = ["weight"] if by_weight else ["wins_first", "wins_second", "ties"]
    clean = dataclasses.replace(c, **{k: np.where(touched, 0, getattr(c, k)).astype(np.float32) for k in kinds})
    dirty = dataclasses.replace(
        clean,
        target_margin=np.where(touched, bad, c.target_margin).astype(np.float32),
        order=np.where(touched, bad, c.order).astype(np.float32),
    )
    spoilt = scores.copy()
    spoilt[victim] = bad
    for fun in (value, slope, bend):
        for got, want in zip(
            jax.tree.leaves(fun[link](spoilt, dirty, given_all(link))),
            jax.tree.leaves(fun[link](scores, clean, given_all(link))),
            strict=True,
        ):
            np.testing.assert_array_equal(got, want)
            assert np.isfinite(got).all()


@pytest.mark.parametrize("link", LINKS)
@given(worlds())
def test_one_constant_per_prompt_cancels_under_every_link(link, world):
    scores, c = world
    moved = scores + np.repeat([64.0, -32.0, 16.0], 4).astype(np.float32)  # exact up to their last bits
    before, after = (value[link](s, c, given_all(link)) for s in (scores, moved))
    votes = float(before[1])
    assert abs(float(before[0] - after[0])) <= 64 * eps * (70 * votes + abs(float(before[0])) + 1)


@pytest.mark.parametrize("link", LINKS)
@given(worlds())
def test_exchanging_sides_changes_nothing_under_every_link(link, world):
    scores, c = world
    other = dataclasses.replace(
        c,
        first=c.second,
        second=c.first,
        wins_first=c.wins_second,
        wins_second=c.wins_first,
        target_margin=-c.target_margin,
        order=-c.order,
    )
    one, two = (value[link](scores, x, given_all(link)) for x in (c, other))
    assert abs(float(one[0] - two[0])) <= 64 * eps * (abs(float(one[0])) + float(one[1]) + 1)
    gradients = [np.asarray(slope[link](scores, x, given_all(link))[0]) for x in (c, other)]
    assert (np.abs(gradients[0] - gradients[1]) <= 64 * eps * (float(one[1]) * 4 + 1)).all()


@pytest.mark.parametrize("link", WITH_TIES)
def test_a_tie_an_abstention_and_one_half_are_three_things(link):
    tie = Comparisons.from_votes([0], [1], [0], [0], prompt=[0, 0], ties=[1])
    nothing = Comparisons.from_votes([0], [1], [0], [0], prompt=[0, 0])
    half = Comparisons.from_votes([0], [1], [0.5], [0.5], prompt=[0, 0])
    scores = jnp.array([0.5, 0.0])
    told = [tuple(map(float, value[link](scores, c, PARAMETERS[link]))) for c in (tie, nothing, half)]
    assert told[1] == (0.0, 0.0)
    assert told[0][1] == told[2][1] == 1.0
    assert abs(told[0][0] - told[2][0]) > 0.01


def test_parameters_are_differentiable_under_jit():
    c = Comparisons.from_votes([0], [1], [3], [1], prompt=[0, 0], ties=[2], order=[1])

    def fun(parameters, link):
        return summed(link)(jnp.array([0.3, -0.2]), c, parameters)[0]

    for link in LINKS:
        if link != "target_margin":
            both = jax.jit(jax.value_and_grad(functools.partial(fun, link=link)))
            _, told = both(given_all(link))
            assert told.keys() == given_all(link).keys()
            step = 1e-3
            for name in told:
                up, down = (both({**given_all(link), name: given_all(link)[name] + s})[0] for s in (step, -step))
                assert float(told[name]) == pytest.approx(float(up - down) / (2 * step), abs=0.02)


@pytest.mark.parametrize(
    ("link", "parameters", "message"),
    [
        ("logit", {}, "choice of 8"),
        ("lapse", None, "needs other parameters"),
        ("lapse", {"rate": 1.0}, "rate=1.0"),
        ("lapse", {"rate": -0.1}, "rate=-0.1"),
        ("label_smoothed", {"rate": 0.5}, "rate=0.5"),
        ("noise_corrected", {"rate": 0.1}, "flip_rate"),
        ("rao_kupper", {"log_threshold": -1}, "log_threshold=-1"),
        ("davidson", {"log_tie": np.nan}, "log_tie=nan"),
        ("davidson", {"log_tie": "much"}, "log_tie=much"),
        ("davidson", {"log_tie": [1.0, 2.0]}, "log_tie"),
        ("bradley_terry", {"rate": 0.1}, "needs other parameters"),
        ("bradley_terry", {"position": np.inf}, "position=inf"),
    ],
)
def test_links_and_parameters_that_are_none_are_refused(link, parameters, message):
    with pytest.raises(DataError, match=message):
        check_link(link, parameters)


def test_centring_counts_the_votes_of_a_link_and_refuses_what_it_refuses():
    c = Comparisons.from_votes([0], [1], [1], [0], prompt=[0, 0], ties=[1])
    scores = np.ones(2, np.float32)
    for options, message in (
        ({"link": "davidsen"}, "link is a choice"),
        ({"ties": "split"}, "ties is a choice"),
        ({"link": "davidson", "ties": "half"}, "probability for a tie"),
    ):
        with pytest.raises(DataError, match=message):
            losses.centering_penalty(scores, c, **options)


def test_what_a_link_asks_for_has_to_be_there():
    c = Comparisons.from_votes([0], [1], [1], [0], prompt=[0, 0], ties=[1])
    scores = np.zeros(2, np.float32)
    with pytest.raises(DataError, match="probability for a tie"):
        losses.negative_log_likelihood(scores, c, link="davidson", parameters={"log_tie": 0.0}, ties="half")
    with pytest.raises(DataError, match="target_margin"):
        losses.negative_log_likelihood(scores, c, link="target_margin", ties="drop")
    with pytest.raises(DataError, match="shown first"):
        losses.negative_log_likelihood(scores, c, parameters={"position": 0.1}, ties="drop")
    with pytest.raises(DataError, match="contain ties"):
        losses.negative_log_likelihood(scores, c, link="thurstone")
