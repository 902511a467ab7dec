"""Files that are there whole or not at all, whenever the process is killed."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from rmjax.errors import CheckpointError

_PARTIAL = ".partial"


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


@contextlib.contextmanager
def whole_directory(directory: str | Path, last: str) -> Iterator[Path]:
    """A folder to write files into, which then take their places in a directory.

    Guarantees: until all are written, the directory stays as it was. While they take their places, the file of the name
    `last`, which says what the others mean, is not there: new files never stand beside an old one of that name.

    Args:
        directory: made where it does not exist; other files in it stay.
        last: the name of the file that goes first and comes last, where it is written.

    Yields:
        The folder, on the same disk.

    Raises:
        CheckpointError: the disk is full, or a place is taken by what is no file.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as place:
        ...     with whole_directory(place, last="about.json") as folder:
        ...         _ = Path(folder, "numbers.bin").write_bytes(b"1")
        ...     [file.name for file in Path(place).iterdir()]
        ['numbers.bin']
    """
    folder = Path(directory)
    scratch = folder / _PARTIAL
    try:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(scratch, ignore_errors=True)  # of a process that was killed
        scratch.mkdir()
        try:
            yield scratch
            made = sorted(scratch.iterdir(), key=lambda path: path.name == last)
            for name in (last, *(path.name for path in made)):
                if (folder / name).is_dir():
                    raise IsADirectoryError(f"{name} is a directory")
            (folder / last).unlink(missing_ok=True)
            for path in made:
                path.replace(folder / path.name)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    except OSError as error:
        raise CheckpointError(
            "the files cannot be written",
            {"directory": str(folder), "problem": str(error)},
            "Make room, or give another directory; what stood there stays.",
        ) from error
