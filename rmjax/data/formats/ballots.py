"""Rows of two answers and the votes on them: single votes, signed or not, or counts."""

from __future__ import annotations

from typing import Any

from rmjax.data.formats.fields import BadRow, Fields, Judgement, shown
from rmjax.data.formats.texts import Texts, answer, column, identifier, prompt, same_kind
from rmjax.votes import CANNOT_JUDGE, FIRST, SECOND, TIE

VOTES = "a, b and single votes"
COUNTS = "a, b and counts of votes"

VALUES = {"a": FIRST, "b": SECOND, "tie": TIE, "cannot judge": CANNOT_JUDGE}
_KNOWN = "Write " + ", ".join(f'"{name}"' for name in VALUES)
_GOLD = {"a": 1, "b": -1, "tie": 0, None: None}


def ballot(row: dict, fields: Fields, texts: Texts | None = None) -> Judgement:
    """All votes on one pair of answers. "Cannot judge" is no vote, and no tie.

    Args:
        row: a parsed row.
        fields: names of the columns.
        texts: texts by id, if the row holds ids.

    Returns:
        The judgement, with `a` first.

    Raises:
        BadRow: no prompt, or a vote or a count that is not understood.

    Example:
        >>> row = {"prompt": "2 + 2?", "a": "4", "b": "5", "votes": {"a": 3, "tie": 1}, "gold": "a"}
        >>> understood = ballot(row, Fields())
        >>> understood.counts, understood.gold
        ((3, 0, 1, 0), 1)
    """
    first, second = (answer(row, name, texts) for name in (fields.first, fields.second))
    stated = prompt(row, fields)
    if stated is None:
        raise BadRow(
            "the row has no `prompt`", {"columns": ", ".join(row)}, "Name the columns that make it: Fields(prompt=...)."
        )
    stated, first, second = same_kind(stated, first, second)
    gold = row.get(fields.gold)
    if not (gold is None or isinstance(gold, str)) or gold not in _GOLD:
        raise BadRow(f"`{fields.gold}` is not understood", {"found": shown(gold)}, 'Write "a", "b", "tie" or null.')

    found = column(row, fields.votes)
    if isinstance(found, dict):
        return Judgement(COUNTS, stated, first, second, _counts(found), gold=_GOLD[gold])
    if not isinstance(found, list):
        raise BadRow(f"`{fields.votes}` is not understood", {"found": shown(found)}, "Give a list of votes, or counts.")
    ballots = [_vote(vote) for vote in found]
    tally = [0, 0, 0, 0]
    for value, _ in ballots:
        tally[value] += 1
    return Judgement(VOTES, stated, first, second, tally, ballots, _GOLD[gold])


def _vote(vote: Any) -> tuple[int, str | None]:
    """A vote and who cast it, from "a" or {"vote": "a", "annotator": "w1"}."""
    annotator = None
    if isinstance(vote, dict):
        signed = vote.get("annotator")
        annotator = None if signed is None else identifier(signed, "annotator")
        vote = vote.get("vote")
    if not isinstance(vote, str) or vote not in VALUES:
        raise BadRow("a vote is not understood", {"vote": shown(vote)}, f"{_KNOWN}, or drop the vote.")
    return VALUES[vote], annotator


def _counts(found: dict) -> tuple[float, ...]:
    """Counts in the order of `VALUES`; what is not named was not voted for."""
    for name, count in found.items():
        if name not in VALUES:
            raise BadRow("a vote is not understood", {"vote": shown(name)}, f"{_KNOWN} as the names of counts.")
        is_number = isinstance(count, int | float) and not isinstance(count, bool)
        # Beyond 2^24, float32 does not hold every whole number.
        if not is_number or not 0 <= count <= 2**24:
            raise BadRow(
                "a count of votes is a number from 0 to 2^24", {name: shown(count)}, "Mend the count or drop the row."
            )
    return tuple(found.get(name, 0) for name in VALUES)
