"""A Bradley-Terry head on frozen states: the convex yardstick that fine-tuning must reach."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import sparse

from rmjax.arrays import at_least_float32
from rmjax.batch import Batch
from rmjax.comparisons import Comparisons, Ties, check_ties
from rmjax.data.buckets import Layout
from rmjax.errors import DataError
from rmjax.head import Head
from rmjax.losses import bradley_terry, curvature
from rmjax.models.config import ModelConfig
from rmjax.models.forward import forward
from rmjax.models.layers import rms_norm
from rmjax.models.params import Params
from rmjax.train.scoring import host_batches, place


@dataclasses.dataclass(frozen=True)
class HeadFit:
    """A fitted head, and how well it is fitted."""

    head: Head
    loss: float  # nats per vote on the data of the fit, without the ridge
    gradient_norm: float  # of the penalised mean loss, in standardised features: 0 at the optimum
    steps: int


def layer_states(
    params: Params,
    layout: Layout,
    config: ModelConfig,
    *,
    dtype: Any = jnp.float32,
    progress: Callable[[int], None] = lambda tokens: None,
) -> np.ndarray:
    """States at the scored token of every response after every layer, through the final norm.

    Args:
        params: parameters; the head is not read.
        layout: the data set, cut into trees.
        config: the decoder.
        dtype: of matmuls.
        progress: called with the number of tokens of every micro-batch that is done.

    Returns:
        States [L, N, D] float32, the first layer first. A head on the last row is the model's own.

    Example:
        >>> from rmjax.data.packing import make_layout
        >>> from rmjax.data.tokenise import example
        >>> from rmjax.train.setup import open_model
        >>> model = open_model("tiny", seed=0)
        >>> layer_states(model.params, make_layout(example()), model.config).shape
        (2, 2, 64)
    """

    @jax.jit
    def read(params: Params, batch: Batch) -> jax.Array:
        def tap(site: str, layer: jax.Array, x: jax.Array) -> tuple[jax.Array, Any]:
            if site != "resid_post":
                return x, None
            return x, x.reshape(-1, x.shape[-1])[batch.score_index]

        states = forward(params, batch, config, tap=tap, dtype=dtype).reads["resid_post"]
        return rms_norm(at_least_float32(states), params.norm, config.norm_eps).astype(jnp.float32)

    states = np.full((config.num_layers, len(layout.tokenised.ids), config.hidden_size), np.nan, np.float32)
    for host in host_batches(layout, seed=None):
        real = host.response >= 0
        states[:, host.response[real]] = np.asarray(read(params, place(host.batch, None)))[:, real]
        progress(host.num_tokens)
    return states


def fit_head(
    states: np.ndarray,
    comparisons: Comparisons,
    *,
    ridge: float,
    ties: Ties | None = None,
    tolerance: float = 1e-9,
    max_steps: int = 100,
) -> HeadFit:
    r"""Maximum penalised likelihood of a linear head, by Newton's method in float64.

    $$\min_w \frac{1}{n}\sum_e w_e\,[a_e\,\ell(\Delta_e) + b_e\,\ell(-\Delta_e)] + \frac{\lambda}{2}\lVert v\rVert^2,
      \qquad \Delta_e = w \cdot (h_{first(e)} - h_{second(e)})$$

    where v is w in units of the features' spread within prompts, so that the ridge does not depend on the scale of
    the states. There is no bias: it cancels.

    Guarantees: the problem is strictly convex for a positive ridge and the fit is its one optimum, up to
    `gradient_norm`; adding one vector per prompt to its states changes nothing.

    Args:
        states: one state per response, [N, D]; those that no comparison uses may be NaN.
        comparisons: the judged pairs.
        ridge: λ, positive, per vote.
        ties: what Bradley-Terry does with ties.
        tolerance: gradient norm at which to stop.
        max_steps: Newton steps at most.

    Returns:
        The head, in the units of `states`.

    Raises:
        DataError: the ridge is not positive, ties are present without a policy, or nothing counts.

    Example:
        >>> pairs = Comparisons.from_pairs([0, 2], [1, 3], prompt=[0, 0, 1, 1])
        >>> fit = fit_head(np.array([[1.0, 0.0], [0.0, 0.0], [2.0, 1.0], [0.0, 1.0]]), pairs, ridge=0.1)
        >>> bool(fit.head.weight[0] > 0), abs(float(fit.head.weight[1])) < 1e-9
        (True, True)

    Reference:
        The curvature is the comparison graph's Laplacian with weights σ(Δ)σ(-Δ), seen through the features.
    """
    check_ties(comparisons, ties)
    if not ridge > 0:
        raise DataError(
            "a head on features needs a positive ridge",
            {"ridge": ridge},
            "Without one, separable comparisons have no finite optimum: give a small positive number.",
        )
    first, second = np.asarray(comparisons.first), np.asarray(comparisons.second)
    names = ("wins_first", "wins_second", "ties", "weight")
    a, b, tied, weight = (np.asarray(getattr(comparisons, name), np.float64) for name in names)
    half = tied / 2 if ties == "half" else 0 * tied
    a, b = weight * (a + half), weight * (b + half)
    used = (a + b) > 0
    count = float((a + b).sum())
    if not used.any():
        raise DataError("no comparison counts", {"comparisons": len(used)}, "Give comparisons with votes.")
    first, second, a, b = first[used], second[used], a[used], b[used]
    nodes, local = np.unique(np.concatenate([first, second]), return_inverse=True)
    first, second = local[: len(first)], local[len(first) :]
    raw = np.asarray(states, np.float64)[nodes]
    spread = np.sqrt(np.mean((raw[first] - raw[second]) ** 2, axis=0) / 2)
    features = raw / np.where(spread > 0, spread, 1.0)

    def from_edges(values: np.ndarray) -> np.ndarray:
        """Sum signed edge values into their nodes."""
        return np.bincount(first, values, len(nodes)) - np.bincount(second, values, len(nodes))

    def laplacian(bend: np.ndarray) -> sparse.csr_array:
        """The comparison graph's Laplacian with these weights."""
        size = (len(nodes), len(nodes))
        away = sparse.csr_array((bend, (first, second)), size)
        degree = np.bincount(first, bend, len(nodes)) + np.bincount(second, bend, len(nodes))
        return sparse.csr_array(sparse.diags_array(degree) - away - away.T)

    w, margin, norm, steps = np.zeros(features.shape[1]), np.zeros(len(first)), np.inf, 0
    with jax.enable_x64(True):
        loss_of = jax.jit(lambda m: a @ bradley_terry(m) + b @ bradley_terry(-m))
        slope_of = jax.jit(jax.grad(loss_of))
        bend_of = jax.jit(lambda m: (a + b) * curvature(m))

        def objective(w: np.ndarray) -> float:
            s = features @ w
            return float(loss_of(s[first] - s[second])) / count + ridge / 2 * float(w @ w)

        for steps in range(max_steps + 1):
            scores = features @ w
            margin = scores[first] - scores[second]
            gradient = features.T @ from_edges(np.asarray(slope_of(margin))) / count + ridge * w
            norm = float(np.linalg.norm(gradient))
            if norm <= tolerance or steps == max_steps:
                break
            bend = np.asarray(bend_of(margin)) / count
            hessian = features.T @ (laplacian(bend) @ features) + ridge * np.eye(len(w))
            direction = np.linalg.solve(hessian, gradient)
            size, here = 1.0, objective(w)
            # Newton's step may overshoot far from the optimum; halving it is enough for a convex loss.
            while objective(w - size * direction) > here - 1e-4 * size * float(gradient @ direction) and size > 1e-6:
                size /= 2
            w = w - size * direction
        loss = float(loss_of(margin)) / count
    head = w / np.where(spread > 0, spread, np.inf)
    return HeadFit(Head(jnp.asarray(head, jnp.float32)), loss, norm, steps)
