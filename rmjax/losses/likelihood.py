"""Likelihoods over `(scores, comparisons)`, as a sum and a count."""

from __future__ import annotations

from typing import Any, get_args

import jax
import jax.numpy as jnp
from jaxtyping import Float

from rmjax.arrays import Array, at_least_float32
from rmjax.checks import one_of
from rmjax.comparisons import Comparisons, Ties, check_ties
from rmjax.errors import DataError
from rmjax.losses.kernels import times_votes
from rmjax.losses.links import WITH_TIES, LinkName, Parameters, check_link, check_policy, vote_loss
from rmjax.losses.penalties import centering


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
    scores: Float[Array, " N"],
    comparisons: Comparisons,
    *,
    link: LinkName = "bradley_terry",
    parameters: Parameters | None = None,
    ties: Ties | None = None,
) -> tuple[Float[jax.Array, ""], Float[jax.Array, ""]]:
    r"""Negative log-likelihood of all votes under a link, as (sum, count).

    $$\sum_e w_e\,[a_e\,\ell_{first}(\Delta_e) + b_e\,\ell_{second}(\Delta_e) + t_e\,\ell_{tie}(\Delta_e)], \qquad
      \sum_e w_e\,(a_e + b_e + t_e)$$

    with $a_e$, $b_e$, $t_e$ the votes for the first answer, for the second, and for a tie. Links without a probability
    for a tie are "bradley_terry", "label_smoothed" (parameter `rate`), "noise_corrected" (`flip_rate`), "lapse"
    (`rate`), "target_margin" (the margins of the comparisons; that of a pair is what the first should lead by, negative
    where the second should) and "thurstone". Under them `ties="half"` counts a tie as half a vote for either side,
    `ties="drop"` leaves ties out of both numbers. "rao_kupper" (`log_threshold`) and "davidson" (`log_tie`) count a tie
    as the datum that it is. Under every link `position` adds that effect to the margin of the answer that was shown
    first.

    Guarantees: m votes on one pair give m times the cross-entropy of their share; weight 0 is deletion, and so is no
    vote that counts, in value and gradient, also when the deleted score, margin or order is infinite or not a number;
    any split of the comparisons into parts gives the same sum and count.

    Args:
        scores: one score per response, in the unit of the link, up to one constant per prompt.
        comparisons: the judged pairs with their votes; every response is scored once however often it is judged.
        link: what a margin says about votes.
        parameters: of the link, by name; a pytree, so that they can be learned.
        ties: what a link that has no ties does with them.

    Returns:
        Sum in nats and count in weighted votes, both at least float32. The mean is their quotient.

    Raises:
        DataError: there is not one score per response; the link or its parameters are not understood; comparisons lack
            the margins or orders that are asked for; `ties` is given under a link that has ties; or votes contain ties
            under one that has none and `ties` is unset. Only concrete arrays can be looked at; under a transformation
            unset ties are dropped, so call `check_ties` where the data enter.

    Example:
        >>> from rmjax import Comparisons
        >>> votes = Comparisons.from_votes([0], [1], [2.0], [1.0], prompt=[0, 0], ties=[1.0])
        >>> scores = jnp.array([1.0, 0.0])
        >>> total, count = negative_log_likelihood(scores, votes, ties="drop")
        >>> print(f"{total / count:.4f} nats per vote, {count:.0f} votes")
        0.6466 nats per vote, 3 votes
        >>> total, count = negative_log_likelihood(scores, votes, link="davidson", parameters={"log_tie": 0.0})
        >>> print(f"{total / count:.4f} nats per vote, {count:.0f} votes")
        1.0553 nats per vote, 4 votes

    Reference:
        Hunter, MM algorithms for generalized Bradley-Terry models, Annals of Statistics 2004, section 1.
    """
    row = check_link(link, parameters)
    given = {} if parameters is None else parameters
    check_policy(link, ties)
    if link not in WITH_TIES:
        check_ties(comparisons, ties)
    margin = margins(scores, comparisons)
    dtype = margin.dtype
    votes = _weighted_votes(comparisons, link, ties, dtype)
    counted = sum(votes, start=jnp.zeros_like(margin))
    # Before the loss: behind it, the gradient of what is not a number leaks.
    margin = jnp.where(counted == 0, 0, margin)
    if link == "target_margin":
        margin = margin - _column(comparisons, "target_margin", counted, "the margin that the first should lead by")
    if "position" in given:
        shown = _column(comparisons, "order", counted, "which answer was shown first")
        margin = margin + jnp.asarray(given["position"], dtype) * shown
    return vote_loss(row, margin, given, votes).sum(), counted.sum()


def centering_penalty(
    scores: Float[Array, " N"], comparisons: Comparisons, *, link: LinkName = "bradley_terry", ties: Ties | None = None
) -> tuple[Float[jax.Array, ""], Float[jax.Array, ""]]:
    r"""The centring penalty of all votes that count, as (sum, count).

    $$\sum_e n_e\,(r_{first(e)} + r_{second(e)})^2, \qquad \sum_e n_e$$

    It pins scores near 0 and identifies nothing: see `centering`.

    Guarantees: its gradient in a margin of free scores is 0 where every response is in one pair; weight 0 is deletion,
    as in `negative_log_likelihood`, whose count is the same.

    Args:
        scores: one score per response.
        comparisons: the judged pairs with their votes.
        link: under a link with ties a tie counts.
        ties: as in `negative_log_likelihood`; unset, ties count under a link that has them and no other.

    Returns:
        Sum in squared logits and count in weighted votes.

    Raises:
        DataError: there is not one score per response, or the link or the policy is none, or they do not go together.

    Example:
        >>> from rmjax import Comparisons
        >>> pairs = Comparisons.from_pairs([0], [1], prompt=[0, 0])
        >>> total, count = centering_penalty(jnp.array([1.5, -0.5]), pairs)
        >>> print(total, count)
        1.0 1.0

    Reference:
        Eisenstein et al. 2023, equation 2.
    """
    one_of("link", link, get_args(LinkName))
    check_policy(link, ties)
    dtype = margins(scores, comparisons).dtype
    counted = sum(_weighted_votes(comparisons, link, ties, dtype), start=jnp.zeros(comparisons.first.shape, dtype))
    used = counted > 0
    first, second = (
        jnp.where(used, at_least_float32(scores)[index], 0) for index in (comparisons.first, comparisons.second)
    )
    return (counted * centering(first, second)).sum(), counted.sum()


def _weighted_votes(comparisons: Comparisons, link: LinkName, ties: Ties | None, dtype: Any) -> tuple[jax.Array, ...]:
    """Votes for the first, the second and, under a link with ties, for a tie, times the weight; 0 where that is 0."""
    a, b, tied, weight = (
        jnp.asarray(x, dtype)
        for x in (comparisons.wins_first, comparisons.wins_second, comparisons.ties, comparisons.weight)
    )
    if ties == "half":
        a, b = a + tied / 2, b + tied / 2
    return tuple(times_votes(weight, x) for x in ((a, b, tied) if link in WITH_TIES else (a, b)))


def _column(comparisons: Comparisons, name: str, counted: jax.Array, what: str) -> jax.Array:
    """An optional column of the comparisons, 0 where no vote counts."""
    column = getattr(comparisons, name)
    if column is None:
        raise DataError(
            f"the comparisons do not say {what}",
            {name: None},
            f"Give `{name}` where the comparisons are built.",
        )
    return jnp.where(counted == 0, 0, jnp.asarray(column, counted.dtype))
