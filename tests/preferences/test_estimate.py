"""Laws of standard errors: of contrasts, of wrong models, of clusters, and of a posterior."""

import dataclasses
import itertools

import numpy as np
import pytest
from games import ALWAYS_WINNER, ITEMS, laplacian, win_matrices
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from rmjax import Comparisons
from rmjax.errors import DataError, RMJaxError, SampleSizeError
from rmjax.preferences import fit
from rmjax.preferences.linear import Gauge
from rmjax.preferences.published import BASEBALL, CITATIONS, PUDDING, PUDDING_TIES

seeds = st.integers(0, 2**32 - 1)


def single_votes(wins):
    """One comparison per vote."""
    i, j = np.nonzero(wins)
    i, j = (np.repeat(x, wins[i, j]) for x in (i, j))
    return Comparisons.from_pairs(i, j, prompt=[0] * len(wins))


@given(win_matrices(connected=True))
def test_the_variance_of_a_contrast_is_that_of_the_pseudo_inverse(wins):
    estimate = fit(Comparisons.from_wins(wins))
    inverse = np.linalg.pinv(laplacian(wins, estimate.scores), rcond=1e-12)
    np.testing.assert_allclose(estimate.covariance(), inverse, rtol=1e-6, atol=1e-8 * np.abs(inverse).max())
    for i, j in ((0, 1), (2, 5)):
        want = inverse[i, i] + inverse[j, j] - 2 * inverse[i, j]
        assert estimate.contrast(i, j).standard_error == pytest.approx(np.sqrt(want), rel=1e-6)
    assert estimate.contrast(3, 3).standard_error == estimate.contrast(3, 3).value == 0


@given(win_matrices(connected=True))
def test_the_sandwich_is_made_of_the_gradients_of_the_votes(wins):
    """By loops, and the same whether votes are counted or written one by one."""
    estimate = fit(Comparisons.from_wins(wins))
    scores = estimate.scores
    middle = np.zeros((ITEMS, ITEMS))
    for i, j in zip(*np.nonzero(wins)):
        pull = special.expit(scores[j] - scores[i]) * (np.eye(ITEMS)[i] - np.eye(ITEMS)[j])
        middle += wins[i, j] * np.outer(pull, pull)
    inverse = np.linalg.pinv(laplacian(wins, scores), rcond=1e-12)
    want = inverse @ middle @ inverse
    got = estimate.covariance(errors="sandwich")
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-7 * np.abs(want).max())
    split = fit(single_votes(np.minimum(wins, 9))).covariance(errors="sandwich")
    counted = fit(Comparisons.from_wins(np.minimum(wins, 9))).covariance(errors="sandwich")
    np.testing.assert_allclose(split, counted, rtol=1e-6, atol=1e-8 * np.abs(counted).max())


@given(win_matrices())
def test_a_covariance_is_a_number_exactly_where_a_contrast_is(wins):
    """What the covariance says of a contrast is what `contrast` says of it, a refusal included."""
    estimate = fit(Comparisons.from_wins(wins))
    c, status = estimate.covariance(), estimate.identification.status
    for i, j in itertools.combinations(range(ITEMS), 2):
        combined = c[i, i] + c[j, j] - 2 * c[i, j]
        assert np.isfinite(combined) == (status(i, j) == "identified")
        if np.isfinite(combined):
            assert combined == pytest.approx(estimate.contrast_variance(i, j), rel=1e-6)


@given(win_matrices(connected=True), seeds)
def test_clusters_add_up_before_they_are_squared(wins, seed):
    """Each vote its own cluster is the sandwich; k votes that are copies of one have the error of one."""
    rng = np.random.default_rng(seed)
    c = single_votes(np.minimum(wins, 5))
    alone = dataclasses.replace(c, cluster=rng.permutation(c.num_comparisons))
    estimate = fit(alone)
    want = estimate.covariance(errors="sandwich")
    np.testing.assert_allclose(estimate.covariance(errors="cluster"), want, rtol=1e-6, atol=1e-8 * np.abs(want).max())
    triple = {f: np.repeat(getattr(alone, f), 3) for f in ("first", "second", "wins_first", "wins_second", "cluster")}
    copies = Comparisons.from_votes(**triple, prompt=[0] * ITEMS)
    got = fit(copies).covariance(errors="cluster")
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-7 * np.abs(want).max())
    three = fit(copies).covariance(errors="sandwich")
    np.testing.assert_allclose(3 * three, want, rtol=1e-5, atol=1e-7 * np.abs(want).max())


