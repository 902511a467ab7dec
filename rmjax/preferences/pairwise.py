"""The likelihood of votes on pairs as a function to minimise: value, gradient and curvature in float64.

It is the likelihood that training minimises: the losses of `rmjax.losses`, differentiated by their closed forms.
"""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
from scipy import sparse

from rmjax.losses.links import LINKS, vote_loss
from rmjax.preferences.linear import Matrix, assemble, worth_dense
from rmjax.preferences.rows import Rows


@dataclasses.dataclass(frozen=True)
class PairTerms:
    """Votes on pairs of `items` items under a link; the unknowns are their scores, then the parameters of the link."""

    rows: Rows  # items numbered from 0 to items - 1
    items: int
    link: str
    position: bool
    ridge: float = 0.0

    @property
    def names(self) -> tuple[str, ...]:
        """Parameters that are unknown besides the scores; none where nothing is fitted."""
        if not self.items:
            return ()
        own = LINKS[self.link].parameter
        return (() if own is None else (own,)) + (("position",) if self.position else ())

    def value(self, x: np.ndarray) -> float:
        """Nats at the unknowns [items + parameters], with the penalty."""
        loss, _, _ = self.terms(x, curved=False)
        return float(loss.sum()) + self.ridge / 2 * float(x[: self.items] @ x[: self.items])

    def derivatives(self, x: np.ndarray) -> tuple[float, np.ndarray, Matrix]:
        """Value, gradient and Hessian."""
        loss, slope, bend = self.terms(x)
        value = float(loss.sum()) + self.ridge / 2 * float(x[: self.items] @ x[: self.items])
        gradient = self.gather(slope)
        gradient[: self.items] += self.ridge * x[: self.items]
        return value, gradient, self.hessian(bend)

    def reach(self, step: np.ndarray) -> float:
        """The most that a step moves a margin or a parameter."""
        moved = step[self.rows.first] - step[self.rows.second]
        return float(max(np.abs(moved).max(initial=0), np.abs(step[self.items :]).max(initial=0)))

    def terms(self, x: np.ndarray, *, curved: bool = True) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Loss [E], its gradient [E, U] and Hessian [E, U, U] by margin and parameters, row by row."""
        scores, parameters = x[: self.items], x[self.items :]
        margin = scores[self.rows.first] - scores[self.rows.second]
        return row_terms(margin, parameters, self.rows, self.link, self.position, curved=curved)

    def gather(self, slope: np.ndarray) -> np.ndarray:
        """Gradient by the unknowns from the gradients of the rows."""
        of_margin = slope[:, 0]
        up = np.bincount(self.rows.first, of_margin, minlength=self.items)
        down = np.bincount(self.rows.second, of_margin, minlength=self.items)
        return np.concatenate([up - down, slope[:, 1:].sum(axis=0)])

    def hessian(self, bend: np.ndarray) -> Matrix:
        """The weighted Laplacian of the graph, bordered by the parameters."""
        i, j, size = self.rows.first, self.rows.second, self.items + len(self.names)
        c = bend[:, 0, 0]
        own = np.zeros(size)
        own[: self.items] = self.ridge
        own += np.bincount(i, c, minlength=size) + np.bincount(j, c, minlength=size)
        dense = worth_dense(2 * len(i), size)
        across = assemble(i, j, c, size, dense)
        if isinstance(across, np.ndarray):
            hessian = -(across + across.T)
            hessian[np.diag_indices(size)] += own
        else:
            hessian = (sparse.diags_array(own) - across - across.T).tocsr()
        return hessian + assemble(*self._border(bend), size, dense) if self.names else hessian

    def _border(self, bend: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Row, column and value of the entries of the parameters."""
        i, j, n = self.rows.first, self.rows.second, self.items
        row, column, value = [], [], []
        at = np.arange(n)
        for k in range(len(self.names)):
            side = bend[:, 0, k + 1]
            border = np.bincount(i, side, minlength=n) - np.bincount(j, side, minlength=n)
            row += [at, np.full(n, n + k)]
            column += [np.full(n, n + k), at]
            value += [border, border]
            for m in range(len(self.names)):
                row.append(np.array([n + k]))
                column.append(np.array([n + m]))
                value.append(np.array([bend[:, k + 1, m + 1].sum()]))
        return np.concatenate(row), np.concatenate(column), np.concatenate(value)


def row_terms(
    margin: np.ndarray, parameters: np.ndarray, rows: Rows, link: str, position: bool, *, curved: bool = True
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Loss, gradient and Hessian of every row by its margin and the parameters."""
    size = len(margin)
    votes, order = rows.padded
    with jax.enable_x64(True):
        margin = np.pad(margin, (0, len(order) - size))
        loss, slope, bend = _row_terms(margin, jnp.asarray(parameters), votes, order, link, position, curved)
        return np.asarray(loss)[:size], np.asarray(slope)[:size], np.asarray(bend)[:size]


@functools.partial(jax.jit, static_argnums=(4, 5, 6))
def _row_terms(margin, parameters, votes, order, link, position, curved):
    row = LINKS[link]

    def loss(x, votes, order):
        shown = x[0] + x[-1] * order if position else x[0]
        own = {} if row.parameter is None else {row.parameter: x[1]}
        return vote_loss(row, shown, own, tuple(votes))

    x = jnp.concatenate([margin[:, None], jnp.broadcast_to(parameters, (len(margin), len(parameters)))], axis=1)
    value, slope = jax.vmap(jax.value_and_grad(loss))(x, votes, order)
    bend = jax.vmap(jax.hessian(loss))(x, votes, order) if curved else jnp.zeros((len(margin), 0, 0))
    return value, slope, bend
