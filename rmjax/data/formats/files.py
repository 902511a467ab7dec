"""From a path to numbered rows: plain or gzip, JSON lines or one JSON list."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rmjax.data.formats.fields import BadRow, shown
from rmjax.errors import DataError

_FOREIGN = {b"PAR1": "Parquet", b"ARROW1": "Arrow", b"PK\x03\x04": "a zip archive", b"\x28\xb5\x2f\xfd": "Zstandard"}
_TWICE = "a name stands twice in one object"
_TABLES = {".csv": "CSV", ".tsv": "CSV"}


def rows(path: str | Path) -> Iterator[tuple[int, Any]]:
    """The rows of a file with their numbers: lines of JSON lines, positions in a JSON list, both from 1.

    A line that is not JSON, or a row in which a name stands twice, comes out as a `BadRow`, for the reader to refuse or
    count. A list that is not JSON is no list: nobody can say where its rows begin.

    Args:
        path: JSON lines, a JSON list of rows, or {"data": [...]}; plain or gzip, as the content says.

    Yields:
        Row number, and the parsed row or why it could not be parsed.

    Raises:
        DataError: no such file, another kind of file, a truncated or damaged gzip, text that is not UTF-8, a list that
            is not JSON, or no rows.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "pairs.json")
        ...     _ = path.write_text('[{"chosen": "4", "rejected": "5"}]')
        ...     list(rows(path))
        [(1, {'chosen': '4', 'rejected': '5'})]
    """
    text = _decode(path, _content(path))
    if not text.strip():
        raise DataError("the file holds no rows", {"file": path}, "Was it written to the end? Give a file with rows.")
    listed = _as_list(path, text)
    if listed is not None:
        yield from ((number, _sound(row)) for number, row in enumerate(listed, start=1))
        return
    # Not splitlines(): JSON strings may hold U+2028 and other separators that are no line ends here.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, _sound(_parse(line))


def _content(path: str | Path) -> bytes:
    """The bytes of a file, decompressed if need be."""
    path = Path(path)
    if not path.is_file():
        raise DataError("there is no such file", {"file": path}, "Check the path; a folder is not read.")
    with open(path, "rb") as stream:
        start = stream.read(8)
    kinds = [name for magic, name in _FOREIGN.items() if start.startswith(magic)]
    kinds += [_TABLES[suffix] for suffix in path.suffixes if suffix in _TABLES]
    if kinds:
        raise DataError(
            f"{kinds[0]} is not read yet",
            {"file": path},
            "Convert it to JSON lines: one JSON object a row, one row a line.",
        )
    if not start.startswith(b"\x1f\x8b"):
        return path.read_bytes()
    return _decompress(path)


def _decompress(path: Path) -> bytes:
    """All members of a gzip file, checked to the end."""
    packed, whole = path.read_bytes(), bytearray()
    numbers: dict[str, object] = {"file": path}
    try:
        while packed:
            member = zlib.decompressobj(wbits=31)
            whole += member.decompress(packed)
            if not member.eof:
                numbers |= {"row": whole.count(b"\n") + 1, "bytes read": len(whole)}
                raise zlib.error("the stream ends before its end")
            # The format allows zeros after a member.
            packed = member.unused_data.lstrip(b"\0")
    except zlib.error as error:
        raise DataError(
            "the gzip file is truncated or damaged",
            numbers | {"problem": error},
            "Fetch or write the file again; nothing of it is used.",
        ) from error
    return bytes(whole)


def _decode(path: str | Path, content: bytes) -> str:
    """UTF-8, with or without a mark at its start."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        row = content[: error.start].count(b"\n") + 1
        raise DataError(
            "the file is not UTF-8", {"file": path, "row": row, "byte": error.start}, "Convert it to UTF-8."
        ) from error


def _as_list(path: str | Path, text: str) -> list | None:
    """The rows, if the whole file is one JSON value that lists them."""
    whole = text.strip()
    head, *more = whole.split("\n", 1)
    if more and not isinstance(_parse(head), BadRow):
        return None
    listed = _parse(text)
    if isinstance(listed, dict):
        listed = listed.get("data")
    if isinstance(listed, BadRow) and (whole.startswith("[") or (more and listed.reason == _TWICE)):
        raise DataError(f"the file cannot be read: {listed.reason}", {"file": path} | listed.numbers, "Mend it there.")
    if not isinstance(listed, list):
        return None
    if not listed:
        raise DataError("the file holds no rows", {"file": path}, "Give a file with rows.")
    return listed


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any] | BadRow:
    """A JSON object, or in its place why it is none: of a name that stands twice, the last would win in silence."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            return BadRow(_TWICE, {"name": shown(name)}, "Keep one of them.")
        found[name] = value
    return found


def _sound(row: Any) -> Any:
    """A row, or a part of it that is a `BadRow`; without recursion, for rows as deep as JSON allows."""
    waiting = [row]
    while waiting:
        part = waiting.pop()
        if isinstance(part, BadRow):
            return part
        waiting.extend(part.values() if isinstance(part, dict) else part if isinstance(part, list) else ())
    return row


def _parse(text: str) -> Any:
    """The JSON value, or why it is none."""
    try:
        return json.loads(text, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        numbers = {"line": error.lineno, "column": error.colno, "problem": error.msg}
    except (ValueError, RecursionError) as error:
        numbers = {"problem": shown(str(error))}
    return BadRow("invalid JSON", numbers, "Mend the line: one JSON object, on one line.")
