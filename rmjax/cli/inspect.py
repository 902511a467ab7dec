"""`rmjax inspect`: what a file says and what a model would see, before any training."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import tyro

from rmjax.cli import show
from rmjax.cli.inputs import Inputs, open_inputs
from rmjax.data.audit import audit
from rmjax.data.inspect import inspect as inspect_tokens
from rmjax.data.inspect import lines
from rmjax.data.render import render
from rmjax.diagnostics.summary import as_json


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
    """
    run, data, layout = open_inputs(config)
    said, seen = audit(data), inspect_tokens(layout, run.model.tokenizer, config.examples)
    ties = config.read.ties or ("not chosen: training and evaluation would refuse" if said.ties else "none to treat")
    chosen = [("ties are", {"drop": "left out", "half": "half a vote for either side"}.get(ties, ties))]
    chosen += [("what weighs the same", f"every {config.read.unit}")]
    if json:
        show.print_json(as_json({"file": said, "tokens": seen, "ties": config.read.ties, "unit": config.read.unit}))
        return
    show.CONSOLE.print(render(said, more=[*chosen, *lines(seen)]))
