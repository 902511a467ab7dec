"""A run on disk: its configuration, its contract from text to score, and its model."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

from rmjax.data.contract import TextContract, fingerprint
from rmjax.data.tokenise import TokenisedData
from rmjax.errors import CheckpointError
from rmjax.models.load import RewardModel
from rmjax.train.config import TrainConfig
from rmjax.train.config import load as load_config
from rmjax.train.loop import restore
from rmjax.train.setup import open_model


@dataclasses.dataclass(frozen=True)
class Run:
    """A trained model with how it reads text. `config` is None for a model that was not trained here."""

    model: RewardModel
    contract: TextContract
    config: TrainConfig | None


def is_run(path: str | Path) -> bool:
    """Whether a path holds a run, and not a model of the ecosystem."""
    return (Path(path) / "contract.json").exists()


def save_contract(directory: str | Path, tokenised: TokenisedData) -> None:
    """Keep how text became tokens beside the checkpoints, or check that it is still the same.

    Args:
        directory: of the run.
        tokenised: the training data.

    Raises:
        CheckpointError: the run was started with another tokenizer, template or limit.
    """
    path = Path(directory) / "contract.json"
    now = {"contract": dataclasses.asdict(tokenised.contract), "fingerprint": tokenised.fingerprint}
    if path.exists():
        _same(path, json.loads(path.read_text())["fingerprint"], tokenised.fingerprint)
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(now, indent=2) + "\n")


def open_run(path: str | Path) -> Run:
    """The model of a run, or any model by name.

    Args:
        path: the directory of a run, or a model by name.

    Returns:
        The model with the contract that it was trained under; the default contract for a model from elsewhere.

    Raises:
        CheckpointError: there is no complete checkpoint, or the tokenizer is not the one of the training.
    """
    if not is_run(path):
        return Run(open_model(str(path), seed=0), TextContract(), None)
    config = load_config(path)
    model = open_model(config.model, config.seed)
    stored = json.loads((Path(path) / "contract.json").read_text())
    contract = TextContract(**stored["contract"])
    _same(Path(path), stored["fingerprint"], fingerprint(contract, model.tokenizer))
    trained = restore(path, model, config)
    source = dataclasses.replace(trained.report, source=f"{path} (from {config.model})")
    return Run(dataclasses.replace(trained, report=source), contract, config)


def _same(path: Path, trained: str, now: str) -> None:
    if trained != now:
        raise CheckpointError(
            "the checkpoint was trained with another tokenizer or another contract from text to tokens",
            {"run": str(path), "trained_with": trained[:16], "now": now[:16]},
            "Open it with the model files that it was trained from: other ids would be scored without a warning.",
        )
