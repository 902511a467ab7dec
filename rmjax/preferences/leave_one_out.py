"""How often an annotator votes as the majority of the others does."""

from __future__ import annotations

import dataclasses

import numpy as np

from rmjax.errors import SampleSizeError
from rmjax.preferences.agreement import checked_confidence
from rmjax.preferences.resampling import draws
from rmjax.votes import CANNOT_JUDGE, FIRST, SECOND, TIE, Votes


@dataclasses.dataclass(frozen=True)
class LeaveOneOut:
    """Votes against the majority of the other annotators on the same item, by annotator and in all."""

    annotator: np.ndarray  # [A] int32, everybody with a vote, in order
    agreeing: np.ndarray  # [A] int64, votes that are those of the majority of the others
    judged: np.ndarray  # [A] int64, votes for which there is such a majority
    share: np.ndarray  # [A] float64, agreeing / judged; NaN where none is judged
    standard_error: np.ndarray  # [A] float64, over items; NaN below two items and where they do not differ
    pooled: float  # share of all judged votes
    lower: float  # of the pooled share; NaN where the items do not differ
    upper: float
    confidence: float
    ties: int  # votes for "equally good", left out
    abstentions: int  # "cannot judge", left out
    undecided: int  # decided votes whose item has no majority among the others, left out


def leave_one_out_agreement(
    votes: Votes, *, confidence: float = 0.95, resamples: int = 1000, seed: int = 0
) -> LeaveOneOut:
    r"""Share of an annotator's votes that agree with the majority of the others on the same item.

    $$s_a = \frac{\sum_v [v = \operatorname{sign} m_v]}{\sum_v [m_v \ne 0]}, \qquad
      m_v = \sum_{u \text{ on the item of } v,\; a_u \ne a} u, \qquad v, u \in \{+1, -1\}$$

    Only votes for one of the sides count. A tie is neither agreement nor disagreement and is left out on both sides of
    the comparison; "cannot judge" is no vote; where the others are evenly split or silent there is nothing to agree
    with. The majority of few others errs too: a share of 0.8 against two others is more than against twenty.

    Guarantees: exchanging the sides of any item changes nothing; all of an annotator's votes on an item are left out of
    the others'; where nobody votes twice on an item the pooled share is `vote_and_rest` of
    `rmjax.diagnostics.vote_agreement`. The interval is of items drawn anew (percentiles).

    Args:
        votes: single judgements.
        confidence: of the interval.
        resamples: how often items are drawn anew.
        seed: of the draws.

    Returns:
        The shares, and what was left out.

    Raises:
        SampleSizeError: no vote has a majority of others.
        DataError: the confidence lies outside (0, 1), or there are fewer than two resamples.

    Example:
        >>> votes = Votes.build(item=[0, 0, 0, 1, 1, 1], annotator=[7, 8, 9, 7, 8, 9], value=[0, 0, 1, 1, 1, 1])
        >>> result = leave_one_out_agreement(votes)
        >>> print(result.share, result.judged, result.undecided)
        [1.  1.  0.5] [1 1 2] 2
    """
    tail = (1 - checked_confidence(confidence)) / 2
    annotator, member = np.unique(votes.annotator, return_inverse=True)
    decided = votes.value <= SECOND
    item, member = np.unique(votes.item[decided], return_inverse=True)[1], member[decided]
    sign = np.where(votes.value[decided] == FIRST, 1, -1)
    own = np.unique(item.astype(np.int64) * len(annotator) + member, return_inverse=True)[1]
    # Differences of small whole numbers, which float64 sums exactly.
    lead = np.bincount(item, weights=sign)[item] - np.bincount(own, weights=sign)[own]
    counts = lead != 0
    if not counts.any():
        raise SampleSizeError(
            "no vote has a majority of others to agree with",
            {"votes": len(votes.item), "decided": len(sign)},
            "Let three or more annotators judge the same items.",
        )
    right = (np.sign(lead) == sign) & counts
    judged = np.bincount(member[counts], minlength=len(annotator))
    agreeing = np.bincount(member[right], minlength=len(annotator))
    share = np.divide(agreeing, judged, out=np.full(len(annotator), np.nan), where=judged > 0)
    used = np.unique(item[counts], return_inverse=True)[1]
    by_item = np.stack([np.bincount(used, weights=right[counts]), np.bincount(used)], axis=1)
    drawn = np.concatenate([d @ by_item for d in draws(len(by_item), resamples, seed)])
    pooled = drawn[:, 0] / drawn[:, 1]
    told = np.ptp(pooled) > 0
    lower, upper = np.quantile(pooled, [tail, 1 - tail]) if told else (np.nan, np.nan)
    return LeaveOneOut(
        annotator=annotator,
        agreeing=agreeing,
        judged=judged,
        share=share,
        standard_error=_errors(right[counts] - share[member[counts]], own[counts], member[counts], judged),
        pooled=float(agreeing.sum() / judged.sum()),
        lower=float(lower),
        upper=float(upper),
        confidence=confidence,
        ties=int((votes.value == TIE).sum()),
        abstentions=int((votes.value == CANNOT_JUDGE).sum()),
        undecided=int((~counts).sum()),
    )


def _errors(residual: np.ndarray, own: np.ndarray, member: np.ndarray, judged: np.ndarray) -> np.ndarray:
    """Linearised errors of shares over items, per annotator."""
    _, at, row = np.unique(own, return_index=True, return_inverse=True)
    of = member[at]
    items = np.bincount(of, minlength=len(judged))
    square = np.bincount(of, weights=np.bincount(row, weights=residual) ** 2, minlength=len(judged))
    known = (items > 1) & (square > 1e-12)
    scale = np.divide(items, (items - 1.0) * judged**2.0, out=np.full(len(judged), np.nan), where=known)
    return np.sqrt(square * scale)
