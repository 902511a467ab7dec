"""Where results go, checked before anything is computed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from rmjax.errors import RMJaxError


def check_directory(output: str) -> None:
    """Refuse a directory of results that cannot be made.

    Args:
        output: as the user gave it; it need not exist.

    Raises:
        RMJaxError: it, or a part of its path, is a file, or nothing may be written there.
    """
    path = Path(output)
    for part in (path, *path.parents):
        if part.exists() and not part.is_dir():
            raise RMJaxError("the output is a file", {"file": str(part)}, "Give a directory, which need not exist.")
    nearest = next(part for part in (path, *path.parents) if part.exists())
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise RMJaxError("nothing may be written there", {"directory": str(nearest)}, "Give another directory.")


def check_file(output: str, inputs: Sequence[str | None] = ()) -> None:
    """Refuse a file of results that cannot be written, or would replace what is read.

    Args:
        output: as the user gave it.
        inputs: files that are read.

    Raises:
        RMJaxError: it is a directory, lies in none, or is one of the inputs.
    """
    path = Path(output)
    if path.is_file() and any(name and Path(name).exists() and path.samefile(name) for name in inputs):
        raise RMJaxError("the output is the file that is read", {"file": output}, "Give another name.")
    if path.is_dir():
        raise RMJaxError("the output is a directory", {"output": output}, "Give the name of a file.")
    if not path.parent.is_dir():
        raise RMJaxError("there is no such directory", {"directory": str(path.parent)}, "Make it, or give another.")
