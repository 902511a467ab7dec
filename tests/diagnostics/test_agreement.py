"""Laws of agreement and its ceiling, and the figures of public sets."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmjax import Comparisons
from rmjax.diagnostics import (
    Targets,
    accuracy,
    ceiling_bounds,
    clustered_mean,
    clustered_proportion,
    vote_agreement,
)
from rmjax.errors import DataError
from tests.diagnostics.public_sets import public_set

seeds = st.integers(0, 2**32 - 1)
FIGURES = ["two_votes", "two_votes_decided", "vote_and_rest", "vote_and_gold"]


def drawn(seed, items=15):
    rng = np.random.default_rng(seed)
    counts = np.stack([rng.integers(0, 4, items) for _ in range(4)], axis=1)
    counts[0, :2] = 2
    return counts, rng.integers(-1, 2, items), rng.integers(0, 5, items)


def known(value):
    """An estimate of exactly this value, without an interval."""
    return clustered_mean([value], [1], [0])


@given(seed=seeds)
def test_figures_are_those_of_counting_one_pair_of_votes_after_the_other(seed):
    counts, gold, cluster = drawn(seed)
    result = vote_agreement(counts, cluster, gold=gold)
    same, decided, rest, labels = [], [], [], []
    for (a, b, t, _), label in zip(counts, gold, strict=True):
        votes = [1] * a + [-1] * b + [0] * t
        same += [x == y for x, y in itertools.combinations(votes, 2)]
        decided += [x == y for x, y in itertools.combinations([v for v in votes if v], 2)]
        for v in filter(None, votes):
            others = a - b - v
            rest += [others * v > 0] if others else []
            labels += [v == label] if label else []
    for name, each in zip(FIGURES, (same, decided, rest, labels), strict=True):
        figure = getattr(result, name)
        if each:
            assert figure.value == pytest.approx(np.mean(each))
            assert figure.count == len(each)
        else:
            assert figure is None


@given(seed=seeds)
def test_sides_abstentions_and_lone_votes_change_nothing(seed):
    counts, gold, cluster = drawn(seed)
    result = vote_agreement(counts, cluster, gold=gold)
    swapped = vote_agreement(counts[:, [1, 0, 2, 3]], cluster, gold=-gold)
    without = vote_agreement(counts[:, :3], cluster, gold=gold)
    assert result == swapped == without
    lone = vote_agreement(np.vstack([counts, [[1, 0, 0, 0]]]), np.append(cluster, 99))
    for name in FIGURES[:3]:
        assert getattr(lone, name) == getattr(result, name)


def test_one_vote_an_item_is_not_measured_and_says_so():
    result = vote_agreement([[1, 0, 0], [0, 1, 0], [0, 0, 1]], [0, 1, 2], gold=[1, 1, 0])
    assert not result.measured
    assert result.reason == "no pair has two votes"
    assert result.two_votes is result.two_votes_decided is result.vote_and_rest is result.ceiling is None
    assert result.vote_and_gold.value == 0.5


def test_ties_alone_have_agreement_and_no_ceiling():
    result = vote_agreement([[0, 0, 3], [1, 0, 2]], [0, 1])
    assert result.measured
    assert result.ceiling is None
    assert result.reason == "no pair has two votes that are not ties"


def test_a_set_filtered_by_agreement_has_no_ceiling():
    result = vote_agreement([[3, 0, 0], [2, 1, 0]], [0, 1], selected=True)
    assert result.two_votes_decided.value == pytest.approx(4 / 6)
    assert result.ceiling is None
    assert result.reason == "the pairs were selected by agreement"


@pytest.mark.parametrize(
    ("value", "upper"),
    [(0.60, 0.72361), (0.63, 0.75495), (0.66, 0.78284), (0.72, 0.83166), (0.726, 0.83615), (0.73, 0.83912),
     (0.75, 0.85355), (0.773, 0.86946), (0.80, 0.88730), (0.85, 0.91833), (0.90, 0.94721), (0.5, 0.5), (1.0, 1.0)],
)  # fmt: skip
def test_the_upper_end_to_the_printed_digits(value, upper):
    ceiling = ceiling_bounds(known(value))
    assert ceiling.lower == value
    assert ceiling.upper == pytest.approx(upper, abs=5e-6)


@pytest.mark.parametrize(
    ("value", "ends"),
    [(0.75, ("0.7500", "0.8536")), (0.726, ("0.7260", "0.8362")), (0.63, ("0.6300", "0.7550"))],
)
def test_the_interval_of_published_agreements(value, ends):
    """Of InstructGPT's labelers (Ouyang et al. 2022) .726, and of HH (Bai et al. 2022) .63."""
    ceiling = ceiling_bounds(known(value))
    assert (f"{ceiling.lower:.4f}", f"{ceiling.upper:.4f}") == ends


