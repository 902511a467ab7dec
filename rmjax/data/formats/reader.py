"""Read a file of preferences: every row is understood, refused by name, or left out and counted."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from rmjax.data.dataset import PreferenceData, is_empty, plain
from rmjax.data.formats.assemble import Row, assemble
from rmjax.data.formats.ballots import COUNTS, VOTES, ballot
from rmjax.data.formats.fields import BadRow, Fields, Judgement, shown
from rmjax.data.formats.files import rows
from rmjax.data.formats.pairs import pair
from rmjax.data.formats.texts import Texts, carried, column, identifier, read_texts, record
from rmjax.errors import DataError

IDENTICAL = "identical answers"


def read(
    path: str | Path,
    *,
    fields: Fields | None = None,
    texts: str | Path | None = None,
    on_bad_row: Literal["error", "drop"] = "error",
    on_empty_answer: Literal["bad", "keep"] = "bad",
    on_identical_answers: Literal["drop", "bad"] = "drop",
) -> PreferenceData:
    """Understand a file of preferences, whole, before anything is done with it.

    Formats, told apart by the columns of the first row: `chosen` and `rejected` dialogues with an implicit prompt
    (HH); `prompt`, `chosen`, `rejected`; the same as lists of {"role", "content"}; and `prompt`, `a`, `b`, `votes`
    with single votes ("a", "b", "tie", "cannot judge", each with or without an annotator) or counts of them, and an
    optional `gold`. "Cannot judge" is not a tie: it is counted apart and adds nothing.

    Guarantees: rows of the file = comparisons + rows left out, each of which is in `dropped` with its reason; the
    same text under the same prompt is one response; the texts are those of the file, to the character.

    Args:
        path: JSON lines, a JSON list, or {"data": [...]}; plain or gzip.
        fields: names of the columns; the defaults of `Fields` if unset.
        texts: a second file of `id` and `text`, if the answers in `path` are ids.
        on_bad_row: refuse the file by its first bad row, or leave bad rows out and count them.
        on_empty_answer: whether an answer without a visible character makes a row bad, or is an answer.
        on_identical_answers: two answers of one text say nothing: leave the row out, or call it bad.

    Returns:
        The data. Comparisons are clustered by source.

    Raises:
        DataError: the file, or its first bad row, with what was found there and what to do.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "sums.jsonl")
        ...     _ = path.write_text('{"prompt": "2 + 2?", "chosen": "4", "rejected": "5"}')
        ...     read(path).responses
        ('4', '5')
    """
    fields = fields or Fields()
    lookup = None if texts is None else read_texts(texts)
    understood: list[Row] = []
    left_out: dict[str, list[int]] = collections.defaultdict(list)
    first_bad: tuple[int, BadRow] | None = None
    columns: dict[str, None] = {}  # in the order in which they occur
    parse: Callable[[dict, Fields, Texts | None], Judgement] | None = None
    for number, found in rows(path):
        try:
            row = record(found)
            columns |= dict.fromkeys(row)
            parse = parse or _parser(row, fields, path)
            judgement = parse(row, fields, lookup)
            if understood and judgement.format != understood[0].judgement.format:
                raise BadRow(
                    "another format than the rows before",
                    {"here": judgement.format, "before": understood[0].judgement.format},
                    "Write all rows of a file one way.",
                )
            if on_empty_answer == "bad":
                _refuse_empty(judgement)
            if judgement.first == judgement.second:
                if on_identical_answers == "bad":
                    raise BadRow(IDENTICAL, {"answer": shown(judgement.first)}, "Drop the row: it says nothing.")
                left_out[IDENTICAL].append(number)
                continue
            source = None if fields.source is None else identifier(column(row, fields.source), fields.source)
            kept = tuple(carried(column(row, name), name) for name in fields.keep)
            understood.append(Row(number, judgement, plain(judgement.prompt) if source is None else source, kept))
        except BadRow as bad:
            first_bad = first_bad or (number, bad)
            left_out[bad.reason].append(number)
    if first_bad and on_bad_row == "error":
        number, bad = first_bad
        alike = len(left_out[bad.reason])
        raise DataError(
            bad.reason,
            {"file": path, "row": number} | bad.numbers | ({"rows like it": alike} if alike > 1 else {}),
            f'{bad.remedy} Or leave bad rows out, counted, with on_bad_row="drop".',
        )
    if not understood:
        raise DataError(
            "no row of the file can be used",
            {"file": path}
            | {reason: f"{len(numbers)}, the first in row {numbers[0]}" for reason, numbers in left_out.items()},
            "Mend the rows, or name the columns with Fields(...).",
        )
    dropped = {reason: tuple(numbers) for reason, numbers in left_out.items()}
    data = assemble(understood, fields.keep, str(path), dropped)
    return dataclasses.replace(data, unread=tuple(name for name in columns if name not in _read_columns(fields, data)))


def _read_columns(fields: Fields, data: PreferenceData) -> set[str]:
    """The columns that something was made of."""
    sides = (fields.first, fields.second, fields.votes, fields.gold)
    if data.format not in (COUNTS, VOTES):
        sides = (fields.chosen, fields.rejected)
    return {*sides, *(fields.prompt or ("prompt",)), *fields.keep, *([fields.source] if fields.source else [])}


def _parser(row: dict, fields: Fields, path: str | Path) -> Callable[[dict, Fields, Texts | None], Judgement]:
    """How to understand rows with these columns."""
    if fields.chosen in row or fields.rejected in row:
        return pair
    if fields.votes in row or (fields.first in row and fields.second in row):
        return ballot
    raise DataError(
        "the format is unknown",
        {"file": path, "columns": ", ".join(row) or "none"},
        "Known are `chosen` and `rejected`, with or without `prompt`, as strings or messages; and `prompt`, `a`, `b`, "
        "`votes`. If the columns only have other names, give Fields(...).",
    )


def _refuse_empty(judgement: Judgement) -> None:
    for side, text in (("first", judgement.first), ("second", judgement.second)):
        if is_empty(text):
            raise BadRow(
                "an answer is empty",
                {"side": side, "answer": shown(text)},
                'Drop the row, or say that silence is an answer with on_empty_answer="keep".',
            )
