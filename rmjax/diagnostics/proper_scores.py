"""Proper scores of predicted shares, and their parts: calibration, discrimination, and what nobody can know."""

from __future__ import annotations

import dataclasses
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, special

from rmjax.checks import one_of
from rmjax.diagnostics.forecasts import checked_forecasts

Score = Literal["brier", "log"]


@dataclasses.dataclass(frozen=True)
class ScoreDecomposition:
    """A mean score as miscalibration - discrimination + uncertainty; lower is better. NaN of nothing."""

    score: float  # of the predictions as they are
    miscalibration: float  # what recalibration would save; reliability, in Murphy's words
    discrimination: float  # what recalibrated predictions gain over the base rate; resolution, in Murphy's words
    uncertainty: float  # of the base rate alone


def brier_score(predicted: ArrayLike, observed: ArrayLike, weight: ArrayLike | None = None) -> float:
    r"""Mean squared distance of a prediction from single votes.

    $$\sum_e w_e\,[\,y_e(1-p_e)^2 + (1-y_e)\,p_e^2\,]\;/\;\sum_e w_e$$

    Guarantees: a row with a share of votes that weighs their number says what its votes say one by one; the least
    expected score is that of the true probability; in [0, 1]; NaN of nothing.

    Args:
        predicted: probabilities, [E].
        observed: outcomes or shares of votes, [E].
        weight: what each row weighs, such as its number of votes, [E]; 1 if absent.

    Returns:
        The score.

    Raises:
        DataError: the lengths differ, a row that counts lies outside [0, 1], or a weight is negative.

    Example:
        >>> brier_score([0.5, 1.0], [1, 1])
        0.125

    Reference:
        Brier, Verification of forecasts expressed in terms of probability, Monthly Weather Review 1950.
    """
    return _mean(_brier, *checked_forecasts(predicted, observed, weight))


def log_score(predicted: ArrayLike, observed: ArrayLike, weight: ArrayLike | None = None) -> float:
    r"""Mean negative log likelihood of single votes, in nats.

    $$-\sum_e w_e\,[\,y_e\log p_e + (1-y_e)\log(1-p_e)\,]\;/\;\sum_e w_e$$

    From margins use `negative_log_likelihood`, which keeps its digits where p rounds to 1.

    Guarantees: a row with a share of votes that weighs their number says what its votes say one by one; the least
    expected score is that of the true probability; infinite where what was ruled out happens; NaN of nothing.

    Args:
        predicted: probabilities, [E].
        observed: outcomes or shares of votes, [E].
        weight: what each row weighs, such as its number of votes, [E]; 1 if absent.

    Returns:
        The score, in nats.

    Raises:
        DataError: the lengths differ, a row that counts lies outside [0, 1], or a weight is negative.

    Example:
        >>> round(log_score([0.5, 0.5], [1, 0]), 6), log_score([0.0], [1])
        (0.693147, inf)

    Reference:
        Good, Rational decisions, JRSS-B 1952.
    """
    return _mean(_log, *checked_forecasts(predicted, observed, weight))


def murphy_decomposition(
    predicted: ArrayLike, observed: ArrayLike, weight: ArrayLike | None = None, *, score: Score = "brier"
) -> ScoreDecomposition:
    r"""Parts of a score among rows with equal predictions: reliability, resolution and uncertainty.

    $$\bar S = \underbrace{\sum_k w_k (p_k-\bar y_k)^2}_{\text{miscalibration}}
      - \underbrace{\sum_k w_k (\bar y_k-\bar y)^2}_{\text{discrimination}} + \bar y(1-\bar y)$$

    for the Brier score; for the log score the squares are Kullback-Leibler divergences and the last term is an entropy.
    One group is all rows with one prediction. Predictions that are all different are each a group of one, and every
    error is then called miscalibration: use `corp_decomposition` for those, and not bins, within which the identity
    fails.

    Guarantees: score = miscalibration - discrimination + uncertainty; no part is negative; does not depend on the order
    of the rows, nor on which answer is called the first; NaN of nothing.

    Args:
        predicted: probabilities, [E].
        observed: outcomes or shares of votes, [E].
        weight: what each row weighs, such as its number of votes, [E]; 1 if absent.
        score: "brier" or "log".

    Returns:
        The score and its three parts. An infinite log score has infinite miscalibration.

    Raises:
        DataError: the lengths differ, a row that counts lies outside [0, 1], a weight is negative, or the score is
            unknown.

    Example:
        >>> parts = murphy_decomposition([0.25, 0.25, 0.75, 0.75], [0, 0, 0, 1])
        >>> parts.miscalibration, parts.discrimination, parts.uncertainty
        (0.0625, 0.0625, 0.1875)

    Reference:
        Murphy, A new vector partition of the probability score, Journal of Applied Meteorology 1973.
    """
    return _decompose(predicted, observed, weight, score, monotone=False)


