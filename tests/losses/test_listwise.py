"""Laws of orders: two answers are a pair, masks are deletion, the pairs of an order are not its likelihood."""

import itertools

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from precision import EPS

from rmjax import losses
from rmjax.testing.strategies import generators

R, K = 64, 6
eps = EPS[np.float32]
pl = jax.jit(losses.plackett_luce)
pairs = jax.jit(losses.all_pairs)
total = {
    "plackett_luce": jax.jit(
        jax.grad(lambda s, ranking, mask, stages: losses.plackett_luce(s, ranking, mask, stages=stages).sum())
    ),
    "all_pairs": jax.jit(jax.grad(lambda s, ranks, mask: losses.all_pairs(s, ranks, mask).sum())),
}
hessian = jax.jit(jax.hessian(losses.plackett_luce))


def of_stages(scores, ranking, mask, stages):
    return losses.plackett_luce(scores, ranking, mask, stages=stages)


staged = jax.jit(of_stages)
each = {
    "plackett_luce": jax.jit(jax.vmap(jax.grad(of_stages), (None, 0, 0, 0))),
    "all_pairs": jax.jit(jax.vmap(jax.grad(losses.all_pairs))),
}


@st.composite
def orders(draw):
    """Scores of 12 responses, R rankings of up to K of them, some masked, some with only their top observed."""
    rng = draw(generators())
    scores = rng.normal(0, draw(st.sampled_from([0.1, 3.0, 30.0])), 12).astype(np.float32)
    ranking = np.stack([rng.permutation(12)[:K] for _ in range(R)]).astype(np.int32)
    mask = np.arange(K) < rng.integers(1, K + 1, R)[:, None]
    return scores, ranking, mask, rng.integers(1, K + 1, R).astype(np.int32)


def by_stages(scores, ranking, mask, stages):
    """The likelihood as a loop over choices, and its gradient, in float64."""
    scores = scores.astype(np.float64)
    value, gradient = np.zeros(len(ranking)), np.zeros_like(scores)
    for row, order in enumerate(ranking):
        left = order[mask[row]]
        for stage in range(min(stages[row], len(left))):
            rest = left[stage:]
            z = scores[rest] - scores[rest].max()
            p = np.exp(z) / np.exp(z).sum()
            value[row] -= z[0] - np.log(np.exp(z).sum())
            gradient[rest] += p
            gradient[rest[0]] -= 1
    return value, gradient


@given(orders())
def test_an_order_is_a_sequence_of_choices(drawn):
    scores, ranking, mask, stages = drawn
    value, gradient = by_stages(*drawn)
    spread = 1 + np.ptp(scores)
    assert (np.abs(staged(scores, ranking, mask, stages) - value) <= 8 * K * eps * (value + spread * eps)).all()
    got = total["plackett_luce"](scores, ranking, mask, stages)
    assert (np.abs(got - gradient) <= 8 * R * K * eps).all()


@given(orders())
def test_its_curvature_is_the_sum_of_covariances_of_the_choices(drawn):
    scores, ranking, _, _ = drawn
    want = np.zeros((12, 12))
    for stage in range(K):
        rest = ranking[0][stage:]
        z = scores[rest].astype(np.float64)
        p = np.exp(z - z.max()) / np.exp(z - z.max()).sum()
        want[np.ix_(rest, rest)] += np.diag(p) - np.outer(p, p)
    got = np.asarray(hessian(scores, ranking[0]))
    assert (np.abs(got - want) <= 32 * K * eps * (1 + np.ptp(scores))).all()


@given(orders())
def test_two_answers_are_bradley_terry_either_way(drawn):
    scores, ranking, _, _ = drawn
    two = ranking[:, :2]
    margin = scores[two[:, 0]] - scores[two[:, 1]]
    plain = np.asarray(losses.bradley_terry(margin))
    np.testing.assert_allclose(pl(scores, two), plain, rtol=8 * eps)
    np.testing.assert_allclose(pairs(scores[two], np.tile([1, 2], (R, 1))), plain, rtol=8 * eps)


@given(orders())
def test_one_constant_changes_nothing_and_gradients_sum_to_zero(drawn):
    scores, ranking, mask, stages = drawn
    moved = (scores + np.float32(100)).astype(np.float32)
    before, after = (np.asarray(staged(x, ranking, mask, stages)) for x in (scores, moved))
    rounding = 2 * eps * (100 + np.abs(scores).max())
    assert (np.abs(before - after) <= 2 * K * rounding + 8 * K * eps * before).all()
    ranks = np.argsort(ranking, axis=1)
    for gradient in (
        each["plackett_luce"](scores, ranking, mask, stages),
        each["all_pairs"](scores[ranking], ranks, mask),
    ):
        assert (np.abs(np.asarray(gradient, np.float64).sum(axis=1)) <= K * eps).all()


