"""Laws of fits to rankings: two items are Bradley-Terry, choices are as expected, and published fits to the digits."""

import dataclasses
import itertools

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmjax import Comparisons, Rankings, losses
from rmjax.errors import DataError, IdentifiabilityError
from rmjax.preferences import fit
from rmjax.preferences.listwise import ranking_terms
from rmjax.preferences.published import BASEBALL, NETFLIX, SUSHI, nascar, netflix, salad
from rmjax.testing.strategies import generators

N = 5
plackett_luce = jax.jit(lambda scores, items, mask, stages: losses.plackett_luce(scores, items, mask, stages=stages))


@st.composite
def rankings_drawn(draw):
    """Rankings of 2 to 5 of 5 items, some of which name only the top; a circle of pairs holds them together."""
    rng = draw(generators())
    lists, behind = [], []
    for _ in range(12):
        order = rng.permutation(N)[: rng.integers(2, N + 1)].tolist()
        top = rng.integers(1, len(order) + 1)
        lists.append(order[:top])
        behind.append(order[top:])
    circle = rng.permutation(N)
    lists += [[int(a), int(b)] for a, b in zip(circle, np.roll(circle, 1))]
    behind += [[] for _ in circle]
    return Rankings.from_lists(lists, [0] * N, behind=behind, weight=rng.integers(1, 4, len(lists)))


@given(rankings_drawn())
def test_the_likelihood_is_that_of_the_loss_and_its_slope_is_zero(rankings):
    estimate = fit(rankings)
    scores = estimate.scores.astype(np.float32)
    nats = np.asarray(plackett_luce(scores, rankings.items, rankings.mask, rankings.stages))
    assert -estimate.log_likelihood == pytest.approx(float((nats * rankings.weight).sum()), rel=1e-5)
    assert estimate.gradient_norm <= 1e-9 * rankings.weight.sum()
    # Every item is chosen as often as it was expected to be.
    chosen, expected = np.zeros(N), np.zeros(N)
    for row in range(len(rankings.items)):
        order = rankings.items[row][rankings.mask[row]]
        for stage in range(min(rankings.stages[row], len(order) - 1)):
            left = order[stage:]
            p = np.exp(estimate.scores[left] - estimate.scores[left].max())
            expected[left] += rankings.weight[row] * p / p.sum()
            chosen[left[0]] += rankings.weight[row]
    np.testing.assert_allclose(chosen, expected, atol=1e-8 * rankings.weight.sum())


@given(rankings_drawn())
def test_weights_are_so_many_equal_rankings(rankings):
    often = rankings.weight.astype(int)
    copies = Rankings(
        *(np.repeat(x, often, axis=0) for x in (rankings.items, rankings.mask)),
        rankings.prompt,
        np.repeat(rankings.stages, often),
    )
    one, two = fit(rankings), fit(copies)
    np.testing.assert_allclose(one.scores, two.scores, atol=1e-10)
    np.testing.assert_allclose(one.covariance(errors="sandwich"), two.covariance(errors="sandwich"), rtol=1e-6)


def test_rankings_of_two_are_comparisons():
    i, j = np.nonzero(BASEBALL)
    lists = [[int(a), int(b)] for a, b in zip(i, j)]
    rankings = Rankings.from_lists(lists, [0] * 7, weight=BASEBALL[i, j])
    ranked, compared = fit(rankings), fit(Comparisons.from_wins(BASEBALL))
    np.testing.assert_allclose(ranked.scores, compared.scores, atol=1e-12)
    np.testing.assert_allclose(ranked.covariance(), compared.covariance(), rtol=1e-9)
    np.testing.assert_allclose(ranked.covariance(errors="sandwich"), compared.covariance(errors="sandwich"), rtol=1e-9)


