"""Laws of the method behind a fit: the Hessian is the sum over rows, and steps descend to the maximum."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from rmjax.comparisons import Comparisons
from rmjax.errors import IdentifiabilityError, RMJaxError
from rmjax.preferences import fit, linear, newton, pairwise
from rmjax.preferences.linear import Gauge
from rmjax.preferences.newton import minimise
from rmjax.preferences.pairwise import PairTerms
from rmjax.preferences.rows import Rows

ITEMS = 5
EPS = float(np.finfo(np.float64).eps)
WAYS = ("full", "sparse")
seeds = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("link", ["bradley_terry", "davidson"])
@pytest.mark.parametrize("position", [False, True])
@given(seed=seeds)
def test_the_hessian_is_the_sum_over_rows(way, link, position, seed):
    rng = np.random.default_rng(seed)
    first, second = np.triu_indices(ITEMS, k=1)
    votes = rng.poisson(2, (len(first), 3 if link == "davidson" else 2)).astype(float)
    rows = Rows(first, second, votes, rng.integers(-1, 2, len(first)).astype(float))
    terms = PairTerms(rows, ITEMS, link, position, ridge=0.5)
    x = rng.normal(size=ITEMS + len(terms.names))
    expected = np.diag([0.5] * ITEMS + [0.0] * len(terms.names))
    _, _, bend = terms.terms(x)
    for i, j, own in zip(first, second, bend, strict=True):
        along = np.zeros((1 + len(terms.names), len(x)))
        along[0, i], along[0, j] = 1, -1
        along[np.arange(1, len(along)), ITEMS + np.arange(len(terms.names))] = 1
        expected += along.T @ own @ along
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairwise, "worth_dense", lambda *_: way == "full")
        _, _, hessian = terms.derivatives(x)
    assert isinstance(hessian, np.ndarray) == (way == "full")
    hessian = hessian if isinstance(hessian, np.ndarray) else hessian.toarray()
    # Sums of at most 20 terms in another order.
    assert (np.abs(hessian - expected) <= 40 * EPS * np.abs(expected).max()).all()


@pytest.mark.parametrize("way", WAYS)
@given(seed=seeds)
def test_steps_that_are_not_exact_end_where_expected_wins_equal_wins(way, seed):
    # More items than are factorised: steps are computed by conjugate gradients, coarsely at first.
    rng, items = np.random.default_rng(seed), 2 * linear.FACTORISED
    scores, ring = 2 * rng.normal(size=items), np.arange(items)
    first = np.concatenate([ring, rng.integers(0, items, 600)])
    second = np.concatenate([(ring + 1) % items, (first[items:] + rng.integers(1, items, 600)) % items])
    won = rng.random(len(first)) < 1 / (1 + np.exp(scores[second] - scores[first]))
    won[:items] = True
    data = Comparisons.from_pairs(
        np.where(won, first, second), np.where(won, second, first), prompt=np.zeros(items, np.int32)
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairwise, "worth_dense", lambda *_: way == "full")
        estimate = fit(data)
    chance = 1 / (1 + np.exp(estimate.scores[second] - estimate.scores[first]))
    expected = np.bincount(first, chance, minlength=items) + np.bincount(second, 1 - chance, minlength=items)
    wins = np.bincount(np.where(won, first, second), minlength=items)
    # A step that ends the method moves the value by 1e-18 of it; what is left of the gradient is rounding.
    assert np.abs(expected - wins).max() <= 1e-9
    assert estimate.gradient_norm <= 1e-9


class Hyperbola:
    """sqrt(1 + x²): Newton's whole step goes from x to -x³, which from beyond 1 ends nowhere."""

    def value(self, x):
        return float(np.sqrt(1 + x @ x))

    def reach(self, step):
        return 0.0

    def derivatives(self, x):
        root = self.value(x)
        return root, x / root, np.array([[root**-3]])


def test_an_information_that_rounding_spoiled_is_refused_in_words():
    """The Laplacian of a triangle, of which rounding has left a negative eigenvalue beside a vote of 1e12."""
    hessian = np.diag([1e12, 0.5, 0.5, 0.5])
    hessian[1:, 1:] -= 1 / 3
    with pytest.raises(RMJaxError, match="too uneven"):
        Gauge(np.zeros(4, int), free=False).solver(hessian)(np.eye(4))


