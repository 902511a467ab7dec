"""Laws of the estimate: expected wins are wins, gauges do not count, and published fits to the printed digits."""

import dataclasses
import itertools

import jax
import numpy as np
import pytest
from games import ALWAYS_WINNER, CHAIN, ISLANDS, ITEMS, newton, win_matrices
from graphs import BASEBALL_FIT, CITATIONS_FIT
from hypothesis import given
from hypothesis import strategies as st
from scipy import linalg, optimize, special

from rmjax import Comparisons, losses
from rmjax.errors import DataError, IdentifiabilityError, RMJaxError, SampleSizeError
from rmjax.identifiability import gauge_fix
from rmjax.preferences import firth, fit
from rmjax.preferences.published import (
    BASEBALL,
    BASEBALL_HOME_LOSSES,
    BASEBALL_HOME_WINS,
    CITATIONS,
    PUDDING,
    PUDDING_TIES,
    SPRINGALL,
    SPRINGALL_TIES,
)

LOW, HIGH = np.triu_indices(ITEMS, k=1)
LINKS = ("bradley_terry", "thurstone", "rao_kupper", "davidson")


def expected(wins, scores):
    return (wins + wins.T) * special.expit(scores[:, None] - scores[None, :])


def gaps(scores):
    return scores[LOW] - scores[HIGH]


# Maximum likelihood


@given(win_matrices(connected=True))
def test_expected_wins_equal_wins(wins):
    estimate = fit(Comparisons.from_wins(wins))
    residual = (wins - expected(wins, estimate.scores)).sum(axis=1)
    assert np.abs(residual).max() <= 1e-9 * wins.sum()
    assert estimate.gradient_norm <= 1e-9 * wins.sum()
    assert abs(estimate.scores.sum()) <= 1e-12 * (1 + np.abs(estimate.scores).max())


def minorise(wins, strength):
    """One step of Hunter's MM, and the log-likelihood before it."""
    pull = strength[:, None] + strength
    after = wins.sum(axis=1) / ((wins + wins.T) / pull).sum(axis=1)
    return after / np.exp(np.log(after).mean()), (wins * np.log(strength[:, None] / pull)).sum()


def newman(wins):
    """Newman's iteration, one item after the other: all at once it runs in circles."""
    strength = np.ones(len(wins))
    for _ in range(1000):
        before = strength.copy()
        for i in range(len(wins)):
            both = strength[i] + strength
            strength[i] = (wins[i] * strength / both).sum() / (wins[:, i] / both).sum()
        strength /= np.exp(np.log(strength).mean())
        if np.abs(strength / before - 1).max() <= 1e-13:
            break
    return np.log(strength)


def quasi_newton(wins):
    """L-BFGS, started again from its end with a loss relative to it: the loss itself has too few digits near there."""
    base = np.zeros(len(wins))
    for _ in range(3):

        def value(x, base=base):
            m, d = (r[:, None] - r for r in (base, x - base))
            return (wins * np.log1p(special.expit(-m) * np.expm1(-d))).sum(), (expected(wins, x) - wins).sum(axis=1)

        base = optimize.minimize(value, base, jac=True, method="L-BFGS-B", options={"ftol": 0, "gtol": 1e-12}).x
    return base - base.mean()


@given(win_matrices(connected=True))
def test_newtons_method_finds_the_estimate_and_steps_of_minorisation_climb_towards_it(wins):
    """On graphs that hang by a thread as well, where MM stops far from the optimum."""
    ours = fit(Comparisons.from_wins(wins)).scores
    assert np.abs(newton(wins) - ours).max() <= 1e-8 * (1 + np.abs(ours).max())
    strength, before = minorise(wins, np.ones(ITEMS))
    for _ in range(50):
        strength, likelihood = minorise(wins, strength)
        assert likelihood >= before - 1e-12 * abs(likelihood)
        before = likelihood
    assert (wins * np.log(special.expit(ours[:, None] - ours))).sum() >= before * (1 + 1e-12)


@given(st.integers(0, 2**32 - 1))
def test_other_solvers_find_the_same_estimate(seed):
    """Where all met, so that each of them converges: Newton's steps, MM, Newman's iteration and L-BFGS."""
    rng = np.random.default_rng(seed)
    wins = rng.integers(1, rng.choice([3, 12, 40]), (ITEMS, ITEMS)) * (1 - np.eye(ITEMS, dtype=int))
    strength = np.ones(ITEMS)
    for _ in range(1000):
        after, _ = minorise(wins, strength)
        done = np.abs(after / strength - 1).max() <= 1e-12
        strength = after
        if done:
            break
    ours = fit(Comparisons.from_wins(wins)).scores
    for other in (newton(wins), np.log(strength), newman(wins), quasi_newton(wins)):
        assert np.abs(other - ours).max() <= 1e-8


