"""Laws of proper scores and of their parts: identities, signs, order, and no number of nothing."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from rmjax.diagnostics import brier_score, corp_decomposition, log_score, murphy_decomposition
from rmjax.errors import DataError
from tests.diagnostics.forecasts import P, Y, tied

seeds = st.integers(0, 2**32 - 1)
SCORES = {"brier": brier_score, "log": log_score}
MURPHY = {
    "brier": (0.2055556, 0.0025926, 0.0470370, 0.25),
    "log": (0.5991985727, 0.0083298069, 0.1022784148, 0.6931471806),
}
each_score = pytest.mark.parametrize("score", SCORES)
each_kind = pytest.mark.parametrize("decompose", [murphy_decomposition, corp_decomposition])


def parts(decomposition):
    return np.array(dataclasses.astuple(decomposition))


def votes(seed):
    """Forecasts of few values that rule nothing out, shares of some votes, and their numbers."""
    rng = np.random.default_rng(seed)
    p, n = rng.choice([0.1, 0.3, 0.3, 0.5, 0.7, 0.95], 40), rng.integers(0, 6, 40)
    n[0] = 1
    k = rng.binomial(n, special.expit(2 * special.logit(p)))
    return p, k, n


def test_twelve_forecasts_to_the_printed_digits():
    assert brier_score(P, Y) == pytest.approx(0.18583333, abs=5e-9)
    assert log_score(P, Y) == pytest.approx(0.52566039, abs=5e-9)


@each_score
@each_kind
def test_ninety_forecasts_to_the_printed_digits(decompose, score):
    """Five forecasts of 10, 20, 30, 20 and 10 rows; their shares rise with them, so that both kinds agree."""
    n = np.array([10, 20, 30, 20, 10])
    found = decompose([0.1, 0.3, 0.5, 0.7, 0.9], np.array([2, 5, 16, 13, 9]) / n, n, score=score)
    digits = {"brier": 5e-8, "log": 5e-11}[score]
    np.testing.assert_allclose(parts(found), MURPHY[score], rtol=0, atol=digits)


@each_score
@each_kind
@given(seed=seeds)
def test_the_parts_sum_to_the_score_and_none_is_negative(decompose, score, seed):
    p, k, n = votes(seed)
    found = decompose(p, k / np.maximum(n, 1), n, score=score)
    whole, miscalibration, discrimination, uncertainty = parts(found)
    assert whole == pytest.approx(SCORES[score](p, k / np.maximum(n, 1), n), abs=1e-12)
    assert whole == pytest.approx(miscalibration - discrimination + uncertainty, abs=1e-12)
    assert min(miscalibration, discrimination, uncertainty) >= 0
    base = k.sum() / n.sum()
    entropy = base * (1 - base) if score == "brier" else special.entr(base) + special.entr(1 - base)
    assert uncertainty == pytest.approx(entropy, abs=1e-12)


@each_score
@given(seed=seeds)
def test_reliability_and_resolution_are_mean_divergences(score, seed):
    """Murphy's own sums over groups of equal forecasts."""
    p, k, n = votes(seed)
    base = k.sum() / n.sum()
    weight, first, forecast = (np.array([x[p == value].sum() for value in np.unique(p)]) for x in (n, k, n * p))
    used = weight > 0
    weight, share, forecast = weight[used], first[used] / weight[used], forecast[used] / weight[used]
    divergence = {
        "brier": lambda y, q: (y - q) ** 2,
        "log": lambda y, q: special.rel_entr(y, q) + special.rel_entr(1 - y, 1 - q),
    }[score]
    found = murphy_decomposition(p, k / np.maximum(n, 1), n, score=score)
    assert found.miscalibration == pytest.approx(np.average(divergence(share, forecast), weights=weight), abs=1e-12)
    assert found.discrimination == pytest.approx(np.average(divergence(share, base), weights=weight), abs=1e-12)


def test_in_bins_of_several_forecasts_the_identity_of_reliability_and_resolution_fails():
    """Two forecasts that are right, in one bin: their mean is right as well, and what they tell apart is lost."""
    p, y = np.repeat([0.55, 0.65], 20), np.repeat([1, 0, 1, 0], [11, 9, 13, 7])
    binned = murphy_decomposition(np.full(40, p.mean()), y)
    assert binned.miscalibration == pytest.approx(0, abs=1e-15)
    whole = binned.miscalibration - binned.discrimination + binned.uncertainty
    assert whole - brier_score(p, y) == pytest.approx(0.05**2, abs=1e-12)


