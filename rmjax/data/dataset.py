"""What a file of preferences said: prompts, answers, judgements, and where each came from."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from rmjax.comparisons import Comparisons
from rmjax.errors import DataError
from rmjax.votes import FIRST, SECOND, Votes

Message: TypeAlias = tuple[str, str]  # role, content
Text: TypeAlias = str | tuple[Message, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class PreferenceData:
    """Understood preference data, on the host.

    The same text under the same prompt is one response, however many comparisons judge it. The same pair may be
    compared again: it is then several comparisons, each with the row that it came from.

    Example:
        >>> data = PreferenceData(
        ...     prompts=("2 + 2?",),
        ...     sources=("sums",),
        ...     responses=("4", "5"),
        ...     comparisons=Comparisons.from_pairs([0], [1], prompt=[0, 0]),
        ...     rows=np.array([1]),
        ...     abstentions=np.zeros(1, np.float32),
        ... )
        >>> data.num_comparisons
        1
    """

    prompts: tuple[Text, ...]  # [P]
    sources: tuple[str, ...]  # [P], what a split keeps together besides the prompt
    responses: tuple[Text, ...]  # [N], unique within a prompt
    comparisons: Comparisons  # over the N responses; `prompt` maps a response to its prompt
    rows: np.ndarray  # [E] int, 1-based line (or list position) in the file
    abstentions: np.ndarray  # [E] float32, "cannot judge": no vote, and not a tie
    gold: np.ndarray | None = None  # [E] int8: +1 first, -1 second, 0 for neither
    gold_ties: np.ndarray | None = None  # [E] bool: where gold is 0 because both are equally good
    votes: Votes | None = None  # single votes, `item` = comparison; None where the file has counts of them or pairs
    annotators: tuple[str, ...] = ()  # names by index; a vote with a larger index was not signed
    format: str = ""
    columns: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)  # each [E], for slices
    dropped: Mapping[str, tuple[int, ...]] = dataclasses.field(default_factory=dict)  # reason -> rows left out
    unread: tuple[str, ...] = ()  # columns of the file that nothing was made of
    file: str = ""

    def __post_init__(self):
        edges, nodes = self.num_comparisons, self.comparisons.num_responses
        given = {
            "sources": (len(self.sources), len(self.prompts)),
            "responses": (len(self.responses), nodes),
            "rows": (len(self.rows), edges),
            "abstentions": (len(self.abstentions), edges),
        }
        given |= {name: (len(column), edges) for name, column in self.columns.items()}
        given |= {
            name: (len(column), edges)
            for name, column in (("gold", self.gold), ("gold_ties", self.gold_ties))
            if column is not None
        }
        prompt, item = self.comparisons.prompt, self.votes.item if self.votes is not None else np.zeros(0)
        wrong = {name: f"{has}, not {wants}" for name, (has, wants) in given.items() if has != wants}
        if nodes and (np.min(prompt) < 0 or np.max(prompt) >= len(self.prompts)):
            wrong["prompt of a response"] = f"outside 0 to {len(self.prompts) - 1}"
        if item.size and item.max() >= edges:
            wrong["item of a vote"] = f"outside 0 to {edges - 1}"
        if wrong:
            raise DataError("the parts of the data do not fit together", wrong, "Give one entry per row of each part.")

    @property
    def num_comparisons(self) -> int:
        """E: the judged pairs."""
        return self.comparisons.num_comparisons


def plain(text: Text) -> str:
    """A text as one string: itself, or its messages as JSON. Equal exactly where the texts are equal.

    Args:
        text: a string or messages.

    Returns:
        The string.

    Example:
        >>> plain((("user", "2 + 2?"),))
        '[["user", "2 + 2?"]]'
    """
    return text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)


def characters(text: Text) -> int:
    """Length of a text in characters; of messages, the length of their contents.

    Args:
        text: a string or messages.

    Returns:
        The number of characters.

    Example:
        >>> characters("four"), characters((("assistant", "4"),))
        (4, 1)
    """
    return len(text) if isinstance(text, str) else sum(len(content) for _, content in text)


_INVISIBLE = re.compile(
    "[\\s\\x00-\\x1f\\x7f-\\x9f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u206f"
    "\\u2800\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufff8\\U0001bca0-\\U0001bca3\\U0001d173-\\U0001d17a\\U000e0000-\\U000e0fff]*"
)


def is_empty(text: Text) -> bool:
    """Whether an answer shows nothing: only white space, controls, and characters that are drawn as nothing.

    Args:
        text: a string, or messages, of which the last is the answer.

    Returns:
        Whether it is empty.

    Example:
        >>> is_empty(" \u200b"), is_empty((("assistant", "4"), ("user", ""))), is_empty("4")
        (True, True, False)

    Source:
        Unicode 16, Default_Ignorable_Code_Point, and the blank braille pattern.
    """
    content = text if isinstance(text, str) else text[-1][1] if text else ""
    return _INVISIBLE.fullmatch(content) is not None


def subset(data: PreferenceData, keep: np.ndarray) -> PreferenceData:
    """The comparisons where `keep` holds, with the responses and prompts that they need, in the old order.

    Guarantees: texts, votes, rows and columns of what is kept are those of `data`; keeping all changes nothing;
    subsets compose. What reading the file left out belongs to the whole, so `dropped` is empty.

    Args:
        data: the whole.
        keep: which comparisons to keep, bool [E].

    Returns:
        The part.

    Raises:
        DataError: `keep` is not one boolean per comparison.

    Example:
        >>> pairs = Comparisons.from_pairs([0, 2], [1, 3], prompt=[0, 0, 1, 1])
        >>> texts = ("a", "b", "c", "d")
        >>> data = PreferenceData(("p", "q"), ("p", "q"), texts, pairs, np.array([1, 2]), np.zeros(2, np.float32))
        >>> part = subset(data, np.array([False, True]))
        >>> part.prompts, part.responses, part.comparisons.first
        (('q',), ('c', 'd'), array([0], dtype=int32))
    """
    keep = np.asarray(keep)
    if keep.dtype != bool or keep.shape != (data.num_comparisons,):
        raise DataError(
            "a subset is chosen by one boolean per comparison",
            {"dtype": keep.dtype, "shape": keep.shape, "comparisons": data.num_comparisons},
            "Give a mask.",
        )
    whole = data.comparisons
    nodes = np.unique(np.concatenate([whole.first[keep], whole.second[keep]]))
    prompts = np.unique(np.asarray(whole.prompt)[nodes])

    kept: dict[str, Any] = {
        field.name: None if (value := getattr(whole, field.name)) is None else np.asarray(value)[keep]
        for field in dataclasses.fields(whole)
        if field.name not in ("first", "second", "prompt")
    }
    comparisons = Comparisons(
        first=np.searchsorted(nodes, whole.first[keep]).astype(np.int32),
        second=np.searchsorted(nodes, whole.second[keep]).astype(np.int32),
        prompt=np.searchsorted(prompts, np.asarray(whole.prompt)[nodes]).astype(np.int32),
        **kept,
    )
    votes = data.votes
    if votes is not None:
        of_kept = keep[votes.item]
        new_item = (np.cumsum(keep) - 1).astype(np.int32)
        votes = dataclasses.replace(votes.take(of_kept), item=new_item[votes.item[of_kept]])
    return dataclasses.replace(
        data,
        prompts=tuple(data.prompts[p] for p in prompts),
        sources=tuple(data.sources[p] for p in prompts),
        responses=tuple(data.responses[n] for n in nodes),
        comparisons=comparisons,
        rows=data.rows[keep],
        abstentions=data.abstentions[keep],
        gold=None if data.gold is None else data.gold[keep],
        gold_ties=None if data.gold_ties is None else data.gold_ties[keep],
        votes=votes,
        columns={name: column[keep] for name, column in data.columns.items()},
        dropped={},
    )


def swap(data: PreferenceData) -> PreferenceData:
    """The same judgements with first and second exchanged: every margin and every decision must flip.

    Responses are numbered as reading the exchanged file numbers them, in the order in which they first occur, so that
    tokens, packing and scores are made anew in another order.

    Guarantees: swapping the data of a file gives the data of the file with its sides exchanged; swapping twice gives
    the data of a file back. Kept columns are carried along unchanged, also where one names a side.

    Args:
        data: the judged pairs.

    Returns:
        The same pairs, seen from the other side.

    Example:
        >>> pairs = Comparisons.from_pairs([0], [1], prompt=[0, 0])
        >>> data = PreferenceData(("p",), ("p",), ("a", "b"), pairs, np.array([1]), np.zeros(1, np.float32))
        >>> swap(data).comparisons.wins_second
        array([1.], dtype=float32)
    """
    c = data.comparisons
    seen = np.stack([c.second, c.first], axis=1).ravel()
    used, at = np.unique(seen, return_index=True)
    unused = np.setdiff1d(np.arange(c.num_responses), used)
    order = np.concatenate([used[np.argsort(at)], unused])  # new number -> old number
    number = np.argsort(order).astype(np.int32)
    comparisons = dataclasses.replace(
        c,
        first=number[c.second],
        second=number[c.first],
        prompt=np.asarray(c.prompt)[order],
        wins_first=c.wins_second,
        wins_second=c.wins_first,
        target_margin=None if c.target_margin is None else -c.target_margin,
        order=None if c.order is None else -c.order,
    )
    votes = data.votes
    if votes is not None:
        flipped = np.where(votes.value == FIRST, SECOND, np.where(votes.value == SECOND, FIRST, votes.value))
        votes = dataclasses.replace(votes, value=flipped.astype(np.int8))
    return dataclasses.replace(
        data,
        responses=tuple(data.responses[i] for i in order),
        comparisons=comparisons,
        votes=votes,
        gold=None if data.gold is None else -data.gold,
    )
