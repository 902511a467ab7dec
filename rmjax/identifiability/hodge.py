"""Hodge decomposition of judged pairs: what a scalar says, and the two kinds of cycles that it cannot say."""

from __future__ import annotations

import dataclasses
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import lsqr

from rmjax.checks import one_of, whole_numbers
from rmjax.comparisons import Comparisons, Ties
from rmjax.errors import DataError, IdentifiabilityError, SampleSizeError
from rmjax.identifiability.tally import Tally, tally
from rmjax.identifiability.triangles import triangle_blocks

Flow = Literal["log_odds", "share", "sign"]
MAX_TRIANGLES = 5_000_000
_REFINEMENTS = 3
_ROUNDING = 1e-15


@dataclasses.dataclass(frozen=True)
class HodgeDecomposition:
    """A flow on judged pairs as the sum of three orthogonal parts; row p is the flow from first[p] to second[p]."""

    first: np.ndarray  # [P] int32
    second: np.ndarray  # [P] int32, first < second
    flow: np.ndarray  # [P] float64, positive where the first is better
    weight: np.ndarray  # [P] float64, what the square of a pair's flow weighs
    potential: np.ndarray  # [N] float64, sums to 0 in every component; NaN for an item that was not judged
    component: np.ndarray  # [N] int32, potentials are comparable within one; -1 for an item that was not judged
    gradient: np.ndarray  # [P] differences of the potential
    curl: np.ndarray  # [P] cycles that judged triples see
    harmonic: np.ndarray  # [P] cycles that only longer ones see
    triangles: np.ndarray  # [T, 3] int32, items i < j < k
    triangle_curls: np.ndarray  # [T] float64, flow along i, j, k and back to i
    energy: float  # weighted sum of squares of the flow
    gradient_energy: float
    curl_energy: float
    harmonic_energy: float
    residual: float  # how far from orthogonal the parts are, relative; rounding where all went well

    @property
    def cyclicity_ratio(self) -> float:
        """Share of the energy that no scalar can express, in [0, 1]; NaN where there is no flow at all."""
        return (self.curl_energy + self.harmonic_energy) / self.energy if self.energy else float("nan")


def hodge(
    comparisons: Comparisons,
    *,
    flow: Flow = "log_odds",
    smoothing: float = 0.0,
    ties: Ties | None = None,
    max_triangles: int = MAX_TRIANGLES,
) -> HodgeDecomposition:
    r"""Hodge decomposition of the votes, where a pair weighs as much as it has votes.

    With $a$ votes for the first of a pair, $b$ for the second and a smoothing count $s$, its flow is

    $$\log\frac{a + s}{b + s} \;(\text{log\_odds}), \qquad \frac{a - b}{a + b} \;(\text{share}), \qquad
      \operatorname{sign}(a - b) \;(\text{sign}).$$

    Under Bradley-Terry the log-odds are differences of scores. Votes drawn from it have some cyclic energy all the
    same, since shares are estimated: $1 / \sigma(\Delta)\sigma(-\Delta)$ a degree of freedom, with many votes a pair.

    Guarantees: as `hodge_flow`. The cyclicity ratio of exact Bradley-Terry probabilities is 0.

    Args:
        comparisons: the judged pairs.
        flow: what a pair says.
        smoothing: votes that are added to either side for the log-odds, and for nothing else.
        ties: "half" counts a tie as half a vote for either side, "drop" leaves it out.
        max_triangles: how many judged triples are taken on.

    Returns:
        The parts, their energies, and the curl of every judged triple.

    Raises:
        DataError: as `tally`, `flow` is none of the three, or the smoothing is negative or not finite.
        IdentifiabilityError: log-odds without smoothing of a pair whose votes are all for one side: they are infinite.
        SampleSizeError: no votes count, or there are more triples than that.

    Example:
        >>> circle = Comparisons.from_votes([0, 1, 2], [1, 2, 0], [8, 8, 8], [2, 2, 2], prompt=[0, 0, 0])
        >>> parts = hodge(circle)
        >>> print(f"{parts.cyclicity_ratio:.3f}", np.abs(parts.potential).max() < 1e-12)
        1.000 True

    Reference:
        Jiang, Lim, Yao and Ye, Statistical ranking and combinatorial Hodge theory, Mathematical Programming 2011.
    """
    one_of("flow", flow, get_args(Flow))
    if not isinstance(smoothing, int | float | np.number) or not 0 <= smoothing < np.inf:
        raise DataError(
            "the smoothing is a number of votes, finite and not negative",
            {"smoothing": smoothing},
            "Add 0.5 to either side, say.",
        )
    votes = tally(comparisons, ties)
    return hodge_flow(
        votes.first,
        votes.second,
        _flow(votes, flow, smoothing),
        votes.votes,
        votes.num_items,
        max_triangles=max_triangles,
    )


