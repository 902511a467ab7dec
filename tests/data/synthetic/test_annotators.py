"""Laws of the simulated people: they choose as Bradley-Terry says, and each dial does what it says."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmjax.data.synthetic import World
from rmjax.data.synthetic.annotators import judge, taste
from rmjax.votes import CANNOT_JUDGE, FIRST, SECOND, TIE

ALWAYS = World(tie=0.0, abstention=0.0, flip_rate=0.0, votes=5)
seeds = st.integers(0, 2**31 - 1)


def session(world, reward=(0.0, 1.0, -0.5, 2.0), wording=(0, 1, 2, 1), prompts=300):
    """Many prompts whose answers have these rewards: margins [P, C], flips [P, C], votes [P, C, V]."""
    judged = [judge(world, index, np.array(reward), np.array(wording)) for index in range(prompts)]
    return tuple(np.stack([getattr(j, name) for j in judged]) for name in ("margin", "flipped", "value"))


def within(count, trials, chance):
    """A binomial count is where 4 standard errors put it."""
    return abs(count - trials * chance) <= 4 * np.sqrt(trials * chance * (1 - chance)) + 1e-9


@given(seeds, st.floats(0.2, 5), st.floats(0, 2))
def test_taste_is_antisymmetric_and_without_a_cycle_a_difference(seed, temperature, cycle):
    rng = np.random.default_rng(seed)
    reward, wording = rng.normal(size=8), rng.integers(0, 3, 8)
    first, second = rng.integers(0, 8, (2, 50))
    world = World(temperature=temperature, cycle=cycle)
    there, back = taste(world, reward, wording, first, second), taste(world, reward, wording, second, first)
    np.testing.assert_array_equal(there, -back)
    plain = taste(World(temperature=temperature), reward, wording, first, second)
    np.testing.assert_allclose(plain, (reward[first] - reward[second]) / temperature, rtol=1e-15)
    assert set(np.round(np.abs(there - plain), 9)) <= {0.0, round(cycle, 9)}


@pytest.mark.parametrize(
    "dials", [{}, {"temperature": 0.5}, {"temperature": 3.0}, {"tie": 1.0, "abstention": 0.2}, {"cycle": 0.7}]
)
def test_who_decides_chooses_the_first_with_the_stated_probability(dials):
    """For each margin that occurs; ties and abstentions take votes away and leave the odds of the others."""
    margin, _, value = session(dataclasses.replace(ALWAYS, **dials))
    for d in np.unique(margin):
        votes = value[margin == d]
        decided = np.isin(votes, (FIRST, SECOND)).sum()
        assert within((votes == FIRST).sum(), decided, 1 / (1 + np.exp(-d)))


def test_ties_follow_davidson_and_abstentions_look_at_nothing():
    world = dataclasses.replace(ALWAYS, tie=0.8, abstention=0.25)
    margin, _, value = session(world)
    for d in np.unique(margin):
        votes = value[margin == d]
        assert within((votes == CANNOT_JUDGE).sum(), votes.size, 0.25)
        judged = (votes != CANNOT_JUDGE).sum()
        assert within((votes == TIE).sum(), judged, 0.8 / (0.8 + np.exp(d / 2) + np.exp(-d / 2)))


def test_sides_are_exchanged_at_the_stated_rate_and_only_decisions_move():
    world = dataclasses.replace(ALWAYS, flip_rate=0.3, tie=0.5, abstention=0.1)
    _, flipped, value = session(world)
    assert within(flipped.sum(), flipped.size, 0.3)
    _, none, plain = session(dataclasses.replace(world, flip_rate=0.0))
    assert not none.any()
    np.testing.assert_array_equal(value[~flipped], plain[~flipped])
    exchanged = np.array([SECOND, FIRST, TIE, CANNOT_JUDGE])
    np.testing.assert_array_equal(value[flipped], exchanged[plain[flipped]])


@pytest.mark.parametrize(
    ("dial", "low", "high", "counted"),
    [
        ("flip_rate", 0.1, 0.4, lambda margin, flipped, value: flipped),
        ("abstention", 0.1, 0.4, lambda margin, flipped, value: value == CANNOT_JUDGE),
        ("tie", 0.2, 2.0, lambda margin, flipped, value: value == TIE),
        # A higher temperature turns votes against the reward, and never back.
        (
            "temperature",
            0.5,
            4.0,
            lambda margin, flipped, value: np.where(margin[..., None] > 0, value, 1 - value) == 1,
        ),
    ],
)
def test_a_dial_that_is_turned_up_only_adds(dial, low, high, counted):
    """The random numbers stay the same, so this holds vote by vote and not only on average."""
    few = counted(*session(dataclasses.replace(ALWAYS, **{dial: low})))
    many = counted(*session(dataclasses.replace(ALWAYS, **{dial: high})))
    assert (few <= many).all()
    assert few.sum() < many.sum()


def test_a_circle_of_tastes_makes_circular_majorities_and_none_without():
    """Three answers of equal reward in three wordings: at strength 2 each beats the next with probability .88."""

    def circles(cycle):
        world = dataclasses.replace(ALWAYS, cycle=cycle, votes=11)
        found = 0
        for index in range(40):
            j = judge(world, index, np.zeros(3), np.arange(3))
            ahead = np.sign((j.value == FIRST).sum(axis=1) - (j.value == SECOND).sum(axis=1))
            beats = {(a, b) if lead > 0 else (b, a) for a, b, lead in zip(j.first, j.second, ahead)}
            found += beats == {(0, 1), (1, 2), (2, 0)}
        return found

    assert circles(2.0) >= 38
    assert circles(0.0) <= 15  # by chance: one of 8 outcomes of three coins
    margin, _, _ = session(World(cycle=2.0), reward=np.zeros(3), wording=np.arange(3), prompts=1)
    assert set(np.abs(margin).ravel()) == {2.0}


def test_nobody_judges_a_pair_twice_and_sides_are_in_random_order():
    j = [judge(World(votes=12), index, np.arange(4.0), np.zeros(4, int)) for index in range(100)]
    assert all(len(set(row)) == 12 for one in j for row in one.annotator)
    assert all({frozenset(pair) for pair in zip(one.first, one.second)} for one in j)
    swapped = sum((one.first > one.second).sum() for one in j)
    assert within(swapped, 600, 0.5)


def test_the_coldest_and_the_hottest_world():
    """No overflow, and votes that are certain or a coin."""
    margin, _, value = session(dataclasses.replace(ALWAYS, temperature=1e-6), prompts=20)
    assert (value[margin > 0] == FIRST).all()
    assert (value[margin < 0] == SECOND).all()
    _, _, value = session(dataclasses.replace(ALWAYS, temperature=1e9))
    assert within((value == FIRST).sum(), value.size, 0.5)
