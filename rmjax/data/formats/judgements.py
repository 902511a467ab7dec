"""Judgements of named items from a table: CSV or JSON lines, one judgement or one count of votes a row."""

from __future__ import annotations

import csv
import dataclasses
import gzip
import json
import zlib
from array import array
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Literal

import numpy as np

from rmjax.checks import one_of, whole_characters
from rmjax.comparisons import Comparisons
from rmjax.data.formats.fields import BadRow, shown
from rmjax.errors import DataError
from rmjax.votes import CANNOT_JUDGE, FIRST, SECOND, TIE

_ALIASES = {"first": ("first", "model_a", "a"), "second": ("second", "model_b", "b")}
_TIES = ("tie", "ties", "draw", "equal", "both", "tie (bothbad)", "bothbad")
_NONE = ("", "none", "cannot judge", "skip")
_WORDS = {"first": FIRST, "second": SECOND, **dict.fromkeys(_TIES, TIE), **dict.fromkeys(_NONE, CANNOT_JUDGE)}
_READ = ("winner", "wins_first", "wins_second", "ties", "prompt", "order", "cluster")
_LARGEST = float(np.finfo(np.float32).max)
_VOTES = {FIRST: (1.0, 0.0, 0.0), SECOND: (0.0, 1.0, 0.0), TIE: (0.0, 0.0, 1.0), CANNOT_JUDGE: (0.0, 0.0, 0.0)}


@dataclasses.dataclass(frozen=True)
class Columns:
    """Names of the columns, where they are not those that rmjax knows."""

    first: str = ""
    """The one item; `first`, `model_a` or `a`, if unset."""
    second: str = ""
    """The other item; `second`, `model_b` or `b`, if unset."""
    winner: str = "winner"
    """first, second, tie, the name of an item or of its column; empty for no judgement."""
    wins_first: str = "wins_first"
    """Votes for the first, instead of a winner."""
    wins_second: str = "wins_second"
    """Votes for the second."""
    ties: str = "ties"
    """Votes for a tie."""
    prompt: str = "prompt"
    """What both items answer: items of one name under two prompts are two."""
    order: str = "order"
    """Which was shown first: first, second, or empty."""
    cluster: str = "cluster"
    """What intervals cluster by, such as the annotator."""


@dataclasses.dataclass(frozen=True)
class Judgements:
    """Comparisons of named items."""

    comparisons: Comparisons
    names: tuple[str, ...]  # [N], by index of the item
    prompts: tuple[str, ...]  # by number of the prompt; one empty name where there is no such column
    row: np.ndarray  # [E], row of the file of every comparison
    rows: int  # that were read
    without: int  # that hold no judgement
    num_dropped: int  # rows that were bad, where they may be
    dropped: tuple[str, ...]  # why rows were dropped, the first few
    unused: tuple[str, ...]  # columns that play no part


def read_judgements(
    path: str | Path,
    *,
    columns: Columns = Columns(),
    on_bad_row: Literal["error", "drop"] = "error",
    progress: Callable[[int], None] | None = None,
) -> Judgements:
    """Read judgements of named items.

    Args:
        path: a table with a header, parted by commas, tabs or semicolons, or JSON lines; plain or gzip.
        columns: names of the columns.
        on_bad_row: what happens to a row that cannot be understood.
        progress: called now and then with the rows that are read.

    Returns:
        Comparisons and the names of the items, in the order in which they appear.

    Raises:
        DataError: names the file, the row, the value and the remedy; no such file, a column that is not there, no rows.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder, "games.csv")
        ...     _ = file.write_text("first,second,winner\\nA,B,first\\nB,A,A\\nA,C,tie\\n")
        ...     games = read_judgements(file)
        >>> games.names, games.comparisons.wins_first.tolist(), games.comparisons.ties.tolist()
        (('A', 'B', 'C'), [1.0, 0.0, 0.0], [0.0, 0.0, 1.0])
    """
    one_of("on_bad_row", on_bad_row, ("error", "drop"))
    rows = _Rows()
    dropped: list[str] = []
    num_dropped = 0
    reader = _Reader(columns)
    for number, record in _records(Path(path)):
        try:
            if reader.read(record, rows):
                rows.row.append(number)
        except BadRow as bad:
            if on_bad_row == "error":
                remedy = f'{bad.remedy} Or leave bad rows out, counted, with on_bad_row="drop".'
                raise DataError(bad.reason, {"file": path, "row": number} | bad.numbers, remedy) from bad
            num_dropped += 1
            if len(dropped) < 100:
                dropped.append(f"row {number}: {bad.reason}")
        if progress is not None and number % 65_536 == 0:
            progress(65_536)
    if not len(rows.first):
        raise DataError(
            "the file holds no judgements",
            {"file": path, "rows": reader.seen, "without a judgement": reader.without, "dropped": num_dropped},
            "Give rows of two items and a winner, or of counts above 0.",
        )
    return _build(rows, reader, num_dropped, tuple(dropped))


