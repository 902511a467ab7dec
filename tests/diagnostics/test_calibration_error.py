"""Laws of the error of calibration in bins: order, copies, deletion, and what remains where every forecast is right."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmjax.diagnostics import (
    brier_score,
    calibration_noise,
    expected_calibration_error,
    log_score,
    squared_calibration_error,
)
from rmjax.diagnostics import calibration_error as module
from rmjax.errors import DataError
from tests.diagnostics.forecasts import P, Y, tied

seeds = st.integers(0, 2**32 - 1)


def errors(p, y, w=None):
    plain = squared_calibration_error(p, y, w, debiased=False)
    return np.array([expected_calibration_error(p, y, w), plain, squared_calibration_error(p, y, w)])


def right(rows, times, seed):
    """Samples in which every forecast is right: forecasts that are uniform, and outcomes drawn from them."""
    rng = np.random.default_rng(seed)
    for _ in range(times):
        p = rng.random(rows)
        yield p, rng.random(rows) < p


def test_twelve_forecasts_to_the_printed_digits():
    """ECE as netcal has it, and the L2 error."""
    ece, plain, _ = errors(P, Y)
    assert ece == pytest.approx(0.275, abs=1e-12)
    assert np.sqrt(plain) == pytest.approx(0.37969285832981725, abs=1e-15)


@given(seeds)
def test_the_errors_do_not_know_the_order_of_the_rows(seed):
    """Heavily tied predictions included: bins of equal mass that cut through a run of ties would depend on it."""
    p, y, w = tied(seed)
    order = np.random.default_rng(seed).permutation(60)
    np.testing.assert_allclose(errors(p, y, w), errors(p[order], y[order], w[order]), rtol=0, atol=1e-12)


@given(seeds)
def test_weighted_errors_are_those_of_their_definition(seed):
    """Bins that hold their lower edge, and sums written out over rows and over pairs of rows."""
    rng = np.random.default_rng(seed)
    p, y, w = rng.integers(0, 33, 20) / 32, rng.integers(0, 2, 20), rng.choice([0.5, 1, 3, 1e6], 20)
    r, plain, squared, debiased, weights = y - p, 0.0, 0.0, 0.0, 0.0
    for b in range(4):
        rows = np.flatnonzero((p >= b / 4) & ((p < (b + 1) / 4) | (b == 3)))
        if len(rows):
            plain += abs(w[rows] @ r[rows])
            squared += (w[rows] @ r[rows]) ** 2 / w[rows].sum()
        if len(rows) > 1:
            pairs = [(w[i] * w[j] * r[i] * r[j], w[i] * w[j]) for i in rows for j in rows if i != j]
            debiased += w[rows].sum() * np.divide(*np.sum(pairs, axis=0))
            weights += w[rows].sum()
    expected = [plain / w.sum(), squared / w.sum(), debiased / weights if weights else np.nan]
    found = [
        expected_calibration_error(p, y, w, num_bins=4),
        squared_calibration_error(p, y, w, num_bins=4, debiased=False),
        squared_calibration_error(p, y, w, num_bins=4),
    ]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@given(seeds)
def test_copies_of_the_sample_change_no_plain_error_and_shrink_the_noise_that_is_taken_out(seed):
    p, y, _ = tied(seed)
    once, twice = errors(p, y), errors(np.tile(p, 2), np.tile(y, 2))
    np.testing.assert_allclose(once[:2], twice[:2], rtol=0, atol=1e-12)
    assert once[2] <= twice[2] + 1e-12


@given(seeds)
def test_rows_without_weight_are_deleted_whatever_they_hold(seed):
    p, y, w = tied(seed)
    kept = w > 0
    p, y = np.where(kept, p, np.nan), np.where(kept, y, np.inf)
    np.testing.assert_array_equal(errors(p, y, w), errors(p[kept], y[kept], w[kept]))


@given(seeds)
def test_calling_the_other_answer_the_first_changes_no_error_on_both_orientations(seed):
    """A sample and its mirror image: exchanging the sides of any rows exchanges rows with their mirrors."""
    rng = np.random.default_rng(seed)
    p, y = rng.integers(1, 32, 60) / 32, rng.integers(0, 2, 60)  # 32nds and tenths meet at one half alone
    p = p[p != 0.5]
    y = y[: len(p)]
    flip = rng.random(len(p)) < 0.5
    q, z = np.where(flip, 1 - p, p), np.where(flip, 1 - y, y)
    both, swapped = (errors(np.append(a, 1 - a), np.append(b, 1 - b)) for a, b in ((p, y), (q, z)))
    np.testing.assert_allclose(both, swapped, rtol=0, atol=1e-12)


@given(seeds)
def test_noise_of_equal_forecasts_is_the_binomial_variance(seed):
    """One prediction a bin: ȳ(1-ȳ)/(n-1), in Bröcker's words."""
    rng = np.random.default_rng(seed)
    n = rng.integers(2, 30, 10)
    p, y = np.repeat((np.arange(10) + 0.5) / 10, n), rng.integers(0, 2, n.sum())
    shares = np.array([part.mean() for part in np.split(y, np.cumsum(n)[:-1])])
    gaps = ((np.arange(10) + 0.5) / 10 - shares) ** 2 - shares * (1 - shares) / (n - 1)
    assert squared_calibration_error(p, y) == pytest.approx(n @ gaps / n.sum(), abs=1e-12)


