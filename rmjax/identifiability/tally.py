"""The votes of every pair of items added up: what the graph functions read."""

from __future__ import annotations

import dataclasses

import numpy as np
from scipy import sparse

from rmjax.comparisons import Comparisons, Ties, check_ties
from rmjax.errors import DataError

# A table of all pairs is used where it is no larger than this many rows of comparisons would be.
_TABLE = 1 << 22
_BLOCK = 1 << 20


@dataclasses.dataclass(frozen=True)
class Tally:
    """One row per unordered pair of items that has votes, in the order of (first, second).

    Example:
        >>> votes = Tally(np.array([0]), np.array([1]), np.array([3.0]), np.array([1.0]), num_items=2)
        >>> votes.votes, votes.share
        (array([4.]), array([0.75]))
    """

    first: np.ndarray  # [P] int32, the item with the smaller index
    second: np.ndarray  # [P] int32
    wins_first: np.ndarray  # [P] float64, weighted votes for the first
    wins_second: np.ndarray  # [P] float64
    num_items: int  # N, padded items included

    @property
    def votes(self) -> np.ndarray:
        """Votes of every pair, [P]."""
        return self.wins_first + self.wins_second

    @property
    def share(self) -> np.ndarray:
        """Share of the votes that went to the first, [P]."""
        return self.wins_first / self.votes


def tally(comparisons: Comparisons, ties: Ties | None = None) -> Tally:
    r"""Votes of every unordered pair of items, whatever number of comparisons they came in.

    $$W_{ij} = \sum_{e:\,first=i,\,second=j} w_e a_e + \sum_{e:\,first=j,\,second=i} w_e b_e$$

    Guarantees: the order of the comparisons and which side of one came first change nothing but the rounding of sums;
    weight 0 is deletion, also of votes that are infinite or not a number; a pair without votes that count is no row;
    whole votes are added exactly.

    Args:
        comparisons: the judged pairs.
        ties: "half" counts a tie as half a vote for either side, "drop" leaves it out; unset refuses ties.

    Returns:
        Rows with `first` < `second`, sorted by both, no pair twice.

    Raises:
        DataError: names the comparison whose index is out of range, whose vote or weight is negative or not finite,
            that compares an item with itself or joins two prompts; ties are there and `ties` is unset, or it is no
            policy.

    Example:
        >>> games = Comparisons.from_pairs([0, 1, 1, 2], [1, 0, 0, 1], prompt=[0, 0, 0])
        >>> votes = tally(games)
        >>> votes.first, votes.second, votes.wins_first, votes.wins_second
        (array([0, 1], dtype=int32), array([1, 2], dtype=int32), array([1., 0.]), array([2., 1.]))
    """
    check_ties(comparisons, ties)
    first, second = np.asarray(comparisons.first), np.asarray(comparisons.second)
    prompt = np.asarray(comparisons.prompt)
    items = prompt.shape[0]
    _check_indices(first, second, items)
    table = items * items <= max(_TABLE, first.shape[0])
    low, high, wins_low, wins_high = (_table if table else _sorted)(comparisons, ties, items)
    voted = wins_low + wins_high > 0
    low, high, wins_low, wins_high = low[voted], high[voted], wins_low[voted], wins_high[voted]
    _check_pairs(low, high, prompt, comparisons)
    kept = prompt[low] >= 0
    return Tally(
        low[kept].astype(np.int32), high[kept].astype(np.int32), wins_low[kept], wins_high[kept], num_items=items
    )


