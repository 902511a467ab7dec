"""A model and a file, as the verbs that read both take them."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Literal

import tyro

from rmjax.comparisons import check_ties
from rmjax.data.buckets import Layout, PackSpec
from rmjax.data.contract import TextContract, overlay
from rmjax.data.dataset import PreferenceData
from rmjax.data.packing import epoch_plan
from rmjax.data.tokenise import tokenise
from rmjax.errors import DataError, HeadError
from rmjax.sharding import MeshShape
from rmjax.train.config import ReadConfig
from rmjax.train.run import Run, open_run
from rmjax.train.setup import lay_out, read_file, within_positions
from rmjax.train.stored import seen


@dataclasses.dataclass(frozen=True)
class Inputs:
    """A model and a file of preferences."""

    file: tyro.conf.Positional[str]
    """A file of preferences, or "synthetic"."""
    model: str
    """The directory of a run, or a model by name: a directory, a .gguf file, a hub name, "smollm2-135m"."""
    read: Annotated[ReadConfig, tyro.conf.arg(name="")] = ReadConfig()
    text: TextContract = TextContract()
    """How text becomes tokens, for a model that does not say; a run and an exported run do, and refuse another way."""
    packing: PackSpec = PackSpec()
    """How trees are packed into rows; where nothing is said, a run packs as it was trained."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Of matmuls."""


@dataclasses.dataclass(frozen=True)
class Opened:
    """Both, opened: the layout holds what is not left out."""

    run: Run
    data: PreferenceData
    layout: Layout
    notes: tuple[tuple[str, str], ...]

    @property
    def num_tokens(self) -> int:
        """Tokens of one pass, each shared prefix once, as progress counts them."""
        return epoch_plan(self.layout, None).num_tokens


def open_inputs(inputs: Inputs, need: Literal["text", "scores", "likelihood"]) -> Opened:
    """Open the model, understand the file, and lay it out.

    Args:
        inputs: both.
        need: "text" looks at tokens alone; "scores" needs a head that says something; "likelihood" also needs to know
            what to do with ties.

    Returns:
        Both, with notes on what a reader should know: label and text.

    Raises:
        DataError: the file cannot be understood, or has ties and no policy for them, or text was to become tokens in
            another way than the model was trained with, or may have more tokens than the model has positions.
        HeadError: the model has no trained head.
        CheckpointError: the model cannot be opened.
    """
    data = read_file(inputs.file, inputs.read)
    if need == "likelihood":
        check_ties(data.comparisons, inputs.read.ties, rows=data.rows)
    run = open_run(inputs.model)
    if need != "text" and run.model.report.head == "new head":
        raise HeadError(
            "the model has no trained head, so that every margin is 0",
            {"model": inputs.model},
            f"Train one with `rmjax train --model {inputs.model}` and give the directory of that run.",
        )
    contract = overlay(run.contract or TextContract(), inputs.text)
    if run.contract and contract != run.contract:
        own, asked = (dataclasses.asdict(c) for c in (run.contract, inputs.text))
        raise DataError(
            "the model has its own contract from text to tokens, under which its scores mean something",
            {n: f"{own[n]!r}, asked for {asked[n]!r}" for n in own if asked[n] not in ("auto", own[n])},
            "Leave these options away; for another contract, train another run.",
        )
    packing = inputs.packing
    if run.config is not None and packing == PackSpec():
        packing = run.config.packing
    contract = within_positions(contract, run.model.config)
    tokenised = tokenise(data, run.model.tokenizer, contract, on_empty_answer=inputs.read.on_empty_answer)
    notes = (*seen(run.files, inputs.file), *other_format(run, tokenised.data.format, tokenised.contract))
    layout = lay_out(tokenised, packing, MeshShape())
    return Opened(run, data, layout, notes)


def other_format(run: Run, format: str, contract: TextContract) -> tuple[tuple[str, str], ...]:
    """A note where the file is of another format than that of the training, whose rules for text are kept."""
    if run.format in (None, format):
        return ()
    rule = "the chat template" if contract.template == "chat" else f"raw, joined by {contract.separator!r}"
    return (("other format", f"trained on {run.format}, this file is {format}; text stays as in training: {rule}"),)