def test_a_quasi_newton_method_on_the_loss_of_training_finds_it_too(x64):
    c = Comparisons.from_wins(BASEBALL)
    value = jax.jit(jax.value_and_grad(lambda r: losses.negative_log_likelihood(r, c)[0]))
    found = optimize.minimize(
        lambda r: tuple(map(np.asarray, value(r))), np.zeros(7), jac=True, method="BFGS", options={"gtol": 1e-10}
    )
    assert np.abs(found.x - found.x.mean() - fit(c).scores).max() <= 1e-8


@given(win_matrices(connected=True), st.sampled_from([2, 7]))
def test_more_of_the_same_votes_leave_the_scores_and_divide_the_variances(wins, times):
    one, many = (fit(Comparisons.from_wins(k * wins)) for k in (1, times))
    scale = 1 + np.abs(one.scores).max()
    assert np.abs(one.scores - many.scores).max() <= 1e-9 * scale
    ratio = one.contrast_variance(0, 1) / many.contrast_variance(0, 1)
    assert ratio == pytest.approx(times, rel=1e-6)


@given(win_matrices(connected=True), st.sampled_from([1e-30, 1e-12, 1e12, 1e30]))
def test_no_weight_is_too_small_or_too_large_to_be_fitted(wins, size):
    """The unit in which votes are weighed is the caller's. Powers of ten round in float32, for all votes alike."""
    c = Comparisons.from_wins(wins)
    plain = fit(c).scores
    weighed = dataclasses.replace(c, weight=np.full(c.num_comparisons, size, np.float32))
    assert np.abs(fit(weighed).scores - plain).max() <= 1e-9 * (1 + np.abs(plain).max())


@given(win_matrices(connected=True), st.permutations(range(ITEMS)))
def test_names_do_not_count_and_reversing_all_votes_reverses_the_scores(wins, names):
    new = np.array(names)
    renamed = np.zeros_like(wins)
    renamed[np.ix_(new, new)] = wins
    plain = fit(Comparisons.from_wins(wins)).scores
    scale = 1e-9 * (1 + np.abs(plain).max())
    assert np.abs(fit(Comparisons.from_wins(renamed)).scores[new] - plain).max() <= scale
    assert np.abs(fit(Comparisons.from_wins(wins.T)).scores + plain).max() <= scale


@given(st.integers(0, 2**32 - 1))
def test_in_a_tree_contrasts_are_sums_of_log_odds_along_the_path(seed):
    rng = np.random.default_rng(seed)
    parent = np.array([rng.integers(0, k) for k in range(1, ITEMS)])
    won, lost = rng.integers(1, 50, (2, ITEMS - 1))
    estimate = fit(Comparisons.from_votes(range(1, ITEMS), parent, won, lost, prompt=[0] * ITEMS))
    height, variance = np.zeros(ITEMS), np.zeros(ITEMS)
    for k in range(1, ITEMS):
        height[k] = height[parent[k - 1]] + np.log(won[k - 1] / lost[k - 1])
        variance[k] = variance[parent[k - 1]] + 1 / won[k - 1] + 1 / lost[k - 1]
    for k in range(1, ITEMS):
        assert estimate.contrast(k, 0).value == pytest.approx(height[k], abs=1e-10)
        assert estimate.contrast_variance(k, 0) == pytest.approx(variance[k], rel=1e-8)


@given(st.integers(0, 2**32 - 1))
def test_where_all_met_equally_often_the_order_is_that_of_the_wins(seed):
    rng = np.random.default_rng(seed)
    won = rng.integers(1, 12, len(LOW))
    wins = np.zeros((ITEMS, ITEMS), int)
    wins[LOW, HIGH], wins[HIGH, LOW] = won, 13 - won
    total, scores = wins.sum(axis=1), fit(Comparisons.from_wins(wins)).scores
    for i, j in itertools.combinations(range(ITEMS), 2):
        assert np.sign(total[i] - total[j]) == (
            0 if abs(scores[i] - scores[j]) < 1e-9 else np.sign(scores[i] - scores[j])
        )