@pytest.mark.parametrize("link", ["rao_kupper", "davidson", "thurstone"])
def test_every_link_has_errors_of_all_three_kinds(link):
    """Under the true model with many votes all three agree."""
    rng = np.random.default_rng(3)
    scores = np.array([0.0, 0.4, -0.5, 0.2])
    i, j = np.triu_indices(4, k=1)
    d, n = scores[i] - scores[j], 400
    chances = {
        "rao_kupper": lambda d: [special.expit(d - 0.5), special.expit(-d - 0.5)],
        "davidson": lambda d: [np.exp(x) / (np.exp(d / 2) + np.exp(-d / 2) + 1) for x in (d / 2, -d / 2)],
        "thurstone": lambda d: [special.ndtr(d), special.ndtr(-d)],
    }[link](d)
    votes = np.array([rng.multinomial(1, [a, b, max(0.0, 1 - a - b)], n) for a, b in zip(*chances)]).reshape(-1, 3)
    first, second = np.repeat(i, n), np.repeat(j, n)
    order = rng.choice([-1, 1], len(first))
    c = Comparisons.from_votes(
        first, second, votes[:, 0], votes[:, 1], [0] * 4, ties=votes[:, 2], order=order, cluster=range(len(first))
    )
    estimate = fit(c, link=link, position=True)
    for ask in (
        lambda kind: estimate.contrast(0, 3, errors=kind).standard_error,
        lambda kind: estimate.parameter_error("position", errors=kind),
        lambda kind: estimate.parameter_error(next(iter(estimate.parameters)), errors=kind),
    ):
        model, sandwich, cluster = map(ask, ("model", "sandwich", "cluster"))
        assert sandwich == pytest.approx(cluster, rel=1e-6)
        assert sandwich == pytest.approx(model, rel=0.1)
    assert abs(estimate.parameters["position"]) < 4 * estimate.parameter_error("position")
    np.testing.assert_allclose(estimate.relative_to(0)[0], scores - scores[0], atol=4 * 0.1)


@given(win_matrices(), st.sampled_from([0.1, 1.0]))
def test_under_a_ridge_errors_are_those_of_the_laplace_approximation(wins, ridge):
    estimate = fit(Comparisons.from_wins(wins), ridge=ridge)
    want = np.linalg.inv(laplacian(wins, estimate.scores) + ridge * np.eye(ITEMS))
    np.testing.assert_allclose(estimate.covariance(), want, rtol=1e-7, atol=1e-10)
    _, errors = estimate.relative_to()
    np.testing.assert_allclose(errors, np.sqrt(np.diag(want)), rtol=1e-7)


def test_halves_count_in_clusters_too():
    c = Comparisons.from_votes([0, 0], [1, 1], [3, 1], [1, 2], [0, 0], ties=[2, 4], cluster=[0, 1])
    split = Comparisons.from_votes([0, 0], [1, 1], [4, 3], [2, 4], [0, 0], cluster=[0, 1])
    one, two = fit(c, ties="half"), fit(split)
    assert one.contrast(0, 1, errors="cluster") == two.contrast(0, 1, errors="cluster")
    dropped = fit(c, ties="drop").contrast(0, 1, errors="cluster")
    assert dropped.standard_error != one.contrast(0, 1, errors="cluster").standard_error


def test_what_has_no_clusters_or_is_no_choice_is_refused():
    estimate = fit(Comparisons.from_wins(BASEBALL))
    with pytest.raises(DataError, match="no clusters"):
        estimate.contrast(0, 1, errors="cluster")
    for second in (0, 1):
        with pytest.raises(DataError, match="errors"):
            estimate.contrast(0, second, errors="robust")
    with pytest.raises(DataError, match="name"):
        estimate.parameter_error("position")
    with pytest.raises(DataError, match="no such item"):
        estimate.contrast(0, 9)
    with pytest.raises(DataError, match="of two items"):
        estimate.contrast([0, 1], [1, 2])
    for level in (0, 1, 95, np.nan):
        with pytest.raises(DataError, match="between 0 and 1"):
            estimate.contrast(0, 1).interval(level)


