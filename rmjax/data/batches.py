"""From a plan to arrays: the `Batch` that a model takes, and which response and comparison each entry is."""

from __future__ import annotations

import dataclasses

import numpy as np

from rmjax.batch import Batch
from rmjax.comparisons import Comparisons
from rmjax.data.buckets import Bucket, Layout
from rmjax.data.packing import MicroBatch
from rmjax.data.tokenise import TokenisedData


@dataclasses.dataclass(frozen=True)
class HostBatch:
    """A batch in NumPy arrays, with the way back to the data set."""

    batch: Batch
    response: np.ndarray  # [N] int32, index in the data set; -1 for padding
    comparison: np.ndarray  # [E] int32, index in the data set; -1 for padding
    num_tokens: int  # positions that hold a token


def build(layout: Layout, micro_batch: MicroBatch) -> HostBatch:
    """The arrays of one micro-batch.

    Guarantees: following a scored token's segment and its parent gives exactly the ids of its response; each response
    is scored once; all shapes are those of the bucket.

    Args:
        layout: the data set, cut into trees.
        micro_batch: one of the layout's plans.

    Returns:
        Arrays on the host.

    Example:
        >>> from rmjax.data.packing import epoch_plan, make_layout
        >>> from rmjax.data.tokenise import example
        >>> layout = make_layout(example())
        >>> host = build(layout, epoch_plan(layout, seed=0).micro_batches[0])
        >>> host.batch.tokens.shape, host.response[:2], host.comparison[:1]
        ((1, 256), array([0, 1], dtype=int32), array([0], dtype=int32))
    """
    bucket = micro_batch.bucket
    shape = (bucket.rows, bucket.length)
    tokens, depth = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
    segment, parent = np.full(shape, -1, np.int32), np.full(shape, -1, np.int32)
    ids, position = layout.tokenised.ids, layout.tokenised.score_position
    response = np.full(bucket.responses, -1, np.int32)
    score_index = np.zeros(bucket.responses, np.int32)
    n = 0
    for r, row in enumerate(micro_batch.rows):
        start = segments = 0

        def write(text: np.ndarray, first: int, continues: int) -> int:
            """Write the tokens of a text from `first` on as a new segment; nothing where there are none."""
            nonlocal start, segments
            end = start + len(text) - first
            if end == start:
                return -1
            here = slice(start, end)
            tokens[r, here], depth[r, here] = text[first:], np.arange(first, len(text))  # noqa: B023
            segment[r, here], parent[r, here] = segments, continues  # noqa: B023
            start, segments = end, segments + 1
            return segments - 1

        for piece in row:
            root_start = start
            root = write(ids[piece.responses[0]][: piece.prefix], 0, -1)
            for one in piece.responses:
                branch_start = start
                write(ids[one], piece.prefix, root)
                at = int(position[one])
                inside = at < piece.prefix
                score_index[n] = r * bucket.length + (root_start if inside else branch_start - piece.prefix) + at
                response[n] = one
                n += 1
    comparison = np.full(bucket.comparisons, -1, np.int32)
    comparison[: len(micro_batch.comparisons)] = micro_batch.comparisons
    comparisons = _local(layout.tokenised.data.comparisons, comparison, response)
    batch = Batch(tokens, segment, parent, depth, score_index, comparisons)
    return HostBatch(batch, response, comparison, micro_batch.num_tokens)


def isolated(tokenised: TokenisedData, response: int) -> Batch:
    """One response by itself: what every packing must agree with.

    Args:
        tokenised: the data set.
        response: which one.

    Returns:
        One row that holds its tokens and nothing else; no comparisons.

    Example:
        >>> from rmjax.data.tokenise import example
        >>> one = isolated(example(), 1)
        >>> int(one.score_index[0]) == one.tokens.shape[1] - 1
        True
    """
    tokens = tokenised.ids[response][None]
    zeros = np.zeros_like(tokens)
    depth = np.arange(tokens.shape[1], dtype=np.int32)[None]
    prompt = np.asarray(tokenised.data.comparisons.prompt)[[response]]
    none = Comparisons.from_pairs([], [], prompt=prompt)
    return Batch(tokens, zeros, zeros - 1, depth, tokenised.score_position[[response]], none)


def empty(bucket: Bucket) -> HostBatch:
    """A micro-batch of nothing, to compile a shape or to fill up an accumulation.

    Args:
        bucket: the shape.

    Returns:
        Padding throughout: it adds nothing to any sum or count.

    Example:
        >>> empty(Bucket(rows=1, length=4, responses=2, comparisons=1)).batch.segment
        array([[-1, -1, -1, -1]], dtype=int32)
    """
    shape, n, e = (bucket.rows, bucket.length), bucket.responses, bucket.comparisons
    zeros = np.zeros(shape, np.int32)
    comparisons = Comparisons.from_pairs([], [], prompt=[]).pad(e, n)
    batch = Batch(zeros, zeros - 1, zeros - 1, zeros, np.zeros(n, np.int32), comparisons)
    return HostBatch(batch, np.full(n, -1, np.int32), np.full(e, -1, np.int32), 0)


def _local(whole: Comparisons, comparison: np.ndarray, response: np.ndarray) -> Comparisons:
    """The chosen comparisons over the responses of the batch; padding has weight 0 and prompt -1."""
    real_e, real_n = comparison[comparison >= 0], response[response >= 0]
    order = np.argsort(real_n)

    def index(x) -> np.ndarray:
        return order[np.searchsorted(real_n, np.asarray(x)[real_e], sorter=order)].astype(np.int32)

    fields = {
        field.name: np.asarray(value)[real_e]
        for field in dataclasses.fields(whole)
        if field.name not in ("first", "second", "prompt") and (value := getattr(whole, field.name)) is not None
    }
    prompt = np.asarray(whole.prompt)[real_n]
    chosen = Comparisons(first=index(whole.first), second=index(whole.second), prompt=prompt, **fields)
    return chosen.pad(len(comparison), len(response))
