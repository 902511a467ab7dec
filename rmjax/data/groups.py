"""Groups of prompts that a split keeps whole."""

from __future__ import annotations

import numpy as np

from rmjax.data.dataset import PreferenceData
from rmjax.data.proof import same_text


def groups(data: PreferenceData) -> np.ndarray:
    """Number the groups of prompts that a split must not divide.

    Two prompts are in one group if their texts, their sources or the texts of any of their responses are the same
    (by `same_text`), or if a chain of such prompts joins them.

    Args:
        data: the judged pairs.

    Returns:
        The group of every prompt, int [P]; groups are numbered in order of their first prompt.

    Example:
        >>> from rmjax import Comparisons
        >>> pairs = Comparisons.from_pairs([0, 2], [1, 3], prompt=[0, 0, 1, 1])
        >>> texts = ("yes", "no", "maybe", "no ")
        >>> data = PreferenceData(("p", "q"), ("p", "q"), texts, pairs, np.array([1, 2]), np.zeros(2, np.float32))
        >>> groups(data)
        array([0, 0])
    """
    parent = list(range(len(data.prompts)))

    def root(p: int) -> int:
        while parent[p] != p:
            parent[p] = p = parent[parent[p]]
        return p

    first_with: dict[tuple[str, str], int] = {}
    named = [(p, "prompt", same_text(text)) for p, text in enumerate(data.prompts)]
    named += [(p, "source", source) for p, source in enumerate(data.sources)]
    named += [
        (p, "response", same_text(text))
        for p, text in zip(data.comparisons.prompt.tolist(), data.responses, strict=True)
    ]
    for p, kind, key in named:
        one, other = root(p), root(first_with.setdefault((kind, key), p))
        # The smaller number becomes the root, which makes the numbering below that of first prompts.
        parent[max(one, other)] = min(one, other)
    _, number = np.unique([root(p) for p in range(len(parent))], return_inverse=True)
    return number


def group_sizes(data: PreferenceData, group: np.ndarray | None = None) -> np.ndarray:
    """Comparisons of every group.

    Args:
        data: the judged pairs.
        group: as `groups` gives it, if it is at hand.

    Returns:
        Counts, int [G].

    Example:
        >>> from rmjax import Comparisons
        >>> pairs = Comparisons.from_pairs([0, 2], [1, 3], prompt=[0, 0, 1, 1])
        >>> texts = ("yes", "no", "maybe", "no ")
        >>> data = PreferenceData(("p", "q"), ("p", "q"), texts, pairs, np.array([1, 2]), np.zeros(2, np.float32))
        >>> group_sizes(data)
        array([2])
    """
    group = groups(data) if group is None else group
    return np.bincount(group_of_comparison(data, group), minlength=int(group.max(initial=-1)) + 1)


def group_of_comparison(data: PreferenceData, group: np.ndarray) -> np.ndarray:
    """The group of every comparison, int [E]."""
    return group[data.comparisons.prompt[data.comparisons.first]]
