"""Splits that do not leak: what shares a prompt, a source or a response text stays on one side."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Mapping

import numpy as np

from rmjax.data.dataset import PreferenceData, subset
from rmjax.data.groups import group_of_comparison, group_sizes, groups
from rmjax.data.proof import SplitProof, prove, same_text
from rmjax.errors import DataError


@dataclasses.dataclass(frozen=True)
class Split:
    """Parts of the data, and the proof that they share nothing."""

    parts: Mapping[str, PreferenceData]
    proof: SplitProof
    groups: int  # that cannot be divided
    largest_group: float  # its share of the comparisons
    warnings: tuple[str, ...] = ()


def split(data: PreferenceData, fractions: Mapping[str, float], seed: int = 0) -> Split:
    """Divide the data into parts of about these fractions of the comparisons, without dividing a group.

    Guarantees: no prompt, no source and no response text stands in two parts, which is counted from the parts and
    refused otherwise; a function of the seed and of what the data say, not of the order of rows; every comparison is
    in one part; a part misses its size by at most the largest group times the number of other parts.

    Args:
        data: the whole.
        fractions: name and fraction of every part; they sum to 1.
        seed: chooses among such splits.

    Returns:
        The parts with their proof, and a warning where one group holds more than half of the comparisons.

    Raises:
        DataError: the fractions are not positive or do not sum to 1, or there are too few groups for a part.

    Example:
        >>> from rmjax import Comparisons
        >>> pairs = Comparisons.from_pairs([0, 2], [1, 3], prompt=[0, 0, 1, 1])
        >>> texts = ("a", "b", "c", "d")
        >>> data = PreferenceData(("p", "q"), ("p", "q"), texts, pairs, np.array([1, 2]), np.zeros(2, np.float32))
        >>> halves = split(data, {"train": 0.5, "test": 0.5})
        >>> halves.proof.comparisons, halves.proof.shared_responses
        ({'train': 1, 'test': 1}, 0)
    """
    if not all(fraction > 0 for fraction in fractions.values()) or not math.isclose(sum(fractions.values()), 1):
        raise DataError(
            "fractions are positive and sum to 1", dict(fractions), 'Give for example {"train": 0.8, "test": 0.2}.'
        )
    group = groups(data)
    size = group_sizes(data, group)
    missing = np.array(list(fractions.values())) * data.num_comparisons
    part_of = np.zeros(len(size), np.int64)
    for g in _shuffled(data, group, seed):
        part_of[g] = np.argmax(missing)
        missing[part_of[g]] -= size[g]
    of_edge = part_of[group_of_comparison(data, group)]
    parts = {name: subset(data, of_edge == i) for i, name in enumerate(fractions)}
    for name, part in parts.items():
        if part.num_comparisons == 0:
            raise DataError(
                f"nothing is left for the part {name!r}",
                {"groups": len(size), "largest": int(size.max()), "comparisons": data.num_comparisons},
                "Ask for a larger fraction, in training for example held_out=0.3, or for fewer parts: a group of "
                "prompts with common texts is not divided."
                if len(size) >= len(fractions)
                else "Give more data, or another source: prompts with a common source or common texts stay together.",
            )
    proof = prove(parts)
    proof.check()
    largest = float(size.max() / data.num_comparisons)
    warnings = ()
    if largest > 0.5:
        warnings = (
            f"One group holds {largest:.0%} of the comparisons: its prompts share a source or response texts, so the "
            "parts cannot be balanced, and short answers that recur may be what joins them.",
        )
    return Split(parts, proof, len(size), largest, warnings)


def group_folds(data: PreferenceData, folds: int, seed: int = 0) -> np.ndarray:
    """Assign every comparison to a fold for cross-validation, without dividing a group.

    Guarantees: no prompt, source or response text stands in two folds; folds hold equally many groups, or one more;
    a function of the seed and of what the data say, not of the order of rows.

    Args:
        data: the whole.
        folds: how many.
        seed: chooses among such folds.

    Returns:
        The fold of every comparison, int [E].

    Raises:
        DataError: fewer than 2 folds, or fewer groups than folds.

    Example:
        >>> from rmjax import Comparisons
        >>> pairs = Comparisons.from_pairs([0, 2], [1, 3], prompt=[0, 0, 1, 1])
        >>> texts = ("a", "b", "c", "d")
        >>> data = PreferenceData(("p", "q"), ("p", "q"), texts, pairs, np.array([1, 2]), np.zeros(2, np.float32))
        >>> sorted(group_folds(data, 2).tolist())
        [0, 1]
    """
    group = groups(data)
    size = group_sizes(data, group)
    if not 2 <= folds <= len(size):
        raise DataError(
            "there are 2 folds or more, and at least one group for each",
            {"folds": folds, "groups": len(size)},
            "Ask for another number of folds: a group of prompts with common texts is not divided.",
        )
    fold_of = np.zeros(len(size), np.int64)
    held, filled = np.zeros(folds, np.int64), np.zeros(folds, np.int64)
    for turn, g in enumerate(_shuffled(data, group, seed)):
        # Rounds: every fold gets one group before any gets another, and the emptiest chooses first.
        open_ = held == turn // folds
        fold_of[g] = np.argmin(np.where(open_, filled, np.iinfo(np.int64).max))
        held[fold_of[g]] += 1
        filled[fold_of[g]] += size[g]
    return fold_of[group_of_comparison(data, group)]


def _shuffled(data: PreferenceData, group: np.ndarray, seed: int) -> list[int]:
    """The groups in an order that depends on the seed and on their texts."""
    key: dict[int, bytes] = {}
    for g, prompt, source in zip(group.tolist(), data.prompts, data.sources, strict=True):
        text = f"{seed}\0{source}\0{same_text(prompt)}".encode()
        key[g] = min(key.get(g, b"\xff"), hashlib.blake2b(text, digest_size=16).digest())
    return sorted(key, key=lambda g: key[g])
