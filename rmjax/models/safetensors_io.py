"""Tensors of a directory of safetensors files, read one at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import ml_dtypes  # noqa: F401 - gives NumPy the name bfloat16, which safetensors asks for
import numpy as np
from safetensors import SafetensorError, safe_open

from rmjax.errors import CheckpointError


class SafetensorsDirectory(Mapping[str, np.ndarray]):
    """Names and arrays of `model.safetensors`, or of the shards that `model.safetensors.index.json` lists.

    Guarantees: an array is read when it is asked for, so a model larger than twice the memory still loads; every
    tensor that the index promises is in its shard, and no shard holds one that the index does not know.
    """

    def __init__(self, directory: str | Path):
        folder = Path(directory)
        single, index = folder / "model.safetensors", folder / "model.safetensors.index.json"
        if single.is_file():
            self._file_of = dict.fromkeys(_names(single), single)
        elif index.is_file():
            try:
                listed = json.loads(index.read_text("utf-8"))["weight_map"]
                self._file_of = {name: folder / shard for name, shard in listed.items()}
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                raise CheckpointError(
                    "the index of the weights cannot be read",
                    {"file": index, "problem": repr(error)},
                    "Copy or download the file again.",
                ) from error
            _check_index(self._file_of)
        else:
            raise CheckpointError(
                "there are no safetensors weights",
                {"directory": folder, "found": ", ".join(sorted(p.name for p in folder.iterdir())[:8])},
                "Save the model with save_pretrained, which writes model.safetensors; pickled weights are not read.",
            )

    def __getitem__(self, name: str) -> np.ndarray:
        with safe_open(self._file_of[name], framework="numpy") as file:
            return file.get_tensor(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._file_of)

    def __len__(self) -> int:
        return len(self._file_of)


def _names(path: Path) -> list[str]:
    try:
        with safe_open(path, framework="numpy") as file:
            return list(file.keys())
    except (SafetensorError, OSError) as error:
        raise CheckpointError(
            "a file of weights cannot be read",
            {"file": path, "reason": error},
            "Copy or download the file again: it is missing, cut short or damaged.",
        ) from error


def _check_index(file_of: Mapping[str, Path]) -> None:
    """The shards hold exactly what the index lists."""
    held = {(name, path) for path in sorted(set(file_of.values())) for name in _names(path)}
    if wrong := held ^ set(file_of.items()):
        name, path = min(wrong)
        raise CheckpointError(
            "a shard and the index disagree about a tensor",
            {"tensor": name, "shard": path.name, "in shard": (name, path) in held, "disagreements": len(wrong)},
            "Copy or download the directory again: shards of two versions are mixed, or one is cut short.",
        )
