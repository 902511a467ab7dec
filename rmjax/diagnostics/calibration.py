"""Whether predicted shares of annotators are the shares that are observed, and how much of a gap is noise."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from rmjax.checks import count
from rmjax.diagnostics.intervals import cluster_totals
from rmjax.diagnostics.metrics import Targets, checked_margins
from rmjax.errors import DataError

PREDICTED = "predicted share of annotators who choose the first"
OBSERVED = "observed share of annotators who choose the first"


@dataclasses.dataclass(frozen=True)
class ReliabilityBin:
    """Comparisons whose predictions lie between two edges; NaN where there are none."""

    lower: float
    upper: float
    predicted: float  # mean prediction
    observed: float  # share of votes
    noise: float  # standard deviation that the observed share would have, were the predictions right
    count: float  # weighted votes
    clusters: int


@dataclasses.dataclass(frozen=True)
class Reliability:
    """A reliability diagram on both orientations of every comparison, and its summary.

    Which answer is called the first is a matter of the file, so every comparison enters as (p, q) and as (1-p, 1-q):
    the curve is antisymmetric about (1/2, 1/2) and calling the chosen answer the first cannot bend it.
    """

    bins: tuple[ReliabilityBin, ...]
    error: float  # expected calibration error: mean absolute gap, weighted by votes
    noise_floor: float  # what a perfectly calibrated model would show on this sample, on average
    noise_upper: float  # what 1 in 20 perfectly calibrated models would exceed
    design_effect: float  # how much less the votes say than as many independent ones
    squared_error: float  # mean squared gap with the noise taken out; may be negative
    squared_error_share: float  # share of the votes in bins of at least 2 clusters, which that number needs
    predicted_label: str = PREDICTED
    observed_label: str = OBSERVED


def reliability(margins: ArrayLike, targets: Targets, *, num_bins: int = 10) -> Reliability:
    r"""Reliability diagram of $p = \sigma(\Delta)$ against votes, with its noise floor.

    The noise floor is $\sqrt{2/\pi}\sum_b w_b s_b$, the expectation of the error when every bin's gap is normal about
    0 with $s_b^2 = D\,\sum_e w_e^2 n_e\,p_e(1-p_e) / W_b^2$. It is a closed form and not a simulation: expectations
    add whatever the dependence between bins, and the normal is within 1 % from about 5 votes a bin. The design effect
    $D \ge 1$ is the cluster-robust variance of the observed shares over that of as many independent votes: votes of
    one prompt are not independent, and a floor that forgets it calls noise miscalibration. `noise_upper` is the 95 %
    point of the same sum, for bins that are independent, from 2,000 seeded draws.

    The squared error takes from every squared gap its cluster-robust variance, so that it is 0 on average for a
    calibrated model; with one vote a cluster and equal predictions in a bin that is
    $\sum_b w_b\,[(\bar p_b - \bar y_b)^2 - \bar y_b(1-\bar y_b)/(n_b - 1)]$.

    Guarantees: exchanging the sides of any comparison changes nothing; nor does the order of the rows; bins without
    votes are NaN, never 0.

    Args:
        margins: score of the first minus score of the second, in logits, [E].
        targets: the labels; with a target of 1 vote a pair the shares are 0 or 1.
        num_bins: number of equal-width bins on [0, 1]; even, so that the bins mirror.

    Returns:
        The diagram. Its predictions are the predicted share of annotators who choose the first, and nothing else.

    Raises:
        DataError: the number of bins is odd, or a margin that counts is not finite.

    Example:
        >>> from rmjax import Comparisons
        >>> pairs = Comparisons.from_votes([0], [1], wins_first=[3], wins_second=[1], prompt=[0, 0])
        >>> diagram = reliability([np.log(3)], Targets.from_votes(pairs, cluster=[0]))
        >>> round(diagram.error, 6), diagram.predicted_label
        (0.0, 'predicted share of annotators who choose the first')

    Reference:
        Bröcker, Estimating reliability and resolution of probability forecasts, Climate Dynamics 2012; Kumar, Liang
        and Ma, Verified uncertainty calibration, NeurIPS 2019.
    """
    if count("num_bins", num_bins, least=0) < 2 or num_bins % 2:
        raise DataError("the bins must mirror about 1/2", {"num_bins": num_bins}, "Choose an even number of bins.")
    half = num_bins // 2
    used = targets.counts > 0
    margin, weight, member = checked_margins(margins, targets)[used], targets.weight[used], targets.cluster[used]
    votes = (targets.first + targets.second)[used]
    # Fold on to the side that the model prefers: the other orientation is its mirror image, with the same gap, and
    # counting both would double the sample. A margin of 0 prefers neither: half of its votes on either side.
    p = special.expit(np.abs(margin))
    for_preferred = np.where(margin >= 0, targets.first[used], targets.second[used])
    y = np.where(margin == 0, 0.5, for_preferred / votes)
    index = np.minimum(((p - 0.5) * num_bins).astype(int), half - 1)
    edges = 0.5 + np.arange(half + 1) / num_bins

    upper = [_bin(edges[b], edges[b + 1], p, y, weight, votes, member, index == b) for b in range(half)]
    counts = np.array([b.bin.count for b in upper])
    seen = counts > 0
    gap, independent, clustered, binomial = (
        np.array([getattr(b, name) for b in upper])
        for name in ("gap", "independent_variance", "clustered_variance", "binomial_variance")
    )
    known = np.isfinite(clustered)
    design_effect = _ratio((counts**2 * clustered)[known].sum(), (counts**2 * binomial)[known].sum())
    design_effect = max(design_effect, 1.0) if np.isfinite(design_effect) else 1.0
    noise = np.sqrt(design_effect * independent)
    bins = [dataclasses.replace(b.bin, noise=float(s)) for b, s in zip(upper, noise)]
    share = np.where(seen, counts * noise, 0) / max(counts.sum(), np.finfo(float).tiny)
    draws = np.abs(np.random.default_rng(0).standard_normal((2_000, half))) @ share
    return Reliability(
        bins=(*(_mirror(b) for b in reversed(bins)), *bins),
        error=_ratio((counts * np.abs(gap))[seen].sum(), counts.sum()),
        noise_floor=float(np.sqrt(2 / np.pi) * share.sum()) if seen.any() else float("nan"),
        noise_upper=float(np.quantile(draws, 0.95)) if seen.any() else float("nan"),
        design_effect=design_effect,
        squared_error=_ratio((counts * (gap**2 - clustered))[known].sum(), counts[known].sum()),
        squared_error_share=_ratio(counts[known].sum(), counts.sum()),
    )


@dataclasses.dataclass(frozen=True)
class _Bin:
    """A bin with its gap and three variances of it."""

    bin: ReliabilityBin
    gap: float  # observed minus predicted
    independent_variance: float  # of the observed share, if votes were independent draws at the predicted share
    clustered_variance: float  # of the gap, from the spread between clusters; NaN below 2 clusters
    binomial_variance: float  # of the observed share, if votes were independent draws at the observed share


def _bin(lower, upper, p, y, weight, votes, member, inside) -> _Bin:
    """One bin on the preferred side."""
    p, y, weight, votes, member = p[inside], y[inside], weight[inside], votes[inside], member[inside]
    counts = weight * votes
    total = counts.sum()
    residual = cluster_totals(counts * (y - p), counts, member)
    observed = _ratio((counts * y).sum(), total)
    squares = (weight**2 * votes).sum()
    return _Bin(
        ReliabilityBin(
            lower=float(lower),
            upper=float(upper),
            predicted=_ratio((counts * p).sum(), total),
            observed=observed,
            noise=float("nan"),
            count=float(total),
            clusters=len(residual.counts),
        ),
        gap=residual.ratio,
        independent_variance=_ratio((weight**2 * votes * p * (1 - p)).sum(), total**2),
        clustered_variance=residual.variance,
        # Bessel's correction at the effective number of votes, which is the number of votes where all weigh the same.
        binomial_variance=observed * (1 - observed) * _ratio(squares, total**2 - squares),
    )


def _mirror(b: ReliabilityBin) -> ReliabilityBin:
    """The same bin with the two answers exchanged."""
    return dataclasses.replace(
        b, lower=1 - b.upper, upper=1 - b.lower, predicted=1 - b.predicted, observed=1 - b.observed
    )


def _ratio(part: float, whole: float) -> float:
    """part / whole; NaN of nothing."""
    return float(part / whole) if whole > 0 else float("nan")
