"""Soft targets of few votes: the share of annotators, how well it is known, and log-odds that are finite."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from rmjax.errors import DataError


@dataclasses.dataclass(frozen=True)
class SoftTargets:
    """Posterior of the share of annotators who choose the first, per comparison."""

    mean: np.ndarray  # [E] float64, in (0, 1)
    standard_deviation: np.ndarray  # [E] float64
    lower: np.ndarray  # [E] float64, equal-tailed
    upper: np.ndarray  # [E] float64
    logit: np.ndarray  # [E] float64, log-odds of the mean, in logits
    votes: np.ndarray  # [E] float64, votes that count
    prior: float  # votes for either side that were added
    level: float  # of the interval


def soft_targets(
    wins_first: ArrayLike, wins_second: ArrayLike, *, prior: float = 0.5, level: float = 0.95
) -> SoftTargets:
    r"""Posterior of the share of annotators who choose the first, from k of m votes.

    $$q \mid k, m \sim \mathrm{Beta}(k + a,\; m - k + a), \qquad
      \bar q = \frac{k + a}{m + 2a}, \qquad
      \operatorname{Var} q = \frac{\bar q (1 - \bar q)}{m + 2a + 1}, \qquad
      \operatorname{logit} \bar q = \log\frac{k + a}{m - k + a}$$

    The share k/m itself is unbiased, and as a label its cross-entropy has the right gradient on average. But the best
    margin for it is logit(k/m), which is infinite where the votes are unanimous, as half of all pairs of votes are.

    Guarantees: the mean is in (0, 1) and the log-odds are finite; exchanging the sides mirrors everything; at one share
    the interval and the deviation are narrower the more votes there are; a vote narrows the variance on average over
    what it may say, though one that surprises widens it. A comparison without votes has the prior.

    Args:
        wins_first: votes for the first, k, [E]; counts or fractions, finite and not negative.
        wins_second: votes for the second, m - k, [E].
        prior: votes a > 0 for either side that are added; 1/2 is the prior of Jeffreys, 1 is uniform.
        level: of the interval.

    Returns:
        Mean, deviation, interval and log-odds.

    Raises:
        DataError: votes are negative, not finite or of two lengths, the prior is not above 0, or the level is none.

    Example:
        >>> both = soft_targets([2, 1], [0, 1])
        >>> print(both.mean.round(4), both.logit.round(4))
        [0.8333 0.5   ] [1.6094 0.    ]

    Reference:
        Brown, Cai and DasGupta, Interval estimation for a binomial proportion, Statistical Science 2001.
    """
    first, second = _votes("wins_first", wins_first), _votes("wins_second", wins_second)
    if first.shape != second.shape or first.ndim != 1:
        raise DataError(
            "votes for the two sides are vectors of one length",
            {"wins_first": first.shape, "wins_second": second.shape},
            "Give one count for either side per comparison.",
        )
    if not 0 < prior < np.inf:
        raise DataError(
            "the prior is a number of votes above 0", {"prior": prior}, "Choose 0.5 (Jeffreys) or 1 (uniform)."
        )
    if not 0 < level < 1:
        raise DataError("a level lies between 0 and 1", {"level": level}, "Choose 0.95, say.")
    a, b = first + prior, second + prior
    total = a + b
    tail = (1 - level) / 2
    return SoftTargets(
        mean=a / total,
        standard_deviation=np.sqrt(a / total * (b / total) / (total + 1)),
        lower=special.betaincinv(a, b, tail),
        upper=1 - special.betaincinv(b, a, tail),  # not the upper quantile of (a, b): so that sides mirror exactly
        logit=np.log(a) - np.log(b),
        votes=first + second,
        prior=float(prior),
        level=float(level),
    )


def _votes(name: str, value: ArrayLike) -> np.ndarray:
    """Votes in float64, checked one by one."""
    try:
        votes = np.asarray(value, np.float64)
    except (ValueError, TypeError):  # words, or rows of different lengths
        raise DataError(f"{name} holds no numbers", {}, "Give counts of votes, or fractions of one.") from None
    wrong = ~(votes >= 0) | ~np.isfinite(votes)
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        raise DataError(
            "a vote count is negative or not finite",
            {"row": at, name: votes.flat[at]},
            "Mend the row; a comparison without votes has 0.",
        )
    return votes