@dataclasses.dataclass
class _Rows:
    """Columns that grow; plain arrays, so that ten million rows fit."""

    first: array = dataclasses.field(default_factory=lambda: array("i"))
    second: array = dataclasses.field(default_factory=lambda: array("i"))
    wins_first: array = dataclasses.field(default_factory=lambda: array("f"))
    wins_second: array = dataclasses.field(default_factory=lambda: array("f"))
    ties: array = dataclasses.field(default_factory=lambda: array("f"))
    order: array = dataclasses.field(default_factory=lambda: array("f"))
    cluster: array = dataclasses.field(default_factory=lambda: array("i"))
    row: array = dataclasses.field(default_factory=lambda: array("q"))


class _Reader:
    """From records to numbers: which columns there are is decided at the first."""

    def __init__(self, columns: Columns):
        self.columns = columns
        self.names: dict[str, str] = {}  # role -> column, of the first record
        self.items: dict[tuple[str, str], int] = {}
        self.prompts: dict[str, int] = {}
        self.clusters: dict[str, int] = {}
        self.words: dict[str, int] = {}
        self.unused: tuple[str, ...] = ()
        self.columns_seen: set[str] = set()
        self.seen = self.without = 0

    def read(self, record: Mapping[str, object] | BadRow, rows: _Rows) -> bool:
        """Add one record, and tell whether it holds a judgement; or raise what is wrong with it."""
        self.seen += 1
        if isinstance(record, BadRow):
            raise record
        if not self.names:
            self.names = self._understand(record)
            self.columns_seen = set(record)
            self.unused = tuple(name for name in record if name not in self._used())
            self.words = _WORDS | {self.names["first"]: FIRST, self.names["second"]: SECOND}
        if not record.keys() <= self.columns_seen:
            self._widen(record)
        first, second = self._name(record, "first"), self._name(record, "second")
        if first == second:
            raise BadRow("an item is compared with itself", {"item": shown(first)}, "Drop the row: it says nothing.")
        a, b, t = self._votes(record, first, second)
        if a + b + t == 0:
            self.without += 1
            return False
        order = 0.0
        if "order" in self.names:
            order = {FIRST: 1.0, SECOND: -1.0}.get(self._side(record, "order", first, second), 0.0)
        # Only now is anything added: a row that is bad leaves no trace.
        prompt = self._text(record, "prompt") if "prompt" in self.names else ""
        if prompt not in self.prompts:
            self.prompts[prompt] = len(self.prompts)
        rows.first.append(self._number((prompt, first)))
        rows.second.append(self._number((prompt, second)))
        rows.wins_first.append(a)
        rows.wins_second.append(b)
        rows.ties.append(t)
        rows.order.append(order)
        if "cluster" in self.names:
            rows.cluster.append(self.clusters.setdefault(self._text(record, "cluster"), len(self.clusters)))
        return True

    def _widen(self, record: Mapping[str, object]) -> None:
        """Names that earlier objects did not have: in a part to play they would change what was read before."""
        more = [name for name in record if name not in self.columns_seen]
        parts = {getattr(self.columns, role) for role in _READ}
        for name in more:
            if name in parts and not ("winner" in self.names and name in self._counts()):
                raise BadRow(
                    "a row has a column that the first one lacks",
                    {"column": name},
                    "Give every row the same names; null stands for no value of `order` or `winner`.",
                )
        self.columns_seen.update(more)
        self.unused += tuple(more)

    def _counts(self) -> set[str]:
        """Columns of counts, which are not read where a column names winners."""
        return {self.columns.wins_first, self.columns.wins_second, self.columns.ties}

    def _used(self) -> set[str]:
        """Columns that are read: counts are not where a column names winners."""
        counts = {"wins_first", "wins_second", "ties"} if "winner" in self.names else set()
        return {column for role, column in self.names.items() if role not in counts}

    def _number(self, item: tuple[str, str]) -> int:
        number = self.items.get(item)
        if number is None:
            number = self.items[item] = len(self.items)
        return number

    def _understand(self, record: Mapping[str, object]) -> dict[str, str]:
        """Which column plays which part."""
        names = {}
        for role in ("first", "second"):
            wanted = getattr(self.columns, role)
            known = (wanted,) if wanted else _ALIASES[role]
            found = [name for name in known if name in record]
            if not found:
                raise DataError(
                    f"there is no column for the {role} item",
                    {"columns": ", ".join(map(str, record)), "looked for": ", ".join(known)},
                    f"Name it: --columns.{role} NAME.",
                )
            names[role] = found[0]
        for role in _READ:
            column, default = getattr(self.columns, role), Columns.__dataclass_fields__[role].default
            if column in record:
                names[role] = column
            elif column != default:
                raise DataError(
                    f"there is no column {column!r}",
                    {"columns": ", ".join(map(str, record))},
                    f"Name another: --columns.{role.replace('_', '-')} NAME.",
                )
        if "winner" not in names and not {"wins_first", "wins_second"} <= names.keys():
            raise DataError(
                "no column says who won",
                {"columns": ", ".join(map(str, record))},
                "Name a column of winners, --columns.winner NAME, or two of counts, --columns.wins-first and "
                "--columns.wins-second.",
            )
        return names

    def _votes(self, record: Mapping[str, object], first: str, second: str) -> tuple[float, float, float]:
        if "winner" in self.names:
            return _VOTES[self._side(record, "winner", first, second)]
        ties = self._count(record, "ties") if "ties" in self.names else 0.0
        return self._count(record, "wins_first"), self._count(record, "wins_second"), ties

    def _side(self, record: Mapping[str, object], role: str, first: str, second: str) -> int:
        """Which of the two a value names: by its own name before any other word."""
        value = record.get(self.names[role])
        if value == first:
            return FIRST
        if value == second:
            return SECOND
        side = self.words.get(value) if isinstance(value, str) else None  # most rows end here
        if side is None:
            text = "" if value is None else str(value)
            side = {first: FIRST, second: SECOND}.get(text, _WORDS.get(text.strip().lower()))
        if side is None or (side == TIE and role == "order"):
            winner = role == "winner"
            raise BadRow(
                f"nobody of this name was {'compared' if winner else 'shown'}",
                {role: shown(value), "first": shown(first), "second": shown(second)},
                f"Write first, second, {'tie, ' if winner else ''}the name of one of the two, or nothing.",
            )
        return side

    def _count(self, record: Mapping[str, object], role: str) -> float:
        value = record.get(self.names[role])
        try:
            number = float(value) if _is_number(value) else np.nan  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            number = np.nan
        if not 0 <= number <= _LARGEST:  # larger ones would be infinite where they are kept
            raise BadRow(
                f"a count is a number from 0 to {_LARGEST:.3g}", {role: shown(value)}, "Mend it or drop the row."
            )
        return number

    def _name(self, record: Mapping[str, object], role: str) -> str:
        value = record.get(self.names[role])
        text = value if isinstance(value, str) else self._text(record, role)
        if not text:
            raise BadRow("an item has no name", {role: shown(record.get(self.names[role]))}, "Name both items.")
        return text

    def _text(self, record: Mapping[str, object], role: str) -> str:
        value = record.get(self.names[role])
        if isinstance(value, str):
            return value
        if value is None or isinstance(value, bool | list | dict | float):
            raise BadRow(f"{role} is a name", {role: shown(value)}, "Give text or a whole number.")
        return str(value)


