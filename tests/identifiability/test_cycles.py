"""Laws of the best scalar accuracy: exact for small sets joined in circles, an interval beyond."""

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmjax import Comparisons, losses
from rmjax.errors import DataError, SampleSizeError
from rmjax.identifiability.cycles import _packing, best_scalar_accuracy
from rmjax.identifiability.tally import tally
from rmjax.preferences.published import BASEBALL

ITEMS = 7
ALL = np.array(list(itertools.combinations(range(ITEMS), 2)))
ORDERS = np.array(list(itertools.permutations(range(ITEMS))))
seeds = st.integers(0, 2**32 - 1)
CIRCLE = Comparisons.from_votes([0, 1, 2], [1, 2, 0], [1, 1, 1], [0, 0, 0], prompt=[0, 0, 0])


@st.composite
def votes(draw, items=ITEMS):
    """Quarters of votes, on few or all pairs; a win matrix."""
    rng = np.random.default_rng(draw(seeds))
    wins = rng.integers(0, 9, (items, items)) / 4 * (rng.random((items, items)) < draw(st.sampled_from([0.2, 0.5, 1])))
    wins[0, 1] += 0.25
    return wins


def brute_force(wins):
    """The best of all orders: every item in front of another takes the votes of that one side."""
    rank = np.argsort(ORDERS, axis=1)
    agree = np.zeros(len(ORDERS))
    for i, j in itertools.permutations(range(ITEMS), 2):
        agree += wins[i, j] * (rank[:, i] < rank[:, j])
    return agree.max() / (wins.sum() - np.trace(wins))


def accuracy(wins, order):
    """Votes that an order agrees with, by a loop over pairs."""
    return sum(wins[i, j] for i, j in itertools.combinations(order, 2)) / (wins.sum() - np.trace(wins))


@given(votes())
def test_the_exact_value_is_that_of_brute_force(wins):
    best = best_scalar_accuracy(Comparisons.from_wins(wins))
    assert best.exact
    assert best.lower == best.upper == pytest.approx(brute_force(wins), rel=1e-14)
    assert best.votes == wins.sum() - np.trace(wins)


@given(votes(), st.sampled_from([0, 3]))
def test_the_bounds_hold_the_exact_value(wins, exact_items):
    """Insertion and packing, in place of subsets."""
    best = best_scalar_accuracy(Comparisons.from_wins(wins), exact_items=exact_items)
    exact = brute_force(wins)
    assert best.lower - 1e-14 <= exact <= best.upper + 1e-14
    assert best.upper <= best.majority + 1e-14
    assert best.exact == (best.lower == best.upper)


@given(votes(), st.sampled_from([0, 16]))
def test_the_order_attains_the_lower_end_and_scores_along_it_too(wins, exact_items):
    c = Comparisons.from_wins(wins)
    best = best_scalar_accuracy(c, exact_items=exact_items)
    judged = np.unique([c.first, c.second])
    assert sorted(best.order.tolist()) == judged.tolist()
    order = [*best.order.tolist(), *set(range(ITEMS)).difference(judged)]
    assert accuracy(wins, order) == pytest.approx(best.lower, rel=1e-14)
    scores = np.zeros(ITEMS, np.float32)
    scores[best.order] = -np.arange(len(best.order))
    d = scores[c.first] - scores[c.second]
    agree = (c.wins_first * (d > 0) + c.wins_second * (d < 0)).sum()
    assert agree / best.votes == pytest.approx(best.lower, rel=1e-6)


@given(votes(), seeds)
def test_no_move_of_one_item_betters_the_order_of_an_interval(wins, seed):
    """What insertion promises, checked by moving every item to every place."""
    order = best_scalar_accuracy(Comparisons.from_wins(wins), exact_items=0).order.tolist()
    here = accuracy(wins, order)
    for item in order:
        others = [o for o in order if o != item]
        for place in range(len(order)):
            assert accuracy(wins, [*others[:place], item, *others[place:]]) <= here + 1e-12


