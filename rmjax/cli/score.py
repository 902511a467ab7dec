"""`rmjax score`: a score for every answer of a file."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import tyro

from rmjax.cli import show
from rmjax.cli.inputs import Inputs, open_inputs
from rmjax.cli.outputs import check_file
from rmjax.data.decisions import of_reading
from rmjax.train.scores_file import write_scores
from rmjax.train.scoring import make_score_fn, score_all
from rmjax.train.setup import model_fingerprint


@dataclasses.dataclass(frozen=True)
class ScoreConfig(Inputs):
    """What is scored by what."""

    output: str = "scores.jsonl"
    """One JSON line per comparison."""


def score(config: Annotated[ScoreConfig, tyro.conf.arg(name="")], *, json: bool = False) -> None:
    """Scores and margins of a file, with the fingerprint of the model and contract that made them.

    A lone score is no result: it is on a scale of its own model, with a constant of its own for every prompt.

    Args:
        config: what is scored by what.
        json: print the result as JSON on standard output.
    """
    where = show.console(json)
    check_file(config.output, inputs=(config.file, config.read.texts))
    opened = open_inputs(config, need="scores")
    run, layout = opened.run, opened.layout
    with show.progress("scoring", opened.num_tokens, where) as (bar, task):
        scored = score_all(
            run.model.params,
            layout,
            make_score_fn(run.model.config, config.dtype),
            progress=lambda tokens: bar.advance(task, tokens),
        )
    fingerprint = model_fingerprint(run.model, layout.tokenised.contract)
    lines = write_scores(config.output, layout.tokenised.data, dataclasses.replace(scored, fingerprint=fingerprint))
    if json:
        show.print_json({"lines": lines, "output": config.output, "fingerprint": fingerprint})
        return
    show.notes([*of_reading(opened.data.dropped), *opened.notes], where)
    where.print(f"{lines:,} comparisons scored by {fingerprint}: {config.output}")