@given(win_matrices(connected=True), st.integers(0, 2**32 - 1))
def test_one_more_win_raises_the_winner_against_all_and_lowers_the_loser(wins, seed):
    i, j = np.random.default_rng(seed).permutation(ITEMS)[:2]
    more = wins.copy()
    more[i, j] += 1
    change = fit(Comparisons.from_wins(more)).scores - fit(Comparisons.from_wins(wins)).scores
    scale = 1e-8 * (1 + np.abs(change).max())
    assert (change[i] >= change - scale).all()
    assert (change[j] <= change + scale).all()
    assert change[i] - change[j] > 0


@given(win_matrices(connected=True), st.integers(0, ITEMS - 1))
def test_fixing_the_gauge_otherwise_changes_no_contrast_and_no_error_of_one(wins, pinned):
    estimate = fit(Comparisons.from_wins(wins))
    scale = 1e-10 * (1 + np.abs(estimate.scores).max())
    covariance = estimate.covariance()
    for reference in (None, pinned):
        scores, errors = estimate.relative_to(reference)
        assert np.abs(gaps(scores) - gaps(estimate.scores)).max() <= scale
        if reference is not None:
            assert errors[reference] == 0
            want = [np.sqrt(estimate.contrast_variance(k, reference)) for k in range(ITEMS)]
            np.testing.assert_allclose(errors, want, rtol=1e-6, atol=1e-7)
    for i, j in zip(LOW, HIGH):
        want = covariance[i, i] + covariance[j, j] - 2 * covariance[i, j]
        assert estimate.contrast_variance(i, j) == pytest.approx(want, rel=1e-6)
    np.testing.assert_allclose(gauge_fix(estimate.scores, np.zeros(ITEMS, int)), estimate.scores, atol=1e-5)


@given(win_matrices(connected=True), st.integers(0, ITEMS - 1))
def test_pinning_one_item_instead_of_the_sum_gives_the_same_contrasts_and_errors(wins, pinned):
    """Newton steps on the other items alone, whose information has an inverse without that row and column."""
    estimate = fit(Comparisons.from_wins(wins))
    free = np.delete(np.arange(ITEMS), pinned)
    theta, covariance = np.zeros(ITEMS), np.zeros((ITEMS, ITEMS))
    theta[free] = (estimate.scores - estimate.scores[pinned])[free] + 0.1  # near enough for whole steps
    for _ in range(8):
        conductance = expected(wins, theta) * special.expit(theta - theta[:, None])
        information = np.diag(conductance.sum(axis=1)) - conductance
        covariance[np.ix_(free, free)] = np.linalg.inv(information[np.ix_(free, free)])
        theta = theta + covariance @ (wins - expected(wins, theta)).sum(axis=1)
    assert np.abs(gaps(theta) - gaps(estimate.scores)).max() <= 1e-10 * (1 + np.abs(theta).max())
    for i, j in zip(LOW, HIGH):
        want = covariance[i, i] + covariance[j, j] - 2 * covariance[i, j]
        assert estimate.contrast_variance(i, j) == pytest.approx(want, rel=1e-6)


@given(win_matrices(connected=True))
def test_rows_may_be_split_and_turned(wins):
    whole = Comparisons.from_wins(wins)
    i, j = np.nonzero(wins)
    single = Comparisons.from_votes(i, j, wins[i, j], np.zeros(len(i)), prompt=[0] * ITEMS)
    assert np.abs(fit(single).scores - fit(whole).scores).max() <= 1e-12 * (1 + np.abs(fit(whole).scores).max())


# What is not identified


@given(win_matrices())
def test_scores_are_finite_exactly_where_an_item_has_a_finite_contrast(wins):
    estimate = fit(Comparisons.from_wins(wins))
    report = estimate.identification
    label = report.strong_components
    together = (label[:, None] == label).sum(axis=1) > 1
    np.testing.assert_array_equal(np.isfinite(estimate.scores), together)
    _, errors = estimate.relative_to()
    np.testing.assert_array_equal(np.isfinite(errors), together)
    for i, j in zip(LOW, HIGH):
        if report.status(i, j) == "identified":
            assert estimate.contrast(i, j).value == estimate.scores[i] - estimate.scores[j]
        else:
            with pytest.raises(IdentifiabilityError, match=report.status(i, j)):
                estimate.contrast(i, j)
            with pytest.raises(IdentifiabilityError):
                estimate.contrast_variance(i, j)
    assert np.isnan(estimate.relative_to(0)[0][label != label[0]]).all()


