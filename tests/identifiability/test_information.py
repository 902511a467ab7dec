"""Laws of the resistor network: it is the Hessian, resistances are a metric, a bought vote is worth what was said."""

import dataclasses
import itertools

import jax
import numpy as np
import pytest
from games import ISLANDS, ITEMS, laplacian, win_matrices
from graphs import BASEBALL_FIT
from hypothesis import given
from hypothesis import strategies as st

from rmjax import Comparisons, losses
from rmjax.errors import DataError, GaugeError, IdentifiabilityError, RMJaxError, SampleSizeError
from rmjax.identifiability import effective_resistance, fisher, identify, next_comparison
from rmjax.preferences import fit
from rmjax.preferences.published import BASEBALL

seeds = st.integers(0, 2**32 - 1)
hessian = jax.jit(jax.hessian(lambda r, c: losses.negative_log_likelihood(r, c)[0]))
LOW, HIGH = np.triu_indices(ITEMS, k=1)


def drawn(seed):
    return np.random.default_rng(seed).normal(0, 2, ITEMS)


@given(win_matrices(), seeds)
def test_information_is_the_laplacian_and_the_hessian_of_the_likelihood(wins, seed):
    scores, c = drawn(seed), Comparisons.from_wins(wins)
    got = fisher(scores, c)
    scale = 1e-14 * (1 + wins.sum())
    np.testing.assert_allclose(got, laplacian(wins, scores), rtol=1e-13, atol=scale)
    assert np.abs(got.sum(axis=1)).max() <= scale
    np.testing.assert_allclose(fisher(scores, Comparisons.from_wins(3 * wins)), got * 3, rtol=1e-15, atol=0)


def test_information_is_the_hessian_of_what_training_minimises(x64):
    got = fisher(BASEBALL_FIT, Comparisons.from_wins(BASEBALL))
    np.testing.assert_allclose(got, hessian(BASEBALL_FIT, Comparisons.from_wins(BASEBALL)), rtol=1e-12, atol=1e-12)


@given(win_matrices(), seeds, st.sampled_from([np.inf, -np.inf, np.nan]))
def test_weight_0_is_deletion_whatever_the_score_is(wins, seed, bad):
    scores, c = drawn(seed), Comparisons.from_wins(wins)
    touched = (np.asarray(c.first) == 0) | (np.asarray(c.second) == 0)
    erased = dataclasses.replace(c, weight=np.where(touched, 0, c.weight).astype(np.float32))
    without = wins.copy()
    without[0], without[:, 0] = 0, 0
    spoilt = np.where(np.arange(ITEMS) == 0, bad, scores)
    np.testing.assert_array_equal(fisher(spoilt, erased), fisher(scores, Comparisons.from_wins(without)))


@given(win_matrices(connected=True), seeds)
def test_resistances_are_a_metric_and_obey_fosters_law(wins, seed):
    scores, c = drawn(seed), Comparisons.from_wins(wins)
    i, j = (x.ravel() for x in np.indices((ITEMS, ITEMS)))
    r = effective_resistance(scores, c, i, j).reshape(ITEMS, ITEMS)
    np.testing.assert_allclose(r, r.T, rtol=1e-9)
    assert (np.diag(r) == 0).all()
    assert (r[LOW, HIGH] > 0).all()
    assert (r[:, None, :] <= r[:, :, None] + r[None, :, :] + 1e-9 * r.max()).all()
    conductance = -fisher(scores, c)
    # Foster: the number of items minus the number of components.
    assert (conductance * r)[LOW, HIGH].sum() == pytest.approx(ITEMS - 1, rel=1e-9)


@given(win_matrices(items=8), seeds)
def test_conductance_times_resistance_sums_to_the_items_less_the_components(wins, seed):
    """Foster's law, islands and items that nobody judged included."""
    scores, c = np.random.default_rng(seed).normal(0, 2, len(wins)), Comparisons.from_wins(wins)
    i, j = np.nonzero(np.triu(wins + wins.T))
    total = -(fisher(scores, c)[i, j] * effective_resistance(scores, c, i, j)).sum()
    assert total == pytest.approx(len(wins) - identify(c).num_components, rel=1e-9)


@given(win_matrices(connected=True), seeds)
def test_one_more_comparison_raises_no_resistance(wins, seed):
    """Rayleigh's law, at fixed scores."""
    scores, rng = drawn(seed), np.random.default_rng(seed)
    more = wins.copy()
    more[tuple(rng.permutation(ITEMS)[:2])] += 1
    before, after = (effective_resistance(scores, Comparisons.from_wins(w), LOW, HIGH) for w in (wins, more))
    assert (after <= before * (1 + 1e-9)).all()


