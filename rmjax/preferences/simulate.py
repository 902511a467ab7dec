"""Votes from known scores: the world in which every estimate can be checked."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
from jaxtyping import Float

from rmjax.arrays import Array
from rmjax.comparisons import Comparisons
from rmjax.errors import DataError
from rmjax.losses.likelihood import margins
from rmjax.losses.links import WITH_TIES, LinkName, Parameters, check_link

_OUTCOMES = ("bradley_terry", "lapse", "thurstone", *WITH_TIES)


def simulate(
    key: jax.Array,
    scores: Float[Array, " N"],
    comparisons: Comparisons,
    *,
    votes: int = 1,
    link: LinkName = "bradley_terry",
    parameters: Parameters | None = None,
) -> Comparisons:
    r"""Draw votes on every comparison from known scores.

    $$P(\text{outcome}) = e^{-\ell_{outcome}(\Delta)}$$

    with the loss of `losses.negative_log_likelihood` under the same link, so that its minimum is at the scores.

    Guarantees: every comparison gets as many votes; the same key gives the same votes; one constant per prompt changes
    only what rounding does; comparisons of weight 0 get votes that nobody reads.

    Args:
        key: of jax.random.
        scores: the truth, in the unit of the link.
        comparisons: which pairs are judged, and in which order they are shown; their own votes are not read.
        votes: per comparison.
        link: a link that is a probability of outcomes.
        parameters: of the link, as in `losses.negative_log_likelihood`.

    Returns:
        The comparisons with drawn votes.

    Raises:
        DataError: a link without probabilities, parameters that it does not take, or not one score per response.

    Example:
        >>> pairs = Comparisons.from_pairs([0], [1], prompt=[0, 0])
        >>> drawn = simulate(jax.random.key(0), jnp.array([1.0, 0.0]), pairs, votes=1000)
        >>> 0.70 < float(drawn.wins_first[0]) / 1000 < 0.76
        True

    Reference:
        Bradley and Terry, Rank analysis of incomplete block designs, Biometrika 1952.
    """
    row = check_link(link, parameters)
    if link not in _OUTCOMES or votes < 1:
        raise DataError(
            "votes are drawn from a link that is a probability of outcomes",
            {"link": link, "votes": votes},
            f"Choose one of {', '.join(_OUTCOMES)}, and 1 or more votes a comparison.",
        )
    given = {} if parameters is None else parameters
    margin = margins(scores, comparisons)
    if "position" in given:
        if comparisons.order is None:
            raise DataError("the comparisons do not say which answer was shown first", {"order": None}, "Give `order`.")
        margin = margin + jnp.asarray(given["position"], margin.dtype) * jnp.asarray(comparisons.order, margin.dtype)
    own = () if row.parameter is None else (jnp.asarray(given[row.parameter], margin.dtype),)
    logits = -jnp.stack(row.losses(margin, *own), axis=-1)
    drawn = jax.random.categorical(key, logits[:, None, :], shape=(len(margin), votes))
    count = jax.nn.one_hot(drawn, logits.shape[-1], dtype=margin.dtype).sum(axis=1)
    tied = count[:, 2] if link in WITH_TIES else jnp.zeros_like(margin)
    return dataclasses.replace(comparisons, wins_first=count[:, 0], wins_second=count[:, 1], ties=tied)
