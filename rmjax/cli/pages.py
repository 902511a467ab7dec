"""Reports on disk: the page and its numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rmjax.comparisons import Unit
from rmjax.diagnostics.evaluation import Evaluation
from rmjax.report.model import Report, build_report, to_json
from rmjax.report.page import render


def write_report(
    directory: str | Path,
    evaluation: Evaluation,
    rows: Sequence[Mapping[str, Any]] = (),
    *,
    unit: Unit | None = None,
    title: str = "Reward model report",
    cost: Sequence[tuple[str, str]] = (),
) -> tuple[Report, Path]:
    """Write report.html and evaluation.json.

    Args:
        directory: where.
        evaluation: what was measured.
        rows: of metrics.jsonl, where there was a training.
        unit: what counted as one in that training; as in the evaluation, if unset.
        title: of the page.
        cost: what it cost.

    Returns:
        The report and the path of the page.
    """
    report = build_report(evaluation, rows, training_unit=unit, title=title, cost=cost)
    output = Path(directory)
    output.mkdir(parents=True, exist_ok=True)
    (output / "evaluation.json").write_text(json.dumps(to_json(report), indent=2, allow_nan=False) + "\n")
    page = output / "report.html"
    page.write_text(render(report))
    return report, page