def corp_decomposition(
    predicted: ArrayLike, observed: ArrayLike, weight: ArrayLike | None = None, *, score: Score = "brier"
) -> ScoreDecomposition:
    r"""Parts of a score after the best recalibration that keeps the order of the predictions.

    $$\bar S = \underbrace{\bar S(p)-\bar S(\hat c)}_{\text{miscalibration}}
      - \underbrace{(\bar S(\bar y)-\bar S(\hat c))}_{\text{discrimination}} + \bar S(\bar y)$$

    $\hat c$ is the isotonic regression of outcomes on predictions (pool adjacent violators), which minimises every
    proper score at once, so that there is no bin to choose. It is fitted to the sample that it is judged on:
    miscalibration is positive for a calibrated model too, the less the more rows there are.

    Guarantees: score = miscalibration - discrimination + uncertainty; no part is negative; the same for any strictly
    increasing map of the predictions but for the score and its miscalibration; does not depend on the order of the
    rows, nor on which answer is called the first; NaN of nothing.

    Args:
        predicted: probabilities, [E].
        observed: outcomes or shares of votes, [E].
        weight: what each row weighs, such as its number of votes, [E]; 1 if absent.
        score: "brier" or "log".

    Returns:
        The score and its three parts. An infinite log score has infinite miscalibration.

    Raises:
        DataError: the lengths differ, a row that counts lies outside [0, 1], a weight is negative, or the score is
            unknown.

    Example:
        >>> parts = corp_decomposition([0.1, 0.2, 0.8, 0.9], [0, 1, 0, 1])
        >>> parts.discrimination, parts.uncertainty
        (0.125, 0.25)

    Reference:
        Dimitriadis, Gneiting and Jordan, Stable reliability diagrams for probabilistic classifiers, PNAS 2021.
    """
    return _decompose(predicted, observed, weight, score, monotone=True)


def _decompose(predicted, observed, weight, score: Score, *, monotone: bool) -> ScoreDecomposition:
    """The mean score of the predictions, of what recalibration makes of them, and of the base rate."""
    one_of("score", score, ("brier", "log"))
    loss = _brier if score == "brier" else _log
    p, y, w = checked_forecasts(predicted, observed, weight)
    # Equal predictions are one group before anything is pooled: else the order of the rows would decide.
    _, group = np.unique(p, return_inverse=True)
    total = np.bincount(group, weights=w)
    share = np.bincount(group, weights=w * y) / total
    recalibrated = optimize.isotonic_regression(share, weights=total).x if monotone else share
    base = np.full_like(share, np.average(share, weights=total) if len(share) else np.nan)
    of_recalibrated, of_base = (_mean(loss, c, share, total) for c in (recalibrated, base))
    of_predictions = _mean(loss, p, y, w)  # row by row: beside a heavy row a share forgets what was ruled out
    return ScoreDecomposition(
        score=of_predictions,
        miscalibration=_no_less_than_0(of_predictions - of_recalibrated),
        discrimination=_no_less_than_0(of_base - of_recalibrated),
        uncertainty=of_base,
    )


def _no_less_than_0(difference: float) -> float:
    """A part that is below 0 by rounding alone; NaN stays."""
    return float(np.maximum(difference, 0))


def _mean(loss, p: np.ndarray, y: np.ndarray, w: np.ndarray) -> float:
    """Weighted mean; NaN of nothing."""
    return float(w @ loss(p, y) / w.sum()) if len(w) else float("nan")


def _brier(p: np.ndarray, y: np.ndarray) -> np.ndarray:
    return y * (1 - p) ** 2 + (1 - y) * p**2


def _log(p: np.ndarray, y: np.ndarray) -> np.ndarray:
    return -special.xlogy(y, p) - special.xlog1py(1 - y, -p)