@given(win_matrices())
def test_a_strong_component_of_separated_data_is_fitted_as_if_alone(wins):
    estimate = fit(Comparisons.from_wins(wins))
    label = estimate.identification.strong_components
    for k in np.unique(label):
        own = np.flatnonzero(label == k)
        if len(own) > 1:
            alone = fit(Comparisons.from_wins(wins[np.ix_(own, own)])).scores
            assert np.abs(alone - estimate.scores[own]).max() <= 1e-9 * (1 + np.abs(alone).max())


@given(win_matrices(), st.sampled_from([0.0, 1.0]))
def test_an_unrelated_island_changes_no_contrast(wins, ridge):
    """Nor whether there is one, nor its error; under a ridge neither, which is no vote that joins islands."""
    bigger = np.zeros((ITEMS + 2, ITEMS + 2), int)
    bigger[:ITEMS, :ITEMS] = wins
    bigger[ITEMS, ITEMS + 1], bigger[ITEMS + 1, ITEMS] = 3, 1
    plain, more = (fit(Comparisons.from_wins(w), ridge=ridge) for w in (wins, bigger))
    largest = np.abs(plain.scores[np.isfinite(plain.scores)]).max(initial=0)
    np.testing.assert_allclose(more.scores[:ITEMS], plain.scores, rtol=0, atol=1e-12 * (1 + largest))
    covariance = plain.covariance()
    np.testing.assert_allclose(more.covariance()[:ITEMS, :ITEMS], covariance, rtol=1e-9, atol=1e-9 * (1 + largest))
    for i in range(ITEMS):
        with pytest.raises(IdentifiabilityError, match="unidentified"):
            more.contrast(i, ITEMS)


@given(win_matrices(), st.sampled_from([1e-3, 1.0, 10.0]))
def test_a_ridge_makes_all_numbers_finite_and_identifies_nothing(wins, ridge):
    estimate = fit(Comparisons.from_wins(wins), ridge=ridge)
    report = estimate.identification
    assert np.isfinite(estimate.scores).all()
    residual = (wins - expected(wins, estimate.scores)).sum(axis=1) - ridge * estimate.scores
    assert np.abs(residual).max() <= 1e-9 * (1 + wins.sum())
    for k in range(report.num_components):
        assert abs(estimate.scores[report.components == k].sum()) <= 1e-9 * (1 + wins.sum()) / ridge
    for i, j in zip(LOW, HIGH):
        if report.components[i] == report.components[j]:
            assert np.isfinite(estimate.contrast(i, j).standard_error)
        else:
            with pytest.raises(IdentifiabilityError):
                estimate.contrast(i, j)


@given(win_matrices(connected=True))
def test_a_vanishing_ridge_leaves_maximum_likelihood(wins):
    """To first order by τ times the covariance times the scores."""
    c = Comparisons.from_wins(wins)
    plain = fit(c)
    pull = np.abs(plain.covariance() @ plain.scores).max()
    for ridge in (1e-6, 1e-9):
        moved = np.abs(fit(c, ridge=ridge).scores - plain.scores).max()
        assert moved <= 2 * ridge * pull + 1e-9 * (1 + np.abs(plain.scores).max())


@given(win_matrices())
def test_bias_reduction_is_finite_wherever_items_met_and_its_gradient_is_that_of_jeffreys_prior(wins):
    estimate = fit(Comparisons.from_wins(wins), bias_reduction=True)
    label = estimate.identification.components
    np.testing.assert_array_equal(np.isfinite(estimate.scores), (label[:, None] == label).sum(axis=1) > 1)
    for k in np.unique(label):
        own = np.flatnonzero(label == k)
        if len(own) > 1:
            inner, scores = wins[np.ix_(own, own)], estimate.scores[own]
            assert np.abs(_jeffreys_slope(inner, scores)).max() <= 1e-4


def test_bias_reduction_of_uneven_weights_settles_where_jeffreys_prior_does():
    """A pair of four million votes rounds steps that the three votes of another pair could still see."""
    wins = np.zeros((5, 5))
    for i, j, n in ((1, 2, 2), (2, 0, 1), (3, 0, 2e6), (0, 3, 2e6), (4, 3, 2), (3, 4, 1), (4, 0, 10), (0, 4, 10)):
        wins[i, j] = n
    scores = fit(Comparisons.from_wins(wins), bias_reduction=True).scores
    assert np.abs(_jeffreys_slope(wins, scores) * np.sqrt(1 + wins.sum())).max() <= 1e-2


