"""Everything that an evaluation measured, as arrays on the host."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import ArrayLike

from rmjax.comparisons import Comparisons, Ties, Unit
from rmjax.errors import DataError, ReadoutError


@dataclasses.dataclass(frozen=True)
class Provenance:
    """Where the numbers come from, in words for the page. `facts` are further rows: (label, text)."""

    model: str
    fingerprint: str
    file: str
    split: str = ""  # what was held out, and the proof that nothing stands on both sides
    facts: tuple[tuple[str, str], ...] = ()


@dataclasses.dataclass(frozen=True)
class SwapCheck:
    """Scoring the file anew with its two sides exchanged.

    Every margin must flip its sign, so margin plus swapped margin is rounding and nothing else.
    """

    comparisons: int  # how many were scored anew
    largest_sum: float  # largest |margin + swapped margin|, in logits
    kept: int  # decisions that did not flip, although the margin is more than rounding
    rounding: float = 1e-3  # logits that the arithmetic of the model may leave
    undecided: int = 0  # margins that are 0 up to rounding: nothing could flip

    @property
    def passed(self) -> bool:
        """Whether every decision flipped and every margin changed its sign and nothing else, up to rounding."""
        return self.kept == 0 and self.largest_sum <= self.rounding


def swap_check(margins: ArrayLike, swapped: ArrayLike, *, rounding: float = 1e-3) -> SwapCheck:
    """Hold margins against those of the same comparisons with their sides exchanged and scored anew.

    Args:
        margins: score of the first minus score of the second, [S].
        swapped: the same of the exchanged file, where the first is the second, [S].
        rounding: logits that the arithmetic may leave; more in bfloat16 than in float32.

    Returns:
        The check. A sum that is not a number fails it.

    Raises:
        DataError: the lengths differ.

    Example:
        >>> swap_check([1.0, -2.0], [-1.0, 2.0]).passed, swap_check([1.0], [0.5]).kept
        (True, 1)
    """
    one, other = np.asarray(margins, np.float64), np.asarray(swapped, np.float64)
    if one.shape != other.shape:
        raise DataError(
            "the exchanged file has another number of comparisons",
            {"margins": one.shape, "swapped": other.shape},
            "Score the same comparisons twice, in the same order.",
        )
    decided = ~(np.abs(one) <= rounding)  # what is not a number is not undecided
    return SwapCheck(
        comparisons=len(one),
        largest_sum=float(np.abs(one + other).max(initial=0.0)),
        kept=int((decided & (np.sign(one) != -np.sign(other))).sum()),
        rounding=rounding,
        undecided=int((~decided).sum()),
    )


@dataclasses.dataclass(frozen=True)
class Levels:
    """Smallest, mean and largest score of the file. A diagnostic of number formats; nothing plots or compares it."""

    smallest: float
    mean: float
    largest: float


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """Margins of one model on one file, with the labels and what they cluster by.

    Example:
        >>> pairs = Comparisons.from_pairs([0, 2], [1, 3], prompt=[0, 0, 1, 1])
        >>> evaluation = Evaluation(
        ...     margins=np.array([1.0, -0.5]),
        ...     comparisons=pairs,
        ...     cluster=np.array([0, 1]),
        ...     token_lengths=np.array([9, 4, 6, 6]),
        ...     provenance=Provenance("a model", "0f3a", "pairs.jsonl"),
        ... )
        >>> evaluation.used
        array([ True,  True])
    """

    margins: np.ndarray  # [E], score of the first minus score of the second, in logits
    comparisons: Comparisons  # E comparisons over N responses; weight 0 is padding
    cluster: np.ndarray  # [E] integers, the prompt or the source
    token_lengths: np.ndarray  # [N]
    provenance: Provenance
    cluster_name: str = "prompt"
    gold: np.ndarray | None = None  # [E], +1 first, -1 second, 0 undecided
    votes: np.ndarray | None = None  # [E, 4], counts of first, second, tie, cannot judge
    layer_margins: np.ndarray | None = None  # [L+1, E], the embedding first, the model's own margin last
    ties: Ties | None = None
    unit: Unit = "vote"
    abstentions: float = 0.0  # votes of "cannot judge"
    selected: bool = False  # the set was filtered by agreement
    swap: SwapCheck | None = None
    levels: Levels | None = None

    def __post_init__(self):
        edges, responses = self.comparisons.num_comparisons, self.comparisons.num_responses
        shapes = {"margins": (edges,), "cluster": (edges,), "token_lengths": (responses,), "gold": (edges,)}
        for name, shape in shapes.items():
            value = getattr(self, name)
            if value is not None and np.shape(value) != shape:
                raise DataError(
                    f"{name} does not fit the comparisons",
                    {name: np.shape(value), "expected": shape},
                    "Give one entry per comparison, and one length per response.",
                )
        for name, axis in (("votes", 0), ("layer_margins", 1)):
            value = getattr(self, name)
            if value is not None and (np.ndim(value) != 2 or np.shape(value)[axis] != edges):
                raise DataError(
                    f"{name} does not fit the comparisons",
                    {name: np.shape(value), "comparisons": edges},
                    "votes is [E, 3 or 4], layer_margins is [L+1, E].",
                )
        if self.layer_margins is not None and self.end_point_residual > 1e-3:
            raise ReadoutError(
                "the last layer's margin is not the margin of the model",
                {"largest_relative_difference": self.end_point_residual},
                "Read layers through the final norm and the head, from the same weights that scored the file.",
            )

    @property
    def used(self) -> np.ndarray:
        """Which comparisons count, [E] bool: those that are not padding."""
        return np.asarray(self.comparisons.weight) > 0

    @property
    def end_point_residual(self) -> float:
        """Largest |last layer's margin - margin|, relative to the largest margin or 1; 0 without layer margins."""
        if self.layer_margins is None or not self.used.any():
            return 0.0
        margin = np.asarray(self.margins, np.float64)[self.used]
        last = np.asarray(self.layer_margins, np.float64)[-1, self.used]
        return float(np.abs(last - margin).max() / max(1.0, np.abs(margin).max()))