def test_many_columns_are_solved_by_one_factorisation_to_the_same_numbers():
    rng, items = np.random.default_rng(0), 2 * linear._COLUMNS
    ring = np.arange(items)
    first = np.concatenate([ring, rng.integers(0, items, 600)])
    second = np.concatenate([(ring + 1) % items, (first[items:] + rng.integers(1, items, 600)) % items])
    votes = rng.integers(1, 5, (2, len(first)))
    data = Comparisons.from_votes(first, second, *votes, prompt=np.zeros(items, np.int32))
    full = fit(data).covariance()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairwise, "worth_dense", lambda *_: False)
        sparse = fit(data)
        one = sparse.covariance()
        patch.setattr(linear, "_COLUMNS", items + 1)
        by_columns = fit(data).covariance()
    for found in (one, by_columns):
        assert np.abs(found - full).max() <= 1e-9 * np.abs(full).max()


@pytest.mark.parametrize("start", [-30.0, 0.5, 1.5, 3.0])
def test_steps_that_do_not_descend_are_halved(start):
    found = minimise(Hyperbola(), np.array([start]), Gauge(np.array([0]), free=False))
    assert abs(found.x[0]) <= 1e-8
    assert found.value == Hyperbola().value(found.x)


@pytest.mark.parametrize("way", WAYS)
def test_a_long_path_has_the_sums_of_its_log_odds(way):
    """So long that conjugate gradients do not end in the steps that they are given: it is factorised then."""
    rng, items = np.random.default_rng(0), 2 * linear._TRIED
    path = np.arange(items - 1)
    won, lost = rng.integers(1, 9, (2, items - 1))
    data = Comparisons.from_votes(path, path + 1, won, lost, prompt=np.zeros(items, int))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairwise, "worth_dense", lambda *_: way == "full")
        estimate = fit(data)
    # Logarithms add up, and each is as exact as the gradient at its own pair, which adds up along the path too.
    np.testing.assert_allclose(-np.diff(estimate.scores), np.log(won / lost), rtol=0, atol=1e-9)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("shape", ["path", "tree"])
def test_uneven_trees_have_the_sums_of_their_log_odds_and_resistances(shape, seed):
    """From 1 vote to a million: a step that is solved coarsely would carry light pairs to where no step leads back."""
    rng, items = np.random.default_rng(seed), 300
    won, lost = np.floor(1e6 ** rng.random((2, items - 1)))
    parent = np.arange(items - 1) if shape == "path" else rng.integers(0, np.arange(1, items))
    data = Comparisons.from_votes(parent, np.arange(1, items), won, lost, prompt=np.zeros(items, int))
    estimate = fit(data)
    error = estimate.scores[parent] - estimate.scores[1:] - np.log(won / lost)
    assert (np.abs(error) <= 1e-9 * np.sqrt(1 / won + 1 / lost)).all()
    resistance, item = 0.0, items - 1
    while item > 0:
        resistance += 1 / won[item - 1] + 1 / lost[item - 1]
        item = int(parent[item - 1])
    assert estimate.contrast_variance(0, items - 1) == pytest.approx(resistance, rel=1e-8)


@pytest.mark.parametrize("edges", [1.05, 1.5, 3])
def test_uneven_graphs_are_fitted_to_a_share_of_their_standard_errors(edges):
    """The distance to the maximum, in standard errors, from the gradient and the information in full."""
    rng, items = np.random.default_rng(1), 200
    more, ring = int(items * (edges - 1)), np.arange(items)
    first = np.concatenate([ring, rng.integers(0, items, more)])
    second = np.concatenate([(ring + 1) % items, (first[items:] + rng.integers(1, items, more)) % items])
    won, lost = np.floor(1e6 ** rng.random((2, len(first))))
    estimate = fit(Comparisons.from_votes(first, second, won, lost, prompt=np.zeros(items, int)))
    chance = 1 / (1 + np.exp(estimate.scores[second] - estimate.scores[first]))
    pull, c = won - (won + lost) * chance, (won + lost) * chance * (1 - chance)
    gradient = np.bincount(first, pull, minlength=items) - np.bincount(second, pull, minlength=items)
    information = np.full((items, items), c.mean() / items)
    for ends in ((first, first), (second, second), (first, second), (second, first)):
        np.add.at(information, ends, c if ends[0] is ends[1] else -c)
    assert gradient @ np.linalg.solve(information, gradient) <= 1e-16


