"""What a step of gradient descent promises with free scores, what it does not with a shared head, and its witness."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from graphs import BASEBALL_FIT, PER_PROMPT, PROMPTS, E, N, edges, graphs
from hypothesis import given
from hypothesis import strategies as st

from rmjax import Comparisons, losses
from rmjax.errors import DataError, GaugeError, IdentifiabilityError
from rmjax.head import Head, score
from rmjax.identifiability.gradients import blind_step, estimate_sensitivity, head_step, score_step
from rmjax.identifiability.head import identify_head
from rmjax.preferences.published import BASEBALL

D = 5
EPS = float(np.finfo(np.float32).eps)
POLICIES = st.sampled_from(["drop", "half"])
BAD = st.sampled_from([np.inf, -np.inf, np.nan])
seeds = st.integers(0, 2**32 - 1)

free = {
    ties: jax.jit(lambda r, c, step, ties=ties: score_step(r, c, step=step, ties=ties)) for ties in ("drop", "half")
}
shared = jax.jit(lambda w, h, c, step: head_step(w, h, c, step=step, ties="drop"))
one_hot = jax.jit(lambda w, h, c: head_step(w, h, c, ties="drop"))
loss_slope = {
    ties: jax.jit(jax.grad(lambda r, c, ties=ties: losses.negative_log_likelihood(r, c, ties=ties)[0]))
    for ties in ("drop", "half")
}
head_slope = jax.jit(
    jax.grad(lambda w, h, c: losses.negative_log_likelihood(jnp.matmul(h, w, precision="highest"), c, ties="drop")[0])
)
bend_scores = jax.jit(jax.grad(lambda r, c, v: score_step(r, c, ties="drop") @ v))
bend_head = jax.jit(jax.grad(lambda w, h, c, v: head_step(w, h, c, ties="drop") @ v, argnums=(0, 1)))


def votes_of(c, ties="drop"):
    return float(c.counted(ties).sum())


# Free scores


@given(graphs(ties=True), POLICIES, st.sampled_from([0.1, 1.0]))
def test_a_step_on_scores_goes_down_the_loss(graph, ties, step):
    scores, c = graph
    got = np.asarray(free[ties](scores, c, np.float32(step)))
    assert (np.abs(got + step * np.asarray(loss_slope[ties](scores, c))) <= E * EPS * step * votes_of(c, ties)).all()


@given(graphs())
def test_a_step_on_scores_is_wins_minus_expected_wins(graph):
    """By loops in float64."""
    scores, c = graph
    want = np.zeros(N)
    for e, (i, j) in enumerate(zip(c.first, c.second)):
        p = 1 / (1 + np.exp(float(scores[j]) - float(scores[i])))
        pull = float(c.weight[e]) * (float(c.wins_first[e]) * (1 - p) - float(c.wins_second[e]) * p)
        want[i] += pull
        want[j] -= pull
    assert (np.abs(free["drop"](scores, c, np.float32(1)) - want) <= (E + 6) * EPS * votes_of(c)).all()


@given(graphs())
def test_the_chosen_of_a_pair_on_its_own_rises_as_the_rejected_falls(graph):
    """By η σ(-Δ), down to where float32 has no smaller number; and nobody else moves."""
    scores, c = graph
    i, j = int(c.first[0]), int(c.second[0])
    alone = dataclasses.replace(
        c, wins_first=np.eye(E)[0].astype(np.float32), wins_second=0 * c.weight, weight=np.ones(E, np.float32)
    )
    change = np.asarray(free["drop"](scores, alone, np.float32(1)), np.float64)
    margin = float(scores[i]) - float(scores[j])
    assert change[i] == -change[j] >= 0
    if margin < 80:
        assert change[i] > 0
        assert change[i] == pytest.approx(1 / (1 + np.exp(margin)), rel=8 * EPS * (1 + abs(margin)))
    assert not np.delete(change, [i, j]).any()


@given(graphs())
def test_a_step_on_scores_moves_no_prompt_as_a_whole(graph):
    """So the mean of a prompt is what it was before training: a level is the initialisation's."""
    scores, c = graph
    change = np.asarray(free["drop"](scores, c, np.float32(1)), np.float64).reshape(PROMPTS, PER_PROMPT)
    assert (np.abs(change.sum(axis=1)) <= 2 * E * EPS * votes_of(c)).all()