def _table(
    comparisons: Comparisons, ties: Ties | None, items: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Pairs and their votes by counting into a table of all pairs."""
    first, second = np.asarray(comparisons.first), np.asarray(comparisons.second)
    wins = np.zeros((items, items))
    # In blocks, so that ten million comparisons are never copied to float64 at once.
    for rows in _blocks(len(first), max(_BLOCK, items * items)):
        key = np.multiply(first[rows], items, dtype=np.int64)
        key += second[rows]
        if _unit(comparisons, rows):
            wins += np.bincount(key, minlength=items * items).reshape(items, items)
            continue
        won, lost = _votes(comparisons, ties, rows)
        for votes, orient in ((won, wins), (lost, wins.T)):
            if votes.any():
                orient += np.bincount(key, votes, minlength=items * items).reshape(items, items)
    low, high = np.nonzero(np.triu((wins != 0) | (wins.T != 0)))
    return low, high, wins[low, high], wins[high, low]


def _sorted(
    comparisons: Comparisons, ties: Ties | None, items: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Pairs and their votes by sorting, where a table of all pairs would be mostly empty."""
    first, second = np.asarray(comparisons.first), np.asarray(comparisons.second)
    won, lost = _votes(comparisons, ties, slice(None))
    turned = first > second
    place = np.minimum(first, second), np.maximum(first, second)
    # Both matrices have the same places, so that their entries line up.
    low, high = (
        sparse.coo_array((votes, place), shape=(items, items)).tocsr()
        for votes in (np.where(turned, lost, won), np.where(turned, won, lost))
    )
    row = np.repeat(np.arange(items), np.diff(low.indptr))
    return row, low.indices, low.data, high.data


def _blocks(length: int, size: int) -> list[slice]:
    return [slice(start, start + size) for start in range(0, length, size)]


def _unit(comparisons: Comparisons, rows: slice) -> bool:
    """Whether each of these comparisons is one vote for the first: then counting needs no weights."""
    return all(
        (np.asarray(getattr(comparisons, name))[rows] == value).all()
        for name, value in (("weight", 1), ("wins_second", 0), ("ties", 0), ("wins_first", 1))
    )


def _votes(comparisons: Comparisons, ties: Ties | None, rows: slice) -> tuple[np.ndarray, np.ndarray]:
    """Weighted votes for either side in float64, checked."""
    weight, won, lost, tied = (
        np.asarray(getattr(comparisons, name), np.float64)[rows]
        for name in ("weight", "wins_first", "wins_second", "ties")
    )
    used = weight != 0
    if ties == "half":
        won, lost = won + tied / 2, lost + tied / 2
    with np.errstate(invalid="ignore"):  # no votes of infinite weight are refused below
        won, lost = (np.multiply(weight, votes, out=np.zeros_like(weight), where=used) for votes in (won, lost))
    good = (won >= 0) & (lost >= 0) & np.isfinite(won) & np.isfinite(lost)
    wrong = ~good | ((tied < 0) & used)
    if wrong.any():
        e = int(np.flatnonzero(wrong)[0])
        raise DataError(
            "votes and weights are finite and not negative",
            {
                "comparison": e + (rows.start or 0),
                "wins_first": float(np.asarray(comparisons.wins_first)[rows][e]),
                "wins_second": float(np.asarray(comparisons.wins_second)[rows][e]),
                "ties": float(tied[e]),
                "weight": float(weight[e]),
            },
            "Mend the count or drop the row.",
        )
    return won, lost


def _check_indices(first: np.ndarray, second: np.ndarray, items: int) -> None:
    """Indices are in range; a negative one would read some other item."""
    if first.size and not (min(first.min(), second.min()) >= 0 and max(first.max(), second.max()) < items):
        e = int(np.flatnonzero((np.minimum(first, second) < 0) | (np.maximum(first, second) >= items))[0])
        raise DataError(
            "a response index is out of range",
            {"comparison": e, "first": int(first[e]), "second": int(second[e])},
            f"Indices run from 0 to {items - 1}.",
        )


def _check_pairs(low: np.ndarray, high: np.ndarray, prompt: np.ndarray, comparisons: Comparisons) -> None:
    """A pair with votes is two items of one prompt."""
    for wrong, what, remedy in (
        (low == high, "a response is compared with itself", "Drop the comparison: it says nothing."),
        (prompt[low] != prompt[high], "a comparison joins two prompts", "Compare answers to the same prompt."),
    ):
        if wrong.any():
            pair = int(low[wrong][0]), int(high[wrong][0])
            sides = np.sort([comparisons.first, comparisons.second], axis=0)
            e = int(np.flatnonzero((sides[0] == pair[0]) & (sides[1] == pair[1]) & (comparisons.weight != 0))[0])
            raise DataError(what, {"comparison": e, "first": pair[0], "second": pair[1]}, remedy)
