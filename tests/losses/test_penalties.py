"""Laws of penalties: centring leaves margins of free scores alone, and the squared difference does not."""

import jax
import numpy as np
from hypothesis import given
from precision import EPS, TINY

from rmjax import losses
from rmjax.testing import margins

of_first = jax.jit(jax.vmap(jax.grad(losses.centering, argnums=0)))
of_second = jax.jit(jax.vmap(jax.grad(losses.centering, argnums=1)))
slope = jax.jit(jax.vmap(jax.grad(losses.ridge)))


@given(margins(), margins())
def test_centring_pulls_both_scores_alike_so_that_no_margin_of_free_scores_moves(first, second):
    pull = np.asarray(of_first(first, second))
    np.testing.assert_array_equal(pull, of_second(first, second))
    assert (np.abs(pull - 2 * (first + second)) <= 4 * TINY).all()


def test_the_squared_difference_is_another_penalty():
    """Once shipped for the squared sum: it shrinks the margin itself."""
    first, second = np.float32(1.5), np.float32(-0.5)
    assert losses.centering(first, second) == 1.0
    assert losses.centering(first, second) != (first - second) ** 2


@given(margins())
def test_a_ridge_pulls_a_score_by_itself(d):
    assert (np.abs(slope(d) - d) <= TINY).all()
    wide = d.astype(np.float64)
    assert (np.abs(losses.ridge(d) - wide**2 / 2) <= EPS[np.float32] * wide**2 + 1e-38).all()
