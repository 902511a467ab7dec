"""Every error says what is wrong, with which numbers, and what to do; and it survives the trip between processes."""

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmjax import errors
from rmjax.errors import RMJaxError

KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, RMJaxError)]
words = st.text(min_size=1, max_size=20)


def test_the_kinds_are_those_of_the_house():
    assert {kind.__name__ for kind in KINDS} == {
        "RMJaxError",
        "DataError",
        "IdentifiabilityError",
        "GaugeError",
        "FrameError",
        "ReadoutError",
        "CompletenessError",
        "AlignmentError",
        "HeadError",
        "CheckpointError",
        "SampleSizeError",
    }
    assert all(kind.__doc__ for kind in KINDS)


@given(st.sampled_from(KINDS), words, st.dictionaries(words, st.integers() | words, max_size=3), words)
def test_the_message_holds_everything(kind, what, numbers, remedy):
    error = kind(what, numbers, remedy)
    message = str(error)
    assert message.startswith(what)
    assert message.endswith(remedy)
    assert all(f"{name}={number}" in message for name, number in numbers.items())
    for copied in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(copied) is kind
        assert (copied.what, copied.numbers, copied.remedy) == (what, numbers, remedy)
        assert str(copied) == message


def test_the_numbers_are_those_of_the_moment():
    numbers = {"row": 1}
    error = errors.DataError("bad", numbers, "Mend it.")
    numbers["row"] = 2
    assert error.numbers == {"row": 1}


def test_no_numbers_leave_no_empty_brackets():
    assert str(errors.DataError("bad", {}, "Mend it.")) == "bad. Mend it."


@pytest.mark.parametrize("kind", KINDS)
def test_one_except_catches_all(kind):
    with pytest.raises(RMJaxError):
        raise kind("bad", {}, "Mend it.")
