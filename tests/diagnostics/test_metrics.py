"""Laws of the metrics: sums and counts, symmetry, ties, units, and agreement with the core's likelihood."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmjax import Comparisons, losses
from rmjax.diagnostics import (
    Targets,
    accuracy,
    accuracy_terms,
    likelihood_terms,
    margin_terms,
    mean_margin,
    negative_log_likelihood,
)
from rmjax.errors import DataError
from tests.diagnostics.worlds import swap, world

TERMS = [accuracy_terms, likelihood_terms, margin_terms]
POLICIES = ["drop", "half"]
seeds = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("ties", POLICIES)
@pytest.mark.parametrize("unit", ["vote", "comparison", "prompt"])
@given(seed=seeds)
def test_swapping_sides_with_their_votes_changes_nothing(ties, unit, seed):
    margins, comparisons, gold, _, cluster = world(seed)
    flip = np.random.default_rng(seed).random(len(margins)) < 0.5
    swapped_margins, swapped = np.where(flip, -margins, margins), swap(comparisons, flip)
    options = {"cluster": cluster, "unit": unit}
    a = Targets.from_votes(comparisons, ties=ties, **options)
    b = Targets.from_votes(swapped, ties=ties, **options)
    for terms in TERMS:
        np.testing.assert_allclose(terms(margins, a), terms(swapped_margins, b), rtol=1e-12)
    c = Targets.from_gold(comparisons, gold, **options)
    d = Targets.from_gold(swapped, np.where(flip, -gold, gold), **options)
    for terms in TERMS:
        np.testing.assert_allclose(terms(margins, c), terms(swapped_margins, d), rtol=1e-12)


@pytest.mark.parametrize("ties", POLICIES)
@given(seed=seeds)
def test_accuracy_of_negated_margins(ties, seed):
    """As halves the accuracies add up to 1; strictly, they leave out the labels that the score ties decide."""
    margins, comparisons, _, _, cluster = world(seed)
    labels = Targets.from_votes(comparisons, cluster=cluster, ties=ties)
    halves = [accuracy(s * margins, labels, score_ties="half").value for s in (1, -1)]
    strict = [accuracy(s * margins, labels).value for s in (1, -1)]
    score_ties = labels.counts[margins == 0].sum() / labels.counts.sum()
    assert sum(halves) == pytest.approx(1)
    assert sum(strict) == pytest.approx(1 - score_ties)


@given(seed=seeds, scale=st.floats(0.01, 100))
def test_accuracy_does_not_know_the_scale(seed, scale):
    margins, comparisons, _, _, cluster = world(seed)
    labels = Targets.from_votes(comparisons, cluster=cluster, ties="drop")
    assert accuracy(scale * margins, labels) == accuracy(margins, labels)


@pytest.mark.parametrize("ties", POLICIES)
@given(seed=seeds)
def test_likelihood_is_that_of_the_training_loss(ties, seed):
    """The same sum and count as `losses.negative_log_likelihood`, which works in float32 on scores."""
    _, comparisons, _, _, cluster = world(seed)
    scores = np.random.default_rng(seed).normal(0, 2, comparisons.num_responses).astype(np.float32)
    margins = np.asarray(losses.margins(scores, comparisons))
    labels = Targets.from_votes(comparisons, cluster=cluster, ties=ties)
    expected, denominator = losses.negative_log_likelihood(jnp.asarray(scores), comparisons, ties=ties)
    sums, counts = likelihood_terms(margins, labels)
    assert sums.sum() == pytest.approx(float(expected), rel=1e-5)
    assert counts.sum() == pytest.approx(float(denominator), rel=1e-6)
    assert negative_log_likelihood(margins, labels).count == counts.sum()


def test_the_likelihood_of_twelve_predictions_to_the_printed_digits():
    """Computed apart from this library; the same twelve have an expected calibration error of .275."""
    p = np.array([0.05, 0.15, 0.25, 0.35, 0.45, 0.55, 0.55, 0.65, 0.75, 0.85, 0.95, 0.95])
    y = np.array([0, 0, 1, 0, 1, 0, 1, 1, 0, 1, 1, 1])
    pairs = Comparisons.from_votes(2 * np.arange(12), 2 * np.arange(12) + 1, y, 1 - y, prompt=np.arange(24) // 2)
    labels = Targets.from_votes(pairs, cluster=np.arange(12))
    assert f"{negative_log_likelihood(np.log(p / (1 - p)), labels).value:.8f}" == "0.52566039"


@given(seed=seeds, cut=st.integers(1, 59))
def test_any_split_of_the_comparisons_gives_the_same_sums_and_counts(seed, cut):
    margins, comparisons, _, _, cluster = world(seed)
    for terms in TERMS:
        parts = [
            terms(margins[part], Targets.from_votes(_part(comparisons, part), cluster=cluster[part], ties="half"))
            for part in (slice(0, cut), slice(cut, None))
        ]
        whole = terms(margins, Targets.from_votes(comparisons, cluster=cluster, ties="half"))
        np.testing.assert_allclose(np.hstack(parts), whole, rtol=1e-12)


def _part(comparisons, part):
    edges = {
        f.name: getattr(comparisons, f.name)[part]
        for f in dataclasses.fields(comparisons)
        if f.name != "prompt" and getattr(comparisons, f.name) is not None
    }
    return dataclasses.replace(comparisons, **edges)


@pytest.mark.parametrize("terms", TERMS)
@pytest.mark.parametrize("wicked", [np.nan, np.inf, -np.inf])
def test_padding_is_deletion_whatever_its_margin(terms, wicked):
    margins, comparisons, _, _, cluster = world(3)
    n = len(margins)
    padded = comparisons.pad(n + 2, comparisons.num_responses + 1)
    labels = Targets.from_votes(padded, cluster=np.append(cluster, [77, 78]), ties="half")
    whole = Targets.from_votes(comparisons, cluster=cluster, ties="half")
    sums, counts = terms(np.append(margins, [wicked, wicked]), labels)
    np.testing.assert_array_equal(sums[:n], terms(margins, whole)[0])
    np.testing.assert_array_equal(np.append(sums[n:], counts[n:]), 0)
    with pytest.raises(DataError, match="not finite"):
        terms(np.append(margins[:-1], wicked), whole)


def test_a_label_tie_is_half_for_either_side_or_nothing():
    pair = Comparisons.from_votes([0], [1], [1], [0], prompt=[0, 0], ties=[2])
    half, drop = (Targets.from_votes(pair, cluster=[0], ties=t) for t in POLICIES[::-1])
    assert accuracy([1.0], half).value == pytest.approx(2 / 3)
    assert accuracy([1.0], drop).value == 1
    assert (accuracy([1.0], half).count, accuracy([1.0], drop).count) == (3, 1)
    assert mean_margin([1.5], half).value == pytest.approx(0.5)
    with pytest.raises(DataError, match="ties"):
        Targets.from_votes(pair, cluster=[0])


@pytest.mark.parametrize("ties", POLICIES)
@given(seed=seeds)
def test_every_unit_counts_one(ties, seed):
    """Ties are among the votes that count where they are halved, and not where they are left out."""
    _, comparisons, _, _, cluster = world(seed)
    counts = {
        unit: Targets.from_votes(comparisons, cluster=cluster, ties=ties, unit=unit).counts
        for unit in ("vote", "comparison", "prompt")
    }
    voted = counts["vote"] > 0
    np.testing.assert_allclose(counts["comparison"], voted, rtol=1e-6)
    np.testing.assert_allclose(np.bincount(cluster, weights=counts["prompt"]), 1, rtol=1e-6)
    # Within a prompt, every vote weighs the same.
    for prompt in np.unique(cluster[voted]):
        shares = (counts["prompt"] / counts["vote"].clip(1))[voted & (cluster == prompt)]
        np.testing.assert_allclose(shares, shares[0], rtol=1e-6)


def test_units_say_what_counts_as_one():
    """Two pairs of one prompt with 4 and 1 votes, one pair of another with 1 vote; the first pair is wrong."""
    pairs = Comparisons.from_votes([0, 0, 3], [1, 2, 4], [4, 1, 1], [0, 0, 0], prompt=[0, 0, 0, 1, 1])
    shares = {
        unit: accuracy([-1.0, 1.0, 1.0], Targets.from_votes(pairs, cluster=[0, 0, 1], unit=unit))
        for unit in ("vote", "comparison", "prompt")
    }
    assert {unit: round(e.value, 4) for unit, e in shares.items()} == {
        "vote": 0.3333,
        "comparison": 0.6667,
        "prompt": 0.6,
    }
    assert [shares[unit].count for unit in shares] == pytest.approx([6, 3, 2])


def test_hard_labels_give_the_metrics_of_trl():
    """Accuracy is strict, margin is chosen minus rejected, loss is the mean over pairs."""
    pairs = Comparisons.from_pairs([0, 2, 4], [1, 3, 5], prompt=[0, 0, 1, 1, 2, 2])
    labels = Targets.from_votes(pairs, cluster=[0, 1, 2])
    margins = np.array([2.0, 0.0, -1.0])
    assert accuracy(margins, labels).value == pytest.approx(1 / 3)
    assert mean_margin(margins, labels).value == pytest.approx(1 / 3)
    assert negative_log_likelihood(margins, labels).value == pytest.approx(np.log1p(np.exp(-margins)).mean())


def test_shapes_and_labels_are_checked():
    pairs = Comparisons.from_pairs([0, 2], [1, 3], prompt=[0, 0, 1, 1])
    labels = Targets.from_votes(pairs, cluster=[0, 1])
    with pytest.raises(DataError, match="one margin"):
        accuracy([1.0], labels)
    with pytest.raises(DataError, match="one cluster"):
        Targets.from_votes(pairs, cluster=[0])
    for gold in ([1], [2, 0]):
        with pytest.raises(DataError, match="gold"):
            Targets.from_gold(pairs, gold, cluster=[0, 1])
