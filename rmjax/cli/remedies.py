"""Remedies that name an argument of a function, as the option of a verb."""

from __future__ import annotations

import re

from rmjax.errors import RMJaxError

# Argument -> option, and where `rmjax train`, which has options of several kinds, keeps it.
_OPTIONS = {
    "ties": ("--ties", "--data.ties"),
    "on_bad_row": ("--on-bad-row", "--data.on-bad-row"),
    "on_empty_answer": ("--on-empty-answer", "--data.on-empty-answer"),
    **{name: (f"--text.{name.replace('_', '-')}",) * 2 for name in ("truncation", "template", "add_bos", "add_eos")},
    "max_length": ("--text.max-length", "--text.max-length"),
    "held_out": ("--data.held-out", "--data.held-out"),
}
# `name="value"`, as functions are called, and the one name that stands alone in a remedy.
_NAMED = re.compile(rf"\b(?:({'|'.join(_OPTIONS)})=\"?([\w.]*\w)\"?|(max_length)\b)")
_FIELDS = re.compile(r"\bFields\((?:(\w+)=)?\.\.\.\)")


def as_flags(error: RMJaxError, verb: str) -> str:
    """The text of an error, with what its remedy asks for as it is typed.

    Args:
        error: from a function.
        verb: that called it.

    Returns:
        What `str(error)` says, for a reader at a command line.

    Example:
        >>> from rmjax.errors import DataError
        >>> error = DataError("there are ties", {"ties": 3}, 'Choose ties="drop" or ties="half".')
        >>> as_flags(error, "train")
        'there are ties [ties=3]. Choose --data.ties drop or --data.ties half.'
    """
    at = 1 if verb == "train" else 0
    columns = "--data.fields." if verb == "train" else "--fields."
    remedy = _NAMED.sub(lambda m: " ".join([_OPTIONS[m[1] or m[3]][at], *filter(None, [m[2]])]), error.remedy)
    remedy = _FIELDS.sub(lambda m: f"{columns}{m[1] or '*'}", remedy)
    return str(type(error)(error.what, error.numbers, remedy))
