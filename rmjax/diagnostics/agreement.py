"""How far the votes agree with one another, and the ceiling that this puts on any accuracy."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import ArrayLike

from rmjax.checks import one_of
from rmjax.comparisons import Ties
from rmjax.diagnostics.intervals import LEVEL, Estimate, clustered_proportion
from rmjax.errors import DataError


@dataclasses.dataclass(frozen=True)
class Ceiling:
    """The interval in which the best possible accuracy against single votes lies.

    The two ends are sharp: the lower one is reached when annotators either all agree or toss a coin, the upper one
    when every pair is equally contested. `confidence` is the interval pushed outwards by the sampling error of the
    agreement.
    """

    lower: float
    upper: float
    confidence: tuple[float, float]
    agreement: Estimate  # of two votes on one item, where an item weighs what it weighs in the accuracy
    covered: float = 1.0  # share of that weight on items with two votes; of the others nothing is known


@dataclasses.dataclass(frozen=True)
class Agreement:
    """Agreement of votes in four senses; None where the votes cannot tell, and `reason` says why."""

    measured: bool
    reason: str  # why there is no agreement or no ceiling; empty where there are both
    two_votes: Estimate | None = None  # two votes on one pair are the same, of first, second and tie
    two_votes_decided: Estimate | None = None  # the same, among pairs of votes of which neither is a tie
    vote_and_rest: Estimate | None = None  # one vote against the majority of the others, ties left out
    vote_and_gold: Estimate | None = None  # single votes against the decided label, ties left out
    ceiling: Ceiling | None = None


def ceiling_bounds(agreement: Estimate, *, covered: float = 1.0) -> Ceiling:
    r"""Sharp bounds on the best accuracy against one held-out vote, from the agreement of two votes.

    With $\delta = 2p - 1$ and $p$ the share of annotators who choose the first, agreement is
    $A = (1 + E\delta^2)/2$ and the best accuracy $C = (1 + E|\delta|)/2$. Since $\delta^2 \le |\delta| \le 1$,

    $$A \;\le\; C \;\le\; \frac{1 + \sqrt{2A - 1}}{2}.$$

    Of items with one vote nothing is known but that $1/2 \le C \le 1$; with a share $c$ of the weight on the others,
    the ends are $cA + (1 - c)/2$ and $c(1 + \sqrt{2A - 1})/2 + 1 - c$.

    An accuracy inside the interval says nothing against the model or the data; one above it says that something in
    the pipeline leaks. The ceiling is for single votes: a majority of several votes has a higher one.

    Guarantees: lower <= upper; both ends rise with A; with c = 1 both are A itself at 1/2 and at 1.

    Args:
        agreement: chance that two votes on one item agree, where items weigh what they weigh in the accuracy.
        covered: share of the weight that is on items with two votes.

    Returns:
        The bounds. A measured agreement below 1/2, which no population has, counts as 1/2.

    Example:
        >>> from rmjax.diagnostics import clustered_proportion
        >>> ceiling = ceiling_bounds(clustered_proportion([3, 3], [4, 4], cluster=[0, 1]))
        >>> print(f"{ceiling.lower:.4f} {ceiling.upper:.4f}")
        0.7500 0.8536

    Reference:
        Jensen's inequality; both ends are attained by a two-point mixture and by a single point.
    """
    share = np.maximum([agreement.value, agreement.lower, agreement.upper], 0.5)
    lower = covered * share + (1 - covered) / 2
    upper = covered * (1 + np.sqrt(2 * share - 1)) / 2 + 1 - covered
    return Ceiling(float(lower[0]), float(upper[0]), (float(lower[1]), float(upper[2])), agreement, covered)


def vote_agreement(
    votes: ArrayLike,
    cluster: ArrayLike,
    *,
    gold: ArrayLike | None = None,
    selected: bool = False,
    ties: Ties | None = None,
    weight: ArrayLike | None = None,
    level: float = LEVEL,
) -> Agreement:
    r"""Agreement of the votes on every item, and the ceiling of an accuracy against them.

    The agreements are pooled over the pairs of votes within an item, so that an item of five votes counts ten times as
    much as one of two. An accuracy weighs items otherwise, by `weight`; so does the agreement of its ceiling:

    $$A = \frac{\sum_i w_i A_i}{\sum_i w_i}, \qquad
      A_i = \frac{a_i(a_i - 1) + b_i(b_i - 1)}{(a_i + b_i)(a_i + b_i - 1)}$$

    Where half of every tie counts for either side, ties are votes too, and a pair of votes with a tie agrees by half.

    Guarantees: exchanging the two sides of any item changes nothing; "cannot judge" is no vote; items with one vote
    change none of the agreements among votes. No rule that sees the items and not the votes has an expected accuracy
    beyond the ceiling of the true agreement.

    Args:
        votes: counts of first, second, tie and optionally cannot judge, [items, 3 or 4]; whole numbers.
        cluster: the prompt or source of every item, [items].
        gold: +1 first, -1 second, 0 undecided, [items], where a decided label exists.
        selected: the set was filtered by agreement, so that its agreement is that of the filter and no ceiling holds.
        ties: what the accuracy does with votes for "equally good": "half", or it leaves them out.
        weight: what every item weighs in the accuracy, [items]; as much as it has votes that count, if unset.
        level: confidence level.

    Returns:
        The figures with clustered intervals. With one vote an item agreement is not measured, and the result says so.

    Raises:
        DataError: the counts are not whole, are negative, or have another shape, a weight is none, or `ties` is no
            policy.

    Example:
        >>> counts = [[3, 0, 0], [1, 2, 0], [2, 1, 1], [0, 4, 0]]
        >>> result = vote_agreement(counts, cluster=[0, 1, 2, 3])
        >>> result.two_votes_decided.value, result.vote_and_rest.count
        (0.7333333333333333, 9.0)
        >>> vote_agreement([[1, 0, 0], [0, 1, 0]], cluster=[0, 1]).reason
        'no pair has two votes'
    """
    counts = _counts(votes)
    if ties is not None:
        one_of("ties", ties, ("drop", "half"))
    member = np.asarray(cluster)
    first, second, tied = counts[:, 0], counts[:, 1], counts[:, 2]
    decided = first + second

    def share(right: np.ndarray, trials: np.ndarray) -> Estimate | None:
        return clustered_proportion(right, trials, member, level=level) if trials.any() else None

    vote_and_gold = None
    if gold is not None:
        label = np.asarray(gold)
        vote_and_gold = share(first * (label > 0) + second * (label < 0), decided * (label != 0))
    same = _pairs(first) + _pairs(second)
    two_votes = share(same + _pairs(tied), _pairs(decided + tied))
    two_votes_decided = share(same, _pairs(decided))
    ceiling, reason = None, ""
    if two_votes is None:
        reason = "no pair has two votes"
    elif selected:
        reason = "the pairs were selected by agreement"
    else:
        ceiling = _ceiling(counts, member, ties, weight, level)
        which = "" if two_votes_decided is None and ties != "half" else " that weighs anything"
        votes_of = "two votes" if ties == "half" else "two votes that are not ties"
        reason = "" if ceiling else f"no pair{which} has {votes_of}"
    return Agreement(
        measured=two_votes is not None,
        reason=reason,
        two_votes=two_votes,
        two_votes_decided=two_votes_decided,
        vote_and_rest=share(*_leave_one_out(first, second)),
        vote_and_gold=vote_and_gold,
        ceiling=ceiling,
    )


def _ceiling(
    counts: np.ndarray, cluster: np.ndarray, ties: Ties | None, weight: ArrayLike | None, level: float
) -> Ceiling | None:
    """Bounds on an accuracy that weighs items so; nothing where no item of two votes weighs anything."""
    first, second = counts[:, 0], counts[:, 1]
    tied = counts[:, 2] if ties == "half" else np.zeros_like(first)
    number = first + second + tied
    same = _pairs(first) + _pairs(second) + (_pairs(tied) + tied * (first + second)) / 2
    weights = np.where(number > 0, number if weight is None else _weights(weight, len(counts)), 0)
    two = number >= 2
    known = np.where(two, weights, 0)
    if not known.any():
        return None
    share = clustered_proportion(known * same / np.where(two, _pairs(number), 1), known, cluster, level=level)
    return ceiling_bounds(share, covered=float(known.sum() / weights.sum()))


def _weights(weight: ArrayLike, items: int) -> np.ndarray:
    """Weights in float64, checked."""
    try:
        given = np.asarray(weight, np.float64)
    except (ValueError, TypeError):  # words, or rows of different lengths
        given = np.full(0, np.nan)
    with np.errstate(over="ignore"):
        right = given.shape == (items,) and (given >= 0).all() and np.isfinite(given.sum())
    if not right:
        raise DataError(
            "there is one weight an item, finite and not negative",
            {"items": items, "weights": np.shape(given)},
            "Give what every item weighs in the accuracy, as Targets.counts does.",
        )
    return given


def _counts(votes: ArrayLike) -> np.ndarray:
    """Vote counts in float64, checked."""
    try:
        counts = np.asarray(votes, np.float64)
    except (ValueError, TypeError):  # words, or rows of different lengths
        counts = np.zeros((0, 0))
    if counts.ndim != 2 or counts.shape[1] not in (3, 4):
        raise DataError(
            "vote counts have three or four columns",
            {"shape": counts.shape},
            "Give counts of first, second, tie and, if there are any, cannot judge.",
        )
    wrong = ~((counts >= 0) & (counts == np.floor(counts)) & np.isfinite(counts)).all(axis=1)
    if wrong.any():
        item = int(np.flatnonzero(wrong)[0])
        raise DataError(
            "vote counts are whole and not negative",
            {"item": item, "counts": counts[item].tolist()},
            "Agreement needs the votes themselves, not their shares.",
        )
    return counts


def _pairs(n: np.ndarray) -> np.ndarray:
    """Pairs among n votes."""
    return n * (n - 1) / 2


def _leave_one_out(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Votes that agree with the majority of the other decided votes, and votes for which there is a majority."""
    right, trials = np.zeros_like(first), np.zeros_like(first)
    for own, other in ((first, second), (second, first)):
        lead = own - 1 - other
        right += own * (lead > 0)
        trials += own * (lead != 0)
    return right, trials
