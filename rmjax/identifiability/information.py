"""Comparisons as a resistor network: what they tell of a margin, and which one to buy next."""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike
from scipy import special

from rmjax.checks import whole_numbers
from rmjax.comparisons import Comparisons, Ties
from rmjax.errors import DataError, GaugeError, IdentifiabilityError, RMJaxError, SampleSizeError
from rmjax.identifiability.counted import numbers
from rmjax.identifiability.graph import WinGraph, win_graph
from rmjax.identifiability.tally import tally

# A dense inverse of so many responses takes seconds.
_LARGEST = 5_000
# Five digits of a resistance are right.
_ROUNDING = 1e-5


@dataclasses.dataclass(frozen=True)
class NextComparison:
    """The pair of which one more vote is worth most."""

    first: int
    second: int
    gain: float  # nats, or squared logits where a target was given; infinite where it joins what was apart
    candidates: np.ndarray  # [M, 2] int, every pair that was considered
    gains: np.ndarray  # [M]


def fisher(
    scores: Float[ArrayLike, " N"], comparisons: Comparisons, *, ties: Ties | None = None
) -> Float[np.ndarray, "N N"]:
    r"""Fisher information of the scores: the Laplacian of a network with conductances $n_{ij} p_{ij} (1 - p_{ij})$.

    $$I = \sum_e w_e n_e\,\sigma(\Delta_e)\,\sigma(-\Delta_e)\,(e_i - e_j)(e_i - e_j)^\top$$

    Guarantees: symmetric, no negative eigenvalue, rows sum to 0; its null space are the constants of the components of
    compared responses, and nothing else; weight 0 is deletion; k times the votes multiply it by k.

    Args:
        scores: in logits, up to one constant per prompt.
        comparisons: the judged pairs.
        ties: "half" counts a tie as half a vote for either side, "drop" leaves it out; unset refuses ties.

    Returns:
        In votes per squared logit, float64.

    Raises:
        DataError: there is not one finite score per compared response, or comparisons are none.
        SampleSizeError: more responses than a dense matrix is made for.

    Example:
        >>> votes = Comparisons.from_votes([0], [1], [2], [2], prompt=[0, 0])
        >>> fisher([0.0, 0.0], votes)
        array([[ 1., -1.],
               [-1.,  1.]])

    Reference:
        Ford, Solution of a ranking problem from binary comparisons, American Mathematical Monthly 1957; Shah et al.,
        Estimation from pairwise comparisons, Journal of Machine Learning Research 2016.
    """
    first, second, conductance, size = _network(scores, comparisons, ties)
    laplacian = np.zeros((size, size))
    np.add.at(laplacian, (first, second), -conductance)
    laplacian += laplacian.T
    np.fill_diagonal(laplacian, -laplacian.sum(axis=1))
    return laplacian


def effective_resistance(
    scores: Float[ArrayLike, " N"],
    comparisons: Comparisons,
    first: Int[ArrayLike, "*b"],
    second: Int[ArrayLike, "*b"],
    *,
    ties: Ties | None = None,
) -> Float[np.ndarray, "*b"]:
    r"""Variance of the fitted difference of two scores: the resistance of the network between them.

    $$R_{ij} = (e_i - e_j)^\top I^+ (e_i - e_j)$$

    Guarantees: a metric; in series resistances add, in parallel conductances do; conductance times resistance, summed
    over the pairs, is the number of responses minus the number of components; one more comparison raises none, at the
    same scores.

    Args:
        scores: in logits, up to one constant per prompt; the variance is that of an estimate where they are the
            estimate.
        comparisons: the judged pairs.
        first: indices of responses.
        second: indices of responses.
        ties: as in `fisher`.

    Returns:
        Squared logits, float64.

    Raises:
        DataError: as `fisher`, or an index is none of a response.
        IdentifiabilityError: names the first two responses that no comparisons connect.
        SampleSizeError: more responses than a dense inverse is made for.
        RMJaxError: conductances differ by more than float64 keeps.

    Example:
        >>> chain = Comparisons.from_votes([0, 1], [1, 2], [2, 2], [2, 2], prompt=[0, 0, 0])
        >>> print(effective_resistance([0, 0, 0], chain, [0, 0], [1, 2]).round(3))
        [1. 2.]

    Reference:
        Doyle and Snell, Random walks and electric networks, 1984.
    """
    graph = win_graph(comparisons, ties=ties)
    i, j = _indices(first, second, graph)
    apart = graph.components[i] != graph.components[j]
    if apart.any():
        at = int(np.flatnonzero(apart.ravel())[0])
        raise IdentifiabilityError(
            "no comparisons connect two responses",
            {"first": int(i.flat[at]), "second": int(j.flat[at])},
            "Compare them, directly or through others; answers to two prompts never can be.",
        )
    return _resistances(_inverse(scores, comparisons, graph, ties), i, j)