@each_score
@each_kind
@given(seed=seeds)
def test_parts_know_neither_order_nor_copies_nor_which_answer_is_first_nor_votes_from_shares(decompose, score, seed):
    p, k, n = votes(seed)
    share = k / np.maximum(n, 1)
    order = np.random.default_rng(seed).permutation(40)
    single = np.concatenate([np.repeat([1, 0], [a, b - a]) for a, b in zip(k, n)])
    found = parts(decompose(p, share, n, score=score))
    for other in (
        decompose(p[order], share[order], n[order], score=score),
        decompose(np.tile(p, 3), np.tile(share, 3), np.tile(n, 3), score=score),
        decompose(1 - p, 1 - share, n, score=score),
        decompose(np.repeat(p, n), single, score=score),
    ):
        np.testing.assert_allclose(found, parts(other), rtol=0, atol=1e-12)


@each_score
@given(seed=seeds)
def test_recalibration_in_order_saves_at_most_what_recalibration_of_each_value_saves(score, seed):
    p, k, n = votes(seed)
    free, ordered = (
        kind(p, k / np.maximum(n, 1), n, score=score) for kind in (murphy_decomposition, corp_decomposition)
    )
    assert ordered.miscalibration <= free.miscalibration + 1e-12


@each_score
@given(seed=seeds)
def test_recalibration_in_order_is_the_weighted_isotonic_regression(score, seed):
    """The largest over all beginnings of the smallest weighted mean over all ends (Barlow et al. 1972)."""
    rng = np.random.default_rng(seed)
    p, y, w = np.sort(rng.random(8)), rng.random(8), rng.choice([1, 9, 100], 8)
    means = [[np.average(y[i : j + 1], weights=w[i : j + 1]) if i <= j else np.nan for j in range(8)] for i in range(8)]
    ordered = [max(np.min(means[i][k:]) for i in range(k + 1)) for k in range(8)]
    best = SCORES[score](ordered, y, w)
    found = corp_decomposition(p, y, w, score=score)
    assert found.miscalibration == pytest.approx(SCORES[score](p, y, w) - best, abs=1e-12)
    assert found.discrimination == pytest.approx(found.uncertainty - best, abs=1e-12)


@each_score
@given(seed=seeds)
def test_discrimination_knows_only_the_order_of_the_forecasts(score, seed):
    p, k, n = votes(seed)
    share = k / np.maximum(n, 1)
    sharper, plain = (corp_decomposition(q, share, n, score=score) for q in (special.expit(3 * special.logit(p)), p))
    assert sharper.discrimination == pytest.approx(plain.discrimination, abs=1e-12)
    assert sharper.uncertainty == plain.uncertainty


@each_score
@given(truth=st.floats(0.01, 0.99), forecast=st.floats(0.01, 0.99))
def test_no_forecast_beats_the_truth(score, truth, forecast):
    assert SCORES[score]([truth], [truth]) <= SCORES[score]([forecast], [truth]) + 1e-15


@each_score
@each_kind
@given(seed=seeds)
def test_rows_without_weight_are_deleted_whatever_they_hold(decompose, score, seed):
    p, y, w = tied(seed)
    kept = w > 0
    padded = decompose(np.where(kept, p, np.inf), np.where(kept, y, np.nan), w, score=score)
    np.testing.assert_array_equal(parts(padded), parts(decompose(p[kept], y[kept], w[kept], score=score)))


@each_kind
def test_what_was_ruled_out_and_happens_costs_everything(decompose):
    found = decompose([0.0, 0.0, 1.0], [0, 1, 1], score="log")
    assert found.score == found.miscalibration == np.inf
    assert np.isfinite([found.discrimination, found.uncertainty]).all()


@each_kind
def test_beside_a_heavy_row_what_was_ruled_out_is_not_forgotten(decompose):
    p, y, w = [1.0, 1.0], [1, 0], [1, 1e-17]
    assert decompose(p, y, w, score="log").score == log_score(p, y, w) == np.inf


@each_score
@each_kind
def test_only_ratios_of_weights_count(decompose, score):
    w = np.ones(12)
    for size in (2.0**-1074, 2.0**1023):
        np.testing.assert_array_equal(
            parts(decompose(P, Y, w * size, score=score)), parts(decompose(P, Y, w, score=score))
        )
        assert SCORES[score](P, Y, w * size) == SCORES[score](P, Y, w)


@each_score
@each_kind
def test_parts_of_nothing_are_not_numbers(decompose, score):
    assert np.isnan(parts(decompose([], [], score=score))).all()
    assert np.isnan(parts(decompose([0.5], [1], [0], score=score))).all()
    assert np.isnan([brier_score([], []), log_score([], [])]).all()


@each_kind
def test_an_unknown_score_is_refused(decompose):
    with pytest.raises(DataError, match="score"):
        decompose(P, Y, score="spherical")
