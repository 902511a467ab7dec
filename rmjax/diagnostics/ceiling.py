"""The best accuracy against single votes from several votes an item: bounds by moments, and points under a model."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, special

from rmjax.errors import DataError, SampleSizeError

# Places of the mixing measure along |2p - 1|; the bounds move by less than a hundredth of a percent beyond.
_GRID = 801


@dataclasses.dataclass(frozen=True)
class VoteCeiling:
    """The interval of the best accuracy that is possible with these votes, from all that they tell."""

    lower: float
    upper: float
    items: int  # with two or more votes
    most_votes: int  # on one item: so many moments of p are known
    deviations: float  # sampling errors by which a share of the votes may be off


def ceiling_from_votes(votes: ArrayLike, *, deviations: float = 0.0) -> VoteCeiling:
    r"""Sharp bounds on the best accuracy against one held-out vote, from all votes on every item.

    With $t = |2p - 1|$ and p the share of the population that chooses the first, the best accuracy is $C = (1 +
    E\,t)/2$. Items with k votes tell how often j of them agree, which is linear in the law of t, and so is C: a linear
    programme over all laws gives the ends. Which response is the first means nothing, so that j and k - j are counted
    together.

    Guarantees: lower <= upper; with two votes an item it is the interval of `ceiling_bounds` for their agreement; more
    votes an item, or fewer deviations, never widen it.

    Args:
        votes: counts of first and second, [items, 2]; whole numbers. Items with fewer than two votes tell nothing.
        deviations: by how many standard errors every share may be off, 0 to take them for the population's.

    Returns:
        The interval, for an accuracy that weighs items alike.

    Raises:
        DataError: the counts are not whole, are negative, or have another shape.
        SampleSizeError: no item has two votes, or no law has such shares: they are noise, and need deviations.

    Example:
        >>> bounds = ceiling_from_votes([[2, 0], [2, 0], [1, 1], [0, 2]])
        >>> print(f"{bounds.lower:.4f} {bounds.upper:.4f}")
        0.7500 0.8536

    Reference:
        A truncated moment problem: Karlin and Studden, Tchebycheff Systems, 1966.
    """
    counts = np.asarray(votes, np.float64) if np.ndim(votes) == 2 else np.zeros((0, 0))
    if counts.ndim != 2 or counts.shape[1:] != (2,) or not ((counts >= 0) & (counts == np.floor(counts))).all():
        raise DataError(
            "votes are counts of first and second",
            {"shape": np.shape(votes)},
            "Give whole numbers that are not negative, [items, 2].",
        )
    number = counts.sum(axis=1).astype(int)
    t = np.linspace(0, 1, _GRID)
    rows, low, high = [], [], []
    for k in np.unique(number[number >= 2]):
        of_k = counts[number == k].min(axis=1)  # votes of the minority
        for j in range(k // 2 + 1):
            chance = _binomial(k, j, t) + (_binomial(k, k - j, t) if 2 * j != k else 0)
            share = float(np.mean(of_k == j))
            off = deviations * np.sqrt(share * (1 - share) / len(of_k))
            rows.append(chance)
            low.append(share - off)
            high.append(share + off)
    if not rows:
        raise SampleSizeError("no item has two votes", {"items": len(counts)}, "Collect more votes on the same items.")
    matrix = np.array(rows)
    slack = 1e-9  # of the grid, on which a law of the population need not stand
    ends = []
    for sign in (1.0, -1.0):
        found = optimize.linprog(
            sign * t,
            A_ub=np.concatenate([matrix, -matrix]),
            b_ub=np.concatenate([np.array(high) + slack, slack - np.array(low)]),
            A_eq=np.ones((1, len(t))),
            b_eq=[1.0],
            method="highs",
        )
        if found.status != 0:
            raise SampleSizeError(
                "no population votes like this: the shares are too noisy to be taken for its own",
                {"items": int((number >= 2).sum()), "deviations": deviations},
                "Allow for their sampling error, such as deviations=2.",
            )
        ends.append((1 + sign * float(found.fun)) / 2)
    return VoteCeiling(ends[0], ends[1], int((number >= 2).sum()), int(number.max()), deviations)


def ceiling_from_moments(second: float, fourth: float) -> tuple[float, float]:
    r"""Bounds on the best accuracy from $E\delta^2$ and $E\delta^4$, $\delta = 2p - 1$.

    The agreement of two votes gives the second moment, $A = (1 + E\delta^2)/2$; that of the mode of three with a
    fourth, $M = \frac12 + (3 E\delta^2 - E\delta^4)/4$, the other.

    Guarantees: within the interval of the second moment alone; both ends are attained.

    Args:
        second: in [0, 1].
        fourth: between the square of the second and the second.

    Returns:
        Lower and upper end.

    Raises:
        DataError: no law has these moments.

    Example:
        >>> print([round(end, 5) for end in ceiling_from_moments(0.44, 0.24)])
        [0.79788, 0.82474]

    Reference:
        Karlin and Studden, Tchebycheff Systems, 1966; the example is of Stiennon et al. 2020, appendix C.2.
    """
    if not 0 <= second <= 1 or not second**2 <= fourth <= second:
        raise DataError(
            "no law has these moments",
            {"second": second, "fourth": fourth},
            "The fourth lies between the square of the second and the second.",
        )
    if fourth == second**2:  # all items are equally noisy
        return (1 + second**0.5) / 2, (1 + second**0.5) / 2
    t = np.linspace(0, 1, 20 * _GRID)
    ends = []
    for sign in (1.0, -1.0):
        found = optimize.linprog(
            sign * t,
            A_eq=np.stack([np.ones_like(t), t**2, t**4]),
            b_eq=[1.0, second, fourth],
            method="highs",
        )
        ends.append((1 + sign * float(found.fun)) / 2)
    return ends[0], ends[1]


def normal_ceiling(agreement: float) -> tuple[float, float]:
    r"""The best accuracy if margins of Bradley-Terry are normal about 0, and their deviation.

    $$A = \tfrac12 (1 + E \tanh^2(\Delta / 2)), \qquad C = E\,\sigma(|\Delta|), \qquad \Delta \sim N(0, s^2)$$

    Guarantees: within the bounds of the agreement; rises with it.

    Args:
        agreement: of two votes, in (1/2, 1).

    Returns:
        C, and s in logits.

    Raises:
        DataError: the agreement is outside.

    Example:
        >>> print([round(x, 4) for x in normal_ceiling(0.75)])
        [0.8203, 2.6742]

    Reference:
        Gauss-Legendre quadrature of the normal law.
    """
    if not 0.5 < agreement < 1:
        raise DataError("an agreement lies between 1/2 and 1", {"agreement": agreement}, "Give that of two votes.")
    z, weight = np.polynomial.legendre.leggauss(400)
    z, weight = 6 * (z + 1), 6 * weight  # half a normal law, to 12 deviations
    density = 2 * np.exp(-z * z / 2) / np.sqrt(2 * np.pi) * weight

    def gap(log_scale: float) -> float:
        return float((1 + (density * np.tanh(np.exp(log_scale) * z / 2) ** 2).sum()) / 2 - agreement)

    root: Any = optimize.brentq(gap, np.log(1e-4), np.log(1e4), xtol=1e-13)
    scale = float(np.exp(root))
    return float((density * special.expit(scale * z)).sum()), scale


def beta_ceiling(a: float, b: float) -> tuple[float, float]:
    r"""The best accuracy, and the agreement of two votes, if the share p follows a beta law.

    $$C = E \max(p, 1 - p), \qquad A = 1 - 2\,E\,p(1 - p) = 1 - \frac{2ab}{(a + b)(a + b + 1)}$$

    Guarantees: within the bounds of the agreement; exchanging a and b changes nothing.

    Args:
        a: greater than 0.
        b: greater than 0.

    Returns:
        C and A.

    Raises:
        DataError: a parameter is not greater than 0.

    Example:
        >>> print([round(x, 6) for x in beta_ceiling(0.5, 0.5)])
        [0.81831, 0.75]

    Reference:
        The incomplete beta function; for a = b = 1/2 it is 1/2 + 1/π.
    """
    if not (a > 0 and b > 0 and np.isfinite(a + b)):
        raise DataError("a beta law has two parameters above 0", {"a": a, "b": b}, "Give those of `beta_binomial`.")
    mean = a / (a + b)
    above = mean * special.betaincc(a + 1, b, 0.5)  # of p, where it is above one half
    below = (1 - mean) * special.betainc(a, b + 1, 0.5)  # of 1 - p, where it is above
    return float(above + below), float(1 - 2 * mean * b / (a + b + 1))


def majority_target(p: ArrayLike, votes: int) -> np.ndarray:
    r"""The best accuracy on one item against the majority of an odd number of votes, of which p is the share.

    $$\max(P_m, 1 - P_m), \qquad P_m = P(\mathrm{Bin}(m, p) > m/2)$$

    Guarantees: one vote gives max(p, 1-p); it rises with the votes towards 1, which is the best accuracy against what
    most people think.

    Args:
        p: share of the population for the first.
        votes: m, odd.

    Returns:
        Elementwise.

    Raises:
        DataError: the number of votes is not odd.

    Example:
        >>> print(majority_target(0.75, 3))
        0.84375

    Reference:
        Condorcet, Essai sur l'application de l'analyse, 1785.
    """
    if votes < 1 or votes % 2 == 0:
        raise DataError("a majority of an odd number of votes is meant", {"votes": votes}, "Give 1, 3, 5, ...")
    half = votes // 2
    win = special.betainc(half + 1, votes - half, np.asarray(p, np.float64))
    return np.maximum(win, 1 - win)


def _binomial(k: int, j: int, t: np.ndarray) -> np.ndarray:
    """Chance of j of k votes at p = (1 + t)/2."""
    p = (1 + t) / 2
    return special.comb(k, j) * p**j * (1 - p) ** (k - j)
