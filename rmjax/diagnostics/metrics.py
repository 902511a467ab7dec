"""What a margin is worth against labels: accuracy, likelihood and margin, as sums and counts and with intervals."""

from __future__ import annotations

import dataclasses
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from rmjax.comparisons import Comparisons, Ties, Unit, check_ties
from rmjax.diagnostics.intervals import LEVEL, Estimate, clustered_mean, clustered_proportion
from rmjax.errors import DataError

ScoreTies = Literal["wrong", "half"]
Terms = tuple[np.ndarray, np.ndarray]  # sums [E] and counts [E], float64


@dataclasses.dataclass(frozen=True)
class Targets:
    """What margins are held against: weighted votes for either side, after the tie policy, and their clusters.

    A gold label is one vote. Every metric below is a sum over comparisons divided by a sum over comparisons.

    Example:
        >>> pairs = Comparisons.from_votes([0], [1], [3], [1], prompt=[0, 0], ties=[2])
        >>> half = Targets.from_votes(pairs, ties="half", cluster=[0])
        >>> half.first, half.second
        (array([4.]), array([2.]))
    """

    first: np.ndarray  # [E] float64, votes for the first; 0 where the comparison does not count
    second: np.ndarray  # [E] float64
    weight: np.ndarray  # [E] float64, what one vote of this comparison weighs
    cluster: np.ndarray  # [E] int64

    @property
    def counts(self) -> np.ndarray:
        """The denominator of every comparison: weight times votes, [E]."""
        return self.weight * (self.first + self.second)

    @classmethod
    def from_votes(
        cls, comparisons: Comparisons, *, cluster: ArrayLike, ties: Ties | None = None, unit: Unit = "vote"
    ) -> Targets:
        """Targets from the votes themselves.

        Args:
            comparisons: the judged pairs; padding has weight 0.
            cluster: the prompt or source of every comparison, [E].
            ties: what happens to votes for "equally good".
            unit: what counts as one: each vote, each comparison or each prompt.

        Returns:
            The targets.

        Raises:
            DataError: there are ties and `ties` is unset, or the lengths differ.

        Example:
            >>> pairs = Comparisons.from_pairs([0], [1], prompt=[0, 0])
            >>> Targets.from_votes(pairs, cluster=[0]).counts
            array([1.])
        """
        check_ties(comparisons, ties)
        weighed = comparisons.weigh(unit, ties)
        first, second, tied, weight = (
            np.asarray(x, np.float64) for x in (weighed.wins_first, weighed.wins_second, weighed.ties, weighed.weight)
        )
        if ties == "half":
            first, second = first + tied / 2, second + tied / 2
        member = np.asarray(cluster, np.int64)
        if member.shape != first.shape:
            raise DataError(
                "there is one cluster per comparison",
                {"comparisons": first.shape, "cluster": member.shape},
                "Give the prompt or the source of every comparison.",
            )
        return cls(first, second, weight, member)

    @classmethod
    def from_gold(
        cls, comparisons: Comparisons, gold: ArrayLike, *, cluster: ArrayLike, unit: Unit = "vote"
    ) -> Targets:
        """Targets from one decided label a comparison.

        Args:
            comparisons: the judged pairs; their votes are not looked at.
            gold: +1 where the first is better, -1 where the second is, 0 where there is no decided label, [E].
            cluster: the prompt or source of every comparison, [E].
            unit: what counts as one; with one label a comparison "vote" and "comparison" are the same.

        Returns:
            The targets; comparisons without a decided label count nothing.

        Raises:
            DataError: a label is none of the three, or the lengths differ.

        Example:
            >>> pairs = Comparisons.from_pairs([0, 0], [1, 2], prompt=[0, 0, 0])
            >>> Targets.from_gold(pairs, [-1, 0], cluster=[0, 0]).counts
            array([1., 0.])
        """
        label = np.asarray(gold)
        if label.shape != np.shape(comparisons.first) or not np.isin(label, (-1, 0, 1)).all():
            raise DataError(
                "gold is +1, -1 or 0, one per comparison",
                {"comparisons": np.shape(comparisons.first), "gold": label.shape},
                "Give +1 where the first is better, -1 where the second is, 0 where nothing was decided.",
            )
        decided = dataclasses.replace(
            comparisons,
            wins_first=(label == 1).astype(np.float32),
            wins_second=(label == -1).astype(np.float32),
            ties=np.zeros(label.shape, np.float32),
        )
        return cls.from_votes(decided, cluster=cluster, unit=unit)


def accuracy_terms(margins: ArrayLike, targets: Targets, *, score_ties: ScoreTies = "wrong") -> Terms:
    r"""Votes that the sign of the margin agrees with, and all votes, per comparison.

    $$S_e = w_e\,\big(a_e[\Delta_e > 0] + b_e[\Delta_e < 0]\big), \qquad C_e = w_e\,(a_e + b_e)$$

    A margin of exactly 0 decides nothing: "wrong" gives it nothing, "half" half of the votes.

    Args:
        margins: score of the first minus score of the second, [E].
        targets: the labels.
        score_ties: what a margin of 0 earns.

    Returns:
        Sums and counts, [E] each.

    Raises:
        DataError: a margin that counts is not finite, or the lengths differ.

    Example:
        >>> labels = Targets.from_votes(Comparisons.from_votes([0], [1], [3], [1], prompt=[0, 0]), cluster=[0])
        >>> accuracy_terms([0.2], labels)
        (array([3.]), array([4.]))
    """
    margin, counts = checked_margins(margins, targets), targets.counts
    right = targets.first * (margin > 0) + targets.second * (margin < 0)
    if score_ties == "half":
        right = right + (targets.first + targets.second) / 2 * (margin == 0)
    return targets.weight * right, counts


