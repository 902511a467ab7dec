"""Items drawn anew, and pairs of what stands on one item."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rmjax.checks import count

_AT_ONCE = 4_000_000  # numbers in one batch


def draws(items: int, resamples: int, seed: int, *, width: int = 1) -> Iterator[np.ndarray]:
    """How often every item is drawn, in batches [batch, items], float64; `width` numbers are made of each draw."""
    count("resamples", resamples, least=2)  # which an error needs
    rng = np.random.default_rng(count("seed", seed, least=0))
    batch = max(1, _AT_ONCE // max(width, items))
    for start in range(0, resamples, batch):
        drawn = rng.multinomial(items, np.full(items, 1 / items), min(batch, resamples - start))
        yield drawn.astype(np.float64)


def pairs_within(item: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Positions of both members of every pair on one item; `item` is sorted, and every number occurs."""
    size = np.bincount(item)
    start = np.cumsum(size) - size
    of_size = [(start[size == n][:, None], np.triu_indices(n, 1)) for n in np.unique(size)]
    none = np.zeros(0, np.int64)
    first = [none, *((at + one).ravel() for at, (one, _) in of_size)]
    second = [none, *((at + other).ravel() for at, (_, other) in of_size)]
    return np.concatenate(first), np.concatenate(second)
