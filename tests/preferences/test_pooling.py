"""Laws of the test of votes alike: exact on every arrangement, of its size under the null, and able to see."""

import itertools

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rmjax import Votes
from rmjax.errors import DataError, SampleSizeError
from rmjax.preferences.pooling import homogeneity
from rmjax.votes import CANNOT_JUDGE, SECOND

AGAINST = ["rest", "pairs", "side"]
seeds = st.integers(0, 2**32 - 1)
against = st.sampled_from(AGAINST)
FEW = 19  # arrangements where p does not matter


def few(seed):
    """Three items of three or four votes of three groups: 1,000 arrangements or so."""
    rng = np.random.default_rng(seed)
    item = np.repeat([4, 0, 2], [4, 3, 4])
    return Votes.build(item, np.arange(11), rng.choice(3, 11, p=[0.5, 0.3, 0.2]), group=rng.integers(0, 3, 11))


def attempt(votes, **options):
    try:
        return homogeneity(votes, "group", **({"arrangements": FEW} | options))
    except SampleSizeError:
        assume(False)


def arrangements(votes):
    """All ways to hand out the votes within items, every different one once."""
    each = [sorted(set(itertools.permutations(votes.value[votes.item == i]))) for i in np.unique(votes.item)]
    where = np.concatenate([np.flatnonzero(votes.item == i) for i in np.unique(votes.item)])
    for choice in itertools.product(*each):
        value = np.empty(len(where), int)
        value[where] = np.concatenate(choice)
        yield value


def one_by_one(votes, against):
    """The parts of a statistic, by loops: equal votes of levels, or votes of a level for each kind."""
    size = len(votes.item)
    pairs = [(u, v) for u in range(size) for v in range(size) if u < v and votes.item[u] == votes.item[v]]
    part = dict.fromkeys(itertools.product(range(3), range(3)), 0)
    for u, v in pairs:
        low, high = sorted((votes.group[u], votes.group[v]))
        equal = int(votes.value[u] == votes.value[v])
        if against == "pairs":
            part[low, high] += equal
        elif against == "rest" and low != high:
            part[low, 0] += equal
            part[high, 0] += equal
    if against == "side":
        for level, kind in zip(votes.group, votes.value, strict=True):
            part[level, kind] += 1
    return np.array(list(part.values()), float)


def small_enough(votes):
    return (
        np.prod([len(set(itertools.permutations(votes.value[votes.item == i]))) for i in np.unique(votes.item)]) < 150
    )


