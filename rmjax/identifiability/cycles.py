"""The accuracy that no scalar exceeds on these votes: the cost of the cycles in them."""

from __future__ import annotations

import dataclasses

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from rmjax.comparisons import Comparisons, Ties
from rmjax.errors import DataError, SampleSizeError
from rmjax.identifiability.tally import tally
from rmjax.identifiability.triangles import triangle_blocks

# 2^20 subsets of 20 items are 170 MB; each item more doubles it.
_LARGEST_EXACT = 20


@dataclasses.dataclass(frozen=True)
class ScalarAccuracy:
    """The best accuracy on single votes that scores can have, or the interval in which it lies."""

    lower: float  # what the order below attains
    upper: float  # what no scores exceed
    majority: float  # what the majority of every pair attains, cycles or not
    exact: bool  # the two ends are one number
    order: np.ndarray  # [M] int32, judged items, prompt by prompt, best first; scores that fall along it attain `lower`
    votes: float  # that were counted
    largest_component: int  # items in the largest set that majorities join in circles; 1 where they have none


def best_scalar_accuracy(
    comparisons: Comparisons, *, ties: Ties | None = None, exact_items: int = 16
) -> ScalarAccuracy:
    r"""Largest share of the votes that agree with some scores.

    $$\max_r \frac{\sum_{ij} W_{ij}\,1[r_i > r_j]}{\sum_{ij} W_{ij}} =
      1 - \frac{\text{least votes against an order}}{\text{all votes}},$$

    where the last is the minimum feedback arc set of the votes. Two scores that are equal get half of the votes of a
    pair, which no order loses by breaking the tie the better way. Majorities that form no circle cost nothing beyond
    their minorities, so only items that majorities join in circles are searched: by dynamic programming over subsets
    up to `exact_items` of them, beyond by insertion for the lower end and by packing circles that share no vote for
    the upper.

    Guarantees: lower <= upper <= majority, and no scores have an accuracy above `upper`; `order` attains `lower`; all
    three are one number where majorities form no circle; exact where no set joined in circles has more than
    `exact_items` items; relabelling changes no exact value.

    Args:
        comparisons: the judged pairs.
        ties: "half" counts a tie as half a vote for either side, so that half of every tie is lost to any scores;
            "drop" leaves it out.
        exact_items: up to how many items joined in circles are solved exactly, at most 20.

    Returns:
        The interval, and an order that attains its lower end. It is an accuracy on these votes: averaged over samples
        of votes it is no lower than the best accuracy on new ones.

    Raises:
        DataError: as `tally`, or `exact_items` is not between 0 and 20.
        SampleSizeError: there are no votes that count.

    Example:
        >>> circle = Comparisons.from_pairs([0, 1, 2], [1, 2, 0], prompt=[0, 0, 0])
        >>> best = best_scalar_accuracy(circle)
        >>> print(f"{best.lower:.4f} {best.upper:.4f} {best.majority:.4f} {best.exact}")
        0.6667 0.6667 1.0000 True

    Reference:
        Slater, Inconsistencies in a schedule of paired comparisons, Biometrika 1961; Lawler, A comment on minimum
        feedback arc sets, IEEE Transactions on Circuit Theory 1964.
    """
    if not 0 <= exact_items <= _LARGEST_EXACT:
        raise DataError(
            "subsets of so many items do not fit", {"exact_items": exact_items}, f"Choose 0 to {_LARGEST_EXACT}."
        )
    votes = tally(comparisons, ties)
    total = float(votes.votes.sum())
    if not total:
        raise SampleSizeError("no votes count", {"votes": 0}, "Give at least one vote that is not a tie.")
    items = votes.num_items
    ahead = votes.wins_first >= votes.wins_second
    winner, loser = np.where(ahead, votes.first, votes.second), np.where(ahead, votes.second, votes.first)
    gap = np.abs(votes.wins_first - votes.wins_second)
    won = gap > 0
    majority = sparse.csr_array((gap[won], (winner[won], loser[won])), shape=(items, items))
    number, component = connected_components(majority, directed=True, connection="strong")
    level = _levels(component, number, winner[won], loser[won])
    inside = won & (component[winner] == component[loser])
    place, cost, floor = np.zeros(items), 0.0, 0.0
    # Edges of one component stand together, so that a million components are not searched for a million times.
    edges = np.flatnonzero(inside)
    edges = edges[np.argsort(component[winner[edges]], kind="stable")]
    for rows in np.split(edges, np.flatnonzero(np.diff(component[winner[edges]])) + 1) if len(edges) else ():
        members, ends = np.unique([winner[rows], loser[rows]], return_inverse=True)
        beats, beaten = ends.reshape(2, -1)
        solve = _by_subsets if len(members) <= exact_items else _by_insertion
        rank = solve(beats, beaten, gap[rows], len(members))
        against = float(gap[rows] @ (rank[beats] > rank[beaten]))
        place[members] = rank
        cost += against
        floor += against if solve is _by_subsets else _packing(beats, beaten, gap[rows], len(members), against)
    judged = np.unique(np.concatenate([votes.first, votes.second]))
    prompt = np.asarray(comparisons.prompt)[judged]
    order = judged[np.lexsort((place[judged], component[judged], level[component[judged]], prompt))]
    most = float(np.maximum(votes.wins_first, votes.wins_second).sum())
    return ScalarAccuracy(
        lower=(most - cost) / total,
        upper=(most - floor) / total,
        majority=most / total,
        exact=cost == floor,
        order=order.astype(np.int32),
        votes=total,
        largest_component=int(np.bincount(component).max()),
    )


