"""Losses for labels that are smoothed, flipped, guessed or graded.

Label smoothing and noise correction are one family with Bradley-Terry, ℓ(Δ) + cΔ, and pull in opposite directions: a
smoothed label asks for smaller margins (c > 0), a corrected one for larger ones (c < 0). That form cancels in floating
point; the functions here compute the same numbers from terms of one sign each.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Float

from rmjax.arrays import Array, at_least_float32
from rmjax.losses.kernels import bradley_terry, sigmoid, softplus


def label_smoothed(margin: Float[Array, "*b"], rate: Float[Array, "*b"] | float) -> Float[jax.Array, "*b"]:
    r"""Cross-entropy against a label that is trusted only to 1 - rate.

    $$(1-\varepsilon)\,\ell(\Delta) + \varepsilon\,\ell(-\Delta) = \ell(\Delta) + \varepsilon\Delta, \qquad
      \partial_\Delta = \varepsilon\,\sigma(\Delta) - (1-\varepsilon)\,\sigma(-\Delta)$$

    Guarantees: convex; for 0 < rate < 1 the minimum is at log((1 - rate)/rate) and equals the entropy of the rate; rate
    0 is `bradley_terry`; the curvature is that of Bradley-Terry.

    Args:
        margin: score of the chosen minus score of the rejected answer, in logits.
        rate: ε in [0, 1/2), traced, hence unchecked here.

    Returns:
        Nats per comparison, at least float32.

    Example:
        >>> print(label_smoothed(jnp.array([3.0, -3.0]), 0.1).round(4))
        [0.3486 2.7486]

    Reference:
        Mitchell, A note on DPO with noisy preferences and relationship to IPO, 2023.
    """
    margin, rate = _with(margin, rate)
    return (1 - rate) * bradley_terry(margin) + _times(rate, bradley_terry(-margin))


def noise_corrected(margin: Float[Array, "*b"], flip_rate: Float[Array, "*b"] | float) -> Float[jax.Array, "*b"]:
    r"""A loss whose mean over labels that were flipped at a known rate is the loss of the true labels.

    $$L(\Delta) = \frac{(1-\varepsilon)\,\ell(\Delta) - \varepsilon\,\ell(-\Delta)}{1-2\varepsilon}
      = \ell(\Delta) - \frac{\varepsilon}{1-2\varepsilon}\Delta, \qquad
      (1-\varepsilon)L(\Delta) + \varepsilon L(-\Delta) = \ell(\Delta)$$

    Unbiased, and unbounded below: a single pair is never fitted, its loss falls without end as its margin grows. Only
    over data with flips in them is there a minimum.

    Guarantees: convex; the mean over flips is Bradley-Terry; negative for large margins; the curvature is that of
    Bradley-Terry; rate 0 is `bradley_terry`.

    Args:
        margin: score of the chosen minus score of the rejected answer, in logits.
        flip_rate: ε in [0, 1/2), traced, hence unchecked here.

    Returns:
        Nats per comparison, at least float32.

    Example:
        >>> [f"{nats:.4f}" for nats in noise_corrected(jnp.array([3.0, -3.0]), 0.1)]
        ['-0.3264', '3.4236']

    Reference:
        Chowdhury, Kini and Natarajan, Provably robust DPO: aligning language models with noisy feedback, 2024.
    """
    margin, rate = _with(margin, flip_rate)
    kept = 1 - 2 * rate
    return (1 - rate) / kept * bradley_terry(margin) - _times(rate / kept, bradley_terry(-margin))


def lapse(margin: Float[Array, "*b"], rate: Float[Array, "*b"] | float) -> Float[jax.Array, "*b"]:
    r"""Negative log-likelihood of an annotator who answers at random with a given chance.

    $$-\log\left[(1-\lambda)\,\sigma(\Delta) + \lambda/2\right]$$

    Guarantees: at most -log(rate/2), so that one wrong label costs a bounded amount; the gradient falls back to 0 for
    badly ranked pairs, with full relative precision; rate 0 is `bradley_terry`. Not convex.

    Args:
        margin: score of the chosen minus score of the rejected answer, in logits.
        rate: λ in [0, 1), traced, hence unchecked here.

    Returns:
        Nats per comparison, at least float32.

    Example:
        >>> print(lapse(jnp.array([3.0, 0.0, -100.0]), 0.1).round(4))
        [0.0973 0.6931 2.9957]

    Reference:
        Christiano et al., Deep reinforcement learning from human preferences, 2017, section 2.2.3 (a rate of 10 %).
    """
    return _lapse(*_with(margin, rate))


def with_target_margin(margin: Float[Array, "*b"], target_margin: Float[Array, "*b"]) -> Float[jax.Array, "*b"]:
    r"""Bradley-Terry loss of a choice that was graded: the margin should exceed the target.

    $$\ell(\Delta - m)$$

    The best margin for a share q of annotators is m + logit q: margins of a model that is trained so are no longer
    log-odds, and its probabilities are not calibrated.

    Guarantees: m = 0 is `bradley_terry`; only the difference of margin and target counts.

    Args:
        margin: score of the chosen minus score of the rejected answer, in logits.
        target_margin: m in logits, such as 1, 2/3, 1/3, 0 from "significantly better" to "negligibly better".

    Returns:
        Nats per comparison, at least float32.

    Example:
        >>> [f"{nats:.4f}" for nats in with_target_margin(jnp.array(1.0), jnp.array([0.0, 1.0, 3.0]))]
        ['0.3133', '0.6931', '2.1269']

    Reference:
        Touvron et al., Llama 2, 2023, equation 2 and table 27.
    """
    margin = at_least_float32(margin)
    return bradley_terry(margin - jnp.asarray(target_margin, margin.dtype))


@jax.custom_jvp
def _lapse(margin: jax.Array, rate: jax.Array) -> jax.Array:
    """From the likelier of both explanations: the other one cancels against it."""
    meant, guess = jnp.log1p(-rate) - softplus(-margin), _log_guess(rate)
    odds = meant - guess
    return jnp.where(odds > 0, -meant - softplus(-odds), -guess - softplus(odds))


@_lapse.defjvp
def _lapse_jvp(primals, tangents):
    (margin, rate), (of_margin, of_rate) = primals, tangents
    value = _lapse(margin, rate)
    meant = sigmoid(jnp.log1p(-rate) - softplus(-margin) - _log_guess(rate))
    by_rate = jnp.nan_to_num(jnp.tanh(margin / 2) / 2 * jnp.exp(value))  # infinite where a rate of 0 meets a sure loss
    return value, -sigmoid(-margin) * meant * of_margin + by_rate * of_rate


def _log_guess(rate: jax.Array) -> jax.Array:
    """log of half the rate; -∞ at 0, with no way back through the logarithm, whose derivative there is no number."""
    return jnp.where(rate > 0, jnp.log(jnp.where(rate > 0, rate, 1) / 2), -jnp.inf)


def _with(margin: Array, rate: Array | float) -> tuple[jax.Array, jax.Array]:
    margin = at_least_float32(margin)
    return margin, jnp.broadcast_to(
        jnp.asarray(rate, margin.dtype), jnp.broadcast_shapes(margin.shape, jnp.shape(rate))
    )


def _times(rate: jax.Array, loss: jax.Array) -> jax.Array:
    """0 at rate 0, whatever the loss is there."""
    return jnp.where(rate == 0, 0, rate * loss)
