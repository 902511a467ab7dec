"""A reward model as the ecosystem's files."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

from safetensors import SafetensorError
from safetensors.numpy import save_file

from rmjax.errors import CheckpointError
from rmjax.models.hf_config import config_to_hf
from rmjax.models.load import RewardModel
from rmjax.models.weights import export_tensors
from rmjax.tokenizer import Tokenizer


def save(directory: str | Path, model: RewardModel, *, pad_token: str | None = None) -> None:
    """Write a model that `load` and transformers' AutoModelForSequenceClassification open.

    Guarantees: `load` gives the same bits. transformers gives one logit, which is the score at the last token that is
    not its pad token; the bias of a head, which it does not read, moves all scores by one constant and no margin. Of a
    qwen2 model its AutoTokenizer cuts text as Qwen2 does whatever tokenizer.json says: where the tokenizer is another,
    it must be opened as PreTrainedTokenizerFast.

    Args:
        directory: made where it does not exist.
        model: parameters of any float dtype are written as float32.
        pad_token: what others are to pad with, instead of the tokenizer's own. transformers takes no batch without
            one, and where it is EOS, it scores a text that ends with EOS at the token before. BOS ends no text.

    Raises:
        CheckpointError: the directory is a file, holds sharded weights or cannot be written, or no family has this
            combination of parts.
        DataError: the pad token is not in the vocabulary.

    Example:
        >>> import tempfile
        >>> import jax
        >>> from rmjax.models import ModelConfig, init
        >>> from rmjax.models.load import load
        >>> from rmjax.models.weights import LoadReport
        >>> from rmjax.tokenizer import ByteTokenizer
        >>> config = ModelConfig(
        ...     vocab_size=258,
        ...     hidden_size=64,
        ...     intermediate_size=128,
        ...     num_layers=2,
        ...     num_heads=4,
        ...     num_kv_heads=2,
        ...     head_dim=16,
        ... )
        >>> report = LoadReport("here", "none", "new head", 0, (), {})
        >>> model = RewardModel(config, init(jax.random.key(0), config), ByteTokenizer(), report)
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     save(directory, model)
        ...     load(directory).config == config
        True
    """
    folder = Path(directory)
    raw, tokenizer = check(folder, model, pad_token=pad_token)
    tensors = export_tensors(model.params, model.config)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # transformers asks for this word before it reads the file.
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
        (folder / "config.json").write_text(json.dumps(raw, indent=2) + "\n", "utf-8")
        tokenizer.save(folder)
    except (OSError, SafetensorError) as error:
        raise CheckpointError(
            "the model cannot be written",
            {"directory": folder, "problem": error},
            "Make room, or give another directory.",
        ) from error


def check(directory: str | Path, model: RewardModel, *, pad_token: str | None = None) -> tuple[dict, Tokenizer]:
    """Refuse what `save` refuses before it writes, and write nothing.

    Args:
        directory: as in `save`.
        model: as in `save`.
        pad_token: as in `save`.

    Returns:
        The words of config.json, and the tokenizer to write.

    Raises:
        CheckpointError: as in `save`.
        DataError: as in `save`.
    """
    folder, tokenizer = Path(directory), model.tokenizer
    if folder.exists() and not folder.is_dir():
        raise CheckpointError("there is a file of that name", {"directory": folder}, "Give a directory.")
    if list(folder.glob("model.safetensors.index.json")):
        raise CheckpointError(
            "the directory already holds the weights of a sharded model",
            {"directory": folder},
            "Save into a directory of its own: readers would not know which weights are meant.",
        )
    if pad_token is not None:
        tokenizer = dataclasses.replace(tokenizer, special_tokens={**tokenizer.special_tokens, "pad_token": pad_token})
    ids = {"bos_token_id": tokenizer.bos_id, "eos_token_id": tokenizer.eos_id, "pad_token_id": tokenizer.pad_id}
    return config_to_hf(model.config, **ids), tokenizer
