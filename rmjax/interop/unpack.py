"""From packed trees to rows of single texts, for a backbone whose attention is plain causal."""

from __future__ import annotations

import dataclasses

import numpy as np
from jax.core import Tracer

from rmjax.batch import Batch
from rmjax.errors import DataError


def unpack(batch: Batch, length: int | None = None) -> Batch:
    """The same responses and comparisons, one text a row from position 0, padding on the right.

    Guarantees: row n holds response n up to its scored token, prefix first, so that a causal model sees the text that
    the trees stand for; comparisons are those of `batch`, hence every sum and count as well. Shared prefixes are
    computed once a response: a model that takes a mask and positions saves that with `attention_mask` of
    `rmjax.models.layers` and `batch.depth`.

    Args:
        batch: packed rows, on the host.
        length: of the new rows; unset, that of the longest text. A fixed one compiles once.

    Returns:
        A batch of N rows.

    Raises:
        DataError: a text is longer than `length`.

    Example:
        >>> from rmjax import Comparisons
        >>> tree = Batch(
        ...     tokens=np.array([[5, 6, 7, 8]]),
        ...     segment=np.array([[0, 0, 1, 2]]),
        ...     parent=np.array([[-1, -1, 0, 0]]),
        ...     depth=np.array([[0, 1, 2, 2]]),
        ...     score_index=np.array([2, 3]),
        ...     comparisons=Comparisons.from_pairs([0], [1], [0, 0]),
        ... )
        >>> unpack(tree).tokens
        array([[5, 6, 7],
               [5, 6, 8]], dtype=int32)
    """
    texts = [_text(batch, n) for n in range(batch.score_index.shape[0])]
    longest = max(map(len, texts), default=0)
    width = max(longest, 1) if length is None else length
    if longest > width:
        raise DataError(
            "a text is longer than the rows",
            {"response": max(range(len(texts)), key=lambda n: len(texts[n])), "tokens": longest, "length": width},
            f"Ask for rows of at least {longest}.",
        )
    tokens = np.zeros((len(texts), width), np.int32)
    segment = np.full_like(tokens, -1)
    for n, text in enumerate(texts):
        tokens[n, : len(text)], segment[n, : len(text)] = text, 0
    last = np.array([n * width + len(text) - 1 if len(text) else 0 for n, text in enumerate(texts)], np.int32)
    depth = np.where(segment == 0, np.arange(width, dtype=np.int32)[None], 0)
    return dataclasses.replace(
        batch, tokens=tokens, segment=segment, parent=np.full_like(tokens, -1), depth=depth, score_index=last
    )


def check_plain(batch: Batch) -> None:
    """Refuse rows that hold more than one text; tracers cannot be looked at and pass."""
    if isinstance(batch.segment, Tracer):
        return
    segment = np.asarray(batch.segment)
    packed = np.flatnonzero((segment > 0).any(axis=1))
    if packed.size:
        raise DataError(
            "rows hold several texts, and the backbone was not said to know trees",
            {"row": int(packed[0]), "segments": int(segment[packed[0]].max()) + 1},
            "Give `unpack(batch)`, or make the backbone attend by `attention_mask` and say trees=True.",
        )


def _text(batch: Batch, response: int) -> np.ndarray:
    """Token ids of a response up to its scored token; none for a padded response."""
    if np.asarray(batch.comparisons.prompt)[response] < 0:
        return np.zeros(0, np.int32)
    row, at = divmod(int(np.asarray(batch.score_index)[response]), batch.tokens.shape[1])
    tokens, segment, parent, depth = (
        np.asarray(getattr(batch, name))[row] for name in ("tokens", "segment", "parent", "depth")
    )
    own = (segment == segment[at]) & (depth <= depth[at])
    seen = np.flatnonzero(own | ((segment == parent[at]) & (parent[at] >= 0)))
    return tokens[seen[np.argsort(depth[seen], kind="stable")]]
