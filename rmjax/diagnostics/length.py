"""The baseline that every accuracy has to beat: the longer answer wins."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import ArrayLike

from rmjax.comparisons import Comparisons
from rmjax.diagnostics.intervals import LEVEL, Estimate, clustered_mean, paired_difference
from rmjax.diagnostics.metrics import Targets, accuracy, accuracy_terms
from rmjax.errors import DataError


@dataclasses.dataclass(frozen=True)
class LengthBaseline:
    """How often the longer answer is the preferred one, and what a model adds to length.

    Where the shorter answer wins more often than not, a model that prefers short answers looks good without reading
    them, so both gains are measured against the better of the two rules, which `rule` names.
    """

    longer_wins: Estimate  # equal lengths count half
    rule: str  # "longer" or "shorter": the rule that is right more often on these pairs
    gain: Estimate  # accuracy of the model minus that of the rule on the same pairs, mean over clusters
    pooled_gain: Estimate  # the same with all pairs pooled: the difference of the two accuracies


def length_margins(lengths: ArrayLike, comparisons: Comparisons) -> np.ndarray:
    """Length of the first answer minus length of the second, so that length is a scorer like any other.

    Args:
        lengths: tokens (or characters) of every response, [N].
        comparisons: the judged pairs.

    Returns:
        Differences, [E] float64.

    Raises:
        DataError: there is not one length per response.

    Example:
        >>> length_margins([9, 4], Comparisons.from_pairs([1], [0], prompt=[0, 0]))
        array([-5.])
    """
    length = np.asarray(lengths, np.float64)
    if length.shape != (comparisons.num_responses,):
        raise DataError(
            "there is one length per response",
            {"responses": comparisons.num_responses, "lengths": length.shape},
            "Give the number of tokens of every answer, in the order of the scores.",
        )
    return length[np.asarray(comparisons.first)] - length[np.asarray(comparisons.second)]


def length_baseline(
    margins: ArrayLike, lengths: ArrayLike, comparisons: Comparisons, targets: Targets, *, level: float = LEVEL
) -> LengthBaseline:
    """Hold a model's decisions against those of length, on the same labels.

    Guarantees: both sides count ties as halves; both gains are paired by cluster; swapping the two sides of any
    comparison changes nothing. The two gains differ where clusters differ in size: with few of them, the mean over
    clusters is the one whose t interval can be trusted.

    Args:
        margins: score of the first minus score of the second, [E].
        lengths: tokens of every response, [N].
        comparisons: the judged pairs.
        targets: the labels, from votes or from gold.
        level: confidence level.

    Returns:
        The baseline and the gains over it.

    Raises:
        DataError: as `length_margins` and `accuracy_terms`.

    Example:
        >>> pairs = Comparisons.from_pairs([0, 2], [1, 3], prompt=[0, 0, 1, 1])
        >>> labels = Targets.from_votes(pairs, cluster=[0, 1])
        >>> baseline = length_baseline([1.0, 1.0], [5, 3, 2, 8], pairs, labels)
        >>> baseline.longer_wins.value, baseline.gain.value
        (0.5, 0.5)
    """
    longer = length_margins(lengths, comparisons)
    share = accuracy(longer, targets, score_ties="half", level=level)
    rule, sign = ("shorter", -1) if share.value < 0.5 else ("longer", 1)
    by_model, counts = accuracy_terms(margins, targets, score_ties="half")
    by_rule, _ = accuracy_terms(sign * longer, targets, score_ties="half")
    return LengthBaseline(
        longer_wins=share,
        rule=rule,
        gain=paired_difference(by_model, by_rule, counts, targets.cluster, level=level),
        pooled_gain=clustered_mean(by_model - by_rule, counts, targets.cluster, level=level),
    )
