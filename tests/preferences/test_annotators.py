"""Laws of Dawid and Skene's estimate: a published set, a likelihood that never falls, and names that do not count."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rmjax import Votes
from rmjax.errors import DataError, SampleSizeError
from rmjax.preferences.annotators import dawid_skene, label_counts
from rmjax.preferences.published import anaesthetists

ITEMS, A, C = 30, 4, 3
seeds = st.integers(0, 2**32 - 1)
# The anaesthetists: the maximum of the likelihood to which the shares of labels lead, computed independently; the paper
# prints the prevalences as .40, .42, .11 and .07.
PREVALENCE = (0.399555, 0.421983, 0.111795, 0.066667)
LOG_LIKELIHOOD = -192.8908812142


def labels(seed, accuracy=0.7, items=ITEMS):
    """Labels of A annotators, who miss an item now and then, and the true classes."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, C, items)
    said = np.where(rng.random((items, A)) < accuracy, truth[:, None], rng.integers(0, C, (items, A)))
    counts = np.eye(C, dtype=int)[said] * (rng.random((items, A, 1)) < 0.8)
    counts[0] = np.eye(C, dtype=int)[0]
    return counts, truth


def likelihood(counts, fit):
    """By loops over items, classes and labels."""
    total = 0.0
    for n in counts:
        chance = 0.0
        for j, share in enumerate(fit.prevalence):
            for a, label in zip(*np.nonzero(n), strict=True):
                share = share * fit.confusion[a, j, label] ** n[a, label] if share else 0.0
            chance += share
        total += np.log(chance)
    return total


def test_the_anaesthetists_to_the_printed_digits():
    fit = dawid_skene(anaesthetists())
    np.testing.assert_allclose(fit.prevalence, PREVALENCE, rtol=0, atol=5e-7)
    assert fit.log_likelihood == pytest.approx(LOG_LIKELIHOOD, abs=5e-10)
    assert fit.converged
    np.testing.assert_array_equal(fit.prevalence.round(2), [0.40, 0.42, 0.11, 0.07])
    # The three patients of whom the chance of the best class is below .99.
    doubtful = np.flatnonzero(fit.posterior.max(axis=1) < 0.99)
    assert doubtful.tolist() == [6, 34, 37]
    assert [f"{p:.6f}" for p in fit.posterior[doubtful].max(axis=1)] == ["0.981020", "0.947995", "0.978800"]


@given(seeds, st.sampled_from([0.1, 0.6, 0.95]))
def test_the_log_likelihood_never_falls_and_is_that_of_the_result(seed, accuracy):
    counts, _ = labels(seed, accuracy)
    fit = dawid_skene(counts, max_iterations=200)
    rounding = 16 * np.finfo(float).eps * np.abs(fit.trace).max()
    assert (np.diff(fit.trace) >= -rounding).all()
    assert len(fit.trace) == fit.iterations + 1
    assert fit.log_likelihood == fit.trace[-1] == pytest.approx(likelihood(counts, fit), rel=1e-12)


@given(seeds)
def test_what_converged_is_a_fixed_point(seed):
    """Prevalence is the mean posterior and a confusion the share of labels, by loops; both of what came out."""
    counts, _ = labels(seed)
    fit = dawid_skene(counts)
    assume(fit.converged)
    told = counts.sum(axis=(1, 2)) > 0
    np.testing.assert_allclose(fit.prevalence, fit.posterior[told].mean(axis=0), atol=1e-9)
    for a in range(A):
        for j in range(C):
            given_ = sum(fit.posterior[i, j] * counts[i, a] for i in range(ITEMS))
            if np.isfinite(fit.confusion[a, j]).all() and given_.sum() > 1e-6:
                np.testing.assert_allclose(fit.confusion[a, j], given_ / given_.sum(), atol=1e-5)


