"""A model and a file, as the verbs that read both take them."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Literal

import tyro

from rmjax.comparisons import check_ties
from rmjax.data.buckets import Layout, PackSpec
from rmjax.data.contract import TextContract
from rmjax.data.dataset import PreferenceData
from rmjax.data.tokenise import tokenise
from rmjax.sharding import MeshShape
from rmjax.train.config import ReadConfig
from rmjax.train.run import Run, open_run
from rmjax.train.setup import lay_out, read_file


@dataclasses.dataclass(frozen=True)
class Inputs:
    """A model and a file of preferences."""

    file: tyro.conf.Positional[str]
    """A file of preferences, or "synthetic"."""
    model: str
    """The directory of a run, or a model by name: a directory, a .gguf file, a hub name, "smollm2-135m"."""
    read: Annotated[ReadConfig, tyro.conf.arg(name="")] = ReadConfig()
    text: TextContract = TextContract()
    """How text becomes tokens; a run has its own, which is used instead."""
    packing: PackSpec = PackSpec()
    """How trees are packed into rows."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Of matmuls."""


def open_inputs(inputs: Inputs) -> tuple[Run, PreferenceData, Layout]:
    """Open the model, understand the file, and lay it out.

    Args:
        inputs: both.

    Returns:
        The model with its contract, the data, and the layout of what is not left out.
    """
    data = read_file(inputs.file, inputs.read)
    run = open_run(inputs.model)
    contract = inputs.text if run.config is None else run.contract
    tokenised = tokenise(data, run.model.tokenizer, contract, on_empty_answer=inputs.read.on_empty_answer)
    return run, data, lay_out(tokenised, inputs.packing, MeshShape())


def refuse_ties(data: PreferenceData, read: ReadConfig) -> None:
    """Refuse ties without a policy before anything is scored."""
    check_ties(data.comparisons, read.ties, rows=data.rows)
