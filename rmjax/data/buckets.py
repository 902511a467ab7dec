"""The few shapes that micro-batches come in, and where each prompt's tree may go; computed once for a data set."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import TypeAlias

import numpy as np

from rmjax.data.tokenise import TokenisedData
from rmjax.data.trees import Piece, make_piece, split_tree
from rmjax.errors import DataError

MAX_BUCKETS = 4
# Shapes made to measure are chosen among this many quantiles of the rows that prompts need, for each length.
_CANDIDATES = 12
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


def cut_trees(tokenised: TokenisedData, spec: PackSpec, shapes_for_prompts: bool) -> Layout:
    """Trees of all judged prompts, and shapes without their N and E.

    Args:
        tokenised: the data set.
        spec: how to pack.
        shapes_for_prompts: whether all shapes are made to the measure of prompts, which then do not share a
            micro-batch; else only prompts that take more than a micro-batch get shapes of their own.

    Returns:
        Trees in the order of prompts; shapes by length and rows.

    Raises:
        DataError: a text is longer than the longest row.
    """
    wholes, judged = _judged(tokenised)
    options = [[split_tree(tokenised.ids, whole, length) for length in spec.lengths] for whole in wholes]
    for whole, option in zip(wholes, options):
        if option[-1] is None:
            longest = max(len(tokenised.ids[response]) for response in whole.responses)
            raise DataError(
                "a text is longer than the longest row",
                {"row": int(tokenised.data.rows[judged[whole.prompt][0]]), "tokens": longest, "lengths": spec.lengths},
                f"Tokenise with max_length={spec.lengths[-1]} or less, or give a longer row.",
            )
    # [trees, lengths]: rows needed, 0 where a row is too short; and what they cost. A tree of one piece shares its
    # row with others, so only its tokens count.
    rows = np.array([[len(pieces or ()) for pieces in option] for option in options]).reshape(len(wholes), -1)
    sizes = np.array([whole.size for whole in wholes])[:, None]
    costs = np.where(rows == 1, sizes, rows * np.array(spec.lengths)) * np.array([cost(n) for n in spec.lengths])
    home = np.argmin(np.where(rows > 0, costs, np.inf), axis=1)
    needed = rows[np.arange(len(rows)), home]
    shared = [] if shapes_for_prompts else [(spec.rows(length), length) for length in spec.lengths]
    own = np.array([shapes_for_prompts or n > spec.rows(spec.lengths[h]) for n, h in zip(needed, home)], bool)
    if own.any() and len(shared) == MAX_BUCKETS:
        return cut_trees(tokenised, dataclasses.replace(spec, lengths=spec.lengths[1:]), shapes_for_prompts)
    made, assigned = _made_to_measure(rows[own], spec, MAX_BUCKETS - len(shared))
    notes = [
        f"one prompt needs {count} rows of {length}, more than the {spec.tokens_per_micro_batch} tokens asked for"
        for count, length in made
        if count * length > spec.tokens_per_micro_batch
    ]
    where: list[int | None] = [None if n == 1 else int(h) for n, h in zip(needed, home)]
    for tree, shape in zip(np.flatnonzero(own), assigned):
        where[tree] = len(shared) + made.index(shape)
    shapes = shared + made
    trees = []
    for whole, option, bucket in zip(wholes, options, where):
        pieces = (whole,) if bucket is None else option[spec.lengths.index(shapes[bucket][1])]
        trees.append(Tree(pieces or (), judged[whole.prompt], bucket))
    unlimited = 2**31 - 1
    buckets = tuple(Bucket(count, length, unlimited, unlimited) for count, length in shapes)
    return Layout(tokenised, spec, tuple(trees), buckets, tuple(notes))


def _judged(tokenised: TokenisedData) -> tuple[list[Piece], dict[int, tuple[int, ...]]]:
    """Whole trees of the responses that some comparison uses, and the comparisons of each prompt."""
    c = tokenised.data.comparisons
    responses: dict[int, set[int]] = {}
    judged: dict[int, list[int]] = {}
    prompts = np.asarray(c.prompt)[c.first].tolist()
    for e, (prompt, first, second) in enumerate(zip(prompts, c.first.tolist(), c.second.tolist())):
        responses.setdefault(prompt, set()).update((first, second))
        judged.setdefault(prompt, []).append(e)
    wholes = [make_piece(tokenised.ids, prompt, sorted(responses[prompt])) for prompt in sorted(responses)]
    return wholes, {prompt: tuple(edges) for prompt, edges in judged.items()}


def _made_to_measure(
    rows: np.ndarray, spec: PackSpec, budget: int
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """At most `budget` (rows, length) that hold every one of these prompts at the least cost, and which one each takes.

    Start from all candidates and leave out, one at a time, what costs least to do without.
    """
    if not len(rows):
        return [], []
    candidates = []
    for column, length in enumerate(spec.lengths):
        feasible = rows[:, column][rows[:, column] > 0]
        if feasible.size:
            steps = np.quantile(feasible, np.linspace(0, 1, _CANDIDATES), method="higher")
            steps = -(-np.unique(steps).astype(int) // spec.row_multiple) * spec.row_multiple
            candidates += [(int(count), length, column) for count in np.unique(steps)]
    kinds = Counter(map(tuple, rows.tolist()))
    needs, weight = np.array(list(kinds)), np.array(list(kinds.values()))
    costs = np.stack(
        [
            np.where((needs[:, column] > 0) & (needs[:, column] <= count), float(count * length) * cost(length), np.inf)
            for count, length, column in candidates
        ],
        axis=1,
    )
    kept = list(range(len(candidates)))
    while len(kept) > max(1, budget):
        without = [(weight @ costs[:, [k for k in kept if k != out]].min(axis=1), out) for out in kept]
        kept.remove(min(without)[1])
    choice = {kind: kept[int(np.argmin(costs[row, kept]))] for row, kind in enumerate(map(tuple, needs.tolist()))}
    assigned = [candidates[choice[kind]][:2] for kind in map(tuple, rows.tolist())]
    return sorted(set(assigned), key=lambda shape: (shape[1], shape[0])), assigned
