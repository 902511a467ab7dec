"""Which tree goes to which row of which micro-batch."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable

from rmjax.data.buckets import Bucket, Layout, PackSpec, Tree, cost
from rmjax.data.subset_sums import SubsetSums
from rmjax.data.trees import Piece


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


def total_cost(batches: Iterable[MicroBatch]) -> float:
    """Positions, padding included, weighted by `cost`."""
    shapes = (batch.bucket for batch in batches)
    return sum(bucket.rows * bucket.length * cost(bucket.length) for bucket in shapes)


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


def pack(layout: Layout, trees: Iterable[Tree]) -> list[MicroBatch]:
    """Stream trees through the pool into rows, and rows into micro-batches.

    Args:
        layout: shapes and options.
        trees: the layout's, in the order in which they enter the pool.

    Returns:
        Micro-batches in the order in which they fill up.

    Example:
        >>> from rmjax.data.packing import make_layout
        >>> from rmjax.data.tokenise import example
        >>> layout = make_layout(example())
        >>> [batch.num_tokens for batch in pack(layout, layout.trees)]
        [15]
    """
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
            before = total_cost(_close(buckets[short], waiting)) + total_cost(_close(bucket, pending[long]))
            if total_cost(_close(bucket, together)) < before:
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
