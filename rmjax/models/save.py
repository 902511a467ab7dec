"""A reward model as the ecosystem's files."""

from __future__ import annotations

import dataclasses
import json
import os
import types
from collections.abc import Collection, Mapping
from pathlib import Path

from safetensors import SafetensorError
from safetensors.numpy import save_file

from rmjax.errors import CheckpointError, DataError
from rmjax.models.hf_config import config_to_hf
from rmjax.models.load import RewardModel
from rmjax.models.weights import export_tensors
from rmjax.models.whole_directory import whole_directory
from rmjax.tokenizer import Tokenizer

EXPORTED = "rmjax.json"  # how an exported model reads text, and what it was trained on
_CONFIG = "config.json"
# What would be read with the new files and is not written anew: shards, a template and tokens that stand apart, the
# contract of another model. And what makes a directory a run, whose configuration has the name of a model's.
_OTHERS = (
    *("model.safetensors.index.json", "chat_template.jinja", "special_tokens_map.json", "added_tokens.json"),
    *(EXPORTED, "contract.json", "checkpoints"),
)
_WRITTEN = (_CONFIG, "model.safetensors", "tokenizer.json", "tokenizer_config.json")


def save(
    directory: str | Path,
    model: RewardModel,
    *,
    pad_token: str | None = None,
    beside: Mapping[str, str | None] = types.MappingProxyType({}),
) -> None:
    """Write a model that `load` and transformers' AutoModelForSequenceClassification open.

    Guarantees: `load` gives the same bits. transformers gives one logit, which is the score at the last token that is
    not its pad token; the bias of a head, which it does not read, moves all scores by one constant and no margin. Of a
    qwen2 model its AutoTokenizer cuts text as Qwen2 does whatever tokenizer.json says: where the tokenizer is another,
    it must be opened as PreTrainedTokenizerFast. A model that stood there stays until all is written; where the new
    files cannot take its place, none of the two opens, and never one with files of the other.

    Args:
        directory: made where it does not exist. The disk holds the old and the new model for a moment.
        model: parameters of any float dtype are written as float32.
        pad_token: what others are to pad with, instead of the tokenizer's own. transformers takes no batch without
            one, and where it is EOS, it scores a text that ends with EOS at the token before. BOS ends no text.
        beside: further texts that belong to the model, by the names of their files; None for one that it does not have.

    Raises:
        CheckpointError: the directory is a file, holds a run or what would be read with the new files, or cannot be
            written, or no family has this combination of parts.
        DataError: the pad token is not in the vocabulary, or a file beside the model has the name of one of its own.

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
    raw, tokenizer = _checked(folder, model, pad_token, beside)
    tensors = export_tensors(model.params, model.config)
    with whole_directory(folder, last=(*beside, _CONFIG)) as partial:  # nothing opens without a config.json
        try:
            # transformers asks for this word before it reads the file.
            save_file(tensors, partial / "model.safetensors", metadata={"format": "pt"})
        except SafetensorError as error:
            raise OSError(str(error)) from error
        tokenizer.save(partial)
        for name, text in {**beside, _CONFIG: json.dumps(raw, indent=2) + "\n"}.items():
            if text is not None:
                (partial / name).write_text(text, "utf-8")


def _checked(
    directory: Path, model: RewardModel, pad_token: str | None, beside: Collection[str]
) -> tuple[dict, Tokenizer]:
    """The words of config.json and the tokenizer to write; what is refused is refused here, before anything is."""
    tokenizer = model.tokenizer
    if os.path.isfile(directory):
        raise CheckpointError("there is a file of that name", {"directory": directory}, "Give a directory.")
    if others := [name for name in _OTHERS if name not in beside and os.path.lexists(directory / name)]:
        raise CheckpointError(
            "the directory holds files of another model or of a run, which do not go with the new ones",
            {"directory": directory, "files": ", ".join(others)},
            "Save into a directory of its own.",
        )
    if odd := [name for name in beside if Path(name).name != name or name in _WRITTEN]:
        raise DataError(
            "a file beside the model has a name of its own", {"names": ", ".join(odd)}, "Give another name."
        )
    if pad_token is not None:
        tokenizer = dataclasses.replace(tokenizer, special_tokens={**tokenizer.special_tokens, "pad_token": pad_token})
    ids = {"bos_token_id": tokenizer.bos_id, "eos_token_id": tokenizer.eos_id, "pad_token_id": tokenizer.pad_id}
    return config_to_hf(model.config, **ids), tokenizer
