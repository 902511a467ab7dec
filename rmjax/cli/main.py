"""One entry point, one function per verb; help is made from the frozen configurations."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from typing import Any

from rmjax.cli.doctor import doctor
from rmjax.cli.remedies import as_flags
from rmjax.errors import RMJaxError

VERBS = {
    "train": "rmjax.cli.train:train",
    "eval": "rmjax.cli.evaluate:evaluate",
    "score": "rmjax.cli.score:score",
    "inspect": "rmjax.cli.inspect:inspect",
    "fit": "rmjax.cli.fit:run_fit",
    "export": "rmjax.cli.export:export",
    "doctor": "rmjax.cli.doctor:doctor",
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a verb; an error that rmjax understands is printed without a traceback and exits with 2.

    Args:
        arguments: of the command line; those of the process if absent.
    """
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    verb = arguments[0] if arguments else ""
    try:
        run(verb, arguments)
    except RMJaxError as error:
        _stop(f"{type(error).__name__}: {as_flags(error, verb)}")
    except OSError as error:
        if error.filename is None:  # of a pipe or a socket, not of a path that a user gave
            raise
        remedy = "Check the path, its permissions and the room on its disk."
        _stop(f"{type(error).__name__}: {error.strerror} (file={error.filename}). {remedy}")
    except ModuleNotFoundError as error:
        if verb == "doctor":  # it runs where anything else is missing, the reader of options included
            doctor(json="--json" in arguments)
        elif (error.name or "rmjax").partition(".")[0] == "rmjax":
            raise
        else:
            _stop(f"`{error.name}` is not installed. `rmjax doctor` says what is missing and how to get it.")


def run(verb: str, arguments: Sequence[str]) -> None:
    """Read the options and call the verb's function. Only that verb is imported, so that it starts soon."""
    import tyro

    names = (verb,) if verb in VERBS else VERBS
    tyro.extras.subcommand_cli_from_dict({name: _load(VERBS[name]) for name in names}, prog="rmjax", args=arguments)


def _load(place: str) -> Callable[..., Any]:
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


def _stop(message: str) -> None:
    color = ("\033[1;31m", "\033[0m") if sys.stderr.isatty() else ("", "")
    kind, colon, rest = message.partition(":")
    print(f"{color[0]}{kind}{color[1]}{colon}{rest}" if colon else message, file=sys.stderr)
    sys.exit(2)
