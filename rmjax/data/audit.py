"""What was understood of a file, in numbers, before anything is trained on it."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from rmjax.data.dataset import PreferenceData, characters
from rmjax.data.groups import group_sizes
from rmjax.data.proof import same_text


class Spread(NamedTuple):
    """Where some numbers lie."""

    least: float
    median: float
    mean: float
    most: float


@dataclasses.dataclass(frozen=True)
class Audit:
    """Counts of what a file holds. `dataclasses.asdict` makes it JSON."""

    file: str
    format: str
    rows: int  # comparisons and rows left out
    comparisons: int
    dropped: Mapping[str, int]  # reason -> rows left out
    unread: tuple[str, ...]  # columns of the file that nothing was made of
    prompts: int
    sources: int
    responses: int
    candidates: Spread  # responses of a prompt
    repeated_pairs: int  # comparisons of a pair that was compared before, either way round
    contradictory_pairs: int  # pairs of which one comparison prefers the one side and another the other
    shared_responses: int  # texts that answer more than one prompt
    repeated_prompts: int  # answers that start with the whole text of their prompt
    groups: int  # that a split cannot divide
    largest_group: float  # its share of the comparisons
    votes: float  # for either side or for both
    ties: float
    abstentions: float  # "cannot judge": not among the votes
    votes_per_comparison: Spread
    without_votes: int
    annotators: int | None  # None where votes are not signed
    repeated_votes: int  # votes of an annotator on a comparison that they voted on before
    gold: Mapping[str, int] | None  # first, second, tie, none
    prompt_characters: Spread
    first_characters: Spread
    second_characters: Spread
    longer_wins_votes: float  # of the votes for a side, the share for the longer answer; equal lengths count half
    longer_wins_gold: float | None


def audit(data: PreferenceData) -> Audit:
    """Count what was understood.

    Guarantees: rows = comparisons + rows left out; the order of rows changes nothing; exchanging the sides of a
    comparison changes nothing but which side is called first.

    Args:
        data: as `read` gives it.

    Returns:
        The counts.

    Example:
        >>> from rmjax import Comparisons
        >>> pairs = Comparisons.from_pairs([0], [1], prompt=[0, 0])
        >>> data = PreferenceData(("p",), ("p",), ("longer", "short"), pairs, np.array([1]), np.zeros(1, np.float32))
        >>> audit(data).longer_wins_votes
        1.0
    """
    c, edges = data.comparisons, data.num_comparisons
    first, second, prompt = (np.asarray(x, np.int64) for x in (c.first, c.second, c.prompt))
    a, b, ties = (np.asarray(x, np.float64) for x in (c.wins_first, c.wins_second, c.ties))
    length = np.array([characters(text) for text in data.responses])
    difference = length[first] - length[second]
    per_comparison = a + b + ties
    dropped = {reason: len(rows) for reason, rows in data.dropped.items()}
    divided = group_sizes(data)
    repeated, contradictory = _recurring(first, second, a - b)
    gold = data.gold
    return Audit(
        file=data.file,
        format=data.format,
        rows=edges + sum(dropped.values()),
        comparisons=edges,
        dropped=dropped,
        unread=data.unread,
        prompts=len(data.prompts),
        sources=len(set(data.sources)),
        responses=len(data.responses),
        candidates=_spread(np.bincount(prompt, minlength=len(data.prompts))),
        repeated_pairs=repeated,
        contradictory_pairs=contradictory,
        shared_responses=_answers_to_several(data),
        repeated_prompts=_answers_with_prompt(data),
        groups=len(divided),
        largest_group=float(divided.max(initial=0) / edges) if edges else 0.0,
        votes=float(per_comparison.sum()),
        ties=float(ties.sum()),
        abstentions=float(np.sum(data.abstentions, dtype=np.float64)),
        votes_per_comparison=_spread(per_comparison),
        without_votes=int(np.sum(per_comparison == 0)),
        annotators=len(data.annotators) or None,
        repeated_votes=_votes_again(data),
        gold=None if gold is None else _gold(gold, data.gold_ties),
        prompt_characters=_spread(np.array([characters(text) for text in data.prompts])),
        first_characters=_spread(length[first]),
        second_characters=_spread(length[second]),
        longer_wins_votes=_longer_wins(difference, a, b),
        longer_wins_gold=None if gold is None else _longer_wins(difference, gold > 0, gold < 0),
    )


def _spread(values: np.ndarray) -> Spread:
    if values.size == 0:
        return Spread(0.0, 0.0, 0.0, 0.0)
    return Spread(*(float(f(values)) for f in (np.min, np.median, np.mean, np.max)))


def _longer_wins(difference: np.ndarray, for_first: np.ndarray, for_second: np.ndarray) -> float:
    """Share of votes for the longer answer; NaN without a vote for a side."""
    share_first = (1 + np.sign(difference)) / 2
    total = np.sum(for_first) + np.sum(for_second)
    agree = np.sum(for_first * share_first) + np.sum(for_second * (1 - share_first))
    return float(agree / total) if total else float("nan")


def _recurring(first: np.ndarray, second: np.ndarray, lead: np.ndarray) -> tuple[int, int]:
    """Comparisons of a pair that came before, and pairs whose comparisons disagree on the better side."""
    low, high = np.minimum(first, second), np.maximum(first, second)
    unique, member = np.unique(low * (high.max(initial=0) + 1) + high, return_inverse=True)
    for_low = np.where(first == low, lead, -lead)
    won, lost = (np.bincount(member, weights=side, minlength=len(unique)) for side in (for_low > 0, for_low < 0))
    return len(first) - len(unique), int(np.sum((won > 0) & (lost > 0)))


def _answers_to_several(data: PreferenceData) -> int:
    prompts = [same_text(prompt) for prompt in data.prompts]
    answered: dict[str, set[str]] = collections.defaultdict(set)
    for p, text in zip(np.asarray(data.comparisons.prompt).tolist(), data.responses, strict=True):
        answered[same_text(text)].add(prompts[p])
    return sum(len(of) > 1 for of in answered.values())


def _answers_with_prompt(data: PreferenceData) -> int:
    return sum(
        bool(prompt := data.prompts[p]) and text[: len(prompt)] == prompt
        for p, text in zip(np.asarray(data.comparisons.prompt).tolist(), data.responses, strict=True)
    )


def _votes_again(data: PreferenceData) -> int:
    if data.votes is None:
        return 0
    ballots = data.votes.item.astype(np.int64) * (int(data.votes.annotator.max(initial=0)) + 1) + data.votes.annotator
    return len(ballots) - len(np.unique(ballots))


def _gold(gold: np.ndarray, gold_ties: np.ndarray | None) -> dict[str, int]:
    tied = 0 if gold_ties is None else int(gold_ties.sum())
    neither = int(np.sum(gold == 0))
    return {
        "first": int(np.sum(gold > 0)),
        "second": int(np.sum(gold < 0)),
        "tie": tied,
        "none": neither - tied,
    }
