"""The votes that a fit reads: one row per pair, or per pair and order of presentation."""

from __future__ import annotations

import dataclasses
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np

from rmjax.comparisons import Comparisons, Ties
from rmjax.errors import DataError
from rmjax.identifiability.graph import tied_pairs
from rmjax.identifiability.tally import Tally, tally
from rmjax.losses.links import WITH_TIES

# Rows are padded to a power of two, so that a few shapes are compiled.
_SMALLEST = 64


@dataclasses.dataclass(frozen=True)
class Rows:
    """Votes on pairs of items, float64. Each pair stands once, or once per order in which it was shown."""

    first: np.ndarray  # [E] int
    second: np.ndarray  # [E] int
    votes: np.ndarray  # [E, 2 or 3], weighted votes for the first, the second and, under a link with ties, ties
    order: np.ndarray  # [E], +1 where the first was shown first, -1 where the second was, 0 where that is left open

    @cached_property
    def padded(self) -> tuple[jax.Array, jax.Array]:
        """Votes and order with rows of no votes behind: every step of a fit reads them, and none changes them."""
        size = len(self.first)
        more = max(_SMALLEST, 1 << max(size - 1, 0).bit_length()) - size
        with jax.enable_x64(True):
            return (
                jnp.asarray(np.pad(np.asarray(self.votes, np.float64), ((0, more), (0, 0)))),
                jnp.asarray(np.pad(np.asarray(self.order, np.float64), (0, more))),
            )

    def take(self, keep: np.ndarray) -> Rows:
        """Some of the rows."""
        return Rows(self.first[keep], self.second[keep], self.votes[keep], self.order[keep])


def gather(comparisons: Comparisons, link: str, ties: Ties | None, position: bool) -> Rows:
    """Add up the votes of every pair, by order of presentation where its effect is fitted.

    Args:
        comparisons: the judged pairs.
        link: a link with ties has a column for them.
        ties: what a link without ties does with them.
        position: keep apart by `order`.

    Returns:
        The rows.

    Raises:
        DataError: comparisons that are none; ties that nobody said what to do with; no `order` where it is needed.
    """
    if not position:
        rows = _columns(comparisons, link, ties)
        return dataclasses.replace(rows, order=np.zeros(len(rows.first)))
    if comparisons.order is None:
        raise DataError(
            "the comparisons do not say which answer was shown first",
            {"order": None},
            "Give `order` where the comparisons are built.",
        )
    order, weight = np.asarray(comparisons.order), np.asarray(comparisons.weight)
    unknown = (weight > 0) & ~np.isin(order, (-1, 0, 1))
    if unknown.any():
        row = int(np.flatnonzero(unknown)[0])
        raise DataError(
            "an order is 1, -1 or 0",
            {"comparison": row, "order": float(order[row])},
            "Write 1 where the first was shown first, -1 where the second was, and 0 where that is left open.",
        )
    ascending = np.asarray(comparisons.first) < np.asarray(comparisons.second)
    parts = []
    for sign in (1, -1, 0):  # whether the item of the smaller number was shown first
        here = (order * np.where(ascending, 1, -1)) == sign
        part = _columns(dataclasses.replace(comparisons, weight=np.where(here, weight, 0)), link, ties)
        parts.append(dataclasses.replace(part, order=np.full(len(part.first), float(sign))))
    return Rows(*(np.concatenate([getattr(part, f.name) for part in parts]) for f in dataclasses.fields(Rows)))


def _columns(comparisons: Comparisons, link: str, ties: Ties | None) -> Rows:
    """Wins, and ties where they are data, of every pair."""
    if link not in WITH_TIES:
        wins = tally(comparisons, ties)
        return Rows(wins.first, wins.second, np.stack([wins.wins_first, wins.wins_second], axis=1), np.zeros(0))
    wins, draws = tally(comparisons, "drop"), tied_pairs(comparisons)
    key = np.unique(np.concatenate([_key(wins), _key(draws)]))
    votes = np.zeros((len(key), 3))
    votes[np.searchsorted(key, _key(wins)), :2] = np.stack([wins.wins_first, wins.wins_second], axis=1)
    votes[np.searchsorted(key, _key(draws)), 2] = draws.wins_first + draws.wins_second
    items = max(wins.num_items, 1)
    return Rows(key // items, key % items, votes, np.zeros(0))


def _key(pairs: Tally) -> np.ndarray:
    return pairs.first.astype(np.int64) * pairs.num_items + pairs.second
