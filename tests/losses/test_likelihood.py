"""Laws of likelihoods over scores and comparisons: gauge, votes, ties, deletion, sums and counts."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from graphs import BASEBALL_FIT, CITATIONS_FIT, PER_PROMPT, E, N, edges, graphs
from hypothesis import given
from hypothesis import strategies as st

from rmjax import Comparisons, losses
from rmjax.errors import DataError
from rmjax.preferences.published import BASEBALL, CITATIONS

EPS = {dtype: float(np.finfo(dtype).eps) for dtype in (np.float32, np.float64)}
POLICIES = st.sampled_from(["drop", "half"])
seeds = st.integers(0, 2**32 - 1)


def summed(ties):
    return lambda scores, comparisons: losses.negative_log_likelihood(scores, comparisons, ties=ties)


nll = {ties: jax.jit(summed(ties)) for ties in ("drop", "half", None)}
slope = {ties: jax.jit(jax.grad(summed(ties), has_aux=True)) for ties in ("drop", "half")}
hessian = jax.jit(jax.hessian(lambda scores, comparisons: summed("drop")(scores, comparisons)[0]))
gaps = jax.jit(losses.margins)
PAIRS = 2048
APART = Comparisons.from_pairs(np.arange(0, 2 * PAIRS, 2), np.arange(1, 2 * PAIRS, 2), np.arange(2 * PAIRS) // 2)


@jax.jit
def of_pairs(scores):
    """Margins of pairs that have a prompt of their own, chances, losses, and slopes in the margin."""
    d = losses.margins(scores, APART)
    return d, losses.probability(d), losses.bradley_terry(d), jax.vmap(jax.grad(losses.bradley_terry))(d)


def value(scores, comparisons, ties="drop"):
    """Sum, count and gradient as NumPy."""
    gradient, count = slope[ties](scores, comparisons)
    return float(nll[ties](scores, comparisons)[0]), float(count), np.asarray(gradient)


def effective(c, ties):
    """Weighted votes for either side, in float64."""
    a, b, tied, w = (np.asarray(x, np.float64) for x in (c.wins_first, c.wins_second, c.ties, c.weight))
    half = tied / 2 if ties == "half" else 0
    return w * (a + half), w * (b + half)


def rounding(c, scores, ties="drop"):
    """How far a float32 sum of E terms, each of 6 roundings, may be off: of the loss, and of a gradient."""
    a, b = effective(c, ties)
    d = np.float64(scores)[c.first] - np.float64(scores)[c.second]
    unit = (E + 6) * EPS[np.float32]
    return unit * (a * np.logaddexp(0, -d) + b * np.logaddexp(0, d)).sum(), unit * (a + b).sum()


def close(one, two, c, scores, ties="drop"):
    """Sum, count and gradient are equal up to what float32 sums round."""
    of_loss, of_gradient = rounding(c, scores, ties)
    np.testing.assert_allclose(one[0], two[0], rtol=0, atol=2 * of_loss)
    np.testing.assert_allclose(one[1], two[1], rtol=E * EPS[np.float32])
    np.testing.assert_allclose(one[2], two[2], rtol=0, atol=2 * of_gradient)


def take(c, keep):
    """The comparisons where `keep` holds, at the same shape: the others are padding in other places."""
    kept = np.flatnonzero(keep)
    at = {
        field.name: np.asarray(getattr(c, field.name))[kept]
        for field in dataclasses.fields(c)
        if field.name != "prompt" and getattr(c, field.name) is not None
    }
    return Comparisons(prompt=c.prompt, **at).pad(E, N)


# The sum and the count


@given(graphs(ties=True), POLICIES)
def test_the_sum_and_the_gradient_are_those_of_votes_minus_expected_votes(graph, ties):
    """∂/∂r = Σ n p - W, in float64 by loops over the pairs: Hunter 2004."""
    scores, c = graph
    a, b = effective(c, ties)
    total, gradient = 0.0, np.zeros(N)
    for e, (i, j) in enumerate(zip(c.first, c.second)):
        p = 1 / (1 + np.exp(float(scores[j]) - float(scores[i])))
        total -= a[e] * np.log(p) + b[e] * np.log1p(-p) if 1e-12 < p < 1 - 1e-12 else np.nan
        gradient[i] += (a[e] + b[e]) * p - a[e]
        gradient[j] -= (a[e] + b[e]) * p - a[e]
    got = value(scores, c, ties)
    of_loss, of_gradient = rounding(c, scores, ties)
    if np.isfinite(total):  # where p rounds to 1, log1p(-p) is no oracle
        assert abs(got[0] - total) <= of_loss
    assert got[1] == (a + b).sum()  # quarters of quarters are exact in float32
    assert (np.abs(got[2] - gradient) <= of_gradient).all()


@given(graphs(ties=True), POLICIES, seeds)
def test_any_split_has_the_same_sum_and_count(graph, ties, seed):
    scores, c = graph
    part = np.random.default_rng(seed).integers(0, 3, E)
    parts = [value(scores, take(c, part == k), ties) for k in range(3)]
    close([sum(numbers) for numbers in zip(*parts)], value(scores, c, ties), c, scores, ties)


@given(graphs(ties=True), POLICIES)
def test_swapping_the_sides_changes_nothing(graph, ties):
    scores, c = graph
    other = dataclasses.replace(c, first=c.second, second=c.first, wins_first=c.wins_second, wins_second=c.wins_first)
    close(value(scores, other, ties), value(scores, c, ties), c, scores, ties)


@given(graphs(), st.integers(1, 50))
def test_votes_are_so_many_times_the_cross_entropy_of_their_share(graph, votes):
    scores, c = graph
    first = np.random.default_rng(votes).integers(0, votes + 1, E)
    counted = dataclasses.replace(c, wins_first=np.float32(first), wins_second=np.float32(votes - first))
    share = (first / votes).astype(np.float32)
    soft = dataclasses.replace(c, wins_first=share, wins_second=1 - share, weight=c.weight * np.float32(votes))
    close(value(scores, counted), value(scores, soft), counted, scores)
    per_pair = losses.soft_label(gaps(scores, soft), share) * soft.weight
    assert abs(float(per_pair.sum()) - value(scores, counted)[0]) <= 2 * rounding(counted, scores)[0]


@given(graphs(ties=True), POLICIES)
def test_padding_changes_nothing_and_a_real_comparison_does(graph, ties):
    scores, c = graph
    short = take(c, np.arange(E) < E - 4)
    cut = {f.name: getattr(short, f.name) for f in dataclasses.fields(short)}
    cut = {name: x if x is None or name == "prompt" else x[: E - 4] for name, x in cut.items()}
    close(value(scores, Comparisons(**cut), ties), value(scores, short, ties), c, scores, ties)
    last = np.arange(E) == E - 1
    vote = last.astype(np.float32)
    more = dataclasses.replace(
        short, second=np.where(last, 1, short.second), wins_first=short.wins_first + vote, weight=short.weight + vote
    )
    assert value(scores, more, ties)[1] == value(scores, short, ties)[1] + 1


# Deletion


@given(graphs(ties=True), POLICIES, st.sampled_from([np.inf, -np.inf, np.nan]), seeds)
def test_weight_0_is_deletion_even_of_what_is_not_finite(graph, ties, bad, seed):
    """Value, gradient and Fisher information; the deleted response is infinite or not a number."""
    scores, c = graph
    victim = np.random.default_rng(seed).integers(N)
    touched = (c.first == victim) | (c.second == victim)
    erased = dataclasses.replace(c, weight=np.where(touched, 0, c.weight).astype(np.float32))
    without = take(c, ~touched)
    spoilt = scores.copy()
    spoilt[victim] = bad
    close(value(spoilt, erased, ties), value(scores, without, ties), c, scores, ties)
    assert value(spoilt, erased, ties)[2][victim] == 0
    fisher = np.asarray(hessian(spoilt, erased))
    assert np.isfinite(fisher).all()
    np.testing.assert_allclose(fisher, hessian(scores, without), rtol=0, atol=rounding(c, scores)[1])
    assert (gaps(spoilt, erased)[touched] == 0).all()


@given(graphs(ties=True), POLICIES, st.sampled_from([np.inf, -np.inf, np.nan]), seeds)
def test_no_vote_that_counts_is_deletion_too(graph, ties, bad, seed):
    scores, c = graph
    victim = np.random.default_rng(seed).integers(N)
    touched = (c.first == victim) | (c.second == victim)
    kinds = ("wins_first", "wins_second") if ties == "drop" else ("wins_first", "wins_second", "ties")
    silent = dataclasses.replace(c, **{k: np.where(touched, 0, getattr(c, k)).astype(np.float32) for k in kinds})
    spoilt = scores.copy()
    spoilt[victim] = bad
    close(value(spoilt, silent, ties), value(scores, take(c, ~touched), ties), c, scores, ties)
    assert value(spoilt, silent, ties)[2][victim] == 0


def test_a_side_without_votes_has_no_loss():
    """One margin is infinite, and all votes are for the side that cannot lose."""
    c = Comparisons.from_votes([0], [1], [2], [0], prompt=[0, 0])
    total, count, gradient = value(np.array([np.inf, 0.0], np.float32), c)
    assert (total, count) == (0.0, 2.0)
    np.testing.assert_array_equal(gradient, [0.0, 0.0])


# Gauge


def shifted(scores, seed, size, dtype):
    constant = np.random.default_rng(seed).uniform(-size, size, N // PER_PROMPT).repeat(PER_PROMPT)
    return scores.astype(dtype), (scores.astype(dtype) + constant.astype(dtype)).astype(dtype)


@pytest.mark.parametrize(("dtype", "size"), [(np.float32, 1e4), (np.float64, 1e6)])
@given(graphs(weighted=False), seeds)
def test_one_constant_per_prompt_cancels(dtype, size, graph, seed):
    """Margins to 2 eps (|c| + max |r|); the loss, whose slope is at most 1, by that times the votes."""
    plain, c = graph
    with jax.enable_x64(dtype is np.float64):
        scores, moved = shifted(plain, seed, size, dtype)
        bound = 2 * EPS[dtype] * (size + np.abs(scores).max())
        assert (np.abs(gaps(moved, c) - gaps(scores, c)) <= bound).all()
        one, two = value(scores, c), value(moved, c)
        votes = float((c.wins_first + c.wins_second).sum())
        summing = (E + 6) * EPS[dtype] * (1 + max(one[0], two[0]) + votes)
        assert abs(one[0] - two[0]) <= bound * votes + summing
        assert (np.abs(one[2] - two[2]) <= bound * votes + summing).all()


@pytest.mark.parametrize(("dtype", "size"), [(np.float32, 1e4), (np.float64, 1e6)])
@given(seeds, st.sampled_from([1.0, 30.0, 1e4]))
def test_one_constant_per_prompt_moves_no_chance_no_loss_and_no_pull_of_a_pair(dtype, size, seed, spread):
    """Thousands of prompts of one pair: by what a margin moves, times the largest slope of each."""
    rng = np.random.default_rng(seed)
    scores = rng.uniform(-spread, spread, 2 * PAIRS).astype(dtype)
    moved = scores + rng.uniform(-size, size, PAIRS).astype(dtype).repeat(2)
    bound = 2 * EPS[dtype] * (size + spread)
    with jax.enable_x64(dtype is np.float64):
        before, after = ([np.asarray(x, np.float64) for x in of_pairs(r)] for r in (scores, moved))
    margin, _, loss, _ = before
    rounding = (0, 4 * EPS[dtype], 8 * EPS[dtype] * (1 + loss), 8 * EPS[dtype])
    for one, two, steep, own in zip(before, after, (1, 1 / 4, 1, 1 / 4), rounding, strict=True):
        assert (np.abs(one - two) <= steep * bound + own).all()
    assert np.abs(margin).max() > 0


def test_bfloat16_breaks_the_gauge_and_float32_does_not():
    """(1, 0) + 1000: spacing is 8 up there in bfloat16, so the scores are float32 before anything is added.

    That holds a margin of 1 at a level of a million and loses it at a hundred million. Near -26, a level that public
    models have, bfloat16 knows eighths.
    """
    c = Comparisons.from_pairs([0], [1], prompt=[0, 0])
    narrow = jnp.array([1.0, 0.0], jnp.bfloat16)
    assert gaps(narrow + jnp.bfloat16(1000), c) == 0
    assert gaps(narrow.astype(jnp.float32) + 1000, c) == 1
    assert [float(gaps(narrow.astype(jnp.float32) + level, c)[0]) for level in (1e6, 1e8)] == [1, 0]
    eighths = jnp.array([-26 + 0.125, -26], jnp.bfloat16)
    assert gaps(eighths, c) == 0.125
    assert gaps(jnp.array([-26 + 0.0624, -26], jnp.bfloat16), c) == 0
    assert gaps(narrow, c).dtype == jnp.float32
    assert all(x.dtype == jnp.float32 for x in nll["drop"](narrow, c))


@given(graphs(weighted=False), st.floats(1.5, 10))
def test_scale_is_no_gauge(graph, scale):
    """The order stays, the probability does not: the scale of one model is fixed by its data."""
    scores, c = graph
    d = np.clip(np.abs(gaps(scores, c)), 0.1, 20) * np.sign(gaps(scores, c))
    with jax.enable_x64():
        plain, scaled = (np.asarray(losses.probability(np.float64(x))) for x in (d, scale * d))
    assert (np.abs(plain - scaled)[d != 0] > 1e-9).all()
    np.testing.assert_array_equal(np.sign(plain - 0.5), np.sign(scaled - 0.5))


def test_the_pairs_2_1_and_102_101_of_article_004_are_one():
    c = Comparisons.from_pairs([0], [1], prompt=[0, 0])
    low, high = (value(np.array(pair, np.float32), c) for pair in ([2.0, 1.0], [102.0, 101.0]))
    assert low[:2] == high[:2]
    np.testing.assert_array_equal(low[2], high[2])
    # And a gap of 2 is another pair.
    assert value(np.array([4.0, 2.0], np.float32), c)[0] < low[0]


# Fisher information


@given(graphs())
def test_the_hessian_is_the_laplacian_of_the_graph(graph):
    """Conductance n σ(Δ)σ(-Δ): symmetric, rows sum to 0, no negative eigenvalue."""
    scores, c = graph
    a, b = effective(c, "drop")
    d = np.float64(scores)[c.first] - np.float64(scores)[c.second]
    conductance = (a + b) / (2 + np.exp(d) + np.exp(-d))
    laplacian = np.zeros((N, N))
    for e, (i, j) in enumerate(zip(c.first, c.second)):
        laplacian[[i, j], [i, j]] += conductance[e]
        laplacian[[i, j], [j, i]] -= conductance[e]
    bound = (E + 16) * EPS[np.float32] * conductance.sum()
    got = np.asarray(hessian(scores, c), np.float64)
    assert (np.abs(got - laplacian) <= bound).all()
    assert (np.abs(got.sum(axis=1)) <= 2 * bound).all()
    assert np.linalg.eigvalsh((got + got.T) / 2).min() >= -N * bound


# Log-likelihood at the estimate, and eigenvalues of the information there; computed at 40 digits.
FITS = {
    "baseball": (
        BASEBALL,
        BASEBALL_FIT,
        -172.24817599471596,
        [0, 15.71695102, 20.12624818, 20.69044017, 21.08150470, 21.33090416, 21.42827113],
    ),
    "citations": (CITATIONS, CITATIONS_FIT, -1622.889808827598, [0, 139.62516494, 368.27332208, 550.69154944]),
}


@pytest.mark.parametrize("name", FITS)
def test_published_estimates_are_stationary(x64, name):
    wins, fit, log_likelihood, eigenvalues = FITS[name]
    c = Comparisons.from_wins(wins)
    total, count, gradient = value(fit, c)
    assert total == pytest.approx(-log_likelihood, rel=1e-14)
    assert count == wins.sum()
    # The estimate is rounded to an ulp, which the information turns into a gradient.
    assert np.abs(gradient).max() <= max(eigenvalues) * 4 * EPS[np.float64] * max(1, np.abs(fit).max())
    np.testing.assert_allclose(np.linalg.eigvalsh(hessian(fit, c)), eigenvalues, rtol=0, atol=5e-9)


# Ties


def test_ties_are_a_stated_choice():
    """6 to 2, and 4 ties: leaving them out, the best margin is log 3; as halves it is log 2, and it looks surer."""
    c = Comparisons.from_votes([0], [1], [6], [2], prompt=[0, 0], ties=[4])
    for ties, best, count in (("drop", np.log(3), 8.0), ("half", np.log(2), 12.0)):
        _, counted, gradient = value(np.array([best, 0], np.float32), c, ties)
        assert counted == count
        assert (np.abs(gradient) <= 8 * EPS[np.float32] * count).all()
    with pytest.raises(DataError, match="ties=4") as caught:
        losses.negative_log_likelihood(np.zeros(2, np.float32), c)
    assert '"drop"' in caught.value.remedy


@given(graphs(ties=True))
def test_unset_ties_are_left_out_where_nobody_can_look(graph):
    scores, c = graph
    assert nll[None](scores, c) == nll["drop"](scores, c)


@given(graphs())
def test_without_ties_there_is_nothing_to_choose(graph):
    scores, c = graph
    total, count = losses.negative_log_likelihood(scores, c)
    for ties in ("drop", "half"):
        got = value(scores, c, ties)
        assert abs(float(total) - got[0]) <= 2 * rounding(c, scores)[0]
        assert float(count) == got[1]


@given(seeds, st.sampled_from(["comparison", "prompt"]))
def test_weighing_makes_every_unit_count_as_one(seed, unit):
    rng = np.random.default_rng(seed)
    first, second, prompt = edges(rng)
    a, b = rng.integers(1, 9, (2, E))
    c = Comparisons.from_votes(first, second, a, b, prompt).weigh(unit)
    units = E if unit == "comparison" else len(np.unique(prompt[first]))
    _, count, gradient = value(np.zeros(N, np.float32), c)
    assert count == pytest.approx(units, rel=E * EPS[np.float32])
    # Even in a tie of all scores each unit pulls by at most 1/2 a side.
    assert np.abs(gradient).sum() <= units * (1 + E * EPS[np.float32])


@pytest.mark.parametrize("shape", [(3,), (1,), (2, 1), ()])
def test_another_number_of_scores_than_of_responses_is_refused(shape):
    """An index out of range would read some other score."""
    pairs = Comparisons.from_pairs([0], [1], prompt=[0, 0])
    for of in (losses.margins, jax.jit(losses.margins)):
        with pytest.raises(DataError, match="one score per response"):
            of(jnp.zeros(shape), pairs)
