"""The report as JSON: TRL's names on top, levels apart, no NaN."""

import json

import pytest
from rich.console import Console

from rmjax.report import build_report, to_json
from rmjax.report.figures import training_curves
from rmjax.report.terminal import render_text
from tests.report.reports import LEVELS, evaluation, rows, variants

VARIANTS = variants()


def leaves(tree, path=""):
    """Every number of a JSON tree by its path."""
    if isinstance(tree, dict):
        return {k: v for name, e in tree.items() for k, v in leaves(e, f"{path}.{name}").items()}
    if isinstance(tree, list):
        return {k: v for i, e in enumerate(tree) for k, v in leaves(e, f"{path}.{i}").items()}
    return {path: tree}


@pytest.mark.parametrize("variant", VARIANTS)
def test_reports_are_json_with_the_names_of_trl(variant):
    report = VARIANTS[variant]
    tree = json.loads(json.dumps(to_json(report), allow_nan=False))
    votes = report.summary.against_votes
    assert (tree["accuracy"], tree["loss"], tree["margin"]) == (
        votes.accuracy.value,
        votes.loss.value,
        votes.margin.value,
    )
    assert tree["sentences"] == list(report.sentences)


@pytest.mark.parametrize("variant", VARIANTS)
def test_levels_stand_apart_and_nowhere_else(variant):
    tree = to_json(VARIANTS[variant])
    apart = tree.pop("diagnostics_levels", None)
    if variant in ("bare", "one cluster"):
        assert apart is None
    else:
        assert [apart[f"{name}_reward"] for name in ("min", "mean", "max")] == [
            LEVELS.smallest,
            LEVELS.mean,
            LEVELS.largest,
        ]
        assert "no result" in apart["note"]
    levels = (LEVELS.smallest, LEVELS.mean, LEVELS.largest)
    assert not [path for path, value in leaves(tree).items() if value in levels or "reward" in path]


def test_tables_hold_length_beside_the_model():
    whole, bare = (VARIANTS[name].tables for name in ("whole", "bare"))
    assert [t.heading for t in whole] == ["Against decided labels", "Against single votes", "Agreement of annotators"]
    for table in whole[:2]:
        labels = [row.label for row in table.rows]
        assert labels.index("The longer answer wins") > labels.index("Accuracy")
    assert [t.heading for t in bare] == ["Against labels", "Agreement of annotators"]
    assert bare[1].rows == ()
    assert "one label a pair" in bare[1].note


def test_swap_check_says_whether_it_passed():
    assert to_json(VARIANTS["whole"])["summary"]["swap"]["passed"]
    assert not to_json(VARIANTS["swap failed"])["summary"]["swap"]["passed"]


@pytest.mark.parametrize(("unit", "per"), [("vote", "single vote"), ("comparison", "comparison"), ("prompt", "prompt")])
def test_a_loss_says_per_what_it_is_a_mean_on_the_page_and_in_the_terminal(unit, per):
    report = build_report(evaluation(unit=unit))
    labels = [row.label for table in report.tables for row in table.rows if row.label.startswith("Loss")]
    assert labels[-1] == f"Loss, nats per {per}"
    console = Console(width=100)
    with console.capture() as shown:
        console.print(render_text(report))
    assert f"Loss, nats per {per}" in shown.get()


@pytest.mark.parametrize(("evaluated", "trained", "per"), [("prompt", None, "prompt"), ("vote", "prompt", "prompt")])
def test_a_curve_of_losses_says_per_what_the_training_counted(evaluated, trained, per):
    report = build_report(evaluation(unit=evaluated), rows(), training_unit=trained)
    (loss,) = [figure for figure in training_curves(report.training) if figure.name == "Loss over training"]
    assert f">nats per {per}<" in loss.svg
