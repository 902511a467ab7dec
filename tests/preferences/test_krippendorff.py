"""Laws of Krippendorff's alpha: published numbers, pairs one by one, and what each level is blind to."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmjax.errors import DataError, IdentifiabilityError, SampleSizeError
from rmjax.preferences.agreement import fleiss_kappa
from rmjax.preferences.krippendorff import krippendorff_alpha

ITEMS, RATERS, VALUES = 12, 4, 5
LEVELS = ["nominal", "ordinal", "interval", "ratio"]
seeds = st.integers(0, 2**32 - 1)
levels = st.sampled_from(LEVELS)
NONE = None

# Krippendorff, Computing Krippendorff's alpha-reliability, 2011, section C: the units with two ratings or more.
PUBLISHED = [
    [1, 1, NONE, 1], [2, 2, 3, 2], [3, 3, 3, 3], [3, 3, 3, 3], [2, 2, 2, 2], [1, 2, 3, 4],
    [4, 4, 4, 4], [1, 1, 2, 1], [2, 2, 2, 2], [NONE, 5, 5, 5], [NONE, NONE, 1, 1],
]  # fmt: skip


def rated(seed):
    """Ratings from 1 to VALUES around one of the item, with gaps; the first two items have all of theirs."""
    rng = np.random.default_rng(seed)
    x = np.clip(rng.integers(1, VALUES + 1, (ITEMS, 1)) + rng.integers(-1, 2, (ITEMS, RATERS)), 1, VALUES).astype(float)
    x[rng.random(x.shape) < 0.3] = np.nan
    x[:2] = [[1, 2, 2, 2], [3, 5, 4, 3]]
    return x


def alpha(x, level, **options):
    return krippendorff_alpha(x, level, resamples=2, **options).value


def one_by_one(x, level):
    """By loops over pairs of ratings: those of one item, weighed by 1 / (m - 1), and those of all."""
    items = [row[~np.isnan(row)] for row in x]
    items = [row for row in items if len(row) >= 2]
    pooled = np.concatenate(items)

    def delta(c, k):
        if level == "nominal":
            return float(c != k)
        if level == "interval":
            return (c - k) ** 2
        if level == "ratio":
            return ((c - k) / (c + k)) ** 2 if c + k else 0.0
        low, high = min(c, k), max(c, k)
        between = np.sum((pooled >= low) & (pooled <= high))
        return (between - (np.sum(pooled == low) + np.sum(pooled == high)) / 2) ** 2 if low < high else 0.0

    observed = sum(delta(c, k) / (len(row) - 1) for row in items for c, k in itertools.permutations(row, 2))
    expected = sum(delta(c, k) for c, k in itertools.permutations(pooled, 2)) / (len(pooled) - 1)
    return 1 - observed / expected


@pytest.mark.parametrize(
    ("level", "value"),
    [("nominal", 0.7434210526), ("ordinal", 0.8153875038), ("interval", 0.8491071429), ("ratio", 0.7974027747)],
)
def test_the_published_ratings_to_the_printed_digits(level, value):
    assert krippendorff_alpha(PUBLISHED, level).value == pytest.approx(value, abs=5e-11)


@given(seeds, levels)
def test_alpha_is_that_of_pairs_one_by_one(seed, level):
    assert alpha(rated(seed), level) == pytest.approx(one_by_one(rated(seed), level), rel=1e-9, abs=1e-9)
    zeros = rated(seed) - 1
    assert alpha(zeros, level) == pytest.approx(one_by_one(zeros, level), rel=1e-9, abs=1e-9)


@given(seeds, levels)
def test_order_and_items_with_one_rating_change_nothing(seed, level):
    x, rng = rated(seed), np.random.default_rng(seed)
    shuffled = rng.permuted(x[rng.permutation(ITEMS)], axis=1)
    lone = np.full((2, RATERS), np.nan)
    lone[0, 1] = 99
    assert alpha(shuffled, level) == pytest.approx(alpha(x, level))
    assert alpha(np.vstack([x, lone]), level) == alpha(x, level)
    assert krippendorff_alpha(np.vstack([x, lone]), level).items == ((~np.isnan(x)).sum(axis=1) >= 2).sum()


@given(seeds)
def test_each_level_is_blind_to_what_it_does_not_mean(seed):
    """Names, orders, lines and units. The level below a change is not: a monotone bend moves "interval"."""
    x = rated(seed)
    name = np.append(np.random.default_rng(seed).permutation(VALUES) + 1.0, np.nan)
    renamed = name[np.where(np.isnan(x), VALUES + 1, x).astype(int) - 1]
    assert alpha(renamed, "nominal") == pytest.approx(alpha(x, "nominal"))
    assert alpha(np.exp(x), "ordinal") == pytest.approx(alpha(x, "ordinal"))
    assert alpha(VALUES - x, "ordinal") == pytest.approx(alpha(x, "ordinal"))
    assert alpha(7 - 3 * x, "interval") == pytest.approx(alpha(x, "interval"))
    assert alpha(3 * x, "ratio") == pytest.approx(alpha(x, "ratio"))
    assert abs(alpha(np.exp(x), "interval") - alpha(x, "interval")) > 1e-6
    assert abs(alpha(7 + x, "ratio") - alpha(x, "ratio")) > 1e-6


@given(seeds)
def test_without_gaps_it_is_fleiss_kappa_but_for_drawing_without_replacement(seed):
    """1 - alpha = (1 - kappa)(N - 1) / N over N ratings, with chance among other ratings and not all."""
    x = np.random.default_rng(seed).integers(0, 3, (ITEMS, RATERS))
    x[0] = [0, 1, 0, 1]
    kappa = fleiss_kappa((x[:, :, None] == np.arange(3)).sum(axis=1)).value
    assert 1 - alpha(x, "nominal") == pytest.approx((1 - kappa) * (x.size - 1) / x.size)


@given(seeds, levels)
def test_one_is_only_where_every_item_is_unanimous(seed, level):
    x = rated(seed)
    same = np.where(np.isnan(x), np.nan, np.arange(ITEMS)[:, None] % VALUES + 1.0)
    assert alpha(same, level) == 1
    assert alpha(x, level) < 1


@given(seeds, levels)
def test_the_interval_is_of_items_drawn_anew(seed, level):
    """The batches draw as one loop over resamples does; its spread is the error and its percentiles the interval."""
    x = rated(seed)
    kept = x[(~np.isnan(x)).sum(axis=1) >= 2]
    drawn = np.random.default_rng(7).multinomial(len(kept), np.full(len(kept), 1 / len(kept)), 3)
    values = [one_by_one(np.repeat(kept, n, axis=0), level) for n in drawn]
    got = krippendorff_alpha(x, level, resamples=3, seed=7, confidence=0.5)
    assert got.standard_error == pytest.approx(np.std(values, ddof=1), rel=1e-9)
    assert (got.lower, got.upper) == pytest.approx(tuple(np.quantile(values, [0.25, 0.75])), rel=1e-9)
    assert got == krippendorff_alpha(x, level, resamples=3, seed=7, confidence=0.5)


def test_the_interval_covers_as_often_as_it_says():
    """95 % of intervals from 60 items hold the value of a large world, within 4 standard errors of 100 trials.

    Percentiles of so few items fall short by up to 3 points, which the bound allows for.
    """
    rng = np.random.default_rng(1)

    def world(items):
        truth = rng.integers(1, 4, (items, 1))
        return np.where(rng.random((items, 3)) < 0.7, truth, rng.integers(1, 4, (items, 3)))

    whole = krippendorff_alpha(world(40_000), resamples=2).value
    found = [krippendorff_alpha(world(60), resamples=200, seed=s) for s in range(100)]
    covered = np.mean([one.lower <= whole <= one.upper for one in found])
    assert abs(covered - 0.95) <= 4 * np.sqrt(0.95 * 0.05 / 100) + 0.03


def test_where_items_do_not_differ_there_is_a_value_and_no_interval():
    for x, value in (([[1, 1], [2, 2]], 1), ([[1, 2]], 0)):
        got = krippendorff_alpha(x)
        assert got.value == value
        assert np.isnan([got.standard_error, got.lower, got.upper]).all()
        assert got.method.startswith("no interval")


@pytest.mark.parametrize(
    ("ratings", "options", "error", "message"),
    [
        ([[1, np.inf]], {}, DataError, "item=0, rater=1, rating=inf"),
        ([[1, -1]], {"level": "ratio"}, DataError, "rating=-1"),
        ([1, 2], {}, DataError, r"shape=\(2,\)"),
        ([["good", "bad"]], {}, DataError, "ratings are numbers"),
        ([[1, None], [None, 2]], {}, SampleSizeError, "items=2, most_ratings=1"),
        (np.zeros((0, 3)), {}, SampleSizeError, "items=0"),
        ([[3, 3], [3, 3]], {}, IdentifiabilityError, "all ratings are equal"),
        ([[1, 2], [3, 3]], {"level": "cardinal"}, DataError, "level is a choice of 4"),
        ([[1, 2], [3, 3]], {"resamples": 1}, DataError, "resamples=1"),
        ([[1, 2], [3, 3]], {"confidence": 0}, DataError, "confidence=0"),
    ],
)
def test_ratings_that_say_nothing_are_refused(ratings, options, error, message):
    with pytest.raises(error, match=message):
        krippendorff_alpha(ratings, **options)
