"""One entry point, one function per verb; help is made from the frozen configurations."""

from __future__ import annotations

import sys

import tyro
from rich.console import Console
from rich.markup import escape

from rmjax.cli.doctor import doctor
from rmjax.cli.evaluate import evaluate
from rmjax.cli.export import export
from rmjax.cli.inspect import inspect
from rmjax.cli.score import score
from rmjax.cli.train import train
from rmjax.errors import RMJaxError

VERBS = {
    "train": train,
    "eval": evaluate,
    "score": score,
    "inspect": inspect,
    "export": export,
    "doctor": doctor,
}


def main(arguments: list[str] | None = None) -> None:
    """Run a verb; an error that rmjax understands is printed without a traceback and exits with 2.

    Args:
        arguments: of the command line; those of the process if absent.
    """
    try:
        tyro.extras.subcommand_cli_from_dict(VERBS, prog="rmjax", args=arguments)
    except RMJaxError as error:
        Console(stderr=True).print(f"[bold red]{type(error).__name__}[/]: {escape(str(error))}")
        sys.exit(2)
