"""Dials out of range are refused by name."""

import math

import pytest

from rmjax.data.synthetic import World
from rmjax.errors import DataError


@pytest.mark.parametrize(
    ("dial", "value"),
    [
        ("seed", -1),
        ("num_prompts", 0),
        ("candidates", 1),
        ("candidates", 1_001),
        ("votes", 0),
        ("annotators", 2),
        ("temperature", 0.0),
        ("temperature", math.inf),
        ("temperature", math.nan),
        ("tie", -0.1),
        ("tie", math.nan),
        ("abstention", 1.5),
        ("flip_rate", -0.5),
        ("flip_rate", math.nan),
        ("length_correlation", 1.01),
        ("correct", math.nan),
        ("cycle", math.inf),
    ],
)
def test_a_dial_out_of_range_is_named(dial, value):
    with pytest.raises(DataError) as caught:
        World(**{dial: value})
    assert dial in caught.value.numbers


def test_the_ends_of_the_ranges_are_worlds():
    World(tie=0.0, abstention=1.0, flip_rate=1.0, length_correlation=-1.0, votes=3, annotators=3)
