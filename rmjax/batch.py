"""The arrays that a model takes: rows that pack prefix trees, and the comparisons of what they hold."""

from __future__ import annotations

import dataclasses

import jax

from rmjax.arrays import Array
from rmjax.comparisons import Comparisons


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Batch:
    """Rows of a fixed length that pack trees: a shared prefix and its branches, each token stored once.

    A token attends to the tokens of its own segment up to itself and to all of the segment's parent. `depth` is its
    position in its own text, so rotary embeddings and windows are those of the unpacked sequence. `score_index` says
    where each response is scored; there is no pad id and no mask rule.
    """

    tokens: Array  # [R, T] int32
    segment: Array  # [R, T] int32, the branch within its row; -1 for padding
    parent: Array  # [R, T] int32, the segment that this one continues; -1 for none
    depth: Array  # [R, T] int32
    score_index: Array  # [N] int32, flat over rows x length; 0 for a padded response
    comparisons: Comparisons  # over the N responses
