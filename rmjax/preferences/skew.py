"""A preference model with cycles: what a scalar cannot say, a skew-symmetric form on embeddings can."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy import optimize

from rmjax.arrays import Array, at_least_float32
from rmjax.checks import count
from rmjax.comparisons import Comparisons, Ties
from rmjax.errors import DataError, SampleSizeError
from rmjax.identifiability.tally import Tally, tally
from rmjax.losses.kernels import soft_label

# A pair of which all votes are for one side and whose margin has come this far is on its way to infinity.
_RUNAWAY = 12.0


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class SkewModel:
    r"""An embedding of every item in `rank` planes; a margin is the sum of the areas that two items span in them.

    $$\Delta_{ij} = u_i^\top R\, u_j = \sum_b (x_{ib} y_{jb} - y_{ib} x_{jb}),
      \qquad R = \operatorname{diag}\begin{pmatrix} 0 & 1 \\ -1 & 0 \end{pmatrix}$$

    Every skew-symmetric matrix of margins of rank at most twice the number of planes is of this form; Bradley-Terry is
    one plane with $(x, y) = (\theta, 1)$. What is identified is the matrix of margins, and of a pair that nobody
    judged only as far as its rank pins it down. The embedding is not: any change of basis that keeps areas leaves all
    margins alone, a matrix of determinant 1 within each plane and the symplectic group across them. Lengths, angles
    and single coordinates mean nothing.
    """

    embedding: Array  # [N, planes, 2], coordinates (x, y) of every item in every plane

    @property
    def rank(self) -> int:
        """Number of planes."""
        return self.embedding.shape[1]


@dataclasses.dataclass(frozen=True)
class SkewFit:
    """A maximum-likelihood fit of a skew model, with what shows whether it is one."""

    model: SkewModel  # float64; NaN for items that were not judged
    loss: float  # nats per vote
    gradient_norm: float  # largest slope of the loss, nats per vote and unit of the embedding
    converged: bool  # the gradient is within the tolerance, and no margin is on its way to infinity
    runaway: tuple[tuple[int, int], ...]  # pairs with all votes for one side whose margins have no finite estimate
    losses: np.ndarray  # [starts] nats per vote that the starts ended in, best first


def skew_margins(model: SkewModel, comparisons: Comparisons) -> Float[jax.Array, " E"]:
    r"""Margins of all comparisons under a skew model; 0 where a comparison is padding.

    $$\Delta_e = u_{first(e)}^\top R\, u_{second(e)}$$

    Guarantees: exchanging the sides of a comparison changes the sign and nothing else, to the last bit; an area-keeping
    change of basis changes them by rounding alone; an item that no weighted comparison reads may be not a number.

    Args:
        model: embedding of every response.
        comparisons: the judged pairs.

    Returns:
        Margins in logits, at least float32; `losses.probability` and all likelihoods take them.

    Raises:
        DataError: the embedding is not [responses, planes, 2].

    Example:
        >>> circle = Comparisons.from_pairs([0, 1, 2], [1, 2, 0], prompt=[0, 0, 0])
        >>> angle = jnp.array([0.0, 2.0, 4.0]) * jnp.pi / 3
        >>> model = SkewModel(jnp.stack([jnp.cos(angle), jnp.sin(angle)], axis=-1)[:, None])
        >>> print(np.asarray(skew_margins(model, circle), float).round(3))
        [0.866 0.866 0.866]

    Reference:
        Zhang, Zhang, Wu, Xu and Gu, General preference modeling with preference representations for aligning language
        models, arXiv 2410.02197, 2024.
    """
    u = at_least_float32(model.embedding)
    if u.ndim != 3 or u.shape[0] != comparisons.num_responses or u.shape[2] != 2:
        raise DataError(
            "an embedding has two coordinates a plane, for every response",
            {"embedding": u.shape, "responses": comparisons.num_responses},
            "Give an array [responses, planes, 2].",
        )
    first, second = jnp.asarray(comparisons.first), jnp.asarray(comparisons.second)
    used = jnp.asarray(comparisons.weight) > 0
    # A fused multiply-add rounds one product and not the other: one orientation, then the sign.
    turned = jnp.where(first > second, -1, 1).astype(u.dtype)
    low, high = (
        jnp.where(used[:, None, None], u[index], 0)
        for index in (jnp.minimum(first, second), jnp.maximum(first, second))
    )
    return turned * _areas(low, high)


def fit_skew(
    comparisons: Comparisons,
    *,
    rank: int = 1,
    ties: Ties | None = None,
    starts: int = 4,
    seed: int = 0,
    tolerance: float = 1e-7,
    max_iterations: int = 5000,
) -> SkewFit:
    r"""Maximum likelihood of a skew model: the best margins of rank at most twice the number of planes.

    $$\min_u \; \frac{1}{\sum W} \sum_{ij} \left[W_{ij}\,\ell(\Delta_{ij}) + W_{ji}\,\ell(-\Delta_{ij})\right]$$

    The problem is not convex. For every number of planes up to `rank` it is solved from the best solution with one
    plane less, from scores in one plane, and from random embeddings, by L-BFGS in float64; the best end is returned,
    and `losses` shows how the others fared. Where all votes of a pair are for one side a finite maximum need not exist:
    the fit then names the pairs that run away, and is not converged.

    Guarantees: a plane more never fits worse; the gauge is whatever the descent ended in; a seed gives one answer.

    Args:
        comparisons: the judged pairs. Items of different prompts are never compared, and their margins mean nothing.
        rank: number of planes.
        ties: "half" counts a tie as half a vote for either side, "drop" leaves it out.
        starts: random starts for every number of planes, beside the two others.
        seed: of the starts.
        tolerance: largest slope at which a fit counts as converged.
        max_iterations: of one descent.

    Returns:
        The fit; look at `converged` before anything else.

    Raises:
        DataError: as `tally`, or `rank`, `starts`, `tolerance` or `max_iterations` is not positive.
        SampleSizeError: there are no votes that count.

    Example:
        >>> circle = Comparisons.from_votes([0, 1, 2], [1, 2, 0], [8, 8, 8], [2, 2, 2], prompt=[0, 0, 0])
        >>> fit = fit_skew(circle)
        >>> chance = jax.nn.sigmoid(skew_margins(fit.model, circle))
        >>> print(fit.converged, np.asarray(chance, float).round(3))
        True [0.8 0.8 0.8]

    Reference:
        Zhang et al., arXiv 2410.02197, 2024; Balduzzi, Tuyls, Perolat and Graepel, Re-evaluating evaluation, 2018.
    """
    for name, value in (("rank", rank), ("starts", starts), ("max_iterations", max_iterations)):
        count(name, value)
    if not 0 < tolerance < np.inf:
        raise DataError("a tolerance is positive", {"tolerance": tolerance}, "Choose one, such as 1e-7.")
    votes = tally(comparisons, ties)
    if not len(votes.first):
        raise SampleSizeError("no votes count", {"votes": 0}, "Give at least one vote that is not a tie.")
    rng = np.random.default_rng(seed)
    judged, ends = np.unique([votes.first, votes.second], return_inverse=True)
    low, high = ends.reshape(2, -1)
    with jax.enable_x64():
        data = tuple(map(jnp.asarray, (low, high, votes.share, votes.votes / votes.votes.sum())))
        best, ended = np.zeros((len(judged), 0, 2)), np.zeros(0)
        for planes in range(1, rank + 1):
            # Without a start of its own, the solution with a plane less would be lost. A plane of zeros is a saddle.
            nested = np.concatenate([best, np.zeros((len(judged), 1, 2))], axis=1)
            scalar = np.zeros_like(nested)
            scalar[:, 0, 0], scalar[:, 0, 1] = _net_wins(votes, low, high, len(judged)), 1
            random = rng.normal(0, 1 / np.sqrt(planes), (starts, *nested.shape))
            nudges = rng.normal(0, 1e-2, (2, *nested.shape))
            begun = [nested + nudges[0], scalar + nudges[1], *random]
            found = [_descend(start, data, tolerance / 100, max_iterations) for start in begun]
            found.append((nested, float(_loss(nested, *data)[0])))
            found.sort(key=lambda end: end[1])
            best, ended = found[0][0], np.array([loss for _, loss in found])
        loss, slope = _loss(best, *data)
        margin = _areas(best[low], best[high])
    gradient_norm = float(np.abs(np.asarray(slope)).max())
    away = ((votes.wins_first == 0) | (votes.wins_second == 0)) & (np.abs(margin) > _RUNAWAY)
    runaway = tuple(zip(votes.first[away].tolist(), votes.second[away].tolist()))
    embedding = np.full((votes.num_items, rank, 2), np.nan)
    embedding[judged] = best
    return SkewFit(
        model=SkewModel(embedding),
        loss=float(loss),
        gradient_norm=gradient_norm,
        converged=gradient_norm <= tolerance and not runaway,
        runaway=runaway,
        losses=ended,
    )


def _areas(one: Array, other: Array) -> Any:
    """Sum over planes of the areas that two items span, [P]."""
    return (one[..., 0] * other[..., 1] - one[..., 1] * other[..., 0]).sum(axis=-1)


@jax.jit
@jax.value_and_grad
def _loss(u: Array, low: jax.Array, high: jax.Array, share: jax.Array, weight: jax.Array) -> jax.Array:
    """Nats per vote."""
    return (weight * soft_label(_areas(u[low], u[high]), share)).sum()


def _descend(
    start: np.ndarray, data: tuple[jax.Array, ...], tolerance: float, max_iterations: int
) -> tuple[np.ndarray, float]:
    """Where L-BFGS ends, and its loss."""

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = _loss(flat.reshape(start.shape), *data)
        return float(value), np.asarray(slope).ravel()

    options = {"maxiter": max_iterations, "maxfun": 2 * max_iterations, "ftol": 0.0, "gtol": tolerance, "maxcor": 20}
    end = optimize.minimize(loss, start.ravel(), jac=True, method="L-BFGS-B", options=options)
    return end.x.reshape(start.shape), float(end.fun)


def _net_wins(votes: Tally, low: np.ndarray, high: np.ndarray, items: int) -> np.ndarray:
    """A first guess at scores: log-odds of the votes that an item won, with one vote more for either side."""
    won = np.bincount(low, votes.wins_first, items) + np.bincount(high, votes.wins_second, items)
    lost = np.bincount(low, votes.wins_second, items) + np.bincount(high, votes.wins_first, items)
    return np.log((won + 1) / (lost + 1))
