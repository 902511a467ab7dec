"""Losses of judgements that may be ties: first, second or equally good.

>>> import jax.numpy as jnp
>>> from rmjax.votes import TIE
>>> print(f"{float(davidson(jnp.array(0.0), TIE, jnp.log(2.0))):.4f} nats for a tie of equals")
0.6931 nats for a tie of equals
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Float, Int

from rmjax.arrays import Array, at_least_float32
from rmjax.losses.kernels import log1p_sum_exp, sigmoid, softplus

# The codes of `rmjax.votes`.
FIRST, SECOND, TIE = range(3)


def rao_kupper(
    margin: Float[Array, "*b"], outcome: Int[Array, "*b"] | int, log_threshold: Float[Array, "*b"] | float
) -> Float[jax.Array, "*b"]:
    r"""Negative log-likelihood of an outcome when differences below a threshold are called ties.

    $$P(\text{first}) = \sigma(\Delta - \eta), \quad P(\text{second}) = \sigma(-\Delta - \eta), \quad
      P(\text{tie}) = (\vartheta^2 - 1)\,\sigma(\Delta - \eta)\,\sigma(-\Delta - \eta), \quad \eta = \log\vartheta$$

    Guarantees: the three probabilities sum to 1; swapping sides and outcome changes nothing; convex in the margin; a
    threshold of 1 (η = 0) is Bradley-Terry, with an infinite loss for a tie; equals tie with (ϑ-1)/(ϑ+1).

    Args:
        margin: score of the first minus score of the second, in logits.
        outcome: 0 first, 1 second, 2 tie, as in `rmjax.votes`; traced, hence unchecked here.
        log_threshold: η >= 0, in logits.

    Returns:
        Nats per judgement, at least float32.

    Example:
        >>> print(jnp.exp(-rao_kupper(jnp.array(1.0), jnp.arange(3), jnp.log(2.0))).round(4))
        [0.5761 0.1554 0.2685]

    Reference:
        Rao and Kupper, Ties in paired-comparison experiments, Journal of the American Statistical Association 1967.
    """
    margin, outcome, eta = _with(margin, outcome, log_threshold)
    signed = jnp.where(outcome == SECOND, -margin, margin)
    return jnp.where(outcome == TIE, _rao_kupper_tie(margin, eta), softplus(eta - signed))


def davidson(
    margin: Float[Array, "*b"], outcome: Int[Array, "*b"] | int, log_tie: Float[Array, "*b"] | float
) -> Float[jax.Array, "*b"]:
    r"""Negative log-likelihood of an outcome when a tie is as likely as the geometric mean of both wins, times ν.

    $$P(\text{first}) : P(\text{second}) : P(\text{tie}) = e^{\Delta/2} : e^{-\Delta/2} : \nu$$

    Guarantees: the three probabilities sum to 1; swapping sides and outcome changes nothing; convex in the margin and
    log ν together; given that there is no tie it is Bradley-Terry, for every ν; equals tie with ν/(2+ν).

    Args:
        margin: score of the first minus score of the second, in logits.
        outcome: 0 first, 1 second, 2 tie, as in `rmjax.votes`; traced, hence unchecked here.
        log_tie: log ν.

    Returns:
        Nats per judgement, at least float32.

    Example:
        >>> print(jnp.exp(-davidson(jnp.array(1.0), jnp.arange(3), jnp.log(0.5))).round(4))
        [0.5984 0.2201 0.1815]

    Reference:
        Davidson, On extending the Bradley-Terry model to accommodate ties in paired comparison experiments, Journal of
        the American Statistical Association 1970.
    """
    margin, outcome, s = _with(margin, outcome, log_tie)
    signed = jnp.where(outcome == SECOND, -margin, margin)
    return jnp.where(outcome == TIE, _davidson_tie(margin, s), _davidson_win(signed, s))


@jax.custom_jvp
def _rao_kupper_tie(margin: jax.Array, eta: jax.Array) -> jax.Array:
    """log(1 + (2 + 2ϑ cosh Δ)/(ϑ² - 1)): the sum of both losses minus log(ϑ² - 1) cancels for large thresholds."""
    size = jnp.abs(margin)
    wins = size - eta + jnp.log1p(jnp.exp(-2 * size) + 2 * jnp.exp(-eta - size))
    return softplus(wins - jnp.log(-jnp.expm1(-2 * eta)))


@_rao_kupper_tie.defjvp
def _rao_kupper_tie_jvp(primals, tangents):
    (margin, eta), (of_margin, of_eta) = primals, tangents
    wins = sigmoid(margin - eta) + sigmoid(-margin - eta)
    by_eta = -jnp.nan_to_num(wins + 2 / jnp.expm1(2 * eta))  # infinite at a threshold of 1
    return _rao_kupper_tie(margin, eta), _rao_kupper_pull(margin, eta) * of_margin + by_eta * of_eta


@jax.custom_jvp
def _rao_kupper_pull(margin: jax.Array, eta: jax.Array) -> jax.Array:
    """σ(Δ+η) - σ(η-Δ), also where both are nearly 1 and where the margin is small."""
    size = jnp.abs(margin)
    return jnp.sign(margin) * sigmoid(size + eta) * sigmoid(size - eta) * -jnp.expm1(-2 * size)


@_rao_kupper_pull.defjvp
def _rao_kupper_pull_jvp(primals, tangents):
    (margin, eta), (of_margin, of_eta) = primals, tangents
    high = sigmoid(margin + eta) * sigmoid(-margin - eta)
    low = sigmoid(eta - margin) * sigmoid(margin - eta)
    return _rao_kupper_pull(margin, eta), (high + low) * of_margin + (high - low) * of_eta


@jax.custom_jvp
def _davidson_chances(margin: jax.Array, s: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Chances of first, second and tie."""
    half = margin / 2
    top = jnp.maximum(jnp.abs(half), s)
    first, second, tied = jnp.exp(half - top), jnp.exp(-half - top), jnp.exp(s - top)
    total = first + second + tied
    return first / total, second / total, tied / total


