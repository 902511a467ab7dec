"""Likelihoods over `(scores, comparisons)`, as a sum and a count."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Float

from rmjax.arrays import Array, at_least_float32
from rmjax.comparisons import Comparisons, Ties, check_ties
from rmjax.errors import DataError
from rmjax.losses.kernels import bradley_terry, times_votes


def margins(scores: Float[Array, " N"], comparisons: Comparisons) -> Float[jax.Array, " E"]:
    """Score of the first minus score of the second, for every comparison; 0 where the comparison is padding.

    $$\\Delta_e = r_{first(e)} - r_{second(e)}$$

    Guarantees: one constant per prompt cancels; a score that no weighted comparison reads, be it infinite or not a
    number, reaches neither the margins nor a gradient.

    Args:
        scores: one score per response, in logits up to one constant per prompt.
        comparisons: the judged pairs.

    Returns:
        Margins in logits, at least float32.

    Raises:
        DataError: there is not one score per response.

    Example:
        >>> from rmjax import Comparisons
        >>> pairs = Comparisons.from_pairs([0], [1], prompt=[0, 0])
        >>> print(margins(jnp.array([102.0, 101.0]), pairs))
        [1.]
    """
    scores = at_least_float32(scores)
    if scores.shape != comparisons.prompt.shape:
        # An index out of range would be clamped to some other score.
        raise DataError(
            "there is one score per response",
            {"scores": scores.shape, "responses": comparisons.prompt.shape},
            "Score every response once, in the order of `comparisons.prompt`.",
        )
    used = jnp.asarray(comparisons.weight) > 0
    first, second = (jnp.where(used, scores[index], 0) for index in (comparisons.first, comparisons.second))
    return first - second


def negative_log_likelihood(
    scores: Float[Array, " N"], comparisons: Comparisons, *, ties: Ties | None = None
) -> tuple[Float[jax.Array, ""], Float[jax.Array, ""]]:
    r"""Bradley-Terry negative log-likelihood of all votes, as (sum, count).

    $$\sum_e w_e\,[a_e\,\ell(\Delta_e) + b_e\,\ell(-\Delta_e)], \qquad \sum_e w_e\,(a_e + b_e)$$

    with $a_e$, $b_e$ the votes for the first and for the second answer. `ties="half"` counts a tie as half a vote
    for either side; `ties="drop"` leaves ties out of both numbers.

    Guarantees: m votes on one pair give m times the cross-entropy of their share; weight 0 is deletion, and so is no
    vote that counts, in value and gradient, also when the deleted score is infinite or not a number; any split of the
    comparisons into parts gives the same sum and count.

    Args:
        scores: one score per response, in logits up to one constant per prompt.
        comparisons: the judged pairs with their votes; every response is scored once however often it is judged.
        ties: what this link, which has no ties, does with them.

    Returns:
        Sum in nats and count in weighted votes, both at least float32. The mean is their quotient.

    Raises:
        DataError: there is not one score per response, or votes contain ties and `ties` is unset. Only concrete arrays
            can be looked at; under a transformation unset ties are dropped, so call `check_ties` where the data enter.

    Example:
        >>> from rmjax import Comparisons
        >>> votes = Comparisons.from_votes([0], [1], wins_first=[2.0], wins_second=[1.0], prompt=[0, 0])
        >>> total, count = negative_log_likelihood(jnp.array([1.0, 0.0]), votes)
        >>> print(f"{total / count:.4f} nats per vote, {count:.0f} votes")
        0.6466 nats per vote, 3 votes

    Reference:
        Hunter, MM algorithms for generalized Bradley-Terry models, Annals of Statistics 2004, section 1.
    """
    check_ties(comparisons, ties)
    margin = margins(scores, comparisons)
    dtype = margin.dtype
    a, b, tied, weight = (
        jnp.asarray(x, dtype)
        for x in (comparisons.wins_first, comparisons.wins_second, comparisons.ties, comparisons.weight)
    )
    if ties == "half":
        a, b = a + tied / 2, b + tied / 2
    a, b = times_votes(weight, a), times_votes(weight, b)
    margin = jnp.where(a + b == 0, 0, margin)  # before the loss: behind it, the gradient of what is not a number leaks
    loss = times_votes(a, bradley_terry(margin)) + times_votes(b, bradley_terry(-margin))
    return loss.sum(), (a + b).sum()
