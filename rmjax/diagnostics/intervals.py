"""Estimates with intervals that know that comparisons of one prompt are not independent."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from rmjax.errors import DataError, SampleSizeError

LEVEL = 0.95


@dataclasses.dataclass(frozen=True)
class Estimate:
    """A number, its interval, and what both rest on.

    Too few clusters leave the value and take the interval: the bounds are NaN, `method` says why, and asking for
    `interval` raises. A page can always print an estimate; a claim cannot be made from a bound that does not exist.

    Example:
        >>> clustered_mean([1.0, 0.0, 1.0], [1, 1, 1], cluster=[0, 1, 2]).value.__round__(3)
        0.667
    """

    value: float
    lower: float
    upper: float
    standard_error: float
    count: float  # the denominator: weighted votes, comparisons or prompts
    clusters: int
    method: str  # how the interval was made, or why there is none
    level: float = LEVEL

    @property
    def has_interval(self) -> bool:
        """Whether both bounds are numbers."""
        return bool(np.isfinite(self.lower) and np.isfinite(self.upper))

    @property
    def interval(self) -> tuple[float, float]:
        """Both bounds; raises `SampleSizeError` where there is no interval."""
        if not self.has_interval:
            raise SampleSizeError(
                "this estimate has no interval",
                {"value": self.value, "clusters": self.clusters, "method": self.method},
                "Use the value alone, or collect comparisons from at least 2 clusters (prompts or sources).",
            )
        return self.lower, self.upper

    def excludes(self, value: float) -> bool:
        """Whether `value` lies outside the interval; False where there is no interval."""
        return self.has_interval and not self.lower <= value <= self.upper


@dataclasses.dataclass(frozen=True)
class ClusterTotals:
    """What is left of the rows once they are added up by cluster: enough for a ratio and its variance."""

    sums: np.ndarray  # [G] float64
    counts: np.ndarray  # [G] float64, all positive

    @property
    def ratio(self) -> float:
        """The ratio of the totals; NaN of nothing."""
        count = float(self.counts.sum())
        return float(self.sums.sum()) / count if count > 0 else float("nan")

    @property
    def variance(self) -> float:
        r"""Linearised variance of the ratio, NaN with fewer than 2 clusters.

        $$\hat V = \frac{G}{G-1}\,\frac{\sum_g (S_g - \hat R\,C_g)^2}{(\sum_g C_g)^2}$$
        """
        groups = len(self.counts)
        if groups < 2:
            return float("nan")
        residual = self.sums - self.ratio * self.counts
        return float(groups / (groups - 1) * (residual**2).sum() / self.counts.sum() ** 2)


def cluster_totals(sums: ArrayLike, counts: ArrayLike, cluster: ArrayLike) -> ClusterTotals:
    """Add up sums and counts by cluster; rows of count 0 vanish, and so do clusters made of them.

    Args:
        sums: numerators, [E].
        counts: denominators, [E]; not negative.
        cluster: the cluster of every row, [E]; any integers.

    Returns:
        Totals in float64, in the order of the cluster ids.

    Raises:
        DataError: the lengths differ, a count is negative, or a used number is not finite.

    Example:
        >>> cluster_totals([1, 0, 1], [1, 1, 1], cluster=[7, 7, 9]).sums
        array([1., 1.])
    """
    total, count = np.asarray(sums, np.float64), np.asarray(counts, np.float64)
    member = np.asarray(cluster)
    if not (total.shape == count.shape == member.shape and total.ndim == 1):
        raise DataError(
            "sums, counts and clusters are vectors of one length",
            {"sums": total.shape, "counts": count.shape, "cluster": member.shape},
            "Give one of each per comparison.",
        )
    wrong = ~(count >= 0) | ((count > 0) & ~np.isfinite(total))
    if wrong.any():
        e = int(np.flatnonzero(wrong)[0])
        raise DataError(
            "a sum is not finite or a count is negative",
            {"row": e, "sum": total[e], "count": count[e]},
            "Mend the row, or give it count 0 to leave it out.",
        )
    used = count > 0
    _, group = np.unique(member[used], return_inverse=True)
    return ClusterTotals(np.bincount(group, weights=total[used]), np.bincount(group, weights=count[used]))


def clustered_mean(sums: ArrayLike, counts: ArrayLike, cluster: ArrayLike, *, level: float = LEVEL) -> Estimate:
    r"""A ratio of sums with a cluster-robust interval.

    $$\hat R = \frac{\sum_e S_e}{\sum_e C_e}, \qquad
      \hat R \pm t_{G-1}\sqrt{\frac{G}{G-1}}\,\frac{\sqrt{\sum_g (S_g - \hat R C_g)^2}}{\sum_g C_g}$$

    Guarantees: depends on the rows only through their totals by cluster; cutting a row in two, adding rows of count
    0 or renaming clusters changes nothing; with one row a cluster and equal counts it is the t interval of a mean;
    no interval has width 0, since clusters that do not differ at all hold no estimate of how much others would.

    Args:
        sums: numerators, [E].
        counts: denominators, [E].
        cluster: the cluster of every row, [E].
        level: confidence level.

    Returns:
        The estimate, with NaN bounds and the reason below 2 clusters or where all clusters are the same.

    Raises:
        DataError: as `cluster_totals`.

    Example:
        >>> mean = clustered_mean([2.0, 4.0, 6.0], [1, 1, 1], cluster=[0, 1, 2])
        >>> print(f"{mean.value:.2f} [{mean.lower:.2f}, {mean.upper:.2f}] from {mean.clusters} clusters")
        4.00 [-0.97, 8.97] from 3 clusters

    Reference:
        Cochran, Sampling Techniques, 1977, section 6.4 (the ratio estimator) and 9A (clusters).
    """
    totals = cluster_totals(sums, counts, cluster)
    return _t_interval(totals, level, "ratio of sums, t by cluster")


def clustered_proportion(sums: ArrayLike, counts: ArrayLike, cluster: ArrayLike, *, level: float = LEVEL) -> Estimate:
    r"""A share with a cluster-robust interval that stays within [0, 1].

    Wilson's interval at the effective number of trials $n = \hat p(1-\hat p)/\hat V$, with $\hat V$ the linearised
    variance of `clustered_mean` and $t_{G-1}$ in place of the normal quantile:

    $$\frac{\hat p + t^2/2n \pm t\sqrt{\hat p(1-\hat p)/n + t^2/4n^2}}{1 + t^2/n}$$

    Where the clusters do not differ at all (every one of them right, say) the data hold no estimate of the variance,
    and each cluster counts as one trial: a perfect accuracy gets a lower bound below 1.

    Guarantees: as `clustered_mean`; the bounds lie in [0, 1] and mirror when successes and failures change places.

    Args:
        sums: successes, [E]; between 0 and the count.
        counts: trials, [E].
        cluster: the cluster of every row, [E].
        level: confidence level.

    Returns:
        The estimate, with NaN bounds and the reason below 2 clusters.

    Raises:
        DataError: as `cluster_totals`.

    Example:
        >>> share = clustered_proportion(np.ones(20), np.ones(20), cluster=np.arange(20))
        >>> print(f"{share.value:.2f} [{share.lower:.2f}, {share.upper:.2f}]")
        1.00 [0.82, 1.00]

    Reference:
        Korn and Graubard, Confidence intervals for proportions with small expected number of positive counts
        estimated from survey data, Survey Methodology 1998 (the effective number); Wilson, JASA 1927.
    """
    totals = cluster_totals(sums, counts, cluster)
    share, t = totals.ratio, _quantile(totals, level)
    spread = share * (1 - share)
    # Rounding leaves a variance of about 1e-33 where the clusters agree exactly.
    known = totals.variance > 1e-24 and spread > 0
    trials = spread / totals.variance if known else float(max(len(totals.counts), 1))
    centre = share + t**2 / (2 * trials)
    half = t * np.sqrt(spread / trials + t**2 / (4 * trials**2))
    scale = 1 + t**2 / trials
    lower, upper = np.clip([(centre - half) / scale, (centre + half) / scale], 0, 1)
    return _estimate(totals, lower, upper, level, "Wilson at the effective number of trials, t by cluster")


def mean_over_clusters(sums: ArrayLike, counts: ArrayLike, cluster: ArrayLike, *, level: float = LEVEL) -> Estimate:
    r"""The plain mean of the clusters' own means, with a t interval: every cluster counts the same.

    $$\bar d = \frac1G\sum_g \frac{S_g}{C_g}, \qquad \bar d \pm t_{G-1}\,\frac{s_d}{\sqrt G}$$

    The choice for few clusters of unequal size (16 debates), where a percentile bootstrap is too narrow and one
    large cluster would rule a ratio of sums.

    Args:
        sums: numerators, [E].
        counts: denominators, [E].
        cluster: the cluster of every row, [E].
        level: confidence level.

    Returns:
        The estimate, with NaN bounds and the reason below 2 clusters or where all clusters are the same.

    Raises:
        DataError: as `cluster_totals`.

    Example:
        >>> mean_over_clusters([1, 1, 1, 0], [1, 1, 1, 1], cluster=[0, 0, 0, 1]).value
        0.5
    """
    rows = cluster_totals(sums, counts, cluster)
    totals = ClusterTotals(rows.sums / rows.counts, np.ones_like(rows.counts))
    estimate = _t_interval(totals, level, "mean of cluster means, t by cluster")
    return dataclasses.replace(estimate, count=float(rows.counts.sum()))


def paired_difference(
    first: ArrayLike, second: ArrayLike, counts: ArrayLike, cluster: ArrayLike, *, level: float = LEVEL
) -> Estimate:
    """How much better the first is than the second on the same rows: mean over clusters, with a t interval.

    Two numbers from the same comparisons move together, so the interval of their difference is narrower than either
    interval suggests, and comparing the two intervals by eye is the wrong test.

    Guarantees: swapping the two flips the sign of everything; what both share on a row cancels.

    Args:
        first: numerators of the one, [E].
        second: numerators of the other, [E].
        counts: the denominators that both share, [E].
        cluster: the cluster of every row, [E].
        level: confidence level.

    Returns:
        The difference, with NaN bounds and the reason below 2 clusters or where all clusters are the same.

    Raises:
        DataError: as `cluster_totals`.

    Example:
        >>> gain = paired_difference([1, 1, 1, 0], [0, 1, 0, 0], np.ones(4), cluster=[0, 0, 1, 1])
        >>> gain.value, gain.clusters
        (0.5, 2)
    """
    difference = np.asarray(first, np.float64) - np.asarray(second, np.float64)
    return mean_over_clusters(difference, counts, cluster, level=level)


def _quantile(totals: ClusterTotals, level: float) -> float:
    """The two-sided t quantile on G - 1 degrees of freedom; NaN below 2 clusters."""
    groups = len(totals.counts)
    return float(special.stdtrit(groups - 1, (1 + level) / 2)) if groups >= 2 else float("nan")


def _t_interval(totals: ClusterTotals, level: float, method: str) -> Estimate:
    """The ratio with its t interval, unless all clusters are the same."""
    # Rounding leaves a residual of about 1e-16 of the sums where the clusters agree exactly.
    expected = totals.ratio * totals.counts
    same = np.abs(totals.sums - expected) <= 1e-12 * np.maximum(np.abs(totals.sums), np.abs(expected))
    if len(totals.counts) >= 2 and same.all():
        method = f"no interval: all {len(totals.counts)} clusters are the same"
        return dataclasses.replace(_estimate(totals, np.nan, np.nan, level, method), standard_error=float("nan"))
    half = _quantile(totals, level) * np.sqrt(totals.variance)
    return _estimate(totals, totals.ratio - half, totals.ratio + half, level, method)


def _estimate(totals: ClusterTotals, lower: float, upper: float, level: float, method: str) -> Estimate:
    """Pack an estimate; say why where there is no interval."""
    groups = len(totals.counts)
    if groups < 2:
        method = f"no interval: {groups} cluster{'' if groups == 1 else 's'}, and 2 are needed"
    return Estimate(
        value=totals.ratio,
        lower=float(lower),
        upper=float(upper),
        standard_error=float(np.sqrt(totals.variance)),
        count=float(totals.counts.sum()),
        clusters=groups,
        method=method,
        level=level,
    )