def test_what_all_were_ahead_of_says_nothing_of_those_ahead():
    """Item 3 is always last: no maximum, and the others are fitted as if it were not there."""
    lists = [[0, 1, 2, 3], [1, 2, 0, 3], [2, 0, 1, 3], [0, 2, 1, 3]]
    whole, without = fit(Rankings.from_lists(lists, [0] * 4)), fit(Rankings.from_lists([x[:3] for x in lists], [0] * 3))
    np.testing.assert_allclose(whole.scores[:3], without.scores, atol=1e-12)
    assert np.isnan(whole.scores[3])
    with pytest.raises(IdentifiabilityError, match=r"\{0, 1, 2\} never lost to \{3\}"):
        whole.contrast(0, 3)
    assert np.isnan(fit(Rankings.from_lists([[0, 1, 2]], [0] * 3)).scores).all()
    ridged = fit(Rankings.from_lists([[0, 1, 2]], [0] * 3), ridge=1.0)
    assert (np.diff(ridged.scores) < 0).all()
    assert ridged.scores.sum() == pytest.approx(0, abs=1e-12)


def test_rankings_take_no_link_and_no_clusters_that_nobody_gave():
    rankings = Rankings.from_lists([[0, 1], [1, 0]], [0, 0])
    for options in ({"link": "thurstone"}, {"position": True}, {"bias_reduction": True}):
        with pytest.raises(DataError):
            fit(rankings, **options)
    with pytest.raises(DataError, match="the data have no clusters"):
        fit(rankings).contrast(0, 1, errors="cluster")


@given(rankings_drawn(), st.integers(0, 2**32 - 1))
def test_orders_of_one_person_add_up_before_they_are_squared(rankings, seed):
    """Each order its own cluster is the sandwich of single orders; k copies by one person have the error of one."""
    single = dataclasses.replace(rankings, weight=None)
    rows = len(single.items)
    alone = dataclasses.replace(single, cluster=np.random.default_rng(seed).permutation(rows))
    want = fit(single).covariance(errors="sandwich")
    bound = {"rtol": 1e-6, "atol": 1e-8 * np.abs(want).max()}
    np.testing.assert_allclose(fit(alone).covariance(errors="cluster"), want, **bound)
    copied = Rankings(
        *(np.repeat(x, 3, axis=0) for x in (single.items, single.mask)),
        single.prompt,
        np.repeat(single.stages, 3),
        cluster=np.repeat(np.arange(rows), 3),
    )
    np.testing.assert_allclose(fit(copied).covariance(errors="cluster"), want, **bound)
    weighted = dataclasses.replace(alone, weight=np.full(rows, 3.0, np.float32))
    np.testing.assert_allclose(fit(weighted).covariance(errors="cluster"), want, **bound)
    np.testing.assert_allclose(3 * fit(weighted).covariance(errors="sandwich"), want, **bound)
    np.testing.assert_array_equal(np.unique(Comparisons.from_rankings(copied).cluster), np.arange(rows))


@given(rankings_drawn(), st.integers(0, 2**32 - 1))
def test_places_that_are_empty_may_stand_anywhere(rankings, seed):
    """The same orders with holes: the same report and the same estimate."""
    wide, rows = 2 * N, np.arange(len(rankings.items))[:, None]
    rng = np.random.default_rng(seed)
    place = np.sort(np.argsort(rng.random((len(rows), wide)), axis=1)[:, : rankings.items.shape[1]], axis=1)
    items, mask = np.full((len(rows), wide), N - 1, np.int32), np.zeros((len(rows), wide), bool)
    items[rows, place], mask[rows, place] = np.where(rankings.mask, rankings.items, N - 1), rankings.mask
    # As many choices as before: up to the place of the last of them.
    stages = np.take_along_axis(place, np.asarray(rankings.stages)[:, None] - 1, axis=1)[:, 0] + 1
    holed = Rankings(items, mask, rankings.prompt, stages.astype(np.int32), rankings.weight)
    plain, sparse = fit(rankings), fit(holed)
    np.testing.assert_array_equal(sparse.identification.strong_components, plain.identification.strong_components)
    np.testing.assert_allclose(sparse.scores, plain.scores, rtol=0, atol=1e-9)


@given(st.integers(0, 2**32 - 1))
def test_the_pairs_of_rankings_are_surer_than_the_rankings_are(seed):
    """Rank-breaking counts one ranking of 5 as ten comparisons; by ranking, its errors are honest again."""
    rng = np.random.default_rng(seed)
    truth = np.linspace(-1, 1, N)
    lists = [np.argsort(-(truth + rng.gumbel(size=N))).tolist() for _ in range(60)]
    rankings = Rankings.from_lists(lists, [0] * N)
    estimate = fit(rankings)
    pairs = fit(Comparisons.from_rankings(rankings))
    if estimate.identification.exists:
        honest = estimate.contrast(0, N - 1).standard_error
        assert pairs.contrast(0, N - 1).standard_error < honest
        assert pairs.contrast(0, N - 1, errors="cluster").standard_error > 0.7 * honest