def test_without_votes_the_data_move_nothing():
    """Under a ridge everybody is at 0; the prior has a deviation and the data have none."""
    c = Comparisons.from_pairs([], [], prompt=[0, 0], cluster=[])
    estimate = fit(c, ridge=4.0)
    assert estimate.contrast(0, 0).value == 0
    np.testing.assert_allclose(estimate.covariance(), np.eye(2) / 4, rtol=1e-12)
    for errors in ("sandwich", "cluster"):
        assert (estimate.covariance(errors=errors) == 0).all()


def test_an_index_may_be_any_whole_number():
    estimate = fit(Comparisons.from_wins(BASEBALL))
    assert estimate.contrast(np.int64(0), 1.0) == estimate.contrast(0, 1)
    np.testing.assert_array_equal(estimate.relative_to(1.0), estimate.relative_to(1))


def test_differences_are_of_what_was_compared_in_any_number():
    """The scores of `relative_to` without its errors; across islands there is no number, whatever the scores are."""
    islands = Comparisons.from_votes([0, 2], [1, 3], [3, 2], [1, 1], prompt=[0] * 5)
    estimate = fit(islands)
    for reference in (None, 0, 3, 4):
        np.testing.assert_array_equal(estimate.differences(reference), estimate.relative_to(reference)[0])
    np.testing.assert_array_equal(np.isfinite(estimate.differences(0)), [True, True, False, False, False])
    assert estimate.differences(0)[1] == pytest.approx(-np.log(3), abs=1e-12)


def test_relative_to_an_item_that_never_lost_there_is_nothing():
    scores, errors = fit(ALWAYS_WINNER).relative_to(0)
    assert np.isnan(scores).all()
    assert np.isnan(errors).all()


def test_large_data_answer_single_contrasts_and_refuse_a_dense_covariance():
    """Beyond 3,000 unknowns nothing is factorised: the same numbers by conjugate gradients."""
    n = 6_000
    rng = np.random.default_rng(0)
    ring = np.arange(n)
    i, j = (
        np.concatenate([ring, rng.integers(0, n, 4 * n)]),
        np.concatenate([(ring + 1) % n, rng.integers(0, n, 4 * n)]),
    )
    apart = i != j
    a, b = rng.integers(1, 4, (2, apart.sum()))
    estimate = fit(Comparisons.from_votes(i[apart], j[apart], a, b, prompt=np.zeros(n, int)))
    assert estimate.gradient_norm <= 1e-9 * (a + b).sum()
    contrast = estimate.contrast(0, 1)
    assert 0 < contrast.standard_error < 2
    with pytest.raises(SampleSizeError, match="most=5000"):
        estimate.covariance()
    # One more vote for 0 against 1 moves them apart by (1 - p) R, to first order.
    more = Comparisons.from_votes(
        np.append(i[apart], 0), np.append(j[apart], 1), np.append(a, 1e-3), np.append(b, 0), prompt=np.zeros(n, int)
    )
    moved = fit(more).contrast(0, 1).value - contrast.value
    want = 1e-3 * special.expit(-contrast.value) * contrast.standard_error**2
    assert moved == pytest.approx(want, rel=1e-3)


# Agresti 2002, table 10.11 and p. 448: standard errors relative to the first, and relative to the mean.
ERRORS = {
    "baseball": (
        BASEBALL,
        [0.3338782070, 0.3318766727, 0.3395685064, 0.3432559816, 0.3358609225, 0.3366694014],
        [0.232462, 0.200919, 0.205044, 0.204157, 0.207419, 0.201604, 0.202062],
    ),
    "citations": (CITATIONS, [0.1025453355, 0.0605887292, 0.0708299651], [0.043330, 0.072580, 0.041641, 0.053047]),
}


@pytest.mark.parametrize("name", ERRORS)
def test_published_standard_errors(name):
    wins, relative, centred = ERRORS[name]
    estimate = fit(Comparisons.from_wins(wins))
    np.testing.assert_array_equal(estimate.relative_to(0)[1][1:].round(10), relative)
    np.testing.assert_array_equal(estimate.relative_to()[1].round(6), centred)


def test_errors_of_levels_depend_on_the_gauge_and_those_of_contrasts_do_not():
    """Baltimore has error 0 as the reference and .23246 about the mean; Milwaukee against it .3432560 either way."""
    estimate = fit(Comparisons.from_wins(BASEBALL))
    assert estimate.relative_to(0)[1][0] == 0
    assert f"{estimate.relative_to()[1][0]:.5f}" == "0.23246"
    assert f"{estimate.contrast(4, 0).standard_error:.7f}" == "0.3432560"


