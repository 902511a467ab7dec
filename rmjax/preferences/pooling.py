"""Whether votes may be pooled: a test of votes alike across annotators, groups or versions of the instructions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Literal, get_args

import numpy as np
from scipy import sparse, special

from rmjax.checks import one_of
from rmjax.errors import DataError, SampleSizeError
from rmjax.preferences.resampling import pairs_within
from rmjax.votes import CANNOT_JUDGE, Votes

By = Literal["annotator", "group", "instructions"]
Against = Literal["rest", "pairs", "side"]

_KINDS = 3  # first, second, tie
_AT_ONCE = 4_000_000  # numbers in one batch of arrangements
_MAX_COVARIANCE = 4_000  # levels times kinds of vote whose covariance fits in memory
_FEWEST = 20  # with fewer arrangements no p value is below 1 in 20


@dataclasses.dataclass(frozen=True)
class Homogeneity:
    """A test of whether the levels of `by` vote alike on the same items."""

    statistic: float
    degrees_of_freedom: int  # what the statistic is on average where all vote alike
    p_value: float  # share of arrangements whose statistic is as large, this one among them
    by: By
    against: Against
    levels: int  # levels with a vote on an item that can tell
    items: int  # items that can tell: of two levels and two kinds of vote, and but for "side" with two equal votes
    votes: int  # votes on those items
    left_out: int  # "cannot judge"


def homogeneity(
    votes: Votes,
    by: By = "annotator",
    *,
    against: Against = "rest",
    arrangements: int = 999,
    seed: int = 0,
) -> Homogeneity:
    r"""Test of whether annotators, groups or versions of the instructions vote alike on the same items.

    Where they do, the votes on an item could change hands. The statistic of the data is held against that of random
    exchanges of the votes on every item, which is a valid test with two votes an item as with a thousand:

    $$p = \frac{1 + \#\{b : Q_b \ge Q\}}{1 + B}$$

    "rest" counts how often level l votes as the other levels do on the same items, and "pairs" how often levels l and
    m vote alike. Neither looks at which response stands first:

    $$Q = \sum_{c} \frac{(A_c - E A_c)^2}{\operatorname{Var} A_c}, \qquad
      A_c = \#\{\text{pairs of equal votes on one item, of levels } (l, \text{not } l)
      \text{ or } (l, m)\}$$

    Two groups whose shares $p$ and $p'$ of the votes on an item differ agree less with each other than within, by
    $\sum_k (p_k - p'_k)^2 / 2$, and a careless annotator agrees less with everybody: "rest" sees both. Two camps of
    annotators of equal size agree with the rest equally well, and only "pairs" sees them; it needs more votes.

    "side" adds up how often each level l chose what (first, second, tie) beyond its share of the votes on every item:
    the generalised test of Cochran, Mantel and Haenszel. It is for items whose first response means the same on all,
    such as the answer of one model, or for whoever prefers the answer that stands first:

    $$Q = T^\top V^{+} T, \qquad T_{lk} = \sum_i \Big(n_{ilk} - \frac{n_{il} n_{ik}}{n_i}\Big), \qquad
      V = \operatorname{Cov} T$$

    A tie is a vote of its own kind; "cannot judge" says nothing about the answers and is left out. The test speaks of
    these annotators: two groups of one annotator each differ as soon as the two annotators do.

    Guarantees: where votes on an item are exchangeable, P(p <= a) <= a whatever the number of votes, and the statistic
    averages `degrees_of_freedom`; renaming levels or items changes no statistic; nor does exchanging the sides of any
    item, or under "side" of all of them; unanimous items and items of one level change nothing.

    Args:
        votes: single judgements.
        by: what may make a difference.
        against: what kind of difference to look for.
        arrangements: random exchanges B. The cost is that of as many counts of all pairs of votes on one item.
        seed: of the exchanges.

    Returns:
        The statistic and its p value.

    Raises:
        DataError: the votes do not hold `by`, a choice is none, or there are too many levels for "side".
        SampleSizeError: fewer than 20 arrangements differ, so that nothing could be found at a level of 5 %.

    Example:
        >>> item = np.repeat(np.arange(12), 4)
        >>> group = np.tile([0, 0, 1, 1], 12)
        >>> votes = Votes.build(item, np.tile(np.arange(4), 12), group, group=group)  # one camp for each side
        >>> homogeneity(votes, by="group").p_value
        0.001

    Reference:
        Landis, Heyman and Koch, Average partial association in three-way contingency tables, International Statistical
        Review 1978, for "side"; Phipson and Smyth, Permutation p-values should never be zero, 2010.
    """
    one_of("by", by, get_args(By))
    one_of("against", against, get_args(Against))
    if arrangements < _FEWEST - 1:
        raise DataError(
            "too few arrangements for any p value below 1 in 20",
            {"arrangements": arrangements},
            f"Ask for {_FEWEST - 1} or more.",
        )
    said = np.flatnonzero(votes.value != CANNOT_JUDGE)
    item, level, value = _informative(votes.item[said], votes.labels(by)[said], votes.value[said], against)
    if against == "side" and _KINDS * (level.max(initial=-1) + 1) > _MAX_COVARIANCE:
        raise DataError(
            'there are too many levels for the covariance of "side"',
            {"levels": int(level.max()) + 1, "at_most": _MAX_COVARIANCE // _KINDS},
            'Test by group, select fewer with Votes.select, or test against="rest".',
        )
    found = _side(item, level, value) if against == "side" else _agreement(item, level, value, against)
    possible = _log_arrangements(item, value)
    if possible < np.log(_FEWEST) or found.degrees_of_freedom == 0:
        raise SampleSizeError(
            f"the data cannot tell whether votes differ by {by}",
            {"items_that_can_tell": len(np.unique(item)), "arrangements": round(float(np.exp(possible)))},
            f"Fewer than {_FEWEST} arrangements, or none that differ, reach no p value of 5 %. "
            + ("Let more of them" if against == "side" else "Let three or more of them")
            + " judge the same items.",
        )
    observed = float(found.of(value[None])[0])
    rng = np.random.default_rng(seed)
    larger, left = 0, arrangements
    while left:
        batch = min(left, max(1, _AT_ONCE // found.width))
        keys = item + rng.random((batch, len(item)))  # sorting these exchanges votes within items
        exchanged = value[np.argsort(keys, axis=1)]
        # An arrangement that equals the data has the same statistic up to the order of a sum.
        larger += int((found.of(exchanged) >= observed * (1 - 1e-9)).sum())
        left -= batch
    return Homogeneity(
        statistic=observed,
        degrees_of_freedom=found.degrees_of_freedom,
        p_value=(1 + larger) / (1 + arrangements),
        by=by,
        against=against,
        levels=int(level.max()) + 1,
        items=int(item[-1]) + 1,
        votes=len(item),
        left_out=len(votes.item) - len(said),
    )


@dataclasses.dataclass(frozen=True)
class _Statistic:
    """A statistic of every arrangement of the votes."""

    of: Callable[[np.ndarray], np.ndarray]  # values [B, V] -> [B]
    width: int  # numbers that one arrangement needs
    degrees_of_freedom: int


def _informative(
    item: np.ndarray, level: np.ndarray, value: np.ndarray, against: Against
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The votes on items that can tell, sorted by item; items and levels numbered anew."""
    _, item = np.unique(item, return_inverse=True)
    items = int(item.max(initial=-1)) + 1
    kinds = _table(item, value, items, _KINDS)
    number, equal = kinds.sum(axis=1), (kinds * (kinds - 1)).sum(axis=1)
    # Of two votes that differ none can be said to agree with more of the others.
    tells = (equal < number * (number - 1)) & ((equal > 0) | (against == "side"))
    low, high = np.full(items, np.iinfo(np.int32).max), np.full(items, -1)
    np.minimum.at(low, item, level)
    np.maximum.at(high, item, level)
    used = np.flatnonzero((tells & (low < high))[item])
    used = used[np.argsort(item[used], kind="stable")]
    item, level = (np.unique(x[used], return_inverse=True)[1] for x in (item, level))
    return item, level, value[used].astype(np.int64)


def _table(row: np.ndarray, column: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """How often which column stands with which row, float64."""
    flat = row.astype(np.int64) * columns + column
    return np.bincount(flat, minlength=rows * columns).reshape(rows, columns).astype(np.float64)


def _log_arrangements(item: np.ndarray, value: np.ndarray) -> float:
    """Log of the number of different ways to hand out the votes within items."""
    kinds = _table(item, value, int(item.max(initial=-1)) + 1, _KINDS)
    return float(special.gammaln(kinds.sum(axis=1) + 1).sum() - special.gammaln(kinds + 1).sum())


def _agreement(item: np.ndarray, level: np.ndarray, value: np.ndarray, against: Against) -> _Statistic:
    """Squared deviations of the numbers of equal votes, by level or by pair of levels."""
    items, levels = int(item.max(initial=-1)) + 1, int(level.max(initial=-1)) + 1
    p, q = pairs_within(item)
    number = _votes_of_own(item, level, levels)
    if against == "rest":
        p, q = (x[level[p] != level[q]] for x in (p, q))
        p, q = np.concatenate([p, q]), np.concatenate([q, p])
        cell = level[p]
        a, b, same = number[p], np.bincount(item, minlength=items)[item[p]] - number[p], np.zeros(len(p), bool)
    else:
        low, high = np.minimum(level[p], level[q]), np.maximum(level[p], level[q])
        _, cell = np.unique(low.astype(np.int64) * levels + high, return_inverse=True)
        a, b, same = number[p], number[q], level[p] == level[q]
    # Of the other pairs that count in the same cell: those with a vote in common with this one, and those without.
    with_common = np.where(same, 2 * (a - 2), a + b - 2)
    without = np.where(same, a * (a - 1) // 2, a * b) - 1 - with_common
    mean, variance, size = _moments_of_agreement(
        _table(item, value, items, _KINDS), item[p], cell, with_common, without
    )
    moves = variance > 1e-12 * size  # of the others rounding alone is left
    order = np.argsort(cell, kind="stable")
    order = order[moves[cell[order]]]
    p, q, (_, starts) = p[order], q[order], np.unique(cell[order], return_index=True)
    mean, variance = mean[moves], variance[moves]

    def of(values: np.ndarray) -> np.ndarray:
        equal = np.add.reduceat(values[:, p] == values[:, q], starts, axis=1, dtype=np.int64)
        return ((equal - mean) ** 2 / variance).sum(axis=1)

    return _Statistic(of, max(len(p), len(item)), int(moves.sum()))


def _votes_of_own(item: np.ndarray, level: np.ndarray, levels: int) -> np.ndarray:
    """For every vote, the number of votes of its level on its item."""
    _, held, number = np.unique(item.astype(np.int64) * levels + level, return_inverse=True, return_counts=True)
    return number[held]


def _moments_of_agreement(
    kinds: np.ndarray, where: np.ndarray, cell: np.ndarray, with_common: np.ndarray, without: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean and variance of the number of equal pairs, where votes on an item are exchanged, and the size of its terms.

    `kinds` [items, kinds] are the votes, `where` the item of every pair, and `with_common` and `without` the numbers
    of other pairs of its item and cell that share a vote with it or do not.
    """
    n = kinds.sum(axis=1)
    two, three = (kinds * (kinds - 1)).sum(axis=1), (kinds * (kinds - 1) * (kinds - 2)).sum(axis=1)
    # Chances that a pair is equal, that two pairs with a vote in common both are, and that two without one are.
    one = two / (n * (n - 1))
    common = three / np.maximum(n * (n - 1) * (n - 2), 1)
    apart = (two**2 - 4 * three - 2 * two) / np.maximum(n * (n - 1) * (n - 2) * (n - 3), 1)
    weights = [np.ones(len(where)), with_common, without]
    terms = np.stack([one - one**2, common - one**2, apart - one**2])[:, where] * weights
    mean, variance, size = (
        np.bincount(cell, weights=x) for x in (one[where], terms.sum(axis=0), np.abs(terms).sum(axis=0))
    )
    return mean, variance, size


def _side(item: np.ndarray, level: np.ndarray, value: np.ndarray) -> _Statistic:
    """The quadratic form of Cochran, Mantel and Haenszel, of levels by kinds of vote."""
    items, levels = int(item.max(initial=-1)) + 1, int(level.max(initial=-1)) + 1
    kinds = _table(item, value, items, _KINDS)
    n = kinds.sum(axis=1)
    held = sparse.csr_array((np.ones(len(item)), (item, level)), shape=(items, levels))
    mean = held.T @ (kinds / n[:, None])  # [levels, kinds]
    covariance = np.zeros((levels, _KINDS, levels, _KINDS))
    for k in range(_KINDS):
        for other in range(_KINDS):
            scale = kinds[:, k] * ((k == other) * n - kinds[:, other]) / (n**2 * (n - 1))
            shared = (held.T @ (held * scale[:, None]).tocsr()).toarray()
            covariance[:, k, :, other] = np.diag(held.T @ (scale * n)) - shared
    width = levels * _KINDS
    eigenvalues, vectors = np.linalg.eigh(covariance.reshape(width, width))
    moves = eigenvalues > 1e-10 * eigenvalues.max(initial=0)
    whiten = vectors[:, moves] / np.sqrt(eigenvalues[moves])

    def of(values: np.ndarray) -> np.ndarray:
        batch = len(values)
        flat = (np.arange(batch)[:, None] * levels + level) * _KINDS + values
        counts = np.bincount(flat.ravel(), minlength=batch * width).reshape(batch, width)
        return (((counts - mean.ravel()) @ whiten) ** 2).sum(axis=1)

    return _Statistic(of, max(width, len(item)), int(moves.sum()))
