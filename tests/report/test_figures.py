"""Every figure has a name, a text alternative, its numbers, and no place for a level."""

import dataclasses
import inspect
import typing

import pytest

from rmjax.diagnostics import Ceiling, Reliability, Settling
from rmjax.report import figures
from rmjax.report.numbers import Row
from rmjax.report.page import accuracies, depth_figures
from rmjax.report.training import Training
from tests.report.reports import variants
from tests.report.test_svg import inside

VARIANTS = variants()


def drawn(report):
    """All figures of a report."""
    summary = report.summary
    made = [figures.shares(*accuracies(report), summary.agreement.ceiling), figures.reliability(summary.calibration)]
    return made + depth_figures(report) + list(figures.training_curves(report.training) if report.training else ())


@pytest.mark.parametrize("variant", VARIANTS)
def test_figures_are_well_formed_and_speak(variant):
    for figure in drawn(VARIANTS[variant]):
        chart = inside(figure.svg)
        assert chart.attrib["role"] == "img"
        assert len(chart.attrib["aria-label"]) > len(figure.name)
        assert list(chart.iter("title")), "no value on hovering"
        assert figure.caption
        assert all(len(row) == len(figure.header) for row in figure.numbers)
        assert figure.numbers
        words = " ".join([figure.svg, figure.caption, *(cell for row in figure.numbers for cell in row)])
        assert "nan" not in words.lower()


def test_no_figure_takes_an_array():
    """A level cannot be handed over: figures take summaries of margins, of shares and of gauge-free curves."""
    allowed = {Reliability, Settling, Training, typing.Sequence[Row], Ceiling | None}
    public = [
        f
        for name, f in inspect.getmembers(figures, inspect.isfunction)
        if f.__module__ == figures.__name__ and not name.startswith("_")
    ]
    assert len(public) == 5
    for function in public:
        hints = typing.get_type_hints(function)
        hints.pop("return")
        assert all(
            str(hint) in {str(a).replace("typing.", "collections.abc.") for a in allowed} for hint in hints.values()
        )


def test_the_ceiling_lies_over_single_votes_alone():
    report = VARIANTS["whole"]
    gold, votes = accuracies(report)
    chart = inside(figures.shares(gold, votes, report.summary.agreement.ceiling).svg)
    shaded = max(chart.iter("rect"), key=lambda r: float(r.attrib["height"]))
    entries = [float(t.attrib["y"]) for t in chart.iter("text") if t.attrib["class"] == "entry"]
    top, bottom = float(shaded.attrib["y"]), float(shaded.attrib["y"]) + float(shaded.attrib["height"])
    assert [top < y < bottom for y in entries] == [False] * len(gold) + [True] * len(votes)
    assert "rect" not in figures.shares(gold, votes, None).svg


def test_both_orientations_are_drawn_and_probabilities_named():
    report = VARIANTS["whole"]
    figure = figures.reliability(report.summary.calibration)
    seen = sum(b.count > 0 for b in report.summary.calibration.bins)
    assert len(figure.numbers) == figure.svg.count("<title>") == seen
    assert "predicted share of annotators who choose the first" in figure.svg
    assert "correct" not in (figure.svg + figure.caption).lower()


def test_the_settling_layer_is_marked_where_there_is_one():
    whole = VARIANTS["whole"].summary.settling
    figure = figures.margin_by_depth(whole)
    assert f"median pair settles: layer {whole.settled_layer[1]:g}" in figure.svg
    assert f"{whole.undecided} pairs within rounding" in figure.caption
    assert "within rounding" not in figures.margin_by_depth(dataclasses.replace(whole, undecided=0)).caption
    assert f"accuracy holds: layer {whole.population_layer}" in figures.decision_by_depth(whole).svg
    unsure = dataclasses.replace(whole, population_layer=None, reason="so it is")
    assert "cannot be said, because so it is" in figures.decision_by_depth(unsure).caption
    assert "accuracy holds:" not in figures.decision_by_depth(unsure).svg
    assert depth_figures(VARIANTS["all margins zero"]) == []
