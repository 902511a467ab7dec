"""The central object: responses are nodes, judgements are edges."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Literal, get_args

import jax
import numpy as np
from jax.core import Tracer
from numpy.typing import ArrayLike

from rmjax.arrays import Array
from rmjax.checks import one_of, real_numbers, whole_numbers
from rmjax.errors import DataError

Ties = Literal["drop", "half"]
Unit = Literal["vote", "comparison", "prompt"]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Comparisons:
    """Judged pairs of responses: a fixed-shape pytree, padded with weight 0.

    Every likelihood, metric and certificate of rmjax is a function of `scores [N]` and this object. Votes are counts
    or fractions of one; a hard label is (1, 0, 0). "No judgement possible" is no vote: it adds nothing. Comparisons
    join responses of one prompt, since only differences within a prompt mean anything.

    The builders check values on the host and return NumPy arrays; the constructor checks nothing, so that JAX may
    rebuild the tree around tracers.

    Example:
        >>> pairs = Comparisons.from_pairs(chosen=[0, 2], rejected=[1, 3], prompt=[0, 0, 1, 1])
        >>> pairs.num_comparisons, pairs.num_responses
        (2, 4)
    """

    first: Array  # [E] int32, index into scores [N]
    second: Array  # [E] int32
    wins_first: Array  # [E] float32, votes for the first
    wins_second: Array  # [E] float32, votes for the second
    ties: Array  # [E] float32, votes for "equally good"
    prompt: Array  # [N] int32, the prompt that a response answers; -1 for padding
    weight: Array  # [E] float32, 0 for padding
    target_margin: Array | None = None  # [E] float32, a graded margin in logits
    order: Array | None = None  # [E] float32, +1 where the first was shown first, -1 where second, 0 unknown
    cluster: Array | None = None  # [E] int32, what intervals cluster by

    @property
    def num_comparisons(self) -> int:
        """E, padding included."""
        return self.first.shape[0]

    @property
    def num_responses(self) -> int:
        """N, padding included."""
        return self.prompt.shape[0]

    @classmethod
    def from_pairs(cls, chosen: ArrayLike, rejected: ArrayLike, prompt: ArrayLike, **optional) -> Comparisons:
        """One vote per pair, for the chosen response.

        Args:
            chosen: index of the preferred response, [E].
            rejected: index of the other one, [E].
            prompt: the prompt of every response, [N].
            **optional: `weight`, `target_margin`, `order`, `cluster`, each [E].

        Returns:
            Comparisons with hard labels.

        Raises:
            DataError: an index out of range, a response compared with itself, or two prompts in one pair.

        Example:
            >>> Comparisons.from_pairs([0], [1], prompt=[0, 0]).wins_first
            array([1.], dtype=float32)
        """
        chosen, rejected = whole_numbers("chosen", chosen), whole_numbers("rejected", rejected)
        won, lost = np.ones(chosen.shape, np.float32), np.zeros(chosen.shape, np.float32)
        return cls.from_votes(chosen, rejected, won, lost, prompt, **optional)

    @classmethod
    def from_votes(
        cls,
        first: ArrayLike,
        second: ArrayLike,
        wins_first: ArrayLike,
        wins_second: ArrayLike,
        prompt: ArrayLike,
        ties: ArrayLike | None = None,
        **optional,
    ) -> Comparisons:
        """Vote counts per pair.

        Args:
            first: index of the one response, [E].
            second: index of the other, [E].
            wins_first: votes for the first, [E]; finite and not negative.
            wins_second: votes for the second, [E].
            prompt: the prompt of every response, [N].
            ties: votes for "equally good", [E]; none if absent.
            **optional: `weight`, `target_margin`, `order`, `cluster`, each [E].

        Returns:
            Comparisons that keep every vote.

        Raises:
            DataError: names the first comparison that is out of range, compares a response with itself, joins two
                prompts, holds a vote that is negative or not finite, or a margin or an order that is none; indices
                that are no whole numbers are refused, and not rounded.

        Example:
            >>> votes = Comparisons.from_votes([0], [1], [3], [1], prompt=[7, 7], ties=[1])
            >>> float(votes.ties[0])
            1.0
        """
        first, second = whole_numbers("first", first), whole_numbers("second", second)
        edges = first.shape
        weight = optional.pop("weight", None)
        built = cls(
            first=first,
            second=second,
            wins_first=real_numbers("wins_first", wins_first, np.float32),
            wins_second=real_numbers("wins_second", wins_second, np.float32),
            ties=np.zeros(edges, np.float32) if ties is None else real_numbers("ties", ties, np.float32),
            prompt=whole_numbers("prompt", prompt),
            weight=np.ones(edges, np.float32) if weight is None else real_numbers("weight", weight, np.float32),
            **{
                name: whole_numbers(name, value) if name == "cluster" else real_numbers(name, value, np.float32)
                for name, value in optional.items()
                if value is not None
            },
        )
        _check(built)
        return built

    @classmethod
    def from_wins(cls, wins: ArrayLike, ties: ArrayLike | None = None, prompt: ArrayLike | None = None) -> Comparisons:
        """One comparison per pair of items that met, from a matrix of win counts.

        Args:
            wins: how often row beat column, [N, N]; the diagonal is ignored.
            ties: how often row and column tied, [N, N], symmetric; none if absent.
            prompt: the prompt of every item, [N]; one prompt for all if absent.

        Returns:
            Comparisons (i, j), i < j, in row order.

        Raises:
            DataError: the matrix is not square, or ties are not symmetric, or as `from_votes`.

        Example:
            >>> games = Comparisons.from_wins([[0, 3], [1, 0]])
            >>> games.wins_first, games.wins_second
            (array([3.], dtype=float32), array([1.], dtype=float32))
        """
        wins = real_numbers("wins", wins, np.float64)
        tied = np.zeros_like(wins) if ties is None else real_numbers("ties", ties, np.float64)
        if wins.ndim != 2 or wins.shape[0] != wins.shape[1] or tied.shape != wins.shape:
            raise DataError(
                "a win matrix is square, with ties of the same shape",
                {"wins": wins.shape, "ties": tied.shape},
                "Give one row and one column per item.",
            )
        if not np.array_equal(tied, tied.T, equal_nan=True):
            i, j = np.argwhere(tied != tied.T)[0]
            raise DataError(
                "the tie matrix is not symmetric",
                {"row": int(i), "column": int(j), "here": tied[i, j], "mirrored": tied[j, i]},
                "A tie counts for both sides: fill in both entries.",
            )
        # `!= 0`, so that a NaN or a negative count reaches the check that names it.
        first, second = np.nonzero(np.triu((wins != 0) | (wins.T != 0) | (tied != 0), k=1))
        everyone = np.zeros(len(wins), np.int32) if prompt is None else prompt
        return cls.from_votes(
            first, second, wins[first, second], wins[second, first], everyone, ties=tied[first, second]
        )

    @classmethod
    def from_rankings(cls, rankings: Rankings) -> Comparisons:
        """Rank-breaking: every pair of ranked responses becomes a comparison.

        This is another likelihood than that of the ranking itself: point estimates stay consistent, but the pairs of
        one ranking are not independent and standard errors that treat them so are too small. `cluster` holds that of
        the ranking, or its row where it has none, for intervals that are right.

        Args:
            rankings: orders of responses, best first.

        Returns:
            K(K-1)/2 comparisons for a ranking of K responses.

        Raises:
            DataError: as `from_votes`.

        Example:
            >>> order = Rankings.from_lists([[2, 0, 1]], prompt=[0, 0, 0])
            >>> pairs = Comparisons.from_rankings(order)
            >>> list(zip(pairs.first.tolist(), pairs.second.tolist()))
            [(2, 0), (2, 1), (0, 1)]
        """
        items, mask = np.asarray(rankings.items), np.asarray(rankings.mask, bool)
        better, worse = np.triu_indices(items.shape[1], k=1)
        stages = items.shape[1] if rankings.stages is None else np.asarray(rankings.stages)[:, None]
        row, pair = np.nonzero(mask[:, better] & mask[:, worse] & (better < stages))
        return cls.from_pairs(
            items[row, better[pair]],
            items[row, worse[pair]],
            np.asarray(rankings.prompt),
            cluster=row if rankings.cluster is None else np.asarray(rankings.cluster)[row],
            weight=np.asarray(rankings.weights)[row],
        )

    def counted(self, ties: Ties | None = None) -> np.ndarray:
        """Weighted votes that count in a likelihood without ties, per comparison.

        Args:
            ties: whether ties are among the votes that count ("half") or not.

        Returns:
            Votes, float64 [E]; 0 where a comparison says nothing.

        Raises:
            DataError: `ties` is no policy.

        Example:
            >>> Comparisons.from_votes([0, 0], [1, 1], [2, 0], [1, 0], prompt=[0, 0], ties=[0, 3]).counted("drop")
            array([3., 0.])
        """
        if ties is not None:
            one_of("ties", ties, get_args(Ties))
        votes = np.asarray(self.wins_first, np.float64) + np.asarray(self.wins_second, np.float64)
        if ties == "half":
            votes = votes + np.asarray(self.ties, np.float64)
        return np.asarray(self.weight, np.float64) * votes

    def weigh(self, unit: Unit, ties: Ties | None = None) -> Comparisons:
        """The same comparisons, weighted so that each `unit` counts as one.

        A likelihood of independent votes weighs per "vote", which is the default everywhere. Per "comparison" each
        judged pair counts as one whatever its number of votes; per "prompt" each prompt does, so that a prompt with K
        candidates is not K(K-1)/2 prompts.

        Args:
            unit: what counts as one.
            ties: whether ties are among the votes that count ("half") or not.

        Returns:
            Comparisons with another `weight`; padding stays padding.

        Raises:
            DataError: the unit is none of the three, or `ties` is no policy.

        Example:
            >>> votes = Comparisons.from_votes([0], [1], [3], [1], prompt=[0, 0])
            >>> votes.weigh("comparison").weight
            array([0.25], dtype=float32)
        """
        one_of("unit", unit, get_args(Unit))
        if unit == "vote":
            return self
        weight, share = np.asarray(self.weight, np.float64), self.counted(ties)
        if unit == "prompt":
            prompt = np.asarray(self.prompt)[np.asarray(self.first)]
            _, member = np.unique(prompt, return_inverse=True)
            share = np.bincount(member, weights=share)[member]
        scaled = np.divide(weight, share, out=np.zeros_like(weight), where=share > 0)
        return dataclasses.replace(self, weight=scaled.astype(np.float32))

    def pad(self, num_comparisons: int, num_responses: int) -> Comparisons:
        """The same comparisons at a fixed shape; what is added has weight 0 and prompt -1.

        Args:
            num_comparisons: E after padding.
            num_responses: N after padding.

        Returns:
            Comparisons of that shape.

        Raises:
            DataError: there are more comparisons or responses than that.

        Example:
            >>> Comparisons.from_pairs([0], [1], prompt=[0, 0]).pad(3, 4).weight
            array([1., 0., 0.], dtype=float32)
        """
        if num_comparisons < self.num_comparisons or num_responses < self.num_responses:
            raise DataError(
                "a padded shape cannot be smaller",
                {"comparisons": self.num_comparisons, "responses": self.num_responses},
                f"Ask for at least that many, not ({num_comparisons}, {num_responses}).",
            )

        def grow(x: Array | None, size: int, value: int) -> Any:
            return None if x is None else np.pad(np.asarray(x), (0, size - x.shape[0]), constant_values=value)

        padded = {
            field.name: grow(getattr(self, field.name), num_comparisons, 0)
            for field in dataclasses.fields(self)
            if field.name != "prompt"
        }
        return Comparisons(prompt=grow(self.prompt, num_responses, -1), **padded)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Rankings:
    """Orders of responses to one prompt, best first; partial and top-k orders are masked.

    Example:
        >>> Rankings.from_lists([[2, 0, 1], [3, 4]], prompt=[0, 0, 0, 1, 1]).mask.tolist()
        [[True, True, True], [True, True, False]]
    """

    items: Array  # [R, K] int32, responses from best to worst; 0 where masked
    mask: Array  # [R, K] bool
    prompt: Array  # [N] int32, the prompt of every response
    stages: Array | None = None  # [R] int32, choices that were observed, from the top; all, if unset
    weight: Array | None = None  # [R] float32, how often the order was given; once, if unset
    cluster: Array | None = None  # [R] int32, what intervals cluster by, such as who gave the order

    @property
    def weights(self) -> Array:
        """How often every order was given, [R]."""
        return np.ones(self.items.shape[0], np.float32) if self.weight is None else self.weight

    @classmethod
    def from_lists(
        cls,
        rankings: Sequence[Sequence[int]],
        prompt: ArrayLike,
        *,
        behind: Sequence[Sequence[int]] | None = None,
        weight: ArrayLike | None = None,
        cluster: ArrayLike | None = None,
    ) -> Rankings:
        """Rankings from lists of response indices.

        Args:
            rankings: one list per ranking, best first, of any lengths. A response that is in none of its lists was not
                shown: the order is partial.
            prompt: the prompt of every response, [N].
            behind: for top-k orders, one list per ranking of the responses that were shown and not chosen.
            weight: how often every order was given, [R]; once, if unset.
            cluster: what intervals cluster by, such as who gave the order, [R].

        Returns:
            The masked arrays.

        Raises:
            DataError: names the ranking in which a response stands twice, is out of range, or answers another prompt;
                an index or a cluster is no whole number; a weight is negative or not finite; there is not one weight or
                cluster per ranking.

        Example:
            >>> Rankings.from_lists([[1, 0]], prompt=[0, 0]).items
            array([[1, 0]], dtype=int32)
            >>> Rankings.from_lists([[1]], prompt=[0, 0, 0], behind=[[0, 2]]).stages
            array([1], dtype=int32)
        """
        prompt = whole_numbers("prompt", prompt)
        top = [len(ranking) for ranking in rankings]
        if behind is not None:
            if len(behind) != len(rankings):
                raise DataError(
                    "there is one list of responses behind for every ranking",
                    {"rankings": len(rankings), "lists": len(behind)},
                    "Give an empty list where all were ranked.",
                )
            rankings = [[*ranking, *rest] for ranking, rest in zip(rankings, behind)]
        for row, ranking in enumerate(rankings):
            if len(set(ranking)) < len(ranking):
                raise DataError(
                    "a response stands twice in one ranking",
                    {"ranking": row, "items": ranking},
                    "Rank every response once; use votes for ties.",
                )
        width = max(map(len, rankings), default=0)
        items = np.zeros((len(rankings), width), np.int32)
        mask = np.zeros((len(rankings), width), bool)
        for row, ranking in enumerate(rankings):
            items[row, : len(ranking)] = whole_numbers("ranking", ranking)
            mask[row, : len(ranking)] = True
        built = cls(
            items,
            mask,
            prompt,
            None if behind is None else np.array(top, np.int32),
            None if weight is None else real_numbers("weight", weight, np.float32),
            None if cluster is None else whole_numbers("cluster", cluster),
        )
        _check_rankings(built)
        return built


def _check_rankings(r: Rankings) -> None:
    """Check values where they enter; name the first ranking that is wrong."""
    outside = r.mask & ((r.items < 0) | (r.items >= len(r.prompt)))
    if outside.any():
        row, place = np.argwhere(outside)[0]
        raise DataError(
            "a response index is out of range",
            {"ranking": int(row), "item": int(r.items[row, place])},
            f"Indices run from 0 to {len(r.prompt) - 1}.",
        )
    prompts = np.where(r.mask, r.prompt[r.items] if len(r.prompt) else 0, r.prompt[r.items[:, :1]])
    if (prompts != prompts[:, :1]).any():
        row = int(np.flatnonzero((prompts != prompts[:, :1]).any(axis=1))[0])
        raise DataError(
            "a ranking holds answers to two prompts",
            {"ranking": row, "items": r.items[row][r.mask[row]].tolist()},
            "Rank answers to the same prompt: each prompt has a constant of its own that no ranking can see.",
        )
    if r.weight is not None:
        good = r.weight.shape == r.items.shape[:1] and np.isfinite(r.weight).all() and (r.weight >= 0).all()
        if not good:
            raise DataError(
                "there is one weight per ranking, finite and not negative",
                {"rankings": len(r.items), "weights": r.weight.shape},
                "Give how often every order was given.",
            )
    if r.cluster is not None and r.cluster.shape != r.items.shape[:1]:
        raise DataError(
            "there is one cluster per ranking",
            {"rankings": len(r.items), "clusters": r.cluster.shape},
            "Give for every order the number of who gave it.",
        )


def check_ties(comparisons: Comparisons, ties: Ties | None, *, rows: ArrayLike | None = None) -> None:
    """Refuse ties that a link without ties was not told how to treat.

    Args:
        comparisons: the judged pairs. Tracers cannot be looked at and pass.
        ties: "drop", "half" or unset; anything else is refused, also where there are none.
        rows: row of the file of every comparison, to name the first with a tie; its index is named otherwise.

    Raises:
        DataError: there are ties and `ties` is unset, or it is no policy.

    Example:
        >>> check_ties(Comparisons.from_votes([0], [1], [1], [0], prompt=[0, 0], ties=[1]), "half")
    """
    if ties is not None:
        one_of("ties", ties, get_args(Ties))
        return
    if isinstance(comparisons.ties, Tracer):
        return
    tied = np.where(np.asarray(comparisons.weight) > 0, np.asarray(comparisons.ties), 0)
    if tied.any():
        first = int(np.flatnonzero(tied)[0])
        raise DataError(
            "the votes contain ties, and Bradley-Terry has no probability for a tie",
            {"ties": float(tied.sum(dtype=np.float64))}
            | ({"first_comparison": first} if rows is None else {"row": int(np.asarray(rows)[first])}),
            'Choose ties="drop" to leave them out or ties="half" to count each as half a vote for either side; the '
            "links davidson and rao_kupper have a probability for ties.",
        )


def _check(c: Comparisons) -> None:
    """Check values where they enter; name the first comparison that is wrong."""
    edges = [f.name for f in dataclasses.fields(c) if f.name != "prompt" and getattr(c, f.name) is not None]
    shapes = {name: getattr(c, name).shape for name in edges}
    if c.prompt.ndim != 1 or any(len(s) != 1 or s != shapes["first"] for s in shapes.values()):
        raise DataError(
            "all fields of one comparison have one length, and prompt is one number per response",
            shapes | {"prompt": c.prompt.shape},
            "Give vectors of equal length.",
        )

    def refuse(wrong: Array, what: str, values: dict[str, Array], remedy: str) -> None:
        if np.any(wrong):
            e = int(np.flatnonzero(wrong)[0])
            raise DataError(what, {"comparison": e} | {k: v[e].item() for k, v in values.items()}, remedy)

    pair = {"first": c.first, "second": c.second}
    # Extremes first: they are read once, where to find the comparison that is wrong takes arrays of its own.
    if c.first.size and not (_inside(c.first, c.num_responses) and _inside(c.second, c.num_responses)):
        outside = (np.minimum(c.first, c.second) < 0) | (np.maximum(c.first, c.second) >= c.num_responses)
        refuse(outside, "a response index is out of range", pair, f"Indices run from 0 to {c.num_responses - 1}.")
    refuse(
        c.first == c.second,
        "a response is compared with itself",
        pair,
        "Drop the comparison: it says nothing.",
    )
    if c.first.size and c.prompt.min() != c.prompt.max():
        prompts = {"prompt_of_first": c.prompt[c.first], "prompt_of_second": c.prompt[c.second]}
        refuse(
            prompts["prompt_of_first"] != prompts["prompt_of_second"],
            "a comparison joins two prompts",
            pair | prompts,
            "Compare answers to the same prompt: each prompt has a constant of its own that no comparison can see.",
        )
    for name in ("wins_first", "wins_second", "ties", "weight"):
        value = getattr(c, name)
        if value.size and not (value.min() >= 0 and value.max() < np.inf):  # neither holds of what is no number
            bad = ~np.isfinite(value) | (value < 0)
            refuse(bad, f"{name} must be finite and not negative", {name: value}, "Mend the count or drop the row.")
    if (target := c.target_margin) is not None:
        refuse(
            ~np.isfinite(target), "a target margin is finite", {"target_margin": target}, "Mend it, or drop the row."
        )
    if (order := c.order) is not None:
        known = "Say +1 where the first was shown first, -1 where the second was, 0 where nobody knows."
        refuse(~np.isin(order, (-1, 0, 1)), "an order is +1, -1 or 0", {"order": order}, known)


def _inside(index: Array, items: int) -> bool:
    return bool(index.min() >= 0 and index.max() < items)
