"""How numbers are written on the page and in the terminal: one way for both."""

from __future__ import annotations

import dataclasses
import math
from typing import Literal

from rmjax.diagnostics import Estimate

Kind = Literal["share", "points", "number"]
MISSING = "–"


@dataclasses.dataclass(frozen=True)
class Row:
    """One line of a table: a measure in plain words, its estimate, and how to write it."""

    label: str
    estimate: Estimate
    kind: Kind = "share"
    note: str = ""

    @property
    def value(self) -> str:
        """The value."""
        return written(self.estimate.value, self.kind)

    @property
    def interval(self) -> str:
        """The interval, or why there is none."""
        return interval(self.estimate, self.kind)

    @property
    def count(self) -> str:
        """The denominator."""
        return counted(self.estimate.count)


def written(value: float, kind: Kind = "number", *, unit: bool = True) -> str:
    """A number in words: a share in per cent, a difference of shares in signed points, else three decimals.

    Args:
        value: the number; NaN becomes a dash.
        kind: what it is.
        unit: whether to write the unit behind it.

    Returns:
        Text with a true minus sign.

    Example:
        >>> written(0.7904, "share"), written(-0.0123, "points"), written(float("nan"))
        ('79.0 %', '−1.2 points', '–')
    """
    if not math.isfinite(value):
        return MISSING
    if kind == "share":
        return f"{100 * value:.1f}" + (" %" if unit else "")
    text = f"{100 * value:+.1f}" if kind == "points" else f"{value:.3f}"
    return text.replace("-", "−") + (" points" if unit and kind == "points" else "")


def interval(estimate: Estimate, kind: Kind = "number") -> str:
    """Both bounds, or why there are none.

    Args:
        estimate: the estimate.
        kind: what it is.

    Returns:
        Text.

    Example:
        >>> from rmjax.diagnostics import clustered_proportion
        >>> interval(clustered_proportion([6, 8, 7], [10, 10, 10], cluster=[0, 1, 2]), "share")
        '43.2 to 87.8 %'
        >>> interval(clustered_proportion([6], [10], cluster=[0]), "share")
        'no interval: 1 cluster, and 2 are needed'
    """
    if not estimate.has_interval:
        return estimate.method
    return f"{written(estimate.lower, kind, unit=False)} to {written(estimate.upper, kind)}"


def counted(count: float) -> str:
    """A count with thousands separated; fractions of a vote keep one decimal.

    Args:
        count: the count.

    Returns:
        Text.

    Example:
        >>> counted(16927.0), counted(12.5)
        ('16,927', '12.5')
    """
    # Weights are float32, so 12 prompts may add up to 11.9999995.
    return f"{count:,.0f}" if abs(count - round(count)) <= 1e-5 * abs(count) else f"{count:,.1f}"


def plural(count: float, one: str, many: str = "") -> str:
    """A count with its noun.

    Args:
        count: how many.
        one: the noun for one.
        many: the noun for more; `one` with an s if absent.

    Returns:
        Text.

    Example:
        >>> plural(1, "debate"), plural(16, "debate")
        ('1 debate', '16 debates')
    """
    return f"{counted(count)} {one if count == 1 else many or one + 's'}"
