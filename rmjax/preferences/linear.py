"""Linear systems of a weighted Laplacian, whose null space is one constant per block of items."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cached_property
from typing import TypeAlias

import numpy as np
from scipy import linalg, sparse
from scipy.sparse import linalg as sparse_linalg

from rmjax.errors import RMJaxError

# Up to here a Cholesky factorisation is the faster way; beyond, conjugate gradients are tried before it.
FACTORISED = 64
# Up to here a full matrix is a way out where conjugate gradients do not end, or for so many columns.
DENSE = 3000
_LARGEST, _COLUMNS = 6_000, 100
# Entries a row of a graph that is nearly a path or a tree, which is factorised without filling up. On such graphs
# conjugate gradients need as many steps as the graph is long; on others the steps are few and a factor is full.
_THIN = 6
# Entries a row of a tree or a path, with a few edges more: at once, and exactly. A coarse solution has its errors at
# the light edges of an uneven tree, and steps would carry their margins to where curvature is rounding.
_TREE = 3.2
_TRIED = 500
EXACT = 1e-13

Matrix: TypeAlias = np.ndarray | sparse.csr_array


def worth_dense(entries: int, size: int) -> bool:
    """Whether a matrix is kept in full: it is small, or an eighth of it is filled and it is not large."""
    return size <= FACTORISED or (size <= DENSE and 8 * entries >= size * size)


def assemble(row: np.ndarray, column: np.ndarray, value: np.ndarray, size: int, dense: bool) -> Matrix:
    """A matrix from entries, of which those at one place are added up."""
    if not dense:
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

    def solver(self, hessian: Matrix, accuracy: float = EXACT) -> Callable[[np.ndarray], np.ndarray]:
        """The pseudo-inverse of the Hessian on the complement of the constants, as a function of vectors or columns.

        Where it is computed by conjugate gradients, they end when what is left is this share of the right-hand side.
        """
        factor: Callable[[np.ndarray], np.ndarray] | None = None
        size = len(hessian.diagonal())

        def solve(b: np.ndarray) -> np.ndarray:
            nonlocal factor
            b = self.project(b)
            many = b.ndim > 1 and (isinstance(hessian, np.ndarray) or (b.shape[1] > _COLUMNS and size <= _LARGEST))
            if factor is None and (size <= FACTORISED or many):
                factor = self._factor(hessian)
            if factor is not None:
                return self.project(factor(b))
            if b.ndim > 1:
                return np.stack([solve(column) for column in b.T], axis=1)
            entries = hessian.nnz / size if isinstance(hessian, sparse.csr_array) else np.inf
            found = None if entries <= _TREE else _by_gradients(hessian, b, accuracy, _TRIED)
            if found is None and isinstance(hessian, sparse.csr_array) and hessian.nnz <= _THIN * size:
                factor = self._factor_of_thin(hessian)
                found = factor(b)
            elif found is None and size <= DENSE:
                factor = self._factor(hessian)
                found = factor(b)
            elif found is None:
                found = _by_gradients(hessian, b, accuracy, 20 * size)
            if found is None:
                raise RMJaxError(
                    "conjugate gradients did not converge",
                    {"unknowns": size, "steps": 20 * size},
                    "The graph of comparisons is nearly cut in two; give a ridge, or fit its parts.",
                )
            return self.project(found)

        return solve

    def _factor(self, hessian: Matrix) -> Callable[[np.ndarray], np.ndarray]:
        """By Cholesky; a rank-one term per block, of the size of the Hessian, makes the constants no null space."""
        full = hessian.copy() if isinstance(hessian, np.ndarray) else hessian.toarray()
        n = len(self.block)
        if self.free:
            count = np.bincount(self.block)
            scale = np.bincount(self.block, full.diagonal()[:n])[self.block] / count[self.block] ** 2
            full[:n, :n] += np.where(self.block[:, None] == self.block, scale[:, None], 0)
        try:
            factor = linalg.cho_factor(full)
        except linalg.LinAlgError as error:
            raise _too_uneven(hessian, error) from error
        return lambda b: linalg.cho_solve(factor, b)

    def _factor_of_thin(self, hessian: sparse.csr_array) -> Callable[[np.ndarray], np.ndarray]:
        """Without fill; where the constants are a null space, the first item of every block is held at 0."""
        own, held = hessian.diagonal(), np.zeros(len(hessian.diagonal()))
        if self.free:
            _, first = np.unique(self.block, return_index=True)
            held[first] = own[first]
            # A ridge on the scores leaves no null space, and nothing to hold.
            ridged = np.abs(hessian.sum(axis=1))[: len(self.block)] > 1e-8 * own[: len(self.block)]
            held[: len(self.block)][ridged] = 0
        try:
            factor = sparse_linalg.splu(
                (hessian + sparse.diags_array(held)).tocsc(),
                permc_spec="MMD_AT_PLUS_A",
                diag_pivot_thresh=0,
                options={"SymmetricMode": True},
            )
        except RuntimeError as error:
            raise _too_uneven(hessian, error) from error

        def solve(b: np.ndarray) -> np.ndarray:
            found = self.project(factor.solve(b))
            return found + factor.solve(self.project(b - hessian @ found))  # the second step takes off what was rounded

        return solve


def _too_uneven(hessian: Matrix, problem: Exception) -> RMJaxError:
    return RMJaxError(
        "the votes are too uneven for float64: what the largest weights round is more than the smallest say",
        {"unknowns": len(hessian.diagonal()), "largest": float(hessian.diagonal().max()), "problem": str(problem)},
        "Weigh votes more evenly, or drop those that hardly count.",
    )


def _by_gradients(hessian: Matrix, b: np.ndarray, accuracy: float, steps: int) -> np.ndarray | None:
    """Conjugate gradients, with the diagonal as preconditioner; None where they do not end in so many steps."""
    precondition = sparse_linalg.aslinearoperator(sparse.diags_array(1 / hessian.diagonal()))
    found, failed = sparse_linalg.cg(hessian, b, rtol=accuracy, maxiter=steps, M=precondition)
    return None if failed else found