@given(win_matrices(), seeds)
def test_resistance_is_the_variance_by_the_pseudo_inverse(wins, seed):
    scores, c = drawn(seed), Comparisons.from_wins(wins)
    label = identify(c).components
    inverse = np.linalg.pinv(laplacian(wins, scores), rcond=1e-11)
    joined = label[LOW] == label[HIGH]
    i, j = LOW[joined], HIGH[joined]
    want = inverse[i, i] + inverse[j, j] - 2 * inverse[i, j]
    np.testing.assert_allclose(effective_resistance(scores, c, i, j), want, rtol=1e-6)
    if not joined.all():
        apart = int(np.random.default_rng(seed).choice(np.flatnonzero(~joined)))
        with pytest.raises(IdentifiabilityError, match="no comparisons connect"):
            effective_resistance(scores, c, LOW[apart], HIGH[apart])


@given(win_matrices(connected=True), seeds)
def test_the_gain_of_a_vote_is_what_it_takes_off_the_variance(wins, seed):
    """One vote at a pair with chance p adds p(1-p) to its conductance."""
    scores, rng = drawn(seed), np.random.default_rng(seed)
    i, j, k, m = rng.permutation(ITEMS)[:4]
    c = Comparisons.from_wins(wins)
    more = wins.astype(float)
    more[i, j] += 1
    after = effective_resistance(scores, Comparisons.from_wins(more), k, m)
    gain = next_comparison(scores, c, candidates=[[i, j]], target=(k, m)).gain
    before = effective_resistance(scores, c, k, m)
    assert gain == pytest.approx(before - after, rel=1e-6, abs=1e-9 * before)
    # And in all: half the growth of the log-volume of what is known.
    grown = (
        np.linalg.slogdet(laplacian(more, scores)[1:, 1:])[1] - np.linalg.slogdet(laplacian(wins, scores)[1:, 1:])[1]
    )
    assert next_comparison(scores, c, candidates=[[i, j]]).gain == pytest.approx(grown / 2, rel=1e-6, abs=1e-9)


