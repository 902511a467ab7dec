"""What a model will see of a file, in tokens: the second half of `rmjax inspect`, before any training."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rmjax.data.buckets import Layout
from rmjax.data.decisions import counted, of_tokenising
from rmjax.data.packing import epoch_plan
from rmjax.data.tokenise import TokenisedData, TokeniseReport
from rmjax.data.trees import shared_prefix

if TYPE_CHECKING:
    from rmjax.tokenizer import Tokenizer


class Lengths(NamedTuple):
    """Where some numbers of tokens lie."""

    least: float
    median: float
    mean: float
    percentile_95: float
    most: float


@dataclasses.dataclass(frozen=True)
class Packing:
    """What one pass over the data costs."""

    micro_batches: int
    tokens: int  # each shared prefix once
    positions: int  # padding included
    shapes: tuple[tuple[int, int, int], ...]  # rows, length, micro-batches of that shape
    notes: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Example:
    """One side of a comparison, exactly as the model sees it."""

    row: int
    side: str
    text: str
    scored_id: int
    scored_text: str
    scored_position: int
    tokens: int


@dataclasses.dataclass(frozen=True)
class Inspection:
    """Token counts of a file under one tokenizer. `dataclasses.asdict` makes it JSON."""

    fingerprint: str
    report: TokeniseReport
    lengths: Lengths  # of a response with its prompt
    pair: float  # mean tokens of both sides of a comparison
    pair_shared: float  # mean tokens that they begin with alike
    packing: Packing
    examples: tuple[Example, ...]


def inspect(layout: Layout, tokenizer: Tokenizer, examples: int = 3) -> Inspection:
    """Count what the model will see.

    Args:
        layout: the tokenised data set, cut into trees.
        tokenizer: the one that made its ids.
        examples: how many comparisons to show, spread over the file.

    Returns:
        The counts.

    Example:
        >>> from rmjax.data.packing import make_layout
        >>> from rmjax.data.tokenise import example, example_parts
        >>> seen = inspect(make_layout(example()), example_parts()[1])
        >>> seen.pair, seen.pair_shared, seen.examples[0].scored_text
        (23.0, 8.0, '<|eos|>')
    """
    tokenised = layout.tokenised
    c, lengths, ids = tokenised.data.comparisons, tokenised.lengths, tokenised.ids
    shared = [shared_prefix([ids[a], ids[b]]) for a, b in zip(c.first.tolist(), c.second.tolist())]
    plan = epoch_plan(layout, seed=None)
    shapes = [(batch.bucket.rows, batch.bucket.length) for batch in plan.micro_batches]
    shown = np.unique(np.linspace(0, c.num_comparisons - 1, max(examples, 0)).astype(int)).tolist()
    return Inspection(
        fingerprint=tokenised.fingerprint,
        report=tokenised.report,
        lengths=_lengths(lengths),
        pair=float(np.mean(lengths[c.first] + lengths[c.second])),
        pair_shared=float(np.mean(shared)),
        packing=Packing(
            micro_batches=len(plan.micro_batches),
            tokens=plan.num_tokens,
            positions=plan.num_positions,
            shapes=tuple((*shape, shapes.count(shape)) for shape in sorted(set(shapes), key=lambda s: (s[1], s[0]))),
            notes=layout.notes,
        ),
        examples=tuple(_example(tokenised, tokenizer, e, side) for e in shown for side in ("first", "second")),
    )


def lines(seen: Inspection) -> list[tuple[str, str]]:
    """An inspection as a reader wants it, for `rmjax.data.render.render(audit, more=...)`.

    Args:
        seen: the counts.

    Returns:
        Label and text of every line.

    Example:
        >>> from rmjax.data.packing import make_layout
        >>> from rmjax.data.tokenise import example, example_parts
        >>> dict(lines(inspect(make_layout(example()), example_parts()[1])))["tokens of a comparison"]
        '23.0 on both sides, 8.0 shared, 15.0 unique'
    """
    report, packing, n = seen.report, seen.packing, seen.lengths
    contract = report.contract
    text = "the tokenizer's chat template" if contract.template == "chat" else f"raw, joined by {contract.separator!r}"
    marks = f"{report.begin_with_bos:,} begin with BOS, EOS was appended to {report.eos_appended:,}"
    return [
        ("text", text),
        (
            "tokens of a response",
            f"{n.least:g} to {n.most:g}, median {n.median:g}, mean {n.mean:.1f}, 95 % to {n.percentile_95:.0f}",
        ),
        (
            "tokens of a comparison",
            f"{seen.pair:.1f} on both sides, {seen.pair_shared:.1f} shared, {seen.pair - seen.pair_shared:.1f} unique",
        ),
        *of_tokenising(report),
        ("of responses", marks),
        ("  BOS twice, one removed", counted(report.double_bos)),
        ("  special strings in a text", counted(report.special_strings)),
        ("scored token", f'"{contract.score_token}"; "last" and "hf" differ in {counted(report.score_rules_disagree)}'),
        (
            "one pass",
            f"{packing.micro_batches:,} micro-batches, {packing.tokens:,} tokens, "
            f"{packing.tokens / packing.positions:.1%} of the positions",
        ),
        *(("  shape", f"{rows} rows of {length}, {count:,} times") for rows, length, count in packing.shapes),
        *(("  note", note) for note in packing.notes),
        ("fingerprint", seen.fingerprint[:16]),
        *(
            (
                f"row {shown.row}, {shown.side}",
                f"{shown.text}\n[scored: token {shown.scored_position + 1} of "
                f"{shown.tokens}, id {shown.scored_id}, {shown.scored_text!r}]",
            )
            for shown in seen.examples
        ),
    ]


def _example(tokenised: TokenisedData, tokenizer: Tokenizer, comparison: int, side: str) -> Example:
    n = int(getattr(tokenised.data.comparisons, side)[comparison])
    ids, position = tokenised.ids[n].tolist(), int(tokenised.score_position[n])
    return Example(
        row=int(tokenised.data.rows[comparison]),
        side=side,
        text=tokenizer.decode(ids),
        scored_id=ids[position],
        scored_text=tokenizer.decode([ids[position]]),
        scored_position=position,
        tokens=len(ids),
    )


def _lengths(lengths: np.ndarray) -> Lengths:
    least, median, percentile_95, most = np.quantile(lengths, [0, 0.5, 0.95, 1]).tolist()
    return Lengths(least, median, float(lengths.mean()), percentile_95, most)