@given(graphs(), BAD, seeds, st.sampled_from(["weight", "votes"]))
def test_what_no_vote_reads_reaches_no_step_and_no_gradient(graph, bad, seed, kind):
    """Comparisons with padding have weight 0, or no votes; the padded score and features are no numbers."""
    scores, c = graph
    rng = np.random.default_rng(seed)
    victim = rng.integers(N)
    touched = (c.first == victim) | (c.second == victim)
    zeroed = {
        k: np.where(touched, 0, getattr(c, k)).astype(np.float32) for k in ("weight", "wins_first", "wins_second")
    }
    gone = {"weight": ("weight",), "votes": ("wins_first", "wins_second")}[kind]
    mine = np.arange(N) == victim
    c = dataclasses.replace(c, prompt=np.where(mine, -1, c.prompt), **{k: zeroed[k] for k in gone})
    features, v, w = (rng.normal(size=size).astype(np.float32) for size in ((N, D), N, D))
    bad, one = np.float32(bad), np.float32(1)
    scores, spoilt = np.where(mine, 0, scores), np.where(mine, bad, scores)
    rows, spoilt_rows = np.where(mine[:, None], 3, features), np.where(mine[:, None], bad, features)
    for of, clean, dirty in (
        (free["drop"], (scores, c, one), (spoilt, c, one)),
        (bend_scores, (scores, c, v), (spoilt, c, v)),
        (shared, (w, rows, c, one), (w, spoilt_rows, c, one)),
        (bend_head, (w, rows, c, v), (w, spoilt_rows, c, v)),
    ):
        for want, got in zip(jax.tree.leaves(of(*clean)), jax.tree.leaves(of(*dirty))):
            np.testing.assert_array_equal(got, want)
            assert np.isfinite(got).all()
            assert got.shape[0] != N or not got[victim].any()


# A shared head


@st.composite
def heads(draw):
    _, c = draw(graphs())
    rng = np.random.default_rng(draw(seeds))
    return rng.normal(size=D).astype(np.float32), rng.normal(size=(N, D)).astype(np.float32), c


@given(heads(), st.sampled_from([0.1, 1.0]))
def test_a_step_on_a_head_goes_down_the_loss_of_the_head(case, step):
    w, h, c = case
    want = -step * h.astype(np.float64) @ np.asarray(head_slope(w, h, c), np.float64)
    size = step * votes_of(c) * np.square(h).sum(axis=1).max()
    assert (np.abs(shared(w, h, c, np.float32(step)) - want) <= (E + N + D) * EPS * size * 4).all()


@given(heads())
def test_the_margin_of_a_pair_that_is_trained_on_its_own_does_not_fall(case):
    w, h, c = case
    alone = Comparisons.from_pairs(c.first[:1], c.second[:1], c.prompt).pad(E, N)
    change = np.asarray(shared(w, h, alone, np.float32(1)), np.float64)
    assert change[c.first[0]] >= change[c.second[0]]


@given(graphs())
def test_one_feature_per_response_is_free_scores(graph):
    scores, c = graph
    got = one_hot(scores, np.eye(N, dtype=np.float32), c)
    # A product with the identity adds zeros; the sums over comparisons may run in another order.
    assert (np.abs(got - free["drop"](scores, c, np.float32(1))) <= 2 * E * EPS * votes_of(c)).all()


