"""One evaluation, summarised: every number that a report shows."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from rmjax.diagnostics.agreement import Agreement, vote_agreement
from rmjax.diagnostics.calibration import Reliability, reliability
from rmjax.diagnostics.evaluation import Evaluation, Levels, Provenance, SwapCheck
from rmjax.diagnostics.intervals import LEVEL, Estimate
from rmjax.diagnostics.length import LengthBaseline, length_baseline
from rmjax.diagnostics.metrics import Targets, accuracy, mean_margin, negative_log_likelihood
from rmjax.diagnostics.settling import Settling, settling_curve
from rmjax.errors import DataError


@dataclasses.dataclass(frozen=True)
class Counts:
    """What was judged, and what became of it."""

    comparisons: int
    prompts: int
    clusters: int
    votes_first: float
    votes_second: float
    ties: float
    abstentions: float
    score_ties: int  # margins of exactly 0
    gold: int  # decided labels


@dataclasses.dataclass(frozen=True)
class Scores:
    """A model against one kind of label, with length beside it."""

    accuracy: Estimate  # a margin of 0 is wrong
    accuracy_half: Estimate  # a margin of 0 is half right
    loss: Estimate  # nats per label
    margin: Estimate  # logits, chosen minus rejected
    length: LengthBaseline


@dataclasses.dataclass(frozen=True)
class Summary:
    """Every number of an evaluation. Levels of scores stand apart, in `levels`, for the JSON only."""

    provenance: Provenance
    cluster_name: str
    ties: str  # "drop", "half" or "none"
    unit: str
    level: float
    counts: Counts
    against_votes: Scores
    against_gold: Scores | None
    agreement: Agreement
    calibration: Reliability
    settling: Settling | None
    end_point_residual: float
    swap: SwapCheck | None
    levels: Levels | None


def summarise(evaluation: Evaluation, *, level: float = LEVEL, num_bins: int = 10) -> Summary:
    """Measure everything that the arrays allow; what they do not allow is None or says why.

    Guarantees: exchanging the two sides of any comparison, with its labels, changes nothing; padding changes nothing;
    every interval is clustered by `evaluation.cluster`.

    Args:
        evaluation: margins, labels and clusters.
        level: confidence level of the intervals.
        num_bins: bins of the reliability diagram.

    Returns:
        The summary.

    Raises:
        DataError: no comparison counts, ties are present without a policy, or a margin is not finite.

    Example:
        >>> from rmjax import Comparisons
        >>> pairs = Evaluation(
        ...     margins=np.array([1.0, -0.5]),
        ...     comparisons=Comparisons.from_pairs([0, 2], [1, 3], prompt=[0, 0, 1, 1]),
        ...     cluster=np.array([0, 1]),
        ...     token_lengths=np.array([9, 4, 6, 6]),
        ...     provenance=Provenance("a model", "0f3a", "pairs.jsonl"),
        ... )
        >>> summary = summarise(pairs)
        >>> summary.against_votes.accuracy.value, summary.agreement.measured
        (0.5, False)
    """
    c, used = evaluation.comparisons, evaluation.used
    votes = Targets.from_votes(c, cluster=evaluation.cluster, ties=evaluation.ties, unit=evaluation.unit)
    if not (votes.counts > 0).any():
        raise DataError(
            "no comparison has a vote that counts",
            {"comparisons": int(used.sum()), "ties": evaluation.ties},
            'Look at the file with `rmjax inspect`; if all votes are ties, only ties="half" counts them.',
        )
    gold = None
    if evaluation.gold is not None and np.any(np.asarray(evaluation.gold)[used]):
        gold = Targets.from_gold(c, evaluation.gold, cluster=evaluation.cluster, unit=evaluation.unit)
    noise = evaluation.swap.largest_sum if evaluation.swap else 0.0

    def total(x) -> float:
        return float(np.asarray(x, np.float64)[used].sum())

    return Summary(
        provenance=evaluation.provenance,
        cluster_name=evaluation.cluster_name,
        ties=evaluation.ties or "none",
        unit=evaluation.unit,
        level=level,
        counts=Counts(
            comparisons=int(used.sum()),
            prompts=len(np.unique(np.asarray(c.prompt)[np.asarray(c.first)[used]])),
            clusters=len(np.unique(evaluation.cluster[used])),
            votes_first=total(c.wins_first),
            votes_second=total(c.wins_second),
            ties=total(c.ties),
            abstentions=evaluation.abstentions,
            score_ties=int((np.asarray(evaluation.margins)[used] == 0).sum()),
            gold=int(np.count_nonzero(np.asarray(evaluation.gold)[used])) if gold else 0,
        ),
        against_votes=_scores(evaluation, votes, level),
        against_gold=_scores(evaluation, gold, level) if gold else None,
        agreement=_agreement(evaluation, votes, level),
        calibration=reliability(evaluation.margins, votes, num_bins=num_bins),
        settling=None
        if evaluation.layer_margins is None
        else settling_curve(evaluation.layer_margins, gold or votes, noise=noise, level=level),
        end_point_residual=evaluation.end_point_residual,
        swap=evaluation.swap,
        levels=evaluation.levels,
    )


def as_json(value: Any) -> Any:
    """Plain lists, dicts, numbers and strings; what is not a number becomes None, since JSON has no NaN.

    Args:
        value: dataclasses, tuples, dicts, NumPy or Python numbers, strings.

    Returns:
        What `json.dumps(..., allow_nan=False)` takes.

    Example:
        >>> as_json({"agreement": (np.float32(0.5), float("nan"))})
        {'agreement': [0.5, None]}
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: as_json(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(name): as_json(entry) for name, entry in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return as_json(value.tolist())
    if isinstance(value, list | tuple):
        return [as_json(entry) for entry in value]
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value


def _scores(evaluation: Evaluation, targets: Targets, level: float) -> Scores:
    """The model and length against one kind of label."""
    margins = evaluation.margins
    return Scores(
        accuracy=accuracy(margins, targets, level=level),
        accuracy_half=accuracy(margins, targets, score_ties="half", level=level),
        loss=negative_log_likelihood(margins, targets, level=level),
        margin=mean_margin(margins, targets, level=level),
        length=length_baseline(margins, evaluation.token_lengths, evaluation.comparisons, targets, level=level),
    )


def _agreement(evaluation: Evaluation, targets: Targets, level: float) -> Agreement:
    """Agreement of the single votes; not measured where the file has none."""
    used = evaluation.used
    if evaluation.votes is None:
        c = evaluation.comparisons
        votes = np.stack([np.asarray(x, np.float64)[used] for x in (c.wins_first, c.wins_second, c.ties)])
        whole = np.array_equal(votes, votes.round())
        return Agreement(False, "the file holds one label a pair" if whole else "the file holds shares of votes")
    gold = None if evaluation.gold is None else np.asarray(evaluation.gold)[used]
    return vote_agreement(
        np.asarray(evaluation.votes)[used],
        np.asarray(evaluation.cluster)[used],
        gold=gold,
        selected=evaluation.selected,
        ties=evaluation.ties,
        weight=targets.counts[used],
        level=level,
    )
