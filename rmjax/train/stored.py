"""What stands beside a model on disk about how it reads text."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rmjax.data.contract import TextContract
from rmjax.errors import CheckpointError

RUN = "contract.json"  # beside the checkpoints of a run: what it was started from
EXPORTED = "rmjax.json"  # beside the files of an exported model: what they cannot say


def is_run(path: str | Path) -> bool:
    """Whether a path holds a run, or what is left of one, and not a model of the ecosystem."""
    folder = Path(path)
    return (folder / RUN).exists() or ((folder / "checkpoints").is_dir() and not any(folder.glob("*.safetensors")))


def stored(path: Path, more: Iterable[str] = ()) -> dict[str, Any]:
    """The contract from text to score in a file, with the format of the training file and what else is asked for.

    Args:
        path: of the file.
        more: further names that it holds.

    Returns:
        `contract`, a `TextContract`; `format`; and the others.

    Raises:
        CheckpointError: the file is not there, is damaged, or is of another version.
    """
    try:
        found = json.loads(path.read_text("utf-8"))
        found["contract"] = TextContract(**found["contract"])
        return {name: found[name] for name in ("contract", "format", *more)}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(
            "the contract from text to score cannot be read",
            {"file": str(path), "problem": repr(error)},
            "Restore the file, or make its directory anew: train again, or export again.",
        ) from error


def exported(path: str | Path) -> dict[str, Any]:
    """The contract and the format of an exported model; None for both where nobody said.

    Args:
        path: a model by name.

    Returns:
        `contract` and `format`.

    Raises:
        CheckpointError: as `stored`.
    """
    beside = Path(path) / EXPORTED
    return stored(beside) if beside.exists() else {"contract": None, "format": None}