def test_a_step_on_a_shared_head_may_lower_the_chosen_and_another_margin():
    """The witness: with free scores the same step raises the chosen and leaves the other pair alone."""
    case = blind_step()
    scores = case.features @ case.head
    np.testing.assert_array_equal(score_step(scores, case.trained), [0.5, -0.5, 0, 0])
    change = np.asarray(head_step(case.head, case.features, case.trained))
    chosen, rejected = int(case.trained.first[0]), int(case.trained.second[0])
    better, worse = int(case.other.first[0]), int(case.other.second[0])
    assert change[rejected] < change[chosen] < 0  # the pair itself is learnt, by lowering both
    assert change[better] < change[worse]  # and the label of the other pair is unlearnt
    before, after = (losses.negative_log_likelihood(r, case.other)[0] for r in (scores, scores + change))
    assert after > before


@jax.jit
@jax.grad
def bias_slope(bias, states, penalty):
    """Gradient of the bias of a head on disjoint pairs, with a penalty on the squared sum of the two scores."""
    r = score(states, Head(jnp.ones(D, jnp.float32), bias))
    margin_loss = losses.bradley_terry(r[0::2] - r[1::2]).sum()
    return margin_loss + penalty.astype(r.dtype) * losses.centering(r[0::2], r[1::2]).sum()


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16, jnp.float32, jnp.float64])
@given(seeds, st.sampled_from([0.01, 1.0]))
def test_a_bias_has_no_gradient_but_that_of_a_centring_penalty(dtype, seed, penalty):
    """4 λ Σ (r₁ + r₂), rounded to the type of the bias."""
    rng = np.random.default_rng(seed)
    with jax.enable_x64(dtype is jnp.float64):
        states, bias = (jnp.asarray(rng.normal(size=size), dtype) for size in ((N, D), ()))
        free, pinned = (bias_slope(bias, states, jnp.asarray(x, dtype)) for x in (0, penalty))
        assert free == 0  # to the last bit
        sums = (np.asarray(states, np.float64).sum(axis=1) + float(bias)).reshape(-1, 2).sum(axis=1)
        want = 4 * float(jnp.asarray(penalty, dtype)) * sums
        unit = float(jnp.finfo(dtype).eps) + 2 * (N + D) * (EPS if dtype != jnp.float64 else 2.0**-52)
        assert abs(float(pinned) - want.sum()) <= unit * (np.abs(want).sum() + penalty * N)
        assert pinned != 0


def newton(design, wins, iterations=30):
    """Weights of least norm that maximise the likelihood of Σ wins · log σ(design · w)."""
    w = np.zeros(design.shape[1])
    for _ in range(iterations):
        p = 1 / (1 + np.exp(-design @ w))
        share = wins.sum(axis=1) * p * (1 - p)
        pull = wins[:, 0] - wins.sum(axis=1) * p
        w = w + np.linalg.pinv(design.T * share @ design, rcond=1e-10) @ (design.T @ pull)
    return w


def test_with_a_shared_head_a_win_may_lower_the_winner():
    """Not only a step: the estimate itself, of three answers with one feature. (Two features are free scores here.)"""
    h = np.array([[1.0], [2.0], [0.0]])
    pairs = np.array([[0, 1], [1, 2], [0, 2]])
    wins = np.array([[3.0, 4.0], [5.0, 2.0], [2.0, 3.0]])
    more = wins + 1e-4 * np.eye(3, 2)[[0, 2, 2]]
    design = h[pairs[:, 0]] - h[pairs[:, 1]]
    fits = [newton(design, w) for w in (wins, more)]
    slope = h @ (fits[1] - fits[0]) / 1e-4
    c = Comparisons.from_votes(*pairs.T, *wins.T, [0, 0, 0])
    information = identify_head(h, c, head=fits[0]).information
    p = 1 / (1 + np.exp(-design[0] @ fits[0]))
    np.testing.assert_allclose(slope, h @ np.linalg.solve(information, design[0]) * (1 - p), rtol=1e-4)
    assert slope[0] - slope[1] > 0  # the margin that won rises
    assert slope[0] - slope[2] < 0 < estimate_free(pairs, wins)  # and against the third answer the winner falls


