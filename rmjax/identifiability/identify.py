"""What the data pin down: a typed report, and a refusal where others print a number."""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import Any, Literal, Protocol, get_args

import numpy as np

from rmjax.checks import one_of, whole_numbers
from rmjax.comparisons import Comparisons, Rankings, Ties
from rmjax.errors import DataError, IdentifiabilityError, SampleSizeError
from rmjax.identifiability.graph import WinGraph, win_graph
from rmjax.losses.links import WITH_TIES, LinkName, check_policy

_LARGEST = 1 << 28  # numbers of 8 bytes

Status = Literal["identified", "unidentified", "infinite"]


@dataclasses.dataclass(frozen=True)
class Cut:
    """Two sets of compared items between which every vote went one way.

    Raise all scores of the winners together: the likelihood rises without end, and no maximum exists.
    """

    winners: np.ndarray  # item indices; none of them ever lost to one of the losers
    losers: np.ndarray

    def __str__(self) -> str:
        return f"{_names(self.winners)} never lost to {_names(self.losers)}"


class Contrasts(Protocol):
    """What `Identification.contrast` asks of a fit."""

    identification: Identification

    def contrast(self, first: int, second: int) -> Any:
        """The difference of two scores, or a refusal."""


@dataclasses.dataclass(frozen=True)
class Identification:
    """What a set of comparisons can and cannot say about the scores that they come from.

    Example:
        >>> games = Comparisons.from_pairs([0, 1, 1], [1, 0, 2], prompt=[0, 0, 0, 0])
        >>> report = identify(games)
        >>> report.exists, report.status(0, 1), report.status(0, 2), report.status(0, 3)
        (False, 'identified', 'infinite', 'unidentified')
        >>> print(report.separating_cut)
        {0, 1} never lost to {2}
    """

    graph: WinGraph

    @property
    def components(self) -> np.ndarray:
        """The set of compared items that an item is in, by number, [N]; -1 for padding.

        There is one free constant per component. A response that was never compared is a component of its own.
        """
        return self.graph.components

    @property
    def strong_components(self) -> np.ndarray:
        """The set within which all contrasts are finite, by number, [N]; -1 for padding.

        In it every item beat every other one, if only through others.
        """
        return self.graph.strong_components

    @property
    def prompt(self) -> np.ndarray:
        """The prompt of every item, [N]; -1 for padding."""
        return self.graph.prompt

    @property
    def num_components(self) -> int:
        """Free constants, of which the data say nothing."""
        return int(self.components.max(initial=-1)) + 1

    @property
    def num_strong_components(self) -> int:
        """Sets within which contrasts are finite."""
        return int(self.strong_components.max(initial=-1)) + 1

    @cached_property
    def gauge_basis(self) -> np.ndarray:
        """What can be added to the scores and changes no likelihood: indicators of the components, [N, C].

        They span the null space of the Fisher information. A `SampleSizeError` says where they do not fit in memory:
        `components` says the same.
        """
        if len(self.components) * self.num_components > _LARGEST:
            raise SampleSizeError(
                "a dense basis of so many items and components does not fit in memory",
                {"items": len(self.components), "components": self.num_components},
                "Take `components`: the basis has a 1 where an item is in a component.",
            )
        basis = np.zeros((len(self.components), self.num_components))
        there = np.flatnonzero(self.components >= 0)
        basis[there, self.components[there]] = 1
        return basis

    @property
    def exists(self) -> bool:
        """Whether the likelihood has a maximum: every component is strongly connected.

        It is unique then, up to one constant per component.
        """
        return self.num_strong_components == self.num_components

    @property
    def unique(self) -> bool:
        """Whether there is one maximum up to one constant per prompt, so that all margins are identified."""
        there = self.prompt >= 0
        return self.exists and self.num_components == len(np.unique(self.prompt[there]))

    @cached_property
    def separating_cut(self) -> Cut | None:
        """The first cut that keeps the maximum from existing, and None where it exists."""
        sources = self.graph.sources()
        if not len(sources):
            return None
        winners = self.strong_components == sources[0]
        rest = (self.components == self.components[np.argmax(winners)]) & ~winners
        return Cut(np.flatnonzero(winners), np.flatnonzero(rest))

    def status(self, first: int, second: int) -> Status:
        """Whether the difference of two scores is a number.

        "infinite": one set of items never lost to another, with `first` and `second` on either side; the likelihood
        rises as the difference grows. "unidentified": any difference is as likely as any other.

        Args:
            first: index of an item.
            second: index of another.

        Returns:
            "identified", "unidentified" or "infinite".

        Raises:
            DataError: an index is none of an item that is there.
        """
        first, second = self.pair(first, second)
        if self.strong_components[first] == self.strong_components[second]:
            return "identified"
        if self.components[first] != self.components[second]:
            return "unidentified"
        above = second in self.graph.reached(first) or first in self.graph.reached(second)
        return "infinite" if above else "unidentified"

    def cut_between(self, first: int, second: int) -> Cut | None:
        """The cut that makes a difference infinite, with the winner of the two among the winners; else None.

        Args:
            first: index of an item.
            second: index of another.

        Returns:
            The losing side is all that the loser of the two ever beat, if only through others.

        Raises:
            DataError: an index is none of an item that is there.
        """
        first, second = self.pair(first, second)
        if self.status(first, second) != "infinite":
            return None
        low = second if second in self.graph.reached(first) else first
        beaten = np.isin(np.arange(len(self.components)), self.graph.reached(low))
        together = self.components == self.components[low]
        return Cut(np.flatnonzero(together & ~beaten), np.flatnonzero(beaten))

    def repair(self, first: int, second: int) -> str:
        """What would have to be judged for the difference to become a number.

        Args:
            first: index of an item.
            second: index of another.

        Returns:
            A sentence; empty where the difference is identified.

        Raises:
            DataError: an index is none of an item that is there.
        """
        first, second = self.pair(first, second)
        status = self.status(first, second)
        if status == "identified":
            return ""
        if self.prompt[first] != self.prompt[second]:
            return "Nothing can: comparisons join answers to one prompt, and each prompt has a constant of its own."
        if status == "infinite":
            low, high = (second, first) if second in self.graph.reached(first) else (first, second)
            return f"Judge {low} against {high}, or others across the cut, until wins lead from {low} back to {high}."
        if self.components[first] != self.components[second]:
            ours, theirs = (np.flatnonzero(self.components == self.components[i]) for i in (first, second))
            return f"Compare one of {_names(ours)} with one of {_names(theirs)}, until both have won."
        return f"Compare {first} with {second}, until both have won."

    def refuse(self, first: int, second: int, *, connected: bool = False) -> None:
        """Raise where the difference of two scores is no number.

        Args:
            first: index of an item.
            second: index of another.
            connected: let pass what comparisons connect, as a penalty makes those differences finite.

        Raises:
            IdentifiabilityError: the difference has another status; with the cut and what would repair it.
            DataError: an index is none of an item that is there.
        """
        first, second = self.pair(first, second)
        status = self.status(first, second)
        if status == "identified" or (connected and self.components[first] == self.components[second]):
            return
        cut = self.cut_between(first, second)
        numbers: dict[str, object] = {"first": first, "second": second, "status": status}
        if cut is not None:
            what = "the difference of two scores is infinite: it grows without end as the likelihood rises"
            numbers["cut"] = str(cut)
        else:
            what = "no comparison pins down the difference of two scores"
            ours, theirs = (_names(self._together(i)) for i in (first, second))
            numbers |= {"with_first": ours, "with_second": theirs}
        raise IdentifiabilityError(what, numbers, self.repair(first, second))

    def contrast(self, fit: Contrasts, first: int, second: int) -> Any:
        """The difference of two fitted scores.

        Args:
            fit: of the same data.
            first: index of an item.
            second: index of another.

        Returns:
            What `fit.contrast` returns.

        Raises:
            IdentifiabilityError: the difference is no number.
            DataError: the fit is of other data.
        """
        if not self.same_data(fit.identification):
            raise DataError(
                "the fit is of other data", {"items": len(self.prompt)}, "Identify the comparisons that were fitted."
            )
        return fit.contrast(first, second)

    def same_data(self, other: Identification) -> bool:
        """Whether another report is of the same items and the same wins."""
        ours, theirs = self.graph, other.graph
        return (
            np.array_equal(ours.prompt, theirs.prompt)
            and np.array_equal(ours.beats.indptr, theirs.beats.indptr)
            and np.array_equal(ours.beats.indices, theirs.beats.indices)
        )

    def pair(self, first: int, second: int) -> tuple[int, int]:
        """Two indices, checked.

        Args:
            first: index of an item.
            second: index of another.

        Returns:
            The same as integers.

        Raises:
            DataError: an index is none of an item that is there.
        """
        return self._item("first", first), self._item("second", second)

    def _together(self, item: int) -> np.ndarray:
        """All whose difference from the item is a number."""
        return np.flatnonzero(self.strong_components == self.strong_components[item])

    def _item(self, name: str, item: int) -> int:
        given = whole_numbers(name, item)
        if given.ndim:
            raise DataError("a contrast is of two items", {name: given.shape}, "Give one index for either.")
        index = int(given)
        if not 0 <= index < len(self.prompt) or self.prompt[index] < 0:
            raise DataError(
                "there is no such item", {name: index}, f"Indices run from 0 to {len(self.prompt) - 1}; -1 is padding."
            )
        return index


