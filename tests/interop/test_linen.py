"""Laws of our readings on a Linen backbone of others."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rmjax.errors import DataError
from rmjax.interop.flax import LinenReward, check_end_point, unpack
from rmjax.losses import negative_log_likelihood
from tests.interop.others import WIDTH, LinenDecoder, trees
from tests.train.trees import relative


def model():
    return LinenReward(
        LinenDecoder(),
        states=lambda net, batch: net(batch.tokens),
        final_norm=lambda net, x: net.final_norm(x),
    )


@pytest.fixture(scope="module")
def variables():
    found = jax.jit(model().init)(jax.random.key(0), unpack(trees()))
    assert not found["params"]["head"].any()
    head = np.random.default_rng(0).normal(size=WIDTH).astype(np.float32)
    return {"params": found["params"] | {"head": jnp.asarray(head)}}


def by_hand(variables, batch):
    """The backbone alone, and the head in NumPy."""
    inside = {"params": variables["params"]["backbone"]}
    states, _ = jax.jit(LinenDecoder().apply)(inside, batch.tokens)
    flat = np.asarray(states, np.float64).reshape(-1, WIDTH)
    return flat[batch.score_index] @ np.asarray(variables["params"]["head"], np.float64)


def test_scores_loss_and_margins_are_those_of_the_backbone_and_the_head_by_hand(variables):
    batch = unpack(trees())
    reading = jax.jit(model().apply)(variables, batch)
    scores = by_hand(variables, batch)
    assert relative(reading.scores, scores) < 1e-6
    total, count = negative_log_likelihood(np.float32(scores), batch.comparisons)
    assert reading.count == count == 9
    assert float(reading.loss_sum) == pytest.approx(float(total), rel=1e-5)
    c = batch.comparisons
    margin = (scores[c.first] - scores[c.second]) * (np.asarray(c.weight) > 0)
    assert relative(reading.layer_margins[-1], margin) < 1e-5
    assert reading.layer_margins.shape == (3, 4)
    assert check_end_point(reading) < 1e-6


def test_longer_rows_change_no_score(variables):
    """Position is a contract: padding is nobody's last token."""
    short, long = (jax.jit(model().apply)(variables, unpack(trees(), length)) for length in (9, 13))
    real = np.asarray(trees().comparisons.prompt) >= 0
    assert relative(long.scores[real], short.scores[real]) < 1e-6
    assert relative(long.layer_margins, short.layer_margins) < 1e-5


def test_gradient_descent_on_its_variables_lowers_the_loss(variables):
    batch = unpack(trees())

    @jax.jit
    def step(variables):
        def loss(variables):
            reading = model().apply(variables, batch)
            return reading.loss_sum / reading.count

        value, slope = jax.value_and_grad(loss)(variables)
        return value, slope, jax.tree.map(lambda p, g: p - 0.1 * g, variables, slope)

    first, slope, moved = step(variables)
    assert all(np.abs(g).max() > 0 for g in jax.tree.leaves(slope))
    for _ in range(4):
        last, _, moved = step(moved)
    assert last < first


def test_packed_rows_are_refused(variables):
    with pytest.raises(DataError, match="unpack"):
        model().apply(variables, trees())
