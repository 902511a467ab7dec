"""The frozen configuration of a run. Every field does something; `rmjax train --help` is made from it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any, Literal

from rmjax.comparisons import Ties, Unit
from rmjax.data.buckets import PackSpec
from rmjax.data.contract import TextContract
from rmjax.data.formats import Fields
from rmjax.errors import CheckpointError, DataError
from rmjax.sharding import MeshShape
from rmjax.train.objective import Objective, check_objective
from rmjax.train.optimizer import PRETRAINED_RATE, OptimizerConfig


@dataclasses.dataclass(frozen=True)
class ReadConfig:
    """How a file of preferences is understood."""

    texts: str | None = None
    """A second file of id and text, where answers are ids."""
    fields: Fields = Fields()
    """Which columns mean what."""
    on_bad_row: Literal["error", "drop"] = "error"
    """Refuse a file with a row that cannot be understood, or leave such rows out and count them."""
    on_empty_answer: Literal["bad", "keep"] = "bad"
    """Whether an answer without a visible character makes a bad row, or is an answer."""
    ties: Ties | None = None
    """What Bradley-Terry does with ties: "drop" or "half". Must be chosen where there are any."""
    unit: Unit = "vote"
    """What weighs the same: every vote, every comparison, or every prompt."""
    selected: bool = False
    """Whether the pairs were chosen by how well annotators agree: their agreement is then no ceiling."""


@dataclasses.dataclass(frozen=True)
class DataConfig(ReadConfig):
    """What is read, and how it is held out."""

    path: str = "synthetic"
    """A file of preferences, or "synthetic" for the embedded world."""
    held_out: float = 0.1
    """Share of the comparisons that is kept for evaluation, split by prompt, source and response text."""
    split_seed: int = 0
    """Seed of the split."""


@dataclasses.dataclass(frozen=True)
class TrainConfig:
    """A whole run. The defaults are the demo: a small trunk from scratch on the synthetic world."""

    output: str = "runs/demo"
    """Directory of the run. One that holds a run of the same configuration is resumed."""
    model: str = "tiny"
    """A directory, a .gguf file, a hub name, "smollm2-135m", or "tiny": a small trunk from scratch on bytes."""
    data: DataConfig = DataConfig()
    """What is read. Ties of the synthetic world are left out where nothing else is said; those of a file are not."""
    text: TextContract = TextContract()
    """How a prompt and an answer become tokens. What is "auto" stays as it was for an exported model."""
    packing: PackSpec = PackSpec()
    """How trees are packed into rows."""
    loss: Objective = Objective()
    """What is minimised."""
    optimizer: OptimizerConfig = OptimizerConfig()
    """AdamW."""
    mesh: MeshShape = MeshShape()
    """Devices along data, fsdp and tensor."""
    epochs: int = 1
    """Passes over the training comparisons."""
    max_steps: int | None = None
    """Stop after this many optimiser steps."""
    accumulate: int = 1
    """Micro-batches per optimiser step."""
    trainable: str = "all"
    """What is trained: "all", "head", or a number of layers from the top."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Of matmuls; master weights, norms, scores and losses are float32."""
    remat: str = "none"
    """What the backward pass recomputes: "none", "all", or all but the sites named here, by commas."""
    seed: int = 0
    """Of the initial parameters of a trunk from scratch."""
    data_seed: int = 0
    """Of the order of the data, and of nothing else."""
    log_every: int = 1
    """Steps between rows of metrics.jsonl."""
    evaluate_every: int = 0
    """Steps between evaluations on what is held out; 0 for the end alone."""
    checkpoint_every: int = 100
    """Steps between checkpoints; there is always one at the end."""
    keep_checkpoints: int = 2
    """How many checkpoints stay on disk."""


# A trunk from scratch learns nothing at a rate that suits a pretrained one.
_FROM_SCRATCH = 2e-3
_RANGES = {"learning_rate": (0, 1e3), "head_learning_rate": (0, 1e3), "warmup": (0, 1), "final": (0, 1)}
_RANGES |= {"weight_decay": (0, 1e3), "b1": (0, 0.99999), "b2": (0, 0.99999), "eps": (0, 1), "clip_norm": (1e-12, 1e12)}


def resolve(config: TrainConfig) -> TrainConfig:
    """Replace what is unset by what it comes to for this model and these data.

    Args:
        config: as the user gave it.

    Returns:
        The configuration in force; resolving it again changes nothing.

    Raises:
        DataError: a count is smaller than it can be, an option of the optimiser is out of range, or the loss is none.

    Example:
        >>> resolve(TrainConfig(model="tiny")).optimizer.learning_rate
        0.002
    """
    smallest = {"epochs": 1, "max_steps": 1, "accumulate": 1, "log_every": 1, "checkpoint_every": 1}
    smallest |= {"keep_checkpoints": 1, "evaluate_every": 0}
    for name, least in smallest.items():
        given = getattr(config, name)
        if given is not None and given < least:
            raise DataError("a count is too small", {name: given}, f"Give {least} or more.")
    for name, (least, most) in _RANGES.items():
        given = getattr(config.optimizer, name)
        if given is not None and not least <= given <= most:  # which NaN is not, either
            raise DataError(
                "an option of the optimiser is out of range",
                {name: given},
                f"Give a number from {least:g} to {most:g}.",
            )
    if not 0 < config.data.held_out < 1:
        raise DataError(
            "the share that is held out lies between 0 and 1",
            {"held_out": config.data.held_out},
            "Say for example held_out=0.1: without a part that was not trained on, nothing can be measured.",
        )
    rate, data = config.optimizer.learning_rate, config.data
    if rate is None:
        rate = _FROM_SCRATCH if config.model == "tiny" else PRETRAINED_RATE
    ties = check_objective(config.loss, data.ties)
    if data.path == "synthetic" and ties is None:
        ties = "drop"
    data = dataclasses.replace(data, ties=ties)
    return dataclasses.replace(config, data=data, optimizer=dataclasses.replace(config.optimizer, learning_rate=rate))


def to_json(config: TrainConfig) -> str:
    """A configuration as text that `from_json` reads back.

    Args:
        config: the configuration.

    Returns:
        Indented JSON.

    Example:
        >>> from_json(to_json(TrainConfig(epochs=3))).epochs
        3
    """
    return json.dumps(dataclasses.asdict(config), indent=2) + "\n"


def from_json(text: str) -> TrainConfig:
    """The configuration that `to_json` wrote.

    Args:
        text: JSON.

    Returns:
        The configuration.

    Example:
        >>> from_json(to_json(TrainConfig())) == TrainConfig()
        True
    """
    return _build(TrainConfig, json.loads(text))


def load(directory: str | Path) -> TrainConfig:
    """The configuration of a run on disk.

    Args:
        directory: of the run.

    Returns:
        The configuration.

    Raises:
        CheckpointError: its file is damaged.
    """
    path = Path(directory) / "config.json"
    try:
        return from_json(path.read_text())
    except (OSError, ValueError, TypeError, AttributeError, RecursionError, DataError) as error:
        raise CheckpointError(
            "the configuration of the run cannot be read",
            {"file": str(path), "problem": str(error)},
            "Restore the file, or start the run anew in another directory.",
        ) from error


def _build(kind: type, values: dict[str, Any]) -> Any:
    """Rebuild nested dataclasses; the defaults tell which field is one."""
    defaults = kind()

    def value(name: str, given: Any) -> Any:
        default = getattr(defaults, name)
        if dataclasses.is_dataclass(default):
            return _build(type(default), given)
        return tuple(given) if isinstance(given, list) else given

    return kind(**{name: value(name, given) for name, given in values.items()})
