"""How numbers are written."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmjax.diagnostics import clustered_mean
from rmjax.report.numbers import MISSING, Row, counted, interval, plural, written


@given(st.floats(-1, 1), st.sampled_from(["share", "points", "number"]))
def test_a_written_number_reads_back(value, kind):
    text = written(value, kind, unit=False).replace("−", "-")
    scale, step = (1, 1e-3) if kind == "number" else (100, 0.1)
    assert float(text) == pytest.approx(scale * value, abs=0.5001 * step)
    assert "-" not in written(value, kind) or kind == "share"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_a_dash(value):
    assert written(value) == MISSING


def test_points_carry_their_sign():
    assert (written(0.078, "points"), written(-0.078, "points")) == ("+7.8 points", "−7.8 points")


def test_an_estimate_without_interval_says_why():
    row = Row("margin", clustered_mean([1.0], [1], [0]), "number")
    assert (row.value, row.count) == ("1.000", "1")
    assert row.interval == interval(row.estimate) == "no interval: 1 cluster, and 2 are needed"


def test_counts_and_nouns():
    assert (counted(1e6), counted(0.5)) == ("1,000,000", "0.5")
    assert (plural(1, "pair"), plural(0, "pair"), plural(2, "box", "boxes")) == ("1 pair", "0 pairs", "2 boxes")
