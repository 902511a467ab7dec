"""Laws of calibration: order, sides, the noise floor, and no number of nothing."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from rmjax import Comparisons
from rmjax.diagnostics import Targets, expected_calibration_error, reliability
from rmjax.errors import DataError
from tests.diagnostics.worlds import swap, world

seeds = st.integers(0, 2**32 - 1)


def hard(outcomes):
    """One vote a pair, each pair a prompt of its own."""
    y = np.asarray(outcomes, float)
    first = 2 * np.arange(len(y))
    pairs = Comparisons.from_votes(first, first + 1, y, 1 - y, prompt=np.arange(2 * len(y)) // 2)
    return Targets.from_votes(pairs, cluster=np.arange(len(y)))


def close(a, b, tolerance=1e-9):
    for x, y in zip(dataclasses.astuple(a)[0], dataclasses.astuple(b)[0], strict=True):
        np.testing.assert_allclose(x, y, atol=tolerance)
    np.testing.assert_allclose(dataclasses.astuple(a)[1:7], dataclasses.astuple(b)[1:7], atol=tolerance)


@given(seed=seeds)
def test_diagram_does_not_know_which_answer_is_called_the_first(seed):
    margins, comparisons, _, _, cluster = world(seed)
    flip = np.random.default_rng(seed).random(len(margins)) < 0.5
    a = reliability(margins, Targets.from_votes(comparisons, cluster=cluster, ties="half"))
    swapped = Targets.from_votes(swap(comparisons, flip), cluster=cluster, ties="half")
    close(a, reliability(np.where(flip, -margins, margins), swapped))


@given(seed=seeds)
def test_diagram_does_not_know_the_order_of_the_rows_and_padding_is_deletion(seed):
    margins, comparisons, _, _, cluster = world(seed)
    labels = Targets.from_votes(comparisons, cluster=cluster, ties="drop")
    order = np.random.default_rng(seed).permutation(len(margins))
    shuffled = Targets(labels.first[order], labels.second[order], labels.weight[order], labels.cluster[order])
    close(reliability(margins, labels), reliability(margins[order], shuffled))
    padded = Targets.from_votes(comparisons.pad(70, 50), cluster=np.append(cluster, np.zeros(10)), ties="drop")
    close(reliability(margins, labels), reliability(np.append(margins, np.full(10, np.nan)), padded))


@given(seed=seeds)
def test_curve_is_antisymmetric_and_its_error_is_that_of_both_orientations(seed):
    margins, comparisons, _, _, cluster = world(seed)
    margins = np.where(margins == 0, 0.1, margins)
    labels = Targets.from_votes(comparisons, cluster=cluster, ties="drop")
    diagram = reliability(margins, labels)
    for low, high in zip(diagram.bins, reversed(diagram.bins), strict=True):
        assert low.count == high.count
        whole = 1 if low.count else np.nan
        np.testing.assert_allclose(low.predicted + high.predicted, whole, atol=1e-12)
        np.testing.assert_allclose(low.observed + high.observed, whole, atol=1e-12)
    used = labels.counts > 0
    p, q = special.expit(margins[used]), (labels.first / (labels.first + labels.second + ~used))[used]
    both = [np.concatenate([x, 1 - x]) for x in (p, q)]
    error = expected_calibration_error(*both, np.tile(labels.counts[used], 2))
    assert diagram.error == pytest.approx(error, abs=1e-9)


def test_always_calling_the_chosen_answer_the_first_cannot_bend_the_curve():
    """A model that is right in its shares, on a file where the chosen answer always comes first."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.95, 20_000)
    y = rng.random(20_000) < p
    chosen_first = np.where(y, special.logit(p), -special.logit(p))
    diagram = reliability(chosen_first, hard(np.ones(20_000)))
    assert diagram.error < 2 * diagram.noise_floor
    naive = expected_calibration_error(special.expit(chosen_first), np.ones(20_000))
    assert naive > 0.3