def test_the_best_pair_is_the_best_of_all_and_joins_what_is_apart():
    found = next_comparison(BASEBALL_FIT, Comparisons.from_wins(BASEBALL))
    assert len(found.candidates) == 21
    assert found.gain == found.gains.max()
    joined = next_comparison(np.zeros(4), ISLANDS)
    assert np.isinf(joined.gain)
    assert {joined.first // 2, joined.second // 2} == {0, 1}
    within = next_comparison(np.zeros(4), ISLANDS, target=(0, 1))
    assert (within.first, within.second) == (0, 1)
    across = next_comparison(np.zeros(4), ISLANDS, target=(0, 3))
    assert np.isinf(across.gain)
    with pytest.raises(IdentifiabilityError, match="by no single candidate"):
        next_comparison(np.zeros(4), ISLANDS, target=(0, 3), candidates=[[0, 1]])


def test_too_many_responses_are_refused_before_their_pairs_are_listed():
    """All pairs of a million responses would be 8 terabytes."""
    n = 1_000_000
    with pytest.raises(SampleSizeError, match="responses=1000000"):
        next_comparison(np.zeros(n), Comparisons.from_pairs([0], [1], prompt=np.zeros(n, int)))


def test_only_answers_to_one_prompt_are_candidates():
    c = Comparisons.from_pairs([0, 1, 2, 3], [1, 0, 3, 2], prompt=[0, 0, 1, 1]).pad(8, 6)
    assert next_comparison(np.zeros(6), c).candidates.tolist() == [[0, 1], [2, 3]]
    with pytest.raises(GaugeError, match="two prompts"):
        next_comparison(np.zeros(6), c, candidates=[[0, 1], [0, 2]])


@pytest.mark.parametrize("bad", [[], [[0, 0]], [0, 1], [[0, 1, 2]]])
def test_candidates_are_pairs(bad):
    with pytest.raises(DataError, match="candidates"):
        next_comparison(np.zeros(4), ISLANDS, candidates=bad)


@pytest.mark.parametrize(("scores", "message"), [([0.0], "one finite score"), ([0, np.nan, 0, 0], "response=1")])
def test_scores_are_one_finite_number_per_compared_response(scores, message):
    with pytest.raises(DataError, match=message):
        fisher(scores, ISLANDS)


@pytest.mark.parametrize("at", [(0, 9), (-1, 0)])
def test_indices_are_of_responses(at):
    with pytest.raises(DataError, match="no such response"):
        effective_resistance(np.zeros(4), ISLANDS, *at)


def test_series_add_and_parallel_conductances_do():
    """Wins 3 to 1 and 5 to 2 in a chain: 4/3 + 7/10 (theory of the variance of log-odds)."""
    chain = Comparisons.from_votes([0, 1], [1, 2], [3, 5], [1, 2], prompt=[0, 0, 0])
    estimate = fit(chain)
    assert estimate.contrast_variance(0, 2) == pytest.approx(61 / 30, rel=1e-12)
    assert f"{effective_resistance(estimate.scores, chain, 0, 2):.7f}" == "2.0333333"
    assert estimate.contrast(0, 2).value == pytest.approx(np.log(3) + np.log(2.5), rel=1e-12)


# Agresti 2002, table 10.11: 40-digit estimates, Foster's sum, and n times the trace of the pseudo-inverse (Kirchhoff).
def test_baseball_as_a_circuit():
    c = Comparisons.from_wins(BASEBALL)
    i, j = zip(*itertools.combinations(range(7), 2))
    r = effective_resistance(BASEBALL_FIT, c, i, j)
    assert f"{(-fisher(BASEBALL_FIT, c)[i, j] * r).sum():.6f}" == "6.000000"
    assert f"{r.sum():.12f}" == "2.118382238536"
    # Milwaukee against Detroit: the errors of the centred levels ignore their covariance.
    _, levels = fit(c).relative_to()
    assert f"{np.sqrt(effective_resistance(BASEBALL_FIT, c, 4, 3)):.4f}" == "0.3111"
    assert f"{np.hypot(levels[4], levels[3]):.4f}" == "0.2910"
    curvatures = [losses.curvature(np.float32(x)) for x in (0, 3, 5)]
    assert [f"{x:.7f}" for x in curvatures] == ["0.2500000", "0.0451767", "0.0066481"]
    assert [f"{curvatures[0] / x:.{d}f}" for x, d in zip(curvatures[1:], (2, 1))] == ["5.53", "37.6"]


def test_a_matrix_too_large_to_be_dense_is_refused():
    many = Comparisons.from_votes([0], [1], [1], [1], prompt=np.zeros(5001, int))
    with pytest.raises(SampleSizeError, match="responses=5001, most=5000"):
        fisher(np.zeros(5001), many)


def test_networks_that_are_too_uneven_are_refused_and_not_rounded():
    """A saturated margin and a weight of 1e16 leave the weak side to rounding; a factor of a million does not."""
    triangle = Comparisons.from_votes([0, 1, 0], [1, 2, 2], [1, 1, 1], [1, 1, 1], [0] * 3)
    for scores in ([0, 50, 0], [0, 800, 0]):
        with pytest.raises(RMJaxError, match="too uneven"):
            effective_resistance(scores, triangle, 0, 1)
    with pytest.raises(RMJaxError, match="too uneven"):
        next_comparison([0, 800], Comparisons.from_votes([0], [1], [1], [1], [0, 0]))
    heavy = Comparisons.from_votes([0, 1], [1, 2], [1e16, 1], [1e16, 2], [0] * 3)
    with pytest.raises(RMJaxError, match="too uneven"):
        effective_resistance([0, 0, 0], heavy, 1, 2)
    uneven = Comparisons.from_votes([0, 1], [1, 2], [1e6, 1], [1e6, 1], [0] * 3)
    assert effective_resistance([0, 0, 0], uneven, 1, 2) == pytest.approx(2, rel=1e-9)


def test_unevenness_is_that_within_a_component():
    """Two prompts, one of which has a trillion votes: neither spoils the other."""
    two = Comparisons.from_votes([0, 2], [1, 3], [1e12, 1], [1e12, 1], [0, 0, 1, 1])
    np.testing.assert_allclose(effective_resistance([0] * 4, two, [0, 2], [1, 3]), [2e-12, 2], rtol=1e-6)


@pytest.mark.parametrize(
    ("of", "match"),
    [
        (lambda c: effective_resistance([0] * 4, c, [0, 1], [1, 2, 3]), "indices come in pairs"),
        (lambda c: next_comparison([0] * 4, c, target=1), "a target is a pair"),
        (lambda c: next_comparison([0] * 4, c, target=(0, 1, 2)), "a target is a pair"),
        (lambda c: effective_resistance([], Comparisons.from_pairs([], [], []), 0, 1), "no responses"),
    ],
)
def test_indices_of_another_shape_are_refused(of, match):
    with pytest.raises(DataError, match=match):
        of(ISLANDS)
