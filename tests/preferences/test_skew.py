"""Laws of the skew model: sides exchange, areas are all it says, and it fits what no scalar can."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from graphs import BASEBALL_FIT, E, N, edges
from hypothesis import given
from hypothesis import strategies as st

from rmjax import Comparisons, losses
from rmjax.errors import DataError, SampleSizeError
from rmjax.preferences.published import BASEBALL
from rmjax.preferences.skew import SkewModel, fit_skew, skew_margins

EPS = {dtype: float(np.finfo(dtype).eps) for dtype in (np.float32, np.float64)}
PLANES = 3
seeds = st.integers(0, 2**32 - 1)
# Rock, paper, scissors: each beats the next by 8 to 2.
CIRCLE = Comparisons.from_votes([0, 1, 2], [1, 2, 0], [8, 8, 8], [2, 2, 2], prompt=[0, 0, 0])

gaps = jax.jit(skew_margins)
slope = jax.jit(jax.grad(lambda model, c, pull: (pull * skew_margins(model, c)).sum()))
probability = jax.jit(losses.probability)


@st.composite
def models(draw, dtype=np.float32):
    """An embedding of N items in three planes, and E comparisons."""
    rng = np.random.default_rng(draw(seeds))
    scale = draw(st.sampled_from([0.1, 1.0, 10.0]))
    first, second, prompt = edges(rng)
    c = Comparisons.from_votes(first, second, np.ones(E), np.zeros(E), prompt)
    return SkewModel(rng.normal(0, scale, (N, PLANES, 2)).astype(dtype)), c


def turned(c):
    return dataclasses.replace(c, first=c.second, second=c.first, wins_first=c.wins_second, wins_second=c.wins_first)


def by_matrix(u, c):
    """u R u' in float64, with R written out."""
    u = np.asarray(u, np.float64).reshape(len(u), -1)
    r = np.kron(np.eye(u.shape[1] // 2), [[0, 1], [-1, 0]])
    return (u @ r @ u.T)[c.first, c.second]


def rounding(u, c, dtype=np.float32):
    """Of 2 products a plane and their sum."""
    u = np.abs(np.asarray(u, np.float64)).reshape(len(u), -1)
    return (2 * PLANES + 2) * EPS[dtype] * (u[c.first] * u[c.second][:, [1, 0, 3, 2, 5, 4]]).sum(axis=1)


def symplectic(rng, planes=PLANES):
    """A random change of basis that keeps areas across planes: shears by symmetric matrices, and a linear map."""
    a, b = (m + m.T for m in rng.normal(0, 0.3, (2, planes, planes)))
    one = np.block([[np.eye(planes), a], [np.zeros((planes, planes)), np.eye(planes)]])
    two = np.block([[np.eye(planes), np.zeros((planes, planes))], [b, np.eye(planes)]])
    g = np.eye(planes) + 0.2 * rng.normal(size=(planes, planes))
    three = np.block([[g, np.zeros((planes, planes))], [np.zeros((planes, planes)), np.linalg.inv(g).T]])
    mixed = one @ two @ three
    order = np.arange(2 * planes).reshape(2, planes).T.ravel()  # from (x..., y...) to (x, y)...
    return mixed[np.ix_(order, order)]


# Margins


@given(models())
def test_a_margin_is_the_form_of_two_embeddings(drawn):
    model, c = drawn
    assert (np.abs(gaps(model, c) - by_matrix(model.embedding, c)) <= rounding(model.embedding, c)).all()
    assert model.rank == PLANES


@given(models())
def test_exchanging_the_sides_changes_the_sign_to_the_last_bit(drawn):
    model, c = drawn
    d, other = np.asarray(gaps(model, c)), np.asarray(gaps(model, turned(c)))
    np.testing.assert_array_equal(d, -other)
    total = np.asarray(probability(d), np.float64) + np.asarray(probability(other), np.float64)
    assert (np.abs(total - 1) <= 2 * EPS[np.float32]).all()


@given(models(), seeds)
def test_scores_in_one_plane_are_bradley_terry(drawn, seed):
    """Blocks (θ, 1), the scores split over the planes: 1 - 1 adds nothing, and the rest is θ_i - θ_j."""
    _, c = drawn
    scores = np.random.default_rng(seed).integers(-40, 41, (N, PLANES)).astype(np.float32) / 8
    model = SkewModel(np.stack([scores, np.ones_like(scores)], axis=-1))
    np.testing.assert_array_equal(gaps(model, c), losses.margins(scores.sum(axis=1), c))


@given(models(dtype=np.float64), seeds)
def test_a_change_of_basis_that_keeps_areas_changes_no_margin(drawn, seed):
    """Determinant 1 within every plane, and the symplectic group across planes; and it does move the embedding."""
    model, c = drawn
    rng = np.random.default_rng(seed)
    within = np.eye(2) + rng.normal(0, 0.5, (PLANES, 2, 2))
    area = np.linalg.det(within)
    within = within / np.sqrt(np.abs(area))[:, None, None]
    within[area < 0, 0] *= -1
    u = np.einsum("npi,pji->npj", model.embedding, within)
    v = (model.embedding.reshape(N, -1) @ symplectic(rng).T).reshape(N, PLANES, 2)
    size = np.abs(model.embedding).max() ** 2
    with jax.enable_x64():
        before = gaps(model, c)
        for moved in (u, v):
            assert np.abs(moved - model.embedding).max() > 1e-3
            bound = 1e3 * EPS[np.float64] * max(size, np.abs(moved).max() ** 2)
            assert (np.abs(gaps(SkewModel(moved), c) - before) <= bound).all()


@given(models())
def test_a_change_of_area_is_no_gauge(drawn):
    """Twice the area is twice the margin; a mirror turns every preference around."""
    model, c = drawn
    wider = SkewModel(model.embedding * np.float32([2, 1]))
    np.testing.assert_array_equal(gaps(wider, c), 2 * gaps(model, c))
    mirrored = SkewModel(model.embedding * np.float32([-1, 1]))
    np.testing.assert_array_equal(gaps(mirrored, c), -gaps(model, c))


@given(models(), seeds)
def test_the_gradient_is_that_of_the_form(drawn, seed):
    """Of the first item R u_j, and of the second -R u_i, times the pull on the margin; by a loop."""
    model, c = drawn
    pull = np.random.default_rng(seed).normal(size=E).astype(np.float32)
    want = np.zeros((N, PLANES, 2))
    for e, (i, j) in enumerate(zip(c.first, c.second)):
        want[i] += pull[e] * (model.embedding[j][:, ::-1] * [1, -1])
        want[j] -= pull[e] * (model.embedding[i][:, ::-1] * [1, -1])
    got = slope(model, c, pull).embedding
    bound = (E + 4) * EPS[np.float32] * np.abs(pull).sum() * np.abs(model.embedding).max()
    assert np.abs(got - want).max() <= bound


@given(models(), st.sampled_from([np.nan, np.inf]), seeds)
def test_a_deleted_comparison_has_margin_0_and_lets_nothing_through(drawn, bad, seed):
    model, c = drawn
    victim = np.random.default_rng(seed).integers(N)
    touched = (c.first == victim) | (c.second == victim)
    spoilt = model.embedding.copy()
    spoilt[victim] = bad
    erased = dataclasses.replace(c, weight=np.where(touched, 0, 1).astype(np.float32))
    d = np.asarray(gaps(SkewModel(spoilt), erased))
    np.testing.assert_array_equal(d, np.where(touched, 0, gaps(model, c)))
    gradient = np.asarray(slope(SkewModel(spoilt), erased, np.ones(E, np.float32)).embedding)
    assert np.isfinite(gradient).all()
    assert (gradient[victim] == 0).all()


def test_narrow_embeddings_are_multiplied_in_float32():
    narrow = SkewModel(jnp.full((3, 1, 2), 1.0078125, jnp.bfloat16).at[0, 0, 0].set(1))
    d = gaps(narrow, CIRCLE)
    assert d.dtype == jnp.float32
    assert d[0] == np.float32(1.0078125 - 1.0078125**2)


@pytest.mark.parametrize("shape", [(3, 2), (4, 1, 2), (3, 1, 3)])
def test_an_embedding_of_another_shape_is_refused(shape):
    for of in (skew_margins, gaps):
        with pytest.raises(DataError, match="two coordinates a plane"):
            of(SkewModel(np.zeros(shape, np.float32)), CIRCLE)


# Fits


def chances(fit, c):
    with jax.enable_x64():
        return np.asarray(probability(gaps(fit.model, c)))


def entropy(share):
    return -(share * np.log(share) + (1 - share) * np.log(1 - share))


def test_one_plane_fits_rock_paper_scissors():
    """To 1e-8 at 80 %, where any scores are no better than a coin."""
    fit = fit_skew(CIRCLE)
    assert fit.converged
    assert fit.runaway == ()
    np.testing.assert_allclose(chances(fit, CIRCLE), 0.8, atol=1e-8)
    assert fit.loss == pytest.approx(entropy(0.8), rel=1e-14)
    assert fit.gradient_norm <= 1e-8
    assert fit.model.embedding.dtype == np.float64


@pytest.fixture(scope="module")
def ladder():
    """Fits of five items with random votes, 16 a pair, with one and two planes; five items have rank 4."""
    rng = np.random.default_rng(0)
    i, j = np.triu_indices(5, 1)
    won = rng.integers(2, 15, len(i))
    c = Comparisons.from_votes(i, j, won, 16 - won, np.zeros(5, int))
    return c, [fit_skew(c, rank=rank, starts=1) for rank in (1, 2)]


def test_a_plane_more_never_fits_worse(ladder):
    _, fits = ladder
    values = [fit.loss for fit in fits]
    assert values == sorted(values, reverse=True)
    assert values[0] < np.log(2)


def test_half_as_many_planes_as_items_fit_everything(ladder):
    c, fits = ladder
    assert fits[-1].converged
    np.testing.assert_allclose(chances(fits[-1], c), c.wins_first / 16, atol=1e-6)
    assert fits[-1].loss == pytest.approx(entropy(np.float64(c.wins_first) / 16).mean(), abs=1e-11)
    assert fits[-2].loss > fits[-1].loss + 1e-6


def test_the_fit_is_as_its_loss_says(ladder):
    """By the logarithms of the fitted chances, per vote."""
    c, fits = ladder
    for fit in fits:
        p = chances(fit, c)
        again = -(c.wins_first * np.log(p) + c.wins_second * np.log1p(-p)).sum() / (16 * 10)
        assert fit.loss == pytest.approx(again, rel=1e-12)
        assert fit.losses[0] == pytest.approx(fit.loss, rel=1e-12)
        assert (np.diff(fit.losses) >= 0).all()
        assert len(fit.losses) == 4  # a random start, a plane less with and without a nudge, scores


def test_one_plane_fits_no_worse_than_bradley_terry():
    """Agresti 2002, table 10.11; the estimate is at 40 digits."""
    c = Comparisons.from_wins(BASEBALL)
    fit = fit_skew(c, starts=1)
    with jax.enable_x64():
        total, count = losses.negative_log_likelihood(BASEBALL_FIT, c)
    assert fit.converged
    assert fit.loss < float(total / count) - 1e-3


def test_exact_bradley_terry_shares_are_found():
    scores = np.linspace(-1, 1, 6)
    i, j = np.triu_indices(6, 1)
    chance = 1 / (1 + np.exp(scores[j] - scores[i]))
    c = Comparisons.from_votes(i, j, chance, 1 - chance, np.zeros(6, int))
    np.testing.assert_allclose(chances(fit_skew(c, starts=1), c), chance, atol=1e-6)


def test_votes_all_for_one_side_run_away_and_are_named():
    """Item 3 always loses to item 1: the likelihood rises without end, and a finite fit would be an accident."""
    c = Comparisons.from_votes([0, 1, 2, 1], [1, 2, 0, 3], [8, 8, 8, 5], [2, 2, 2, 0], prompt=[0] * 5)
    fit = fit_skew(c, starts=1, max_iterations=40)
    assert fit.runaway == ((1, 3),)
    assert not fit.converged
    assert np.isnan(fit.model.embedding[4]).all()  # whom nobody judged
    np.testing.assert_allclose(chances(fit, c)[:3], 0.8, atol=1e-4)


def test_a_descent_that_was_cut_short_is_not_converged():
    assert not fit_skew(Comparisons.from_wins(BASEBALL), max_iterations=2, starts=np.int64(1)).converged


def test_one_seed_gives_one_fit():
    one, two, other = (fit_skew(CIRCLE, seed=seed, starts=1).model.embedding for seed in (4, 4, 5))
    np.testing.assert_array_equal(one, two)
    assert np.abs(one - other).max() > 1e-3


def test_ties_and_weights_are_those_of_the_tally():
    c = Comparisons.from_votes(
        [0, 1, 2, 0], [1, 2, 0, 1], [8, 8, 8, 1], [2, 2, 2, 9], [0] * 3, ties=[10, 0, 0, 0], weight=[1, 1, 1, 0]
    )
    np.testing.assert_allclose(chances(fit_skew(c, ties="drop", starts=1), c)[:3], 0.8, atol=1e-8)
    np.testing.assert_allclose(chances(fit_skew(c, ties="half", starts=1), c)[:3], [0.65, 0.8, 0.8], atol=1e-8)
    with pytest.raises(DataError, match="ties=10"):
        fit_skew(c)


@pytest.mark.parametrize(
    "options",
    [{"rank": 0}, {"rank": 1.0}, {"starts": True}, {"max_iterations": -1}, {"tolerance": 0}, {"tolerance": np.nan}],
)
def test_options_that_are_none_are_refused(options):
    with pytest.raises(DataError, match=next(iter(options))):
        fit_skew(CIRCLE, **options)


def test_without_votes_there_is_no_fit():
    with pytest.raises(SampleSizeError, match="no votes count"):
        fit_skew(dataclasses.replace(CIRCLE, weight=0 * CIRCLE.weight))