def _build(rows: _Rows, reader: _Reader, num_dropped: int, dropped: tuple[str, ...]) -> Judgements:
    keys = list(reader.items)
    prompt = np.fromiter((reader.prompts[p] for p, _ in keys), np.int32, len(keys))
    built = Comparisons.from_votes(
        np.asarray(rows.first),
        np.asarray(rows.second),
        np.asarray(rows.wins_first),
        np.asarray(rows.wins_second),
        prompt,
        ties=np.asarray(rows.ties),
        order=np.asarray(rows.order) if "order" in reader.names else None,
        cluster=np.asarray(rows.cluster) if "cluster" in reader.names else None,
    )
    names = tuple(name for _, name in keys)
    prompts = tuple(reader.prompts)
    row = np.asarray(rows.row)
    return Judgements(built, names, prompts, row, reader.seen, reader.without, num_dropped, dropped, reader.unused)


def _records(path: Path) -> Iterator[tuple[int, Mapping[str, object] | BadRow]]:
    """Rows by number, from 1; of a table, lines of the file, of which the header is the first."""
    if not path.is_file():
        raise DataError("there is no such file", {"file": path}, "Check the path; a folder is not read.")
    number = 0
    try:
        with _open(path) as stream:
            start = stream.read(1)
            while start.isspace():
                start = stream.read(1)
            stream.seek(0)
            if start == "{":
                for number, line in enumerate(stream, start=1):
                    if line.strip():
                        yield number, _parse(line)
                return
            if start == "[" and path.name.removesuffix(".gz").endswith((".json", ".jsonl")):
                raise DataError("a JSON array is not read", {"file": path}, "Write one JSON object a line.")
            for number, record in _table(stream, path):
                yield number, record
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(
            "the gzip file is truncated or damaged",
            {"file": path, "row": number + 1, "problem": error},
            "Fetch or write the file again; nothing of it is used.",
        ) from error
    except UnicodeDecodeError as error:
        raise DataError(
            "the file is not UTF-8",
            {"file": path, "row": _first_unreadable(path), "problem": error.reason},
            "Convert it to UTF-8.",
        ) from error