def next_comparison(
    scores: Float[ArrayLike, " N"],
    comparisons: Comparisons,
    *,
    candidates: Int[ArrayLike, "M 2"] | None = None,
    target: tuple[int, int] | None = None,
    ties: Ties | None = None,
) -> NextComparison:
    r"""The pair of which one more vote is worth most, at the given scores.

    In all, by the information that a vote is expected to add, and for a target (k, l) by how much it takes off the
    variance of that difference:

    $$\tfrac12 \log(1 + c R_{ij}), \qquad \frac{c\,[(e_i - e_j)^\top I^+ (e_k - e_l)]^2}{1 + c R_{ij}}, \qquad
      c = p_{ij}(1 - p_{ij})$$

    A vote between two sets that were never compared is worth more than any other: it joins them, where a target asks
    for no other.

    Guarantees: only pairs within a prompt; gains are not negative; for a target they are the exact change of its
    variance.

    Args:
        scores: in logits, up to one constant per prompt.
        comparisons: the judged pairs.
        candidates: pairs to choose from; all pairs of responses to one prompt, if unset.
        target: the difference that is to be known better.
        ties: as in `fisher`.

    Returns:
        The pair, and the gain of all candidates. Of equal gains the first.

    Raises:
        DataError: as `fisher`, or there is no candidate.
        GaugeError: a candidate joins two prompts.
        IdentifiabilityError: the target is joined by no comparisons and by no candidate.
        SampleSizeError: more responses than a dense inverse is made for.
        RMJaxError: conductances differ by more than float64 keeps.

    Example:
        >>> chain = Comparisons.from_votes([0, 1], [1, 2], [9, 1], [9, 1], prompt=[0, 0, 0])
        >>> best = next_comparison([0, 0, 0], chain)
        >>> best.first, best.second
        (0, 2)

    Reference:
        Lindley, On a measure of the information provided by an experiment, Annals of Mathematical Statistics 1956.
    """
    _check_size(comparisons.num_responses)  # before all pairs of them are listed
    graph = win_graph(comparisons, ties=ties)
    pairs = _candidates(candidates, graph)
    i, j = _indices(pairs[:, 0], pairs[:, 1], graph)
    across = graph.prompt[i] != graph.prompt[j]
    if across.any():
        at = int(np.flatnonzero(across)[0])
        raise GaugeError(
            "no vote can compare answers to two prompts",
            {"candidate": at, "first": int(i[at]), "second": int(j[at])},
            "Choose pairs of answers to one prompt.",
        )
    inverse = _inverse(scores, comparisons, graph, ties)
    theta = numbers("scores", scores)
    apart = graph.components[i] != graph.components[j]
    # Where nothing is known of a difference, either side may win.
    margin = np.where(apart, 0, theta[i] - theta[j])
    chance = special.expit(margin) * special.expit(-margin)
    resistance = np.where(apart, np.inf, _resistances(inverse, i, j))
    if target is None:
        gains = np.log1p(chance * resistance) / 2
    else:
        ends = whole_numbers("target", target)
        if ends.shape != (2,):
            raise DataError("a target is a pair of responses", {"shape": ends.shape}, "Give (first, second).")
        k, m = _indices(ends[0], ends[1], graph)
        if graph.components[k] != graph.components[m]:
            joins = _joins(graph, i, j, int(k), int(m))
            if not joins.any():
                raise IdentifiabilityError(
                    "the target is joined by no comparisons and by no single candidate",
                    {"first": int(k), "second": int(m)},
                    "Offer a pair that joins the sets of both.",
                )
            gains = np.where(joins, np.inf, 0.0)
        else:
            along = inverse[i, k] - inverse[i, m] - inverse[j, k] + inverse[j, m]
            gains = np.where(apart, 0.0, chance * along**2 / (1 + chance * np.where(apart, 0.0, resistance)))
    best = int(np.argmax(gains))
    return NextComparison(int(i[best]), int(j[best]), float(gains[best]), pairs, gains)


