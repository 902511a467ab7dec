"""The optimiser steps on the mean of a sum, decays what it says, and stops at what is not finite."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from rmjax.models import ModelConfig, init
from rmjax.train.optimizer import OptimizerConfig, make_optimizer, schedule, update
from rmjax.train.trainable import join, parse, split, whole

CONFIG = ModelConfig(
    vocab_size=12, hidden_size=8, intermediate_size=12, num_layers=3, num_heads=2, num_kv_heads=1, head_dim=4
)


def tree(value):
    return jax.tree.map(lambda x: jnp.full_like(x, value), init(jax.random.key(0), CONFIG))


def test_parts_of_a_sum_step_as_the_whole():
    params, optimizer = tree(0.5), make_optimizer(OptimizerConfig(), 10)
    state = optimizer.init(params)
    one = update(optimizer, params, state, tree(6.0), jnp.float32(3.0))
    parts = jax.tree.map(jnp.add, tree(1.0), tree(5.0))
    other = update(optimizer, params, state, parts, jnp.float32(1.0) + jnp.float32(2.0))
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_gradient_that_is_not_finite_moves_nothing_and_says_so():
    params, optimizer = tree(0.5), make_optimizer(OptimizerConfig(), 10)
    state = optimizer.init(params)
    bad = tree(1.0)
    bad = jax.tree.map(lambda x: x.at[(0,) * x.ndim].set(jnp.nan), bad)
    new_params, new_state, norm = update(optimizer, params, state, bad, jnp.float32(1.0))
    assert not np.isfinite(norm)
    for a, b in zip(jax.tree.leaves((new_params, new_state)), jax.tree.leaves((params, state)), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_parameter_that_would_not_be_finite_moves_nothing_and_says_so():
    params, optimizer = tree(0.5), optax.sgd(1e35)
    state = optimizer.init(params)
    new_params, new_state, norm = update(optimizer, params, state, tree(1e10), jnp.float32(1.0))
    assert np.isnan(norm)
    for a, b in zip(jax.tree.leaves((new_params, new_state)), jax.tree.leaves((params, state)), strict=True):
        np.testing.assert_array_equal(a, b)


def test_large_parameters_are_finite_although_their_norm_is_not():
    optimizer = optax.sgd(0.5)
    params = jax.tree.map(lambda x: jnp.full_like(x, 1e30), tree(0.5))
    moved, _, norm = update(optimizer, params, optimizer.init(params), tree(1.0), jnp.float32(1.0))
    assert np.isfinite(norm)
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(moved))


def test_matrices_decay_and_gains_biases_and_head_do_not():
    params = tree(0.5)
    optimizer = make_optimizer(OptimizerConfig(weight_decay=0.1, warmup=0.0, decay="constant"), 10)
    moved, _, _ = update(optimizer, params, optimizer.init(params), tree(0.0), jnp.float32(1.0))
    changed = jax.tree.map(lambda a, b: bool((a != b).all()), moved, params)
    assert changed.embed
    assert changed.blocks.wq
    assert changed.blocks.w_down
    assert not any((changed.blocks.attn_norm, changed.blocks.mlp_norm, changed.norm, changed.head.weight))


def test_the_head_has_its_own_learning_rate():
    params = tree(0.5)
    config = OptimizerConfig(learning_rate=0.0, head_learning_rate=0.1, warmup=0.0, weight_decay=0.0)
    optimizer = make_optimizer(config, 10)
    moved, _, _ = update(optimizer, params, optimizer.init(params), tree(1.0), jnp.float32(1.0))
    assert (moved.head.weight != params.head.weight).all()
    np.testing.assert_array_equal(moved.embed, params.embed)


def test_clipping_bounds_the_step_of_plain_descent_direction():
    optimizer = make_optimizer(OptimizerConfig(clip_norm=1e-3, warmup=0.0), 10)
    params = tree(0.5)
    _, state, norm = update(optimizer, params, optimizer.init(params), tree(1.0), jnp.float32(1.0))
    moments = [x for x in jax.tree.leaves(state) if x.ndim]
    assert norm > 1
    assert max(float(jnp.abs(x).max()) for x in moments) < 1e-3


@pytest.mark.parametrize("decay", ["cosine", "linear", "constant"])
def test_the_rate_rises_to_its_peak_and_falls_to_its_end(decay):
    steps = 40
    config = OptimizerConfig(warmup=0.25, decay=decay, final=0.2)
    rate = [float(schedule(config, 1.0, steps)(step)) for step in range(steps + 1)]
    np.testing.assert_allclose(rate[:10], np.arange(1, 11) / 10, rtol=1e-6)
    assert all(a >= b - 1e-6 for a, b in itertools.pairwise(rate[9:]))
    assert rate[-1] == pytest.approx(1.0 if decay == "constant" else 0.2, abs=1e-6)


@pytest.mark.parametrize("layers", [None, 0, 1, 2, 3])
def test_what_is_split_joins_again(layers):
    params = init(jax.random.key(0), CONFIG)
    trained, frozen = split(params, layers)
    for a, b in zip(jax.tree.leaves(whole(trained, frozen)), jax.tree.leaves(params), strict=True):
        np.testing.assert_array_equal(a, b)
    joined, below = join(trained, frozen)
    depth = joined.blocks.wq.shape[0] + (0 if below is None else below.wq.shape[0])
    assert depth == CONFIG.num_layers
    counts = {None: CONFIG.num_parameters, 0: 8}
    expected = counts.get(layers, (layers or 0) * CONFIG.block_parameters + 16)
    assert sum(x.size for x in jax.tree.leaves(trained)) == expected


@pytest.mark.parametrize("wrong", ["4", "0", "-1", "none", "1.5", ""])
def test_what_to_train_is_refused_where_it_is_not_understood(wrong):
    with pytest.raises(Exception, match="what to train"):
        parse(wrong, 3)