@given(votes())
def test_circles_that_share_no_vote_cost_no_more_than_the_best_order(wins):
    """The packing alone, which no good order props up: below the cost of the best of all orders."""
    gap = np.maximum(wins - wins.T, 0)
    beats, beaten = np.nonzero(gap)
    packed = _packing(beats, beaten, gap[beats, beaten], ITEMS, against=np.inf)
    best = brute_force(wins) * (wins.sum() - np.trace(wins))
    majority = np.triu(np.maximum(wins, wins.T), 1).sum()
    assert 0 <= packed <= majority - best + 1e-12


def test_a_square_alone_costs_its_smallest_majority():
    packed = _packing(np.arange(4), np.array([1, 2, 3, 0]), np.array([2.0, 1.0, 3.0, 5.0]), 4, against=np.inf)
    assert packed == 1


@given(votes(), seeds)
def test_no_scores_are_above_the_upper_end(wins, seed):
    """Ties of scores get half of the votes of their pair."""
    best = best_scalar_accuracy(Comparisons.from_wins(wins), exact_items=0)
    rng = np.random.default_rng(seed)
    for scores in rng.integers(0, 4, (20, ITEMS)):
        sign = np.sign(scores[:, None] - scores[None])
        agree = (wins * (1 + sign) / 2 * (1 - np.eye(ITEMS))).sum() / best.votes
        assert agree <= best.upper + 1e-14


@given(votes(), seeds)
def test_relabelling_changes_no_exact_value(wins, seed):
    new = np.random.default_rng(seed).permutation(ITEMS)
    one, two = (best_scalar_accuracy(Comparisons.from_wins(w)) for w in (wins, wins[np.ix_(new, new)]))
    assert one.lower == pytest.approx(two.lower, rel=1e-14)
    assert one.largest_component == two.largest_component


@given(seeds)
def test_majorities_without_a_circle_cost_nothing_however_many(seed):
    """Sixty items, far more than subsets can hold; majorities run down a hidden order."""
    rng = np.random.default_rng(seed)
    hidden = rng.permutation(60)
    i, j = np.triu_indices(60, 1)
    kept = rng.random(len(i)) < 0.3
    i, j = i[kept], j[kept]
    lost = rng.integers(0, 3, len(i))
    won = lost + rng.integers(0, 3, len(i))
    won[0] += 1
    c = Comparisons.from_votes(hidden[i], hidden[j], won, lost, np.zeros(60, int))
    best = best_scalar_accuracy(c)
    assert best.exact
    assert best.largest_component == 1
    assert best.lower == best.majority == pytest.approx(won.sum() / (won + lost).sum())
    rank = np.argsort(best.order)
    at = np.full(60, -1)
    at[np.sort(best.order)] = rank
    assert (at[hidden[i]] < at[hidden[j]])[won > lost].all()


@given(seeds)
def test_large_sets_joined_in_circles_have_an_interval(seed):
    """Noisy votes of forty items: above the order of the truth, below the majorities."""
    rng = np.random.default_rng(seed)
    i, j = np.triu_indices(40, 1)
    won = rng.binomial(5, 0.65, len(i))
    best = best_scalar_accuracy(Comparisons.from_votes(i, j, won, 5 - won, np.zeros(40, int)))
    assert best.largest_component > 16
    assert won.sum() / (5 * len(i)) - 0.01 <= best.lower <= best.upper < best.majority