def estimate_free(pairs, wins):
    """What free scores promise of the same win: the winner rises against the third answer."""
    theta = newton(np.eye(3)[pairs[:, 0]] - np.eye(3)[pairs[:, 1]], wins)
    change = estimate_sensitivity(theta, Comparisons.from_votes(*pairs.T, *wins.T, [0, 0, 0]), 0, 1)
    return change[0] - change[2]


# Estimates


@st.composite
def estimates(draw):
    """Votes of three prompts, each with a finite estimate, that estimate, and two answers of one prompt."""
    rng = np.random.default_rng(draw(seeds))
    first, second, prompt = edges(rng)
    ring = np.arange(N)
    after = ring - ring % PER_PROMPT + (ring + 1) % PER_PROMPT  # everyone beats the next one
    first, second = np.concatenate([ring, first]), np.concatenate([after, second])
    wins = rng.integers(0, 6, (N + E, 2)).astype(float)
    wins[:N, 0] += 1
    weight = rng.integers(1, 5, N + E) / 4
    design = np.eye(N)[first] - np.eye(N)[second]
    theta = newton(design, wins * weight[:, None])
    theta = theta + rng.normal(size=PROMPTS)[prompt]  # in any gauge
    i = int(rng.integers(N))
    j = i - i % PER_PROMPT + (i + int(rng.integers(1, PER_PROMPT))) % PER_PROMPT
    return theta, Comparisons.from_votes(first, second, *wins.T, prompt, weight=weight), i, j


@given(estimates())
def test_a_win_changes_the_estimate_by_the_formula(case):
    """Against a refit with a little more and a little less of the win, by Newton."""
    theta, c, i, j = case
    design = np.eye(N)[np.append(c.first, i)] - np.eye(N)[np.append(c.second, j)]
    wins = c.weight[:, None] * np.stack([c.wins_first, c.wins_second], axis=1, dtype=np.float64)
    h = 1e-3
    up, down = (newton(design, np.append(wins, [[s, 0.0]], axis=0)) for s in (h, -h))
    refit = (up - down) / (2 * h)
    got = estimate_sensitivity(theta, c, i, j)
    np.testing.assert_allclose(got, refit, rtol=0, atol=1e-5 * np.abs(refit).max())


@given(estimates())
def test_a_win_raises_the_winner_and_lowers_the_loser_against_everyone(case):
    theta, c, i, j = case
    got = estimate_sensitivity(theta, c, i, j)
    prompt = np.asarray(c.prompt) == c.prompt[i]
    assert (got[i] - got[prompt & (np.arange(N) != i)] > 0).all()
    assert (got[j] - got[prompt & (np.arange(N) != j)] < 0).all()
    assert abs(got.sum()) <= 1e-12 * np.abs(got).max()
    assert not got[~prompt].any()
    other = estimate_sensitivity(theta, c, j, i)
    odds = np.exp(theta[i] - theta[j])
    np.testing.assert_allclose(other, -odds * got, rtol=0, atol=1e-9 * np.abs(other).max())


def test_a_win_of_boston_over_milwaukee():
    """Agresti 2002, table 10.11; the formula, and finite differences that agree to six digits."""
    got = estimate_sensitivity(BASEBALL_FIT, Comparisons.from_wins(BASEBALL), 1, 4)
    assert f"{got[1]:+.7f} {got[4]:+.7f}" == "+0.0288936 -0.0305294"


def test_float32_estimates_are_good_enough_and_other_scores_are_not():
    games = Comparisons.from_wins(BASEBALL)
    fit = BASEBALL_FIT.astype(np.float32)
    np.testing.assert_allclose(
        estimate_sensitivity(fit, games, 1, 4), estimate_sensitivity(BASEBALL_FIT, games, 1, 4), rtol=1e-4, atol=1e-7
    )
    with pytest.raises(DataError, match=r"not the estimate.*response=0, wins_minus_expected=-"):
        estimate_sensitivity(BASEBALL_FIT + 0.1 * (np.arange(7) == 0), games, 1, 4)
    with pytest.raises(DataError, match="not the estimate"):
        estimate_sensitivity(np.where(np.arange(7) == 2, np.nan, BASEBALL_FIT), games, 1, 4)


