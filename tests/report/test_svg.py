"""Charts are well-formed, stay inside their box, and escape what they are given."""

import math
from xml.etree import ElementTree

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rmjax.report import svg

numbers = st.floats(-1e6, 1e6)


@given(numbers, st.floats(1e-6, 1e6), st.integers(2, 9), st.booleans())
def test_ticks_are_few_round_and_inside(low, width, most, whole):
    high = low + width
    if high <= low:
        return
    marks = svg.ticks(low, high, most, whole=whole)
    assert len(marks) <= most
    assert marks == sorted(set(marks))
    slack = 1e-6 * max(abs(low), abs(high), width)
    assert all(low - slack <= m <= high + slack for m in marks)
    if whole:
        assert all(m == round(m) for m in marks)


@given(st.lists(st.floats(-1e6, 1e6) | st.just(math.nan), max_size=6), st.booleans())
def test_a_range_holds_what_it_must_and_is_never_empty(values, zero):
    low, high = svg.spread(values, zero=zero)
    assert low < high
    assert all(low <= v <= high for v in values if math.isfinite(v))
    assert low <= 0 <= high or not zero


def box(element):
    """Every place that the elements of a chart name."""
    for e in element.iter():
        for name in ("x", "x1", "x2", "cx"):
            if name in e.attrib:
                yield "x", float(e.attrib[name])
        for name in ("y", "y1", "y2", "cy"):
            if name in e.attrib:
                yield "y", float(e.attrib[name])
        for point in e.attrib.get("points", "").split():
            x, y = map(float, point.split(","))
            yield from (("x", x), ("y", y))


def inside(markup):
    """Parse a chart and check that nothing lies outside its view box."""
    chart = ElementTree.fromstring(markup)
    _, _, width, height = map(float, chart.attrib["viewBox"].split())
    for axis, place in box(chart):
        assert -0.1 <= place <= (width if axis == "x" else height) + 0.1, (axis, place)
    return chart


@example([(0.0, 7e-13)], 1)
@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=8), st.integers(1, 5))
def test_a_line_chart_stays_in_its_box(points, lines):
    x, y = zip(*sorted(points), strict=True)
    frame = svg.Frame("x", "y", svg.spread(x), svg.spread(y, zero=True))
    made = [svg.Line(f"line number {i}", x, y, y, y) for i in range(lines)]
    marks = [svg.Mark("across", x=x[0]), svg.Mark("level", y=0.0)]
    chart = inside(svg.line_chart(frame, made, name="name", description="description", marks=marks))
    assert chart.attrib["role"] == "img"
    assert chart.attrib["aria-label"] == "name. description"
    assert len(list(chart.iter("title"))) == lines * len(x)


def test_numbers_that_are_none_leave_gaps():
    frame = svg.Frame("x", "y", (0, 2), (0, 1))
    line = svg.Line("a", [0, 1, 2], [0.1, math.nan, 0.3], [math.nan] * 3, [1.0] * 3)
    chart = svg.line_chart(frame, [line], name="n", description="d")
    assert "nan" not in chart
    assert len(list(ElementTree.fromstring(chart).iter("title"))) == 2
    assert "polygon" not in chart


def test_words_are_escaped():
    wicked = "<script>alert('\"&')</script>"
    frame = svg.Frame(wicked, wicked, (0, 1), (0, 1))
    line = svg.Line(wicked, [0, 1], [0, 1], shown=[wicked] * 2)
    marks = [svg.Mark(wicked, x=0.9)]
    chart = ElementTree.fromstring(svg.line_chart(frame, [line, line], name=wicked, description=wicked, marks=marks))
    assert chart.find("script") is None
    assert wicked in chart.attrib["aria-label"]
    assert all(title.text == wicked for title in chart.iter("title"))


def test_lines_differ_without_colour():
    assert len(set(svg.DASHES)) == len(svg.DASHES) == len(svg.COLOURS)


@pytest.mark.parametrize("labels", [["a"], ["training", "held out"], [f"line number {i}" for i in range(5)]])
def test_a_legend_names_every_line_of_several(labels):
    frame = svg.Frame("x", "y", (0, 1), (0, 1))
    chart = inside(svg.line_chart(frame, [svg.Line(n, [0, 1], [0, 1]) for n in labels], name="n", description="d"))
    words = [t.text for t in chart.iter("text")]
    assert all((label in words) == (len(labels) > 1) for label in labels)
