"""Krippendorff's alpha: agreement beyond chance of ratings with gaps, on a scale of any level."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from rmjax.checks import one_of
from rmjax.errors import DataError, SampleSizeError
from rmjax.preferences.agreement import Coefficient, checked_confidence, refuse_one_category
from rmjax.preferences.resampling import draws, pairs_within

Level = Literal["nominal", "ordinal", "interval", "ratio"]


def krippendorff_alpha(
    ratings: ArrayLike, level: Level = "nominal", *, confidence: float = 0.95, resamples: int = 1000, seed: int = 0
) -> Coefficient:
    r"""Agreement beyond chance of ratings with gaps, on a scale of any level.

    With coincidences $o_{ck} = \sum_u \#\{(c, k) \text{ of two raters on } u\} / (m_u - 1)$ of the items with
    $m_u \ge 2$ ratings, and $n_c = \sum_k o_{ck}$, $n = \sum_c n_c$,

    $$\alpha = 1 - \frac{D_o}{D_e}, \qquad D_o = \frac1n \sum_{c,k} o_{ck}\,\delta^2_{ck}, \qquad
      D_e = \frac{1}{n(n-1)} \sum_{c,k} n_c n_k\, \delta^2_{ck}$$

    where $\delta^2$ is $[c \ne k]$ (nominal), $(\sum_{g=c}^{k} n_g - (n_c + n_k)/2)^2$ (ordinal), $(c - k)^2$
    (interval) or $((c - k)/(c + k))^2$ (ratio). The error and the interval (of percentiles) are of items drawn anew.

    Guarantees: order of items and raters does not count; an item with one rating changes nothing; "ordinal" sees the
    order of ratings alone, "interval" is blind to a + bx and "ratio" to a unit; 1 only where every item is unanimous.

    Args:
        ratings: a number per item and rater, NaN or None where there is none, [items, raters].
        level: what the numbers mean.
        confidence: of the interval.
        resamples: how often items are drawn anew; those in which all ratings are equal have no value and are left out.
        seed: of the draws.

    Returns:
        Krippendorff's alpha. `observed` and `expected` are one minus D_o and D_e, on the scale of the level.

    Raises:
        DataError: a rating is infinite, or negative on a ratio scale, or the array has another shape.
        SampleSizeError: no item has two ratings.
        IdentifiabilityError: all ratings are equal, so that chance agrees always.

    Example:
        >>> f"{krippendorff_alpha([[1, 1, None], [2, 2, 3], [3, 3, 3]], 'ordinal').value:.4f}"
        '0.7812'

    Reference:
        Krippendorff, Computing Krippendorff's alpha-reliability, 2011.
    """
    one_of("level", level, get_args(Level))
    coincidences, values, items = _coincidences(_ratings(ratings, level))
    size = len(values)
    if size == 1:
        refuse_one_category(1.0, items)

    def disagreement(drawn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """D_o and D_e of every draw of items, [draws, items] -> [draws] each; NaN where all ratings are equal."""
        o = (drawn @ coincidences).reshape(-1, size, size)
        category = o.sum(axis=2)
        total = category.sum(axis=1)
        delta = _differences(values, category, level)
        found = np.einsum("bij,bij->b", o, delta) / total
        chance = np.einsum("bi,bij,bj->b", category, delta, category) / (total * (total - 1))
        return found, np.where(chance > 0, chance, np.nan)

    (found,), (chance,) = disagreement(np.ones((1, items)))
    value = 1 - float(found / chance)
    alphas = np.concatenate([1 - np.divide(*disagreement(d)) for d in draws(items, resamples, seed, width=size**2)])
    alphas = alphas[np.isfinite(alphas)]
    told = len(alphas) > 1 and np.ptp(alphas) > 0
    tail = (1 - checked_confidence(confidence)) / 2
    lower, upper = np.quantile(alphas, [tail, 1 - tail]) if told else (np.nan, np.nan)
    return Coefficient(
        value=value,
        standard_error=float(np.std(alphas, ddof=1)) if told else float("nan"),
        lower=float(lower),
        upper=float(upper),
        observed=1 - float(found),
        expected=1 - float(chance),
        items=items,
        method=f"percentiles of {len(alphas)} draws of items" if told else "no interval: the items do not differ",
        confidence=confidence,
    )


def _coincidences(ratings: np.ndarray) -> tuple[sparse.csr_array, np.ndarray, int]:
    """Pairs of ratings of every item over m - 1, sparse [items, values * values]; the values in order; items."""
    number = (~np.isnan(ratings)).sum(axis=1)
    kept = ratings[number >= 2]
    if len(kept) == 0:
        raise SampleSizeError(
            "no item has two ratings, so that none can agree",
            {"items": len(ratings), "most_ratings": int(number.max(initial=0))},
            "Let two or more raters rate the same items.",
        )
    values = np.unique(kept[~np.isnan(kept)])
    item, rater = np.nonzero(~np.isnan(kept))
    size = len(values)
    # How often an item has a value, for those that it has: [entries], sorted by item.
    held, times = np.unique(item * size + np.searchsorted(values, kept[item, rater]), return_counts=True)
    item, value = held // size, held % size
    first, second = pairs_within(item)
    one, other = (np.concatenate([x, y, np.arange(len(held))]) for x, y in ((first, second), (second, first)))
    pairs = times[one] * (times[other] - (one == other)) / (number[number >= 2][item[one]] - 1)
    shape = (len(kept), size**2)
    return sparse.csr_array((pairs, (item[one], value[one] * size + value[other])), shape=shape), values, len(kept)


def _differences(values: np.ndarray, category: np.ndarray, level: Level) -> np.ndarray:
    """Squared differences of every two values, [draws, values, values]; ordinal ones hang on the draw."""
    if level == "ordinal":
        middle = (np.cumsum(category, axis=1) - category / 2) / category.sum(axis=1, keepdims=True)
        return (middle[:, :, None] - middle[:, None, :]) ** 2
    gap = values[:, None] - values[None, :]
    if level == "nominal":
        delta = (gap != 0).astype(np.float64)
    elif level == "interval":
        delta = (gap / np.ptp(values)) ** 2
    else:
        total = values[:, None] + values[None, :]
        delta = np.divide(gap, total, out=np.zeros_like(gap), where=total > 0) ** 2
    return np.broadcast_to(delta, (len(category), *delta.shape))


def _ratings(ratings: ArrayLike, level: Level) -> np.ndarray:
    """Ratings in float64 with NaN for gaps, checked."""
    try:
        x = np.asarray(ratings, np.float64)
    except (ValueError, TypeError):  # words, or rows of different lengths
        x = np.zeros(0)
    if x.ndim != 2:
        raise DataError(
            "ratings are numbers, [items, raters]",
            {"shape": x.shape},
            "Number the categories; NaN where there is none.",
        )
    wrong = np.isinf(x) | ((x < 0) & (level == "ratio"))
    if wrong.any():
        item, rater = (int(i) for i in np.argwhere(wrong)[0])
        raise DataError(
            "a rating is infinite, or negative on a ratio scale",
            {"item": item, "rater": rater, "rating": x[item, rater]},
            "Mend the rating, or say NaN where there is none.",
        )
    return x
