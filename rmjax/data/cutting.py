"""Where each prompt's tree goes: whole into a row, cut over several, or into shapes of its own."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import NamedTuple, TypeAlias

import numpy as np

from rmjax.data.buckets import MAX_BUCKETS, Bucket, Layout, PackSpec, Tree, cost
from rmjax.data.tokenise import TokenisedData
from rmjax.data.trees import Piece, make_piece, split_tree
from rmjax.errors import DataError

# Shapes made to measure are chosen among this many quantiles of the rows that prompts need, for each length.
_CANDIDATES = 12
_UNLIMITED = 2**31 - 1
_Shape: TypeAlias = tuple[int, int]  # rows, length


class Prompt(NamedTuple):
    """What is judged of a prompt, and the pieces of its tree in rows of each length; None where they are too short."""

    whole: Piece
    comparisons: tuple[int, ...]
    options: dict[int, tuple[Piece, ...] | None]


def judged_prompts(tokenised: TokenisedData, lengths: tuple[int, ...]) -> list[Prompt]:
    """The trees of all responses that some comparison uses.

    Args:
        tokenised: the data set.
        lengths: of rows, ascending.

    Returns:
        One entry per prompt, in order.

    Raises:
        DataError: a text is longer than the longest row.

    Example:
        >>> from rmjax.data.tokenise import example
        >>> [prompt.whole.responses for prompt in judged_prompts(example(), (256,))]
        [(0, 1)]
    """
    c = tokenised.data.comparisons
    responses: dict[int, set[int]] = {}
    judged: dict[int, list[int]] = {}
    prompts = np.asarray(c.prompt)[c.first].tolist()
    for e, (prompt, first, second) in enumerate(zip(prompts, c.first.tolist(), c.second.tolist())):
        responses.setdefault(prompt, set()).update((first, second))
        judged.setdefault(prompt, []).append(e)
    found = []
    for prompt in sorted(responses):
        whole = make_piece(tokenised.ids, prompt, sorted(responses[prompt]))
        options = {length: split_tree(tokenised.ids, whole, length) for length in lengths}
        if options[lengths[-1]] is None:
            longest = max(whole.responses, key=lambda response: len(tokenised.ids[response]))
            first = next(e for e in judged[prompt] if longest in (c.first[e], c.second[e]))
            raise DataError(
                "a text is longer than the longest row",
                {
                    "row": int(tokenised.data.rows[first]),
                    "tokens": len(tokenised.ids[longest]),
                    "lengths": lengths,
                },
                f"Tokenise with max_length={lengths[-1]} or less, or give a longer row.",
            )
        found.append(Prompt(whole, tuple(judged[prompt]), options))
    return found


def cut_trees(
    tokenised: TokenisedData,
    prompts: list[Prompt],
    spec: PackSpec,
    *,
    shapes_for_prompts: bool = False,
    alike: bool = False,
) -> Layout:
    """Choose for every tree the rows that cost least, and the shapes that hold them all, without their N and E.

    Args:
        tokenised: the data set.
        prompts: of `judged_prompts`, for the lengths of `spec`.
        spec: how to pack.
        shapes_for_prompts: whether all shapes are made to the measure of prompts, which then do not share a
            micro-batch; else only prompts that take more than a micro-batch get shapes of their own.
        alike: count on trees of one size, so that what is left of a row stays empty; else on a mixture that fills it.

    Returns:
        Trees in the order of prompts; shapes by length and rows.

    Example:
        >>> from rmjax.data.tokenise import example
        >>> layout = cut_trees(example(), judged_prompts(example(), (256,)), PackSpec(lengths=(256,)))
        >>> layout.buckets[0].rows, layout.trees[0].bucket is None
        (8, True)
    """
    # [trees, lengths]: rows needed, 0 where a row is too short; and the positions that this takes.
    rows = np.array([[len(prompt.options[n] or ()) for n in spec.lengths] for prompt in prompts])
    sizes = np.array([prompt.whole.size for prompt in prompts])[:, None]
    lengths = np.array(spec.lengths)
    share = lengths / np.maximum(lengths // sizes, 1) if alike else sizes
    costs = np.where(rows == 1, share, rows * lengths) * np.array([cost(length) for length in spec.lengths])
    home = np.argmin(np.where(rows > 0, costs, np.inf), axis=1)
    needed = rows[np.arange(len(rows)), home]
    shapes = [] if shapes_for_prompts else [(spec.rows(length), length) for length in spec.lengths]
    own = np.array([shapes_for_prompts or n > spec.rows(spec.lengths[h]) for n, h in zip(needed, home)], bool)
    if own.any() and len(shapes) == MAX_BUCKETS:
        fewer = dataclasses.replace(spec, lengths=spec.lengths[1:])
        return cut_trees(tokenised, prompts, fewer, alike=alike)
    made = iter(made_to_measure(rows[own], spec, MAX_BUCKETS - len(shapes)))
    where: list[int | None] = [None if n == 1 else int(h) for n, h in zip(needed, home)]
    for tree in np.flatnonzero(own):
        if (shape := next(made)) not in shapes:
            shapes.append(shape)
        where[tree] = shapes.index(shape)
    trees = []
    for prompt, bucket in zip(prompts, where):
        pieces = (prompt.whole,) if bucket is None else prompt.options[shapes[bucket][1]]
        trees.append(Tree(pieces or (), prompt.comparisons, bucket))
    notes = tuple(
        f"one prompt needs {count} rows of {length}, more than the {spec.tokens_per_micro_batch} tokens asked for"
        for count, length in shapes
        if count > spec.rows(length)
    )
    buckets = tuple(Bucket(count, length, _UNLIMITED, _UNLIMITED) for count, length in shapes)
    return Layout(tokenised, spec, tuple(trees), buckets, notes)


def made_to_measure(rows: np.ndarray, spec: PackSpec, budget: int) -> list[_Shape]:
    """The shape of each of these prompts, of at most `budget` shapes that together cost little.

    Start from all candidates and leave out, one at a time, what costs least to do without. Left to itself this may
    leave out the one that holds everything and end in two that do not come down to one; so it is also done with the
    cheapest of those that hold everything kept to the end, and the cheaper of both counts.

    Guarantees: every shape holds its prompt, and there are at most `budget` of them.

    Args:
        rows: that each prompt needs at each length of `spec`, [prompts, lengths]; 0 where a text is longer than a row,
            which none is than the longest.
        spec: how to pack.
        budget: how many shapes there may be.

    Returns:
        Rows and length of each prompt's shape.

    Example:
        >>> made_to_measure(np.array([[2], [9], [10]]), PackSpec(lengths=(64,)), budget=2)
        [(2, 64), (10, 64), (10, 64)]
    """
    if not len(rows):
        return []
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

    def total(kept: list[int]) -> float:
        return float(weight @ costs[:, kept].min(axis=1))

    def reduced(stays: int | None) -> list[int]:
        kept = list(range(len(candidates)))
        while len(kept) > max(1, budget):
            without = [(total([k for k in kept if k != out]), out) for out in kept if out != stays]
            kept.remove(min(without)[1])
        return kept

    kept = min((reduced(stays) for stays in (None, int(np.argmin(weight @ costs)))), key=total)
    choice = {kind: kept[int(np.argmin(costs[row, kept]))] for row, kind in enumerate(map(tuple, needs.tolist()))}
    return [candidates[choice[kind]][:2] for kind in map(tuple, rows.tolist())]