@given(seeds)
def test_chances_sum_to_1_and_what_nobody_judged_is_not_known(seed):
    fit = dawid_skene(labels(seed)[0])
    np.testing.assert_allclose(fit.posterior.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(fit.prevalence.sum(), 1, rtol=1e-12)
    known = np.isfinite(fit.confusion)
    assert (known.all(axis=2) | ~known.any(axis=2)).all()
    np.testing.assert_allclose(fit.confusion.sum(axis=2)[known.all(axis=2)], 1, rtol=1e-12)


def test_a_class_that_an_annotator_never_met_has_no_confusion():
    counts = np.zeros((4, 3, 2), int)
    counts[:2, :, 0] = counts[2:, :, 1] = 1
    counts[2:, 2] = 0
    fit = dawid_skene(counts)
    assert np.isnan(fit.confusion[2, 1]).all()
    np.testing.assert_array_equal(fit.confusion[2, 0], [1, 0])
    np.testing.assert_array_equal(fit.posterior, [[1, 0], [1, 0], [0, 1], [0, 1]])


@given(seeds)
def test_renaming_labels_annotators_and_items_renames_the_result(seed):
    """Up to the order of sums: the first twenty steps, before a start that is evenly split can drift."""
    counts, _ = labels(seed)
    rng = np.random.default_rng(seed)
    item, who, label = rng.permutation(ITEMS), rng.permutation(A), rng.permutation(C)
    one = dawid_skene(counts, max_iterations=20)
    other = dawid_skene(counts[item][:, who][:, :, label], max_iterations=20)
    np.testing.assert_allclose(other.posterior, one.posterior[item][:, label], atol=1e-8)
    np.testing.assert_allclose(other.confusion, one.confusion[who][:, label][:, :, label], atol=1e-8)


@given(seeds)
def test_an_item_without_labels_changes_nothing(seed):
    counts, _ = labels(seed)
    counts = counts[counts.sum(axis=(1, 2)) > 0]
    one = dawid_skene(counts, max_iterations=30)
    more = dawid_skene(np.concatenate([counts[:3], np.zeros((2, A, C)), counts[3:]]), max_iterations=30)
    np.testing.assert_array_equal(more.prevalence, one.prevalence)
    np.testing.assert_array_equal(more.trace, one.trace)
    np.testing.assert_array_equal(more.posterior[3:5], np.tile(one.prevalence, (2, 1)))
    np.testing.assert_array_equal(np.delete(more.posterior, [3, 4], axis=0), one.posterior)


def test_it_beats_the_majority_where_annotators_differ():
    """One careful annotator and three careless ones: weighed by what they are worth, over 10 worlds of 200 items."""
    by_model, by_majority = [], []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        truth = rng.integers(0, 2, 200)
        right = rng.random((200, 5)) < [0.95, 0.9, 0.6, 0.6, 0.6]
        counts = np.eye(2)[np.where(right, truth[:, None], 1 - truth[:, None])]
        fit = dawid_skene(counts)
        by_model.append((fit.posterior.argmax(axis=1) == truth).mean())
        by_majority.append((counts.sum(axis=1).argmax(axis=1) == truth).mean())
    gain = np.array(by_model) - by_majority
    assert gain.mean() > 4 * gain.std(ddof=1) / np.sqrt(len(gain))


def test_too_few_steps_are_said():
    fit = dawid_skene(anaesthetists(), max_iterations=2)
    assert (fit.converged, fit.iterations) == (False, 2)
    assert fit.log_likelihood < LOG_LIKELIHOOD
    again = dawid_skene(anaesthetists(), tolerance=0.5)
    assert again.converged
    assert again.iterations < 24


@given(seeds)
def test_labels_of_votes_lose_nothing_but_abstentions(seed):
    rng = np.random.default_rng(seed)
    votes = Votes.build(rng.integers(0, 6, 40), rng.integers(0, 4, 40), rng.integers(0, 4, 40))
    counts = label_counts(votes, 8)
    np.testing.assert_array_equal(counts.sum(axis=1), votes.counts(8)[:, :3])
    for item, annotator, value in zip(votes.item, votes.annotator, votes.value, strict=True):
        same = (votes.item == item) & (votes.annotator == annotator) & (votes.value == value)
        assert value == 3 or counts[item, annotator, value] == same.sum()
    np.testing.assert_array_equal(label_counts(votes), counts[: votes.item.max() + 1])


def test_a_table_holds_every_vote_and_fits_in_memory():
    with pytest.raises(DataError, match="vote=1, item=5, items=2"):
        label_counts(Votes.build([0, 5], [0, 1], [0, 1]), num_items=2)
    # Identifiers of a crowd are no indices.
    with pytest.raises(SampleSizeError, match="annotators=2000000001"):
        label_counts(Votes.build([0, 0], [7, 2_000_000_000], [0, 1]))


def test_no_votes_are_no_labels():
    assert label_counts(Votes.build([], [], [])).shape == (0, 0, 3)


@pytest.mark.parametrize(
    ("counts", "options", "error", "message"),
    [
        ([[[1, 0], [0, -1]]], {}, DataError, "item=0, annotator=1, label=1, count=-1"),
        ([[[1, 0], [0.5, 1]]], {}, DataError, "count=0.5"),
        ([[[1, 0], [np.nan, 1]]], {}, DataError, "count=nan"),
        ([[1, 0]], {}, DataError, r"shape=\(1, 2\)"),
        ([[[1], [1]]], {}, DataError, "two categories"),
        ([[["a", "b"]]], {}, DataError, "two categories"),
        ([[[1, 0], [0, 0]]], {}, SampleSizeError, "labels_on_one=1"),
        (np.zeros((0, 2, 2)), {}, SampleSizeError, "items=0"),
        ([[[1, 0], [1, 0]]], {"tolerance": 0}, DataError, "tolerance=0"),
        ([[[1, 0], [1, 0]]], {"max_iterations": 0}, DataError, "max_iterations=0"),
    ],
)
def test_labels_that_are_none_are_refused(counts, options, error, message):
    with pytest.raises(error, match=message):
        dawid_skene(counts, **options)
