"""`rmjax eval`: a model on a file, with intervals, baselines and the page."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

import tyro

from rmjax.cli import show
from rmjax.cli.inputs import Inputs, open_inputs
from rmjax.cli.outputs import check_directory
from rmjax.cli.pages import write_report
from rmjax.report.model import to_json
from rmjax.report.terminal import render_text
from rmjax.train.evaluation import evaluate as measure
from rmjax.train.metrics import read_metrics, swaps_failed


@dataclasses.dataclass(frozen=True)
class EvalConfig(Inputs):
    """What is evaluated on what."""

    output: str = "report"
    """Directory for report.html and evaluation.json."""


def evaluate(config: Annotated[EvalConfig, tyro.conf.arg(name="")], *, json: bool = False) -> None:
    """Accuracy, likelihood and margins with clustered intervals, the length baseline, and report.html.

    Args:
        config: what is evaluated on what.
        json: print the result as JSON on standard output.
    """
    where = show.console(json)
    check_directory(config.output)
    opened = open_inputs(config, need="likelihood")
    trained = opened.run.config
    rows = [] if trained is None else read_metrics(config.model)
    notes = (*opened.notes, *swaps_failed(rows))
    with show.progress("scoring", opened.num_tokens, where) as (bar, task):
        evaluation = measure(
            opened.run.model,
            opened.layout,
            config.read,
            file=Path(config.file).name,
            facts=notes,
            dtype=config.dtype,
            progress=lambda tokens: bar.advance(task, tokens),
        )
    report, page = write_report(config.output, evaluation, rows, unit=trained.data.unit if trained else None)
    if json:
        show.print_json(to_json(report))
        return
    where.print(render_text(report))
    show.notes(notes, where)
    where.print(f"report: {page}")