@_davidson_chances.defjvp
def _davidson_chances_jvp(primals, tangents):
    (margin, s), (of_margin, of_s) = primals, tangents
    first, second, tied = _davidson_chances(margin, s)
    # Each a product of chances: 1 - p would cancel.
    return (first, second, tied), (
        first * ((second + tied / 2) * of_margin - tied * of_s),
        -second * ((first + tied / 2) * of_margin + tied * of_s),
        tied * ((second - first) / 2 * of_margin + (first + second) * of_s),
    )


@jax.custom_jvp
def _davidson_win(margin: jax.Array, s: jax.Array) -> jax.Array:
    return log1p_sum_exp(jnp.stack([-margin, s - margin / 2], axis=-1))


@_davidson_win.defjvp
def _davidson_win_jvp(primals, tangents):
    (margin, s), (of_margin, of_s) = primals, tangents
    _, second, tied = _davidson_chances(margin, s)
    return _davidson_win(margin, s), -(second + tied / 2) * of_margin + tied * of_s


@jax.custom_jvp
def _davidson_tie(margin: jax.Array, s: jax.Array) -> jax.Array:
    return log1p_sum_exp(jnp.stack([margin / 2 - s, -margin / 2 - s], axis=-1))


@_davidson_tie.defjvp
def _davidson_tie_jvp(primals, tangents):
    (margin, s), (of_margin, of_s) = primals, tangents
    first, second, _ = _davidson_chances(margin, s)
    return _davidson_tie(margin, s), _davidson_pull(margin, s) * of_margin - (first + second) * of_s


@jax.custom_jvp
def _davidson_pull(margin: jax.Array, s: jax.Array) -> jax.Array:
    """Half the difference of the chances of both wins, from the larger one: they cancel at small margins."""
    first, second, _ = _davidson_chances(margin, s)
    return jnp.sign(margin) * jnp.maximum(first, second) * -jnp.expm1(-jnp.abs(margin)) / 2


@_davidson_pull.defjvp
def _davidson_pull_jvp(primals, tangents):
    (margin, s), (of_margin, of_s) = primals, tangents
    first, second, tied = _davidson_chances(margin, s)
    value = _davidson_pull(margin, s)
    bend = (first * (second + tied / 2) + second * (first + tied / 2)) / 2
    return value, bend * of_margin - tied * value * of_s


def _with(margin: Array, outcome: Array | int, parameter: Array | float) -> tuple[jax.Array, jax.Array, jax.Array]:
    margin = at_least_float32(margin)
    margin, outcome, parameter = jnp.broadcast_arrays(margin, outcome, jnp.asarray(parameter, margin.dtype))
    return margin, outcome, parameter
