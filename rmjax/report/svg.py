"""Small charts as inline SVG: no script, no external request, colours from the page's CSS variables."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from html import escape

import numpy as np

WIDTH, HEIGHT = 440, 270  # units of the view box; the page scales it to the column
LEFT, RIGHT, TOP, BOTTOM = 46, 22, 12, 40
COLOURS = ("var(--a)", "var(--b)", "var(--c)", "var(--d)", "var(--e)")
DASHES = ("", "6 3", "2 3", "8 3 2 3", "1 4")  # print and colour-blind readers tell lines apart by these


@dataclasses.dataclass(frozen=True)
class Line:
    """A line with an optional band; `shown` is what a point says on hovering."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    lower: Sequence[float] | None = None
    upper: Sequence[float] | None = None
    shown: Sequence[str] | None = None


@dataclasses.dataclass(frozen=True)
class Mark:
    """A labelled line across the chart: vertical at x, or horizontal at y."""

    label: str
    x: float | None = None
    y: float | None = None


@dataclasses.dataclass(frozen=True)
class Frame:
    """Axes: what stands on them and how numbers become places."""

    x_label: str
    y_label: str
    x_range: tuple[float, float]
    y_range: tuple[float, float]
    top: float = TOP
    left: float = LEFT
    height: float = HEIGHT
    percent: bool = False  # whether y is a share
    percent_x: bool = False  # whether x is a share
    whole_x: bool = False  # whether x counts layers or steps

    def x(self, value: float) -> float:
        """Place of an x value."""
        low, high = self.x_range
        return self.left + (value - low) / (high - low) * (WIDTH - RIGHT - self.left)

    def y(self, value: float) -> float:
        """Place of a y value."""
        low, high = self.y_range
        return self.height - BOTTOM - (value - low) / (high - low) * (self.height - BOTTOM - self.top)


def ticks(low: float, high: float, most: int = 6, *, whole: bool = False) -> list[float]:
    """Round numbers between two ends, at most `most` of them.

    Args:
        low: the lower end.
        high: the upper end.
        most: the largest number of ticks.
        whole: whether ticks are whole numbers.

    Returns:
        The ticks, rising.

    Example:
        >>> ticks(0.0, 1.0), ticks(0, 30, whole=True)
        ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], [0.0, 10.0, 20.0, 30.0])
    """
    raw = (high - low) / (most - 1)
    power = 10.0 ** math.floor(math.log10(raw))
    # Rounding in the last digit must not push 0.2 to the next step of 0.5.
    step = next(s * power for s in (1, 2, 5, 10) if s * power >= raw * (1 - 1e-9))
    step = max(step, 1.0) if whole else step
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    digits = 12 - math.floor(math.log10(step))
    return [round(k * step, digits) for k in range(first, last + 1)]


def spread(values: Sequence[float], *, zero: bool = False) -> tuple[float, float]:
    """A range with some air that holds all finite values, and 0 on demand; never empty.

    Args:
        values: what must fit.
        zero: whether 0 must fit too.

    Returns:
        Lower and upper end.

    Example:
        >>> spread([1.0, float("nan"), 3.0])
        (0.9, 3.1)
    """
    finite = [v for v in values if math.isfinite(v)] + ([0.0] if zero else [])
    low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
    air = 0.05 * (high - low) or max(abs(high), 1.0) * 0.1
    return low - air, high + air


def chart(name: str, description: str, body: Sequence[str], *, height: float = HEIGHT) -> str:
    """An SVG element that scales with its column and reads itself to those who cannot see it.

    Args:
        name: what the chart shows.
        description: what it says, in words.
        body: elements.
        height: of the view box.

    Returns:
        The element.
    """
    label = escape(f"{name}. {description}", quote=True)
    return f'<svg viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{label}">{"".join(body)}</svg>'


def axes(frame: Frame) -> list[str]:
    """Grid, ticks and labels of a frame.

    Args:
        frame: the axes.

    Returns:
        Elements.
    """
    left, right = frame.left, WIDTH - RIGHT
    bottom = frame.height - BOTTOM
    body = []
    for value in ticks(*frame.y_range):
        place = frame.y(value)
        body.append(_segment(left, place, right, place, "grid"))
        body.append(text(left - 5, place + 4, _tick(value, frame.percent), "end"))
    for value in ticks(*frame.x_range, whole=frame.whole_x):
        place = frame.x(value)
        body.append(_segment(place, bottom, place, bottom + 4, "axis"))
        body.append(text(place, bottom + 16, _tick(value, frame.percent_x), "middle"))
    body.append(_segment(left, bottom, right, bottom, "axis"))
    body.append(text((left + right) / 2, frame.height - 5, frame.x_label, "middle", "label"))
    return body


def text(x: float, y: float, words: str, anchor: str = "start", kind: str = "tick") -> str:
    """Words at a place.

    Args:
        x: place.
        y: place of the base line.
        words: the words.
        anchor: start, middle or end.
        kind: class for the page's CSS.

    Returns:
        The element.
    """
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{kind}">{escape(words)}</text>'


