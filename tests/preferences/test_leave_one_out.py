"""Laws of agreement with the others: one vote after the other, and what does not count."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmjax import Votes
from rmjax.diagnostics import vote_agreement
from rmjax.errors import DataError, SampleSizeError
from rmjax.preferences.leave_one_out import leave_one_out_agreement
from rmjax.votes import CANNOT_JUDGE, FIRST, SECOND, TIE

ITEMS, SIZE = 12, 90
seeds = st.integers(0, 2**32 - 1)
SIGN = {FIRST: 1, SECOND: -1}


def ballots(seed):
    """Votes of all four kinds, with annotators who vote several times on an item and some who never decide."""
    rng = np.random.default_rng(seed)
    item, annotator = rng.integers(0, ITEMS, SIZE), rng.choice([3, 4, 5, 8, 9, 11], SIZE)
    value = np.where(rng.random(SIZE) < 0.6, item % 2, rng.integers(0, 4, SIZE))
    item[:5], annotator[:5], value[:5] = [0, 0, 0, 0, 1], [3, 4, 5, 99, 3], [0, 0, 1, TIE, 0]
    return Votes.build(item, annotator, value)


def by_loops(votes):
    """(annotator, item, agrees) of every vote that can be held against a majority of others, and how many cannot."""
    rows = list(zip(votes.item.tolist(), votes.annotator.tolist(), votes.value.tolist(), strict=True))
    found, undecided = [], 0
    for item, who, value in rows:
        if value in SIGN:
            lead = sum(SIGN.get(v, 0) for i, a, v in rows if i == item and a != who)
            undecided += lead == 0
            if lead:
                found.append((who, item, lead * SIGN[value] > 0))
    return found, undecided


@given(seeds)
def test_shares_are_those_of_one_vote_after_the_other(seed):
    votes = ballots(seed)
    found, undecided = by_loops(votes)
    got = leave_one_out_agreement(votes, resamples=2)
    assert got.annotator.tolist() == sorted(set(votes.annotator.tolist()))
    for a, who in enumerate(got.annotator):
        own = [(item, agrees) for whose, item, agrees in found if whose == who]
        assert got.judged[a] == len(own)
        assert got.agreeing[a] == sum(agrees for _, agrees in own)
        if not own:
            assert np.isnan([got.share[a], got.standard_error[a]]).all()
            continue
        share = got.agreeing[a] / len(own)
        assert got.share[a] == share
        items = sorted({item for item, _ in own})
        residual = [sum(agrees - share for i, agrees in own if i == item) for item in items]
        if len(items) > 1 and np.sum(np.square(residual)) > 1e-9:
            error = np.sqrt(len(items) / (len(items) - 1) * np.sum(np.square(residual))) / len(own)
            assert got.standard_error[a] == pytest.approx(error)
        else:
            assert np.isnan(got.standard_error[a])
    assert got.pooled == pytest.approx(np.mean([agrees for *_, agrees in found]))
    assert (got.ties, got.abstentions) == ((votes.value == TIE).sum(), (votes.value == CANNOT_JUDGE).sum())
    assert got.undecided == undecided
    assert got.ties + got.abstentions + got.undecided + got.judged.sum() == SIZE


def same(one, other):
    for field in dataclasses.fields(one):
        np.testing.assert_array_equal(getattr(one, field.name), getattr(other, field.name))


@given(seeds)
def test_sides_of_an_item_do_not_count_and_neither_do_ties_and_abstentions(seed):
    votes = ballots(seed)
    got = leave_one_out_agreement(votes, resamples=50)
    flipped = np.random.default_rng(seed).random(ITEMS) < 0.5
    value = np.where(flipped[votes.item] & (votes.value <= SECOND), 1 - votes.value, votes.value)
    same(leave_one_out_agreement(Votes.build(votes.item, votes.annotator, value), resamples=50), got)
    decided = leave_one_out_agreement(votes.take(votes.value <= SECOND), resamples=50)
    assert (decided.pooled, decided.lower, decided.upper) == (got.pooled, got.lower, got.upper)
    kept = np.isin(got.annotator, decided.annotator)
    np.testing.assert_array_equal(got.share[kept], decided.share)


@given(seeds)
def test_an_annotator_alone_is_no_company_for_themselves(seed):
    """However often one votes on an item, their own votes are no majority for any of them."""
    votes = ballots(seed)
    rng = np.random.default_rng(seed)
    alone = rng.integers(0, 2, 20)
    more = Votes.build(
        np.append(votes.item, np.full(20, ITEMS)),
        np.append(votes.annotator, np.full(20, 3)),
        np.append(votes.value, alone),
    )
    got, before = leave_one_out_agreement(more, resamples=2), leave_one_out_agreement(votes, resamples=2)
    np.testing.assert_array_equal(got.agreeing, before.agreeing)
    assert got.undecided == before.undecided + 20


@given(seeds)
def test_pooled_it_is_the_figure_of_the_counts_where_nobody_votes_twice(seed):
    rng = np.random.default_rng(seed)
    item = np.repeat(np.arange(ITEMS), 5)
    votes = Votes.build(item, np.tile(np.arange(5), ITEMS), np.where(rng.random(60) < 0.7, 0, rng.integers(0, 4, 60)))
    got = leave_one_out_agreement(votes)
    figure = vote_agreement(votes.counts(ITEMS), np.arange(ITEMS)).vote_and_rest
    assert got.pooled == pytest.approx(figure.value)
    assert got.judged.sum() == figure.count


@given(seeds)
def test_the_interval_is_of_items_drawn_anew(seed):
    votes = ballots(seed)
    found, _ = by_loops(votes)
    items = sorted({item for _, item, _ in found})
    totals = np.array(
        [[sum(x for _, i, x in found if i == item), sum(i == item for _, i, _ in found)] for item in items]
    )
    drawn = np.random.default_rng(3).multinomial(len(items), np.full(len(items), 1 / len(items)), 30) @ totals
    got = leave_one_out_agreement(votes, resamples=30, seed=3, confidence=0.8)
    assert (got.lower, got.upper) == pytest.approx(tuple(np.quantile(drawn[:, 0] / drawn[:, 1], [0.1, 0.9])))
    assert 0 <= got.lower <= got.upper <= 1
    assert got.confidence == 0.8


def test_where_items_do_not_differ_there_is_no_interval():
    got = leave_one_out_agreement(Votes.build(np.repeat([0, 1], 3), np.tile([0, 1, 2], 2), np.repeat([0, 1], 3)))
    assert got.pooled == 1
    assert np.isnan([got.lower, got.upper, *got.standard_error]).all()


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        (([0, 0], [1, 1], [0, 0]), {}, SampleSizeError, "votes=2, decided=2"),
        (([0, 1, 1], [1, 2, 3], [0, 0, TIE]), {}, SampleSizeError, "votes=3, decided=2"),
        (([], [], []), {}, SampleSizeError, "votes=0"),
        (([0, 0], [1, 2], [0, 0]), {"confidence": 2}, DataError, "confidence=2"),
        (([0, 0], [1, 2], [0, 0]), {"resamples": 0}, DataError, "resamples=0"),
    ],
)
def test_votes_without_company_are_refused(arguments, options, error, message):
    with pytest.raises(error, match=message):
        leave_one_out_agreement(Votes.build(*arguments), **options)
