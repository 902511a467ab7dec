"""Votes that count, on the host in float64: what estimation reads of comparisons."""

from __future__ import annotations

import numpy as np

from rmjax.comparisons import Comparisons, Ties, check_ties
from rmjax.errors import DataError


def counted_votes(
    comparisons: Comparisons, ties: Ties | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Ends, weighted votes for either side, and position of every comparison that counts a vote."""
    check_ties(comparisons, ties)
    weight = np.asarray(comparisons.weight, np.float64)
    half = np.asarray(comparisons.ties, np.float64) / 2 if ties == "half" else 0
    a, b = (weight * (np.asarray(x, np.float64) + half) for x in (comparisons.wins_first, comparisons.wins_second))
    position = np.flatnonzero(a + b > 0)
    if not position.size:
        raise DataError(
            "no comparison counts a vote", {"comparisons": len(a)}, "Give comparisons with votes and weight."
        )
    first, second = (np.asarray(x)[position] for x in (comparisons.first, comparisons.second))
    return first, second, a[position], b[position], position


def numbers(name: str, value: object) -> np.ndarray:
    """An array in float64; words, and rows of different lengths, are refused."""
    try:
        return np.asarray(value, np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} holds numbers", {"problem": str(error)}, "Give an array of numbers.") from error
