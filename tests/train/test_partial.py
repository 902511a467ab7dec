"""Partial training: the frozen part takes no gradient and stays as it is, and the scores are the whole model's."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rmjax.head import score
from rmjax.models import ModelConfig, forward
from rmjax.models.layers import rms_norm
from rmjax.train.step import make_gradient_fn
from rmjax.train.trainable import join, split
from tests.train.test_meshes import make_batch
from tests.train.trees import make_params, relative

CONFIG = ModelConfig(
    vocab_size=48, hidden_size=16, intermediate_size=24, num_layers=3, num_heads=2, num_kv_heads=1, head_dim=8
)


@pytest.mark.parametrize("layers", [0, 1, 3])
def test_the_gradient_is_that_part_of_the_whole_gradient(layers):
    params, batch = make_params(CONFIG, jnp.float32), make_batch()
    full, _ = make_gradient_fn(CONFIG)(*split(params, None), batch)
    part, readout = make_gradient_fn(CONFIG)(*split(params, layers), batch)
    expected, _ = split(full, layers)
    for mine, theirs in zip(jax.tree.leaves(part), jax.tree.leaves(expected), strict=True):
        assert relative(mine, theirs) < 1e-5
    scores = forward(params, batch, CONFIG, layer_scores=True)
    np.testing.assert_allclose(readout.scores, scores.scores, rtol=1e-5, atol=1e-6)
    assert readout.layer_margins.shape == (CONFIG.num_layers + 1, batch.comparisons.num_comparisons)


def test_layers_below_are_read_as_well():
    params, batch = make_params(CONFIG, jnp.float32), make_batch()
    joined, below = join(*split(params, 1))
    cut = forward(joined, batch, CONFIG, below=below, layer_scores=True).layer_scores
    whole = forward(params, batch, CONFIG, layer_scores=True).layer_scores
    np.testing.assert_allclose(cut, whole, rtol=1e-5, atol=1e-6)


def test_bfloat16_matmuls_leave_scores_and_gradients_in_float32():
    params, batch = make_params(CONFIG, jnp.float32), make_batch()
    gradient, readout = make_gradient_fn(CONFIG, dtype=jnp.bfloat16)(*split(params, None), batch)
    exact, reference = make_gradient_fn(CONFIG)(*split(params, None), batch)
    assert readout.scores.dtype == readout.loss_sum.dtype == jnp.float32
    assert {x.dtype for x in jax.tree.leaves(gradient)} == {jnp.dtype("float32")}
    # bfloat16 has 8 bits: three layers of it leave some percent.
    assert abs(float(readout.loss_sum / reference.loss_sum) - 1) < 0.05
    for mine, theirs in zip(jax.tree.leaves(gradient), jax.tree.leaves(exact), strict=True):
        assert relative(mine, theirs) < 0.2


def test_the_head_reads_a_state_in_bfloat16_through_a_norm_in_float32():
    """Rounding the normed state to bfloat16 again would cost the score two of its digits."""
    params, batch = make_params(CONFIG, jnp.float32), make_batch()
    keep = lambda site, layer, x: (x, x if site == "resid_post" else None)  # noqa: E731
    out = forward(params, batch, CONFIG, tap=keep, layer_scores=True, dtype=jnp.bfloat16)
    for layer in range(CONFIG.num_layers):
        states = out.reads["resid_post"][layer].reshape(-1, CONFIG.hidden_size)[batch.score_index]
        assert states.dtype == jnp.bfloat16
        expected = score(rms_norm(states.astype(jnp.float32), params.norm, CONFIG.norm_eps), params.head)
        np.testing.assert_allclose(out.layer_scores[layer + 1], expected, rtol=1e-5, atol=1e-5)
