"""A prompt's responses as a tree: the longest common token prefix, stored once, and a branch for each."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from rmjax.data.subset_sums import SubsetSums


@dataclasses.dataclass(frozen=True)
class Piece:
    """Responses of one prompt that share one copy of their prefix, within one row."""

    prompt: int
    responses: tuple[int, ...]
    prefix: int  # tokens that all of them begin with
    size: int  # tokens in the row: the prefix once, and what follows it in each response


def shared_prefix(sequences: Sequence[np.ndarray]) -> int:
    """Length of the longest common prefix of token ids.

    It is a property of ids, never of text: where a merge crosses the end of the prompt, the prefix ends before it.
    One sequence shares all of itself.

    Args:
        sequences: ids of each response, at least one.

    Returns:
        A number of tokens; it may be 0, and it may be all of one sequence.

    Example:
        >>> shared_prefix([np.array([1, 2, 3]), np.array([1, 2]), np.array([1, 2, 4])])
        2
    """
    first, length = sequences[0], len(sequences[0])
    for other in sequences[1:]:
        length = min(length, len(other))
        differs = np.flatnonzero(first[:length] != other[:length])
        if differs.size:
            length = int(differs[0])
    return length


def make_piece(ids: Sequence[np.ndarray], prompt: int, responses: Sequence[int]) -> Piece:
    """The tree of some responses to one prompt.

    Args:
        ids: token ids of every response of the data set.
        prompt: the prompt.
        responses: which responses.

    Returns:
        A piece with the longest prefix that these responses share.

    Example:
        >>> make_piece([np.array([7, 8, 1]), np.array([7, 8, 2, 2])], prompt=0, responses=[0, 1]).size
        5
    """
    texts = [ids[response] for response in responses]
    prefix = shared_prefix(texts)
    return Piece(prompt, tuple(responses), prefix, prefix + sum(len(text) - prefix for text in texts))


def split_tree(ids: Sequence[np.ndarray], whole: Piece, length: int) -> tuple[Piece, ...] | None:
    """Cut a tree into pieces that fit rows of a length, each with its own copy of the prefix.

    Rows are filled one after the other, each as full as the branches that are left allow.

    Args:
        ids: token ids of every response of the data set.
        whole: the tree.
        length: tokens in a row.

    Returns:
        One piece per row; None where a response alone is longer than a row.

    Example:
        >>> ids = [np.array([9, 1, 1]), np.array([9, 2, 2]), np.array([9, 3, 3])]
        >>> [piece.responses for piece in split_tree(ids, make_piece(ids, 0, [0, 1, 2]), length=5)]
        [(0, 1), (2,)]
    """
    if whole.size <= length:
        return (whole,)
    if max(len(ids[response]) for response in whole.responses) > length:
        return None
    # A response that ends with the prefix adds nothing, but counts as one token so that every sum is positive.
    rest = {response: max(1, len(ids[response]) - whole.prefix) for response in whole.responses}
    left = sorted(whole.responses, key=lambda response: -rest[response])
    pieces = []
    while left:
        largest, others = left[0], left[1:]
        room = length - whole.prefix - rest[largest]
        sums = SubsetSums([rest[response] for response in others], room)
        row = [largest, *(others[i] for i in sums.members(sums.best(room)))]
        pieces.append(make_piece(ids, whole.prompt, sorted(row)))
        left = [response for response in left if response not in set(row)]
    return tuple(pieces)