def _jeffreys_slope(wins, scores):
    """Numerical gradient of the log-likelihood plus half the log-determinant, in units of a standard error."""

    def value(x):
        p = special.expit(x[:, None] - x[None, :])
        c = (wins + wins.T) * p * (1 - p)
        information = np.diag(c.sum(axis=1)) - c
        return (wins * np.log(p)).sum() + np.linalg.slogdet(information[1:, 1:])[1] / 2

    step = 1e-5
    slopes = []
    for k in range(len(scores)):
        e = np.eye(len(scores))[k] * step
        slopes.append((value(scores + e) - value(scores - e)) / (2 * step))
    return np.array(slopes) / np.sqrt(1 + wins.sum())


# Ties and position


@pytest.mark.parametrize("link", LINKS[2:])
@given(win_matrices(connected=True), st.integers(0, 2**32 - 1))
def test_a_model_of_ties_expects_as_many_ties_and_points_as_there_were(link, wins, seed):
    """Its score equations, by hand: half a point for a tie, under either model weighed by the paper's formula."""
    rng = np.random.default_rng(seed)
    ties = np.triu(rng.integers(0, 9, wins.shape), 1)
    wins, ties = wins + 1 - np.eye(ITEMS, dtype=int), ties + ties.T
    estimate = fit(Comparisons.from_wins(wins, ties=ties), link=link)
    d = estimate.scores[:, None] - estimate.scores[None, :]
    total = wins + wins.T + ties
    if link == "davidson":
        nu = np.exp(estimate.parameters["log_tie"])
        z = np.exp(d / 2) + np.exp(-d / 2) + nu
        won, tied = total * np.exp(d / 2) / z, total * nu / z
        points = (wins + ties / 2 - won - tied / 2).sum(axis=1)
        assert abs((ties - tied)[LOW, HIGH].sum()) <= 1e-8 * total.sum()
    else:
        eta = estimate.parameters["log_threshold"]
        up, down = special.expit(d - eta), special.expit(-d - eta)
        # d/dΔ of every outcome's log-probability, times how often it came.
        points = (wins * (1 - up) - wins.T * (1 - down) + ties * (down - up)).sum(axis=1)
    assert np.abs(points).max() <= 1e-8 * total.sum()


@given(st.integers(0, 2**32 - 1))
def test_what_was_shown_first_has_an_effect_of_its_own(seed):
    """With as many comparisons in either order, wins of the one shown first are as expected, and so are all wins."""
    rng = np.random.default_rng(seed)
    i, j = (x.ravel() for x in np.meshgrid(range(ITEMS), range(ITEMS)))
    i, j = i[i != j], j[i != j]
    a, b = rng.integers(1, 9, (2, len(i)))
    c = Comparisons.from_votes(i, j, a, b, prompt=[0] * ITEMS, order=np.ones(len(i)))
    estimate = fit(c, position=True)
    p = special.expit(estimate.scores[i] - estimate.scores[j] + estimate.parameters["position"])
    residual = a - (a + b) * p
    assert abs(residual.sum()) <= 1e-9 * (a + b).sum()
    by_item = np.bincount(i, residual, ITEMS) - np.bincount(j, residual, ITEMS)
    assert np.abs(by_item).max() <= 1e-9 * (a + b).sum()
    turned = Comparisons.from_votes(j, i, b, a, prompt=[0] * ITEMS, order=-np.ones(len(i)))
    again = fit(turned, position=True)
    assert again.parameters["position"] == pytest.approx(estimate.parameters["position"], abs=1e-9)


def test_a_tie_an_abstention_and_one_half_are_three_estimates():
    """6 to 2 and 4 ties: log 3 (SE .8165), falsely tight log 2 (SE .6124), and Davidson's log 3 with ν = 4/√12."""
    c = Comparisons.from_votes([0], [1], [6], [2], prompt=[0, 0], ties=[4])
    drop, half = (fit(c, ties=policy).contrast(0, 1) for policy in ("drop", "half"))
    davidson = fit(c, link="davidson")
    assert (f"{drop.value:.4f}", f"{drop.standard_error:.4f}") == ("1.0986", "0.8165")
    assert (f"{half.value:.4f}", f"{half.standard_error:.4f}") == ("0.6931", "0.6124")
    assert davidson.contrast(0, 1).value == pytest.approx(np.log(3), abs=1e-9)
    assert f"{np.exp(davidson.parameters['log_tie']):.6f}" == "1.154701"


@given(st.integers(0, 2**32 - 1))
def test_leaving_ties_out_is_wider_and_farther_than_counting_them_as_halves(seed):
    a, b, t = np.random.default_rng(seed).integers(1, 60, 3)
    c = Comparisons.from_votes([0], [1], [a], [b], prompt=[0, 0], ties=[t])
    drop, half = (fit(c, ties=policy).contrast(0, 1) for policy in ("drop", "half"))
    assert drop.standard_error > half.standard_error
    assert abs(drop.value) >= abs(half.value)


