"""Where results go, checked before anything is computed."""

from __future__ import annotations

from pathlib import Path

from rmjax.errors import RMJaxError


def check_directory(output: str) -> None:
    """Refuse a directory of results that cannot be made.

    Args:
        output: as the user gave it; it need not exist.

    Raises:
        RMJaxError: it, or a part of its path, is a file.
    """
    path = Path(output)
    for part in (path, *path.parents):
        if part.exists() and not part.is_dir():
            raise RMJaxError("the output is a file", {"file": str(part)}, "Give a directory, which need not exist.")


def check_file(output: str) -> None:
    """Refuse a file of results that cannot be written.

    Args:
        output: as the user gave it.

    Raises:
        RMJaxError: it is a directory, or lies in none.
    """
    path = Path(output)
    if path.is_dir():
        raise RMJaxError("the output is a directory", {"output": output}, "Give the name of a file.")
    if not path.parent.is_dir():
        raise RMJaxError("there is no such directory", {"directory": str(path.parent)}, "Make it, or give another.")
