"""Laws of the kappas: published tables, chance in two other ways, and errors by the jackknife."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rmjax.errors import DataError, IdentifiabilityError, SampleSizeError
from rmjax.preferences.agreement import cohen_kappa, fleiss_kappa

C, ITEMS, RATINGS = 4, 25, 5
seeds = st.integers(0, 2**32 - 1)

# The method is of Fleiss, Measuring nominal scale agreement among many raters, Psychological Bulletin 1971; ten items,
# fourteen raters and five categories are the worked example of its public accounts.
FLEISS = [
    [0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7],
]  # fmt: skip


def table(seed):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 9, (C, C)) + np.diag(rng.integers(1, 9, C))


def ratings(seed):
    rng = np.random.default_rng(seed)
    return rng.multinomial(RATINGS, np.full(C, 1 / C), ITEMS) if seed % 2 else clumped(rng)


def clumped(rng):
    return np.stack([rng.multinomial(RATINGS, p) for p in rng.dirichlet(np.full(C, 0.3), ITEMS)])


def test_published_tables_to_the_printed_digits():
    assert cohen_kappa([[20, 5], [10, 15]]).value == pytest.approx(0.4, abs=1e-12)
    assert fleiss_kappa(FLEISS).value == pytest.approx(0.20993070, abs=5e-9)


@pytest.mark.parametrize(("agree", "kappa"), [(3, 0.5), (1, 0.0), (0, -1.0)])
def test_under_balanced_labels_kappa_is_twice_the_agreement_less_one(agree, kappa):
    """An agreement of 3/4 is a share of 1/2 of items that nobody doubts, if the others are even."""
    found = cohen_kappa([[agree, 1], [1, agree]])
    assert found.value == kappa == 2 * agree / (agree + 1) - 1


@given(seeds)
def test_cohens_kappa_is_agreement_against_every_pair_of_a_rating_of_one_and_of_the_other(seed):
    """By loops over items: chance is the agreement of the first rater on one item with the second on any."""
    counts = table(seed)
    rated = [(i, j) for i in range(C) for j in range(C) for _ in range(counts[i, j])]
    observed = np.mean([i == j for i, j in rated])
    one, other = np.array(rated).T
    expected = np.mean(one[:, None] == other[None, :])
    kappa = cohen_kappa(counts)
    assert kappa.observed == pytest.approx(observed)
    assert kappa.expected == pytest.approx(expected)
    assert kappa.value == pytest.approx((observed - expected) / (1 - expected))
    assert kappa.items == len(rated)


@given(seeds)
def test_fleiss_kappa_is_agreement_against_every_pair_of_ratings(seed):
    """By loops: pairs of ratings of one item, against pairs of any two ratings drawn with replacement."""
    counts = ratings(seed)
    each = [np.repeat(np.arange(C), n) for n in counts]
    same = [np.mean([x[i] == x[j] for i in range(RATINGS) for j in range(RATINGS) if i != j]) for x in each]
    pooled = np.concatenate(each)
    expected = np.mean(pooled[:, None] == pooled[None, :])
    kappa = fleiss_kappa(counts)
    assert kappa.value == pytest.approx((np.mean(same) - expected) / (1 - expected))


@given(seeds)
def test_names_of_raters_categories_and_items_do_not_count(seed):
    rng = np.random.default_rng(seed)
    order = rng.permutation(C)
    one = table(seed)
    for other in (one.T, one[order][:, order]):
        assert cohen_kappa(other).value == pytest.approx(cohen_kappa(one).value)
        assert cohen_kappa(other).standard_error == pytest.approx(cohen_kappa(one).standard_error)
    counts = ratings(seed)
    other = fleiss_kappa(counts[rng.permutation(ITEMS)][:, order])
    assert other.value == pytest.approx(fleiss_kappa(counts).value)
    assert other.standard_error == pytest.approx(fleiss_kappa(counts).standard_error)


@given(seeds)
def test_twice_the_items_leave_the_value_and_divide_the_error(seed):
    one, two = cohen_kappa(table(seed)), cohen_kappa(2 * table(seed))
    assert two.value == pytest.approx(one.value)
    assert two.standard_error == pytest.approx(one.standard_error / np.sqrt(2))
    one, two = fleiss_kappa(ratings(seed)), fleiss_kappa(np.tile(ratings(seed), (2, 1)))
    assert two.value == pytest.approx(one.value)
    assert two.standard_error == pytest.approx(one.standard_error * np.sqrt((ITEMS - 1) / (2 * ITEMS - 1)))


@given(seeds)
def test_errors_are_those_of_the_jackknife_where_items_are_many(seed):
    """Items left out one at a time. The two differ by less than 2 % where each is one of 1,000 or more."""
    counts = 40 * table(seed)
    kappa, total = cohen_kappa(counts), counts.sum()
    values, times = [], []
    for i, j in np.argwhere(counts):
        without = counts.copy()
        without[i, j] -= 1
        values.append(cohen_kappa(without).value)
        times.append(counts[i, j])
    mean = np.average(values, weights=times)
    error = np.sqrt((total - 1) / total * np.dot(times, (values - mean) ** 2))
    assert kappa.standard_error == pytest.approx(error, rel=0.02)

    once, many = ratings(seed), 40
    values = []
    whole = np.tile(once, (many, 1))
    for i in range(ITEMS):
        values.append(fleiss_kappa(np.delete(whole, i, axis=0)).value)
    error = np.sqrt((len(whole) - 1) / len(whole) * many * np.sum((values - np.mean(values)) ** 2))
    assert fleiss_kappa(whole).standard_error == pytest.approx(error, rel=0.02)


@given(seeds, st.floats(0.5, 0.99))
def test_the_interval_is_normal_and_at_most_one_only_where_all_agree(seed, confidence):
    kappa = cohen_kappa(table(seed), confidence=confidence)
    assert (kappa.lower + kappa.upper) / 2 == pytest.approx(kappa.value)
    assert kappa.confidence == confidence
    wide = cohen_kappa(table(seed), confidence=0.995)
    assert wide.lower <= kappa.lower <= kappa.value <= kappa.upper <= wide.upper
    assert (kappa.value < 1) == (np.trace(table(seed)) < table(seed).sum())
    half = (cohen_kappa(table(seed)).upper - kappa.value) / kappa.standard_error
    assert half == pytest.approx(1.959964, abs=1e-6)


def test_where_all_agree_there_is_a_value_and_no_interval():
    for kappa in (cohen_kappa(np.diag([3, 4])), fleiss_kappa([[2, 0], [0, 2], [2, 0]]), fleiss_kappa([[1, 1]])):
        assert np.isnan([kappa.standard_error, kappa.lower, kappa.upper]).all()
        assert kappa.method == "no interval: the items do not differ"
    assert cohen_kappa(np.diag([3, 4])).value == fleiss_kappa([[2, 0], [0, 2], [2, 0]]).value == 1


@given(seeds)
def test_raters_who_do_not_look_are_near_zero(seed):
    """2,000 items rated at random with uneven shares: within 5 standard errors, which one in a million leaves."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(C, 3.0))
    assume(shares.min() > 0.02)
    kappa = cohen_kappa(rng.multinomial(2000, np.outer(shares, shares[::-1]).ravel()).reshape(C, C))
    assert abs(kappa.value) <= 5 * kappa.standard_error
    kappa = fleiss_kappa(rng.multinomial(RATINGS, shares, 400))
    assert abs(kappa.value) <= 5 * kappa.standard_error


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: cohen_kappa([[1, 2, 3], [1, 2, 3]]), DataError, r"shape=\(2, 3\)"),
        (lambda: cohen_kappa([[1, -2], [1, 2]]), DataError, "row=0, column=1, count=-2"),
        (lambda: cohen_kappa([[1, 2], [0.5, 2]]), DataError, "row=1, column=0, count=0.5"),
        (lambda: cohen_kappa([[1, 2], [np.nan, 2]]), DataError, "count=nan"),
        (lambda: cohen_kappa([["a", "b"]]), DataError, "shape"),
        (lambda: cohen_kappa([1, 2]), DataError, "shape"),
        (lambda: cohen_kappa([[0, 0], [0, 0]]), SampleSizeError, "items=0"),
        (lambda: cohen_kappa([[5, 0], [0, 0]]), IdentifiabilityError, "all ratings are equal"),
        (lambda: cohen_kappa([[5, 1], [1, 5]], confidence=1), DataError, "confidence=1"),
        (lambda: fleiss_kappa([[2, 1], [2, 2]]), DataError, "item=1, ratings=4, item_0=3"),
        (lambda: fleiss_kappa([[1, 0], [0, 1]]), SampleSizeError, "fewest_ratings=1"),
        (lambda: fleiss_kappa(np.zeros((0, 3))), SampleSizeError, "items=0"),
        (lambda: fleiss_kappa([[3, 0], [3, 0]]), IdentifiabilityError, "ratings=6"),
    ],
)
def test_tables_that_say_nothing_are_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
