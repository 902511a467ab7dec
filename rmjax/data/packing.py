"""Packing as a pure function of (data, spec, seed, epoch), with shapes fixed once for a data set."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from rmjax.data.buckets import Bucket, Layout, PackSpec, Tree
from rmjax.data.cutting import Prompt, cut_trees, judged_prompts
from rmjax.data.filling import MicroBatch, pack, total_cost
from rmjax.data.tokenise import TokenisedData

# Shapes are chosen by packing a sample of this many prompts.
_TRIAL = 1500
# A shape that takes, or spares, less than this share of the cost is not worth its compilation.
_RARE = 0.02
# N and E have room for what other epochs may draw together; a micro-batch that would need more is closed earlier.
_ROOM = 1.25
# Up to this many prompts to a micro-batch are few.
_FEW = 4
# Epochs differ in how many rows they fill; this much more than the trial's must still fit its micro-batches.
_SPREAD = 1.03


@dataclasses.dataclass(frozen=True)
class Plan:
    """The micro-batches of one epoch, in order. Every comparison is in exactly one of them."""

    micro_batches: tuple[MicroBatch, ...]

    @property
    def num_tokens(self) -> int:
        """Positions that hold a token."""
        return sum(batch.num_tokens for batch in self.micro_batches)

    @property
    def num_positions(self) -> int:
        """Positions, padding included."""
        return sum(batch.bucket.rows * batch.bucket.length for batch in self.micro_batches)


def make_layout(tokenised: TokenisedData, spec: PackSpec | None = None) -> Layout:
    """Cut a data set into trees and fix the shapes that hold them in every epoch.

    A prompt's responses stay together. Where they do not fit one row, or cost less in several short ones, each row
    repeats their prefix. N and E of a shape are what a trial packing needs and a quarter more.

    Args:
        tokenised: the data set.
        spec: how to pack; the defaults if absent.

    Returns:
        The layout: at most four shapes, so at most four compilations, whatever the seed and epoch.

    Raises:
        DataError: a text is longer than the longest row.

    Example:
        >>> from rmjax.data.tokenise import example
        >>> [bucket.length for bucket in make_layout(example()).buckets]
        [256]
    """
    spec = spec or PackSpec()
    prompts = judged_prompts(tokenised, spec.lengths)
    layouts = [_cut(tokenised, prompts, spec, alike=alike) for alike in (False, True)]
    # Shapes to the measure of prompts are for prompts that nearly fill a micro-batch; small ones would make it small.
    if sum(prompt.whole.size for prompt in prompts) * _FEW > spec.tokens_per_micro_batch * len(prompts):
        layouts.append(cut_trees(tokenised, prompts, spec, shapes_for_prompts=True))
    layout = _balanced(min(layouts, key=_cost_with_compilations))
    trial = _trial(layout)
    return dataclasses.replace(
        layout, buckets=tuple(_sized(layout, where, trial) for where in range(len(layout.buckets)))
    )


def epoch_plan(layout: Layout, seed: int | None, epoch: int = 0) -> Plan:
    """Pack one epoch.

    Prompts are permuted and stream through a pool. The oldest prompt of the pool starts a row, and those others of
    the pool that fill it best complete it: in the shortest row that becomes full enough, so that order stays near
    the permutation and no prompt waits for long. Micro-batches are shuffled at the end.

    Guarantees: the same arguments give the same plan; every judged prompt is in exactly one micro-batch with all of
    its comparisons; every shape is one of `layout.buckets`.

    Args:
        layout: the data set, cut into trees.
        seed: of the order; None keeps the order of the data, for evaluation.
        epoch: which pass over the data.

    Returns:
        The plan.

    Example:
        >>> from rmjax.data.tokenise import example
        >>> plan = epoch_plan(make_layout(example()), seed=0, epoch=3)
        >>> [batch.comparisons for batch in plan.micro_batches]
        [(0,)]
    """
    rng = None if seed is None else np.random.default_rng([seed, epoch])
    order = range(len(layout.trees)) if rng is None else rng.permutation(len(layout.trees))
    batches = pack(layout, [layout.trees[i] for i in order])
    if rng is not None:
        batches = [batches[i] for i in rng.permutation(len(batches))]
    return Plan(tuple(batches))


def _trial(layout: Layout) -> list[MicroBatch]:
    """One epoch of a sample of the data."""
    order = np.random.default_rng(0).permutation(len(layout.trees))[:_TRIAL]
    return pack(layout, [layout.trees[i] for i in order])


def _trial_cost(layout: Layout) -> float:
    return total_cost(_trial(layout))


def _cost_with_compilations(layout: Layout) -> float:
    """What decides between ways to cut: each shape more must spare what a rare one would use."""
    return _trial_cost(layout) * (1 + _RARE) ** len(layout.buckets)


def _cut(tokenised: TokenisedData, prompts: list[Prompt], spec: PackSpec, *, alike: bool) -> Layout:
    """Trees and shapes, without a length that is not worth its compilation and that every prompt can do without."""
    layout = _without_rare(cut_trees(tokenised, prompts, spec, alike=alike))
    trial = _trial(layout)
    every = total_cost(trial)
    for length in sorted({bucket.length for bucket in layout.buckets}):
        others = tuple(other for other in spec.lengths if other != length)
        here = total_cost(batch for batch in trial if batch.bucket.length == length)
        idle = all(any(prompt.options[other] is not None for other in others) for prompt in prompts)
        if here < _RARE * every and idle:
            fewer = _cut(tokenised, prompts, dataclasses.replace(spec, lengths=others), alike=alike)
            if _spares(fewer, layout) and _trial_cost(fewer) <= (1 + _RARE) * every:
                return dataclasses.replace(fewer, spec=spec)
    return layout


def _spares(fewer: Layout, layout: Layout) -> bool:
    """Whether one needs fewer compilations than another, and no larger micro-batch for them."""
    largest = [max(bucket.rows * bucket.length for bucket in one.buckets) for one in (fewer, layout)]
    return len(fewer.buckets) < len(layout.buckets) and largest[0] <= largest[1]


def _without_rare(layout: Layout) -> Layout:
    """Leave out shapes that hardly anything would use and nothing needs."""
    trial = _trial(layout)
    every = total_cost(trial)
    needed = {tree.bucket for tree in layout.trees}
    longest = max((tree.pieces[0].size for tree in layout.trees if tree.bucket is None), default=0)
    kept = []
    for where, bucket in enumerate(layout.buckets):
        here = total_cost(batch for batch in trial if batch.bucket == bucket)
        others = [*kept, *layout.buckets[where + 1 :]]
        rare = here < _RARE * every and any(other.length >= longest for other in others)
        if where in needed or not rare:
            kept.append(bucket)
    trees = tuple(
        tree if tree.bucket is None else dataclasses.replace(tree, bucket=kept.index(layout.buckets[tree.bucket]))
        for tree in layout.trees
    )
    return dataclasses.replace(layout, trees=trees, buckets=tuple(kept))


def _balanced(layout: Layout) -> Layout:
    """Fewer rows in shapes whose last micro-batch would be mostly empty, where that is cheaper."""
    if len(layout.trees) > _TRIAL:  # one micro-batch among so many costs little
        return layout
    trial = _trial(layout)
    buckets = []
    for where, bucket in enumerate(layout.buckets):
        used = [len(batch.rows) for batch in trial if batch.bucket == bucket]
        largest = max((len(tree.pieces) for tree in layout.trees if tree.bucket == where), default=1)
        even = math.ceil(int(_SPREAD * sum(used)) / len(used)) if used else bucket.rows
        rows = min(bucket.rows, _round_up([max(largest, even)], layout.spec.row_multiple))
        buckets.append(dataclasses.replace(bucket, rows=rows))
    return min(layout, dataclasses.replace(layout, buckets=tuple(buckets)), key=_trial_cost)


def _sized(layout: Layout, where: int, trial: Sequence[MicroBatch]) -> Bucket:
    """A shape with its N and E."""
    bucket = layout.buckets[where]
    drawn = [batch for batch in trial if batch.bucket == bucket]
    alone = [tree for tree in layout.trees if _may_go(tree, where, bucket)]
    return dataclasses.replace(
        bucket,
        responses=_round_up([_ROOM * b.num_responses for b in drawn] + [tree.num_responses for tree in alone]),
        comparisons=_round_up([_ROOM * len(b.comparisons) for b in drawn] + [len(tree.comparisons) for tree in alone]),
    )


def _may_go(tree: Tree, where: int, bucket: Bucket) -> bool:
    return tree.bucket == where if tree.bucket is not None else tree.pieces[0].size <= bucket.length


def _round_up(counts: Sequence[float], multiple: int = 8) -> int:
    """The largest of the counts, rounded up."""
    return math.ceil(max(counts, default=1) / multiple) * multiple
