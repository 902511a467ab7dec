"""`rmjax score`: a score for every answer of a file."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import tyro

from rmjax.cli import show
from rmjax.cli.inputs import Inputs, open_inputs
from rmjax.cli.outputs import check_file
from rmjax.data.decisions import of_reading, of_tokenising
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

    A lone score is no result: it is on a scale of its own model, with a constant of its own for every prompt. Where
    texts are longer than the limit, the beginning of their prompt is cut, as much for every answer to it in the file;
    every line says how many tokens that are.

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
    tokenised, scored = layout.tokenised, dataclasses.replace(scored, fingerprint=fingerprint)
    lines = write_scores(config.output, tokenised.data, scored, tokenised.lost)
    if json:
        show.print_json({"lines": lines, "output": config.output, "fingerprint": fingerprint})
        return
    told = [(label.strip(), text) for label, text in of_tokenising(tokenised.report) if text != "none"]
    show.notes([*of_reading(opened.data.dropped), *told, *opened.notes], where)
    where.print(f"{lines:,} comparisons scored by {fingerprint}: {config.output}")
