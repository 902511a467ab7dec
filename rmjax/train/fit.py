"""One call from a configuration to a trained model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rmjax.train.config import TrainConfig, resolve
from rmjax.train.loop import Observer, Trained, claim, train
from rmjax.train.run import save_contract
from rmjax.train.setup import prepare


def fit(config: TrainConfig, observe: Sequence[Observer] = ()) -> Trained:
    """Read, check, split, tokenise and train; or go on with a run that was killed.

    Args:
        config: the run.
        observe: called after every step with the step and its row of metrics.

    Returns:
        The trained model. Checkpoints, metrics and the contract from text to tokens are in `config.output`.

    Raises:
        DataError: the data cannot be understood; before anything is written.
        CheckpointError: the directory holds another run.

    Example:
        >>> import json, tempfile
        >>> from rmjax.data.buckets import PackSpec
        >>> from rmjax.train import DataConfig
        >>> rows = [{"prompt": f"Say {word}.", "chosen": word, "rejected": f"not {word}"} for word in ("yes", "no")]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     pairs = Path(folder, "pairs.jsonl")
        ...     _ = pairs.write_text("".join(json.dumps(row) + chr(10) for row in rows))
        ...     data = DataConfig(path=str(pairs), held_out=0.5)
        ...     packing = PackSpec(lengths=(64,), tokens_per_micro_batch=64)
        ...     fit(TrainConfig(output=f"{folder}/run", data=data, packing=packing)).steps
        1
    """
    config = resolve(config)
    prepared = prepare(config)
    claim(Path(config.output), config)
    save_contract(config.output, prepared, config)
    return train(prepared, config, observe)
