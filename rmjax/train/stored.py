"""What stands beside a model on disk about how it reads text, and on what it was trained."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rmjax.data.contract import TextContract, fingerprint
from rmjax.errors import CheckpointError, DataError
from rmjax.models.load import RewardModel
from rmjax.models.save import EXPORTED

RUN = "contract.json"  # beside the checkpoints of a run: what it was started from
KEPT = ("contract", "fingerprint", "format", "files")  # what both hold


def is_run(path: str | Path) -> bool:
    """Whether a path holds a run, or what is left of one, and not a model of the ecosystem."""
    folder = Path(path)
    if (folder / RUN).exists():
        return True
    if not (folder / "config.json").exists():
        return (folder / "checkpoints").is_dir()
    try:
        config = json.loads((folder / "config.json").read_text("utf-8"))
    except (ValueError, RecursionError):
        return False
    return isinstance(config, dict) and "optimizer" in config and "model_type" not in config


def stored(path: Path, more: Iterable[str] = ()) -> dict[str, Any]:
    """The contract from text to score in a file, with what else is kept beside it.

    Args:
        path: of the file.
        more: further names than those of `KEPT`.

    Returns:
        `contract`, a `TextContract`; its `fingerprint`; `format` of the training; `files`, the fingerprints of all that
        the model and those that it was started from were trained on; and the others.

    Raises:
        CheckpointError: the file is not there, is damaged, or is of another version.
    """
    try:
        found = json.loads(path.read_text("utf-8"))
        found["contract"] = TextContract(**found["contract"])
        if not isinstance(files := found["files"], list) or not all(isinstance(name, str) for name in files):
            raise TypeError(f"files is {files!r}, and no list of names")
        found["files"] = tuple(files)
        return {name: found[name] for name in (*KEPT, *more)}
    except (OSError, ValueError, KeyError, TypeError, RecursionError, DataError) as error:
        raise CheckpointError(
            "the contract from text to score cannot be read",
            {"file": str(path), "problem": repr(error)},
            "Restore the file, or make its directory anew: train again, or export again.",
        ) from error


def exported(model: RewardModel) -> dict[str, Any]:
    """What an exported model was given along; None for everything, and no files, where nobody said.

    Args:
        model: as it was loaded.

    Returns:
        As `stored`.

    Raises:
        CheckpointError: as `stored`, or the tokenizer or the contract is not the one that was exported.
    """
    if model.report.directory is None or not (path := Path(model.report.directory) / EXPORTED).exists():
        return dict.fromkeys(KEPT) | {"files": ()}
    found = stored(path)
    now = fingerprint(found["contract"], model.tokenizer)
    same(path, "exported with another tokenizer or another contract from text to tokens", found["fingerprint"], now)
    return found


def same(path: Path, what: str, then: str, now: str) -> None:
    """Refuse a model whose files are no longer those that it was made with.

    Args:
        path: of the file that says so.
        what: happened.
        then: a fingerprint as it was stored.
        now: the same of what is there.

    Raises:
        CheckpointError: they differ.
    """
    if then != now:
        raise CheckpointError(
            f"the model was {what}",
            {"file": str(path), "then": str(then)[:16], "now": now[:16]},
            "Go on with the files that it was made with, or make it anew in another directory.",
        )


def file_fingerprint(path: str) -> str:
    """A name for the bytes of a file of preferences; the synthetic world has its own.

    Args:
        path: of the file, or "synthetic".

    Returns:
        The first 16 digits of a SHA-256.

    Example:
        >>> file_fingerprint("synthetic")
        'synthetic'
    """
    if path == "synthetic":
        return path
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def seen(files: Sequence[str], path: str, *, before: bool = False) -> list[tuple[str, str]]:
    """A fact about a file of preferences on which a model was already trained, wherever it lies.

    Args:
        files: fingerprints of all that a model and those that it was started from were trained on, in order.
        path: of the file.
        before: whether the model is one that a run starts from, and the file that of the run.

    Returns:
        Label and text; nothing where the model was not trained on the file.

    Example:
        >>> seen(["synthetic"], "synthetic")
        [('seen in training', 'the model was trained on this file, but for what was held out')]
        >>> seen([], "synthetic")
        []
    """
    if not files or (times := files.count(file := file_fingerprint(path))) == 0:
        return []
    if before:
        said = "the model that this run starts from was trained on this file: what is held out here may be part of that"
    elif times > 1:
        said = "the model was trained on this file more than once: what one training held out, another may have seen"
    else:
        whose = "the model" if files[-1] == file else "a model that this one was started from"
        said = f"{whose} was trained on this file, but for what was held out"
    return [("seen in training", said)]