@pytest.mark.parametrize(
    ("chance", "votes"),
    [
        ([0.5] * 10, [1] * 8 + [10] * 2),
        ([0.5] * 5 + [0.99] * 5, [1] * 5 + [5] * 5),
        ([0.905] * 10 + [0.995] * 10, [5] * 10 + [1] * 10),
    ],
    ids=["votes of one chance", "one bin of two chances", "the last bin"],
)
def test_the_noise_of_weights_is_taken_out_as_well(chance, votes):
    """Shares of votes that weigh their number: the heavier a row, the less it varies, and pairs of rows do not care."""
    p, n = np.array(chance), np.array(votes)
    shares = np.random.default_rng(7).binomial(n, p, (20_000, len(p))) / n
    found = np.array([squared_calibration_error(p, y, n, num_bins=1) for y in shares])
    assert abs(found.mean()) < 4 * found.std() / np.sqrt(20_000)


@pytest.mark.parametrize("size", [2.0**-1074, 2.0**-700, 2.0**700, 2.0**1023])
def test_only_ratios_of_weights_count(size):
    p, y, w = [0.31, 0.32, 0.7], [0, 1, 0], np.array([1.0, 1.0, 1.0])
    np.testing.assert_array_equal(errors(p, y, w * size), errors(p, y, w))
    assert calibration_noise(p, w * size, draws=20) == calibration_noise(p, w, draws=20)


def test_a_light_row_leaves_its_products_with_a_heavy_one():
    """Each pair weighs the same in a bin of two, whatever the two weigh: .69 times -.32, or in the last digits."""
    for light in (1, 1e-8, 1e-17, 1e-290):
        assert squared_calibration_error([0.31, 0.32], [0, 1], [1, light]) == pytest.approx(-0.31 * 0.68, rel=1e-14)


def test_the_squared_error_is_0_on_average_for_a_calibrated_model_and_the_plain_one_is_not():
    """200 forecasts in 10 bins: -0.000019 ± 0.000066 and 0.008363 in a simulation of its own."""
    found = np.array([errors(*sample)[1:] for sample in right(200, 4_000, seed=1)])
    (plain, debiased), (off, error) = found.mean(axis=0), found.std(axis=0) / np.sqrt(4_000)
    assert abs(debiased) < 4 * error
    assert abs(debiased - -0.000019) < 4 * np.hypot(error, 0.000066)
    # That simulation had as many bins and rows, and as many draws as its own error of the debiased mean says.
    assert abs(plain - 0.008363) < 4 * np.hypot(off, off / error * 0.000066)


@pytest.mark.parametrize(
    ("rows", "times", "median", "upper"),
    [(100, 4_000, 0.1207, 0.1627), (1_000, 2_000, 0.0388, 0.0527), (10_000, 500, 0.0120, 0.0165)],
)
def test_a_calibrated_model_has_an_error_that_is_not_0(rows, times, median, upper):
    """Median and 95 % point for uniform forecasts in 15 bins, from a simulation of its own of unknown length."""
    found = np.array([expected_calibration_error(p, y, num_bins=15) for p, y in right(rows, times, seed=rows)])
    # Standard errors of a median and of the 95 % point of a nearly normal sample are 1.25 and 2.11 σ/√n; both
    # simulations have one, and the figures are rounded.
    error = np.sqrt(2) * found.std() / np.sqrt(times)
    assert abs(np.median(found) - median) < 4 * 1.25 * error + 5e-5
    assert abs(np.quantile(found, 0.95) - upper) < 4 * 2.11 * error + 5e-5


@pytest.mark.parametrize(("rows", "bins"), [(20, 10), (100, 15), (2_000, 10)])
def test_the_noise_is_what_a_calibrated_model_shows(rows, bins):
    above, below = [], []
    for seed, (p, y) in enumerate(right(rows, 300, seed=7)):
        noise = calibration_noise(p, num_bins=bins, draws=200, seed=seed)
        error = expected_calibration_error(p, y, num_bins=bins)
        above.append(error > noise.upper)
        below.append(error < noise.median)
    # Of 300 samples and of 200 draws each; equal errors, which few rows have, count as neither.
    assert abs(np.mean(above) - 0.05) < 4 * np.sqrt(0.05 * 0.95 * (1 / 300 + 1 / 200))
    assert abs(np.mean(below) - 0.5) < 4 * np.sqrt(0.25 * (1 / 300 + 1 / 200))


