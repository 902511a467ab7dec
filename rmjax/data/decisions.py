"""What was decided about rows and texts on the way to the model, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rmjax.data.tokenise import SHOWN, Count, TokeniseReport

_TOO_LONG = {
    "keep_response": "the prompt's beginning is cut, answers stay whole",
    "drop": "the comparison is left out",
    "error": "the file is refused",
}


def of_reading(dropped: Mapping[str, Sequence[int]]) -> list[tuple[str, str]]:
    """Rows that reading left out.

    Args:
        dropped: reason -> rows.

    Returns:
        Label and text; nothing where no row was left out.

    Example:
        >>> of_reading({"identical answers": (3, 8)})
        [('left out on reading', 'identical answers: 2 (row 3, 8)')]
    """
    told = [f"{reason}: {counted(Count(len(rows), tuple(rows[:SHOWN])))}" for reason, rows in dropped.items()]
    return [("left out on reading", "; ".join(told))] if told else []


def of_tokenising(report: TokeniseReport) -> list[tuple[str, str]]:
    """Comparisons that the limit changed or took, and those whose sides became the same ids.

    Args:
        report: of `tokenise`.

    Returns:
        Label and text of every line.

    Example:
        >>> from rmjax.data.tokenise import example
        >>> of_tokenising(example().report)[0]
        ('over 1,024 tokens', 'none')
    """
    contract = report.contract
    done = f"; {_TOO_LONG[contract.truncation]}" if report.over_limit.count else ""
    return [
        (f"over {contract.limit:,} tokens", f"{counted(report.over_limit)}{done}"),
        ("  cut", counted(report.cut)),
        ("  left out for their length", counted(report.left_out)),
        ("became identical, left out", counted(report.became_identical)),
    ]


def counted(count: Count) -> str:
    """A count, with the rows it was seen in first.

    Args:
        count: how many, and which.

    Returns:
        Words.

    Example:
        >>> counted(Count(7, (1, 2))), counted(Count(0, ()))
        ('7 (row 1, 2, ...)', 'none')
    """
    if not count.count:
        return "none"
    more = ", ..." if count.count > len(count.rows) else ""
    return f"{count.count:,} (row {', '.join(map(str, count.rows))}{more})"
