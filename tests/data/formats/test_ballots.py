"""Laws of votes: every vote is counted where it belongs, and what is no vote is refused."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmjax.data.formats.ballots import COUNTS, VALUES, VOTES, ballot
from rmjax.data.formats.fields import BadRow, Fields
from rmjax.votes import CANNOT_JUDGE

NAMES = list(VALUES)


def row(votes, **more):
    return {"prompt": "2 + 2?", "a": "4", "b": "5", "votes": votes} | more


@given(st.lists(st.sampled_from(NAMES), max_size=12))
def test_votes_signed_or_not_and_counts_say_the_same(names):
    counts = {name: names.count(name) for name in NAMES if name in names}
    signed = [{"vote": name, "annotator": f"w{i}"} for i, name in enumerate(names)]
    plain_, with_names, counted = (ballot(row(votes), Fields()) for votes in (names, signed, counts))
    assert list(plain_.counts) == list(with_names.counts) == list(counted.counts) == [names.count(n) for n in NAMES]
    assert (plain_.format, counted.format) == (VOTES, COUNTS)
    assert [annotator for _, annotator in with_names.ballots] == [f"w{i}" for i in range(len(names))]
    assert [value for value, _ in plain_.ballots] == [VALUES[name] for name in names]
    assert counted.ballots is None  # nobody's


def test_cannot_judge_is_neither_a_vote_nor_a_tie():
    understood = ballot(row(["cannot judge", "tie"]), Fields())
    assert tuple(understood.counts) == (0, 0, 1, 1)
    assert understood.ballots[0] == (CANNOT_JUDGE, None)


def test_fractions_of_votes_are_counts_without_single_votes():
    understood = ballot(row({"a": 0.25, "b": 0.75}), Fields())
    assert understood.counts == (0.25, 0.75, 0, 0)
    assert understood.ballots is None


@pytest.mark.parametrize(("gold", "sign"), [("a", 1), ("b", -1), ("tie", 0), (None, None)])
def test_gold_has_a_sign_and_a_tie_is_not_its_absence(gold, sign):
    assert ballot(row(["a"], gold=gold), Fields()).gold == sign


def test_ids_stand_for_texts():
    texts = {"7": "four", "y": "five"}
    understood = ballot(row(["a"], a=7, b="y"), Fields(), texts)
    assert (understood.first, understood.second) == ("four", "five")


def test_a_prompt_may_be_made_of_columns():
    fields = Fields(prompt=("prompt", "stance"))
    assert ballot(row(["a"], stance="yes"), fields).prompt == "2 + 2?\nyes"


@pytest.mark.parametrize(
    "votes",
    [
        [math.nan],
        [None],
        ["A"],
        [1],
        [{"vote": math.nan, "annotator": "w"}],
        [{"annotator": "w"}],
        [["a"]],
        {"a": math.nan},
        {"a": -1},
        {"a": math.inf},
        {"a": True},
        {"a": "3"},
        {"a": 1e30},
        {"first": 3},
        "a",
        3,
        None,
    ],
)
def test_what_is_no_vote_is_refused_by_what_was_found(votes):
    # By way of a file, since JSON may spell NaN.
    written = json.loads(json.dumps(row(votes)))
    with pytest.raises(BadRow, match=r"vote") as caught:
        ballot(written, Fields())
    assert caught.value.numbers


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ({"gold": "first"}, "`gold` is not understood"),
        ({"gold": math.nan}, "`gold` is not understood"),
        ({"gold": ["a"]}, "`gold` is not understood"),
        ({"prompt": None}, "no `prompt`"),
        ({"votes": [{"vote": "a", "annotator": 1.5}]}, "`annotator` is not a name"),
    ],
)
def test_other_columns_are_checked_too(bad, reason):
    with pytest.raises(BadRow, match=reason):
        ballot(row(["a"]) | bad, Fields())


def test_an_id_without_a_text_is_refused_by_name():
    with pytest.raises(BadRow, match="not in the file of texts") as caught:
        ballot(row(["a"]), Fields(), {"4": "four"})
    assert caught.value.numbers == {"id": "5"}
