"""An estimate: contrasts with standard errors, and refusals where there is no number."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cached_property
from typing import get_args

import numpy as np
from scipy import special

from rmjax.checks import one_of
from rmjax.comparisons import Comparisons, Rankings, Ties
from rmjax.errors import DataError, RMJaxError, SampleSizeError
from rmjax.identifiability.identify import Identification
from rmjax.preferences.influence import Errors, influence
from rmjax.preferences.linear import Gauge
from rmjax.preferences.listwise import RankingTerms
from rmjax.preferences.newton import Optimum
from rmjax.preferences.pairwise import PairTerms

# A dense covariance of so many items has 25 million numbers.
_LARGEST = 5_000


@dataclasses.dataclass(frozen=True)
class Solution:
    """What a fit computes its standard errors from."""

    terms: PairTerms | RankingTerms
    optimum: Optimum
    gauge: Gauge
    number: np.ndarray  # [N], place of an item among the unknowns; -1 where it is none
    data: Comparisons | Rankings
    ties: Ties | None = None


@dataclasses.dataclass(frozen=True)
class Contrast:
    """A difference of two scores with its standard error; adding a constant to all scores changes neither."""

    value: float  # in the unit of the link, logits but for Thurstone
    standard_error: float

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """The Wald interval at a level in (0, 1); any other is refused with a `DataError`."""
        if not 0 < level < 1:
            raise DataError("a level lies between 0 and 1", {"level": level}, "Choose 0.95, say.")
        reach = float(special.ndtri(0.5 + level / 2)) * self.standard_error
        return self.value - reach, self.value + reach


@dataclasses.dataclass(frozen=True)
class Fit:
    """An estimate, what identifies it, and how well it is known.

    Scores sum to 0 within each set of items whose contrasts are finite, and are NaN where an item has none. A score
    alone means nothing: ask for a `contrast`, or for scores relative to an item.
    """

    scores: np.ndarray  # [N] float64, in the unit of the link; NaN where no finite value exists
    parameters: dict[str, float]  # of the link: log_threshold, log_tie, position
    identification: Identification
    log_likelihood: float  # in nats, of the votes within sets whose contrasts are finite; without the penalty
    gradient_norm: float  # largest entry of the gradient of what was maximised, in votes
    iterations: int
    link: str
    penalised: bool  # a ridge or bias reduction: every score is finite, and no more is identified than before
    solution: Solution = dataclasses.field(repr=False)

    def contrast(self, first: int, second: int, *, errors: Errors = "model") -> Contrast:
        """The difference of two scores, or a refusal.

        Under a ridge or bias reduction a difference that is infinite by the votes alone has a finite value, which rests
        on the penalty; one across sets that were never compared has none either way.

        Args:
            first: index of an item.
            second: index of another.
            errors: "model" trusts the likelihood; "sandwich" holds where it is wrong, votes being independent;
                "cluster" also where votes of one cluster are not.

        Returns:
            The difference and its standard error.

        Raises:
            IdentifiabilityError: the difference is infinite or unidentified; with the cut and what would repair it.
            DataError: an index is none of an item that is there, or there are no clusters.
        """
        first, second = self._refused(first, second)
        value = 0.0 if first == second else float(self.scores[first] - self.scores[second])
        return Contrast(value, float(np.sqrt(self.contrast_variance(first, second, errors=errors))))

    def contrast_variance(self, first: int, second: int, *, errors: Errors = "model") -> float:
        """Variance of the difference of two scores: under the model, the effective resistance between them.

        Args:
            first: index of an item.
            second: index of another.
            errors: as in `contrast`.

        Returns:
            Squared units of the link.

        Raises:
            IdentifiabilityError: as `contrast`.
            DataError: as `contrast`.
        """
        first, second = self._refused(first, second)
        one_of("errors", errors, get_args(Errors))
        if first == second:
            return 0.0
        direction = np.zeros(len(self.solution.optimum.x))
        direction[self.solution.number[first]] += 1
        direction[self.solution.number[second]] -= 1
        return float(self._variance(direction[:, None], errors)[0, 0])

    def differences(self, reference: int | None = None) -> np.ndarray:
        """Scores relative to one item, or to the mean of each set whose contrasts are finite, of any number of items.

        Args:
            reference: index of an item; the mean, if unset.

        Returns:
            Scores [N], NaN where the difference from the reference is no finite number.

        Raises:
            DataError: no such item.
        """
        if reference is None:
            return self.scores.copy()
        reference, _ = self.identification.pair(reference, reference)
        together = (self.solution.number >= 0) & (self.sets == self.sets[reference])
        return np.where(together, self.scores - self.scores[reference], np.nan)

    def relative_to(self, reference: int | None = None, *, errors: Errors = "model") -> tuple[np.ndarray, np.ndarray]:
        """Scores and standard errors relative to one item, or to the mean of each set whose contrasts are finite.

        Contrasts are the same whatever the reference; these standard errors are not, and those of two items do not
        combine into that of their difference. Under a ridge and without a reference they are those of the posterior of
        a score, whose prior has mean 0.

        Args:
            reference: index of an item; the mean, if unset.
            errors: as in `contrast`.

        Returns:
            Scores [N] and standard errors [N], NaN where the difference from the reference is no finite number.

        Raises:
            DataError: no such item, or there are no clusters.
            SampleSizeError: more items than a dense covariance is made for.
        """
        scores, deviation = self.differences(reference), np.full(len(self.scores), np.nan)
        fitted = self.solution.number >= 0
        at = self.solution.number[fitted]
        self._check_size()
        directions = np.eye(len(self.solution.optimum.x))[:, at]
        if reference is not None:
            reference, _ = self.identification.pair(reference, reference)
            if self.solution.number[reference] < 0:
                return scores, deviation
            directions[self.solution.number[reference]] -= 1
        elif self.solution.gauge.free:
            block = self.solution.gauge.block
            same = block[:, None] == block[at]
            directions[: len(block)] -= same / same.sum(axis=0)
        deviation[fitted] = np.sqrt(np.diagonal(self._variance(directions, errors)))
        return scores, np.where(np.isfinite(scores), deviation, np.nan)

    def covariance(self, *, errors: Errors = "model") -> np.ndarray:
        """Covariance of the scores, each relative to the mean of its set, dense.

        Args:
            errors: as in `contrast`.

        Returns:
            [N, N]; NaN where a score is, and between sets, whose difference is no finite number. Under a ridge, that of
            the posterior, which has a number everywhere: between sets that never met, it is the prior's.

        Raises:
            SampleSizeError: more items than a dense covariance is made for.
            DataError: there are no clusters.
        """
        self._check_size()
        fitted = np.flatnonzero(self.solution.number >= 0)
        directions = np.eye(len(self.solution.optimum.x))[:, self.solution.number[fitted]]
        out = np.full((len(self.scores),) * 2, np.nan)
        if len(fitted):
            known = (self.sets[fitted][:, None] == self.sets[fitted]) | (not self.solution.gauge.free)
            out[np.ix_(fitted, fitted)] = np.where(known, self._variance(directions, errors), np.nan)
        return out

    def parameter_error(self, name: str, *, errors: Errors = "model") -> float:
        """Standard error of a parameter of the link.

        Args:
            name: of `parameters`.
            errors: as in `contrast`.

        Returns:
            In the unit of the parameter.

        Raises:
            DataError: no such parameter, or there are no clusters.
        """
        if not self.parameters:
            raise DataError(
                "the fit has no parameters", {"name": repr(name)}, "Fit a link with ties, or the effect of position."
            )
        one_of("name", name, tuple(self.parameters))
        direction = np.zeros((len(self.solution.optimum.x), 1))
        direction[self.solution.terms.items + self.solution.terms.names.index(name)] = 1
        return float(np.sqrt(self._variance(direction, errors)[0, 0]))

    def _refused(self, first: int, second: int) -> tuple[int, int]:
        """Both indices, if their difference is a number."""
        self.identification.refuse(first, second, connected=self.penalised)
        return self.identification.pair(first, second)

    @cached_property
    def _solve(self) -> Callable[[np.ndarray], np.ndarray]:
        return self.solution.gauge.solver(self.solution.optimum.hessian)

    @property
    def sets(self) -> np.ndarray:
        """The set of every item, [N]: within one set differences are finite, and between sets none is given."""
        report = self.identification
        return report.components if self.penalised else report.strong_components

    def _check_size(self) -> None:
        if len(self.solution.optimum.x) > _LARGEST:
            raise SampleSizeError(
                "a dense covariance is made for so many items and no more",
                {"items": len(self.solution.optimum.x), "most": _LARGEST},
                "Ask for single contrasts: `contrast_variance(i, j)`.",
            )

    def _variance(self, directions: np.ndarray, errors: Errors) -> np.ndarray:
        """Covariance of linear functions of the unknowns, [K, K]."""
        one_of("errors", errors, get_args(Errors))
        solved = self._solve(directions)
        if errors == "model":
            found = solved.T @ directions
            if (np.diagonal(found) < 0).any():
                raise RMJaxError(
                    "the votes are too uneven for float64: a variance came out negative",
                    {"variance": float(np.diagonal(found).min())},
                    "Weigh votes more evenly, or drop those that hardly count.",
                )
            return found
        moved = influence(self.solution, solved, errors)
        return moved.T @ moved