@pytest.mark.parametrize("against", AGAINST)
@given(seed=seeds)
def test_the_statistic_is_that_of_all_arrangements_one_by_one(against, seed):
    """Means and covariances over every arrangement; the mean of the statistic is its degrees of freedom."""
    votes = few(seed)
    assume(small_enough(votes))
    got = attempt(votes, against=against)
    parts = np.array(
        [
            one_by_one(Votes.build(votes.item, votes.annotator, value, group=votes.group), against)
            for value in arrangements(votes)
        ]
    )
    gap = parts - parts.mean(axis=0)
    if against == "side":
        covariance = gap.T @ gap / len(gap)
        inverse = np.linalg.pinv(covariance, rcond=1e-9, hermitian=True)
        rank = np.linalg.matrix_rank(covariance, tol=1e-9 * np.trace(covariance), hermitian=True)
        statistic = np.einsum("bi,ij,bj->b", gap, inverse, gap)
    else:
        variance = gap.var(axis=0)
        moves = variance > 1e-9
        rank = moves.sum()
        statistic = (gap[:, moves] ** 2 / variance[moves]).sum(axis=1)
    assert got.degrees_of_freedom == rank
    assert statistic.mean() == pytest.approx(rank)
    mine = one_by_one(votes, against)
    here = int(np.flatnonzero((parts == mine).all(axis=1))[0])
    assert got.statistic == pytest.approx(statistic[here], rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("against", AGAINST)
@pytest.mark.parametrize("seed", [2, 9])
def test_the_p_value_is_the_share_of_arrangements_that_are_as_far(seed, against):
    """Within 4 standard errors of 4,999 draws, and one draw."""
    votes = few(seed)
    got = homogeneity(votes, "group", against=against, arrangements=4999, seed=1)
    every = [Votes.build(votes.item, votes.annotator, value, group=votes.group) for value in arrangements(votes)]
    statistics = [homogeneity(one, "group", against=against, arrangements=FEW).statistic for one in every]
    share = np.mean(np.array(statistics) >= got.statistic * (1 - 1e-9))
    assert abs(got.p_value - share) <= 4 * np.sqrt(share * (1 - share) / 4999) + 1 / 5000


def world(rng, items=40, per_item=4, annotators=8):
    """Sparse votes: every item is judged by a few of the annotators, and items differ; two groups of annotators."""
    who = np.argsort(rng.random((items, annotators)), axis=1)[:, :per_item]
    share = rng.beta(0.8, 0.8, (items, 1))
    value = np.where(rng.random(who.shape) < share, 0, 1)
    return np.repeat(np.arange(items), per_item), who, value, share


@pytest.mark.parametrize("by", ["annotator", "group"])
@pytest.mark.parametrize("against", AGAINST)
def test_where_votes_are_alike_it_errs_as_often_as_it_says(by, against):
    """200 worlds without a difference: p <= 0.1 in a tenth of them, within 4 standard errors, in either direction."""
    rng = np.random.default_rng(11)
    found = []
    for seed in range(200):
        item, who, value, _ = world(rng)
        value = np.where(rng.random(value.shape) < 0.1, rng.integers(2, 4, value.shape), value)
        votes = Votes.build(item, who.ravel(), value.ravel(), group=who.ravel() % 2)
        found.append(homogeneity(votes, by, against=against, arrangements=FEW, seed=seed).p_value)
    assert abs(np.mean(np.array(found) <= 0.1) - 0.1) <= 4 * np.sqrt(0.1 * 0.9 / 200)


def power(seed, alter, by, against, worlds=20):
    """Share of worlds in which a difference is found at 5 %."""
    rng = np.random.default_rng(seed)
    found = []
    for s in range(worlds):
        item, who, value, share = world(rng, items=200)
        value = alter(rng, who, value, share).ravel()
        votes = Votes.build(item, who.ravel(), value, group=who.ravel() % 2, instructions=who.ravel() % 2)
        found.append(homogeneity(votes, by, against=against, arrangements=99, seed=s).p_value <= 0.05)
    return np.mean(found)


def careless(rng, who, value, share):
    """Two of eight annotators judge at random."""
    return np.where(who < 2, rng.integers(0, 2, who.shape), value)


def camps(rng, who, value, share):
    """Even and odd annotators lean to different sides of every item."""
    return (rng.random(who.shape) < np.where(who % 2, 0.75, 0.25) * 1.0).astype(int) ^ (share > 0.5)


def first_seen(rng, who, value, share):
    """Odd annotators choose the first a quarter of the time without looking."""
    return np.where((who % 2 == 1) & (rng.random(who.shape) < 0.25), 0, value)


@pytest.mark.parametrize(
    ("alter", "by", "against"),
    [
        (careless, "annotator", "rest"),
        (camps, "group", "rest"),
        (camps, "group", "pairs"),
        (camps, "annotator", "pairs"),
        (first_seen, "instructions", "side"),
    ],
)
def test_a_difference_is_found_by_the_statistic_that_is_made_for_it(alter, by, against):
    assert power(0, alter, by, against) >= 0.8


def test_no_statistic_sees_everything():
    """Camps that lean to either side as often show no side, and annotators of two camps agree with the rest alike."""
    assert power(1, camps, "group", "side") <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / 20)
    assert power(1, camps, "annotator", "rest") < power(1, camps, "annotator", "pairs") - 0.3


@given(seeds, st.sampled_from(["rest", "pairs"]))
def test_the_sides_of_an_item_do_not_count_against_agreement(seed, against):
    votes = few(seed)
    one = attempt(votes, against=against)
    flip = np.isin(votes.item, [0, 4]) & (votes.value <= SECOND)
    flipped = Votes.build(votes.item, votes.annotator, np.where(flip, 1 - votes.value, votes.value), group=votes.group)
    assert homogeneity(flipped, "group", against=against, arrangements=FEW) == one


@given(seeds)
def test_against_a_side_all_sides_can_be_exchanged(seed):
    votes = few(seed)
    one = attempt(votes, against="side")
    value = np.where(votes.value <= SECOND, 1 - votes.value, votes.value)
    other = attempt(Votes.build(votes.item, votes.annotator, value, group=votes.group), against="side")
    assert other.statistic == pytest.approx(one.statistic, rel=1e-9, abs=1e-9)
    assert other.degrees_of_freedom == one.degrees_of_freedom


