"""How far each independent part of the data moves an estimate: standard errors for where the model is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy import sparse

from rmjax.errors import DataError
from rmjax.losses.links import WITH_TIES
from rmjax.preferences.listwise import RankingTerms
from rmjax.preferences.pairwise import PairTerms, row_terms
from rmjax.preferences.rows import Rows, gather

if TYPE_CHECKING:
    from rmjax.preferences.estimate import Solution

Errors = Literal["model", "sandwich", "cluster"]


def influence(solution: Solution, solved: np.ndarray, errors: Errors) -> np.ndarray:
    r"""Rows whose outer product, summed, is the sandwich $H^{-1} (\sum_u s_u s_u^\top) H^{-1}$ in some directions.

    $s_u$ is the gradient of an independent unit: a vote, a ranking, or all of a cluster.

    Args:
        solution: of a fit.
        solved: inverse information times the directions, [U, K].
        errors: "sandwich" or "cluster".

    Returns:
        One row per unit, [units, K].

    Raises:
        DataError: there are no clusters.
    """
    terms, data, x = solution.terms, solution.data, solution.optimum.x
    if errors == "cluster" and data.cluster is None:
        raise DataError(
            "the data have no clusters",
            {"cluster": None},
            'Give `cluster` where they are built, or choose errors="sandwich".',
        )
    if isinstance(terms, RankingTerms):
        if errors == "sandwich":
            return _of_rankings(terms, x, solved, np.sqrt(terms.weight))
        return _summed(_of_rankings(terms, x, solved, terms.weight), np.asarray(data.cluster)[terms.ranking])
    if errors == "sandwich":
        return _of_votes(terms, solution, solved)
    return _of_clusters(terms, solution, solved)


def _of_votes(terms: PairTerms, solution: Solution, solved: np.ndarray) -> np.ndarray:
    """One row per pair and kind of vote: so many equal votes count as the root of their number."""
    rows, x = terms.rows, solution.optimum.x
    number = list(rows.votes.T)
    slopes = _slopes(terms, x, rows)
    moved = []
    if solution.ties == "half":  # a tie is one vote, that pulls half to either side, and not two of half a weight
        slopes.append((slopes[0] + slopes[1]) / 2)
        ties = _ties(terms, solution)
        number = [number[0] - ties / 2, number[1] - ties / 2, ties]
    for votes, slope in zip(number, slopes, strict=True):
        moved.append(np.sqrt(np.maximum(votes, 0))[:, None] * _moved(rows, slope, solved, terms.items))
    return np.concatenate(moved)


def _ties(terms: PairTerms, solution: Solution) -> np.ndarray:
    """How many votes of every row are ties, [E]."""
    apart = gather(solution.data, "davidson", None, terms.position)  # type: ignore[arg-type]
    first, second = (solution.number[side] for side in (apart.first, apart.second))

    def key(first: np.ndarray, second: np.ndarray, order: np.ndarray) -> np.ndarray:
        return (first.astype(np.int64) * terms.items + second) * 3 + order.astype(np.int64) + 1

    own, other = key(terms.rows.first, terms.rows.second, terms.rows.order), key(first, second, apart.order)
    rank = np.argsort(other)
    at = rank[np.searchsorted(other, own, sorter=rank)]  # every row has votes, and stands there too
    return apart.votes[at, 2]


def _of_clusters(terms: PairTerms, solution: Solution, solved: np.ndarray) -> np.ndarray:
    """One row per cluster of comparisons."""
    rows, cluster = _single(solution, terms)
    total = np.zeros((len(cluster), solved.shape[1]))
    for kind, slope in enumerate(_slopes(terms, solution.optimum.x, rows)):
        total += rows.votes[:, kind, None] * _moved(rows, slope, solved, terms.items)
    return _summed(total, cluster)


def _summed(moved: np.ndarray, cluster: np.ndarray) -> np.ndarray:
    """The rows of every cluster, added up."""
    _, member = np.unique(cluster, return_inverse=True)
    shape = (int(member.max(initial=-1)) + 1, len(member))
    return sparse.csr_array((np.ones(len(member)), (member, np.arange(len(member)))), shape=shape) @ moved


def _single(solution: Solution, terms: PairTerms) -> tuple[Rows, np.ndarray]:
    """The comparisons one by one, of those that are fitted, and their clusters."""
    data: Any = solution.data  # comparisons, since there are terms of pairs
    weight = np.asarray(data.weight, np.float64)
    a, b, tied = (
        np.where(weight > 0, weight * np.asarray(v), 0) for v in (data.wins_first, data.wins_second, data.ties)
    )
    if terms.link in WITH_TIES:
        votes = np.stack([a, b, tied], axis=1)
    else:
        half = tied / 2 if solution.ties == "half" else 0
        votes = np.stack([a + half, b + half], axis=1)
    order = np.asarray(data.order) if terms.position else np.zeros(len(weight))
    first, second = (solution.number[np.asarray(side)] for side in (data.first, data.second))
    block = np.append(solution.gauge.block, -1)  # -1 is no number of an item
    keep = (votes.sum(axis=1) > 0) & (block[first] >= 0) & (block[first] == block[second])
    return Rows(first, second, votes, order).take(keep), np.asarray(data.cluster)[keep]


def _slopes(terms: PairTerms, x: np.ndarray, rows: Rows) -> list[np.ndarray]:
    """Gradient [E, 1 + parameters] of one vote of every kind, by margin and parameters."""
    margin, parameters = x[: terms.items][rows.first] - x[: terms.items][rows.second], x[terms.items :]
    slopes = []
    for kind in range(rows.votes.shape[1]):
        one = np.zeros_like(rows.votes)
        one[:, kind] = 1
        unit = Rows(rows.first, rows.second, one, rows.order)
        slopes.append(row_terms(margin, parameters, unit, terms.link, terms.position, curved=False)[1])
    return slopes


def _moved(rows: Rows, slope: np.ndarray, solved: np.ndarray, items: int) -> np.ndarray:
    """Gradients of single votes times the solved directions, [E, K]."""
    return slope[:, :1] * (solved[rows.first] - solved[rows.second]) + slope[:, 1:] @ solved[items:]


def _of_rankings(terms: RankingTerms, x: np.ndarray, solved: np.ndarray, factor: np.ndarray) -> np.ndarray:
    """One row per ranking, so many times: as the root of their number equal rankings count apart."""
    moved = [np.zeros((0, solved.shape[1]))]
    for block in terms.blocks():
        _, chance = terms.chances(x, block)
        pull = terms.pulls(chance, block)
        moved.append(factor[block][:, None] * np.einsum("rk,rkd->rd", pull, solved[terms.order[block]]))
    return np.concatenate(moved)
