"""Agreement beyond chance: the coefficients of Cohen and of Fleiss, with errors that count items."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from rmjax.errors import DataError, IdentifiabilityError, SampleSizeError


@dataclasses.dataclass(frozen=True)
class Coefficient:
    """Agreement beyond chance: 1 where all agree, 0 where they agree as often as by chance."""

    value: float
    standard_error: float  # NaN where the items do not tell
    lower: float
    upper: float
    observed: float  # agreement that was found
    expected: float  # agreement by chance, of the same shares of categories
    items: int  # items with two ratings or more
    method: str  # how the error was found, or why there is none
    confidence: float  # of the interval


def cohen_kappa(table: ArrayLike, *, confidence: float = 0.95) -> Coefficient:
    r"""Agreement of two raters beyond chance, from their cross-table.

    $$\kappa = \frac{p_o - p_e}{1 - p_e}, \qquad p_o = \sum_c p_{cc}, \qquad p_e = \sum_c p_{c\cdot}\, p_{\cdot c}$$

    The standard error is that of large samples, and the interval is normal.

    Guarantees: exchanging the raters or renaming the categories changes nothing; at most 1, and 1 only on the diagonal;
    twice as many of everything leaves the value and divides the error by the root of 2.

    Args:
        table: items to which the first rater gave the row and the second the column, [categories, categories].
        confidence: of the interval.

    Returns:
        Cohen's kappa.

    Raises:
        DataError: the table is not square, or a count is negative or not whole.
        SampleSizeError: the table is empty.
        IdentifiabilityError: both raters used one category alone, so that chance agrees always.

    Example:
        >>> kappa = cohen_kappa([[20, 5], [10, 15]])
        >>> print(f"{kappa.value:.4f} +- {kappa.standard_error:.4f}")
        0.4000 +- 0.1270

    Reference:
        Cohen, A coefficient of agreement for nominal scales, 1960; its error: Fleiss, Cohen and Everitt, Large sample
        standard errors of kappa and weighted kappa, Psychological Bulletin 1969.
    """
    counts = _whole(table, "a cross-table")
    if counts.shape[0] != counts.shape[1]:
        raise DataError(
            "a cross-table is square", {"shape": counts.shape}, "Give every category one row and one column."
        )
    total = counts.sum()
    if total == 0:
        raise SampleSizeError("the cross-table is empty", {"items": 0}, "Let both raters rate the same items.")
    p = counts / total
    row, column = p.sum(axis=1), p.sum(axis=0)
    observed, expected = float(np.trace(p)), float(row @ column)
    refuse_one_category(expected, total)
    # By the delta method: the slope of kappa in every cell's share.
    slope = np.eye(len(p)) * (1 - expected) - (1 - observed) * (row[None, :] + column[:, None])
    slope = slope / (1 - expected) ** 2
    variance = float((p * slope**2).sum() - (p * slope).sum() ** 2) / total
    return _coefficient(observed, expected, max(variance, 0.0), int(total), confidence)


def fleiss_kappa(counts: ArrayLike, *, confidence: float = 0.95) -> Coefficient:
    r"""Agreement beyond chance of equally many ratings on every item.

    $$\kappa = \frac{\bar P - \bar P_e}{1 - \bar P_e}, \qquad
      \bar P = \frac{1}{I}\sum_i \frac{\sum_c n_{ic}(n_{ic} - 1)}{n(n - 1)}, \qquad
      \bar P_e = \sum_c p_c^2, \quad p_c = \frac{1}{In}\sum_i n_{ic}$$

    The standard error is that of items drawn anew, so it allows for ratings of one item that hang together.

    Guarantees: renaming categories or items changes nothing; at most 1, and 1 only where every item is unanimous; twice
    as many of all items leaves the value.

    Args:
        counts: ratings of every item in every category, [items, categories].
        confidence: of the interval.

    Returns:
        Fleiss' kappa.

    Raises:
        DataError: items have different numbers of ratings, or a count is negative or not whole.
        SampleSizeError: there is no item, or an item has fewer than two ratings.
        IdentifiabilityError: all ratings are of one category, so that chance agrees always.

    Example:
        >>> f"{fleiss_kappa([[3, 0], [0, 3], [2, 1]]).value:.4f}"
        '0.5500'

    Reference:
        Fleiss, Measuring nominal scale agreement among many raters, Psychological Bulletin 1971. Its own error is that
        of no agreement at all, and is not used.
    """
    n = _whole(counts, "counts of ratings")
    number = n.sum(axis=1)
    least = number.min(initial=np.inf)
    if not 2 <= least < np.inf:
        raise SampleSizeError(
            "agreement needs items with two ratings each",
            {"items": len(n), "fewest_ratings": least if len(n) else 0},
            "Leave out items with one rating, or use krippendorff_alpha.",
        )
    uneven = number != number[0]
    if uneven.any():
        i = int(np.flatnonzero(uneven)[0])
        raise DataError(
            "Fleiss' kappa is of equally many ratings on every item",
            {"item": i, "ratings": int(number[i]), "item_0": int(number[0])},
            "Use krippendorff_alpha, which allows for missing ratings.",
        )
    share = n / number[0]
    by_item = (n * (n - 1)).sum(axis=1) / (number[0] * (number[0] - 1))
    category = share.mean(axis=0)
    observed, expected = float(by_item.mean()), float(category @ category)
    refuse_one_category(expected, n.sum())
    chance = 2 * share @ category  # what an item adds to the expected agreement, to first order
    influence = (by_item - observed) / (1 - expected) - (1 - observed) * (chance - 2 * expected) / (1 - expected) ** 2
    items = len(n)
    variance = float((influence**2).sum()) / (items * (items - 1)) if items > 1 else np.nan
    return _coefficient(observed, expected, variance, items, confidence)


def _coefficient(observed: float, expected: float, variance: float, items: int, confidence: float) -> Coefficient:
    """Kappa with a normal interval; no error where items do not differ."""
    told = variance > 1e-24
    error = float(np.sqrt(variance)) if told else float("nan")
    reach = float(special.ndtri((1 + checked_confidence(confidence)) / 2)) * error
    value = (observed - expected) / (1 - expected)
    return Coefficient(
        value=value,
        standard_error=error,
        lower=value - reach,
        upper=value + reach,
        observed=observed,
        expected=expected,
        items=items,
        method="normal, delta method over items" if told else "no interval: the items do not differ",
        confidence=confidence,
    )


def checked_confidence(confidence: float) -> float:
    """A confidence that is one."""
    if not 0 < confidence < 1:
        raise DataError("a confidence lies between 0 and 1", {"confidence": confidence}, "Choose 0.95, say.")
    return confidence


def refuse_one_category(expected: float, ratings: float) -> None:
    """Refuse what has no agreement beyond chance, since chance agrees always."""
    if expected >= 1 - 1e-12:
        raise IdentifiabilityError(
            "all ratings are equal, and chance agrees as often: agreement beyond it is 0 of 0",
            {"ratings": int(ratings), "expected": 1},
            "Report the share that agrees, or rate items that differ.",
        )


def _whole(counts: ArrayLike, name: str) -> np.ndarray:
    """A table of counts in float64, checked."""
    try:
        n = np.asarray(counts, np.float64)
    except (ValueError, TypeError):  # words, or rows of different lengths
        n = np.zeros((0, 0))
    if n.ndim != 2 or n.shape[1] < 1:
        raise DataError(f"{name} are rows and columns of numbers", {"shape": n.shape}, "Give one row an item.")
    wrong = ~((n >= 0) & (n == np.floor(n)) & np.isfinite(n))
    if wrong.any():
        row, column = (int(x) for x in np.argwhere(wrong)[0])
        raise DataError(
            f"{name} are whole and not negative",
            {"row": row, "column": column, "count": n[row, column]},
            "Count ratings; a share of one is none.",
        )
    return n
