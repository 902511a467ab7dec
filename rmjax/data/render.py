"""The audit as a table to read."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from rmjax.data.audit import Audit, Spread

if TYPE_CHECKING:
    from rich.table import Table


def render(audit: Audit, more: Iterable[tuple[str, str]] = ()) -> Table:
    """The audit as a table for `rich.console.Console().print`, which writes plain text where there is no terminal.

    Args:
        audit: the counts.
        more: further lines, as `lines` gives them: tokens, weighing, what is done with ties.

    Returns:
        The table.

    Example:
        >>> import numpy as np
        >>> from rmjax import Comparisons
        >>> from rmjax.data.audit import audit as audit_of
        >>> from rmjax.data.dataset import PreferenceData
        >>> pairs = Comparisons.from_pairs([0], [1], prompt=[0, 0])
        >>> data = PreferenceData(("p",), ("p",), ("longer", "short"), pairs, np.array([1]), np.zeros(1, np.float32))
        >>> table = render(audit_of(data), [("ties", "half a vote for either side")])
        >>> list(table.columns[0].cells)[-1].plain
        'ties'
    """
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for label, told in (*lines(audit), *more):
        # As Text, so that brackets in a file's name are not taken for markup.
        table.add_row(Text(label), Text(told))
    return table


def lines(audit: Audit) -> list[tuple[str, str]]:
    """The audit as a reader wants it: what, and the numbers in words.

    Args:
        audit: the counts.

    Returns:
        Label and text of every line.

    Example:
        >>> import numpy as np
        >>> from rmjax import Comparisons
        >>> from rmjax.data.audit import audit as audit_of
        >>> from rmjax.data.dataset import PreferenceData
        >>> pairs = Comparisons.from_pairs([0], [1], prompt=[0, 0])
        >>> data = PreferenceData(("p",), ("p",), ("longer", "short"), pairs, np.array([1]), np.zeros(1, np.float32))
        >>> dict(lines(audit_of(data)))["the longer answer wins"]
        '1.000 of the votes for a side (characters)'
    """
    gold = audit.gold
    wins = f"{_share(audit.longer_wins_votes)} of the votes for a side"
    if audit.longer_wins_gold is not None:
        wins += f", {_share(audit.longer_wins_gold)} against gold"
    return [
        ("file", audit.file),
        ("format", audit.format),
        ("rows", f"{audit.rows:,}"),
        *((f"  left out: {reason}", f"{count:,}") for reason, count in audit.dropped.items()),
        ("  columns not read", ", ".join(audit.unread) or "none"),
        ("comparisons", f"{audit.comparisons:,}"),
        ("  of a pair again", f"{audit.repeated_pairs:,}"),
        ("  pairs judged both ways", f"{audit.contradictory_pairs:,}"),
        ("prompts", f"{audit.prompts:,} from {audit.sources:,} sources"),
        ("responses", f"{audit.responses:,} ({_range(audit.candidates)} a prompt)"),
        ("  that answer several prompts", f"{audit.shared_responses:,}"),
        ("  that repeat their prompt", f"{audit.repeated_prompts:,}"),
        (
            "groups a split keeps whole",
            f"{audit.groups:,}, the largest with {audit.largest_group:.1%} of the comparisons",
        ),
        ("votes", f"{audit.votes:,.6g} ({_range(audit.votes_per_comparison)} a comparison)"),
        ("  ties", f"{audit.ties:,.6g} ({audit.ties / audit.votes:.1%} of the votes)" if audit.ties else "0"),
        ("  cannot judge", f"{audit.abstentions:,.6g}, not among the votes"),
        ("  comparisons without a vote", f"{audit.without_votes:,}"),
        ("annotators", "not named" if audit.annotators is None else f"{audit.annotators:,}"),
        ("  votes of one on a pair again", f"{audit.repeated_votes:,}"),
        ("gold", "none" if gold is None else ", ".join(f"{name} {count:,}" for name, count in gold.items())),
        ("characters of a prompt", _range(audit.prompt_characters)),
        ("  of the first answer", _range(audit.first_characters)),
        ("  of the second answer", _range(audit.second_characters)),
        ("the longer answer wins", f"{wins} (characters)"),
    ]


def _share(value: float) -> str:
    """A share, or that there is nothing to take it of."""
    return "none" if math.isnan(value) else f"{value:.3f}"


def _range(spread: Spread) -> str:
    if spread.least == spread.most:
        return f"{spread.least:,.6g}"
    return f"{spread.least:,.6g} to {spread.most:,.6g}, median {spread.median:,.6g}"