@given(seed=seeds, target=st.floats(0.5, 4))
def test_margins_that_were_trained_towards_a_target_are_not_calibrated(seed, target):
    """The best margin of a graded label is m + logit q, whose error no noise explains; that of m = 0 has none."""
    votes = np.random.default_rng(seed).integers(26, 46, 200)
    first = 2 * np.arange(200)
    pairs = Comparisons.from_votes(first, first + 1, votes, 50 - votes, prompt=np.arange(400) // 2)
    labels = Targets.from_votes(pairs, cluster=np.arange(200))
    odds = special.logit(votes / 50)
    plain, graded = (reliability(m + odds, labels) for m in (0, target))
    assert plain.error <= 1e-6  # votes are float32
    assert graded.error == pytest.approx(np.mean(special.expit(target + odds) - votes / 50), abs=1e-6)
    assert graded.error > graded.noise_upper


@pytest.mark.parametrize(("n", "bins"), [(100, 14), (1000, 10)])
def test_noise_floor_is_the_error_of_a_calibrated_model(n, bins):
    rng = np.random.default_rng(n)
    errors, floors, above = [], [], []
    for _ in range(300):
        p = rng.random(n)
        diagram = reliability(special.logit(p), hard(rng.random(n) < p), num_bins=bins)
        errors.append(diagram.error)
        floors.append(diagram.noise_floor)
        above.append(diagram.error > diagram.noise_upper)
    # The design effect is estimated and never below 1, which lifts the floor a little in small samples.
    assert np.mean(errors) <= np.mean(floors) * 1.03
    assert np.mean(floors) <= np.mean(errors) * 1.12
    assert 0.005 <= np.mean(above) <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / 300)


def test_noise_floor_knows_that_votes_of_a_prompt_are_not_independent():
    """Five copies of every vote carry no more than one."""
    rng = np.random.default_rng(0)
    p = rng.random(400)
    labels = hard(rng.random(400) < p)
    copies = Targets(labels.first * 5, labels.second * 5, labels.weight, labels.cluster)
    one, five = (reliability(special.logit(p), t) for t in (labels, copies))
    assert five.error == pytest.approx(one.error)
    assert five.noise_floor == pytest.approx(one.noise_floor, rel=0.1)
    assert five.design_effect == pytest.approx(5, rel=0.1)
    assert one.design_effect < 1.1


def test_debiased_squared_error_is_0_on_average_for_a_calibrated_model():
    rng = np.random.default_rng(7)
    debiased, plug_in = [], []
    for _ in range(300):
        p = rng.random(200)
        diagram = reliability(special.logit(p), hard(rng.random(200) < p))
        debiased.append(diagram.squared_error)
        plug_in.append(sum(b.count * (b.predicted - b.observed) ** 2 for b in diagram.bins) / 400)
    assert abs(np.mean(debiased)) < 4 * np.std(debiased) / np.sqrt(300)
    assert np.mean(plug_in) > 4 * np.std(plug_in) / np.sqrt(300)


def test_debiased_squared_error_in_closed_form():
    """One vote a cluster and one prediction a bin: the gap squared less the binomial variance."""
    y = np.array([1, 1, 0, 1, 1, 0, 1, 1])
    diagram = reliability(np.full(8, special.logit(0.85)), hard(y))
    assert diagram.squared_error == pytest.approx((0.85 - 0.75) ** 2 - 0.75 * 0.25 / 7)
    assert diagram.squared_error_share == 1
    assert np.sqrt(diagram.squared_error + 0.75 * 0.25 / 7) == pytest.approx(diagram.error)


def test_bins_of_one_cluster_are_left_out_of_the_squared_error_and_said():
    diagram = reliability([special.logit(0.95), special.logit(0.65), special.logit(0.65)], hard([1, 1, 0]))
    assert diagram.squared_error_share == pytest.approx(2 / 3)
    alone = reliability([3.0], hard([1]))
    assert np.isnan(alone.squared_error)
    assert alone.squared_error_share == 0
    assert alone.design_effect == 1
    assert alone.noise_floor > 0


def test_a_margin_of_zero_predicts_one_half_and_observes_one_half():
    diagram = reliability(np.zeros(4), hard([1, 1, 1, 0]))
    assert diagram.error == 0


def test_bins_of_nothing_are_not_numbers():
    nothing = reliability([], hard([]))
    assert np.isnan(
        [nothing.error, nothing.noise_floor, nothing.noise_upper, nothing.squared_error, nothing.squared_error_share]
    ).all()
    empty = reliability([3.0, 3.0], hard([1, 1])).bins[5]
    assert np.isnan([empty.predicted, empty.observed, empty.noise]).all()
    assert empty.count == 0


def test_unanimous_votes_have_a_floor():
    assert reliability(np.full(5, 2.0), hard(np.ones(5))).noise_floor > 0


@pytest.mark.parametrize("bins", [0, 5])
def test_bins_mirror(bins):
    with pytest.raises(DataError, match="mirror"):
        reliability([1.0], hard([1]), num_bins=bins)


def test_probabilities_are_labelled_for_what_they_are():
    diagram = reliability([1.0], hard([1]))
    assert diagram.predicted_label == "predicted share of annotators who choose the first"
    assert "correct" not in diagram.predicted_label + diagram.observed_label
