"""Single judgements in long form, and how they pool into comparisons."""

from __future__ import annotations

import dataclasses
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from rmjax.comparisons import Comparisons
from rmjax.errors import DataError

FIRST, SECOND, TIE, CANNOT_JUDGE = range(4)


@dataclasses.dataclass(frozen=True)
class Votes:
    """Who judged which pair how. "Cannot judge" is kept here and is no vote in a comparison.

    Example:
        >>> votes = Votes.build(item=[0, 0, 1], annotator=[4, 5, 4], value=[FIRST, TIE, CANNOT_JUDGE])
        >>> votes.counts(num_items=2)
        array([[1, 0, 1, 0],
               [0, 0, 0, 1]])
    """

    item: np.ndarray  # [V] int32, the comparison that was judged
    annotator: np.ndarray  # [V] int32
    value: np.ndarray  # [V] int8: FIRST, SECOND, TIE or CANNOT_JUDGE

    @classmethod
    def build(cls, item: ArrayLike, annotator: ArrayLike, value: ArrayLike) -> Votes:
        """Votes from vectors of equal length.

        Args:
            item: index of the judged comparison, [V].
            annotator: index of the annotator, [V].
            value: FIRST, SECOND, TIE or CANNOT_JUDGE, [V].

        Returns:
            The votes.

        Raises:
            DataError: lengths differ, an index is negative, or a value is none of the four.

        Example:
            >>> Votes.build([0], [0], [SECOND]).value
            array([1], dtype=int8)
        """
        item, annotator, value = np.asarray(item), np.asarray(annotator), np.asarray(value)
        if not item.shape == annotator.shape == value.shape or item.ndim != 1:
            raise DataError(
                "votes are vectors of one length",
                {"item": item.shape, "annotator": annotator.shape, "value": value.shape},
                "Give one item, one annotator and one value per vote.",
            )
        wrong = ~np.isin(value, (FIRST, SECOND, TIE, CANNOT_JUDGE)) | (item < 0) | (annotator < 0)
        if wrong.any():
            v = int(np.flatnonzero(wrong)[0])
            raise DataError(
                "a vote is not understood",
                {"vote": v, "item": item[v], "annotator": annotator[v], "value": value[v]},
                "Values are 0 first, 1 second, 2 tie, 3 cannot judge; indices are not negative.",
            )
        return cls(item.astype(np.int32), annotator.astype(np.int32), value.astype(np.int8))

    def counts(self, num_items: int) -> np.ndarray:
        """Votes per item as [items, 4]: first, second, tie, cannot judge.

        Args:
            num_items: number of judged comparisons.

        Returns:
            Integer counts.

        Example:
            >>> Votes.build([1], [0], [TIE]).counts(2).tolist()
            [[0, 0, 0, 0], [0, 0, 1, 0]]
        """
        flat = self.item.astype(np.int64) * 4 + self.value
        return np.bincount(flat, minlength=4 * num_items).reshape(num_items, 4)

    def comparisons(
        self,
        first: ArrayLike,
        second: ArrayLike,
        prompt: ArrayLike,
        pool: Literal["count", "majority"] = "count",
    ) -> Comparisons:
        """Pool the votes of every item into one comparison.

        "count" keeps every vote, which is right when annotators judge independently. "majority" keeps one vote per
        item, for the side with more votes, and a tie where neither has more: it throws the disagreement away.

        Args:
            first: the first response of every item, [items].
            second: the second response of every item, [items].
            prompt: the prompt of every response, [N].
            pool: the rule.

        Returns:
            One comparison per item, in order.

        Raises:
            DataError: as `Comparisons.from_votes`.

        Example:
            >>> votes = Votes.build([0, 0, 0], [0, 1, 2], [FIRST, FIRST, SECOND])
            >>> votes.comparisons([0], [1], prompt=[0, 0], pool="majority").wins_first
            array([1.], dtype=float32)
        """
        counts = self.counts(np.asarray(first).shape[0])
        a, b, tied = counts[:, FIRST], counts[:, SECOND], counts[:, TIE]
        if pool == "majority":
            any_vote = (a + b + tied) > 0
            a, b, tied = a > b, b > a, (a == b) & any_vote
        return Comparisons.from_votes(first, second, a, b, prompt, ties=tied)