def test_ties_enter_an_estimate_as_they_entered_its_fit():
    votes = Comparisons.from_votes([0], [1], [2], [1], [0, 0], ties=[2])
    assert estimate_sensitivity([np.log(3 / 2), 0], votes, 0, 1, ties="half")[0] == pytest.approx(1 / 6)
    assert estimate_sensitivity([np.log(2), 0], votes, 0, 1, ties="drop")[0] == pytest.approx(1 / 4)
    with pytest.raises(DataError, match="ties=2"):
        estimate_sensitivity([0, 0], votes, 0, 1)


# What is refused


def test_votes_without_a_finite_estimate_have_no_sensitivity():
    islands = Comparisons.from_votes([0, 2], [1, 3], [1, 1], [1, 1], [0, 0, 0, 0])
    with pytest.raises(IdentifiabilityError, match="no votes connect") as caught:
        estimate_sensitivity(np.zeros(4), islands, 0, 2)
    assert caught.value.numbers["components"] == [0, 1]
    assert estimate_sensitivity(np.zeros(4), islands, 0, 1).tolist() == [0.5, -0.5, 0, 0]
    chain = Comparisons.from_votes([0, 1], [1, 2], [5, 2], [0, 2], [0, 0, 0])
    with pytest.raises(IdentifiabilityError, match=r"never lost.*responses=3, strong_components=2"):
        estimate_sensitivity([20.0, 0, 0], chain, 1, 2)


@pytest.mark.parametrize(
    ("scores", "i", "j"),
    [([0.0], 0, 1), ([0.0, 0.0], 0, 2), ([0.0, 0.0], -1, 0), ([0.0, 0.0], 1, 1), (["a", "b"], 0, 1)],
)
def test_scores_and_responses_that_are_none_are_refused(scores, i, j):
    with pytest.raises(DataError):
        estimate_sensitivity(scores, Comparisons.from_votes([0], [1], [1], [1], [0, 0]), i, j)


def test_a_win_across_prompts_is_refused():
    votes = Comparisons.from_votes([0, 2], [1, 3], [1, 1], [1, 1], [0, 0, 5, 5])
    with pytest.raises(GaugeError, match=r"i=0, j=2, prompt_of_i=0, prompt_of_j=5"):
        estimate_sensitivity(np.zeros(4), votes, 0, 2)


@pytest.mark.parametrize(("head", "features"), [((2,), (2, 3)), ((3,), (3,)), ((1, 3), (2, 3)), ((3,), (4, 3))])
def test_heads_and_features_of_other_shapes_are_refused(head, features):
    with pytest.raises(DataError):
        head_step(jnp.zeros(head), jnp.zeros(features), Comparisons.from_pairs([0], [1], [0, 0]))


def test_a_feature_that_is_not_finite_is_not_hidden():
    """Its pairs are judged: the step is no number for anybody. Where nobody judges, only its own row is none."""
    rows = np.array([[1.0], [np.nan], [2.0], [3.0]], np.float32)
    judged = Comparisons.from_pairs([0], [1], [0, 0, 0, 0])
    assert np.isnan(head_step(np.zeros(1, np.float32), rows, judged)).all()
    unread = Comparisons.from_pairs([0], [2], [0, 0, 0, 0])
    assert np.isnan(head_step(np.zeros(1, np.float32), rows, unread)).tolist() == [False, True, False, False]


def test_unset_ties_are_refused_where_they_can_be_seen():
    with pytest.raises(DataError, match="ties=1"):
        score_step(np.zeros(2, np.float32), Comparisons.from_votes([0], [1], [1], [0], [0, 0], ties=[1]))
