"""The one number that calibrates margins, and when there is none."""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy import optimize, special

from rmjax.comparisons import Comparisons, Ties
from rmjax.errors import DataError, IdentifiabilityError
from rmjax.identifiability.counted import counted_votes, numbers


@dataclasses.dataclass(frozen=True)
class Temperature:
    """The temperature at which margins explain votes best, and what that is worth."""

    value: float  # T*: margins / T* have the smallest negative log-likelihood
    standard_error: float  # of T*, for independent votes
    negative_log_likelihood: float  # nats per vote at T*
    before: float  # nats per vote at T = 1
    votes: float  # weighted votes that count


def best_temperature(
    margins: Float[ArrayLike, " E"], comparisons: Comparisons, *, ties: Ties | None = None
) -> Temperature:
    r"""The temperature that makes margins fit votes best.

    $$T^* = \arg\min_T \sum_e w_e\,[a_e\,\ell(\Delta_e / T) + b_e\,\ell(-\Delta_e / T)]$$

    The sum is convex in $1/T$. Its optimum lies inside exactly where margins are right more than chance, weighted by
    their size, $\sum_e w_e \Delta_e (a_e - b_e) > 0$, and some vote is against a margin. Otherwise there is none:
    margins that contradict no vote want $T \to 0$, and margins no better than chance want $T \to \infty$.

    Only $r / T$ is identified: (a r, a T) has the probabilities of (r, T).

    Guarantees: T(a r) = a T(r) for a > 0; signs of margins, and so the accuracy, stay; the likelihood is not worse
    than at T = 1; comparisons that count no vote do not matter, whatever their margin.

    Args:
        margins: score of the first minus score of the second, in logits, [E].
        comparisons: the votes.
        ties: whether a tie counts as half a vote for either side ("half") or not ("drop").

    Returns:
        The temperature, its standard error, and nats per vote with and without it.

    Raises:
        DataError: there is not one margin per comparison, one that counts is not finite, no vote counts, or there are
            ties and `ties` is unset.
        IdentifiabilityError: the optimum is at 0 or at infinity.

    Example:
        >>> votes = Comparisons.from_votes([0], [1], [6], [4], prompt=[0, 0])
        >>> print(f"{best_temperature([np.log(9)], votes).value:.3f}")  # says 0.9 where 0.6 agree
        5.419

    Reference:
        Guo et al., On calibration of modern neural networks, ICML 2017, section 4.2.
    """
    margin, first, second = _counted(margins, comparisons, ties)
    unit = np.abs(margin).max()  # beside which no margin overflows
    if unit == 0:
        raise IdentifiabilityError(
            "margins of 0 have no temperature",
            {"votes": float((first + second).sum())},
            "Give margins of a model that tells answers apart.",
        )
    z = margin / unit
    right = np.where(z > 0, first, second) @ np.abs(z)
    wrong = np.where(z > 0, second, first) @ np.abs(z)
    numbers = {"sum_of_margins_with_a_vote": right * unit, "sum_of_margins_against_one": wrong * unit}
    if right - wrong <= len(z) * np.finfo(float).eps * right:  # equal, up to what the sums round
        raise IdentifiabilityError(
            "margins that are no better than chance have their best temperature at infinity",
            numbers,
            "Report the accuracy: no scale makes these margins informative.",
        )
    with np.errstate(divide="ignore", over="ignore"):
        # x σ(-bx) <= 1 / (e b) bounds what votes with a margin pull, and those against one push at least half of it.
        largest = 2 * (first + second).sum() / (np.e * wrong)
    if not np.isfinite(largest):
        raise IdentifiabilityError(
            "margins that contradict no vote have their best temperature at 0",
            numbers,
            "Collect votes until some contradict the model, or use votes that it was not fitted to.",
        )

    def slope(b: float) -> float:
        """Derivative in b = unit / T, from terms that do not cancel within a comparison."""
        return second @ (z * special.expit(b * z)) - first @ (z * special.expit(-b * z))

    tight = {"xtol": np.finfo(float).tiny, "rtol": 4 * np.finfo(float).eps, "maxiter": 2000}
    b = optimize.root_scalar(slope, bracket=(0, largest), method="brentq", **tight).root
    curvature = (first + second) @ (np.square(z) * special.expit(b * z) * special.expit(-b * z))
    total = (first + second).sum()

    def mean_loss(scale: float) -> float:
        return float((first @ np.logaddexp(0, -scale * margin) + second @ np.logaddexp(0, scale * margin)) / total)

    error = unit / b**2 / np.sqrt(curvature)
    return Temperature(float(unit / b), float(error), mean_loss(b / unit), mean_loss(1.0), float(total))


def _counted(
    margins: ArrayLike, comparisons: Comparisons, ties: Ties | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Margins and weighted votes for either side, float64, of the comparisons that count any."""
    _, _, first, second, counts = counted_votes(comparisons, ties)
    margin = numbers("margins", margins)
    if margin.shape != comparisons.first.shape:
        raise DataError(
            "there is one margin per comparison",
            {"margins": margin.shape, "comparisons": comparisons.num_comparisons},
            "Give losses.margins(scores, comparisons).",
        )
    bad = counts[~np.isfinite(margin[counts])]
    if bad.size:
        raise DataError(
            "a margin that counts is finite",
            {"comparison": int(bad[0]), "margin": float(margin[bad[0]])},
            "Mend the score, or give the comparison weight 0.",
        )
    return margin[counts], first, second