# Scores relative to A.
def test_published_salads():
    estimate = fit(salad())
    scores, errors = estimate.relative_to(0)
    np.testing.assert_array_equal(scores.round(10), [0, 2.7299139795, 1.5615385112, 1.0268359030])
    np.testing.assert_array_equal(errors[1:].round(10), [0.4480725659, 0.3964739551, 0.3770620181])
    assert f"{estimate.log_likelihood:.8f}" == "-76.41528920"


# Netflix Prize, PrefLib ED-00004-138; scores sum to 0. Treating the pairs of one person as independent makes errors too
# small: .0623 where the orders have .0747.
def test_published_films():
    estimate = fit(netflix())
    assert [f"{x:.10f}" for x in estimate.scores] == ["0.0186585995", "0.6899377703", "-0.2956438345", "-0.4129525353"]
    assert f"{estimate.log_likelihood:.10f}" == "-1746.7579261269"
    assert f"{estimate.contrast(0, 1).standard_error:.4f}" == "0.0747"


# Hunter 2004, section 6: the NASCAR season of 2002; strengths of 13 of the 83 drivers, and the log-likelihood.
STRENGTHS = {
    57: 0.186405,
    67: 0.109556,
    50: 0.023489,
    81: 0.018403,
    65: 0.023046,
    36: 0.020493,
    71: 0.016695,
    53: 0.027419,
    31: 0.016795,
    47: 0.015311,
    39: 0.002547,
    0: 0.002945,
    14: 0.003022,
}


def test_published_races():
    estimate = fit(nascar())
    assert f"{estimate.log_likelihood:.9f}" == "-4191.097284597"
    strength = np.exp(estimate.scores) / np.exp(estimate.scores).sum()
    for driver, share in STRENGTHS.items():
        assert round(float(strength[driver]), 6) == share


def test_four_drivers_who_beat_nobody_leave_the_season_without_a_maximum():
    """The others are as they are without them; against the four everybody is infinitely better."""
    whole = fit(nascar(all_drivers=True))
    assert not whole.identification.exists
    assert len(whole.identification.separating_cut.winners) == 83
    np.testing.assert_allclose(whole.scores[:83], fit(nascar()).scores, atol=1e-9)
    with pytest.raises(IdentifiabilityError, match="infinite"):
        whole.contrast(57, 86)


# All pairs of rankings, as counts: ten kinds of sushi, and four films. Treating the pairs of one person as independent
# makes standard errors too small: .0133 where Plackett-Luce has .0227, .0623 where it has .0747.
@pytest.mark.parametrize(("wins", "error"), [(SUSHI, "0.0133"), (NETFLIX, "0.0623")])
def test_published_errors_of_broken_rankings(wins, error):
    _, errors = fit(Comparisons.from_wins(wins)).relative_to(0)
    assert f"{errors[1]:.4f}" == error


def test_from_pairs_alone_the_order_of_stages_is_lost():
    """All 24 orders once: no preference; and every pair is even."""
    every = Rankings.from_lists([list(x) for x in itertools.permutations(range(4))], [0] * 4)
    assert np.abs(fit(every).scores).max() <= 1e-12


@given(generators())
def test_what_is_minimised_is_the_loss_of_rankings(rng):
    """At any scores, also where it is asked for without derivatives, as behind a step that is halved."""
    lists = [list(rng.permutation(N)[: rng.integers(2, N + 1)]) for _ in range(5)]
    rankings = Rankings.from_lists(lists, [0] * N, weight=rng.integers(1, 4, 5))
    terms, scores = ranking_terms(rankings, np.zeros(N, int), np.arange(N), ridge=0.0), rng.normal(size=N)
    nats = np.asarray(plackett_luce(scores, rankings.items, rankings.mask, rankings.stages), np.float64)
    expected = float(nats @ np.asarray(rankings.weights))
    for value in (terms.value(scores), terms.derivatives(scores)[0]):
        assert value == pytest.approx(expected, rel=1e-5)
