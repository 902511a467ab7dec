"""Single judgements in long form, and how they pool into comparisons."""

from __future__ import annotations

import dataclasses
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from rmjax.checks import one_of, whole_numbers
from rmjax.comparisons import Comparisons
from rmjax.errors import DataError

FIRST, SECOND, TIE, CANNOT_JUDGE = range(4)

Across = Literal["group", "instructions"]


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
    group: np.ndarray | None = None  # [V] int32, the group of the annotator: experts and crowd, or countries
    instructions: np.ndarray | None = None  # [V] int32, the version of the instructions that the annotator had

    @classmethod
    def build(
        cls,
        item: ArrayLike,
        annotator: ArrayLike,
        value: ArrayLike,
        group: ArrayLike | None = None,
        instructions: ArrayLike | None = None,
    ) -> Votes:
        """Votes from vectors of equal length.

        Args:
            item: index of the judged comparison, [V].
            annotator: index of the annotator, [V].
            value: FIRST, SECOND, TIE or CANNOT_JUDGE, [V].
            group: index of the annotator's group, [V]; unknown if absent.
            instructions: index of the version of the instructions, [V]; unknown if absent.

        Returns:
            The votes.

        Raises:
            DataError: lengths differ, an index is negative or no whole number, or a value is none of the four.

        Example:
            >>> Votes.build([0], [0], [SECOND]).value
            array([1], dtype=int8)
        """
        given = {"item": item, "annotator": annotator, "group": group, "instructions": instructions}
        index = {name: whole_numbers(name, x) for name, x in given.items() if x is not None}
        # As objects, so that a list keeps what stands in it: NumPy would make a number of the True in [True, 0].
        judged = value if isinstance(value, np.ndarray) else np.asarray(value, object)
        shapes = {name: x.shape for name, x in index.items()} | {"value": judged.shape}
        if len(set(shapes.values())) > 1 or judged.ndim != 1:
            raise DataError(
                "votes are vectors of one length", shapes, "Give one item, one annotator and one value per vote."
            )
        wrong = ~np.isin(judged, (FIRST, SECOND, TIE, CANNOT_JUDGE)) | np.any([x < 0 for x in index.values()], axis=0)
        if wrong.any():
            v = int(np.flatnonzero(wrong)[0])
            raise DataError(
                "a vote is not understood",
                {"vote": v, **{name: x[v] for name, x in index.items()}, "value": judged[v]},
                "Values are 0 first, 1 second, 2 tie, 3 cannot judge; indices are not negative.",
            )
        return cls(value=whole_numbers("value", judged).astype(np.int8), **index)

    def take(self, where: ArrayLike) -> Votes:
        """The votes at these positions, or where this is true.

        Args:
            where: positions, or one truth value a vote.

        Returns:
            The votes, with all that is known of them.

        Example:
            >>> Votes.build([0, 1], [4, 5], [FIRST, TIE]).take([False, True]).item
            array([1], dtype=int32)
        """
        kept = np.asarray(where)
        given = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return dataclasses.replace(self, **{name: x[kept] for name, x in given.items() if x is not None})

    def select(
        self,
        *,
        annotator: ArrayLike | None = None,
        group: ArrayLike | None = None,
        instructions: ArrayLike | None = None,
    ) -> Votes:
        """The votes of some annotators, groups or versions of the instructions.

        Guarantees: items keep their numbers; selecting by two things is selecting by one after the other.

        Args:
            annotator: one index or several; everybody if absent.
            group: one index or several; all groups if absent.
            instructions: one index or several; all versions if absent.

        Returns:
            The votes that are of one of each, in order.

        Raises:
            DataError: an index is no whole number, or the votes do not hold what they are selected by.

        Example:
            >>> votes = Votes.build([0, 0, 1], [0, 1, 2], [FIRST, SECOND, TIE], instructions=[0, 1, 1])
            >>> votes.select(instructions=1).annotator
            array([1, 2], dtype=int32)
        """
        keep = np.ones(self.item.shape, bool)
        for name, wanted in (("annotator", annotator), ("group", group), ("instructions", instructions)):
            if wanted is not None:
                keep &= np.isin(self.labels(name), whole_numbers(name, wanted))
        return self.take(keep)

    def labels(self, name: str) -> np.ndarray:
        """The annotator, the group or the version of the instructions of every vote.

        Args:
            name: "annotator", "group" or "instructions".

        Returns:
            Indices, [V].

        Raises:
            DataError: it is none of the three, or the votes do not hold it.

        Example:
            >>> Votes.build([0], [3], [TIE], group=[1]).labels("group")
            array([1], dtype=int32)
        """
        one_of("labels", name, ("annotator", "group", "instructions"))
        held = getattr(self, name)
        if held is None:
            raise DataError(
                f"the votes do not say their {name}", {"votes": len(self.item)}, f"Give {name} to Votes.build."
            )
        return held

    def counts(self, num_items: int) -> np.ndarray:
        """Votes per item as [items, 4]: first, second, tie, cannot judge.

        Args:
            num_items: number of judged comparisons.

        Returns:
            Integer counts.

        Raises:
            DataError: a vote is on an item beyond them.

        Example:
            >>> Votes.build([1], [0], [TIE]).counts(2).tolist()
            [[0, 0, 0, 0], [0, 0, 1, 0]]
        """
        check_items(self, num_items)
        flat = self.item.astype(np.int64) * 4 + self.value
        return np.bincount(flat, minlength=4 * num_items).reshape(num_items, 4)

    def comparisons(
        self,
        first: ArrayLike,
        second: ArrayLike,
        prompt: ArrayLike,
        pool: Literal["count", "majority"] = "count",
        *,
        across: tuple[Across, ...] = (),
    ) -> Comparisons:
        """Pool the votes of every item into one comparison.

        "count" keeps every vote, which is right when annotators judge independently. "majority" keeps one vote per
        item, for the side with more votes, and a tie where neither has more: it throws the disagreement away.

        Votes of two groups, or under two versions of the instructions, are answers of two populations or to two
        questions. What they share is a matter of fact, and pooling them is a choice that the caller states.

        Guarantees: no vote of one group or version is mixed with those of another unless `across` says so; a tie
        stays a tie, and "cannot judge" adds nothing.

        Args:
            first: the first response of every item, [items].
            second: the second response of every item, [items].
            prompt: the prompt of every response, [N].
            pool: the rule.
            across: what is pooled although the votes differ in it: "group", "instructions" or both.

        Returns:
            One comparison per item, in order.

        Raises:
            DataError: the votes are of several groups or versions of the instructions and `across` does not name
                them, or `pool` is no rule, or an item has no pair, or as `Comparisons.from_votes`.

        Example:
            >>> votes = Votes.build([0, 0, 0], [0, 1, 2], [FIRST, FIRST, SECOND])
            >>> votes.comparisons([0], [1], prompt=[0, 0], pool="majority").wins_first
            array([1.], dtype=float32)
        """
        one_of("pool", pool, ("count", "majority"))
        for name in across:
            one_of("across", name, get_args(Across))
        for name in get_args(Across):
            held = getattr(self, name)
            several = 0 if held is None or name in across else len(np.unique(held))
            if several > 1:
                raise DataError(
                    f"the votes are of more than one {name}: pooling them is a choice",
                    {name: several},
                    f'Take one with Votes.select({name}=...), or look at homogeneity(votes, by="{name}") '
                    f'and say across=("{name}",).',
                )
        items = np.asarray(first).shape[0]
        if (self.item >= items).any():
            v = int(np.argmax(self.item >= items))
            raise DataError(
                "a vote is on an item that has no pair",
                {"vote": v, "item": self.item[v], "items": items},
                "Give the two responses of every item that was judged.",
            )
        counts = self.counts(items)
        a, b, tied = counts[:, FIRST], counts[:, SECOND], counts[:, TIE]
        if pool == "majority":
            any_vote = (a + b + tied) > 0
            a, b, tied = a > b, b > a, (a == b) & any_vote
        return Comparisons.from_votes(first, second, a, b, prompt, ties=tied)


def check_items(votes: Votes, num_items: int) -> None:
    """Refuse a number of items that leaves out some that were judged.

    Args:
        votes: single judgements.
        num_items: number of judged comparisons.

    Raises:
        DataError: names the first vote on an item beyond them.

    Example:
        >>> check_items(Votes.build([1], [0], [TIE]), 2)
    """
    beyond = votes.item >= num_items
    if beyond.any():
        v = int(np.argmax(beyond))
        raise DataError(
            "a vote is on an item beyond the number of items",
            {"vote": v, "item": int(votes.item[v]), "items": num_items},
            "Give the number of all items, or select votes with Votes.take.",
        )
