"""Which columns mean what, what a row says once it is understood, and how a row is refused."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from rmjax.data.dataset import Text


@dataclasses.dataclass(frozen=True)
class Fields:
    """Names of the columns. The defaults fit files that need no explanation.

    Example:
        >>> debates = Fields(prompt=("prompt", "stance"), source="prompt", keep=("topic",))
        >>> debates.first, debates.second
        ('a', 'b')
    """

    prompt: tuple[str, ...] | None = None
    """Columns whose texts, joined by a newline, make the prompt. Unset: `prompt` where there is one."""
    source: str | None = None
    """Column that a split keeps together. Unset: the prompt itself."""
    keep: tuple[str, ...] = ()
    """Further columns to carry along, for slices."""
    chosen: str = "chosen"
    """The preferred answer, in files of pairs."""
    rejected: str = "rejected"
    """The other answer, in files of pairs."""
    first: str = "a"
    """The one answer, or its id, in files of votes; a vote "a" is for it, whatever the column is called."""
    second: str = "b"
    """The other answer, or its id, in files of votes."""
    votes: str = "votes"
    """A list of votes, or counts of them."""
    gold: str = "gold"
    """The side that is right or was agreed on: "a", "b", "tie" or null."""


@dataclasses.dataclass(frozen=True)
class Judgement:
    """One understood row."""

    format: str
    prompt: Text
    first: Text
    second: Text
    counts: Sequence[float]  # votes: first, second, tie, cannot judge
    ballots: Sequence[tuple[int, str | None]] | None = None  # value and annotator of single votes; None for counts
    gold: int | None = None  # +1, -1, 0 for a tie; None where absent


class BadRow(Exception):
    """Why one row cannot be used."""

    def __init__(self, reason: str, numbers: Mapping[str, object], remedy: str):
        super().__init__(reason, numbers, remedy)
        self.reason, self.numbers, self.remedy = reason, dict(numbers), remedy


def shown(value: object, width: int = 60) -> str:
    """A value as an error quotes it: its start, on one line."""
    text = repr(value)
    return text if len(text) <= width else text[: width - 3] + "..."