def identify(
    comparisons: Comparisons | Rankings, *, link: LinkName = "bradley_terry", ties: Ties | None = None
) -> Identification:
    r"""What comparisons pin down about the scores, before any is computed.

    The likelihood has a finite maximum exactly where within every set of compared items, however it is split in two,
    some item of either part beat some item of the other: the graph of wins is strongly connected. Contrasts within a
    strong component are finite, those between two of them infinite or unidentified, those across components
    unidentified.

    Guarantees: depends on who beat whom and not on how often; components, cuts and status are those of a brute-force
    search over all splits; renaming the items renames the report; an unrelated island changes nothing else.

    Args:
        comparisons: the judged pairs, or rankings, in which every item beat those behind it.
        link: under "rao_kupper" and "davidson" a tie is a datum, which bounds the difference from both sides.
        ties: what a link without ties does with them: "half" bounds it as well, "drop" leaves them out.

    Returns:
        The report.

    Raises:
        DataError: there are ties under a link that has none and `ties` is unset; a link or a policy that is none, or a
            policy under a link that has ties; or comparisons that are none.

    Example:
        >>> identify(Comparisons.from_pairs([0, 1, 2], [1, 2, 0], prompt=[0, 0, 0])).exists
        True

    Reference:
        Zermelo 1929; Ford, Solution of a ranking problem from binary comparisons, American Mathematical Monthly 1957;
        Hunter, MM algorithms for generalized Bradley-Terry models, Annals of Statistics 2004, assumption 1.
    """
    one_of("link", link, get_args(LinkName))
    check_policy(link, ties)
    return Identification(win_graph(comparisons, ties=ties, tied=link in WITH_TIES))


def _names(items: np.ndarray) -> str:
    """A set of items, cut short where it is long."""
    shown = ", ".join(map(str, items[:6]))
    return f"{{{shown}, and {len(items) - 6} more}}" if len(items) > 6 else f"{{{shown}}}"
