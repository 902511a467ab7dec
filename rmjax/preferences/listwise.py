"""The Plackett-Luce likelihood of rankings as a function to minimise, in float64."""

from __future__ import annotations

import dataclasses

import numpy as np

from rmjax.comparisons import Rankings
from rmjax.preferences.linear import Matrix, assemble, worth_dense

_BLOCK = 1 << 22  # numbers of a block of rankings x stages x alternatives


@dataclasses.dataclass(frozen=True)
class RankingTerms:
    """Orders of `items` items; the unknowns are their scores."""

    order: np.ndarray  # [R, K] int, items numbered from 0 to items - 1
    shown: np.ndarray  # [R, K] bool
    chosen: np.ndarray  # [R, K] bool, places at which a choice was made
    weight: np.ndarray  # [R]
    ranking: np.ndarray  # [R] int, the order of the data that a row is a part of
    items: int
    ridge: float = 0.0

    @property
    def names(self) -> tuple[str, ...]:
        """There are no other parameters."""
        return ()

    def value(self, x: np.ndarray) -> float:
        """Nats at the scores, with the penalty."""
        return self.derivatives(x)[0]

    def derivatives(self, x: np.ndarray) -> tuple[float, np.ndarray, Matrix]:
        """Value, gradient and Hessian: the sum over choices of the covariance of the choice."""
        value, gradient = self.ridge / 2 * float(x @ x), self.ridge * x
        at = np.arange(self.items)
        dense = worth_dense(self.order.size * self.order.shape[1], self.items)
        hessian = assemble(at, at, np.full(self.items, self.ridge), self.items, dense)
        for block, order in self._blocks():
            loss, chance = self.chances(x, block)
            pull = self.pulls(chance, block)
            weight = self.weight[block]
            value += float((weight[:, None] * loss).sum())
            gradient = gradient + np.bincount(order.ravel(), (weight[:, None] * pull).ravel(), minlength=self.items)
            diagonal = chance.sum(axis=1)
            bend = -np.einsum("rkj,rkl->rjl", chance, chance)
            bend[:, np.arange(order.shape[1]), np.arange(order.shape[1])] += diagonal
            bend *= weight[:, None, None]
            row, column = np.broadcast_arrays(order[:, :, None], order[:, None, :])
            hessian = hessian + assemble(row.ravel(), column.ravel(), bend.ravel(), self.items, dense)
        return value, gradient, hessian

    def reach(self, step: np.ndarray) -> float:
        """The most that a step moves a margin of two alternatives of one ranking."""
        moved = step[self.order]
        high = np.where(self.shown, moved, -np.inf).max(axis=1, initial=-np.inf)
        low = np.where(self.shown, moved, np.inf).min(axis=1, initial=np.inf)
        return float((high - low).max(initial=0))

    def chances(self, x: np.ndarray, block: slice) -> tuple[np.ndarray, np.ndarray]:
        """Loss of every choice [R, K], and chances of all that were left [R, K choices, K]; 0 where no choice is."""
        order, shown, chosen = self.order[block], self.shown[block], self.chosen[block]
        r = np.where(shown, x[order], -np.inf)
        place = np.arange(order.shape[1])
        left = np.where(place[:, None] <= place, r[:, None, :], -np.inf)
        top = left.max(axis=2, keepdims=True, initial=-np.inf)
        z = np.exp(left - np.where(np.isfinite(top), top, 0))
        total = z.sum(axis=2)
        loss = np.where(chosen, np.log(np.where(chosen, total, 1)) + top[:, :, 0] - np.where(chosen, r, 0), 0)
        return loss, np.where(chosen[:, :, None], z / np.where(chosen, total, 1)[:, :, None], 0)

    def pulls(self, chance: np.ndarray, block: slice) -> np.ndarray:
        """Gradient of the loss of every ranking by the score at every place, [R, K]."""
        return chance.sum(axis=1) - self.chosen[block]

    def blocks(self) -> list[slice]:
        """Rankings in blocks that fit the memory."""
        rows = max(1, _BLOCK // max(1, self.order.shape[1]) ** 2)
        return [slice(start, start + rows) for start in range(0, len(self.order), rows)]

    def _blocks(self) -> list[tuple[slice, np.ndarray]]:
        return [(block, self.order[block]) for block in self.blocks()]


def ranking_terms(rankings: Rankings, block: np.ndarray, number: np.ndarray, ridge: float) -> RankingTerms:
    """The choices that have something to say within blocks of items.

    Args:
        rankings: the orders.
        block: number of the set that an item is fitted in, [N].
        number: number of an item among those that are fitted, [N].
        ridge: the penalty.

    Returns:
        One row per ranking and block in it: where the likelihood has no maximum, a choice says which of a block is best
        and nothing of the others.
    """
    items, mask = np.asarray(rankings.items), np.asarray(rankings.mask, bool)
    place = np.arange(items.shape[1])
    stages = items.shape[1] if rankings.stages is None else np.asarray(rankings.stages)[:, None]
    own = np.where(mask, block[items], -1)
    orders, shown, chosen, ranking = [], [], [], []
    for label in np.unique(own[own >= 0]):
        here = own == label
        rows = np.flatnonzero(here.sum(axis=1) > 1)
        # To the front, in order: a block is a ranking of its own.
        moved = np.argsort(~here[rows], axis=1, kind="stable")
        there = np.take_along_axis(here[rows], moved, axis=1)
        order = np.take_along_axis(items[rows], moved, axis=1)
        early = np.take_along_axis(np.broadcast_to(place < stages, items.shape)[rows], moved, axis=1)
        rivals = there.sum(axis=1, keepdims=True) - 1 > place
        orders.append(np.where(there, number[order], 0))
        shown.append(there)
        chosen.append(there & early & rivals)
        ranking.append(rows)
    if not orders:
        empty = np.zeros((0, items.shape[1]))
        return RankingTerms(empty.astype(int), empty > 0, empty > 0, np.zeros(0), np.zeros(0, int), 0, ridge)
    fitted = int(number.max(initial=-1)) + 1
    order, there, made, row = map(np.concatenate, (orders, shown, chosen, ranking))
    return RankingTerms(order, there, made, np.asarray(rankings.weights, np.float64)[row], row, fitted, ridge)
