"""Newton's method for a convex likelihood whose null space is one constant per block of items."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cached_property
from typing import Protocol, TypeAlias

import numpy as np
from scipy import linalg, sparse
from scipy.sparse import linalg as sparse_linalg

from rmjax.errors import RMJaxError

# Up to here a Hessian is a full matrix; beyond, it stays sparse and is solved by conjugate gradients.
DENSE = 3000
# Up to here a factorisation is the faster way; beyond, so many steps of conjugate gradients are tried before it.
FACTORISED = 64
_TRIED = 100
# For more columns than this a factorisation is worth a full matrix, of 300 MB at the most.
_COLUMNS = 100
_LARGEST = 6_000
_STEPS = 200
_EXACT = 1e-13
_ROUNDING = 64 * float(np.finfo(np.float64).eps)


Matrix: TypeAlias = np.ndarray | sparse.csr_array


class Objective(Protocol):
    """What is minimised."""

    def value(self, x: np.ndarray) -> float:
        """Nats."""
        ...

    def derivatives(self, x: np.ndarray) -> tuple[float, np.ndarray, Matrix]:
        """Nats, gradient and Hessian."""
        ...


def assemble(row: np.ndarray, column: np.ndarray, value: np.ndarray, size: int) -> Matrix:
    """A matrix from entries, of which those at one place are added up."""
    if size > DENSE:
        return sparse.coo_array((value, (row, column)), shape=(size, size)).tocsr()
    flat = np.bincount(row * size + column, value, minlength=size * size)  # of integers where there is no entry
    return flat.astype(np.float64, copy=False).reshape(size, size)


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
        out[:n] -= (self._mean @ x[:n])[self.block]
        return out

    @cached_property
    def _mean(self) -> Matrix:
        """The mean of every block, as a matrix."""
        at, count = np.arange(len(self.block)), np.bincount(self.block)
        if len(at) <= FACTORISED:
            mean = np.zeros((len(count), len(at)))
            mean[self.block, at] = 1 / count[self.block]
            return mean
        return sparse.csr_array((1 / count[self.block], (self.block, at)))

    def solver(self, hessian: Matrix, accuracy: float = _EXACT) -> Callable[[np.ndarray], np.ndarray]:
        """The pseudo-inverse of the Hessian on the complement of the constants, as a function of vectors or columns.

        Where it is computed by conjugate gradients, they end when what is left is this share of the right-hand side.
        """
        factor = None

        def solve(b: np.ndarray) -> np.ndarray:
            nonlocal factor
            b = self.project(b)
            if isinstance(hessian, np.ndarray):
                direct = factor is not None or b.ndim > 1 or len(b) <= FACTORISED
                found = None if direct else _by_gradients(hessian, b, accuracy, _TRIED)
                if found is None:
                    factor = self._factor(hessian) if factor is None else factor
                    found = linalg.cho_solve(factor, b)
                return self.project(found)
            if b.ndim > 1 and b.shape[1] > _COLUMNS and len(b) <= _LARGEST:
                return self.project(linalg.cho_solve(self._factor(hessian.toarray()), b))
            if b.ndim > 1:
                return np.stack([solve(column) for column in b.T], axis=1)
            found = _by_gradients(hessian, b, accuracy, 20 * len(b))
            if found is None:
                raise RMJaxError(
                    "conjugate gradients did not converge",
                    {"unknowns": len(b), "steps": 20 * len(b)},
                    "The graph of comparisons is nearly cut in two; give a ridge, or fit its parts.",
                )
            return self.project(found)

        return solve

    def _factor(self, hessian: np.ndarray) -> tuple[np.ndarray, bool]:
        """Cholesky factor; a rank-one term per block, of the size of the Hessian, makes the constants no null space."""
        full, n = hessian.copy(), len(self.block)
        if self.free:
            count = np.bincount(self.block)
            scale = np.bincount(self.block, full.diagonal()[:n])[self.block] / count[self.block] ** 2
            full[:n, :n] += np.where(self.block[:, None] == self.block, scale[:, None], 0)
        try:
            return linalg.cho_factor(full)
        except linalg.LinAlgError as error:
            raise RMJaxError(
                "the votes are too uneven for float64: what the largest weights round is more than the smallest say",
                {"unknowns": len(full), "largest": float(full.diagonal().max()), "problem": str(error)},
                "Weigh votes more evenly, or drop those that hardly count.",
            ) from error


def _by_gradients(hessian: Matrix, b: np.ndarray, accuracy: float, steps: int) -> np.ndarray | None:
    """Conjugate gradients, with the diagonal as preconditioner; None where they do not end in so many steps."""
    precondition = sparse_linalg.aslinearoperator(sparse.diags_array(1 / hessian.diagonal()))
    found, failed = sparse_linalg.cg(hessian, b, rtol=accuracy, maxiter=steps, M=precondition)
    return None if failed else found


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
    if np.abs(gradient).max(initial=0) > 1e3 * scale:
        raise RMJaxError(
            "the maximum of the likelihood was not reached",
            {"steps": iteration, "gradient": float(np.abs(gradient).max())},
            "The votes may be so uneven that the likelihood is flat; give a ridge, or report the data.",
        )
    return Optimum(x, value, gradient, hessian, iteration)


def _accuracy(value: float, gradient: np.ndarray, hessian: Matrix) -> float:
    """How exactly a step is worth computing: to the share of the way that Newton's method leaves after it."""
    weight = hessian.diagonal()
    left = float(gradient @ np.divide(gradient, weight, out=np.zeros_like(gradient), where=weight > 0))
    return float(np.clip(np.sqrt(left / max(abs(value), np.finfo(float).tiny)), _EXACT, 1e-2))


def _descend(
    objective: Objective, x: np.ndarray, value: float, step: np.ndarray, decrement: float, positive: int | None
) -> tuple[np.ndarray, tuple[float, np.ndarray, Matrix]] | None:
    """The first of the step, its half, its quarter that descends, with its derivatives; None where none does."""
    size = 1.0
    if positive is not None and step[positive] < 0:
        size = min(1.0, -0.9 * x[positive] / step[positive])
    for halvings in range(60):
        moved = x + size * step
        # Most whole steps descend, and then their derivatives are needed next.
        found = None if halvings else objective.derivatives(moved)
        reached = objective.value(moved) if found is None else found[0]
        if reached <= value - 1e-4 * size * decrement + _ROUNDING * abs(value):
            return moved, objective.derivatives(moved) if found is None else found
        size /= 2
    return None
