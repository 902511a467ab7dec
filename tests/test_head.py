"""Laws of the scalar head: its own state alone, in float32, with nothing centred."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from graphs import E, N, graphs
from hypothesis import given
from hypothesis import strategies as st

from rmjax import Comparisons, losses
from rmjax.head import Head, score

D = 16
EPS = float(np.finfo(np.float32).eps)
seeds = st.integers(0, 2**32 - 1)
scores = jax.jit(score)


def loss(head, states, comparisons):
    return losses.negative_log_likelihood(score(states, head), comparisons, ties="drop")


slope = jax.jit(jax.grad(loss, has_aux=True))


@st.composite
def headed(draw, bias=True, dtype=np.float32):
    """N states of one scale with a head."""
    rng = np.random.default_rng(draw(seeds))
    states = (rng.normal(size=(N, D)) * draw(st.sampled_from([1e-2, 1.0, 100.0]))).astype(dtype)
    return states, Head(rng.normal(size=D).astype(dtype), dtype(rng.normal()) if bias else None)


def exact(states, head):
    """In float64, term by term, and the sum of what is added: the scale of its rounding."""
    terms = np.float64(states) * np.float64(head.weight)
    bias = 0.0 if head.bias is None else float(head.bias)
    return terms.sum(axis=1) + bias, np.abs(terms).sum(axis=1) + abs(bias)


@given(headed(bias=True) | headed(bias=False))
def test_a_score_is_the_inner_product_and_the_bias(case):
    want, size = exact(*case)
    assert (np.abs(scores(*case) - want) <= (D + 2) * EPS * size).all()


@given(headed())
def test_bfloat16_states_lose_nothing_more_in_the_head(case):
    """A product of two bfloat16 numbers is exact in float32, whose sums round then; in bfloat16 they would at 2^-8."""
    states, head = case
    narrow = jnp.asarray(states, jnp.bfloat16)
    got = scores(narrow, head)
    want, size = exact(np.float32(narrow), head)
    assert got.dtype == jnp.float32
    assert (np.abs(got - want) <= (D + 2) * EPS * size).all()


def test_no_device_may_narrow_the_product():
    """TPUs multiply float32 in bfloat16 by default, and recent GPUs in TF32."""
    text = str(jax.make_jaxpr(score)(np.zeros((2, D), np.float32), Head.zeros(D)))
    assert "HIGHEST" in text


@given(headed(), seeds)
def test_a_score_depends_on_its_own_state_alone(case, seed):
    """Bitwise whatever else is in the batch; and up to rounding whatever its place. Nothing is centred."""
    states, head = case
    rng = np.random.default_rng(seed)
    plain = np.asarray(scores(states, head))
    others = rng.normal(1e3, 1, states.shape).astype(np.float32)
    others[3] = states[3]
    assert scores(others, head)[3] == plain[3]
    order = rng.permutation(N)
    bound = (D + 2) * EPS * exact(states, head)[1]
    assert (np.abs(scores(states[order], head) - plain[order]) <= 2 * bound[order]).all()
    assert abs(float(scores(states[0], head)) - plain[0]) <= 2 * bound[0]


@given(headed())
def test_a_level_that_the_features_imply_comes_out(case):
    """Raising the bias by 1 raises every score by 1, up to two roundings of the level."""
    states, head = case
    raised = Head(head.weight, head.bias + np.float32(1))
    _, size = exact(states, head)
    assert (np.abs(scores(states, raised) - scores(states, head) - 1) <= 2 * EPS * (size + 2)).all()


@given(headed(), graphs())
def test_a_bias_moves_no_margin(case, graph):
    """Of a float32 score by less than an ulp of its level: margins and loss do not see the bias of a file."""
    (states, head), (_, c) = case, graph
    _, size = exact(states, head)
    plain, biased = (np.asarray(losses.margins(scores(states, h), c)) for h in (Head(head.weight), head))
    assert (np.abs(plain - biased) <= 2 * EPS * (size[c.first] + size[c.second])).all()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64"])
def test_the_gradient_in_a_bias_is_0_on_disjoint_pairs(x64, dtype):
    rng = np.random.default_rng(0)
    pairs = Comparisons.from_pairs(np.arange(0, N, 2), np.arange(1, N, 2), prompt=np.arange(N) // 2)
    head = Head(jnp.asarray(rng.normal(size=D), dtype), jnp.asarray(3.0, dtype))
    gradient, _ = slope(head, jnp.asarray(rng.normal(size=(N, D)), dtype), pairs)
    assert float(gradient.bias) == 0.0
    assert np.abs(np.float64(gradient.weight)).max() > 0


@given(headed(), graphs())
def test_on_shared_responses_it_is_rounding_that_adam_would_amplify(case, graph):
    """Hence a head that is trained here has no bias at all."""
    (states, head), (_, c) = case, graph
    gradient, votes = slope(head, states, c)
    assert abs(float(gradient.bias)) <= (E + 6) * EPS * float(votes)
    assert Head.zeros(D).bias is None


def test_a_penalty_on_levels_does_see_the_bias():
    """λ E (r₁ + r₂)² has gradient 2 λ E 2 (r₁ + r₂) in the bias: it is the loss of margins that cannot."""
    states, head = np.eye(2, D, dtype=np.float32), Head(jnp.arange(D) / 4, jnp.float32(0.5))

    def penalty(h):
        return 0.01 * jnp.square(score(states, h).sum())

    want = 2 * 0.01 * 2 * float(scores(states, head).sum())
    assert float(jax.grad(penalty)(head).bias) == pytest.approx(want, rel=8 * EPS)


@given(headed(dtype=np.float64), seeds)
def test_another_basis_gives_the_same_scores_and_another_angle(case, seed):
    """(w, h) and (A⁻ᵀw, Ah): to 1e-12 times the condition of A in float64, while the cosine of the heads moves."""
    states, head = case
    rng = np.random.default_rng(seed)
    left, right = (np.linalg.qr(rng.normal(size=(D, D)))[0] for _ in range(2))
    stretch = np.geomspace(1, 1e3, D)
    basis = left * stretch @ right
    other = Head(np.linalg.solve(basis.T, head.weight), head.bias)
    with jax.enable_x64():
        one, two = np.asarray(scores(states, head)), np.asarray(scores(states @ basis.T, other))
    _, size = exact(states, head)
    assert (np.abs(one - two) <= 1e-12 * 1e3 * size.max()).all()
    cosine = head.weight @ other.weight / np.linalg.norm(head.weight) / np.linalg.norm(other.weight)
    assert cosine < 0.999


def test_a_new_head_says_nothing():
    """Every margin is 0 and the loss is log 2 a vote, whatever the states."""
    pairs = Comparisons.from_pairs([0], [1], prompt=[0, 0])
    states = np.random.default_rng(0).normal(size=(2, D)).astype(np.float32)
    total, count = loss(Head.zeros(D), states, pairs)
    assert (float(total), float(count)) == (float(np.float32(np.log(2))), 1.0)


@given(headed(), graphs(), seeds)
def test_more_padded_responses_change_no_score_and_no_loss(case, graph, seed):
    """A state that no comparison reads may be anything; one that a comparison reads counts."""
    (states, head), (_, c) = case, graph
    more = np.full((4, D), np.nan, np.float32)
    total = loss(head, states, c)
    padded = loss(head, np.concatenate([states, more]), c.pad(E + 3, N + 4))
    a = float((c.wins_first + c.wins_second).sum())
    gap = np.abs(np.asarray(losses.margins(scores(states, head), c))).max()
    assert abs(float(padded[0]) - float(total[0])) <= (E + D + 6) * EPS * a * (1 + gap + exact(states, head)[1].max())
    assert padded[1] == total[1]