def likelihood_terms(margins: ArrayLike, targets: Targets) -> Terms:
    r"""Bradley-Terry negative log-likelihood in nats, and the votes that it is a sum over, per comparison.

    $$S_e = w_e\,\big(a_e \log(1 + e^{-\Delta_e}) + b_e \log(1 + e^{\Delta_e})\big)$$

    Args:
        margins: score of the first minus score of the second, in logits, [E].
        targets: the labels.

    Returns:
        Sums and counts, [E] each.

    Raises:
        DataError: as `accuracy_terms`.

    Example:
        >>> labels = Targets.from_votes(Comparisons.from_pairs([0], [1], prompt=[0, 0]), cluster=[0])
        >>> print(likelihood_terms([3.0], labels)[0].round(4))
        [0.0486]
    """
    margin = checked_margins(margins, targets)
    loss = targets.first * np.logaddexp(0, -margin) + targets.second * np.logaddexp(0, margin)
    return targets.weight * loss, targets.counts


def margin_terms(margins: ArrayLike, targets: Targets) -> Terms:
    r"""The margin of the chosen over the rejected answer, per vote.

    $$S_e = w_e\,(a_e - b_e)\,\Delta_e$$

    Args:
        margins: score of the first minus score of the second, in logits, [E].
        targets: the labels; with one vote a pair this is chosen minus rejected.

    Returns:
        Sums and counts, [E] each.

    Raises:
        DataError: as `accuracy_terms`.

    Example:
        >>> labels = Targets.from_votes(Comparisons.from_votes([0], [1], [3], [1], prompt=[0, 0]), cluster=[0])
        >>> margin_terms([0.5], labels)
        (array([1.]), array([4.]))
    """
    margin = checked_margins(margins, targets)
    return targets.weight * (targets.first - targets.second) * margin, targets.counts


def accuracy(
    margins: ArrayLike, targets: Targets, *, score_ties: ScoreTies = "wrong", level: float = LEVEL
) -> Estimate:
    """Share of the labels that the sign of the margin agrees with, with its clustered interval.

    Guarantees: a positive rescaling of the margins changes nothing; with score ties as halves the accuracy of the
    negated margins is 1 minus this one.

    Args:
        margins: score of the first minus score of the second, [E].
        targets: the labels.
        score_ties: what a margin of 0 earns.
        level: confidence level.

    Returns:
        The estimate.

    Raises:
        DataError: as `accuracy_terms`.

    Example:
        >>> labels = Targets.from_votes(Comparisons.from_pairs([0, 2], [1, 3], prompt=[0, 0, 1, 1]), cluster=[0, 1])
        >>> accuracy([1.0, 0.0], labels, score_ties="half").value
        0.75
    """
    return clustered_proportion(*accuracy_terms(margins, targets, score_ties=score_ties), targets.cluster, level=level)


def negative_log_likelihood(margins: ArrayLike, targets: Targets, *, level: float = LEVEL) -> Estimate:
    """Mean Bradley-Terry loss in nats per label, with its clustered interval; `count` is the denominator.

    Args:
        margins: score of the first minus score of the second, in logits, [E].
        targets: the labels.
        level: confidence level.

    Returns:
        The estimate. A model that decides nothing scores log 2 = .693.

    Raises:
        DataError: as `accuracy_terms`.

    Example:
        >>> labels = Targets.from_votes(Comparisons.from_pairs([0], [1], prompt=[0, 0]), cluster=[0])
        >>> round(negative_log_likelihood([0.0], labels).value, 4)
        0.6931
    """
    return clustered_mean(*likelihood_terms(margins, targets), targets.cluster, level=level)


def mean_margin(margins: ArrayLike, targets: Targets, *, level: float = LEVEL) -> Estimate:
    """Mean margin of the chosen over the rejected answer in logits, with its clustered interval.

    Args:
        margins: score of the first minus score of the second, in logits, [E].
        targets: the labels.
        level: confidence level.

    Returns:
        The estimate.

    Raises:
        DataError: as `accuracy_terms`.

    Example:
        >>> labels = Targets.from_votes(Comparisons.from_pairs([0], [1], prompt=[0, 0]), cluster=[0])
        >>> mean_margin([0.5], labels).value
        0.5
    """
    return clustered_mean(*margin_terms(margins, targets), targets.cluster, level=level)


def checked_margins(margins: ArrayLike, targets: Targets) -> np.ndarray:
    """Margins in float64, 0 where they do not count; a margin that counts must be finite."""
    margin, used = np.asarray(margins, np.float64), targets.counts > 0
    if margin.shape != used.shape:
        raise DataError(
            "there is one margin per comparison",
            {"comparisons": used.shape, "margins": margin.shape},
            "Give the score of the first minus the score of the second for every comparison.",
        )
    wrong = used & ~np.isfinite(margin)
    if wrong.any():
        e = int(np.flatnonzero(wrong)[0])
        raise DataError(
            "a margin is not finite",
            {"comparison": e, "margin": margin[e]},
            "Look at the scores of its two answers: the model returned no number for one of them.",
        )
    return np.where(used, margin, 0.0)
