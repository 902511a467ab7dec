"""Laws of the implicit prompt: it is shared, nothing is lost, and a prompt that differs is refused."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rmjax.data.formats import pairs
from rmjax.data.formats.fields import BadRow, Fields

TURN = st.text("abc\n", min_size=1, max_size=6)
HUMAN, ASSISTANT = "\n\nHuman:", "\n\nAssistant:"


def dialogue(turns):
    return "".join((HUMAN if i % 2 == 0 else ASSISTANT) + turn for i, turn in enumerate(turns))


@st.composite
def histories(draw):
    """An odd number of turns: the last is a human's."""
    turns = draw(st.lists(TURN, min_size=1, max_size=5))
    return turns[: len(turns) - 1 + len(turns) % 2]


@given(histories(), TURN, TURN)
def test_prompt_and_answer_are_the_dialogue_to_the_character(history, chosen, rejected):
    first, second = dialogue([*history, chosen]), dialogue([*history, rejected])
    prompt, one, other = pairs.split_strings(first, second)
    assert (prompt + one, prompt + other) == (first, second)
    assert prompt == dialogue(history) + ASSISTANT
    assert (one, other) == (chosen, rejected)


@given(histories(), TURN, TURN)
def test_a_dialogue_in_messages_parts_where_its_strings_do(history, chosen, rejected):
    def messages(turns):
        return [{"role": "assistant" if i % 2 else "user", "content": turn} for i, turn in enumerate(turns)]

    row = {"chosen": messages([*history, chosen]), "rejected": messages([*history, rejected])}
    understood = pairs.pair(row, Fields())
    assert understood.format == pairs.IMPLICIT_MESSAGES
    assert tuple(content for _, content in understood.prompt) == tuple(history)
    assert understood.first == (("assistant", chosen),)
    assert understood.second == (("assistant", rejected),)


def refuse_as_strings_and_as_messages(one, other):
    with pytest.raises(BadRow, match="prompt differs"):
        pairs.split_strings(dialogue(one), dialogue(other))
    one, other = (
        tuple(("assistant" if i % 2 else "user", turn) for i, turn in enumerate(turns)) for turns in (one, other)
    )
    with pytest.raises(BadRow, match="prompt differs"):
        pairs.split_messages(one, other)


@given(st.one_of(st.just([]), histories().map(lambda turns: [*turns, "ok"])), TURN, TURN, histories(), TURN, TURN)
def test_dialogues_that_part_in_a_humans_turn_are_refused(shared, here, there, history, chosen, rejected):
    assume(here != there)
    refuse_as_strings_and_as_messages([*shared, here, "x", *history, chosen], [*shared, there, "x", *history, rejected])


@given(histories(), histories(), st.booleans())
def test_a_human_who_speaks_after_the_answers_part_is_refused_on_either_side(shared, history, swapped):
    one, other = [*shared, "no"], [*shared, "yes", *history, "no"]
    refuse_as_strings_and_as_messages(*((other, one) if swapped else (one, other)))


@given(st.text("ab", max_size=9), st.text("ab", max_size=9))
def test_the_shared_length_is_that_of_a_plain_loop(a, b):
    shared = 0
    while shared < min(len(a), len(b)) and a[shared] == b[shared]:
        shared += 1
    assert pairs.shared_length(a, b) == shared


def test_one_answer_may_be_the_start_of_the_other():
    history = ["2 + 2?"]
    prompt, one, other = pairs.split_strings(dialogue([*history, " 4"]), dialogue([*history, " 4, of course"]))
    assert (prompt, one, other) == (dialogue(history) + ASSISTANT, " 4", " 4, of course")
    ask, reply, more = ("user", "2 + 2?"), ("assistant", "4"), ("assistant", "of course")
    assert pairs.split_messages((ask, reply), (ask, reply, more)) == ((ask,), (reply,), (reply, more))


def test_identical_dialogues_keep_their_last_answer():
    ask, reply = ("user", "2 + 2?"), ("assistant", "4")
    assert pairs.split_messages((ask, reply), (ask, reply)) == ((ask,), (reply,), (reply,))
    assert pairs.split_strings(dialogue(["a", "b"]), dialogue(["a", "b"])) == (dialogue(["a"]) + ASSISTANT, "b", "b")


def test_an_assistant_who_speaks_twice_answers_once():
    history = dialogue(["Key?"])
    prompt, one, _ = pairs.split_strings(history + ASSISTANT + "Here:" + ASSISTANT + "42", history + ASSISTANT + "No.")
    assert prompt == history + ASSISTANT
    assert one == "Here:" + ASSISTANT + "42"


ASK, FOUR, FIVE = ({"role": r, "content": c} for r, c in (("user", "2 + 2?"), ("assistant", "4"), ("assistant", "5")))
SAME = [
    {"chosen": [ASK, FOUR], "rejected": [ASK, FIVE]},
    {"prompt": [ASK], "chosen": [FOUR], "rejected": [FIVE]},
    {"prompt": [ASK], "chosen": [ASK, FOUR], "rejected": [ASK, FIVE]},
    {"prompt": [ASK], "chosen": "4", "rejected": "5"},
    {"prompt": "2 + 2?", "chosen": [FOUR], "rejected": [FIVE]},
    {"prompt": "2 + 2?", "chosen": [ASK, FOUR], "rejected": [ASK, FIVE]},
]


@pytest.mark.parametrize("row", SAME)
def test_the_ways_to_write_one_conversation_mean_the_same(row):
    understood = pairs.pair(row, Fields())
    assert understood.prompt == (("user", "2 + 2?"),)
    assert (understood.first, understood.second) == ((("assistant", "4"),), (("assistant", "5"),))


def test_a_system_message_is_part_of_the_prompt():
    system = {"role": "system", "content": "Be brief."}
    understood = pairs.pair(
        {"prompt": "2 + 2?", "chosen": [system, ASK, FOUR], "rejected": [system, ASK, FIVE]}, Fields()
    )
    assert understood.prompt == (("system", "Be brief."), ("user", "2 + 2?"))


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"chosen": "4", "rejected": "5"}, "there is no prompt"),
        ({"chosen": [ASK, FOUR], "rejected": "5"}, "one answer is a string"),
        ({"prompt": "3 + 3?", "chosen": [ASK, FOUR], "rejected": [ASK, FIVE]}, "not what the messages answer"),
        ({"chosen": [ASK, FOUR], "rejected": [FIVE]}, "prompt differs"),
        ({"prompt": 7, "chosen": "4", "rejected": "5"}, "`prompt` is not a text"),
        ({"prompt": "2 + 2?", "chosen": 4, "rejected": "5"}, "`chosen` is not a text"),
        ({"prompt": "2 + 2?", "chosen": None, "rejected": "5"}, "`chosen` is not a text"),
        ({"prompt": "2 + 2?", "chosen": "\ud800", "rejected": "5"}, "half a surrogate pair"),
        ({"prompt": [], "chosen": "4", "rejected": "5"}, "empty list"),
        ({"prompt": [{"role": "user"}], "chosen": "4", "rejected": "5"}, "what is no message"),
        ({"prompt": [ASK | {"tool_calls": [1]}], "chosen": "4", "rejected": "5"}, "keys that are not understood"),
        ({"prompt": [{"role": "user", "content": None}], "chosen": "4", "rejected": "5"}, "not a text"),
    ],
)
def test_what_cannot_be_understood_is_refused(row, reason):
    with pytest.raises(BadRow, match=reason):
        pairs.pair(row, Fields())