def test_the_interval_is_pushed_through_both_ends():
    agreement = clustered_proportion(np.full(40, 3.0), np.full(40, 4.0), np.arange(40) // 2)
    ceiling = ceiling_bounds(agreement)
    low, high = agreement.interval
    assert ceiling.confidence == pytest.approx((low, (1 + np.sqrt(2 * high - 1)) / 2))
    assert np.isnan(ceiling_bounds(known(0.7)).confidence).all()


def test_an_agreement_below_one_half_is_sampling_error():
    assert ceiling_bounds(known(0.4)).upper == ceiling_bounds(known(0.4)).lower == 0.5


@given(seed=seeds)
def test_the_best_accuracy_lies_between_the_ends(seed):
    """For any mixture of items: A <= C <= (1 + sqrt(2A - 1)) / 2."""
    rng = np.random.default_rng(seed)
    p, weight = rng.random(5) ** rng.choice([0.2, 1, 5]), rng.dirichlet(np.ones(5))
    agreement = weight @ (p**2 + (1 - p) ** 2)
    best = weight @ np.maximum(p, 1 - p)
    ceiling = ceiling_bounds(known(agreement))
    assert ceiling.lower - 1e-12 <= best <= ceiling.upper + 1e-12


@given(seed=seeds, covered=st.floats(0, 1))
def test_of_items_with_one_vote_anything_may_hold(seed, covered):
    """The best accuracy on them is between a half and 1; the ends allow for both and for nothing beyond."""
    rng = np.random.default_rng(seed)
    agreement = known(rng.uniform(0.5, 1))
    rest, whole = ceiling_bounds(agreement, covered=covered), ceiling_bounds(agreement)
    assert rest.lower == pytest.approx(covered * whole.lower + (1 - covered) * 0.5)
    assert rest.upper == pytest.approx(covered * whole.upper + (1 - covered) * 1.0)


@given(seed=seeds, unit=st.sampled_from(["vote", "comparison", "prompt"]), ties=st.sampled_from(["drop", "half"]))
def test_nobody_who_cannot_be_beaten_is_below_the_lower_end(seed, unit, ties):
    """The majority of each item's own votes is the best that any rule can do on them, whatever an item weighs."""
    rng = np.random.default_rng(seed)
    items = int(rng.integers(2, 20))
    votes = rng.integers(0, rng.integers(2, 9, (items, 1)), (items, 3))
    votes[0] = (2, 0, 0)
    prompt = rng.integers(0, 4, items)
    comparisons = Comparisons.from_votes(
        2 * np.arange(items), 2 * np.arange(items) + 1, votes[:, 0], votes[:, 1], np.repeat(prompt, 2), ties=votes[:, 2]
    )
    targets = Targets.from_votes(comparisons, cluster=prompt, ties=ties, unit=unit)
    margins = np.where(targets.first >= targets.second, 1.0, -1.0)
    best = accuracy(margins, targets).value
    ceiling = vote_agreement(votes, prompt, ties=ties, weight=targets.counts).ceiling
    assert ceiling.lower <= best + 1e-6  # weights are float32


def test_the_agreement_of_a_ceiling_weighs_items_as_the_accuracy_does():
    """Forty items on which 20 agree nearly all, 200 contested ones of five: pooled over pairs of votes, .796."""
    votes = np.array([[19, 1, 0]] * 40 + [[3, 2, 0]] * 200)
    pooled = vote_agreement(votes, np.arange(240))
    shares = np.repeat([(19 * 18) / (20 * 19), (3 * 2 + 2) / (5 * 4)], [40, 200])
    assert pooled.two_votes_decided.value == pytest.approx(np.average(shares, weights=np.repeat([190, 10], [40, 200])))
    assert pooled.ceiling.lower == pytest.approx(np.average(shares, weights=np.repeat([20, 5], [40, 200])))
    alike = vote_agreement(votes, np.arange(240), weight=np.ones(240)).ceiling
    assert alike.agreement.value == pytest.approx(np.mean(shares))
    lone = np.concatenate([votes, [[1, 0, 0]] * 60])
    assert vote_agreement(lone, np.arange(300), weight=np.ones(300)).ceiling.covered == pytest.approx(240 / 300)


def test_a_tie_that_counts_half_agrees_by_half():
    """Votes +1, 0 and -1 agree by (1 + s s') / 2."""
    votes = np.array([[2, 1, 3]])
    sides = [1, 1, -1, 0, 0, 0]
    pairs = [(1 + sides[i] * sides[j]) / 2 for i in range(6) for j in range(i)]
    ceiling = vote_agreement(votes, [0], ties="half").ceiling
    assert ceiling.agreement.value == pytest.approx(np.mean(pairs))
    for only_ties in ([[0, 0, 3]], [[1, 0, 1]]):
        assert vote_agreement(only_ties, [0], ties="half").ceiling.lower == 0.5
        assert vote_agreement(only_ties, [0], ties="drop").ceiling is None


def test_there_is_one_weight_an_item():
    for weight in ([1.0, 2.0], [np.nan], [np.inf], [-1.0], ["a"], [[1.0]], [1.0, [2.0]]):
        with pytest.raises(DataError, match="one weight an item"):
            vote_agreement([[1, 2, 0]], [0], weight=weight)
    with pytest.raises(DataError, match="one weight an item"):
        vote_agreement([[1, 2, 0]] * 2, [0, 1], weight=[1e308, 1e308])
    idle = vote_agreement([[0, 0, 2]], [0], ties="half", weight=[0.0])
    assert (idle.ceiling, idle.reason) == (None, "no pair that weighs anything has two votes")
    with pytest.raises(DataError, match="ties=Half"):
        vote_agreement([[1, 2, 0]], [0], ties="Half")
    weightless = vote_agreement([[1, 2, 0], [1, 0, 0]], [0, 1], weight=[0.0, 1.0])
    assert weightless.ceiling is None
    assert "no pair that weighs anything" in weightless.reason


@given(value=st.floats(0.5, 1))
def test_both_ends_are_attained(value):
    """Consensus or a toss reaches the lower end, equally contested items the upper one."""
    tossed = 2 * (1 - value)
    ceiling = ceiling_bounds(known(value))
    assert ceiling.lower == pytest.approx((1 - tossed) + tossed / 2)
    p = (1 + np.sqrt(2 * value - 1)) / 2
    assert p**2 + (1 - p) ** 2 == pytest.approx(value)
    assert ceiling.upper == pytest.approx(p)


def test_an_oracle_is_inside_the_interval_and_above_the_lower_end():
    """Items of equal noise: 28 % disagreeing pairs, and a predictor that knows every p scores .832, not .72."""
    rng = np.random.default_rng(1)
    items, p = 20_000, 0.8316624790355399
    side = rng.choice([-1, 1], items)
    prob = np.where(side > 0, p, 1 - p)
    first = rng.binomial(2, prob)
    votes = np.stack([first, 2 - first, np.zeros(items)], axis=1)
    held_out = np.where(rng.random(items) < prob, 1, -1)
    oracle = (held_out == side).mean()
    error = 4 * np.sqrt(p * (1 - p) / items)
    ceiling = vote_agreement(votes, np.arange(items)).ceiling
    assert ceiling.lower == pytest.approx(0.72, abs=0.02)
    assert abs(oracle - p) < error
    assert ceiling.confidence[0] < oracle < ceiling.confidence[1]
    assert oracle > ceiling.lower + 2 * error  # the two-point formula taken as the ceiling is refuted


@pytest.mark.parametrize(
    "counts", [[1, 2, 0], [[1, 2]], [[1, 2, 0], [1]], [[1, 0.5, 0]], [[-1, 2, 0]], [[np.nan, 1, 1]]]
)
def test_counts_are_whole(counts):
    with pytest.raises(DataError, match="counts"):
        vote_agreement(counts, [0])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ukp_pairs", {"two_votes": 0.524, "two_votes_decided": 0.731, "vote_and_rest": 0.775, "vote_and_gold": 0.853}),
        ("pandalm_test", {"two_votes": 0.920, "vote_and_rest": 0.973}),
    ],
)
def test_public_sets_agree_as_published(shared, name, expected):
    data = public_set(shared, name)
    counts = data.votes.counts(data.num_comparisons)
    cluster = np.asarray(data.comparisons.prompt)[data.comparisons.first]
    result = vote_agreement(counts, cluster, gold=data.gold, selected=name == "pandalm_test")
    for figure, value in expected.items():
        assert getattr(result, figure).value == pytest.approx(value, abs=5.1e-4)
        assert getattr(result, figure).has_interval
    if name == "ukp_pairs":
        pooled = ceiling_bounds(result.two_votes_decided)
        assert (pooled.lower, pooled.upper) == pytest.approx((0.731, 0.840), abs=5.1e-4)
        assert result.ceiling.agreement.value == pytest.approx(0.7175, abs=5.1e-5)  # every vote once


def test_one_label_a_pair_is_not_measurable(shared):
    data = public_set(shared, "hh_harmless_test")
    c = data.comparisons
    counts = np.stack([c.wins_first, c.wins_second, c.ties], axis=1)
    assert not vote_agreement(counts, np.asarray(c.prompt)[c.first]).measured
