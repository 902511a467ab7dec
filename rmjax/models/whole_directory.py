"""The files of a model, written beside those that they replace."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from rmjax.errors import CheckpointError

_SCRATCH = ".rmjax-partial"


@contextlib.contextmanager
def whole_directory(directory: str | Path, last: Sequence[str]) -> Iterator[Path]:
    """A folder to write files into, which then take their places in a directory.

    Guarantees: until all are written, the directory stays as it was. While they take their places, none of the files
    named in `last` is there: they go before the first of the new ones comes, and come after all others, in that order.

    Args:
        directory: made where it does not exist; other files in it stay.
        last: names of files without which a reader takes the directory for incomplete. One that is not written is gone.

    Yields:
        The folder, on the same disk.

    Raises:
        CheckpointError: the disk is full, a place is taken by what is no file, or a name or text cannot be written.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as place:
        ...     with whole_directory(place, last=["about.json"]) as folder:
        ...         _ = Path(folder, "numbers.bin").write_bytes(b"1")
        ...     [file.name for file in Path(place).iterdir()]
        ['numbers.bin']
    """
    folder = Path(directory)
    scratch = folder / _SCRATCH
    stays = "what stood there stays"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(scratch, ignore_errors=True)  # of a process that was killed
        scratch.mkdir()
        try:
            yield scratch
            order = {name: place for place, name in enumerate(last, start=1)}
            made = sorted((path.name for path in scratch.iterdir()), key=lambda name: order.get(name, 0))
            for name in {*last, *made}:
                if (folder / name).is_dir():
                    raise IsADirectoryError(f"{name} is a directory")
            stays = "what stood there is gone in part, and nothing reads the rest as a model"
            for name in reversed(last):
                (folder / name).unlink(missing_ok=True)
            for name in made:
                (scratch / name).replace(folder / name)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    except (OSError, ValueError) as error:  # ValueError: a path or a text that no file system can hold
        raise CheckpointError(
            "the model cannot be written",
            {"directory": str(folder), "problem": str(error)},
            f"Make room, or give another directory; {stays}.",
        ) from error
