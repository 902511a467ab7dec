"""Laws of estimates: what they depend on, what they refuse, and that their intervals cover."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rmjax.diagnostics import clustered_mean, clustered_proportion, mean_over_clusters, paired_difference
from rmjax.errors import DataError, SampleSizeError

ESTIMATORS = [clustered_mean, clustered_proportion, mean_over_clusters]
seeds = st.integers(0, 2**32 - 1)


def rows(seed, clusters=6):
    """Successes out of trials by row, with clusters of unequal size and rows that count nothing."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(clusters, 40))
    cluster = np.concatenate([np.arange(clusters), rng.integers(0, clusters, size - clusters)])
    counts = rng.integers(0, 5, size).astype(float)
    counts[:clusters] = 1
    return rng.binomial(counts.astype(int), 0.7).astype(float), counts, cluster


def same(a, b):
    mine, other = ([e.value, e.lower, e.upper, e.standard_error, e.count, e.clusters] for e in (a, b))
    np.testing.assert_allclose(mine, other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@given(seed=seeds)
def test_only_totals_by_cluster_count(estimator, seed):
    sums, counts, cluster = rows(seed)
    rng = np.random.default_rng(seed)
    order, names = rng.permutation(len(sums)), rng.permutation(100)[: cluster.max() + 1]
    halves = [np.repeat(x, 2) / 2 for x in (sums, counts)]
    padded = [np.append(x, [0.0]) for x in (sums, counts)]
    whole = estimator(sums, counts, cluster)
    same(whole, estimator(sums[order], counts[order], cluster[order]))
    same(whole, estimator(sums, counts, names[cluster]))
    same(whole, estimator(*halves, np.repeat(cluster, 2)))
    same(whole, estimator(*padded, np.append(cluster, 999)))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_sum_that_counts_nothing_may_be_anything(estimator):
    with_nan = estimator([1, 0, np.nan], [1, 1, 0], [0, 1, 2])
    same(with_nan, estimator([1, 0], [1, 1], [0, 1]))


@pytest.mark.parametrize("estimator", [clustered_mean, mean_over_clusters])
@pytest.mark.parametrize("value", [0.0, 0.7, -1e-9, 3e8])
def test_clusters_that_do_not_differ_give_no_interval_and_not_one_of_width_0(estimator, value):
    counts = np.array([1.0, 3.0, 7.0, 2.0])
    estimate = estimator(value * counts, counts, np.arange(4))
    assert estimate.value == pytest.approx(value)
    assert not estimate.has_interval
    assert np.isnan(estimate.standard_error)
    assert estimate.method == "no interval: all 4 clusters are the same"
    with pytest.raises(SampleSizeError, match="all 4 clusters"):
        _ = estimate.interval
    sums = value * counts
    sums[0] += 1e-6 * max(abs(value), 1e-9)
    assert estimator(sums, counts, np.arange(4)).has_interval


@given(seed=seeds)
def test_equal_counts_and_one_row_a_cluster_give_the_t_interval(seed):
    x = np.random.default_rng(seed).normal(size=12)
    oracle = stats.ttest_1samp(x, 0).confidence_interval(0.95)
    for estimator in (clustered_mean, mean_over_clusters):
        estimate = estimator(x, np.ones(12), np.arange(12))
        assert estimate.interval == pytest.approx((oracle.low, oracle.high), rel=1e-9, abs=1e-12)
        assert estimate.standard_error == pytest.approx(stats.sem(x), rel=1e-9)


def test_unequal_clusters_are_a_ratio_of_sums_or_a_mean_of_means():
    sums, counts, cluster = [9.0, 0.0], [9.0, 1.0], [0, 1]
    assert clustered_mean(sums, counts, cluster).value == pytest.approx(0.9)
    assert mean_over_clusters(sums, counts, cluster).value == pytest.approx(0.5)
    assert mean_over_clusters(sums, counts, cluster).count == 10


def test_linearised_variance_is_the_sandwich_of_an_intercept():
    """The weighted least squares intercept with a cluster sandwich, by matrices."""
    sums, counts, cluster = rows(5)
    used = counts > 0
    y, w, g = sums[used] / counts[used], counts[used], cluster[used]
    residual = w * (y - (w * y).sum() / w.sum())
    onehot = np.eye(g.max() + 1)[g]
    meat = residual @ onehot @ onehot.T @ residual
    groups = len(np.unique(g))
    expected = np.sqrt(groups / (groups - 1) * meat) / w.sum()
    assert clustered_mean(sums, counts, cluster).standard_error == pytest.approx(expected, rel=1e-12)


@given(seed=seeds)
def test_proportion_bounds_lie_in_the_unit_interval_and_mirror(seed):
    sums, counts, cluster = rows(seed)
    right, wrong = (clustered_proportion(x, counts, cluster) for x in (sums, counts - sums))
    assert 0 <= right.lower <= right.value <= right.upper <= 1
    assert right.interval == pytest.approx((1 - wrong.upper, 1 - wrong.lower), abs=1e-9)


@given(seed=seeds, scale=st.floats(1e-3, 1e3))
def test_the_scale_of_the_weights_is_no_information(seed, scale):
    sums, counts, cluster = rows(seed)
    a, b = (clustered_proportion(k * sums, k * counts, cluster) for k in (1, scale))
    assert a.interval == pytest.approx(b.interval, abs=1e-9)


def test_a_perfect_share_keeps_a_lower_bound_below_one():
    estimate = clustered_proportion(np.ones(200), np.ones(200), np.arange(200) % 10)
    assert estimate.upper == 1
    # Each of 10 clusters counts as one trial: the exact binomial bound is .025 ** (1 / 10) = .69.
    assert estimate.lower == pytest.approx(0.69, abs=0.03)
    constant = clustered_proportion(np.tile([1.0, 0.0], 10), np.ones(20), np.arange(20) // 2)
    assert constant.lower < 0.5 < constant.upper


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("clusters", [0, 1])
def test_too_few_clusters_keep_the_value_and_refuse_the_interval(estimator, clusters):
    n = 3 * clusters
    estimate = estimator(np.ones(n), np.full(n, 2.0), np.zeros(n))
    assert estimate.value == 0.5 if clusters else np.isnan(estimate.value)
    assert not estimate.has_interval
    assert not estimate.excludes(0.9)
    assert "2 are needed" in estimate.method
    with pytest.raises(SampleSizeError, match="no interval") as refusal:
        _ = estimate.interval
    assert refusal.value.numbers["clusters"] == clusters


def test_an_interval_excludes_what_lies_outside_it():
    estimate = clustered_mean([1, 2, 3], [1, 1, 1], [0, 1, 2])
    assert estimate.excludes(-3)
    assert estimate.excludes(7)
    assert not estimate.excludes(2)


@given(seed=seeds)
def test_a_paired_difference_is_antisymmetric_and_forgets_what_both_share(seed):
    first, counts, cluster = rows(seed)
    second = rows(seed + 1)[0][: len(first)]
    second = np.resize(second, len(first))
    gain, loss = paired_difference(first, second, counts, cluster), paired_difference(second, first, counts, cluster)
    mirrored = dataclasses.replace(loss, value=-loss.value, lower=-loss.upper, upper=-loss.lower)
    same(gain, mirrored)  # where all clusters are the same, neither has an interval
    shared = 7 * counts
    same(gain, paired_difference(first + shared, second + shared, counts, cluster))


def coverage(draw, estimator, truth, repeats=1500):
    rng = np.random.default_rng(0)
    estimates = [estimator(*draw(rng)) for _ in range(repeats)]
    inside = [e.has_interval and not e.excludes(truth) for e in estimates]
    return np.mean(inside), 4 * np.sqrt(0.95 * 0.05 / repeats)


def clustered_binary(rng, clusters=16, size=8, alpha=6.0, beta=2.0):
    """Shares that differ between clusters: 8 rows of one cluster say less than 8 rows."""
    p = rng.beta(alpha, beta, clusters)
    return rng.binomial(1, np.repeat(p, size)), np.ones(clusters * size), np.repeat(np.arange(clusters), size)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_intervals_cover_under_clustering(estimator):
    share, tolerance = coverage(clustered_binary, estimator, 0.75)
    assert abs(share - 0.95) < tolerance + 0.01  # t on 15 degrees of freedom is approximate for skewed shares


def test_intervals_that_forget_the_clusters_do_not_cover():
    def as_rows(rng):
        sums, counts, _ = clustered_binary(rng)
        return sums, counts, np.arange(len(sums))

    share, tolerance = coverage(as_rows, clustered_proportion, 0.75, repeats=400)
    assert share < 0.95 - 2 * tolerance


def test_wilson_covers_near_one_where_the_symmetric_interval_does_not():
    def nearly_perfect(rng):
        return rng.binomial(1, 0.97, 40), np.ones(40), np.arange(40)

    wilson, tolerance = coverage(nearly_perfect, clustered_proportion, 0.97)
    symmetric, _ = coverage(nearly_perfect, clustered_mean, 0.97)
    assert wilson > 0.95 - tolerance
    assert symmetric < 0.9


@pytest.mark.parametrize(
    ("sums", "counts", "cluster"),
    [([1.0], [1.0, 1.0], [0, 1]), ([[1.0]], [[1.0]], [[0]]), ([1, 1], [1, -1], [0, 1]), ([1, np.inf], [1, 1], [0, 1]),
     ([1, 1], [1, np.nan], [0, 1])],
)  # fmt: skip
def test_rows_that_make_no_sense_are_refused(sums, counts, cluster):
    with pytest.raises(DataError):
        clustered_mean(sums, counts, cluster)