def band(frame: Frame, x: Sequence[float], lower: Sequence[float], upper: Sequence[float], colour: str) -> str:
    """A filled band between two curves, left out where either is no number.

    Args:
        frame: the axes.
        x: places along x.
        lower: the lower curve.
        upper: the upper curve.
        colour: fill.

    Returns:
        The element, empty where fewer than two points are left.
    """
    known = [(a, b, c) for a, b, c in zip(x, lower, upper) if math.isfinite(b) and math.isfinite(c)]
    if len(known) < 2:
        return ""
    edge = [(frame.x(a), frame.y(c)) for a, _, c in known] + [(frame.x(a), frame.y(b)) for a, b, _ in reversed(known)]
    return f'<polygon points="{_points(edge)}" fill="{colour}" class="band"/>'


def line_chart(frame: Frame, lines: Sequence[Line], *, name: str, description: str, marks: Sequence[Mark] = ()) -> str:
    """Lines with bands over one frame, with a legend on top and values on hovering.

    Args:
        frame: the axes.
        lines: at most five.
        name: what the chart shows.
        description: what it says, in words.
        marks: labelled lines across.

    Returns:
        The SVG element.
    """
    rows = legend_rows([line.label for line in lines], frame.y_label)
    frame = dataclasses.replace(frame, top=TOP + 16 * (rows + 1))
    body = axes(frame)
    body.append(text(4, TOP + 2, frame.y_label, "start", "label"))
    body += _legend([line.label for line in lines])
    for line, colour in zip(lines, COLOURS):
        if line.lower is not None and line.upper is not None:
            body.append(band(frame, line.x, line.lower, line.upper, colour))
    for mark in marks:
        body += _mark(frame, mark)
    for line, colour, dash in zip(lines, COLOURS, DASHES):
        known = [(frame.x(a), frame.y(b)) for a, b in zip(line.x, line.y) if math.isfinite(b)]
        body.append(f'<polyline points="{_points(known)}" stroke="{colour}" stroke-dasharray="{dash}" class="line"/>')
    for line, colour in zip(lines, COLOURS):
        dots = len(line.x) <= 40
        for i, (a, b) in enumerate(zip(line.x, line.y)):
            if math.isfinite(b):
                said = line.shown[i] if line.shown else f"{line.label}: {a:g}, {b:.3f}"
                body.append(dot(frame.x(a), frame.y(b), 2.2 if dots else 0, colour, said))
    return chart(name, description, body)


def dot(x: float, y: float, radius: float, colour: str, said: str) -> str:
    """A point that says its value on hovering, with a target large enough to hit.

    Args:
        x: place.
        y: place.
        radius: of what is seen; 0 shows nothing.
        colour: fill.
        said: the words.

    Returns:
        The element.
    """
    seen = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{colour}"/>' if radius else ""
    target = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="7" class="target"/>'
    return f"<g><title>{escape(said)}</title>{seen}{target}</g>"


def legend_rows(labels: Sequence[str], y_label: str) -> int:
    """How many rows of the chart the legend takes.

    Args:
        labels: of the lines; a single one needs no legend.
        y_label: of the axis, which has a row of its own.

    Returns:
        The number of rows.

    Example:
        >>> legend_rows(["training", "held out"], "loss"), legend_rows(["one"], "loss")
        (1, 0)
    """
    return 0 if len(labels) < 2 else max(row for row, _ in _places(labels)) + 1


def _places(labels: Sequence[str]) -> list[tuple[int, float]]:
    """Row and x of every legend entry, by a guess at the width of its words."""
    row, x, places = 0, 4.0, []
    for label in labels:
        width = 38 + 7 * len(label)
        if x > 4 and x + width > WIDTH:
            row, x = row + 1, 4.0
        places.append((row, x))
        x += width
    return places


def _legend(labels: Sequence[str]) -> list[str]:
    """Swatches and labels under the label of the axis."""
    if len(labels) < 2:
        return []
    body = []
    for (row, x), label, colour, dash in zip(_places(labels), labels, COLOURS, DASHES):
        y = TOP + 18 + 16 * row
        body.append(
            f'<line x1="{x:.1f}" y1="{y - 4}" x2="{x + 20:.1f}" y2="{y - 4}" stroke="{colour}" '
            f'stroke-dasharray="{dash}" class="line"/>'
        )
        body.append(text(x + 25, y, label, "start", "tick"))
    return body


def _mark(frame: Frame, mark: Mark) -> list[str]:
    """A labelled line across the chart; the label keeps to the inside."""
    right, bottom = WIDTH - RIGHT, frame.height - BOTTOM
    if mark.x is not None:
        place = frame.x(mark.x)
        inside = place < (frame.left + right) / 2
        return [
            _segment(place, frame.top, place, bottom, "mark"),
            text(place + (4 if inside else -4), frame.top + 10, mark.label, "start" if inside else "end", "note"),
        ]
    place = frame.y(float(mark.y or 0.0))
    return [_segment(frame.left, place, right, place, "mark"), text(right - 2, place - 4, mark.label, "end", "note")]


def _tick(value: float, percent: bool) -> str:
    """A tick's number, with a true minus sign."""
    return f"{100 * value:g} %" if percent else f"{value:,g}".replace("-", "−")


def _segment(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def _points(places: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in np.asarray(places, float).reshape(-1, 2))