# Options


def test_a_margin_of_one_win_under_a_ridge():
    """σ(-m) = τm/2, solved at 30 digits."""
    c = Comparisons.from_pairs([0], [1], prompt=[0, 0])
    for ridge, margin in ((1.0, 0.67483161434239935), (1e-3, 5.8342374978312627)):
        assert fit(c, ridge=ridge).contrast(0, 1).value == pytest.approx(margin, rel=1e-15)


def test_a_penalty_without_its_one_half_is_twice_the_ridge():
    """α|θ|² is a prior of variance 1/(2α), and not 1/α as choix 0.4.1 says of its own; in baseball .0538 at α = 1."""
    written, meant = (fit(Comparisons.from_wins(BASEBALL), ridge=ridge).scores for ridge in (2.0, 1.0))
    assert f"{np.abs(written - meant).max():.4f}" == "0.0538"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"link": "lapse"}, "choice of 4"),
        ({"ridge": -1}, "ridge=-1"),
        ({"ridge": np.nan}, "ridge=nan"),
        ({"ridge": "much"}, "ridge=much"),
        ({"bias_reduction": True, "ridge": 1.0}, "bias reduction"),
        ({"bias_reduction": True, "link": "thurstone"}, "bias reduction"),
        ({"position": True}, "shown first"),
        ({"ridge": True}, "ridge=True"),
        ({"ties": "split"}, "ties is a choice"),
        ({"link": "davidson", "ties": "half"}, "probability for a tie"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options, message):
    with pytest.raises(DataError, match=message):
        fit(ALWAYS_WINNER, **options)


def test_without_a_finite_contrast_there_is_no_number():
    estimate = fit(CHAIN)
    assert np.isnan(estimate.scores).all()
    assert np.isnan(estimate.covariance()).all()
    assert np.isnan(estimate.relative_to(0)[0]).all()
    assert (estimate.log_likelihood, estimate.gradient_norm) == (0.0, 0.0)
    assert fit(ISLANDS).contrast(2, 3).value == pytest.approx(np.log(2), abs=1e-12)


# Published fits, with digits that were computed anew. Agresti, Categorical Data Analysis, 2nd ed. 2002, table 10.11 and
# p. 448; Davidson 1970; Springall 1973.

THURSTONE = {
    "baseball": (BASEBALL, [0.6812632797, 0.4154649814, 0.8769063586, 0.9704304584, 0.7635846632, 0.7972700818]),
    "citations": (CITATIONS, [-1.6746936773, -0.2899132638, 0.1591170674]),
}
FIRTH = {
    "baseball": (BASEBALL, [1.0803784822, 0.6662629464, 1.4015757437, 1.5431223546, 1.2171194786, 1.2629175291]),
    "citations": (CITATIONS, [-2.9443818218, -0.4790752610, 0.2685310228]),
}


@pytest.mark.parametrize(("wins", "want"), [(BASEBALL, BASEBALL_FIT), (CITATIONS, CITATIONS_FIT)])
def test_published_maximum_likelihood(wins, want):
    estimate = fit(Comparisons.from_wins(wins))
    np.testing.assert_allclose(estimate.relative_to(0)[0], want, rtol=0, atol=1e-14)
    likelihood = {7: -172.24817599471596, 4: -1622.889808827598}[len(wins)]
    assert estimate.log_likelihood == pytest.approx(likelihood, rel=1e-14)
    # Of the numbers of wins, where that is of their order: with binomial coefficients.
    i, j = np.triu_indices(len(wins), k=1)
    a, b = wins[i, j], wins[j, i]
    coefficients = (special.gammaln(a + b + 1) - special.gammaln(a + 1) - special.gammaln(b + 1)).sum()
    binomial = {7: ("-37.66208642915", 11), 4: ("-20.196940327226", 12)}[len(wins)]
    assert f"{estimate.log_likelihood + coefficients:.{binomial[1]}f}" == binomial[0]


def test_wins_of_a_season_are_as_expected_to_the_rounding_of_their_sums():
    estimate = fit(Comparisons.from_wins(BASEBALL))
    assert np.abs((BASEBALL - expected(BASEBALL, estimate.scores)).sum(axis=1)).max() <= 7.1e-15


