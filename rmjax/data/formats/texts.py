"""Values of a row as texts: strings, message lists, and ids into a second file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rmjax.checks import whole_characters
from rmjax.data.dataset import Message, Text
from rmjax.data.formats.fields import BadRow, Fields, shown
from rmjax.data.formats.files import rows
from rmjax.errors import DataError

Texts = Mapping[str, str]


def read_texts(path: str | Path) -> dict[str, str]:
    """Texts by id, from rows of `id` and `text`.

    Args:
        path: a file as `rows` reads it.

    Returns:
        The texts.

    Raises:
        DataError: a row without either, or one id with two texts.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "texts.jsonl")
        ...     _ = path.write_text('{"id": "x", "text": "four"}')
        ...     read_texts(path)
        {'x': 'four'}
    """
    texts: dict[str, str] = {}
    for number, found in rows(path):
        try:
            row = record(found)
            key, text = identifier(column(row, "id"), "id"), string(column(row, "text"), "text")
        except BadRow as bad:
            raise DataError(bad.reason, {"file": path, "row": number} | bad.numbers, bad.remedy) from bad
        if texts.setdefault(key, text) != text:
            raise DataError(
                "one id has two texts", {"file": path, "row": number, "id": key}, "Give every text an id of its own."
            )
    return texts


def record(row: Any) -> dict:
    """The row, if it was parsed and has columns."""
    if isinstance(row, BadRow):
        raise row
    if not isinstance(row, dict):
        raise BadRow("the row is not a JSON object", {"found": shown(row)}, 'Write rows as {"column": value}.')
    if halves := [name for name in row if not whole_characters(name)]:
        raise BadRow("a column's name holds half a surrogate pair", {"column": shown(halves[0])}, "Mend the name.")
    return row


def column(row: dict, name: str) -> Any:
    """The value of a column that must be there."""
    if name not in row:
        raise BadRow(f"the row has no `{name}`", {"columns": ", ".join(row)}, "Mend the row, or name the column.")
    return row[name]


def carried(value: Any, name: str) -> str | float | None:
    """A value that is only carried along: a text, a number or nothing as it is, all else as its JSON."""
    if isinstance(value, str):
        return string(value, name)
    if value is None or isinstance(value, int | float):
        return value
    try:
        return json.dumps(value)
    except RecursionError:
        raise BadRow(f"`{name}` is nested too deeply", {"found": type(value).__name__}, "Flatten it.") from None


def string(value: Any, name: str) -> str:
    """The value, if it is a text."""
    if not isinstance(value, str):
        raise BadRow(f"`{name}` is not a text", {"found": shown(value)}, "Give a string or a list of messages.")
    if not whole_characters(value):
        raise BadRow(
            f"`{name}` holds half a surrogate pair", {"found": shown(value)}, "The text was cut in UTF-16: mend it."
        )
    return value


def identifier(value: Any, name: str) -> str:
    """The value, if it can name something: a string or a whole number."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str):
        return string(value, name)
    raise BadRow(f"`{name}` is not a name", {"found": shown(value)}, "Give a string or a whole number.")


def text(value: Any, name: str) -> Text:
    """The value as a string or as messages."""
    return messages(value, name) if isinstance(value, list) else string(value, name)


def messages(value: list, name: str) -> tuple[Message, ...]:
    """A list of {"role", "content"} as messages."""
    understood = []
    for message in value:
        if not isinstance(message, dict) or not {"role", "content"} <= message.keys():
            raise BadRow(
                f"`{name}` holds what is no message", {"found": shown(message)}, 'Give {"role": ..., "content": ...}.'
            )
        more = [key for key in message if key not in ("role", "content") and message[key] is not None]
        if more:
            # What a template would do with them is unknown; leaving them out would change the text in silence.
            raise BadRow(
                f"a message of `{name}` has keys that are not understood",
                {"keys": ", ".join(more)},
                "Leave only role and content.",
            )
        understood.append((string(message["role"], f"{name}.role"), string(message["content"], f"{name}.content")))
    if not understood:
        raise BadRow(f"`{name}` is an empty list", {}, "Give at least one message.")
    return tuple(understood)


def answer(row: dict, name: str, texts: Texts | None) -> Text:
    """The answer in a column, or the text that the column's id stands for."""
    value = column(row, name)
    if texts is None:
        return text(value, name)
    key = identifier(value, name)
    if key not in texts:
        raise BadRow(f"the id in `{name}` is not in the file of texts", {"id": key}, "Add the text, or mend the id.")
    return texts[key]


def prompt(row: dict, fields: Fields) -> Text | None:
    """The prompt that a row states, or None where it is implicit in the answers."""
    if fields.prompt is None:
        return None if row.get("prompt") is None else text(row["prompt"], "prompt")
    if len(fields.prompt) == 1:
        return text(column(row, fields.prompt[0]), fields.prompt[0])
    return "\n".join(string(column(row, name), name) for name in fields.prompt)


def same_kind(stated: Text, first: Text, second: Text) -> tuple[Text, Text, Text]:
    """Prompt and answers all strings, or all messages: a string beside messages is its role's message."""
    if any(isinstance(value, tuple) for value in (stated, first, second)):
        stated = (("user", stated),) if isinstance(stated, str) else stated
        first, second = ((("assistant", x),) if isinstance(x, str) else x for x in (first, second))
    return stated, first, second
