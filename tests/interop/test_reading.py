"""Laws of a reading: it is what our own model reads, only scored tokens count, and the end point is checked."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rmjax.errors import DataError, ReadoutError
from rmjax.head import Head
from rmjax.interop.reading import check_end_point, read
from rmjax.losses import margins, negative_log_likelihood
from rmjax.models import ModelConfig, forward
from rmjax.models.layers import rms_norm
from tests.interop.others import VOCAB, trees
from tests.train.trees import make_params

CONFIG = ModelConfig(VOCAB, 16, 24, num_layers=2, num_heads=2, num_kv_heads=1, head_dim=8)


@pytest.fixture(scope="module")
def ours():
    """Our decoder's states, as a backbone would give them, its output, and its norm and head."""
    params = make_params(CONFIG, jnp.float32)

    def tap(site, layer, x):
        return x, (x if site in ("resid_pre", "resid_post") else None)

    run = jax.jit(lambda batch: forward(params, batch, CONFIG, tap=tap, layer_scores=True))
    out = run(trees())
    layers = jnp.concatenate([out.reads["resid_pre"], out.reads["resid_post"][-1:]])
    return out, layers, lambda x: rms_norm(x, params.norm, CONFIG.norm_eps), params.head


def test_it_reads_from_our_trunk_what_our_forward_reads(ours):
    out, layers, norm, head = ours
    batch = trees()
    reading = read(norm(layers[-1]), batch, head, layers=layers, final_norm=norm)
    np.testing.assert_allclose(reading.scores, out.scores, rtol=1e-6, atol=1e-6)
    loss_sum, count = negative_log_likelihood(out.scores, batch.comparisons)
    np.testing.assert_allclose(reading.loss_sum, loss_sum, rtol=1e-6)
    assert reading.count == count == 9
    by_layer = np.stack([margins(s, batch.comparisons) for s in out.layer_scores])
    np.testing.assert_allclose(reading.layer_margins, by_layer, rtol=1e-5, atol=1e-6)
    assert np.ptp(by_layer, axis=0)[:3].min() > 0.01  # the layers differ, so that their order is seen
    assert check_end_point(reading) < 1e-6


def test_only_the_states_at_scored_tokens_are_read(ours):
    _, layers, norm, head = ours
    batch = trees()
    scored = np.zeros(32, bool)
    scored[batch.score_index] = True
    mask = jnp.asarray(scored.reshape(2, 16, 1))

    def loss(layers):
        reading = read(norm(layers[-1]), batch, head, layers=layers, final_norm=norm)
        return reading.loss_sum + reading.layer_margins.sum(), reading

    gradient = jax.jit(jax.value_and_grad(loss, has_aux=True))
    (_, expected), slope = gradient(layers)
    (_, found), same = gradient(jnp.where(mask[None], layers, jnp.nan))
    for a, b in zip(jax.tree.leaves(expected), jax.tree.leaves(found), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(np.where(mask[None], same, 0), np.where(mask[None], slope, 0))
    # The loss goes through the last layer alone, and margins at every layer take no gradient.
    assert np.linalg.norm(slope[-1]) > 0
    assert not slope[:-1].any()


def test_half_precision_states_are_read_in_float32():
    batch = trees()
    states = jnp.asarray(np.random.default_rng(0).normal(size=(2, 16, 16)), jnp.bfloat16)
    head = Head(jnp.asarray(np.random.default_rng(1).normal(size=16), jnp.float32))
    reading = read(states, batch, head)
    exact = np.asarray(states, np.float64).reshape(32, 16)[batch.score_index] @ np.asarray(head.weight, np.float64)
    assert reading.scores.dtype == reading.loss_sum.dtype == jnp.float32
    np.testing.assert_allclose(reading.scores, exact, rtol=1e-6, atol=1e-6)
    assert reading.layer_margins is None


def test_layers_that_end_behind_the_final_norm_are_refused(ours):
    """The habit of another library: the last of its hidden states is normed already."""
    _, layers, norm, head = ours
    normed = norm(layers[-1])
    foreign = read(normed, trees(), head, layers=[*layers[:-1], normed], final_norm=norm)
    with pytest.raises(ReadoutError, match="not those of the scores"):
        check_end_point(foreign)
    short = read(normed, trees(), head, layers=layers[:-1], final_norm=norm)
    with pytest.raises(ReadoutError, match="not those of the scores"):
        check_end_point(short)
    broken = dataclasses.replace(short, layer_margins=jnp.full((3, 4), jnp.nan))
    with pytest.raises(ReadoutError, match="relative_difference=nan"):
        check_end_point(broken)


def test_an_end_point_without_layers_or_margins_is_no_check(ours):
    _, layers, norm, head = ours
    normed = norm(layers[-1])
    silent = read(normed, trees(), Head.zeros(16), layers=layers, final_norm=norm)
    for reading in (silent, read(normed, trees(), head)):
        with pytest.raises(ReadoutError, match="nothing to check"):
            check_end_point(reading)


def test_layers_need_the_final_norm(ours):
    _, layers, norm, head = ours
    with pytest.raises(DataError, match="final norm"):
        read(norm(layers[-1]), trees(), head, layers=layers)


def test_ties_are_a_stated_choice(ours):
    _, layers, norm, head = ours
    batch = trees()
    tied = dataclasses.replace(batch.comparisons, ties=np.array([2, 0, 0, 0], np.float32))
    batch = dataclasses.replace(batch, comparisons=tied)
    with pytest.raises(DataError, match="ties"):
        read(norm(layers[-1]), batch, head)
    assert read(norm(layers[-1]), batch, head, ties="half").count == 11
