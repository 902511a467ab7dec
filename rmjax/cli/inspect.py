"""`rmjax inspect`: what a file says and what a model would see, before any training."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import tyro

from rmjax.cli import show
from rmjax.cli.inputs import Inputs, open_inputs
from rmjax.data.audit import audit
from rmjax.data.decisions import counted
from rmjax.data.formats.reader import IDENTICAL
from rmjax.data.inspect import inspect as inspect_tokens
from rmjax.data.inspect import lines
from rmjax.data.render import render
from rmjax.data.tokenise import SHOWN, Count
from rmjax.diagnostics.summary import as_json
from rmjax.errors import DataError


@dataclasses.dataclass(frozen=True)
class InspectConfig(Inputs):
    """What is looked at."""

    examples: int = 3
    """Comparisons that are shown in full."""


def inspect(config: Annotated[InspectConfig, tyro.conf.arg(name="")], *, json: bool = False) -> None:
    """Format, counts, ties, lengths, what a limit would cut, double BOS, the exact text and the scored token.

    Args:
        config: what is looked at.
        json: print the result as JSON on standard output.

    Raises:
        DataError: the file has bad rows; it was shown without them.
    """
    # The whole file is looked at, and its bad rows are listed by reason: a reader wants to mend them in one go.
    lenient = dataclasses.replace(config, read=dataclasses.replace(config.read, on_bad_row="drop"))
    opened = open_inputs(lenient, need="text")
    said, seen = audit(opened.data), inspect_tokens(opened.layout, opened.run.model.tokenizer, config.examples)
    ties = config.read.ties or ("not chosen: training and evaluation would refuse" if said.ties else "none to treat")
    chosen = [("ties are", {"drop": "left out", "half": "half a vote for either side"}.get(ties, ties))]
    chosen += [("what weighs the same", f"every {config.read.unit}")]
    if json:
        show.print_json(as_json({"file": said, "tokens": seen, "ties": config.read.ties, "unit": config.read.unit}))
    else:
        show.CONSOLE.print(render(said, more=[*chosen, *opened.notes, *lines(seen)]))
    bad = {reason: rows for reason, rows in opened.data.dropped.items() if reason != IDENTICAL}
    if bad and config.read.on_bad_row == "error":
        raise DataError(
            "training and evaluation refuse this file for its bad rows",
            {"file": config.file} | {reason: counted(Count(len(rows), rows[:SHOWN])) for reason, rows in bad.items()},
            'Mend them, or leave them out, counted, with on_bad_row="drop".',
        )