def test_rank_centrality_is_not_the_maximum_likelihood_estimate():
    """The walk that leaves a team for whoever beat it rests .05995 away: one step of Luce's spectral ranking."""
    rate = BASEBALL.T - np.diag(BASEBALL.sum(axis=0))
    share = linalg.null_space(rate.T)[:, 0]
    estimate = fit(Comparisons.from_wins(BASEBALL)).scores
    spectral = np.log(share / share.sum())
    assert f"{np.abs(spectral - spectral.mean() - estimate).max():.5f}" == "0.05995"


def test_order_of_a_balanced_season():
    total = BASEBALL.sum(axis=1)
    assert total.tolist() == [18, 40, 31, 47, 50, 43, 44]
    np.testing.assert_array_equal(np.argsort(total), np.argsort(fit(Comparisons.from_wins(BASEBALL)).scores))


@pytest.mark.parametrize("name", THURSTONE)
def test_published_thurstone(name):
    wins, want = THURSTONE[name]
    estimate = fit(Comparisons.from_wins(wins), link="thurstone")
    np.testing.assert_array_equal(estimate.relative_to(0)[0][1:].round(10), want)
    if name == "baseball":
        assert f"{-estimate.log_likelihood:.12f}" == "172.218919171266"


@pytest.mark.parametrize("name", FIRTH)
def test_published_bias_reduction(name):
    wins, want = FIRTH[name]
    estimate = fit(Comparisons.from_wins(wins), bias_reduction=True)
    np.testing.assert_array_equal(estimate.relative_to(0)[0][1:].round(10), want)


def test_published_ridge():
    want = [-0.9875324029, 0.0529805426, -0.3490766817, 0.3650636676, 0.5022149964, 0.1859210019, 0.2304288760]
    np.testing.assert_array_equal(fit(Comparisons.from_wins(BASEBALL), ridge=1.0).scores.round(10), want)


def home_games():
    """The 42 rows of Agresti 2002, section 10.6: home team, visitors."""
    home, visitors = np.nonzero(~np.eye(7, dtype=bool))
    won, lost = BASEBALL_HOME_WINS[home, visitors], BASEBALL_HOME_LOSSES[home, visitors]
    return Comparisons.from_votes(home, visitors, won, lost, prompt=np.zeros(7, int), order=np.ones(42))


def test_bias_reduction_with_a_position_effect_is_where_jeffreys_posterior_is_flat():
    """The gradient of the likelihood and of half the log-determinant, by differences in 1e-5, which leave 1e-9."""
    c, steps = home_games(), 1e-5 * np.eye(7)
    estimate = fit(c, bias_reduction=True, position=True)
    i, j = c.first, c.second
    design = np.hstack([np.eye(7)[i] - np.eye(7)[j], np.ones((42, 1))])[:, 1:]  # Baltimore at 0

    def posterior(x):
        margin = design @ x
        p = special.expit(margin)
        bend = (c.wins_first + c.wins_second) * p * (1 - p)
        likelihood = c.wins_first @ special.log_expit(margin) + c.wins_second @ special.log_expit(-margin)
        return likelihood + np.linalg.slogdet(design.T * bend @ design)[1] / 2

    at = np.append(estimate.relative_to(0)[0][1:], estimate.parameters["position"])
    slope = np.array([posterior(at + step) - posterior(at - step) for step in steps]) / 2e-5
    assert np.abs(slope).max() <= 1e-7


def test_bias_reduction_says_where_it_ends(monkeypatch):
    monkeypatch.setattr(firth, "_ROUNDS", 1)
    with pytest.raises(RMJaxError, match=r"did not settle .rounds=1"):
        fit(Comparisons.from_wins(BASEBALL), bias_reduction=True)
    monkeypatch.setattr(firth, "DENSE", 6)
    with pytest.raises(SampleSizeError, match="items=7, most=6"):
        fit(Comparisons.from_wins(BASEBALL), bias_reduction=True)


