"""The nearest Bradley-Terry model to any shares of votes, and how far it is."""

from __future__ import annotations

import dataclasses

import numpy as np
from scipy import special

from rmjax.comparisons import Comparisons, Ties
from rmjax.errors import DataError
from rmjax.identifiability.identify import Identification
from rmjax.identifiability.tally import Tally, tally
from rmjax.preferences.fit import fit


@dataclasses.dataclass(frozen=True)
class Projection:
    """The scores whose probabilities are nearest to the shares of the votes, and what they leave.

    Scores are those of `fit`. Between strong components the nearest probabilities are 0 and 1, which leave nothing.
    """

    scores: np.ndarray  # [N] logits, NaN where no finite value exists
    probability: np.ndarray  # [P] of the first of every judged pair, in the order of `pairs`
    residual: np.ndarray  # [P] nats, n KL(share || probability); not negative
    pairs: Tally
    degrees_of_freedom: int  # pairs minus free scores, within strong components
    identification: Identification

    @property
    def total(self) -> float:
        """Nats that a scalar loses on these votes against their own shares."""
        return float(self.residual.sum())

    @property
    def per_vote(self) -> float:
        """The same, per vote; 0 without votes."""
        votes = float(self.pairs.votes.sum())
        return self.total / votes if votes else 0.0

    @property
    def deviance(self) -> float:
        """Twice the nats: about chi-squared under a scalar where every pair has many votes."""
        return 2 * self.total

    @property
    def pearson(self) -> float:
        """Sum of squared residuals over their variances, another such statistic."""
        n, p = self.pairs.votes, self.probability
        within = (p > 0) & (p < 1)
        gap = (self.pairs.wins_first - n * p)[within]
        return float((gap**2 / (n * p * (1 - p))[within]).sum())


def project_to_bradley_terry(comparisons: Comparisons, *, ties: Ties | None = None) -> Projection:
    r"""The Bradley-Terry model that is nearest to the shares of the votes in Kullback-Leibler divergence.

    $$\arg\min_\theta \sum_{ij} n_{ij}\,\mathrm{KL}(q_{ij} \,\|\, \sigma(\theta_i - \theta_j))$$

    It is the maximum of the likelihood with $n_{ij} q_{ij}$ wins: votes or shares of any kind have a nearest scalar,
    whether they come from one or not.

    Guarantees: expected wins of every item equal its wins; KL(q, θ) = KL(q, θ*) + KL(θ*, θ) for every θ; shares of a
    Bradley-Terry model are their own projection.

    Args:
        comparisons: the judged pairs; shares are votes that are fractions.
        ties: "half" counts a tie as half a vote for either side, "drop" leaves it out.

    Returns:
        The projection.

    Raises:
        DataError: as `tally`, or there are no votes.

    Example:
        >>> circle = Comparisons.from_votes([0, 1, 2], [1, 2, 0], [0.8] * 3, [0.2] * 3, prompt=[0, 0, 0])
        >>> nearest = project_to_bradley_terry(circle)
        >>> print(nearest.probability, f"{nearest.per_vote:.4f} nats per vote")
        [0.5 0.5 0.5] 0.1927 nats per vote

    Reference:
        Csiszár, I-divergence geometry of probability distributions and minimization problems, Annals of Probability
        1975.
    """
    pairs = tally(comparisons, ties)
    if not len(pairs.first):
        raise DataError("no comparison counts a vote", {"comparisons": comparisons.num_comparisons}, "Give votes.")
    estimate = fit(comparisons, ties=ties)
    label = estimate.identification.strong_components
    within = label[pairs.first] == label[pairs.second]
    margin = np.where(within, estimate.scores[pairs.first] - estimate.scores[pairs.second], 0)
    share = pairs.share
    probability = np.where(within, special.expit(margin), share)
    gap = special.rel_entr(share, probability) + special.rel_entr(1 - share, special.expit(-margin))
    residual = np.where(within, pairs.votes * np.maximum(gap, 0), 0)
    items = np.unique(label[np.concatenate([pairs.first[within], pairs.second[within]])], return_counts=False)
    members = int(np.isin(label, items).sum()) if within.any() else 0
    freedom = int(within.sum()) - (members - len(items) if within.any() else 0)
    return Projection(estimate.scores, probability, residual, pairs, freedom, estimate.identification)
