"""Newton's method for a convex likelihood whose null space is one constant per block of items."""

from __future__ import annotations

import dataclasses
from typing import Protocol

import numpy as np

from rmjax.errors import RMJaxError
from rmjax.preferences.linear import EXACT, Gauge, Matrix

_STEPS = 200
# Logits that a margin moves in one step, at most: a step that is solved coarsely may carry a margin so far that its
# curvature is rounding, and a Newton step leads nowhere from there. A first step from 0 moves margins by about 2.
_REACH = 4.0
_ROUNDING = 64 * float(np.finfo(np.float64).eps)


class Objective(Protocol):
    """What is minimised."""

    def value(self, x: np.ndarray) -> float:
        """Nats."""
        ...

    def derivatives(self, x: np.ndarray) -> tuple[float, np.ndarray, Matrix]:
        """Nats, gradient and Hessian."""
        ...

    def reach(self, step: np.ndarray) -> float:
        """The most that a step of the unknowns moves a margin, in logits."""
        ...


@dataclasses.dataclass(frozen=True)
class Optimum:
    """Where the method stopped, and how well."""

    x: np.ndarray
    value: float
    gradient: np.ndarray
    hessian: Matrix
    iterations: int


def minimise(objective: Objective, start: np.ndarray, gauge: Gauge, positive: int | None = None) -> Optimum:
    """The minimum of a convex function, from any start: steps that do not descend are halved.

    Args:
        objective: convex, with a minimum.
        start: the unknowns, items first.
        gauge: the constants that are free.
        positive: an unknown that stays above 0.

    Returns:
        The minimum, to the rounding of float64.

    Raises:
        RMJaxError: no step descends and the gradient is not rounding.
    """
    x = gauge.project(start)
    value, gradient, hessian = objective.derivatives(x)
    for iteration in range(1, _STEPS + 1):
        step = -gauge.solver(hessian, _accuracy(value, gradient, hessian))(gradient)
        decrement = -float(gradient @ step)
        # No solution of a system that has one goes up; where rounding is all that is left, the gradient says so below.
        if not decrement >= 0:
            break
        moved = _descend(objective, x, value, step, decrement, positive)
        if moved is None:
            break
        x, (value, gradient, hessian) = moved
        # Half the decrement is how far the value is above the minimum; a last step has squared what was left.
        if decrement <= 1e-18 * abs(value):
            return Optimum(x, value, gradient, hessian, iteration)
    else:
        iteration = _STEPS
    scale = _ROUNDING * float(np.abs(hessian.diagonal()).max(initial=0)) * (1 + float(np.abs(x).max(initial=0)))
    if not np.abs(gradient).max(initial=0) <= 1e3 * scale:
        raise RMJaxError(
            "the maximum of the likelihood was not reached",
            {"steps": iteration, "gradient": float(np.abs(gradient).max())},
            "The votes may be too uneven for float64; give a ridge, or drop those that hardly count.",
        )
    return Optimum(x, value, gradient, hessian, iteration)


def _accuracy(value: float, gradient: np.ndarray, hessian: Matrix) -> float:
    """How exactly a step is worth computing: to the share of the way that Newton's method leaves after it."""
    weight = hessian.diagonal()
    left = float(gradient @ np.divide(gradient, weight, out=np.zeros_like(gradient), where=weight > 0))
    return float(np.clip(np.sqrt(left / max(abs(value), np.finfo(float).tiny)), EXACT, 1e-2))


def _descend(
    objective: Objective, x: np.ndarray, value: float, step: np.ndarray, decrement: float, positive: int | None
) -> tuple[np.ndarray, tuple[float, np.ndarray, Matrix]] | None:
    """The first of the step, its half, its quarter that descends, with its derivatives; None where none does."""
    size = min(1.0, _REACH / max(objective.reach(step), _REACH))
    if positive is not None and step[positive] < 0:
        size = min(size, -0.9 * x[positive] / step[positive])
    for halvings in range(60):
        moved = x + size * step
        # Most whole steps descend, and then their derivatives are needed next.
        found = None if halvings else objective.derivatives(moved)
        reached = objective.value(moved) if found is None else found[0]
        if reached <= value - 1e-4 * size * decrement + _ROUNDING * abs(value):
            return moved, objective.derivatives(moved) if found is None else found
        size /= 2
    return None
