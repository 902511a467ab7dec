"""Laws of moves that no margin sees: another basis, the null direction of a norm, gain folded into the head."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmjax.errors import DataError
from rmjax.identifiability.head_gauge import change_basis, fold_gain, layer_norm_null_direction, rms_norm_margin_bound

N, D = 16, 8
EPS = {dtype: float(np.finfo(dtype).eps) for dtype in (np.float32, np.float64)}
seeds = st.integers(0, 2**32 - 1)

move = jax.jit(change_basis)
null = jax.jit(layer_norm_null_direction)
bound = jax.jit(rms_norm_margin_bound)
fold = jax.jit(fold_gain)
score_moved = jax.jit(jax.grad(lambda w, h, a: jnp.matmul(*reversed(change_basis(w, h, a))).sum()))


def cosine(a, b):
    return a @ b / np.linalg.norm(a) / np.linalg.norm(b)


@st.composite
def bases(draw):
    """A head, states and a matrix of a condition up to a thousand."""
    rng = np.random.default_rng(draw(seeds))
    left, right = (np.linalg.qr(rng.normal(size=(D, D)))[0] for _ in range(2))
    condition = draw(st.sampled_from([2.0, 30.0, 1000.0]))
    return rng.normal(size=D), rng.normal(size=(N, D)), left * np.geomspace(1, condition, D) @ right, condition


@st.composite
def norms(draw):
    """States before the final norm, its gain and bias, a head and how far to move it."""
    rng = np.random.default_rng(draw(seeds))
    sign = rng.choice([-1, 1], D)
    x, bias, weight = rng.normal(size=(N, D)), rng.normal(size=D), rng.normal(size=D)
    return draw(st.sampled_from([0.1, 1.0, 50.0])) * x, sign * rng.uniform(0.5, 2, D), bias, weight, rng.normal()


def layer_norm(x, gain, bias):
    centred = x - x.mean(axis=1, keepdims=True)
    return gain * centred / np.sqrt(np.square(centred).mean(axis=1, keepdims=True) + 1e-5) + bias


def rms_norm(x, gain):
    return gain * x / np.sqrt(np.square(x).mean(axis=1, keepdims=True) + 1e-6)


# Basis


@given(bases())
def test_another_basis_has_the_same_scores(case):
    weight, states, matrix, condition = case
    with jax.enable_x64():
        w, h = (np.asarray(x) for x in move(weight, states, matrix))
        slope = score_moved(weight, states, matrix)
    size = np.linalg.norm(weight) * np.linalg.norm(states, axis=1)
    assert (np.abs(h @ w - states @ weight) <= 1e-12 * condition * size).all()
    np.testing.assert_allclose(h, states @ matrix.T, rtol=0, atol=D * EPS[np.float64] * condition * size.max())
    np.testing.assert_allclose(slope, states.sum(axis=0), rtol=0, atol=1e-12 * condition * size.sum())


@given(bases())
def test_another_basis_has_another_cosine(case):
    """So the cosine of two heads is no fact about the models."""
    weight, states, matrix, _ = case
    with jax.enable_x64():
        moved = np.asarray(move(weight, states, matrix)[0])
        other = np.asarray(move(states[0], states, matrix)[0])
        turned = np.linalg.qr(matrix)[0]
        rigid = [np.asarray(move(w, states, turned)[0]) for w in (weight, states[0])]
    assert abs(cosine(moved, other) - cosine(weight, states[0])) > 1e-6
    assert cosine(*rigid) == pytest.approx(cosine(weight, states[0]), abs=1e-12)


def test_in_float32_a_basis_change_is_as_good_as_its_condition():
    rng = np.random.default_rng(0)
    weight, states, matrix = (rng.normal(size=s).astype(np.float32) for s in ((D,), (N, D), (D, D)))
    w, h = move(weight, states, matrix)
    assert w.dtype == h.dtype == np.float32
    error = np.abs(np.asarray(h, np.float64) @ np.asarray(w, np.float64) - states.astype(np.float64) @ weight)
    assert error.max() <= 64 * EPS[np.float32] * np.linalg.cond(matrix) * np.linalg.norm(weight)


@pytest.mark.parametrize(
    ("weight", "states", "matrix", "what"),
    [
        (np.ones(2), np.ones((3, 2)), np.ones((2, 2)), "has an inverse"),
        (np.ones(2), np.ones((3, 2)), np.diag([1.0, np.nan]), "has an inverse"),
        (np.ones(2), np.ones((3, 2)), np.diag([1.0, 1e-9]), "has an inverse"),
        (np.ones(2), np.ones((3, 3)), np.eye(2), "one width"),
        (np.ones(2), np.ones((3, 2)), np.eye(3), "one width"),
        (np.ones((1, 2)), np.ones((3, 2)), np.eye(2), "one width"),
    ],
)
def test_what_is_no_basis_is_refused(weight, states, matrix, what):
    with pytest.raises(DataError, match=what):
        change_basis(weight, states, matrix)


# Norms


@given(norms())
def test_behind_a_layer_norm_one_direction_moves_every_score_by_one_constant(case):
    x, gain, bias, weight, c = case
    with jax.enable_x64():
        direction, shift = (np.asarray(v) for v in null(gain, bias))
        bare, none = (np.asarray(v) for v in null(gain, None))
    states = layer_norm(x, gain, bias)
    moved = states @ (weight + c * direction) - states @ weight
    size = np.abs(states) @ (np.abs(weight) + np.abs(c * direction))
    assert (np.abs(moved - c * shift) <= 8 * D * EPS[np.float64] * size).all()
    np.testing.assert_array_equal(direction, 1 / gain)
    assert float(shift) == pytest.approx(sum(b / g for b, g in zip(bias, gain)), abs=D * EPS[np.float64] * size.max())
    np.testing.assert_array_equal(bare, direction)
    assert none == 0


@given(norms())
def test_behind_an_rms_norm_it_moves_scores_apart(case):
    x, gain, bias, _, _ = case
    with jax.enable_x64():
        direction = np.asarray(null(gain, bias)[0])
    assert np.ptp(rms_norm(x, gain) @ direction) > 1e-3


@given(norms())
def test_no_margin_exceeds_the_bound_of_an_rms_norm(case):
    x, gain, bias, weight, _ = case
    with jax.enable_x64():
        largest = float(bound(gain, weight))
    scores = rms_norm(x, gain) @ weight
    assert np.ptp(scores) <= largest * (1 + 4 * EPS[np.float64])
    assert np.abs(scores).max() <= largest / 2 * (1 + 4 * EPS[np.float64])
    assert np.ptp(layer_norm(x, gain, 0 * bias) @ weight) <= largest * (1 + 4 * EPS[np.float64])
    # States along ± gain · weight attain it, up to the 1e-6 that the norm adds to the mean square.
    best = 1e6 * np.stack([gain * weight, -gain * weight])
    assert np.ptp(rms_norm(best, gain) @ weight) >= largest * (1 - 1e-9)


@given(norms())
def test_gain_may_stand_in_the_head(case):
    x, gain, bias, weight, _ = case
    with jax.enable_x64():
        for scale in (gain, np.exp(bias)):
            w, g = (np.asarray(v) for v in fold(weight, gain, scale))
            np.testing.assert_allclose(g * scale, gain, rtol=4 * EPS[np.float64])
            before, after = rms_norm(x, gain) @ weight, rms_norm(x, g) @ w
            size = np.abs(rms_norm(x, gain)) @ np.abs(weight)
            assert (np.abs(after - before) <= 4 * D * EPS[np.float64] * size).all()
            assert float(bound(g, w)) == pytest.approx(float(bound(gain, weight)), rel=8 * EPS[np.float64])
            assert np.linalg.norm(w) != pytest.approx(np.linalg.norm(weight), rel=1e-9)
        np.testing.assert_array_equal(fold(weight, gain, gain)[1], np.ones(D))


def test_a_gain_of_0_is_named():
    with pytest.raises(DataError, match=r"a gain is 0 \[position=2\]"):
        layer_norm_null_direction(np.array([1.0, 2.0, 0.0, 0.0]), np.ones(4))
    with pytest.raises(DataError, match=r"a scale is 0 \[position=1\]"):
        fold_gain(np.ones(2), np.ones(2), np.array([1.0, 0.0]))


@pytest.mark.parametrize("other", [np.ones(3), np.ones((2, 1)), np.ones(())])
def test_another_width_is_refused(other):
    for of in (layer_norm_null_direction, rms_norm_margin_bound):
        with pytest.raises(DataError, match="per feature"):
            of(np.ones(2), other)
    with pytest.raises(DataError, match="per feature"):
        fold_gain(np.ones(2), np.ones(2), other)
    with pytest.raises(DataError, match="per feature"):
        layer_norm_null_direction(np.ones(0))


def test_narrow_gains_are_widened():
    narrow = jnp.ones(2, jnp.bfloat16)
    results = [*layer_norm_null_direction(narrow, narrow), rms_norm_margin_bound(narrow, narrow)]
    results += [*fold_gain(narrow, narrow, narrow)]
    assert {x.dtype for x in results} == {jnp.dtype(jnp.float32)}
