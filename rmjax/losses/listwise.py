"""Losses of orders of several answers to one prompt."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float, Int

from rmjax.arrays import Array, at_least_float32
from rmjax.losses.kernels import bradley_terry, log1p_sum_exp


def plackett_luce(
    scores: Float[Array, " N"],
    ranking: Int[Array, "*b K"],
    mask: Bool[Array, "*b K"] | None = None,
    *,
    stages: Int[Array, "*b"] | int | None = None,
) -> Float[jax.Array, "*b"]:
    r"""Negative log-likelihood of an order: the best is chosen among all, the next among the rest, and so on.

    $$-\sum_{k} \log \frac{e^{r_k}}{\sum_{j \ge k} e^{r_j}}$$

    A full order has all candidates; a partial one those that were shown, the others masked; of a top-k order only the
    first `stages` choices were made, and what stands behind them is in any order.

    Guarantees: two candidates are Bradley-Terry; one constant for all candidates changes nothing, and the gradient sums
    to 0; a masked position may hold anything, also a score that is infinite or not a number; behind the last stage the
    order does not count.

    Args:
        scores: one score per response, in logits up to a constant.
        ranking: responses from best to worst, as indices into the scores.
        mask: which positions are filled; all, if unset.
        stages: number of choices that were observed, from the top; all, if unset.

    Returns:
        Nats per ranking, at least float32.

    Example:
        >>> scores = jnp.array([2.0, 1.0, 0.0, -1.0])
        >>> order = jnp.arange(4)
        >>> print(f"{plackett_luce(scores, order):.4f} for the order")
        1.1611 for the order
        >>> print(f"{plackett_luce(scores, order, stages=1):.4f} for the top alone")
        0.4402 for the top alone

    Reference:
        Plackett, The analysis of permutations, Applied Statistics 1975; Luce, Individual choice behavior, 1959.
    """
    scores, ranking = at_least_float32(scores), jnp.asarray(ranking)
    length = ranking.shape[-1]
    if not length:  # nothing was ranked: there is no largest of no rivals
        return jnp.zeros(ranking.shape[:-1], scores.dtype)
    shown = jnp.ones(ranking.shape, bool) if mask is None else jnp.asarray(mask)
    r = jnp.where(shown, scores[jnp.where(shown, ranking, 0)], 0)
    place = jnp.broadcast_to(jnp.arange(length), ranking.shape)
    chosen = shown if stages is None else shown & (place < jnp.asarray(stages)[..., None])
    rival = chosen[..., :, None] & shown[..., None, :] & (place[..., :, None] < place[..., None, :])
    # Masked before the difference: behind it, the gradient of an infinite score is not a number.
    leads = jnp.where(rival, r[..., None, :] - r[..., :, None], -jnp.inf)
    return log1p_sum_exp(leads).sum(axis=-1)


def all_pairs(
    scores: Float[Array, "*b K"], ranks: Float[Array, "*b K"], mask: Bool[Array, "*b K"] | None = None
) -> Float[jax.Array, "*b"]:
    r"""Mean Bradley-Terry loss over all pairs of the K answers to one prompt, so that a prompt counts as one.

    $$\binom{K}{2}^{-1} \sum_{i \prec j} \ell(r_i - r_j)$$

    Answers of equal rank make no pair, and the mean is over the pairs that are made. The pairs of one ranking are not
    independent: this is not the likelihood of the ranking (`plackett_luce`), and standard errors that take the pairs
    for independent are too small.

    Guarantees: K = 2 is `bradley_terry`; one constant for all answers changes nothing, and the gradient sums to 0; only
    the order of the ranks counts; masked answers may hold anything; without a pair it is 0.

    Args:
        scores: scores of the answers, in logits up to a constant.
        ranks: their ranks, 1 for the best; only the order counts.
        mask: which answers there are; all, if unset.

    Returns:
        Nats per prompt, at least float32.

    Example:
        >>> print(f"{all_pairs(jnp.array([2.0, 1.0, 0.0, -1.0]), jnp.arange(4)):.4f}")
        0.2070

    Reference:
        Ouyang et al., Training language models to follow instructions with human feedback, 2022, equation 1.
    """
    scores, ranks = at_least_float32(scores), jnp.asarray(ranks)
    there = jnp.ones(scores.shape, bool) if mask is None else jnp.asarray(mask)
    r = jnp.where(there, scores, 0)
    better = ranks[..., :, None] < ranks[..., None, :]
    pair = better & there[..., :, None] & there[..., None, :]
    loss = bradley_terry(jnp.where(pair, r[..., :, None] - r[..., None, :], 0))
    number = pair.sum(axis=(-2, -1))
    return jnp.where(pair, loss, 0).sum(axis=(-2, -1)) / jnp.maximum(number, 1).astype(loss.dtype)