def test_published_home_advantage():
    c = home_games()
    estimate = fit(c, position=True)
    want = [1.1438026533, 0.7046944569, 1.4753572136, 1.6195549936, 1.2813404033, 1.3271103981]
    np.testing.assert_array_equal(estimate.relative_to(0)[0][1:].round(10), want)
    assert f"{estimate.parameters['position']:.10f}" == "0.3022606555"
    assert f"{estimate.parameter_error('position'):.10f}" == "0.1309437075"
    errors = [0.3378425352, 0.3350017175, 0.3445522129, 0.3473656834, 0.3404037212, 0.3403225675]
    np.testing.assert_array_equal(estimate.relative_to(0)[1][1:].round(10), errors)
    share = np.exp(estimate.scores) / np.exp(estimate.scores).sum()
    assert [f"{x:.6f}" for x in share] == [
        "0.043560",
        "0.136720",
        "0.088131",
        "0.190469",
        "0.220014",
        "0.156879",
        "0.164226",
    ]
    # Deviances of the 42 rows, with and without it, and Akaike's criterion of 7 and 6 parameters.
    a, b = c.wins_first.astype(float), c.wins_second.astype(float)
    saturated = special.xlogy(a, a / (a + b)).sum() + special.xlogy(b, b / (a + b)).sum()
    plain = fit(c)
    assert f"{2 * (saturated - estimate.log_likelihood):.10f}" == "38.6428521440"
    assert f"{2 * (saturated - plain.log_likelihood):.10f}" == "44.0534612286"
    coefficients = (special.gammaln(a + b + 1) - special.gammaln(a + 1) - special.gammaln(b + 1)).sum()
    assert f"{-2 * (estimate.log_likelihood + coefficients) + 14:.10f}" == "137.1079919060"
    assert f"{-2 * (plain.log_likelihood + coefficients) + 12:.10f}" == "140.5186009906"


def test_published_ties_of_the_pudding_experiment():
    c = Comparisons.from_wins(PUDDING, ties=PUDDING_TIES)
    davidson, rao_kupper = (fit(c, link=link) for link in LINKS[2:][::-1])
    assert f"{np.exp(davidson.parameters['log_tie']):.10f}" == "0.7468229877"
    assert f"{-davidson.log_likelihood:.12f}" == "809.709510090287"
    assert f"{np.exp(rao_kupper.parameters['log_threshold']):.10f}" == "1.7484572547"
    assert f"{-rao_kupper.log_likelihood:.12f}" == "809.697133488584"
    shares = {
        "davidson": [0.1388033752, 0.1730015000, 0.1617474340, 0.1653729578, 0.1586853946, 0.2023893385],
        "rao_kupper": [0.1443989665, 0.1717943596, 0.1628173901, 0.1660781953, 0.1603805099, 0.1945305786],
    }
    for estimate in (davidson, rao_kupper):
        got = np.exp(estimate.scores) / np.exp(estimate.scores).sum()
        np.testing.assert_array_equal(got.round(10), shares[estimate.link])
    # One half for a tie shrinks the best pudding's lead by 27 %; dropping ties hardly changes it.
    sixth = [fit(c, ties=ties).contrast(5, 0).value for ties in ("half", "drop")]
    assert [f"{x:.10f}" for x in (*sixth, davidson.contrast(5, 0).value)] == [
        "0.2744924688",
        "0.3738215984",
        "0.3771348958",
    ]
    assert f"{1 - sixth[0] / davidson.contrast(5, 0).value:.2f}" == "0.27"


# Three levels of the one factor by three of flavour.
TREATMENTS = {
    "davidson": [
        [0.0, -2.2732295456, -3.2907499394],
        [-0.3976104645, -1.8947894336, -2.8428472933],
        [1.2814666769, 0.0048978663, -0.6074383434],
    ],
    "rao_kupper": [
        [0.0, -1.6740726370, -2.4259509561],
        [-0.3188686568, -1.3877578106, -2.1281736347],
        [0.9631034368, -0.0094628069, -0.4740244935],
    ],
}


def test_published_ties_of_springall():
    """Of each three, that of high flavour comes out lowest as the table is coded: who won is the reader's to check."""
    c = Comparisons.from_wins(SPRINGALL, ties=SPRINGALL_TIES)
    davidson, rao_kupper = (fit(c, link=link) for link in LINKS[2:][::-1])
    assert f"{np.exp(davidson.parameters['log_tie']):.10f}" == "0.8655486542"
    assert f"{-davidson.log_likelihood:.9f}" == "732.067255448"
    assert f"{np.exp(rao_kupper.parameters['log_threshold']):.10f}" == "2.0079072767"
    assert f"{-rao_kupper.log_likelihood:.9f}" == "730.004361475"
    assert (davidson.scores.reshape(3, 3).argmin(axis=1) == 2).all()
    for estimate in (davidson, rao_kupper):
        np.testing.assert_array_equal(estimate.relative_to(0)[0].round(10).reshape(3, 3), TREATMENTS[estimate.link])


@pytest.mark.parametrize("given", [None, [[0, 1], [1, 0]]])
def test_what_is_no_comparisons_is_refused(given):
    with pytest.raises(DataError, match="a fit is of comparisons or rankings"):
        fit(given)
