"""A run on disk: its configuration, its contract from text to score, and its model."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path

import jax
import numpy as np

from rmjax.data.buckets import Layout
from rmjax.data.contract import TextContract, fingerprint
from rmjax.errors import CheckpointError
from rmjax.models.load import RewardModel
from rmjax.train.config import TrainConfig
from rmjax.train.config import load as load_config
from rmjax.train.loop import restore
from rmjax.train.setup import Prepared, model_fingerprint, open_model
from rmjax.train.stored import RUN, exported, file_fingerprint, is_run, same, stored
from rmjax.train.trainable import parse, split
from rmjax.train.whole_files import write_whole


@dataclasses.dataclass(frozen=True)
class Run:
    """A model with how it reads text, as far as its files say."""

    model: RewardModel
    contract: TextContract | None  # None for a model from elsewhere
    config: TrainConfig | None  # None for a model that was exported or comes from elsewhere
    format: str | None = None  # of the file that it was trained on
    files: tuple[str, ...] = ()  # fingerprints of all that it, and the models it was started from, were trained on


def save_contract(directory: str | Path, prepared: Prepared, config: TrainConfig) -> None:
    """Keep beside the checkpoints what a run was started from, or check that it is still the same.

    That is how text became tokens, the data of both halves, and the parameters that no checkpoint holds because they
    are not trained.

    Args:
        directory: of the run.
        prepared: model and data.
        config: of the run.

    Raises:
        CheckpointError: the run was started with another tokenizer, template or limit, on other data, or from another
            model.
    """
    path, tokenised = Path(directory) / RUN, prepared.train.tokenised
    now = {
        "contract": dataclasses.asdict(tokenised.contract),
        "fingerprint": tokenised.fingerprint,
        "format": tokenised.data.format,
        "files": [*prepared.files, file_fingerprint(config.data.path)],
        "data": data_fingerprint(prepared.train, prepared.held_out),
        "frozen": frozen_fingerprint(prepared.model, tokenised.contract, config),
    }
    if not path.exists():
        if any((path.parent / "checkpoints").glob("*")):
            raise CheckpointError(
                "the run does not say what it was started from",
                {"lacks": str(path)},
                "Restore the file, or start a new run in another directory.",
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(now, indent=2) + "\n")
        return
    then = stored(path, _STARTED_FROM)
    for name, what in _STARTED_FROM.items():
        same(path, what, then[name], now[name])


_STARTED_FROM = {
    "fingerprint": "trained with another tokenizer or another contract from text to tokens",
    "data": "trained on other data",
    "frozen": "trained from another model: what is not trained differs",
}


def open_run(path: str | Path) -> Run:
    """The model of a run, or any model by name.

    Args:
        path: the directory of a run, or a model by name.

    Returns:
        The model with the contract that it was trained under, which a model from elsewhere does not tell.

    Raises:
        CheckpointError: there is no complete checkpoint, or the tokenizer is not the one of the training.

    Example:
        >>> run = open_run("tiny")
        >>> run.contract is None, run.model.report.head
        (True, 'new head')
    """
    if not is_run(path):
        model = open_model(str(path), seed=0)
        said = exported(model)
        return Run(model, said["contract"], None, said["format"], said["files"])
    config = load_config(path)
    then = stored(Path(path) / RUN, _STARTED_FROM)
    model, contract = open_model(config.model, config.seed), then["contract"]
    now = {
        "fingerprint": fingerprint(contract, model.tokenizer),
        "frozen": frozen_fingerprint(model, contract, config),
    }
    for name, value in now.items():
        same(Path(path) / RUN, _STARTED_FROM[name], then[name], value)
    trained = restore(path, model, config)
    source = dataclasses.replace(trained.report, source=f"{path} (from {config.model})", head="trained")
    model = dataclasses.replace(trained, report=source)
    return Run(model, contract, config, then["format"], then["files"])


def frozen_fingerprint(model: RewardModel, contract: TextContract, config: TrainConfig) -> str:
    """A name for the part of a model that a run does not train, with its architecture and contract.

    Args:
        model: what the run starts from.
        contract: how text becomes tokens, resolved.
        config: of the run.

    Returns:
        As `model_fingerprint`.
    """
    _, frozen = split(model.params, parse(config.trainable, model.config.num_layers))
    return model_fingerprint(dataclasses.replace(model, params=frozen), contract)


def data_fingerprint(*layouts: Layout) -> str:
    """A name for tokenised data: their ids, scored positions and judgements.

    Args:
        layouts: the parts.

    Returns:
        The first 16 digits of a SHA-256 over all of them.
    """
    digest = hashlib.sha256()
    for layout in layouts:
        tokenised = layout.tokenised
        arrays = [*tokenised.ids, tokenised.score_position, *jax.tree.leaves(tokenised.data.comparisons)]
        digest.update(tokenised.lengths.tobytes())
        for array in arrays:
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]