@pytest.mark.parametrize("length", [3, 4, 9, 30])
@pytest.mark.parametrize("exact_items", [0, 16])
def test_one_circle_of_any_length_costs_its_smallest_majority(length, exact_items):
    """By circles of three and longer ones, by subsets and by insertion; a tail hangs from it, and one leads in."""
    items = np.arange(length)
    votes = 3 + items % 4
    first, second = [*items, length, 1], [*(items + 1) % length, 0, length + 1]
    c = Comparisons.from_votes(first, second, [*votes, 9, 9], np.zeros(length + 2), np.zeros(length + 2, int))
    best = best_scalar_accuracy(c, exact_items=exact_items)
    assert best.exact
    assert best.largest_component == length
    assert best.lower == pytest.approx(1 - 3 / (votes.sum() + 18), rel=1e-14)
    assert best.order[0] == length


@given(votes(items=4), votes(items=4))
def test_prompts_add_up(one, two):
    """Votes agreed with in two prompts are those of either; the order is prompt by prompt."""
    both = np.zeros((8, 8))
    both[:4, :4], both[4:, 4:] = one, two
    best = best_scalar_accuracy(Comparisons.from_wins(both, prompt=np.repeat([5, 2], 4)))
    parts = [best_scalar_accuracy(Comparisons.from_wins(w)) for w in (one, two)]
    assert best.lower * best.votes == pytest.approx(sum(p.lower * p.votes for p in parts), rel=1e-14)
    assert best.order.tolist() == [*(parts[1].order + 4).tolist(), *parts[0].order.tolist()]


# Rock, paper, scissors


@given(st.lists(st.floats(-1e4, 1e4, width=32), min_size=3, max_size=3))
def test_no_scores_agree_with_more_than_two_thirds_of_a_circle_nor_beat_a_coin(scores):
    """However they are drawn: accuracy at most 2/3, and at least log 2 nats a vote."""
    scores = np.array(scores, np.float32)
    d = np.asarray(losses.margins(scores, CIRCLE))
    assert ((d > 0) + (d == 0) / 2).mean() <= 2 / 3
    total, count = losses.negative_log_likelihood(scores, CIRCLE)
    assert total / count >= np.log(2) * (1 - 4 * np.finfo(np.float32).eps)


def test_rock_paper_scissors_has_an_accuracy_of_two_thirds():
    best = best_scalar_accuracy(CIRCLE)
    assert best.lower == best.upper == pytest.approx(2 / 3, rel=1e-15)
    assert best.majority == 1
    assert best.largest_component == 3


def test_baseball_loses_two_votes_to_circles():
    """Agresti 2002, table 10.11. By all 5,040 orders; majorities agree with 178 of 273 games."""
    best = best_scalar_accuracy(Comparisons.from_wins(BASEBALL))
    assert brute_force(BASEBALL) * 273 == pytest.approx(176)
    assert best.lower * 273 == pytest.approx(176)
    assert best.majority * 273 == pytest.approx(178)


# Ties and refusals


def test_a_tie_is_dropped_or_half_lost():
    c = Comparisons.from_votes([0], [1], [3], [1], prompt=[0, 0], ties=[4])
    assert best_scalar_accuracy(c, ties="drop").lower == 0.75
    assert best_scalar_accuracy(c, ties="half").lower == 5 / 8
    with pytest.raises(DataError, match="ties=4"):
        best_scalar_accuracy(c)


def test_a_pair_in_balance_costs_half_and_orders_nothing():
    best = best_scalar_accuracy(Comparisons.from_votes([0, 1], [1, 2], [2, 2], [2, 2], prompt=[0, 0, 0]))
    assert (best.lower, best.majority, best.largest_component, best.exact) == (0.5, 0.5, 1, True)


def test_without_votes_there_is_no_accuracy():
    with pytest.raises(SampleSizeError, match="no votes count"):
        best_scalar_accuracy(dataclasses.replace(CIRCLE, weight=0 * CIRCLE.weight))
    assert tally(CIRCLE).votes.sum() == 3


@pytest.mark.parametrize("exact_items", [-1, 21])
def test_subsets_that_do_not_fit_are_refused(exact_items):
    with pytest.raises(DataError, match="exact_items"):
        best_scalar_accuracy(CIRCLE, exact_items=exact_items)
