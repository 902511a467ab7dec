"""Elementwise losses of a margin, exact in value, gradient and curvature at every magnitude.

A margin is the difference of two scores of one prompt, in logits; a loss is in nats and is not reduced:

>>> import jax, jax.numpy as jnp, numpy as np
>>> from rmjax import losses
>>> margin = jnp.array([3.0, 0.0, -3.0])
>>> print(np.array(losses.bradley_terry(margin), float).round(3))
[0.049 0.693 3.049]
>>> print(jax.vmap(jax.grad(losses.bradley_terry))(margin).round(4))
[-0.0474 -0.5    -0.9526]
>>> print(losses.curvature(margin).round(4))
[0.0452 0.25   0.0452]

Autodiff of a log-sigmoid loses the curvature of badly ranked pairs (in float32 it is 7 % off at -12 and 0 from -15
down). The derivatives here are closed forms, σ' = σ(x)σ(-x), attached by `custom_jvp` to the sigmoid itself, so that
every higher order is right as well.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Float

from rmjax.arrays import Array, at_least_float32


@jax.custom_jvp
def sigmoid(x: jax.Array) -> jax.Array:
    """σ(x), with full relative precision in both tails."""
    z = jnp.exp(-jnp.abs(x))
    return jnp.where(x >= 0, 1, z) / (1 + z)


@sigmoid.defjvp
def _sigmoid_jvp(primals, tangents):
    (x,), (tangent,) = primals, tangents
    value = sigmoid(x)
    # 1 - value cancels for large x; sigmoid(-x) does not.
    return value, value * sigmoid(-x) * tangent


@jax.custom_jvp
def softplus(x: jax.Array) -> jax.Array:
    """log(1 + eˣ), finite for every finite x."""
    return jnp.maximum(x, 0) + jnp.log1p(jnp.exp(-jnp.abs(x)))


@softplus.defjvp
def _softplus_jvp(primals, tangents):
    (x,), (tangent,) = primals, tangents
    return softplus(x), sigmoid(x) * tangent


@jax.custom_jvp
def _shares(d: jax.Array) -> jax.Array:
    """eᵈ / (1 + Σ eᵈ) along the last axis: the chances of the alternatives to a choice whose own exponent is 0."""
    top = jnp.maximum(d.max(axis=-1, keepdims=True), 0)
    z = jnp.exp(d - top)
    return z / (jnp.exp(-top) + z.sum(axis=-1, keepdims=True))


@_shares.defjvp
def _shares_jvp(primals, tangents):
    (d,), (t,) = primals, tangents
    p = _shares(d)
    # p (t - Σ p t) cancels where one alternative has all the chance; differences of tangents do not.
    apart = (p[..., None, :] * (t[..., :, None] - t[..., None, :])).sum(axis=-1)
    return p, p * (_shares_of_none(d) * t + apart)


def _shares_of_none(d: jax.Array) -> jax.Array:
    """1 / (1 + Σ eᵈ), with the last axis kept."""
    top = jnp.maximum(d.max(axis=-1, keepdims=True), 0)
    return jnp.exp(-top) / (jnp.exp(-top) + jnp.exp(d - top).sum(axis=-1, keepdims=True))


@jax.custom_jvp
def log1p_sum_exp(d: jax.Array) -> jax.Array:
    """log(1 + Σ eᵈ) along the last axis: the loss of a choice whose alternatives lead it by d. -∞ is no alternative.

    With one alternative it is softplus. Value, gradient and curvature have full relative precision.
    """
    top = jnp.maximum(d.max(axis=-1), 0)
    rest = jnp.exp(d - top[..., None]).sum(axis=-1)
    return jnp.where(top > 0, top + jnp.log(jnp.exp(-top) + rest), jnp.log1p(rest))


@log1p_sum_exp.defjvp
def _log1p_sum_exp_jvp(primals, tangents):
    (d,), (t,) = primals, tangents
    return log1p_sum_exp(d), (_shares(d) * t).sum(axis=-1)


def times_votes(votes: jax.Array, loss: jax.Array) -> jax.Array:
    """`votes * loss`, and 0 where there is no vote, whatever the loss is there (0 · ∞ is not a number)."""
    return jnp.where(votes == 0, 0, votes * loss)


def probability(margin: Float[Array, "*b"]) -> Float[jax.Array, "*b"]:
    r"""Share of annotators who choose the first answer, under Bradley-Terry.

    $$P(\text{first} \succ \text{second}) = \sigma(\Delta) = 1 / (1 + e^{-\Delta})$$

    Guarantees: relative error of a few ulp in both tails; derivatives of every order are closed forms.

    Args:
        margin: score of the first minus score of the second, in logits.

    Returns:
        Probability in [0, 1], at least float32.

    Example:
        >>> print(probability(jnp.array([0.0, 3.0])).round(4))
        [0.5    0.9526]

    Reference:
        Bradley and Terry, Rank analysis of incomplete block designs, Biometrika 1952.
    """
    return sigmoid(at_least_float32(margin))


def bradley_terry(margin: Float[Array, "*b"]) -> Float[jax.Array, "*b"]:
    r"""Negative log-likelihood of a choice of the first answer.

    $$\ell(\Delta) = -\log\sigma(\Delta) = \operatorname{softplus}(-\Delta), \qquad
      \ell' = -\sigma(-\Delta), \qquad \ell'' = \sigma(\Delta)\sigma(-\Delta)$$

    Guarantees: non-negative, decreasing and convex; finite for every finite margin; $\ell(-\Delta) - \ell(\Delta) =
    \Delta$; gradient in [-1, 0] and curvature with full relative precision, also where autodiff of the formula is 0.

    Args:
        margin: score of the chosen minus score of the rejected answer, in logits.

    Returns:
        Nats per comparison, at least float32.

    Example:
        >>> print(bradley_terry(jnp.array([0.0, jnp.log(3.0), -jnp.log(3.0)])).round(4))
        [0.6931 0.2877 1.3863]

    Reference:
        Bradley and Terry, Biometrika 1952; as a loss of reward models, Ouyang et al. 2022, equation 1.
    """
    return softplus(-at_least_float32(margin))


def soft_label(margin: Float[Array, "*b"], target: Float[Array, "*b"]) -> Float[jax.Array, "*b"]:
    r"""Cross-entropy against the share of annotators who chose the first answer.

    $$\ell(\Delta, q) = q\,\ell(\Delta) + (1-q)\,\ell(-\Delta), \qquad \partial_\Delta = \sigma(\Delta) - q$$

    Guarantees: convex in the margin; for 0 < q < 1 the minimum is at logit q and equals the entropy of q; swapping
    the sides together with the label changes nothing; q = 1 is `bradley_terry(margin)`.

    Args:
        margin: score of the first minus score of the second, in logits.
        target: share q in [0, 1]. Traced, hence unchecked here: `Comparisons` checks votes where they enter.

    Returns:
        Nats per comparison, at least float32.

    Example:
        >>> print(f"{soft_label(jnp.array(0.5), jnp.array(0.7)):.4f}")
        0.6241

    Reference:
        The form ℓ(Δ) + (1-q)Δ is the same function and cancels: it gives 0 for 2.06e-9 at Δ = -20, q = 0, in float32.
    """
    margin = at_least_float32(margin)
    target = jnp.asarray(target, margin.dtype)
    return times_votes(target, bradley_terry(margin)) + times_votes(1 - target, bradley_terry(-margin))


def curvature(margin: Float[Array, "*b"]) -> Float[jax.Array, "*b"]:
    r"""Second derivative of the Bradley-Terry loss: the Fisher information of one comparison.

    $$\ell''(\Delta) = \sigma(\Delta)\,\sigma(-\Delta)$$

    Guarantees: even in the margin; full relative precision wherever float32 has normal numbers.

    Args:
        margin: score of the first minus score of the second, in logits.

    Returns:
        Curvature in nats per squared logit, in (0, 1/4], at least float32.

    Example:
        >>> print(curvature(jnp.array([-15.0, 0.0, 15.0])))
        [3.059021e-07 2.500000e-01 3.059021e-07]

    Reference:
        Ford, Solution of a ranking problem from binary comparisons, 1957.
    """
    margin = at_least_float32(margin)
    return sigmoid(margin) * sigmoid(-margin)