def test_the_noise_is_near_its_closed_form():
    """Twenty rows a bin and one forecast each: Σ w √(2p(1-p)/πn), for a normal gap."""
    p = np.repeat((np.arange(10) + 0.5) / 10, 100)
    normal = np.mean(np.sqrt(2 * p * (1 - p) / (np.pi * 100)))
    assert calibration_noise(p).mean == pytest.approx(normal, rel=0.03)


def test_the_noise_is_seeded_does_not_know_its_parts_and_is_0_for_certainties(monkeypatch):
    p = np.linspace(0, 1, 41)
    once = calibration_noise(p, draws=50, seed=3)
    assert once == calibration_noise(p, draws=50, seed=3) != calibration_noise(p, draws=50, seed=4)
    monkeypatch.setattr(module, "_CHUNK", 41 * 7)
    assert once == calibration_noise(p, draws=50, seed=3)
    assert calibration_noise([0, 0, 1]).upper == 0


def test_the_noise_tells_mean_median_and_95_in_100():
    """One row that predicts .1 of two that are certain: the error is .05 in 9 of 10 draws, and .45 in 1."""
    noise = calibration_noise([0.1, 1.0], draws=20_000)
    assert noise.mean == pytest.approx(0.09, abs=4 * 0.12 / np.sqrt(20_000))
    assert noise.median == pytest.approx(0.05)
    rarely, rather_more = (calibration_noise([p, 1.0], draws=20_000).upper for p in (0.04, 0.06))
    assert (rarely, rather_more) == (pytest.approx(0.02), pytest.approx(0.47))


@given(seeds)
def test_the_noise_knows_weights(seed):
    """Where one row outweighs all others the error is that row's gap: p of the time 1-p, and else p."""
    p = np.random.default_rng(seed).uniform(0.05, 0.95, 5)
    noise = calibration_noise(p, [1e12, 1, 1, 1, 1], draws=400)
    assert noise.mean == pytest.approx(2 * p[0] * (1 - p[0]), abs=4 * abs(1 - 2 * p[0]) / 2 / 20 + 1e-9)


def test_the_errors_of_nothing_are_not_numbers():
    assert np.isnan(errors([], [])).all()
    assert np.isnan(errors([0.5], [1], [0])).all()
    noise = calibration_noise([])
    assert np.isnan([noise.mean, noise.median, noise.upper]).all()
    assert np.isnan(squared_calibration_error([0.1, 0.9], [0, 1]))  # one row a bin has no variance
    assert squared_calibration_error([0.1, 0.9], [0, 1], debiased=False) == pytest.approx(0.01)


@pytest.mark.parametrize(
    ("predicted", "observed", "weight", "match"),
    [
        ([0.2, 1.5], [1, 1], None, "no probability.*row=1, value=1.5"),
        ([float("nan")], [1], None, "no probability.*row=0"),
        ([0.2, 0.3, 0.4], [1, 0, -0.5], None, "no share.*row=2, value=-0.5"),
        ([0.2, 0.3], [1, 0], [1, -1], "weight is negative.*row=1"),
        ([0.2, 0.3], [1, 0], [float("inf"), 1], "weight is negative or not finite.*row=0"),
        ([0.2, 0.3], [1], None, "every row has a prediction"),
        ([[0.2]], [[1]], None, "every row has a prediction"),
        (["high"], [1], None, "predicted holds numbers"),
        ([0.2, 0.3], [[1], [0, 1]], None, "observed holds numbers"),
        ([0.2], [1], ["much"], "weight holds numbers"),
        ([0.2, 0.3], [1, 2], None, "no share.*row=1, value=2"),
        ([0.2, 0.3], [1, float("nan")], None, "no share.*row=1"),
    ],
)
def test_a_bad_row_is_named(predicted, observed, weight, match):
    for error in (expected_calibration_error, squared_calibration_error, brier_score, log_score):
        with pytest.raises(DataError, match=match):
            error(predicted, observed, weight)


@pytest.mark.parametrize("number", [0, 2.5, 10.0, True, None, "10", float("nan"), 10**12])
def test_bins_and_draws_are_counted(number):
    for of in (expected_calibration_error, squared_calibration_error):
        with pytest.raises(DataError, match="num_bins is a whole number"):
            of(P, Y, num_bins=number)
    for name in ("num_bins", "draws"):
        with pytest.raises(DataError, match=f"{name} is a whole number"):
            calibration_noise(P, **{name: number})
    if number != 0:
        with pytest.raises(DataError, match="seed is a whole number"):
            calibration_noise(P, seed=-1 if number == 10**12 else number)


def test_many_bins_are_as_many_as_hold_rows():
    assert expected_calibration_error(P, Y, num_bins=2**31 - 1) == pytest.approx(
        np.mean([0.05, 0.15, 0.75, 0.35, 0.55, 0.05, 0.05, 0.35, 0.75, 0.15, 0.05, 0.05])
    )
