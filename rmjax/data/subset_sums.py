"""Fill a row: which of some integer sizes sum closest to a capacity from below."""

from __future__ import annotations

from collections.abc import Sequence


class SubsetSums:
    """All sums that subsets of `sizes` reach, up to a capacity.

    The sums reached with the first k items are the bits of one integer, so an item costs one shift and one or.
    Exact, which greedy filling is not.

    Args:
        sizes: positive integers.
        capacity: the largest sum of interest.

    Example:
        >>> sums = SubsetSums([5, 4, 3], capacity=8)
        >>> sums.best(8), sums.members(8), sums.best(6)
        (8, [0, 2], 5)
    """

    def __init__(self, sizes: Sequence[int], capacity: int):
        self._sizes = sizes
        mask = (1 << (capacity + 1)) - 1
        reached = 1
        self._reached = [reached]
        for size in sizes:
            reached |= (reached << size) & mask
            self._reached.append(reached)

    def best(self, capacity: int) -> int:
        """The largest sum that is at most `capacity`."""
        return (self._reached[-1] & ((1 << (capacity + 1)) - 1)).bit_length() - 1

    def members(self, total: int) -> list[int]:
        """Indices of a subset with that sum, in order; later items only where earlier ones do not do."""
        chosen = []
        for k in range(len(self._sizes), 0, -1):
            if not self._reached[k - 1] >> total & 1:
                chosen.append(k - 1)
                total -= self._sizes[k - 1]
        return chosen[::-1]
