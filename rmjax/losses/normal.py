"""Thurstone's loss: a margin in units of the standard deviation of the difference, exact in both tails."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax.scipy.special import erfc
from jaxtyping import Float

from rmjax.arrays import Array, at_least_float32

# Below it the continued fraction is used, above it erfc: at 2.5 both are within rounding of float64.
_TAIL = 2.5
_TERMS = 96


def thurstone(margin: Float[Array, "*b"]) -> Float[jax.Array, "*b"]:
    r"""Negative log-likelihood of a choice of the first answer, under normal errors.

    $$-\log\Phi(\Delta), \qquad \partial_\Delta = -\frac{\varphi(\Delta)}{\Phi(\Delta)}$$

    Convention: the unit of the margin is the standard deviation of the difference of the two judged values. In
    Thurstone's Case V with unit variance for each of them, the margin is their difference divided by √2.

    Guarantees: non-negative, decreasing and convex; finite with full relative precision, in value, gradient and
    curvature, also where Φ underflows.

    Args:
        margin: score of the chosen minus score of the rejected answer, in standard deviations of the difference.

    Returns:
        Nats per comparison, at least float32.

    Example:
        >>> [f"{nats:.4f}" for nats in thurstone(jnp.array([1.0, -10.0]))]
        ['0.1728', '53.2313']

    Reference:
        Thurstone, A law of comparative judgment, Psychological Review 1927.
    """
    return _negative_log_cdf(at_least_float32(margin))


def thurstone_probability(margin: Float[Array, "*b"]) -> Float[jax.Array, "*b"]:
    r"""Share of annotators who choose the first answer, under normal errors: Φ(Δ).

    Guarantees: full relative precision in both tails; that of a margin and of its negative sum to 1.

    Args:
        margin: score of the first minus score of the second, in standard deviations of the difference.

    Returns:
        Probability in [0, 1], at least float32.

    Example:
        >>> [f"{chance:.4f}" for chance in thurstone_probability(jnp.array([0.0, 1.0]))]
        ['0.5000', '0.8413']

    Reference:
        Thurstone, A law of comparative judgment, Psychological Review 1927.
    """
    return erfc(-at_least_float32(margin) * math.sqrt(0.5)) / 2


def thurstone_curvature(margin: Float[Array, "*b"]) -> Float[jax.Array, "*b"]:
    r"""Second derivative of the Thurstone loss of one vote for the first answer.

    $$h(\Delta)\,(h(\Delta) + \Delta), \qquad h = \varphi / \Phi$$

    It depends on who won: that of a vote for the second is the value at -Δ. The Fisher information of a comparison is
    $\varphi^2 / [\Phi(\Delta)\Phi(-\Delta)]$.

    Guarantees: in (0, 1), falling in the margin.

    Args:
        margin: score of the chosen minus score of the rejected answer, in standard deviations of the difference.

    Returns:
        Curvature in nats, at least float32.

    Example:
        >>> [f"{nats:.4f}" for nats in thurstone_curvature(jnp.array([-100.0, 0.0]))]
        ['0.9999', '0.6366']

    Reference:
        The variance of a truncated normal is 1 minus this.
    """
    margin = at_least_float32(margin)
    return _hazard(margin) * _excess(margin)


@jax.custom_jvp
def _negative_log_cdf(x: jax.Array) -> jax.Array:
    """-log Φ(x)."""
    tail = x < -_TAIL
    y = jnp.where(tail, 0, x)
    won = -jnp.log(erfc(-jnp.minimum(y, 1) * math.sqrt(0.5)) / 2)
    sure = -jnp.log1p(-erfc(jnp.maximum(y, 1) * math.sqrt(0.5)) / 2)  # not below 1: XLA's log1p of -0.4 is 50 ulp off
    far = x * x / 2 + math.log(2 * math.pi) / 2 + jnp.log(_hazard(x))
    return jnp.where(tail, far, jnp.where(x > 1, sure, won))


@_negative_log_cdf.defjvp
def _negative_log_cdf_jvp(primals, tangents):
    (x,), (tangent,) = primals, tangents
    return _negative_log_cdf(x), -_hazard(x) * tangent


@jax.custom_jvp
def _hazard(x: jax.Array) -> jax.Array:
    """φ(x) / Φ(x)."""
    tail = x < -_TAIL
    y = jnp.where(tail, 0, x)
    near = jnp.exp(-y * y / 2) * math.sqrt(2 / math.pi) / erfc(-y * math.sqrt(0.5))
    return jnp.where(tail, _fraction(-x) - x, near)


@_hazard.defjvp
def _hazard_jvp(primals, tangents):
    (x,), (tangent,) = primals, tangents
    value = _hazard(x)
    return value, -value * _excess(x) * tangent


@jax.custom_jvp
def _excess(x: jax.Array) -> jax.Array:
    """φ(x) / Φ(x) + x, whose parts cancel in the lower tail."""
    return jnp.where(x < -_TAIL, _fraction(-x), _hazard(x) + x)


@_excess.defjvp
def _excess_jvp(primals, tangents):
    (x,), (tangent,) = primals, tangents
    value = _excess(x)
    return value, (1 - _hazard(x) * value) * tangent


@jax.jit  # so that a call outside of any other jit compiles its loop once
def _fraction(t: jax.Array) -> jax.Array:
    """1/(t + 2/(t + 3/(t + ...))): how much the hazard of the upper tail at t exceeds t."""
    t = jnp.maximum(t, _TAIL)
    last = jnp.zeros_like(t)
    return jax.lax.fori_loop(0, _TERMS, lambda n, rest: (_TERMS - n).astype(t.dtype) / (t + rest), last)