def test_published_sandwich():
    """Of arena-rank 0.1.1, which adds a ridge of 1e-5 of the mean information: 2e-4 of its eigenvalues."""
    want = [0.228407, 0.193735, 0.213988, 0.207628, 0.207620, 0.205743, 0.195049]
    got = fit(Comparisons.from_wins(BASEBALL)).relative_to(errors="sandwich")[1]
    np.testing.assert_allclose(got, want, rtol=2e-4)


def test_published_laplace():
    want = [0.4380409, 0.4256099, 0.4272099, 0.4268865, 0.4281724, 0.4258816, 0.4260619]
    got = fit(Comparisons.from_wins(BASEBALL), ridge=1.0).relative_to()[1]
    np.testing.assert_array_equal(got.round(7), want)


def test_an_interval_of_a_probability_is_the_transformed_interval_of_the_margin():
    """Milwaukee beats Baltimore: .829396, 95 % [.712711, .905006]."""
    margin = fit(Comparisons.from_wins(BASEBALL)).contrast(4, 0)
    got = [f"{special.expit(x):.6f}" for x in (margin.value, *margin.interval())]
    assert got == ["0.829396", "0.712711", "0.905006"]


def test_published_errors_of_tie_parameters():
    """Of log ν .0824986887, and of the logarithm of log ϑ .0632426305."""
    c = Comparisons.from_wins(PUDDING, ties=PUDDING_TIES)
    davidson, rao_kupper = fit(c, link="davidson"), fit(c, link="rao_kupper")
    assert davidson.parameter_error("log_tie") == pytest.approx(0.08249869172, abs=1e-10)
    threshold = rao_kupper.parameters["log_threshold"]
    assert rao_kupper.parameter_error("log_threshold") / threshold == pytest.approx(0.06324263046, abs=1e-10)


@pytest.mark.parametrize("position", [False, True])
@pytest.mark.parametrize("link", ["bradley_terry", "thurstone"])
def test_a_tie_that_counts_half_is_one_vote_and_not_two(link, position):
    """Single votes in clusters of their own: both kinds of error speak of the same units."""
    rng = np.random.default_rng(0)
    i = rng.integers(0, 5, 300)
    j, kind = (i + rng.integers(1, 5, 300)) % 5, rng.integers(0, 3, 300)
    wins, losses, ties = (1.0 * (kind == k) for k in range(3))
    order = rng.integers(-1, 2, 300)
    votes = Comparisons.from_votes(i, j, wins, losses, [0] * 5, ties=ties, cluster=np.arange(300), order=order)
    found = fit(votes, ties="half", position=position, link=link)
    alone, clustered = (found.contrast(0, 3, errors=errors).standard_error for errors in ("sandwich", "cluster"))
    assert alone == pytest.approx(clustered, rel=1e-12)


def test_a_vote_of_unknown_order_counts_where_position_is_fitted():
    """Half of the votes do not say which was first: they move the scores, and not the effect of position."""
    pairs = {"first": [0, 0, 0], "second": [1, 1, 1], "order": [1, -1, 0], "prompt": [0, 0]}
    known = fit(Comparisons.from_votes(wins_first=[6, 4, 0], wins_second=[4, 6, 0], **pairs), position=True)
    found = fit(Comparisons.from_votes(wins_first=[6, 4, 9], wins_second=[4, 6, 1], **pairs), position=True)
    assert known.contrast(0, 1).value == pytest.approx(0, abs=1e-9)
    assert found.contrast(0, 1).value > 0.5


def test_orders_that_are_none_and_parameters_that_are_not_there_are_refused():
    votes = Comparisons.from_votes([0, 0], [1, 1], [3, 2], [1, 2], [0, 0], order=[1, -1])
    for order in (3.0, np.nan):
        with pytest.raises(DataError, match="an order is 1, -1 or 0"):
            fit(dataclasses.replace(votes, order=np.array([1, order], np.float32)), position=True)
    with pytest.raises(DataError, match="no parameters"):
        fit(votes).parameter_error("position")


def test_a_variance_that_rounding_made_negative_is_refused(monkeypatch):
    found = fit(Comparisons.from_votes([0], [1], [3], [1], [0, 0]))
    monkeypatch.setattr(Gauge, "solver", lambda self, hessian: lambda b: -b)
    with pytest.raises(RMJaxError, match="variance came out negative"):
        found.contrast(0, 1)