def _levels(component: np.ndarray, number: int, winner: np.ndarray, loser: np.ndarray) -> np.ndarray:
    """A place for every component, such that majorities between components all point downwards, [number]."""
    above, below = component[winner], component[loser]
    between = above != below
    graph = sparse.csr_array((np.ones(between.sum()), (above[between], below[between])), shape=(number, number))
    waiting = np.bincount(graph.indices, minlength=number)
    level, ready = np.zeros(number, np.int64), np.flatnonzero(waiting == 0).tolist()
    for place in range(number):
        one = ready.pop()
        level[one] = place
        losers = graph.indices[graph.indptr[one] : graph.indptr[one + 1]]
        waiting[losers] -= 1
        ready.extend(losers[waiting[losers] == 0].tolist())
    return level


def _by_subsets(beats: np.ndarray, beaten: np.ndarray, gap: np.ndarray, items: int) -> np.ndarray:
    """Rank of every item in an order with the least votes against it, by dynamic programming over subsets."""
    cost = np.zeros((items, items))
    cost[beats, beaten] = gap
    # What it costs to put an item behind all of a subset: its wins over them.
    behind = np.zeros((items, 1))
    for other in range(items):
        behind = np.concatenate([behind, behind + cost[:, other, None]], axis=1)
    subsets = np.arange(1 << items)
    size = np.bitwise_count(subsets)
    best, last = np.full(1 << items, np.inf), np.zeros(1 << items, np.int8)
    best[0] = 0
    for number in range(items):
        layer = subsets[size == number]
        for item in range(items):
            before = layer[layer >> item & 1 == 0]
            after, found = before | 1 << item, best[before] + behind[item, before]
            better = found < best[after]
            best[after[better]], last[after[better]] = found[better], item
    rank, left = np.zeros(items, np.int64), (1 << items) - 1
    for place in reversed(range(items)):
        rank[last[left]] = place
        left ^= 1 << int(last[left])
    return rank


