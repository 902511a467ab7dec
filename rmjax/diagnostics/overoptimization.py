"""How the true reward bends as a policy moves away: distances, the two published forms, and where they peak."""

from __future__ import annotations

import dataclasses
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from rmjax.checks import one_of, real_numbers
from rmjax.errors import DataError

Method = Literal["best_of_n", "rl"]
_STEPS = 8  # of Newton: from such a start five reach the last digit


@dataclasses.dataclass(frozen=True)
class OveroptimizationCurve:
    r"""True reward over the distance $d = \sqrt{KL}$ from the reference policy, as Gao, Schulman and Hilton found it.

    $$R_{\text{best of n}}(d) = d\,(\alpha - \beta d) \qquad R_{\text{RL}}(d) = d\,(\alpha - \beta\log d)$$

    Both are empirical forms over the distances that they were fitted on: beyond those they say nothing. The reward is
    that of the reference policy at d = 0, and is a difference within prompts like any other.
    """

    method: Method
    alpha: float  # reward per root nat
    beta: float  # how fast it bends: reward per nat (best of n), or per root nat and unit of log d (RL)

    def __post_init__(self):
        one_of("method", self.method, ("best_of_n", "rl"))
        alpha, beta = (real_numbers(name, getattr(self, name), np.float64) for name in ("alpha", "beta"))
        if alpha.ndim or beta.ndim:
            raise DataError(
                "a curve has one coefficient of each kind",
                {"alpha": alpha.shape, "beta": beta.shape},
                "Make one curve for each.",
            )
        if not (np.isfinite(alpha) and 0 < beta < np.inf):
            raise DataError(
                "a curve that does not bend down has no peak",
                {"alpha": self.alpha, "beta": self.beta},
                "Give finite numbers and a positive beta.",
            )
        if not np.isfinite([self.peak.kl, self.peak.reward]).all():
            raise DataError(
                "the peak of the curve lies beyond all numbers",
                {"alpha": self.alpha, "beta": self.beta},
                "Give coefficients of like sizes; so flat a curve was fitted far from its peak.",
            )

    def reward(self, distance: ArrayLike) -> np.ndarray:
        """True reward at a distance.

        Args:
            distance: root of the Kullback-Leibler divergence from the reference policy, in root nats, any shape.

        Returns:
            The reward, above that of the reference policy.

        Raises:
            DataError: a distance is negative or not a finite number.

        Example:
            >>> OveroptimizationCurve("best_of_n", 1.0, 0.25).reward([0.0, 2.0, 4.0]).tolist()
            [0.0, 1.0, 0.0]
        """
        d = _within("a distance is the root of a divergence", distance, 0, np.finfo(np.float64).max)
        with np.errstate(over="ignore"):
            bent = d * (self.beta * d) if self.method == "best_of_n" else special.xlogy(self.beta * d, d)
            return self.alpha * d - bent

    @property
    def peak(self) -> Peak:
        r"""Where more optimisation begins to hurt.

        Best of n: $d^* = \alpha/2\beta$ and $R^* = \alpha^2/4\beta$. RL: $d^* = e^{\alpha/\beta-1}$ and
        $R^* = \beta d^*$.

        Guarantees: no distance has more reward.

        Returns:
            The peak; at the reference policy itself where best of n starts downhill.

        Example:
            >>> OveroptimizationCurve("best_of_n", 1.0, 0.25).peak.reward
            1.0
        """
        with np.errstate(over="ignore"):
            ratio = np.float64(self.alpha) / self.beta
            distance = np.maximum(ratio / 2, 0) if self.method == "best_of_n" else np.exp(ratio - 1)
            kl = distance**2
            reward = self.alpha / 2 * distance if self.method == "best_of_n" else self.beta * distance
        return Peak(*(float(x) for x in (distance, kl, reward, n_of_kl(kl))))


@dataclasses.dataclass(frozen=True)
class Peak:
    """The distance of the greatest true reward."""

    distance: float  # root nats
    kl: float  # nats
    reward: float
    n: float  # how many samples the best of n of this divergence takes


def kl_best_of_n(n: ArrayLike) -> np.ndarray:
    r"""Divergence of the best of n samples from one sample, in nats.

    $$KL = \log n - \frac{n-1}{n}$$

    Guarantees: 0 at n = 1, increasing, at most log n. Exact where scores are continuous; an upper bound where samples
    may be equal or tie.

    Args:
        n: samples that the best is taken of, 1 or more; need not be whole.

    Returns:
        The divergence, of the same shape.

    Raises:
        DataError: n is below 1 or not a number.

    Example:
        >>> kl_best_of_n([1, 4]).round(6).tolist()
        [0.0, 0.636294]

    Reference:
        Stiennon et al., Learning to summarize from human feedback, NeurIPS 2020, appendix G.3; Beirami et al.,
        Theoretical guarantees on the best-of-n alignment policy, 2024, for the bound.
    """
    n = _within("best of n takes one sample or more", n, 1)
    finite = np.minimum(n, 1e300)  # from which on the fraction is 1
    return np.log(n) - (finite - 1) / finite


def n_of_kl(kl: ArrayLike) -> np.ndarray:
    r"""How many samples the best of n takes to have this divergence: the inverse of `kl_best_of_n`.

    $$n = -1 / W_0(-e^{-1-KL})$$

    Lambert's $W$ loses half of the digits near 1, where it branches; Newton's method on $\log n$ does not.

    Guarantees: 1 at 0, increasing; `kl_best_of_n` of it is the divergence; infinite where it exceeds the largest
    number.

    Args:
        kl: divergence in nats, 0 or more.

    Returns:
        n, of the same shape; not whole in general.

    Raises:
        DataError: a divergence is negative or not a number.

    Example:
        >>> n_of_kl(kl_best_of_n([1, 64])).round(6).tolist()
        [1.0, 64.0]

    Reference:
        Corless et al., On the Lambert W function, Advances in Computational Mathematics 1996.
    """
    kl = np.minimum(_within("a divergence is no less than 0", kl, 0), 1e3)  # which has more samples than numbers reach
    t = kl + np.sqrt(2 * kl)  # log n, from above: KL = t - 1 + e^-t is convex, and Newton's steps come down to it
    for _ in range(_STEPS):
        slope = -np.expm1(-t)
        t = t - np.divide(t - slope - kl, slope, out=np.zeros_like(t), where=slope > 0)
    with np.errstate(over="ignore"):
        return np.exp(t)


def _within(what: str, value: ArrayLike, least: float, most: float = np.inf) -> np.ndarray:
    """The numbers, or an error with the first that is smaller or larger."""
    x = real_numbers("the argument", value, np.float64)
    bad = ~((x >= least) & (x <= most))
    if bad.any():
        finite = " finite" if most < np.inf else ""
        numbers = {"position": int(np.argmax(bad)), "value": x[bad].flat[0]}
        raise DataError(what, numbers, f"Give{finite} numbers of {least} or more.")
    return x
