"""Probabilities beside what happened: checked once, for every score and every error that is made of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from rmjax.checks import real_numbers
from rmjax.errors import DataError


def checked_forecasts(
    predicted: ArrayLike, observed: ArrayLike, weight: ArrayLike | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Predictions, outcomes and weights of the rows that count, or an error that names the first bad row.

    Args:
        predicted: probabilities, [E].
        observed: outcomes, or shares of votes, in [0, 1], [E].
        weight: what each row weighs, [E]; 1 if absent. A row that weighs 0, or 1e-300 of the heaviest, is deleted and
            may hold anything.

    Returns:
        The three, float64, [rows that count]. Weights are shares of a power of 2 above the heaviest: only their ratios
        mean anything, and sums of shares do not overflow.

    Raises:
        DataError: the lengths differ, or a number lies outside its range.

    Example:
        >>> [part.tolist() for part in checked_forecasts([0.25, float("nan")], [1, 0], [2, 0])]
        [[0.25], [1.0], [0.5]]
    """
    p, y = real_numbers("predicted", predicted, np.float64), real_numbers("observed", observed, np.float64)
    w = np.ones_like(p) if weight is None else real_numbers("weight", weight, np.float64)
    if p.ndim != 1 or y.shape != p.shape or w.shape != p.shape:
        raise DataError(
            "every row has a prediction, an outcome and a weight",
            {"predicted": p.shape, "observed": y.shape, "weight": w.shape},
            "Give one number of each a row.",
        )
    _refuse(~(np.isfinite(w) & (w >= 0)), w, "a weight is negative or not finite", "Give 0 or more.")
    if w.size and w.max() > 0:
        w = np.ldexp(w, -np.frexp(w.max())[1])
    counts = w > 1e-300
    _refuse(
        counts & ~((p >= 0) & (p <= 1)),
        p,
        "a prediction is no probability",
        "Give numbers in [0, 1]; a margin becomes one through the logistic function.",
    )
    _refuse(
        counts & ~((y >= 0) & (y <= 1)), y, "an outcome is no share of votes", "Give 0, 1, or a share between them."
    )
    return p[counts], y[counts], w[counts]


def _refuse(bad: np.ndarray, value: np.ndarray, what: str, remedy: str) -> None:
    """Name the first bad row."""
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise DataError(what, {"row": row, "value": value[row]}, remedy)