def hodge_flow(
    first: ArrayLike,
    second: ArrayLike,
    flow: ArrayLike,
    weight: ArrayLike,
    num_items: int,
    *,
    max_triangles: int = MAX_TRIANGLES,
) -> HodgeDecomposition:
    r"""Hodge decomposition of any flow on pairs, in the inner product of the weights.

    $$Y = \operatorname{grad} s \oplus \operatorname{curl}^* \varphi \oplus h, \qquad
      (\operatorname{grad} s)_{ij} = s_i - s_j, \qquad (\operatorname{curl} Y)_{ijk} = Y_{ij} + Y_{jk} + Y_{ki}$$

    with $\langle Y, Z\rangle = \sum_{ij} w_{ij} Y_{ij} Z_{ij}$. The potential $s = L^+ \operatorname{div} Y$ is the
    weighted least-squares score. What it leaves has no divergence: local cycles, which judged triples show, and the
    harmonic rest, which has neither divergence nor curl and runs only along longer cycles.

    Guarantees: the parts are orthogonal and add up to the flow; energies add; a graph whose pairs are all judged has no
    harmonic part; relabelling the items relabels the parts, and turning a pair around with its flow changes nothing.

    Args:
        first: item of every pair, [P]; no pair stands twice, in either direction.
        second: the other item, [P].
        flow: how much the first is better, [P].
        weight: of every pair, [P], positive.
        num_items: N.
        max_triangles: how many triples with all pairs are taken on.

    Returns:
        The parts, with pairs turned to first < second and sorted.

    Raises:
        DataError: names the pair whose index is out of range or that stands twice, or whose flow is not finite, or
            whose weight is not positive; the arrays are not of one length.
        SampleSizeError: there is no pair, or there are more triples than `max_triangles`.

    Example:
        >>> square = hodge_flow([0, 1, 2, 3], [1, 2, 3, 0], flow=[1, 1, 1, 1], weight=[1, 1, 1, 1], num_items=4)
        >>> print(square.gradient_energy.__round__(9), square.curl_energy, round(square.harmonic_energy, 9))
        0.0 0.0 4.0

    Reference:
        Jiang, Lim, Yao and Ye, Statistical ranking and combinatorial Hodge theory, Mathematical Programming 2011.
    """
    first, second, flow, weight = _pairs(first, second, flow, weight, num_items)
    root = np.sqrt(weight)
    pairs = len(first)
    rows = np.arange(pairs)
    difference = _incidence(np.stack([first, second]), np.array([[1.0], [-1.0]]), rows, (pairs, num_items))
    ij, jk, ik = _triangle_rows(first, second, num_items, max_triangles)
    around = _incidence(np.stack([ij, jk, ik]), np.array([[1.0], [1.0], [-1.0]]), np.arange(len(ij)), (len(ij), pairs))

    # In the coordinates sqrt(w) Y the inner product is the plain one.
    scaled = root * flow
    potential, off_gradient = _least_squares(sparse.csr_array(sparse.diags_array(root) @ difference), scaled, num_items)
    gradient = difference @ potential
    rest = scaled - root * gradient
    local = sparse.csr_array(sparse.diags_array(1 / root) @ around.T)
    stream, off_curl = _least_squares(local, rest, len(ij))
    curl = (local @ stream) / root
    harmonic = flow - gradient - curl

    graph = sparse.coo_array((np.ones(pairs), (first, second)), shape=(num_items, num_items))
    component = connected_components(graph, directed=False)[1].astype(np.int32)
    judged = np.bincount(np.concatenate([first, second]), minlength=num_items) > 0
    middle = np.bincount(component, potential) / np.bincount(component)
    energies = [float((root * part) @ (root * part)) for part in (flow, gradient, curl, harmonic)]
    return HodgeDecomposition(
        first=first,
        second=second,
        flow=flow,
        weight=weight,
        potential=np.where(judged, potential - middle[component], np.nan),
        component=np.where(judged, component, -1).astype(np.int32),
        gradient=gradient,
        curl=curl,
        harmonic=harmonic,
        triangles=np.stack([first[ij], second[ij], second[jk]], axis=1),
        triangle_curls=around @ flow,
        energy=energies[0],
        gradient_energy=energies[1],
        curl_energy=energies[2],
        harmonic_energy=energies[3],
        residual=max(off_gradient, off_curl),
    )


