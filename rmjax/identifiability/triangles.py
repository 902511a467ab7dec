"""Every three items of which all pairs were judged, without a loop over items."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

# A table of all pairs up to this many entries looks a pair up at once; beyond it, by bisection.
_TABLE = 1 << 22
_BLOCK = 1 << 15  # what the caches hold


def triangle_blocks(
    first: np.ndarray, second: np.ndarray, num_items: int
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    r"""Rows of the pairs (i, j), (j, k), (i, k) of every triple i < j < k whose pairs are all there, in blocks.

    Pairs point from the item with fewer neighbours to the one with more. No item then has more than $\sqrt{2P}$ pairs
    that start from it, and work is at most of the order of $P^{3/2}$, also where one item met everybody.

    Guarantees: every triple comes once.

    Args:
        first: item of every pair, [P], with first < second.
        second: the other item; pairs are sorted by (first, second), and none is there twice.
        num_items: N.

    Yields:
        Three vectors of rows.

    Example:
        >>> square = np.array([0, 0, 0, 1, 2]), np.array([1, 2, 3, 2, 3])
        >>> [[rows.tolist() for rows in block] for block in triangle_blocks(*square, 4)]
        [[[0, 1], [3, 4], [1, 2]]]

    Reference:
        Chiba and Nishizeki, Arboricity and subgraph listing algorithms, SIAM Journal on Computing 1985.
    """
    degree = np.bincount(first, minlength=num_items) + np.bincount(second, minlength=num_items)
    rank = np.empty(num_items, np.int64)
    rank[np.argsort(degree, kind="stable")] = np.arange(num_items)
    low, high = np.minimum(rank[first], rank[second]), np.maximum(rank[first], rank[second])
    pair = np.lexsort((high, low))
    low, high = low[pair], high[pair]
    starts = np.searchsorted(low, np.arange(num_items + 1))
    onwards = np.diff(starts)[high]  # pairs that start where this one ends
    total = np.concatenate([[0], np.cumsum(onwards)])
    key = low * num_items + high
    table = None
    if num_items**2 <= _TABLE:
        table = np.full(num_items**2, -1, np.int32)
        table[key] = np.arange(len(key))
    begin = 0
    while begin < len(key):
        end = max(begin + 1, int(np.searchsorted(total, total[begin] + _BLOCK, side="right")) - 1)
        number = onwards[begin:end]
        one = np.repeat(np.arange(begin, end), number)
        two = np.arange(total[begin], total[end]) + np.repeat(starts[high[begin:end]] - total[begin:end], number)
        wanted = low[one] * num_items + high[two]
        if table is not None:
            three = table[wanted]
            closed = three >= 0
        else:
            three = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
            closed = key[three] == wanted
        # Rows are sorted by (first, second), so that (i, j) < (i, k) < (j, k).
        rows = pair[np.stack([one[closed], two[closed], three[closed]])]
        least, most = rows.min(axis=0), rows.max(axis=0)
        yield least, most, rows.sum(axis=0) - least - most
        begin = end