@given(seeds, against)
def test_names_order_and_items_that_cannot_tell_change_no_statistic(seed, against):
    """Levels and items renamed, votes shuffled, and unanimous items, items of one level and abstentions added."""
    votes, rng = few(seed), np.random.default_rng(seed)
    one = attempt(votes, against=against)
    item = np.concatenate([rng.permutation(5)[votes.item], [7, 7, 7, 8, 8, 8, 7]])
    group = np.concatenate([5 + rng.permutation(3)[votes.group], [5, 6, 7, 9, 9, 9, 5]])
    value = np.concatenate([votes.value, [1, 1, 1, 0, 1, 0, CANNOT_JUDGE]])
    order = rng.permutation(len(item))
    more = Votes.build(item[order], np.zeros(len(item), int), value[order], group=group[order])
    other = attempt(more, against=against)
    assert other.statistic == pytest.approx(one.statistic, rel=1e-9, abs=1e-9)
    for name in ("degrees_of_freedom", "levels", "items", "votes"):
        assert getattr(other, name) == getattr(one, name)
    assert other.left_out == 1


@given(seeds, against)
def test_a_seed_gives_one_p_value(seed, against):
    votes = few(seed)
    assert attempt(votes, against=against, seed=seed) == attempt(votes, against=against, seed=seed)


def test_batches_are_no_part_of_the_answer(monkeypatch):
    item, who, value, _ = world(np.random.default_rng(0))
    votes = Votes.build(item, who.ravel(), value.ravel())
    whole = homogeneity(votes)
    monkeypatch.setattr("rmjax.preferences.pooling._AT_ONCE", 10_000)
    assert homogeneity(votes) == whole


def test_what_is_pooled_by_choice_can_be_tested_first():
    """The error of pooling names this test, and its remedy works as it stands."""
    item = np.repeat(np.arange(12), 4)
    group = np.tile([0, 0, 1, 1], 12)
    votes = Votes.build(item, np.tile(np.arange(4), 12), group, group=group)
    pairs = (np.arange(12) * 2, np.arange(12) * 2 + 1, np.arange(24) // 2)
    with pytest.raises(DataError, match="group=2") as caught:
        votes.comparisons(*pairs)
    assert 'homogeneity(votes, by="group")' in caught.value.remedy
    assert homogeneity(votes, by="group").p_value == 0.001
    assert votes.comparisons(*pairs, across=("group",)).wins_first.tolist() == [2.0] * 12


def lonely(annotators):
    """Three votes an item, all by different people."""
    return Votes.build(np.arange(3 * annotators) // 3, np.arange(3 * annotators), np.arange(3 * annotators) % 3 // 2)


@pytest.mark.parametrize(
    ("votes", "options", "error", "message"),
    [
        (Votes.build([0, 0], [0, 1], [0, 1]), {}, SampleSizeError, "items_that_can_tell=0, arrangements=1"),
        (Votes.build([0, 0, 0], [0, 1, 2], [0, 1, 1]), {}, SampleSizeError, "items_that_can_tell=1, arrangements=3"),
        (Votes.build([], [], []), {}, SampleSizeError, "items_that_can_tell=0"),
        (Votes.build(np.arange(40) // 2, np.arange(40) % 2, np.arange(40) % 2), {}, SampleSizeError, "three or more"),
        (Votes.build(np.arange(40) // 4, np.repeat(0, 40), np.arange(40) % 2), {}, SampleSizeError, "arrangements=1"),
        (Votes.build(np.zeros(6, int), [0, 1, 1, 1, 1, 1], [0, 0, 0, 1, 1, 1]), {}, SampleSizeError, "arrangements=20"),
        (Votes.build([0], [0], [0]), {"by": "group"}, DataError, "do not say their group"),
        (Votes.build([0], [0], [0]), {"by": "item"}, DataError, "by is a choice"),
        (Votes.build([0], [0], [0]), {"against": "all"}, DataError, "against is a choice"),
        (Votes.build([0], [0], [0]), {"arrangements": 18}, DataError, "arrangements=18"),
        (lonely(1400), {"against": "side"}, DataError, "levels=4200, at_most=1333"),
    ],
)
def test_data_that_cannot_tell_are_refused(votes, options, error, message):
    with pytest.raises(error, match=message):
        homogeneity(votes, **options)
