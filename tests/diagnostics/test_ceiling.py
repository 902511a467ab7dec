"""Laws of the ceiling from several votes: bounds hold, nest as votes increase, and published points come out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from rmjax.diagnostics import (
    Estimate,
    beta_ceiling,
    ceiling_bounds,
    ceiling_from_moments,
    ceiling_from_votes,
    clustered_proportion,
    majority_target,
    normal_ceiling,
    vote_agreement,
)
from rmjax.diagnostics import ceiling as module
from rmjax.errors import DataError, SampleSizeError

seeds = st.integers(0, 2**32 - 1)
SLACK = 1e-7  # shares of votes are held to 1e-9, which places on a grid of 60 turn into 4e-8 of the ceiling


def histogram(*counts):
    """Items with 0 to k votes for the first."""
    k = len(counts) - 1
    first = np.repeat(np.arange(k + 1), counts)
    return np.stack([first, k - first], axis=1)


def bounds(agreement):
    return agreement, (1 + np.sqrt(2 * agreement - 1)) / 2


def population(sixths, k):
    """Items whose shares p are sixths, k votes each: as many of every outcome as there are on average."""
    j, p = np.arange(k + 1), sixths[:, None]
    return histogram(*np.rint(special.comb(k, j) * p**j * (6 - p) ** (k - j)).sum(axis=0).astype(int))


@given(seeds)
def test_the_truth_is_within_and_more_votes_never_widen(seed):
    """Discrete mixtures: A <= C <= (1 + √(2A-1))/2, of two votes, and the intervals of 3 and 5 nest around C."""
    sixths = np.random.default_rng(seed).integers(0, 7, 4)
    p = sixths / 6
    truth, agreement = np.maximum(p, 1 - p).mean(), (p**2 + (1 - p) ** 2).mean()
    low, high = bounds(agreement)
    assert low - 1e-12 <= truth <= high + 1e-12
    before = (low, high)
    for k in (3, 5):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "_GRID", 61)  # |2p - 1| is a multiple of 1/3, and stands on it
            found = ceiling_from_votes(population(sixths, k))
        assert found.lower - SLACK <= truth <= found.upper + SLACK
        assert found.lower >= before[0] - SLACK
        assert found.upper <= before[1] + SLACK
        before = (found.lower, found.upper)


@given(seeds)
def test_two_votes_give_the_bounds_of_their_agreement_and_both_ends_are_attained(seed):
    rng = np.random.default_rng(seed)
    same, other = rng.integers(50, 200), rng.integers(1, 50)
    found = ceiling_from_votes(histogram(same, other, same))
    agreement = 2 * same / (2 * same + other)
    np.testing.assert_allclose((found.lower, found.upper), bounds(agreement), atol=1e-5)
    estimate = clustered_proportion([agreement] * 9, [1] * 9, cluster=range(9))
    assert ceiling_bounds(estimate).upper == pytest.approx(found.upper, abs=1e-5)


def test_which_response_is_the_first_means_nothing():
    one, two = histogram(30, 18, 12, 14, 20, 36), histogram(36, 20, 14, 12, 18, 30)
    assert ceiling_from_votes(one) == ceiling_from_votes(two)


def votes_and_oracle(rng, p, k=5):
    """Votes on every item, the accuracy of whoever knows p against one more, and 4 standard errors of it."""
    first = rng.binomial(k, p)
    best = np.maximum(p, 1 - p)
    right = (rng.random(len(p)) < best).mean()
    return np.stack([first, k - first], axis=1), right, 4 * np.sqrt((best * (1 - best)).sum()) / len(p)


def test_an_oracle_reaches_the_ceiling_of_any_mixture():
    """Twenty mixtures of four kinds of items: its accuracy is C, and within what five votes an item allow."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        p = rng.uniform(0, 1, 4)[rng.choice(4, 20_000, p=rng.dirichlet(np.ones(4)))]
        votes, right, error = votes_and_oracle(rng, p)
        assert abs(right - np.maximum(p, 1 - p).mean()) <= error
        found = ceiling_from_votes(votes, deviations=4)
        assert found.lower - error <= right <= found.upper + error


def test_the_two_point_formula_fails_on_even_noise():
    """p = .8317 everywhere: two votes agree .72 of the time, which the formula takes for the best accuracy."""
    p = np.full(20_000, (1 + np.sqrt(2 * 0.72 - 1)) / 2)
    votes, right, error = votes_and_oracle(np.random.default_rng(0), p)
    pairs = votes * (votes - 1) / 2
    two_point = pairs.sum() / (len(p) * 10)
    assert two_point == pytest.approx(0.72, abs=0.01)
    assert right - two_point > 2 * error
    found = ceiling_from_votes(votes, deviations=4)
    assert two_point < found.lower - error
    assert found.lower - error <= right <= found.upper + error


def test_votes_that_are_noise_need_deviations():
    with pytest.raises(SampleSizeError, match="deviations=2"):
        ceiling_from_votes(histogram(0, 10, 0))  # two votes never agree: no population does that
    assert ceiling_from_votes(histogram(3, 10, 3), deviations=3).lower >= 0.5
    with pytest.raises(SampleSizeError, match="no item has two votes"):
        ceiling_from_votes([[1, 0], [0, 0]])


