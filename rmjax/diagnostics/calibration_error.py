"""How far predicted shares are from observed ones in bins, and how far they would be were the predictions right."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import ArrayLike

from rmjax.checks import count
from rmjax.diagnostics.forecasts import checked_forecasts

_CHUNK = 4_000_000  # outcomes drawn at a time: 32 MB


@dataclasses.dataclass(frozen=True)
class CalibrationNoise:
    """The expected calibration error of a model whose every prediction is right, on a sample of this size."""

    mean: float
    median: float
    upper: float  # 1 in 20 such models shows more


def expected_calibration_error(
    predicted: ArrayLike, observed: ArrayLike, weight: ArrayLike | None = None, *, num_bins: int = 10
) -> float:
    r"""Expected calibration error with equal-width bins on [0, 1], for one orientation as given.

    $$\sum_b w_b\,|\bar p_b - \bar y_b|$$

    A prediction on the edge of two bins lies in the upper one, and 1 in the last.

    Guarantees: does not depend on the order of the rows, however many predictions are equal, nor on how often the
    whole sample stands; NaN of nothing. It is not 0 for a perfectly calibrated model: read it beside
    `calibration_noise`.

    Args:
        predicted: probabilities, [E].
        observed: outcomes or shares, [E].
        weight: what each row weighs, [E]; 1 if absent.
        num_bins: number of bins.

    Returns:
        The error.

    Raises:
        DataError: the lengths differ, a row that counts lies outside [0, 1], a weight is negative, or there is no bin.

    Example:
        >>> round(expected_calibration_error([0.25, 0.75, 0.75], [0, 1, 0]), 4)
        0.25

    Reference:
        Naeini, Cooper and Hauskrecht, Obtaining well calibrated probabilities using Bayesian binning, AAAI 2015.
    """
    p, y, w = checked_forecasts(predicted, observed, weight)
    _, member = np.unique(_bins(p, num_bins), return_inverse=True)
    gap = np.bincount(member, weights=w * (p - y))
    return float(np.abs(gap).sum() / w.sum()) if len(w) else float("nan")


def squared_calibration_error(
    predicted: ArrayLike,
    observed: ArrayLike,
    weight: ArrayLike | None = None,
    *,
    num_bins: int = 10,
    debiased: bool = True,
) -> float:
    r"""Mean squared gap in equal-width bins, with its noise taken out.

    $$\sum_b w_b \frac{\sum_{i \ne j \in b} w_i w_j\,(y_i - p_i)(y_j - p_j)}{\sum_{i \ne j \in b} w_i w_j}$$

    What a row adds by meeting itself, noise alone, is left out. With equal weights a bin's term is
    $(\bar p_b - \bar y_b)^2 - s_b^2/n_b$ with the sample variance of the residuals; where the predictions of a bin are
    equal too and the outcomes 0 or 1, $s_b^2/n_b = \bar y_b(1 - \bar y_b)/(n_b - 1)$. A bin with one row has no pair
    and is left out. The plain one, `debiased=False`, is $\sum_b w_b(\bar p_b - \bar y_b)^2$; its root is the L2
    calibration error.

    Guarantees: 0 on average for a calibrated model whose rows are independent, whatever they weigh, where the plain one
    is positive; does not depend on the order of the rows; NaN of nothing. It may be negative.

    Args:
        predicted: probabilities, [E].
        observed: outcomes or shares, each one draw, [E].
        weight: what each row weighs, [E]; 1 if absent.
        num_bins: number of bins.
        debiased: take the noise out.

    Returns:
        The mean, over the weight of the bins that have two rows or, for the plain one, any.

    Raises:
        DataError: the lengths differ, a row that counts lies outside [0, 1], a weight is negative, or there is no bin.

    Example:
        >>> p, y = [0.25] * 4 + [0.75] * 4, [0, 0, 0, 1, 1, 1, 1, 1]
        >>> squared_calibration_error(p, y), squared_calibration_error(p, y, debiased=False)
        (0.0, 0.03125)

    Reference:
        Bröcker, Estimating reliability and resolution of probability forecasts, Climate Dynamics 2012; Kumar, Liang
        and Ma, Verified uncertainty calibration, NeurIPS 2019.
    """
    p, y, w = checked_forecasts(predicted, observed, weight)
    index = _bins(p, num_bins)
    # The light rows of a bin come first, so that sums over pairs grow and no difference of large numbers is taken.
    order = np.lexsort((w, index))
    starts = np.flatnonzero(np.diff(index[order], prepend=-1))
    total, squared = [], []
    for rows in np.split(order, starts)[1:]:
        share, gap = w[rows] / w[rows[-1]], (y - p)[rows]
        if debiased and len(rows) < 2:
            continue
        total.append(w[rows].sum())
        squared.append(_squared_gap(gap, share, debiased))
    return float(np.average(squared, weights=total)) if total else float("nan")


def _squared_gap(gap: np.ndarray, share: np.ndarray, debiased: bool) -> float:
    """Square of a mean of residuals, or the mean of the products of every two."""
    if not debiased:
        return float(np.average(gap, weights=share)) ** 2
    every_two, weight = (x[1:] @ np.cumsum(x[:-1]) for x in (share * gap, share))
    return float(every_two / weight)


def calibration_noise(
    predicted: ArrayLike, weight: ArrayLike | None = None, *, num_bins: int = 10, draws: int = 1_000, seed: int = 0
) -> CalibrationNoise:
    r"""Expected calibration error that remains where every prediction is right: outcomes drawn from the predictions.

    In a bin of n rows that predict p the gap is about normal, so that the error is near
    $\sum_b w_b\sqrt{2\,p(1-p)/(\pi n_b)}$ and shrinks with the root of the sample only. Outcomes are drawn one by one,
    which is right for the few rows a bin that the normal is not.

    Guarantees: the same seed gives the same numbers; NaN of nothing; 0 where every prediction is 0 or 1.

    Args:
        predicted: probabilities, [E].
        weight: what each row weighs, [E]; 1 if absent.
        num_bins: number of equal-width bins on [0, 1].
        draws: how many samples of outcomes. The time is that of draws * E coins, in bounded memory.
        seed: of the draws.

    Returns:
        Mean, median and 95 % point.

    Raises:
        DataError: a prediction that counts is no probability, a weight is negative, or there is no bin or no draw.

    Example:
        >>> noise = calibration_noise(np.linspace(0.01, 0.99, 99))
        >>> noise.mean > 0.05, noise.median < noise.upper
        (True, True)

    Reference:
        Bröcker and Smith, Increasing the reliability of reliability diagrams, Weather and Forecasting 2007.
    """
    p, _, w = checked_forecasts(predicted, np.zeros(np.shape(predicted)), weight)
    index = _bins(p, num_bins)
    draws, seed = count("draws", draws), count("seed", seed, least=0)
    if not len(p):
        return CalibrationNoise(float("nan"), float("nan"), float("nan"))
    order = np.argsort(index, kind="stable")
    p, w, index = p[order], w[order] / w.sum(), index[order]
    starts = np.flatnonzero(np.diff(index, prepend=-1))
    rng = np.random.default_rng(seed)
    errors = [
        np.abs(np.add.reduceat(w * (p - (rng.random((size, len(p))) < p)), starts, axis=1)).sum(axis=1)
        for size in _sizes(draws, max(_CHUNK // len(p), 1))
    ]
    error = np.concatenate(errors)
    return CalibrationNoise(float(error.mean()), float(np.median(error)), float(np.quantile(error, 0.95)))


def _bins(p: np.ndarray, num_bins: int) -> np.ndarray:
    """Which of the equal-width bins on [0, 1] each prediction lies in; 1 lies in the last."""
    num_bins = count("num_bins", num_bins)
    return np.minimum((p * num_bins).astype(int), num_bins - 1)


def _sizes(total: int, largest: int) -> list[int]:
    """Parts of at most the largest size that sum to the total."""
    whole, rest = divmod(total, largest)
    return [largest] * whole + [rest] * (rest > 0)
