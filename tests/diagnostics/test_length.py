"""Laws of the length baseline, and its figures on public sets."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmjax import Comparisons
from rmjax.diagnostics import Targets, accuracy, length_baseline, length_margins
from rmjax.errors import DataError
from tests.diagnostics.public_sets import public_set
from tests.diagnostics.worlds import swap, world

seeds = st.integers(0, 2**32 - 1)


@given(seed=seeds)
def test_length_against_itself_gains_nothing(seed):
    _, comparisons, _, lengths, cluster = world(seed)
    labels = Targets.from_votes(comparisons, cluster=cluster, ties="drop")
    longer = length_margins(lengths, comparisons)
    baseline = length_baseline(longer, lengths, comparisons, labels)
    if baseline.rule == "longer":
        assert baseline.gain.value == 0
    else:
        assert baseline.gain.value < 0


@given(seed=seeds)
def test_the_gain_is_over_the_better_rule_and_the_same_from_both_sides(seed):
    margins, comparisons, gold, lengths, cluster = world(seed)
    labels = Targets.from_gold(comparisons, gold, cluster=cluster, unit="prompt")
    baseline = length_baseline(margins, lengths, comparisons, labels)
    best = max(baseline.longer_wins.value, 1 - baseline.longer_wins.value)
    own = accuracy(margins, labels, score_ties="half").value
    # Every prompt weighs the same here, so the mean over clusters is the ratio of sums.
    assert baseline.gain.value == pytest.approx(own - best, abs=1e-6)  # the weights are float32
    by_vote = Targets.from_gold(comparisons, gold, cluster=cluster)
    pooled = length_baseline(margins, lengths, comparisons, by_vote)
    best = max(pooled.longer_wins.value, 1 - pooled.longer_wins.value)
    own = accuracy(margins, by_vote, score_ties="half").value
    assert pooled.pooled_gain.value == pytest.approx(own - best)
    mirrored = swap(comparisons)
    labels = Targets.from_gold(mirrored, -gold, cluster=cluster, unit="prompt")
    assert length_baseline(-margins, lengths, mirrored, labels) == baseline


def test_equal_lengths_count_half_and_short_answers_may_be_the_rule():
    pairs = Comparisons.from_pairs([0, 2, 4], [1, 3, 5], prompt=[0, 0, 1, 1, 2, 2])
    labels = Targets.from_votes(pairs, cluster=[0, 1, 2])
    baseline = length_baseline([1.0, 1.0, 1.0], [3, 3, 2, 7, 2, 9], pairs, labels)
    assert baseline.longer_wins.value == pytest.approx(1 / 6)
    assert baseline.rule == "shorter"
    assert baseline.gain.value == pytest.approx(1 / 6)


def test_one_length_per_response():
    with pytest.raises(DataError, match="one length"):
        length_margins([1, 2, 3], Comparisons.from_pairs([0], [1], prompt=[0, 0]))


@pytest.mark.parametrize(
    ("name", "labels", "expected"),
    [("ukp_pairs", "gold", 0.745), ("ukp_pairs", "votes", 0.685), ("pandalm_test", "votes", 0.666),
     ("hh_harmless_test", "votes", 0.446)],
)  # fmt: skip
def test_public_sets_prefer_long_answers_as_often_as_published(shared, name, labels, expected):
    data = public_set(shared, name, "ukp_arguments" if name == "ukp_pairs" else None)
    characters = [len(text) for text in map(_last, data.responses)]
    comparisons, cluster = data.comparisons, np.zeros(data.num_comparisons)
    if labels == "gold":
        targets = Targets.from_gold(comparisons, data.gold, cluster=cluster)
    else:
        targets = Targets.from_votes(comparisons, cluster=cluster, ties="drop")
    longer = length_margins(characters, comparisons)
    assert accuracy(longer, targets, score_ties="half").value == pytest.approx(expected, abs=6e-4)


def _last(text):
    """The answer's own words."""
    return text if isinstance(text, str) else text[-1][1]