def test_a_factor_that_is_singular_is_refused_in_words():
    nothing = sparse.csr_array(sparse.diags_array([1.0] * 99 + [0.0]))
    with pytest.raises(RMJaxError, match="too uneven"):
        Gauge(np.zeros(100, int), free=False).solver(nothing)(np.ones(100))


def test_a_margin_moves_at_most_four_logits_a_step():
    rows = Rows(np.array([0]), np.array([1]), np.array([[1.0, 1.0]]), np.zeros(1))
    terms = PairTerms(rows, 2, "bradley_terry", position=False)
    assert terms.reach(np.array([3.0, -4.0])) == 7
    moved, _ = newton._descend(
        terms, np.array([7.0, -7.0]), terms.value(np.array([7.0, -7.0])), np.array([-7.0, 7]), 1, None
    )
    assert moved[0] - moved[1] == pytest.approx(10)


@pytest.mark.parametrize(("items", "parts", "ridge"), [(20_000, 1, 0.0), (3_000, 5, 0.0), (3_000, 2, 0.1)])
def test_paths_of_any_length_are_fitted(items, parts, ridge):
    """Conjugate gradients need as many steps as a path is long, and stop short of its rounding: a factor does not."""
    rng = np.random.default_rng(0)
    path = np.delete(np.arange(items - 1), np.arange(1, parts) * (items // parts) - 1)
    won, lost = rng.integers(1, 9, (2, len(path)))
    data = Comparisons.from_votes(path, path + 1, won, lost, prompt=np.zeros(items, int))
    estimate = fit(data, ridge=ridge)
    assert estimate.gradient_norm <= 1e-9
    if not ridge:
        np.testing.assert_allclose(-np.diff(estimate.scores)[path], np.log(won / lost), rtol=0, atol=1e-9)
        resistance = (1 / won + 1 / lost)[:100].sum()
        assert estimate.contrast_variance(0, 100) == pytest.approx(resistance, rel=1e-9)


def test_under_a_ridge_a_path_has_no_constant_that_is_free(monkeypatch):
    monkeypatch.setattr(linear, "_TRIED", 1)
    rng, items = np.random.default_rng(0), 300
    path = np.arange(items - 1)
    data = Comparisons.from_votes(path, path + 1, *rng.integers(1, 9, (2, items - 1)), prompt=np.zeros(items, int))
    thin = fit(data, ridge=0.1)
    bend = thin.solution.optimum.hessian.toarray()
    want = np.linalg.inv(bend)
    for i, j in ((0, 1), (0, 299), (120, 180)):
        assert thin.contrast_variance(i, j) == pytest.approx(want[i, i] + want[j, j] - 2 * want[i, j], rel=1e-9)


def test_a_long_lattice_is_neither_a_path_nor_short(monkeypatch):
    """A band of neighbours up to 4 apart: too full to be thin; a full factor takes over, or more steps do."""
    monkeypatch.setattr(linear, "_TRIED", 5)
    rng, items = np.random.default_rng(0), 400
    first = np.concatenate([np.arange(items - k) for k in range(1, 5)])
    second = np.concatenate([np.arange(k, items) for k in range(1, 5)])
    data = Comparisons.from_votes(first, second, *rng.integers(1, 5, (2, len(first))), prompt=np.zeros(items, int))
    full = fit(data)
    monkeypatch.setattr(linear, "DENSE", 0)
    stepped = fit(data)
    for estimate in (full, stepped):
        assert estimate.gradient_norm <= 1e-9
    np.testing.assert_allclose(stepped.scores, full.scores, rtol=0, atol=1e-9)


def test_conjugate_gradients_that_do_not_end_say_so(monkeypatch):
    """A skew matrix turns every step sideways, and a full one would not fit."""
    monkeypatch.setattr(linear, "DENSE", 0)
    size = 2 * linear.FACTORISED
    skew = np.triu(np.random.default_rng(0).normal(size=(size, size)))
    hessian = sparse.csr_array(np.eye(size) + skew - skew.T)
    with pytest.raises(RMJaxError, match=r"did not converge .unknowns=128"), np.errstate(all="ignore"):
        Gauge(np.zeros(size, int), free=False).solver(hessian)(np.ones(size))


class Ascending(Hyperbola):
    """A gradient of the wrong sign: every step goes up."""

    def derivatives(self, x):
        value, gradient, hessian = super().derivatives(x)
        return value, -gradient, hessian


def test_where_no_step_descends_the_slope_is_not_called_a_maximum():
    with pytest.raises(RMJaxError, match="the maximum of the likelihood was not reached"):
        minimise(Ascending(), np.array([0.5]), Gauge(np.array([0]), free=False))


class Nowhere:
    """A slope, and no value anywhere."""

    def reach(self, step):
        return 0.0

    def value(self, x):
        return np.nan

    def derivatives(self, x):
        return np.nan, np.ones(1), np.eye(1)


def test_what_is_no_number_is_not_called_a_maximum():
    with pytest.raises(RMJaxError, match=r"not reached .steps=1"):
        minimise(Nowhere(), np.array([0.5]), Gauge(np.array([0]), free=False))


class Bowl:
    """A square: one step reaches its minimum, and only a second one would say so."""

    def reach(self, step):
        return 0.0

    def value(self, x):
        return float(x @ x) / 2

    def derivatives(self, x):
        return self.value(x), x, np.eye(len(x))


def test_a_gradient_that_is_rounding_is_a_minimum_however_many_steps_there_were(monkeypatch):
    monkeypatch.setattr(newton, "_STEPS", 1)
    assert minimise(Bowl(), np.array([3.0]), Gauge(np.array([0]), free=False)).x == 0


def test_so_many_steps_and_no_more(monkeypatch):
    monkeypatch.setattr(newton, "_STEPS", 2)
    with pytest.raises(RMJaxError, match=r"not reached .steps=2"):
        minimise(Hyperbola(), np.array([-30.0]), Gauge(np.array([0]), free=False))


@given(seed=seeds)
def test_the_value_alone_is_that_of_the_derivatives(seed):
    rng = np.random.default_rng(seed)
    first, second = np.triu_indices(ITEMS, k=1)
    rows = Rows(first, second, rng.poisson(2, (len(first), 3)).astype(float), rng.integers(-1, 2, len(first)) * 1.0)
    terms = PairTerms(rows, ITEMS, "rao_kupper", True, ridge=0.5)
    x = np.append(3 * rng.normal(size=ITEMS), [0.3, -0.2])
    assert terms.value(x) == terms.derivatives(x)[0]


def test_parameters_are_refused_and_found_on_sparse_data_as_on_dense(monkeypatch):
    """More items than a full matrix is made for: the same tie parameter, and the same refusal of a position effect."""
    votes = np.random.default_rng(0).integers(1, 5, (3, 10))
    first, second = np.triu_indices(ITEMS, k=1)
    data = Comparisons.from_votes(first, second, *votes[:2], prompt=[0] * ITEMS, ties=votes[2])
    star = Comparisons.from_votes([0] * 4, [1, 2, 3, 4], [2] * 4, [1] * 4, prompt=[0] * ITEMS, order=[1] * 4)
    dense = fit(data, link="davidson")
    monkeypatch.setattr(pairwise, "worth_dense", lambda *_: False)
    sparse_fit = fit(data, link="davidson")
    np.testing.assert_allclose(sparse_fit.scores, dense.scores, rtol=0, atol=1e-10)
    assert sparse_fit.parameters["log_tie"] == pytest.approx(dense.parameters["log_tie"], abs=1e-10)
    with pytest.raises(IdentifiabilityError, match="say nothing of position"):
        fit(star, position=True)


def test_a_step_that_goes_up_is_no_step(monkeypatch):
    """What a spoiled factor returns: a negative decrement is not a small one."""
    monkeypatch.setattr(Gauge, "solver", lambda self, hessian, accuracy: lambda b: -b)
    with pytest.raises(RMJaxError, match="the maximum of the likelihood was not reached"):
        minimise(Hyperbola(), np.array([0.5]), Gauge(np.array([0]), free=False))
