"""Who was compared with whom, and who beat whom: components, strong components and what reaches what."""

from __future__ import annotations

import dataclasses
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from rmjax.comparisons import Comparisons, Rankings, Ties
from rmjax.identifiability.tally import Tally, tally


@dataclasses.dataclass(frozen=True)
class WinGraph:
    """A directed graph with an edge from every item to every item that it beat at least once.

    A tie, where ties are data or halves, is an edge both ways: it bounds the difference from either side.
    """

    beats: sparse.csr_array  # [N, N], not 0 where row beat column
    prompt: np.ndarray  # [N] int32, -1 for padding

    @cached_property
    def components(self) -> np.ndarray:
        """Number of the set of compared items that an item is in, [N]; -1 for padding."""
        return self._label("weak")

    @cached_property
    def strong_components(self) -> np.ndarray:
        """Number of the set within which every item beat every other one, at least through others, [N]."""
        return self._label("strong")

    def reached(self, item: int) -> np.ndarray:
        """The item and all that it beat, at least through others, as indices."""
        return np.sort(csgraph.breadth_first_order(self.beats, item, return_predecessors=False))

    def sources(self) -> np.ndarray:
        """Strong components that lost to none outside of them and beat some, by number."""
        label = self.strong_components
        row, column = self.beats.nonzero()
        across = label[row] != label[column]
        return np.setdiff1d(label[row[across]], label[column[across]])

    def _label(self, connection: str) -> np.ndarray:
        _, label = csgraph.connected_components(self.beats, directed=True, connection=connection)
        there = self.prompt >= 0
        # Numbered anew in the order of the items, so that no number says more than which items are together.
        _, place, member = np.unique(label[there], return_index=True, return_inverse=True)
        out = np.full(len(there), -1, np.int32)
        out[there] = np.argsort(np.argsort(place, kind="stable"), kind="stable")[member]
        return out


def win_graph(comparisons: Comparisons | Rankings, *, ties: Ties | None = None, tied: bool = False) -> WinGraph:
    """The graph of wins of comparisons, or of rankings, in which every item beat all behind it.

    Args:
        comparisons: the judged pairs, or orders.
        ties: what a link that has no ties does with them.
        tied: ties are data of their own.

    Returns:
        The graph; comparisons of weight 0 are not in it.

    Raises:
        DataError: there are ties and nobody said what they are.
    """
    if isinstance(comparisons, Rankings):
        winner, loser = ranked_pairs(comparisons)
    else:
        votes = tally(comparisons, "drop" if tied else ties)
        up, down = votes.wins_first > 0, votes.wins_second > 0
        winner = np.concatenate([votes.first[up], votes.second[down]])
        loser = np.concatenate([votes.second[up], votes.first[down]])
        if tied:
            draws = tied_pairs(comparisons)
            winner = np.concatenate([winner, draws.first, draws.second])
            loser = np.concatenate([loser, draws.second, draws.first])
    prompt = np.asarray(comparisons.prompt)
    items = len(prompt)
    beats = sparse.coo_array((np.ones(len(winner), np.int8), (winner, loser)), shape=(items, items)).tocsr()
    return WinGraph(beats, prompt)


def tied_pairs(comparisons: Comparisons) -> Tally:
    """The ties of every pair, added up in `wins_first`."""
    none = np.zeros_like(np.asarray(comparisons.ties))
    return tally(dataclasses.replace(comparisons, wins_first=comparisons.ties, wins_second=none, ties=none))


def ranked_pairs(rankings: Rankings) -> tuple[np.ndarray, np.ndarray]:
    """Winner and loser of every pair of neighbours in an order, and of the last choice over all behind it."""
    items, mask = np.asarray(rankings.items), np.asarray(rankings.mask, bool)
    place = np.arange(items.shape[1])
    mask = mask & (np.asarray(rankings.weights) > 0)[:, None]
    chosen = mask if rankings.stages is None else mask & (place < np.asarray(rankings.stages)[:, None])
    stages = chosen.sum(axis=1)
    filled = np.argsort(~mask, axis=1, kind="stable")  # places that are filled come first
    items, mask = (np.take_along_axis(x, filled, axis=1) for x in (items, mask))
    # Of those chosen, each beat the next; all of the rest lost to the one chosen last.
    row, behind = np.nonzero(mask & (place > 0) & (stages > 0)[:, None])
    ahead = np.minimum(behind - 1, stages[row] - 1)
    return items[row, ahead], items[row, behind]
