"""Laws of single judgements: nothing is lost in counting, and an abstention is no vote."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmjax import Votes
from rmjax.errors import DataError
from rmjax.votes import CANNOT_JUDGE, FIRST, SECOND, TIE

ITEMS = 6
PAIRS = (np.arange(ITEMS) * 2, np.arange(ITEMS) * 2 + 1, np.arange(2 * ITEMS) // 2)


@st.composite
def ballots(draw, values=(FIRST, SECOND, TIE, CANNOT_JUDGE)):
    size = draw(st.integers(0, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return Votes.build(rng.integers(0, ITEMS, size), rng.integers(0, 5, size), rng.choice(values, size))


def arrays(c):
    return np.stack([c.wins_first, c.wins_second, c.ties])


@given(ballots())
def test_counting_loses_no_vote(votes):
    counts = votes.counts(ITEMS)
    assert counts.shape == (ITEMS, 4)
    assert counts.sum() == len(votes.item)
    for item in range(ITEMS):
        for value in range(4):
            assert counts[item, value] == sum((votes.item == item) & (votes.value == value))


@given(ballots(), st.randoms(use_true_random=False))
def test_the_order_of_votes_and_who_cast_them_do_not_count(votes, random):
    order = list(range(len(votes.item)))
    random.shuffle(order)
    shuffled = Votes.build(votes.item[order], votes.annotator[order] + 1, votes.value[order])
    np.testing.assert_array_equal(shuffled.counts(ITEMS), votes.counts(ITEMS))


@given(ballots())
def test_pooling_keeps_every_vote_and_an_abstention_is_none(votes):
    pooled = votes.comparisons(*PAIRS)
    np.testing.assert_array_equal(arrays(pooled).T, votes.counts(ITEMS)[:, :CANNOT_JUDGE])
    judged = votes.value != CANNOT_JUDGE
    without = Votes.build(votes.item[judged], votes.annotator[judged], votes.value[judged])
    np.testing.assert_array_equal(arrays(without.comparisons(*PAIRS)), arrays(pooled))


@given(ballots())
def test_a_majority_is_one_vote_for_the_side_with_more(votes):
    pooled = arrays(votes.comparisons(*PAIRS, pool="majority"))
    for item, (a, b, tied, _) in enumerate(votes.counts(ITEMS)):
        want = np.zeros(3) if a + b + tied == 0 else np.eye(3)[0 if a > b else 1 if b > a else 2]
        np.testing.assert_array_equal(pooled[:, item], want)


@given(ballots())
def test_exchanging_sides_exchanges_wins_under_every_rule(votes):
    flip = np.array([SECOND, FIRST, TIE, CANNOT_JUDGE])
    other = Votes.build(votes.item, votes.annotator, flip[votes.value])
    for pool in ("count", "majority"):
        np.testing.assert_array_equal(
            arrays(other.comparisons(*PAIRS, pool=pool)), arrays(votes.comparisons(*PAIRS, pool=pool))[[1, 0, 2]]
        )


@pytest.mark.parametrize(
    ("item", "annotator", "value", "message"),
    [
        ([0, 1], [0], [FIRST, FIRST], "one length"),
        ([[0]], [[0]], [[FIRST]], "one length"),
        ([0, 0], [0, 1], [FIRST, 4], "vote=1, item=0, annotator=1, value=4"),
        ([0, 0], [0, 1], [FIRST, np.nan], "vote=1, item=0, annotator=1, value=nan"),
        ([0], [0], [0.5], "value=0.5"),
        ([-1], [0], [FIRST], "item=-1"),
        ([0], [-2], [FIRST], "annotator=-2"),
    ],
)
def test_a_vote_that_is_none_is_refused(item, annotator, value, message):
    with pytest.raises(DataError, match=message):
        Votes.build(item, annotator, value)


def test_pooling_refuses_what_comparisons_refuse():
    votes = Votes.build([0], [0], [FIRST])
    with pytest.raises(DataError, match="joins two prompts"):
        votes.comparisons([0], [1], prompt=[0, 1])
