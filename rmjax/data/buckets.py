"""How to pack, the few shapes that micro-batches come in, and a data set laid out for them."""

from __future__ import annotations

import dataclasses
from typing import TypeAlias

from rmjax.data.tokenise import TokenisedData
from rmjax.data.trees import Piece
from rmjax.errors import DataError

MAX_BUCKETS = 4
_Shape: TypeAlias = tuple[int, int]  # rows, length


@dataclasses.dataclass(frozen=True)
class PackSpec:
    """How to pack.

    Example:
        >>> PackSpec(lengths=(128,), tokens_per_micro_batch=1024).rows(128)
        8
    """

    lengths: tuple[int, ...] = (256, 512, 1024)
    """Tokens in a row, ascending, at most 4."""
    tokens_per_micro_batch: int = 2048
    """Positions of a micro-batch; more only where one prompt needs more."""
    min_fill: float = 0.85
    """A longer row is taken where a shorter one would stay emptier than this."""
    pool: int = 128
    """Prompts among which a row finds its content."""
    row_multiple: int = 1
    """The rows of a micro-batch divide by this: the number of devices that share them."""

    def __post_init__(self):
        ascending = all(a < b for a, b in zip(self.lengths, self.lengths[1:]))
        if not 1 <= len(self.lengths) <= MAX_BUCKETS or not ascending or self.lengths[0] < 1:
            raise DataError(
                "row lengths are ascending and few",
                {"lengths": self.lengths},
                f"Give 1 to {MAX_BUCKETS} lengths; each is compiled once.",
            )
        if min(self.pool, self.row_multiple, self.tokens_per_micro_batch) < 1 or not 0 < self.min_fill <= 1:
            raise DataError("a packing option is out of range", dataclasses.asdict(self), "Give positive numbers.")

    def rows(self, length: int) -> int:
        """Rows of that length in a micro-batch."""
        return max(1, self.tokens_per_micro_batch // length // self.row_multiple) * self.row_multiple


@dataclasses.dataclass(frozen=True)
class Bucket:
    """A shape of micro-batches: what is compiled once."""

    rows: int
    length: int
    responses: int  # N, padded
    comparisons: int  # E, padded


@dataclasses.dataclass(frozen=True)
class Tree:
    """A prompt with what is judged of it, and how it is cut into rows."""

    pieces: tuple[Piece, ...]  # one per row
    comparisons: tuple[int, ...]
    bucket: int | None  # where its rows go; None for a tree of one piece, which goes wherever it fits

    @property
    def num_responses(self) -> int:
        """How many responses are scored."""
        return sum(len(piece.responses) for piece in self.pieces)


@dataclasses.dataclass(frozen=True)
class Layout:
    """A tokenised data set, cut into trees, with the shapes that hold them in every epoch."""

    tokenised: TokenisedData
    spec: PackSpec
    trees: tuple[Tree, ...]  # in the order of prompts
    buckets: tuple[Bucket, ...]
    notes: tuple[str, ...]  # what the data made necessary beyond the spec


def cost(length: int) -> float:
    """Relative cost of one position in a row of that length.

    Attention under a dense mask grows with the row. SmolLM2-135M on 2 cores trains 120, 99 and 70 tokens per second
    in rows of 256, 512 and 1024, which this follows within 6 %.
    """
    return 1 + length / 1000
