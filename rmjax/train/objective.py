"""What a run minimises: a link between margins and votes, and a penalty."""

from __future__ import annotations

import dataclasses
from typing import Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np

from rmjax.arrays import Array
from rmjax.checks import one_of
from rmjax.comparisons import Comparisons, Ties
from rmjax.errors import DataError
from rmjax.losses import centering_penalty, negative_log_likelihood
from rmjax.losses.links import LINKS, WITH_TIES, check_link, vote_loss

TrainLink = Literal[
    "bradley_terry", "label_smoothed", "noise_corrected", "lapse", "thurstone", "rao_kupper", "davidson"
]


@dataclasses.dataclass(frozen=True)
class Objective:
    """The loss of a run."""

    link: TrainLink = "bradley_terry"
    """What a margin says about votes. Under "rao_kupper" and "davidson" a tie is a datum. Metrics but the loss are
    those of margins under every link."""
    parameter: float | None = None
    """The number that a link needs: the rate of "label_smoothed" and "lapse", the flip rate of "noise_corrected", log ϑ
    of "rao_kupper", log ν of "davidson"."""
    centering: float = 0.0
    """Weight of the squared sum of both scores. It pins numbers near 0; levels mean as little as before."""

    @property
    def parameters(self) -> dict[str, float]:
        """Of the link, by name."""
        name = LINKS[self.link].parameter
        return {} if name is None or self.parameter is None else {name: self.parameter}


def check_objective(objective: Objective, ties: Ties | None) -> Ties | None:
    """The policy for ties in force, or what is wrong with the objective.

    Args:
        objective: as the user gave it.
        ties: as the user gave it.

    Returns:
        "half" under a link with ties: in metrics of margins a tie is half a vote for either side, and it counts as one.

    Raises:
        DataError: no such link; a parameter that is missing, out of range or not asked for; a weight that is negative;
            ties that are dropped under a link that has them.

    Example:
        >>> check_objective(Objective("davidson", parameter=0.0), None)
        'half'
    """
    one_of("link", objective.link, get_args(TrainLink))
    check_link(objective.link, objective.parameters)
    if objective.parameter is not None and not objective.parameters:
        raise DataError(
            "this link takes no parameter",
            {"link": objective.link, "parameter": objective.parameter},
            "Leave the parameter unset.",
        )
    if not 0 <= objective.centering < np.inf:
        raise DataError(
            "the weight of the centring is finite and not negative",
            {"centering": objective.centering},
            "Give 0 for none, or 0.01, say.",
        )
    if objective.link not in WITH_TIES:
        return ties
    if ties == "drop":
        raise DataError(
            "this link has a probability for a tie", {"link": objective.link, "ties": ties}, "Leave ties unset."
        )
    return "half"


def training_loss(
    scores: Array, comparisons: Comparisons, objective: Objective, ties: Ties | None
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """What is minimised, the negative log-likelihood in it, and the count of votes.

    Args:
        scores: one score per response.
        comparisons: the judged pairs.
        objective: the link and the penalty.
        ties: what a link without ties does with them.

    Returns:
        Two sums in nats and a count.
    """
    policy = None if objective.link in WITH_TIES else ties
    nats, count = negative_log_likelihood(
        scores, comparisons, link=objective.link, parameters=objective.parameters, ties=policy
    )
    if not objective.centering:
        return nats, nats, count
    penalty, _ = centering_penalty(scores, comparisons, link=objective.link, ties=policy)
    return nats + objective.centering * penalty, nats, count


def held_out_loss(margins: np.ndarray, comparisons: Comparisons, objective: Objective, ties: Ties | None) -> float:
    """Nats of all votes at margins of scores, under the link of the run.

    Args:
        margins: of the comparisons, [E].
        comparisons: what was held out.
        objective: of the run.
        ties: what a link without ties does with them.

    Returns:
        The sum, added up in float64.
    """
    a, b, tied, weight = (
        np.asarray(x, np.float64)
        for x in (comparisons.wins_first, comparisons.wins_second, comparisons.ties, comparisons.weight)
    )
    if objective.link not in WITH_TIES and ties == "half":
        a, b = a + tied / 2, b + tied / 2
    votes = (a, b, tied) if objective.link in WITH_TIES else (a, b)
    with jax.enable_x64(True):
        weighed = tuple(jnp.asarray(weight * v) for v in votes)
        nats = vote_loss(LINKS[objective.link], jnp.asarray(margins, jnp.float64), objective.parameters, weighed)
        return float(np.asarray(nats).sum())