@pytest.mark.parametrize("bad", [[1, 2], [[1, 2, 3]], [[0.5, 1]], [[-1, 2]], [[np.nan, 1]]])
def test_votes_are_counts(bad):
    with pytest.raises(DataError, match="counts of first and second"):
        ceiling_from_votes(bad)


@given(st.floats(0, 1))
def test_moments_of_items_that_are_equally_noisy_have_one_accuracy(second):
    low, high = ceiling_from_moments(second, second**2)
    assert low == high == (1 + second**0.5) / 2


def test_moments_parameters_and_targets_that_are_none_are_refused():
    for call in (
        lambda: ceiling_from_moments(0.5, 0.6),
        lambda: ceiling_from_moments(1.5, 1.0),
        lambda: normal_ceiling(0.5),
        lambda: beta_ceiling(0, 1),
        lambda: majority_target(0.7, 2),
    ):
        with pytest.raises(DataError):
            call()


# The upper end of an agreement: .726 is InstructGPT (Ouyang et al. 2022), .63 HH (Bai et al. 2022), .72 Stiennon et al.
@pytest.mark.parametrize(
    ("agreement", "upper"),
    [
        (0.60, ".72361"),
        (0.63, ".75495"),
        (0.66, ".78284"),
        (0.72, ".83166"),
        (0.726, ".83615"),
        (0.73, ".83912"),
        (0.75, ".85355"),
        (0.773, ".86946"),
        (0.80, ".88730"),
        (0.85, ".91833"),
        (0.90, ".94721"),
    ],
)
def test_published_upper_ends(agreement, upper):
    """In closed form, and by the linear programme over two votes a pair, which agrees to 1e-6."""
    closed = ceiling_bounds(Estimate(agreement, np.nan, np.nan, np.nan, 1, 1, "as published"))
    assert closed.lower == agreement
    assert f"{closed.upper:.5f}"[1:] == upper
    same = round(1000 * agreement)
    found = ceiling_from_votes(histogram(same, 2 * (1000 - same), same))
    np.testing.assert_allclose((found.lower, found.upper), (closed.lower, closed.upper), rtol=0, atol=1e-6)


def test_five_votes_narrow_what_two_leave():
    """130 items with 30, 18, 12, 14, 20, 36 of five votes for the first."""
    votes = histogram(30, 18, 12, 14, 20, 36)
    two = vote_agreement(np.pad(votes, ((0, 0), (0, 1))), range(130)).ceiling
    assert f"{two.agreement.value:.6f}" == "0.763077"
    assert [f"{x:.4f}" for x in (two.lower, two.upper)] == ["0.7631", "0.8627"]
    found = ceiling_from_votes(votes)
    assert [f"{x:.4f}" for x in (found.lower, found.upper)] == ["0.8127", "0.8491"]


def test_published_points():
    """Arcsine: 1/2 + 1/π at A = 3/4; normal margins by their agreement; three votes of Stiennon et al. 2020."""
    c, a = beta_ceiling(0.5, 0.5)
    assert (c, a) == (pytest.approx(0.81830988618379067, abs=1e-15), 0.75)
    for agreement, deviation, best in (
        (0.63, "1.35519", ".71879"),
        (0.726, "2.34240", ".80143"),
        (0.75, "2.67422", ".82030"),
        (0.773, "3.04661", ".83795"),
    ):
        c, s = normal_ceiling(agreement)
        assert (f"{s:.5f}", f"{c:.5f}"[1:]) == (deviation, best)
    fourth = 3 * 0.44 - 4 * (0.77 - 0.5)
    assert fourth == pytest.approx(0.24)
    assert [f"{x:.5f}" for x in ceiling_from_moments(0.44, 0.24)] == ["0.79788", "0.82474"]
    assert [f"{x:.6f}" for x in majority_target(0.75, 5) * np.ones(1)] == ["0.896484"]
    assert [f"{float(majority_target(0.75, m)):.6f}" for m in (1, 3, 7)] == ["0.750000", "0.843750", "0.929443"]
    # Two votes agree .72: with even noise a vote and the mode of three agree .7816, and with items of two kinds, agreed
    # on or even, no more than .72. Stiennon et al. found .77.
    for shares, weights, met in (
        ([(1 + np.sqrt(0.44)) / 2], [1], "0.7816"),
        ([1, 0.5], [0.44, 0.56], "0.7200"),
    ):
        p, mode = np.array(shares), majority_target(shares, 3)
        assert f"{np.dot(weights, mode * p + (1 - mode) * (1 - p)):.4f}" == met


def test_the_error_of_an_agreement_pushes_both_ends():
    """n = 1,000 and A = .75: [.7232, .8720], by Wald."""
    error = np.sqrt(0.75 * 0.25 / 1000)
    reach = special.ndtri(0.975) * error
    agreement = Estimate(0.75, 0.75 - reach, 0.75 + reach, error, 1000, 1000, "Wald")
    assert [f"{x:.4f}" for x in ceiling_bounds(agreement).confidence] == ["0.7232", "0.8720"]