def _by_insertion(beats: np.ndarray, beaten: np.ndarray, gap: np.ndarray, items: int) -> np.ndarray:
    """Rank of every item in an order that no move of one item betters: from net wins, then by insertion."""
    ends, others = np.concatenate([beats, beaten]), np.concatenate([beaten, beats])
    signed = sparse.csr_array((np.concatenate([gap, -gap]), (ends, others)), shape=(items, items))
    order = np.argsort(-np.asarray(signed.sum(axis=1)), kind="stable")
    rank = np.empty(items, np.int64)
    rank[order] = np.arange(items)
    moved = True
    while moved:  # every move saves votes, so that no order comes twice
        moved = False
        for item in order.copy():
            met = slice(signed.indptr[item], signed.indptr[item + 1])
            where, net = rank[signed.indices[met]], signed.data[met]
            along = np.argsort(where)
            # Behind its first k opponents it loses what it is ahead of them.
            behind = np.concatenate([[0], np.cumsum(net[along])])
            now, best = int((where < rank[item]).sum()), int(behind.argmin())
            if behind[best] < behind[now] - 1e-12 * np.abs(net).sum():
                _move(order, rank, int(rank[item]), _slot(where[along], best, int(rank[item])))
                moved = True
    return rank


def _slot(where: np.ndarray, behind: int, now: int) -> int:
    """The rank to move to, to stand directly behind the first so many opponents; ranks behind `now` close up."""
    target = int(where[behind - 1]) + 1 if behind else int(where[0])
    return target - (target > now)


def _move(order: np.ndarray, rank: np.ndarray, now: int, target: int) -> None:
    """Move one item, and shift those between."""
    low, high = min(now, target), max(now, target) + 1
    order[low:high] = np.roll(order[low:high], 1 if target < now else -1)
    rank[order[low:high]] = np.arange(low, high)


def _packing(beats: np.ndarray, beaten: np.ndarray, gap: np.ndarray, items: int, against: float) -> float:
    """Votes that every order loses: circles that share no vote, each of which costs its smallest majority.

    Circles of three are packed first, since a vote is worth most in the shortest circle, then longer ones.
    """
    left = gap.copy()
    low, high = np.minimum(beats, beaten), np.maximum(beats, beaten)
    edge = np.lexsort((high, low))
    upwards = (beats == low)[edge]
    packed = 0.0
    for ij, jk, ik in triangle_blocks(low[edge], high[edge], items):
        circle = (upwards[ij] == upwards[jk]) & (upwards[ij] != upwards[ik])
        rows = edge[np.stack([ij[circle], jk[circle], ik[circle]], axis=1)]
        for row in rows[(left[rows] > 0).all(axis=1)]:
            least = left[row].min()
            left[row] -= least
            packed += float(least)
    packed += _pack_long(beats, beaten, left, items)
    # Where the order attains the bound, it is the best.
    return against if against - packed <= 1e-9 * gap.sum() else packed


def _pack_long(beats: np.ndarray, beaten: np.ndarray, left: np.ndarray, items: int) -> float:
    """Pack circles of any length, found by walking along majorities until an item comes again; `left` is used up."""
    by_winner = np.argsort(beats, kind="stable")
    ends = np.searchsorted(beats[by_winner], np.arange(items + 1)).tolist()
    edges, head, rest = by_winner.tolist(), beaten.tolist(), left.tolist()
    following = ends[:-1].copy()  # the first edge of every item that may still lead into a circle
    depth, closed, packed = [-1] * items, [False] * items, 0.0
    for start in range(items):
        path, walked = [start], []
        depth[start] = 0
        while path:
            item = path[-1]
            if following[item] == ends[item + 1]:
                closed[item] = True
                depth[path.pop()] = -1
                del walked[-1:]
                continue
            edge = edges[following[item]]
            other = head[edge]
            if closed[other] or rest[edge] <= 0:
                following[item] += 1
            elif depth[other] < 0:
                depth[other] = len(path)
                path.append(other)
                walked.append(edge)
            else:
                circle = [*walked[depth[other] :], edge]
                least = min(rest[e] for e in circle)
                packed += least
                for e in circle:
                    rest[e] -= least
                keep = depth[other] + 1 + next(n for n, e in enumerate(circle) if rest[e] <= 0)
                for dropped in path[keep:]:
                    depth[dropped] = -1
                del path[keep:], walked[keep - 1 :]
    return packed
