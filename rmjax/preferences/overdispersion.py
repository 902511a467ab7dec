"""How much the share of annotators differs from item to item: the beta-binomial, by maximum likelihood."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, special

from rmjax.checks import whole_numbers
from rmjax.errors import DataError, IdentifiabilityError, SampleSizeError


@dataclasses.dataclass(frozen=True)
class BetaBinomial:
    """Shares of annotators drawn from Beta(alpha, beta), one an item."""

    alpha: float
    beta: float
    mean: float  # of the shares
    rho: float  # correlation of two votes on one item, 1 / (alpha + beta + 1)
    negative_log_likelihood: float  # nats, binomial coefficients included
    covariance: np.ndarray  # [2, 2], of the estimates of mean and rho
    standard_errors: dict[str, float]  # of alpha, beta, mean and rho
    items: int  # items with a vote


def beta_binomial(successes: ArrayLike, trials: ArrayLike) -> BetaBinomial:
    r"""Spread of the shares from k of m votes an item, by maximum likelihood.

    $$P(k \mid m) = \binom{m}{k}\frac{B(k + \alpha,\; m - k + \beta)}{B(\alpha, \beta)}, \qquad
      \rho = \frac{1}{\alpha + \beta + 1}$$

    With rho = 0 all items are equally contested; with rho = 1 the annotators agree on every one. Standard errors are
    of the observed information, and count items as independent.

    Guarantees: exchanging successes and failures exchanges alpha and beta; an item without votes changes nothing; the
    gradient is 0 at the estimate. Where the likelihood rises towards an edge, the estimate does not exist and is
    refused: no more spread than equal shares have (rho = 0), or every item unanimous (rho = 1).

    Args:
        successes: votes for the first, k, [items]; whole numbers.
        trials: votes, m, [items].

    Returns:
        The estimate with its standard errors.

    Raises:
        DataError: a count is not whole, is negative, or exceeds its trials.
        SampleSizeError: no item has two votes, so that none can agree.
        IdentifiabilityError: the estimate lies at an edge; the numbers say at which.

    Example:
        >>> fit = beta_binomial(np.repeat(np.arange(6), [30, 18, 12, 14, 20, 36]), np.full(130, 5))
        >>> print(f"{fit.alpha:.4f} {fit.beta:.4f} {fit.rho:.4f} +- {fit.standard_errors['rho']:.4f}")
        0.4893 0.4376 0.5190 +- 0.0442

    Reference:
        Griffiths, Maximum likelihood estimation for the beta-binomial distribution, Biometrics 1973; the edge at
        rho = 0 is the score of Tarone, Testing the goodness of fit of the binomial distribution, Biometrika 1979.
    """
    k, m = _counts(successes, trials)
    share, moment = _moments(k, m)
    steps = np.arange(int(m.max()))
    for_first, for_second, of_all = (
        len(n) - np.searchsorted(np.sort(n), steps, side="right").astype(np.float64) for n in (k, m - k, m)
    )

    def terms(p: float, rho: float) -> tuple[float, np.ndarray, np.ndarray]:
        """Negative log-likelihood without binomial coefficients, its gradient and its Hessian in (p, rho)."""
        # Rising factorials as sums of logs, each times rho: as log-gammas they cancel where rho is small.
        first, second, total = (x * (1 - rho) + steps * rho for x in (p, 1 - p, 1))
        w, u, v, t = 1 - rho, steps - p, steps - (1 - p), steps - 1
        a, b, c = for_first / first, for_second / second, of_all / total
        value = of_all @ np.log(total) - for_first @ np.log(first) - for_second @ np.log(second)
        gradient = np.array([w * (b.sum() - a.sum()), c @ t - a @ u - b @ v])
        across = a.sum() - b.sum() + w * (a @ (u / first) - b @ (v / second))
        return (
            float(value),
            gradient,
            np.array(
                [
                    [w**2 * ((a / first).sum() + (b / second).sum()), across],
                    [across, (a / first) @ u**2 + (b / second) @ v**2 - (c / total) @ t**2],
                ]
            ),
        )

    def in_logits(x: np.ndarray) -> tuple[float, np.ndarray]:
        p, rho = special.expit(x)
        value, gradient, _ = terms(p, rho)
        return value / len(k), gradient * [p * (1 - p), rho * (1 - rho)] / len(k)

    def hessian_in_logits(x: np.ndarray) -> np.ndarray:
        point = special.expit(x)
        _, gradient, hessian = terms(*point)
        slope = point * (1 - point)
        return (hessian * np.outer(slope, slope) + np.diag(gradient * slope * (1 - 2 * point))) / len(k)

    start = special.logit([share, np.clip(moment, 1e-9, 1 - 1e-9)])
    found = optimize.minimize(in_logits, start, jac=True, hess=hessian_in_logits, method="trust-exact")
    point = special.expit(found.x)
    # In logits the likelihood is flat where rho is small, and in (p, rho) it is close to a parabola there.
    for _ in range(4):
        _, gradient, hessian = terms(*point)
        point = point - np.linalg.solve(hessian, gradient)
    value, _, hessian = terms(*point)
    covariance = np.linalg.inv(hessian)
    p, rho = (float(x) for x in point)
    odds = (1 - rho) / rho
    slopes = np.array([[odds, -p / rho**2], [-odds, -(1 - p) / rho**2], [1, 0], [0, 1]])  # of a, b, p, rho
    variances = np.einsum("ij,jk,ik->i", slopes, covariance, slopes)
    coefficients = special.gammaln(m + 1) - special.gammaln(k + 1) - special.gammaln(m - k + 1)
    return BetaBinomial(
        alpha=p * odds,
        beta=(1 - p) * odds,
        mean=p,
        rho=rho,
        negative_log_likelihood=value - float(coefficients.sum()),
        covariance=covariance,
        standard_errors=dict(zip(("alpha", "beta", "mean", "rho"), np.sqrt(variances).tolist(), strict=True)),
        items=len(k),
    )


def _moments(k: np.ndarray, m: np.ndarray) -> tuple[float, float]:
    """The share and rho by moments; refuses what has its maximum at an edge."""
    if m.max(initial=0) < 2:
        raise SampleSizeError(
            "no item has two votes, so that none can agree",
            {"items": len(m), "votes_on_one": m.max(initial=0)},
            "Let several annotators judge the same items.",
        )
    share = k.sum() / m.sum()
    if share in (0, 1):
        raise IdentifiabilityError(
            "all votes are for one side: the spread of the shares is not identified",
            {"votes": m.sum(), "share": share},
            "Exchange the sides of some items at random, or collect items that are contested.",
        )
    if ((k == 0) | (k == m)).all():
        raise IdentifiabilityError(
            "every item is unanimous: the likelihood rises to rho = 1, where alpha and beta are 0",
            {"items": len(m), "rho": 1},
            "Report rho = 1, or collect more votes on every item.",
        )
    # E k(k - 1) = m(m - 1)(p^2 + rho p(1 - p)); as a function of rho this is also the slope of the likelihood at 0.
    pairs = (k * (k - 1) / share + (m - k) * (m - k - 1) / (1 - share)).sum()
    moment = float(pairs / (m * (m - 1)).sum()) - 1
    if moment <= 0:
        raise IdentifiabilityError(
            "votes agree no more than under one share for all items: the likelihood rises to rho = 0",
            {"items": len(m), "share": share, "rho_by_moments": moment},
            "Report rho = 0, where alpha and beta are infinite, or collect more items.",
        )
    return float(share), moment


def _counts(successes: ArrayLike, trials: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Counts of the items that have votes, in float64, checked."""
    k, m = whole_numbers("successes", successes), whole_numbers("trials", trials)
    if k.shape != m.shape or k.ndim != 1:
        raise DataError(
            "successes and trials are vectors of one length",
            {"successes": k.shape, "trials": m.shape},
            "Give one of each per item.",
        )
    wrong = (k < 0) | (k > m)
    if wrong.any():
        i = int(np.flatnonzero(wrong)[0])
        raise DataError(
            "successes lie between 0 and the trials",
            {"item": i, "successes": k[i], "trials": m[i]},
            "Count the votes for one side, and all of them.",
        )
    used = m > 0
    return k[used].astype(np.float64), m[used].astype(np.float64)
