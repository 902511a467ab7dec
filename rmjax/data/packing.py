"""Which response goes to which row of which micro-batch: a pure function of (data, spec, seed, epoch)."""

from __future__ import annotations

import collections
import dataclasses
import math
from collections.abc import Iterable, Sequence

import numpy as np

from rmjax.data.buckets import Bucket, Layout, PackSpec, Tree, cost, cut_trees
from rmjax.data.subset_sums import SubsetSums
from rmjax.data.tokenise import TokenisedData
from rmjax.data.trees import Piece

# A shape that fewer than this share of the positions would use is not worth its compilation.
_RARE = 0.02
# N and E have room for what other epochs may draw together; a micro-batch that would need more is closed earlier.
_ROOM = 1.25
# Epochs differ in how many rows they fill; this much more than the trial's must still fit its micro-batches.
_SPREAD = 1.03


@dataclasses.dataclass(frozen=True)
class MicroBatch:
    """Rows of one shape, and the comparisons of the prompts in them."""

    bucket: Bucket
    rows: tuple[tuple[Piece, ...], ...]  # at most bucket.rows of them
    comparisons: tuple[int, ...]

    @property
    def num_responses(self) -> int:
        """How many responses are scored."""
        return sum(len(piece.responses) for row in self.rows for piece in row)

    @property
    def num_tokens(self) -> int:
        """How many positions hold a token."""
        return sum(piece.size for row in self.rows for piece in row)


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
    layouts = [_without_rare(cut_trees(tokenised, spec, shapes_for_prompts=False))]
    if any(len(tree.pieces) > 1 for tree in layouts[0].trees):
        layouts.append(cut_trees(tokenised, spec, shapes_for_prompts=True))
    layout = min((_balanced(layout) for layout in layouts), key=_trial_cost)
    trial = epoch_plan(layout, seed=0, epoch=0)
    sized = []
    for bucket in layout.buckets:
        drawn = [batch for batch in trial.micro_batches if batch.bucket == bucket]
        alone = [t for t in layout.trees if t.bucket is None and t.pieces[0].size <= bucket.length]
        responses = [_ROOM * batch.num_responses for batch in drawn] + [tree.num_responses for tree in alone]
        comparisons = [_ROOM * len(batch.comparisons) for batch in drawn] + [len(tree.comparisons) for tree in alone]
        sized.append(dataclasses.replace(bucket, responses=_round_up(responses), comparisons=_round_up(comparisons)))
    return dataclasses.replace(layout, buckets=tuple(sized))


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
    batches = _pack(layout, [layout.trees[i] for i in order])
    if rng is not None:
        batches = [batches[i] for i in rng.permutation(len(batches))]
    return Plan(tuple(batches))


@dataclasses.dataclass
class _Block:
    """Rows that stay together, with the trees in them."""

    rows: list[list[Piece]]
    trees: list[Tree]

    @property
    def num_responses(self) -> int:
        return sum(tree.num_responses for tree in self.trees)

    @property
    def num_comparisons(self) -> int:
        return sum(len(tree.comparisons) for tree in self.trees)


def _pack(layout: Layout, trees: Iterable[Tree]) -> list[MicroBatch]:
    """Stream trees through the pool into rows, and rows into micro-batches."""
    spec, buckets = layout.spec, layout.buckets
    stream = collections.deque(trees)
    pool: list[Tree] = []
    pending: list[list[_Block]] = [[] for _ in buckets]
    done: list[MicroBatch] = []

    def refill() -> None:
        while stream and (len(pool) < spec.pool or stream[0].bucket is not None):
            tree = stream.popleft()
            if tree.bucket is None:
                pool.append(tree)
            else:
                add(tree.bucket, _Block([[piece] for piece in tree.pieces], [tree]))

    def add(where: int, block: _Block) -> None:
        bucket = buckets[where]
        for row in block.rows:
            _fill_row(row, block, bucket, pool)
        pending[where].append(block)
        # Twice the rows of a micro-batch, so that blocks of several rows find what completes them.
        while sum(len(waiting.rows) for waiting in pending[where]) >= 2 * bucket.rows:
            done.append(_take(bucket, pending[where]))

    refill()
    while pool:
        tree = pool.pop(0)
        add(_choose(tree, buckets, pool, spec), _Block([[tree.pieces[0]]], [tree]))
        refill()
    for bucket, waiting in zip(buckets, pending):
        while sum(len(block.rows) for block in waiting) > bucket.rows:
            done.append(_take(bucket, waiting))
    _merge_leftovers(buckets, pending)
    return done + [batch for bucket, waiting in zip(buckets, pending) for batch in _close(bucket, waiting)]


def _close(bucket: Bucket, waiting: list[_Block]) -> list[MicroBatch]:
    """What is left of a shape, in as many micro-batches as it takes."""
    waiting, batches = list(waiting), []
    while waiting:
        batches.append(_take(bucket, waiting))
    return batches


