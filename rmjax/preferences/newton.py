"""Newton's method for a convex likelihood whose null space is one constant per block of items."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Protocol

import numpy as np
from scipy import linalg, sparse
from scipy.sparse import linalg as sparse_linalg

from rmjax.errors import RMJaxError

# Up to here a Hessian is factorised; beyond, it stays sparse and is solved by conjugate gradients.
DENSE = 3000
_STEPS = 200
_ROUNDING = 64 * float(np.finfo(np.float64).eps)


class Objective(Protocol):
    """What is minimised."""

    def value(self, x: np.ndarray) -> float:
        """Nats."""
        ...

    def derivatives(self, x: np.ndarray) -> tuple[float, np.ndarray, sparse.csr_array]:
        """Nats, gradient and Hessian."""
        ...


@dataclasses.dataclass(frozen=True)
class Gauge:
    """Blocks of items within which one constant is free; the unknowns behind the items have none."""

    block: np.ndarray  # [items] int, the block of every item
    free: bool = True  # a penalty on the scores leaves no constant free

    def project(self, x: np.ndarray) -> np.ndarray:
        """Without the mean of every block of items; of a vector, or of the columns of a matrix."""
        if not self.free or not len(self.block):
            return x
        n, out = len(self.block), x.copy()
        member = sparse.csr_array((np.ones(n), (self.block, np.arange(n))))
        count = np.bincount(self.block)
        out[:n] -= ((member @ x[:n]).T / count).T[self.block]
        return out

    def solver(self, hessian: sparse.csr_array) -> Callable[[np.ndarray], np.ndarray]:
        """The pseudo-inverse of the Hessian on the complement of the constants, as a function."""
        size, n = hessian.shape[0], len(self.block)
        if size <= DENSE:
            full = hessian.toarray()
            if self.free:
                # A rank-one term per block, of the size of the Hessian itself, makes the constants no null space.
                count = np.bincount(self.block)
                scale = np.bincount(self.block, full.diagonal()[:n])[self.block] / count[self.block] ** 2
                full[:n, :n] += np.where(self.block[:, None] == self.block, scale[:, None], 0)
            factor = linalg.cho_factor(full)
            return lambda b: self.project(linalg.cho_solve(factor, self.project(b)))
        weight = hessian.diagonal()
        precondition = sparse_linalg.LinearOperator(hessian.shape, matvec=lambda b: self.project(b / weight))

        def solve(b: np.ndarray) -> np.ndarray:
            if b.ndim == 2:
                return np.stack([solve(column) for column in b.T], axis=1)
            found, _ = sparse_linalg.cg(hessian, self.project(b), rtol=1e-12, maxiter=20 * size, M=precondition)
            return self.project(found)

        return solve


@dataclasses.dataclass(frozen=True)
class Optimum:
    """Where the method stopped, and how well."""

    x: np.ndarray
    value: float
    gradient: np.ndarray
    hessian: sparse.csr_array
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
        step = -gauge.solver(hessian)(gradient)
        decrement = -float(gradient @ step)
        moved, reached = _descend(objective, x, value, step, decrement, positive)
        if moved is None:
            break
        x = moved
        value, gradient, hessian = objective.derivatives(x)
        # Half the decrement is how far the value is above the minimum; a last step has squared what was left.
        if decrement <= 1e-14 * max(1.0, abs(reached)) * 1e-4:
            return Optimum(x, value, gradient, hessian, iteration)
    else:
        iteration = _STEPS
    scale = _ROUNDING * float(np.abs(hessian.diagonal()).max(initial=1)) * (1 + float(np.abs(x).max(initial=0)))
    if np.abs(gradient).max(initial=0) > 1e3 * scale:
        raise RMJaxError(
            "the maximum of the likelihood was not reached",
            {"steps": iteration, "gradient": float(np.abs(gradient).max())},
            "The votes may be so uneven that the likelihood is flat; give a ridge, or report the data.",
        )
    return Optimum(x, value, gradient, hessian, iteration)


def _descend(
    objective: Objective, x: np.ndarray, value: float, step: np.ndarray, decrement: float, positive: int | None
) -> tuple[np.ndarray | None, float]:
    """The first of the step, its half, its quarter that descends; None where rounding is all that is left."""
    size = 1.0
    if positive is not None and step[positive] < 0:
        size = min(1.0, -0.9 * x[positive] / step[positive])
    for _ in range(60):
        moved = x + size * step
        reached = objective.value(moved)
        if reached <= value - 1e-4 * size * decrement + _ROUNDING * abs(value):
            return moved, reached
        size /= 2
    return None, value
