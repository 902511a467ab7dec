"""Laws of single judgements: nothing is lost in counting, and an abstention is no vote."""

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmjax import Votes, losses
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


def test_no_vote_is_left_out_of_a_count():
    with pytest.raises(DataError, match="vote=1, item=5, items=2"):
        Votes.build([0, 5], [0, 1], [FIRST, SECOND]).counts(2)


def test_pooling_refuses_what_comparisons_refuse():
    votes = Votes.build([0], [0], [FIRST])
    with pytest.raises(DataError, match="joins two prompts"):
        votes.comparisons([0], [1], prompt=[0, 1])


# Groups and versions of the instructions


@st.composite
def labelled(draw):
    size = draw(st.integers(0, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    index = [rng.integers(0, top, size) for top in (ITEMS, 5)]
    return Votes.build(*index, rng.integers(0, 4, size), *rng.integers(0, 3, (2, size)))


FIELDS = ("item", "annotator", "value", "group", "instructions")


def rows(votes):
    return np.stack([getattr(votes, name) for name in FIELDS], axis=1).tolist()


@given(labelled(), st.lists(st.integers(0, 3), max_size=3), st.lists(st.integers(0, 3), max_size=3))
def test_selecting_keeps_the_rows_that_were_asked_for(votes, groups, versions):
    got = votes.select(group=groups, instructions=versions)
    assert rows(got) == [row for row in rows(votes) if row[3] in groups and row[4] in versions]
    assert rows(got) == rows(votes.select(instructions=versions).select(group=groups))
    assert rows(votes.select()) == rows(votes)
    assert rows(votes.select(annotator=2)) == [row for row in rows(votes) if row[1] == 2]


@given(labelled())
def test_pooling_across_groups_and_versions_is_stated(votes):
    """Without a word nothing of two groups or versions is pooled; a stated choice pools it, and every vote counts."""
    several = {name: len(set(getattr(votes, name).tolist())) for name in ("group", "instructions")}
    for across in ((), ("group",), ("instructions",), ("instructions", "group")):
        silent = [name for name in ("group", "instructions") if several[name] > 1 and name not in across]
        if silent:
            with pytest.raises(DataError, match=f"{silent[0]}={several[silent[0]]}") as caught:
                votes.comparisons(*PAIRS, across=across)
            assert "select" in caught.value.remedy
            assert f'homogeneity(votes, by="{silent[0]}")' in caught.value.remedy
        else:
            pooled = votes.comparisons(*PAIRS, across=across)
            np.testing.assert_array_equal(arrays(pooled).T, votes.counts(ITEMS)[:, :CANNOT_JUDGE])


@given(labelled(), st.integers(0, 2))
def test_one_group_and_one_version_are_pooled_without_a_word(votes, which):
    alone = votes.select(group=which, instructions=which)
    np.testing.assert_array_equal(arrays(alone.comparisons(*PAIRS)).T, alone.counts(ITEMS)[:, :CANNOT_JUDGE])


@given(st.integers(0, 50), st.integers(1, 50), st.integers(0, 2**32 - 1))
def test_many_hard_losses_are_one_soft_loss_times_the_votes(wins, more, seed):
    """k of m votes: the sum of m losses is m CE(k/m), in value and gradient, and weighs m and not 1."""
    m = wins + more
    values = np.random.default_rng(seed).permutation(np.repeat([FIRST, SECOND], [wins, more]))
    margin = np.float32(np.random.default_rng(seed).normal(0, 3))
    pooled = Votes.build(np.zeros(m, int), np.arange(m), values).comparisons([0], [1], prompt=[0, 0])
    scores = np.array([margin, 0], np.float32)
    (total, count), gradient = LOSS(scores, pooled)
    d = float(margin)
    want = sum(np.logaddexp(0, -d) if value == FIRST else np.logaddexp(0, d) for value in values)
    slope = sum(1 / (1 + np.exp(-d)) - (value == FIRST) for value in values)
    eps = float(np.finfo(np.float32).eps)
    assert count == m
    assert abs(float(total) - want) <= 4 * eps * m * (1 + abs(d))
    assert abs(float(gradient[0]) - slope) <= 4 * eps * m


def _loss(scores, comparisons):
    def of(scores):
        total, count = losses.negative_log_likelihood(scores, comparisons)
        return total, (total, count)

    gradient, both = jax.grad(of, has_aux=True)(scores)
    return both, gradient


LOSS = jax.jit(_loss)


def test_a_tie_an_abstention_and_one_half_are_three_things():
    """6 to 2 and 4 more. As abstentions or ties left out: log 3 +- .8165; as halves: log 2 +- .6124, which is too sure.

    A tie stays in the counts, where a likelihood with ties reads it: Davidson has log 3 and nu = 4 / sqrt(6 * 2).
    """
    judged = [FIRST] * 6 + [SECOND] * 2
    tied, silent = (
        Votes.build(np.zeros(12, int), np.arange(12), judged + [kind] * 4).comparisons([0], [1], prompt=[0, 0])
        for kind in (TIE, CANNOT_JUDGE)
    )
    np.testing.assert_array_equal(arrays(tied).ravel(), [6, 2, 4])
    np.testing.assert_array_equal(arrays(silent).ravel(), [6, 2, 0])
    assert (tied.counted("drop"), tied.counted("half"), silent.counted("half")) == (8, 12, 8)
    for a, b, best, error in ((6, 2, np.log(3), 0.8165), (8, 4, np.log(2), 0.6124)):
        assert np.log(a / b) == pytest.approx(best)
        assert np.sqrt(1 / a + 1 / b) == pytest.approx(error, abs=5e-5)
    assert tied.ties[0] / np.sqrt(tied.wins_first[0] * tied.wins_second[0]) == pytest.approx(1.154701, abs=5e-7)


def test_three_groups_of_transitive_annotators_pool_to_a_cycle():
    """Condorcet: every group ranks, ABC, BCA and CAB; two of three prefer A to B, B to C, and C to A."""
    pairs = [(0, 1), (1, 2), (2, 0)]
    orders = [(0, 1, 2), (1, 2, 0), (2, 0, 1)]
    ballots = [
        (item, group, FIRST if order.index(a) < order.index(b) else SECOND)
        for group, order in enumerate(orders)
        for item, (a, b) in enumerate(pairs)
    ]
    item, group, value = np.array(ballots).T
    votes = Votes.build(item, group, value, group=group)
    first, second = np.array(pairs).T
    for one in range(3):
        alone = votes.select(group=one).comparisons(first, second, prompt=[0, 0, 0])
        assert sorted(np.bincount(np.where(alone.wins_first, first, second), minlength=3)) == [0, 1, 2]
    pooled = votes.comparisons(first, second, prompt=[0, 0, 0], across=("group",))
    np.testing.assert_array_equal(arrays(pooled), [[2, 2, 2], [1, 1, 1], [0, 0, 0]])
    # No difference of scores says so: at equal scores the gradient is 0, and the loss is convex.
    (total, count), gradient = LOSS(np.zeros(3, np.float32), pooled)
    assert float(total / count) == pytest.approx(np.log(2))
    np.testing.assert_allclose(gradient, 0, atol=1e-6)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"item": [0, 0.5]}, "item=0.5"),
        ({"annotator": [0, True]}, "position=1, annotator=True"),
        ({"value": [0, True]}, "position=1, value=True"),
        ({"value": np.array([False, True])}, "position=0, value=False"),
        ({"value": ["a", 0]}, "vote=0, item=0, annotator=0, value=a"),
        ({"value": [[0], [0, 1]]}, "vote=0, item=0, annotator=0, value="),
        ({"group": [0, 1.5]}, "group=1.5"),
        ({"group": [0, -1]}, "vote=1, item=1, annotator=1, group=-1, value=1"),
        ({"instructions": [0, None]}, "instructions=None"),
        ({"instructions": [0]}, "instructions=\\(1,\\)"),
    ],
)
def test_what_is_no_index_and_no_judgement_is_named(wrong, message):
    right = {"item": [0, 1], "annotator": [0, 1], "value": [0, 1]}
    with pytest.raises(DataError, match=message):
        Votes.build(**(right | wrong))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda v: v.select(group=0), "do not say their group"),
        (lambda v: v.labels("country"), "labels is a choice of 3"),
        (lambda v: v.select(annotator=[0.5]), "annotator=0.5"),
        (lambda v: v.comparisons([0], [1], prompt=[0, 0]), "vote=1, item=1, items=1"),
        (lambda v: v.comparisons(*PAIRS, pool="mean"), "pool is a choice of 2"),
        (lambda v: v.comparisons(*PAIRS, across=("item",)), "across is a choice of 2"),
    ],
)
def test_what_votes_do_not_hold_is_refused(call, message):
    with pytest.raises(DataError, match=message):
        call(Votes.build([0, 1], [0, 1], [FIRST, TIE]))
