"""The report for a terminal: the same sentences and the same numbers."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from rmjax.report.model import Report, Table


def render_text(report: Report) -> RenderableType:
    """What `rich.console.Console.print` shows: sentences, then tables.

    Args:
        report: what to show.

    Returns:
        A renderable.

    Example:
        >>> import numpy as np
        >>> from rmjax import Comparisons
        >>> from rmjax.diagnostics import Evaluation, Provenance
        >>> from rmjax.report import build_report
        >>> pairs = Comparisons.from_pairs([0, 2], [1, 3], prompt=[0, 0, 1, 1])
        >>> where = Provenance("a model", "0f3a", "pairs.jsonl")
        >>> evaluation = Evaluation(np.array([1.0, 0.5]), pairs, np.array([0, 1]), np.array([9, 4, 6, 6]), where)
        >>> from rich.console import Console
        >>> console = Console(width=72)
        >>> with console.capture() as shown:
        ...     console.print(render_text(build_report(evaluation)))
        >>> "Accuracy" in shown.get()
        True
    """
    sentences = [Text(f"• {sentence}") for sentence in report.sentences]
    return Group(*sentences, *(_table(report, table) for table in report.tables))


def _table(report: Report, table: Table) -> RenderableType:
    """One table, or why it is empty."""
    if not table.rows:
        return Text(f"\n{table.heading}. {table.note}")
    shown = RichTable(title=f"\n{table.heading}", title_justify="left", title_style="bold")
    shown.add_column("measure")
    level = f"{100 * report.summary.level:g} % interval"
    for heading in ("value", level, "n", f"{report.summary.cluster_name}s"):
        shown.add_column(heading, justify="right")
    for row in table.rows:
        shown.add_row(row.label, row.value, row.interval, row.count, str(row.estimate.clusters))
    return shown
