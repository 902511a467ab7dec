"""Understood rows, laid out as arrays: texts numbered once, judgements, single votes, columns."""

from __future__ import annotations

import json
from typing import NamedTuple

import numpy as np

from rmjax.comparisons import Comparisons
from rmjax.data.dataset import PreferenceData, Text
from rmjax.data.formats.fields import Judgement
from rmjax.votes import CANNOT_JUDGE, FIRST, SECOND, TIE, Votes


class Row(NamedTuple):
    """A row that was understood, and where it stood."""

    number: int
    judgement: Judgement
    source: str
    kept: tuple[str | float | None, ...]


def assemble(
    understood: list[Row], keep: tuple[str, ...], file: str, dropped: dict[str, tuple[int, ...]]
) -> PreferenceData:
    """Number prompts and responses by their texts, and lay the judgements out as arrays."""
    prompts: dict[tuple[Text, str], int] = {}
    responses: dict[tuple[int, Text], int] = {}
    sources: dict[str, int] = {}
    first, second, cluster = [], [], []
    for _, judgement, source, _ in understood:
        # A prompt that occurs under two sources is two prompts; a split keeps them together by their text.
        prompt = prompts.setdefault((judgement.prompt, source), len(prompts))
        first.append(responses.setdefault((prompt, judgement.first), len(responses)))
        second.append(responses.setdefault((prompt, judgement.second), len(responses)))
        cluster.append(sources.setdefault(source, len(sources)))
    judgements = [row.judgement for row in understood]
    counts = np.array([judgement.counts for judgement in judgements], np.float32)
    gold, gold_ties = _gold(judgements)
    votes, annotators = _votes(judgements)
    return PreferenceData(
        prompts=tuple(prompt for prompt, _ in prompts),
        sources=tuple(source for _, source in prompts),
        responses=tuple(text for _, text in responses),
        comparisons=Comparisons.from_votes(
            first,
            second,
            counts[:, FIRST],
            counts[:, SECOND],
            [prompt for prompt, _ in responses],
            ties=counts[:, TIE],
            cluster=cluster,
        ),
        rows=np.array([row.number for row in understood]),
        abstentions=counts[:, CANNOT_JUDGE],
        gold=gold,
        gold_ties=gold_ties,
        votes=votes,
        annotators=annotators,
        format=judgements[0].format,
        columns={name: _column([row.kept[i] for row in understood]) for i, name in enumerate(keep)},
        dropped=dropped,
        file=file,
    )


def _gold(judgements: list[Judgement]) -> tuple[np.ndarray | None, np.ndarray | None]:
    """The side that gold names, and where it names both; nothing if no row has any."""
    if all(judgement.gold is None for judgement in judgements):
        return None, None
    return (
        np.array([judgement.gold or 0 for judgement in judgements], np.int8),
        np.array([judgement.gold == 0 for judgement in judgements]),
    )


def _votes(judgements: list[Judgement]) -> tuple[Votes | None, tuple[str, ...]]:
    """Single votes and the names of who cast them; nothing unless every row has them."""
    item, annotator, value = [], [], []
    names: dict[str, int] = {}
    for e, judgement in enumerate(judgements):
        if judgement.ballots is None:
            return None, ()
        for choice, name in judgement.ballots:
            annotator.append(-1 if name is None else names.setdefault(name, len(names)))
            item.append(e)
            value.append(choice)
    annotators = np.array(annotator, np.int64)
    # Nobody says that two unsigned votes are by one person: each gets a number of its own, after the named ones.
    annotators[annotators < 0] = len(names) + np.arange(np.sum(annotators < 0))
    return Votes.build(np.array(item, np.int64), annotators, np.array(value, np.int64)), tuple(names)


def _column(values: list[str | float | None]) -> np.ndarray:
    """Numbers as numbers, anything else as strings; null is NaN or the empty string."""
    if all(value is None or (isinstance(value, int | float) and not isinstance(value, bool)) for value in values):
        numbers = np.array([np.nan if value is None else value for value in values])
        # An id of many digits would be rounded to another: such a column is one of names.
        if numbers.dtype.kind in "iuf" and all(a == b or b is None or b != b for a, b in zip(numbers.tolist(), values)):
            return numbers
    return np.array(
        ["" if value is None else value if isinstance(value, str) else json.dumps(value) for value in values], object
    )
