"""What the verbs print: progress, tables and JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import TimeRemainingColumn as TimeLeft
from rich.table import Table

CONSOLE = Console()
# With --json, standard output is JSON alone and what people read goes to standard error.
ASIDE = Console(stderr=True)


def console(as_json: bool) -> Console:
    """Where people read: standard output, or standard error where standard output is JSON."""
    return ASIDE if as_json else CONSOLE


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    json.dump(value, sys.stdout, indent=2, allow_nan=False)
    sys.stdout.write("\n")


def facts(title: str, rows: list[tuple[str, str]]) -> Table:
    """A table of two columns."""
    table = Table(title=title, show_header=False, title_justify="left", title_style="bold")
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, value)
    return table


def notes(said: Sequence[tuple[str, str]], where: Console) -> None:
    """What a reader should know, a line each."""
    for label, text in said:
        where.print(f"note: {label}: {text}", markup=False, highlight=False)


@contextmanager
def progress(what: str, total: int, where: Console) -> Iterator[tuple[Progress, TaskID]]:
    """A bar with time gone and time left."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeLeft())
    with Progress(*columns, console=where, transient=not where.is_terminal) as bar:
        yield bar, bar.add_task(what, total=total)