def _network(
    scores: ArrayLike, comparisons: Comparisons, ties: Ties | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Ends and conductance of every judged pair, checked."""
    votes, theta = tally(comparisons, ties), numbers("scores", scores)
    size = comparisons.num_responses
    _check_size(size)
    used = np.union1d(votes.first, votes.second)
    if theta.shape != (size,) or not np.isfinite(theta[used]).all():
        bad = used[~np.isfinite(theta[used])] if theta.shape == (size,) else []
        raise DataError(
            "there is one finite score per compared response",
            {"scores": theta.shape, "responses": size} | ({"response": int(bad[0])} if len(bad) else {}),
            "Give [N] scores; where the maximum of the likelihood does not exist, fit with a ridge.",
        )
    margin = theta[votes.first] - theta[votes.second]
    conductance = votes.votes * special.expit(margin) * special.expit(-margin)
    return votes.first, votes.second, conductance, size


def _check_size(responses: int) -> None:
    if responses > _LARGEST:
        raise SampleSizeError(
            "a dense matrix is made for so many responses and no more",
            {"responses": responses, "most": _LARGEST},
            "Ask `preferences.fit` for single contrasts, which needs none.",
        )


def _inverse(scores: ArrayLike, comparisons: Comparisons, graph: WinGraph, ties: Ties | None) -> np.ndarray:
    """The pseudo-inverse of the information: each component on the complement of its constant."""
    information = fisher(scores, comparisons, ties=ties)
    label = graph.components
    there = np.flatnonzero(label >= 0)
    count = np.bincount(label[there])
    same = label[there][:, None] == label[there]
    weight = np.bincount(label[there], information.diagonal()[there]) / count
    scale = np.where(weight > 0, weight, 1.0)[label[there]]
    # A constant of a component has an eigenvalue of the size of the others, which is taken off again.
    constant = np.where(same, (1 / count[label[there]])[:, None], 0)
    try:
        whole = np.linalg.inv(information[np.ix_(there, there)] + constant * scale[:, None])
    except np.linalg.LinAlgError:
        whole = np.full((len(there),) * 2, np.inf)
    inverse = whole - constant / scale[:, None]
    _check_rounding(information.diagonal()[there], inverse.diagonal(), label[there])
    out = np.zeros_like(information)
    out[np.ix_(there, there)] = inverse
    return out


def _check_rounding(conductance: np.ndarray, resistance: np.ndarray, label: np.ndarray) -> None:
    """Refuse a component in which what the largest conductance rounds is no longer small beside the smallest."""
    largest, longest = np.zeros((2, int(label.max(initial=-1)) + 1))
    np.maximum.at(largest, label, conductance)
    np.maximum.at(longest, label, np.abs(resistance))
    alone = np.bincount(label, minlength=len(largest)) < 2
    # Divided, since the resistance of no conductance may be infinite.
    most = np.divide(_ROUNDING / np.finfo(np.float64).eps, largest, out=np.zeros_like(largest), where=largest > 0)
    spoilt = ~((longest <= most) | alone)
    if spoilt.any():
        at = int(np.argmax(spoilt))
        raise RMJaxError(
            "the network is too uneven for float64: what its largest conductance rounds is more than the smallest",
            {"largest": float(largest[at]), "resistance": float(longest[at]), "response": int(np.argmax(label == at))},
            "Give scores that are closer, as of a fit with a ridge, and weights that are more even.",
        )


def _resistances(inverse: np.ndarray, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    return np.maximum(inverse[i, i] + inverse[j, j] - 2 * inverse[i, j], 0)


def _indices(first: ArrayLike, second: ArrayLike, graph: WinGraph) -> tuple[np.ndarray, np.ndarray]:
    """Indices of responses that are there."""
    i, j = whole_numbers("first", first), whole_numbers("second", second)
    try:
        i, j = np.broadcast_arrays(i, j)
    except ValueError as error:
        raise DataError(
            "indices come in pairs", {"first": i.shape, "second": j.shape}, "Give one second index for each first."
        ) from error
    size = len(graph.prompt)
    if i.size and not size:
        raise DataError("there are no responses", {"first": int(i.flat[0])}, "Give comparisons of two or more.")
    wrong = (np.minimum(i, j) < 0) | (np.maximum(i, j) >= size)
    wrong |= (graph.prompt[np.clip(i, 0, size - 1)] < 0) | (graph.prompt[np.clip(j, 0, size - 1)] < 0)
    if wrong.any():
        at = int(np.flatnonzero(wrong.ravel())[0])
        raise DataError(
            "there is no such response",
            {"first": int(i.flat[at]), "second": int(j.flat[at])},
            f"Indices run from 0 to {size - 1}; padding is none.",
        )
    return i, j


def _candidates(candidates: ArrayLike | None, graph: WinGraph) -> np.ndarray:
    if candidates is None:
        low, high = np.triu_indices(len(graph.prompt), k=1)
        keep = (graph.prompt[low] == graph.prompt[high]) & (graph.prompt[low] >= 0)
        pairs = np.stack([low[keep], high[keep]], axis=1)
    else:
        pairs = whole_numbers("candidates", candidates)
    if pairs.ndim != 2 or pairs.shape[1:] != (2,) or not len(pairs) or (pairs[:, 0] == pairs[:, 1]).any():
        raise DataError(
            "candidates are pairs of two responses", {"shape": pairs.shape}, "Give an array of shape [M, 2], M >= 1."
        )
    return pairs


def _joins(graph: WinGraph, i: np.ndarray, j: np.ndarray, k: int, m: int) -> np.ndarray:
    """Candidates that connect the components of two responses."""
    ends = np.sort([graph.components[i], graph.components[j]], axis=0)
    low, high = sorted((graph.components[k], graph.components[m]))
    return (ends[0] == low) & (ends[1] == high)
