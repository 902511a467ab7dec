"""Files that are there whole or not at all, whenever the process is killed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def write_whole(path: str | Path, lines: Iterable[str]) -> None:
    """Write text beside a file and put it in the file's place when it is complete.

    Args:
        path: of the file; an existing one stays until then.
        lines: the text, with its line ends.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_whole(Path(folder, "x.json"), ["{}"])
        ...     [file.name for file in Path(folder).iterdir()]
        ['x.json']
    """
    partial = Path(f"{path}.partial")
    with partial.open("w", encoding="utf-8") as file:
        file.writelines(lines)
    partial.replace(path)