def _flow(votes: Tally, flow: Flow, smoothing: float) -> np.ndarray:
    """What every pair says, [P]."""
    won, lost = votes.wins_first, votes.wins_second
    if flow == "sign":
        return np.sign(won - lost)
    if flow == "share":
        return (won - lost) / votes.votes
    won, lost = won + smoothing, lost + smoothing
    infinite = (won == 0) | (lost == 0)
    if infinite.any():
        p = int(np.flatnonzero(infinite)[0])
        raise IdentifiabilityError(
            "all votes of a pair are for one side, and its log-odds are infinite",
            {
                "first": int(votes.first[p]),
                "second": int(votes.second[p]),
                "wins_first": f"{won[p]:g}",
                "wins_second": f"{lost[p]:g}",
                "such_pairs": int(infinite.sum()),
            },
            'State a smoothing count, such as smoothing=0.5, or take flow="share" or flow="sign", which are finite.',
        )
    return np.log(won) - np.log(lost)


def _pairs(
    first: ArrayLike, second: ArrayLike, flow: ArrayLike, weight: ArrayLike, num_items: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The pairs turned to first < second and sorted, checked."""
    first, second = whole_numbers("first", first), whole_numbers("second", second)
    try:
        flow, weight = np.asarray(flow, np.float64), np.asarray(weight, np.float64)
    except (ValueError, TypeError):  # words, or rows of different lengths
        flow = weight = np.zeros(())
    shapes = {"first": first.shape, "second": second.shape, "flow": flow.shape, "weight": weight.shape}
    if first.ndim != 1 or set(shapes.values()) != {first.shape}:
        raise DataError("there is one flow and one weight a pair", shapes, "Give numbers, in vectors of equal length.")
    if not len(first):
        raise SampleSizeError("no pair has votes that count", {"pairs": 0}, "Give at least one judged pair.")

    def refuse(wrong: np.ndarray, what: str, remedy: str) -> None:
        if wrong.any():
            p = int(np.flatnonzero(wrong)[0])
            numbers = {"pair": p, "first": int(first[p]), "second": int(second[p])}
            raise DataError(what, numbers | {"flow": float(flow[p]), "weight": float(weight[p])}, remedy)

    low, high = np.minimum(first, second), np.maximum(first, second)
    refuse((low < 0) | (high >= num_items), "an item is out of range", f"Items run from 0 to {num_items - 1}.")
    refuse(low == high, "an item is paired with itself", "Drop the pair: it says nothing.")
    refuse(~np.isfinite(flow), "the flow of a pair is finite", "Mend it, or leave the pair out.")
    refuse(~((weight > 0) & np.isfinite(weight)), "the weight of a pair is positive", "Leave out pairs without votes.")
    order = np.lexsort((high, low))
    twice = np.zeros(len(first), bool)
    twice[order[1:]] = (np.diff(low[order]) == 0) & (np.diff(high[order]) == 0)
    refuse(twice, "a pair stands twice", "Add up what the two say first.")
    turned = np.where(first < second, flow, -flow)
    return low[order], high[order], turned[order], weight[order]


def _triangle_rows(first: np.ndarray, second: np.ndarray, num_items: int, limit: int) -> np.ndarray:
    """Rows of the pairs of every triple, [3, T]."""
    blocks, number = [np.zeros((3, 0), np.int64)], 0
    for block in triangle_blocks(first, second, num_items):
        number += len(block[0])
        if number > limit:
            raise SampleSizeError(
                "there are more judged triples than the limit",
                {"max_triangles": limit, "at_least": number, "pairs": len(first)},
                "Raise max_triangles (about 200 bytes a triple), or decompose fewer items.",
            )
        blocks.append(np.stack(block))
    rows = np.concatenate(blocks, axis=1)
    return rows[:, np.lexsort((rows[1], rows[0]))]


def _incidence(columns: np.ndarray, signs: np.ndarray, rows: np.ndarray, shape: tuple[int, int]) -> sparse.csr_array:
    """A row of signs in the given columns for each."""
    values = np.broadcast_to(signs, columns.shape)
    return sparse.coo_array(
        (values.ravel(), (np.broadcast_to(rows, columns.shape).ravel(), columns.ravel())), shape=shape
    ).tocsr()


def _least_squares(matrix: sparse.csr_array, target: np.ndarray, columns: int) -> tuple[np.ndarray, float]:
    """Coefficients of the nearest point of the column space, and how far what is left is from orthogonal to it."""
    length = np.sqrt(np.bincount(matrix.indices, matrix.data**2, minlength=columns))
    scale = 1 / np.where(length > 0, length, 1)
    unit = matrix @ sparse.diags_array(scale)
    found, rest, size = np.zeros(columns), target, float(np.linalg.norm(target))
    off, left = float(bool(matrix.nnz and size)), _REFINEMENTS
    while off > _ROUNDING and left:
        left -= 1
        found = found + lsqr(unit, rest, atol=0, btol=0, conlim=0, iter_lim=10 * (len(target) + columns))[0]
        rest = target - unit @ found
        off = float(np.linalg.norm(unit.T @ rest)) / size
    return scale * found, off
