"""Laws of the options: what cannot be met is refused where it is written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmjax.data.buckets import PackSpec
from rmjax.errors import DataError


@given(st.integers(1, 5000), st.integers(1, 600), st.integers(1, 8))
def test_rows_divide_among_the_devices_and_there_is_at_least_one_each(tokens, length, multiple):
    rows = PackSpec(lengths=(length,), tokens_per_micro_batch=tokens, row_multiple=multiple).rows(length)
    assert rows >= multiple
    assert rows % multiple == 0
    assert rows == multiple or rows * length <= tokens


@pytest.mark.parametrize(
    "wrong",
    [
        {"lengths": ()},
        {"lengths": (512, 256)},
        {"lengths": (1, 2, 3, 4, 5)},
        {"lengths": (0, 4)},
        {"pool": 0},
        {"min_fill": 1.5},
        {"row_multiple": 0},
    ],
)
def test_a_spec_that_cannot_be_met_is_refused(wrong):
    with pytest.raises(DataError):
        PackSpec(**wrong)
