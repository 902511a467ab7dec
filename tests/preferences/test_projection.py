"""Laws of the nearest scalar: moments, Pythagoras, and what it leaves of cycles."""

import dataclasses

import numpy as np
import pytest
from games import CHAIN, ITEMS, win_matrices
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from rmjax import Comparisons
from rmjax.errors import DataError
from rmjax.preferences import fit, project_to_bradley_terry
from rmjax.preferences.published import BASEBALL, CITATIONS

LOW, HIGH = np.triu_indices(ITEMS, k=1)


def divergence(n, q, p):
    return (n * (special.rel_entr(q, p) + special.rel_entr(1 - q, 1 - p))).sum()


@st.composite
def shares(draw):
    """Any shares of votes on all pairs, with other numbers of votes: scalar or not."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = rng.integers(1, 50, len(LOW)).astype(np.float32)
    q = rng.beta(*draw(st.sampled_from([(1, 1), (0.3, 0.3), (20, 20)])), len(LOW)).clip(0.001, 0.999)
    wins = (n * q).astype(np.float32)
    return Comparisons.from_votes(LOW, HIGH, wins, n - wins, [0] * ITEMS)


@given(shares())
def test_expected_wins_of_every_item_are_its_wins(c):
    nearest = project_to_bradley_terry(c)
    pairs = nearest.pairs
    gap = pairs.votes * (nearest.probability - pairs.share)
    by_item = np.bincount(pairs.first, gap, ITEMS) - np.bincount(pairs.second, gap, ITEMS)
    assert np.abs(by_item).max() <= 1e-9 * pairs.votes.sum()


@given(shares(), st.integers(0, 2**32 - 1))
def test_divergences_obey_pythagoras(c, seed):
    """KL(q, θ) = KL(q, θ*) + KL(θ*, θ), for every θ: so no scalar is nearer than θ*."""
    nearest = project_to_bradley_terry(c)
    pairs = nearest.pairs
    other = np.random.default_rng(seed).normal(0, 2, ITEMS)
    p = special.expit(other[pairs.first] - other[pairs.second])
    whole = divergence(pairs.votes, pairs.share, p)
    parts = nearest.total + divergence(pairs.votes, nearest.probability, p)
    assert whole == pytest.approx(parts, rel=1e-10)


@given(st.integers(0, 2**32 - 1))
def test_a_scalar_is_its_own_projection(seed):
    rng = np.random.default_rng(seed)
    scores, n = rng.normal(0, 2, ITEMS), rng.integers(1, 100, len(LOW))
    p = special.expit(scores[LOW] - scores[HIGH])
    c = Comparisons.from_votes(LOW, HIGH, n * p, n * (1 - p), [0] * ITEMS)
    nearest = project_to_bradley_terry(c)
    # Votes are stored in float32, which is all that moves it.
    assert np.abs(nearest.scores - (scores - scores.mean())).max() <= 1e-4
    assert nearest.per_vote <= 1e-10
    assert nearest.degrees_of_freedom == len(LOW) - (ITEMS - 1)


@given(win_matrices())
def test_what_went_one_way_leaves_nothing(wins):
    """Only pairs within strong components have a residual, and it is that of a fit of them alone."""
    if wins.sum() == 0:
        return
    c = Comparisons.from_wins(wins)
    nearest = project_to_bradley_terry(c)
    label = nearest.identification.strong_components
    within = label[nearest.pairs.first] == label[nearest.pairs.second]
    assert (nearest.residual[~within] == 0).all()
    assert (nearest.residual >= 0).all()
    np.testing.assert_array_equal(nearest.probability[~within], nearest.pairs.share[~within])
    if within.any():
        inside = dataclasses.replace(
            c, weight=(label[np.asarray(c.first)] == label[np.asarray(c.second)]).astype(np.float32)
        )
        assert project_to_bradley_terry(inside).total == pytest.approx(nearest.total, rel=1e-9, abs=1e-12)
        sizes = np.bincount(label)
        assert nearest.degrees_of_freedom == within.sum() - (sizes[sizes > 1] - 1).sum()
    else:
        assert (nearest.total, nearest.degrees_of_freedom) == (0.0, 0)


def test_a_chain_is_perfectly_said_by_scores_that_run_to_infinity():
    nearest = project_to_bradley_terry(CHAIN)
    assert (nearest.total, nearest.deviance, nearest.pearson) == (0.0, 0.0, 0.0)
    assert nearest.probability.tolist() == [1.0, 1.0]


def test_without_votes_there_is_nothing_to_project():
    with pytest.raises(DataError, match="no comparison counts"):
        project_to_bradley_terry(Comparisons.from_votes([0], [1], [0], [0], [0, 0]))


# Rock, paper, scissors at .8, and a cycle of .9, .8, .6.
def test_cycles_project_to_what_is_left_of_them():
    rps = Comparisons.from_votes([0, 1, 2], [1, 2, 0], [8] * 3, [2] * 3, [0] * 3)
    nearest = project_to_bradley_terry(rps)
    assert np.abs(nearest.scores).max() <= 1e-14
    assert nearest.per_vote == pytest.approx(0.19274475702175742, rel=1e-15)
    c = Comparisons.from_votes([0, 1, 2], [1, 2, 0], [9, 8, 6], [1, 2, 4], [0] * 3)
    nearest = project_to_bradley_terry(c)
    np.testing.assert_array_equal(nearest.scores.round(10), [0.4131664761, -0.1377694247, -0.2753970514])
    # Pairs are (0, 1), (0, 2), (1, 2): the second is 2 against 0 turned.
    one, other, two = nearest.probability
    assert [f"{p:.10f}" for p in (one, two, 1 - other)] == ["0.6343526999", "0.5343526999", "0.3343526999"]
    assert f"{nearest.total / 10:.10f}" == "0.4861048377"
    # Pythagoras at equal scores, where the votes of any scalar are even.
    even = np.full(3, 0.5)
    whole = divergence(nearest.pairs.votes, nearest.pairs.share, even)
    assert abs(whole - nearest.total - divergence(nearest.pairs.votes, nearest.probability, even)) <= 2e-14


# Agresti 2002, table 10.11 and p. 448: deviance and Pearson's statistic with their degrees of freedom.
@pytest.mark.parametrize(
    ("wins", "deviance", "pearson", "freedom"),
    [(BASEBALL, "15.7365009263", "14.6124846881", 15), (CITATIONS, "4.2933839699", "4.6515535814", 3)],
)
def test_published_goodness_of_fit(wins, deviance, pearson, freedom):
    nearest = project_to_bradley_terry(Comparisons.from_wins(wins))
    assert f"{nearest.deviance:.10f}" == deviance
    assert f"{nearest.pearson:.10f}" == pearson
    assert nearest.degrees_of_freedom == freedom


def test_logits_of_a_scalar_add_up_and_have_rank_two():
    """Eigenvalues ±i√n |θ| of the matrix of logits; a cycle has rank 2 as well, so that rank certifies nothing."""
    scores = fit(Comparisons.from_wins(BASEBALL)).scores
    logits = scores[:, None] - scores[None, :]
    eigenvalues = np.sort(np.linalg.eigvals(logits).imag)
    assert eigenvalues[-1] == pytest.approx(3.5203099374321596, rel=1e-14)  # LAPACK is off by a few ulp
    assert eigenvalues[-1] == pytest.approx(np.sqrt(7) * np.linalg.norm(scores), rel=1e-12)
    assert np.abs(eigenvalues[1:-1]).max() <= 1e-7
    cycle = np.log(4) * np.array([[0, 1, -1], [-1, 0, 1], [1, -1, 0]])
    eigenvalues = np.sort(np.linalg.eigvals(cycle).imag)
    assert f"{eigenvalues[-1]:.10f}" == "2.4011322677"
    assert abs(eigenvalues[1]) <= 1e-12
    assert abs(cycle[0, 1] + cycle[1, 2] - cycle[0, 2]) > 1  # and does not add up


def test_a_mixture_of_transitive_raters_may_be_a_cycle():
    """Three equal groups that rank ABC, BCA, CAB: two thirds around, and the nearest scalar says nothing."""
    orders = [[0, 1, 2], [1, 2, 0], [2, 0, 1]]
    wins = np.zeros((3, 3))
    for order in orders:
        for a in range(3):
            for b in range(a + 1, 3):
                wins[order[a], order[b]] += 1
    c = Comparisons.from_wins(wins)
    assert (wins / (wins + wins.T + np.eye(3))).round(3).tolist()[0] == [0.0, 0.667, 0.333]
    assert np.abs(fit(c).scores).max() <= 1e-12
