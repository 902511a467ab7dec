"""Laws of the embedded data: one world whatever its size, gold of the rewards, votes as they were cast."""

import dataclasses

import numpy as np
import pytest

from rmjax.data.dataset import subset
from rmjax.data.split import split
from rmjax.data.synthetic import FEATURES, World, make
from rmjax.votes import CANNOT_JUDGE

WORLD = World(num_prompts=60)
MADE = make(WORLD)


def fields(made):
    c = made.data.comparisons
    return [made.gold, made.features, made.wording, made.margin, made.flips, made.data.rows, made.data.abstentions] + [
        np.asarray(x) for x in (c.first, c.second, c.wins_first, c.wins_second, c.ties, c.prompt, made.data.votes.value)
    ]


def test_the_same_dials_make_the_same_world():
    again = make(WORLD)
    assert (again.data.prompts, again.data.responses) == (MADE.data.prompts, MADE.data.responses)
    for one, two in zip(fields(again), fields(MADE)):
        np.testing.assert_array_equal(one, two)
    assert make(dataclasses.replace(WORLD, seed=1)).data.responses != MADE.data.responses


def test_more_prompts_extend_the_same_world():
    small = make(dataclasses.replace(WORLD, num_prompts=20))
    assert MADE.data.prompts[:20] == small.data.prompts
    assert MADE.data.responses[:80] == small.data.responses
    for one, two in zip(fields(MADE), fields(small)):
        np.testing.assert_array_equal(one[: len(two)], two)


@pytest.mark.parametrize(
    "dial", [{"temperature": 3.0}, {"tie": 2.0}, {"abstention": 0.5}, {"flip_rate": 0.5}, {"cycle": 2.0}, {"votes": 7}]
)
def test_dials_of_the_annotators_leave_texts_and_truth_alone(dial):
    other = make(dataclasses.replace(WORLD, **dial))
    assert other.data.responses == MADE.data.responses
    np.testing.assert_array_equal(other.gold, MADE.gold)
    np.testing.assert_array_equal(other.data.gold, MADE.data.gold)


def test_gold_is_what_the_features_are_worth():
    worth = [getattr(WORLD, name) for name in FEATURES]
    np.testing.assert_allclose(MADE.gold, MADE.features @ worth)
    c, data = MADE.data.comparisons, MADE.data
    better = MADE.gold[c.first] - MADE.gold[c.second]
    np.testing.assert_array_equal(data.gold, np.sign(better))
    np.testing.assert_array_equal(data.gold_ties, better == 0)
    np.testing.assert_allclose(MADE.margin, better / WORLD.temperature, atol=1e-12)


def test_every_pair_of_candidates_is_compared_once_and_every_vote_is_kept():
    c, data = MADE.data.comparisons, MADE.data
    pairs = {frozenset(pair) for pair in zip(c.first.tolist(), c.second.tolist())}
    assert len(pairs) == data.num_comparisons == 60 * 6
    assert (c.prompt[c.first] == c.prompt[c.second]).all()
    assert len(data.votes.item) == data.num_comparisons * WORLD.votes
    judged = c.wins_first + c.wins_second + c.ties
    np.testing.assert_array_equal(judged + data.abstentions, np.full(data.num_comparisons, WORLD.votes))


def test_an_abstention_is_not_a_tie():
    made = make(dataclasses.replace(WORLD, abstention=0.5, tie=0.0))
    assert not made.data.comparisons.ties.any()
    assert made.data.abstentions.sum() == (made.data.votes.value == CANNOT_JUDGE).sum() > 0
    c = make(dataclasses.replace(WORLD, abstention=0.0, tie=1.0)).data
    assert c.comparisons.ties.sum() > 0
    assert not c.abstentions.any()


def test_slices_say_in_what_two_answers_differ():
    c, columns = MADE.data.comparisons, MADE.data.columns
    differs = MADE.features[c.first] != MADE.features[c.second]
    for words, row in zip(columns["differs_in"], differs):
        assert {name for name in FEATURES if name in words.split(" and ")} == {
            name for name, here in zip(FEATURES, row) if here
        }
    assert set(columns["task"]) == {"add", "take", "larger", "smaller"}
    assert set(columns["form"]) == {"plainly", "in capitals"}


def test_it_splits_by_prompt_and_no_text_stands_on_both_sides():
    """The default world has no text under two prompts, so each prompt can go where it likes."""
    data = MADE.data
    assert len(set(data.responses)) == len(data.responses)
    assert len(set(data.prompts)) == len(data.prompts)
    parts = split(data, {"train": 0.75, "held_out": 0.25}, 0).parts
    assert not set(parts["train"].responses) & set(parts["held_out"].responses)
    assert abs(parts["held_out"].num_comparisons - 90) <= 6


def test_rows_lead_back_to_the_truth():
    keep = MADE.data.columns["task"] == "take"
    part = subset(MADE.data, keep)
    np.testing.assert_array_equal(MADE.margin[part.rows - 1], MADE.margin[keep])