@given(orders(), st.sampled_from([np.inf, -np.inf, np.nan]))
def test_masked_answers_may_hold_anything(drawn, bad):
    scores, ranking, mask, stages = drawn
    victim = ranking[0, 0]
    without = mask & (ranking != victim)
    spoilt = scores.copy()
    spoilt[victim] = bad
    np.testing.assert_array_equal(staged(spoilt, ranking, without, stages), staged(scores, ranking, without, stages))
    gradient = np.asarray(total["plackett_luce"](spoilt, ranking, without, stages))
    np.testing.assert_array_equal(gradient, total["plackett_luce"](scores, ranking, without, stages))
    assert gradient[victim] == 0
    ranks = np.arange(K) * np.ones((R, 1))
    got = total["all_pairs"](spoilt[ranking], ranks, without)
    np.testing.assert_array_equal(got, total["all_pairs"](scores[ranking], ranks, without))
    assert np.isfinite(got).all()


@given(orders())
def test_behind_the_last_stage_the_order_does_not_count(drawn):
    scores, ranking, _, _ = drawn
    other = ranking.copy()
    other[:, 2:] = other[:, :1:-1]
    everyone, two = np.ones((R, K), bool), np.full(R, 2, np.int32)
    np.testing.assert_allclose(
        staged(scores, ranking, everyone, two), staged(scores, other, everyone, two), rtol=8 * eps
    )
    assert not np.allclose(pl(scores, ranking), pl(scores, other), rtol=1e-4)


def test_an_order_of_nobody_costs_nothing():
    value, slope = jax.value_and_grad(lambda r: losses.plackett_luce(r, np.zeros((2, 0), int)).sum())(np.ones(3, "f"))
    assert value == 0
    assert (slope == 0).all()


@given(orders(), st.permutations(range(12)))
def test_names_of_answers_do_not_count(drawn, names):
    scores, ranking, mask, stages = drawn
    renamed = np.empty_like(scores)
    renamed[np.array(names)] = scores
    new = np.array(names, np.int32)[ranking]
    np.testing.assert_array_equal(staged(renamed, new, mask, stages), staged(scores, ranking, mask, stages))


@given(orders(), st.permutations(range(K)))
def test_which_answer_of_a_prompt_is_written_first_does_not_count(drawn, order):
    """Answers, their ranks and their masks change places together."""
    scores, ranking, mask, _ = drawn
    ranks = ranking // 3
    plain, turned = (pairs(scores[ranking][:, at], ranks[:, at], mask[:, at]) for at in (slice(None), list(order)))
    np.testing.assert_allclose(turned, plain, rtol=K * K * eps)


def test_the_chances_of_all_orders_sum_to_one(x64):
    scores = np.array([1.5, -0.3, 0.0, 2.2])
    every = np.array(list(itertools.permutations(range(4))))
    chance = np.exp(-np.asarray(jax.jit(losses.plackett_luce)(scores, every)))
    assert chance.sum() == pytest.approx(1, abs=1e-14)
    # And the chance that one stands before the other is Bradley-Terry's.
    place = np.argsort(every, axis=1)
    before = chance[place[:, 0] < place[:, 1]].sum()
    assert before == pytest.approx(1 / (1 + np.exp(-1.8)), abs=1e-14)


@given(orders())
def test_all_pairs_is_a_mean_over_pairs_of_which_equal_ranks_are_none(drawn):
    scores, ranking, mask, _ = drawn
    ranks = ranking // 3  # many equal
    got = np.asarray(pairs(scores[ranking], ranks, mask))
    for row in range(8):
        r = scores[ranking[row]].astype(np.float64)
        each = [
            np.logaddexp(0, r[j] - r[i])
            for i, j in itertools.permutations(np.flatnonzero(mask[row]), 2)
            if ranks[row, i] < ranks[row, j]
        ]
        want = np.mean(each) if each else 0.0
        assert got[row] == pytest.approx(want, rel=16 * eps)


# r = (2, 1, 0, -1); by mpmath at 40 digits.
def test_unit_values(x64):
    scores, order = np.array([2.0, 1.0, 0.0, -1.0]), np.arange(4)
    assert float(pl(scores, order)) == pytest.approx(1.1610573505237985, rel=1e-15)
    top = jax.jit(losses.plackett_luce)(scores, order, stages=1)
    assert float(top) == pytest.approx(0.44018969856119533, rel=1e-15)
    assert float(pairs(scores, order)) == pytest.approx(0.20703807270239259, rel=1e-15)
    assert float(pairs(scores, order)) * 6 == pytest.approx(1.2422284362143556, rel=1e-15)
    np.testing.assert_allclose(
        jax.jit(jax.grad(losses.all_pairs))(scores, order),
        [-0.072595036094946576, -0.019867153670352926, 0.019867153670352926, 0.072595036094946576],
        rtol=1e-14,
    )