def _merge_leftovers(buckets: tuple[Bucket, ...], pending: list[list[_Block]]) -> None:
    """Move the leftovers of one shape into the last micro-batch of a longer one, where that is cheaper."""
    for short in range(len(buckets)):
        waiting = pending[short]
        trees = [tree for block in waiting for tree in block.trees]
        if not trees or any(tree.bucket is not None for tree in trees):
            continue
        for long, bucket in enumerate(buckets):
            if bucket.length <= buckets[short].length:
                continue
            pool, moved = sorted(trees, key=lambda tree: -tree.pieces[0].size), []
            while pool:
                tree = pool.pop(0)
                block = _Block([[tree.pieces[0]]], [tree])
                _fill_row(block.rows[0], block, bucket, pool)
                moved.append(block)
            together = pending[long] + moved
            before = _cost(_close(buckets[short], waiting)) + _cost(_close(bucket, pending[long]))
            if _cost(_close(bucket, together)) < before:
                pending[short], pending[long] = [], together
                break


def _choose(tree: Tree, buckets: tuple[Bucket, ...], pool: list[Tree], spec: PackSpec) -> int:
    """The bucket in whose rows the tree wastes least: the first that gets full enough, else the fullest."""
    size = tree.pieces[0].size
    longest = max(bucket.length for bucket in buckets)
    sums = SubsetSums([other.pieces[0].size for other in pool], longest - size)
    fills = []
    for where, bucket in enumerate(buckets):
        if bucket.length >= size:
            fill = (size + sums.best(bucket.length - size)) / bucket.length
            if fill >= spec.min_fill:
                return where
            fills.append((-fill, where))
    return min(fills)[1]


def _fill_row(row: list[Piece], block: _Block, bucket: Bucket, pool: list[Tree]) -> None:
    """Move those trees of the pool that fill the rest of a row best into it, while N and E have room."""
    room = bucket.length - sum(piece.size for piece in row)
    sums = SubsetSums([other.pieces[0].size for other in pool], room)
    for index in reversed(sums.members(sums.best(room))):
        other = pool[index]
        if (
            block.num_responses + other.num_responses <= bucket.responses
            and block.num_comparisons + len(other.comparisons) <= bucket.comparisons
        ):
            row.append(other.pieces[0])
            block.trees.append(pool.pop(index))


def _take(bucket: Bucket, waiting: list[_Block]) -> MicroBatch:
    """A micro-batch from the oldest waiting block and those that complete its rows."""
    room = bucket.rows - len(waiting[0].rows)
    sums = SubsetSums([len(block.rows) for block in waiting[1:]], room)
    chosen = [waiting[0]]
    for index in sums.members(sums.best(room)):
        block = waiting[1 + index]
        together = [*chosen, block]
        if (
            sum(block.num_responses for block in together) <= bucket.responses
            and sum(block.num_comparisons for block in together) <= bucket.comparisons
        ):
            chosen = together
    taken = set(map(id, chosen))
    waiting[:] = [block for block in waiting if id(block) not in taken]
    return MicroBatch(
        bucket,
        tuple(tuple(row) for block in chosen for row in block.rows),
        tuple(e for block in chosen for tree in block.trees for e in tree.comparisons),
    )


def _trial_cost(layout: Layout) -> float:
    """What one epoch costs, in positions weighted by `cost`."""
    return _cost(epoch_plan(layout, seed=0).micro_batches)


def _cost(batches: Iterable[MicroBatch]) -> float:
    """Positions, weighted by `cost`."""
    shapes = (batch.bucket for batch in batches)
    return sum(bucket.rows * bucket.length * cost(bucket.length) for bucket in shapes)


def _without_rare(layout: Layout) -> Layout:
    """Leave out shapes that hardly anything would use and nothing needs."""
    trial = epoch_plan(layout, seed=0)
    needed = {tree.bucket for tree in layout.trees}
    longest = max((tree.pieces[0].size for tree in layout.trees if tree.bucket is None), default=0)
    kept = []
    for where, bucket in enumerate(layout.buckets):
        positions = sum(bucket.rows * bucket.length for batch in trial.micro_batches if batch.bucket == bucket)
        others = [*kept, *layout.buckets[where + 1 :]]
        rare = positions < _RARE * trial.num_positions and any(other.length >= longest for other in others)
        if where in needed or not rare:
            kept.append(bucket)
    trees = tuple(
        tree if tree.bucket is None else dataclasses.replace(tree, bucket=kept.index(layout.buckets[tree.bucket]))
        for tree in layout.trees
    )
    return dataclasses.replace(layout, trees=trees, buckets=tuple(kept))


def _balanced(layout: Layout) -> Layout:
    """Fewer rows in shapes whose last micro-batch would be mostly empty, where that is cheaper."""
    trial = epoch_plan(layout, seed=0)
    buckets = []
    for where, bucket in enumerate(layout.buckets):
        used = [len(batch.rows) for batch in trial.micro_batches if batch.bucket == bucket]
        largest = max((len(tree.pieces) for tree in layout.trees if tree.bucket == where), default=1)
        even = math.ceil(int(_SPREAD * sum(used)) / len(used)) if used else bucket.rows
        rows = min(bucket.rows, _round_up([max(largest, even)], layout.spec.row_multiple))
        buckets.append(dataclasses.replace(bucket, rows=rows))
    return min(layout, dataclasses.replace(layout, buckets=tuple(buckets)), key=_trial_cost)


def _round_up(counts: Sequence[float], multiple: int = 8) -> int:
    """The largest of the counts, rounded up."""
    return math.ceil(max(counts, default=1) / multiple) * multiple