def _is_number(value: object) -> bool:
    """Whether a value may be a count: of text, digits as tables write them, without Python's underscores."""
    if isinstance(value, str):
        return value.isascii() and "_" not in value
    return value is not None and not isinstance(value, bool)


def _packed(path: Path) -> bool:
    with open(path, "rb") as stream:
        return stream.read(2) == b"\x1f\x8b"


def _open(path: Path) -> IO[str]:
    if _packed(path):
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return open(path, encoding="utf-8-sig", newline="")


def _first_unreadable(path: Path) -> int:
    """The line that is not UTF-8: text is decoded in blocks, ahead of the rows."""
    with gzip.open(path, "rb") if _packed(path) else open(path, "rb") as stream:
        for number, line in enumerate(stream, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                return number
    raise AssertionError("every line is UTF-8")  # pragma: no cover


def _parse(line: str) -> Mapping[str, object] | BadRow:
    try:
        record = json.loads(line)
    except ValueError as error:
        return BadRow("the line is not JSON", {"problem": error}, "Write one JSON object a line.")
    except RecursionError:
        return BadRow("the line is nested too deeply", {}, "Write one flat JSON object a line.")
    if not isinstance(record, dict):
        return BadRow("the line is no object", {"line": shown(record)}, "Write one JSON object a line.")
    if "\\u" in line and not whole_characters(json.dumps(record, ensure_ascii=False)):  # only an escape can hold one
        return BadRow("the line holds half a surrogate pair", {}, "The text was cut in UTF-16: mend it.")
    return record


def _table(stream: IO[str], path: Path) -> Iterator[tuple[int, Mapping[str, object] | BadRow]]:
    head = stream.readline()
    stream.seek(0)
    separator = max(",\t;", key=head.count)  # of equals the first
    reader = csv.reader(stream, delimiter=separator, strict=True)
    try:
        header = next(reader, [])
        if len(set(header)) != len(header) or len(header) < 2:
            raise DataError(
                "the first line of a table names its columns, each once",
                {"file": path, "columns": ", ".join(header)},
                "Begin the file with a line such as first,second,winner, parted by commas, tabs or semicolons; or give "
                "JSON lines.",
            )
        width = len(header)
        for row in reader:
            if not row:
                continue
            if len(row) != width:
                yield (
                    reader.line_num,
                    BadRow(
                        "a row has another number of columns than the header",
                        {"columns": len(row), "header": width},
                        "Quote fields that hold the separator.",
                    ),
                )
                continue
            yield reader.line_num, dict(zip(header, row))
    except csv.Error as error:
        raise DataError(
            "the table cannot be read",
            {"file": path, "row": reader.line_num, "problem": error},
            "Close every quote that is opened; a field holds no more than 131,072 characters.",
        ) from error
