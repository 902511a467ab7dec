"""How far each independent part of the data moves an estimate: standard errors for where the model is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy import sparse

from rmjax.comparisons import Comparisons, Rankings
from rmjax.errors import DataError
from rmjax.losses.links import WITH_TIES
from rmjax.preferences.listwise import RankingTerms
from rmjax.preferences.pairwise import PairTerms, row_terms
from rmjax.preferences.rows import Rows

if TYPE_CHECKING:
    from rmjax.preferences.estimate import Solution

Errors = Literal["model", "sandwich", "cluster"]


def influence(solution: Solution, solved: np.ndarray, errors: Errors) -> np.ndarray:
    r"""Rows whose outer product, summed, is the sandwich $H^{-1} (\sum_u s_u s_u^\top) H^{-1}$ in some directions.

    $s_u$ is the gradient of an independent unit: a vote, all votes of a cluster, or a ranking.

    Args:
        solution: of a fit.
        solved: inverse information times the directions, [U, K].
        errors: "sandwich" or "cluster".

    Returns:
        One row per unit, [units, K].

    Raises:
        DataError: there are no clusters.
    """
    terms = solution.terms
    if isinstance(terms, RankingTerms):
        if errors == "cluster":
            raise DataError(
                "rankings have no clusters", {"errors": errors}, 'Each ranking is a unit: choose errors="sandwich".'
            )
        return _of_rankings(terms, solution.optimum.x, solved)
    if errors == "sandwich":
        return _of_votes(terms, solution.optimum.x, solved)
    return _of_clusters(terms, solution, solved)


def _of_votes(terms: PairTerms, x: np.ndarray, solved: np.ndarray) -> np.ndarray:
    """One row per pair and kind of vote: so many equal votes count as the root of their number."""
    moved = [
        np.sqrt(terms.rows.votes[:, kind])[:, None] * _moved(terms.rows, slope, solved, terms.items)
        for kind, slope in enumerate(_slopes(terms, x, terms.rows))
    ]
    return np.concatenate(moved)


def _of_clusters(terms: PairTerms, solution: Solution, solved: np.ndarray) -> np.ndarray:
    """One row per cluster of comparisons."""
    data = solution.data
    if isinstance(data, Rankings) or data.cluster is None:
        raise DataError(
            "the comparisons have no clusters",
            {"cluster": None},
            'Give `cluster` where they are built, or choose errors="sandwich".',
        )
    rows, cluster = _single(data, solution, terms)
    total = sum(
        rows.votes[:, kind, None] * _moved(rows, slope, solved, terms.items)
        for kind, slope in enumerate(_slopes(terms, solution.optimum.x, rows))
    )
    _, member = np.unique(cluster, return_inverse=True)
    shape = (int(member.max(initial=-1)) + 1, len(member))
    sums = sparse.csr_array((np.ones(len(member)), (member, np.arange(len(member)))), shape=shape)
    return sums @ total


def _single(data: Comparisons, solution: Solution, terms: PairTerms) -> tuple[Rows, np.ndarray]:
    """The comparisons one by one, of those that are fitted, and their clusters."""
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


def _of_rankings(terms: RankingTerms, x: np.ndarray, solved: np.ndarray) -> np.ndarray:
    """One row per ranking."""
    moved = []
    for block in terms.blocks():
        _, chance = terms.chances(x, block)
        pull = terms.pulls(chance, block)
        moved.append(np.sqrt(terms.weight[block])[:, None] * np.einsum("rk,rkd->rd", pull, solved[terms.order[block]]))
    return np.concatenate(moved)
