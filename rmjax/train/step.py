"""The jitted heart of training: gradients of a summed loss, with margins at every layer beside it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from rmjax.batch import Batch
from rmjax.comparisons import Ties
from rmjax.losses import margins
from rmjax.models.config import ModelConfig
from rmjax.models.forward import forward
from rmjax.models.params import Params
from rmjax.train.objective import Objective, training_loss
from rmjax.train.trainable import join


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class StepReadout:
    """What one micro-batch says beside its gradient; all of it sums or per-comparison values, no means."""

    loss_sum: jax.Array  # [], nats
    count: jax.Array  # [], weighted votes
    layer_margins: jax.Array  # [L + 1, E], logits; the last row is the model's margin
    scores: jax.Array  # [N]


GradientFn = Callable[[Params, Params, Batch], tuple[Params, StepReadout]]


def loss_and_readout(
    trained: Params,
    frozen: Params,
    batch: Batch,
    config: ModelConfig,
    *,
    objective: Objective = Objective(),
    ties: Ties | None = None,
    dtype: Any = jnp.float32,
    remat: str = "none",
    layer_margins: bool = True,
) -> tuple[jax.Array, StepReadout]:
    """Summed loss of a micro-batch, and its readout.

    Args:
        trained: parameters that take a gradient, as `trainable.split` gives.
        frozen: the others.
        batch: packed rows with their comparisons.
        config: the decoder.
        objective: what is minimised.
        ties: what a link without ties does with them.
        dtype: of matmuls.
        remat: what the backward pass recomputes, as in `forward`.
        layer_margins: read margins at every layer, or at the last alone.

    Returns:
        Sum of what is minimised, and the readout, whose sum is without the penalty.
    """
    params, below = join(trained, frozen)
    out = forward(params, batch, config, below=below, dtype=dtype, remat=remat, layer_scores=layer_margins)
    minimised, loss_sum, count = training_loss(out.scores, batch.comparisons, objective, ties)
    scores = jax.lax.stop_gradient(out.scores)
    layers = scores[None] if out.layer_scores is None else out.layer_scores
    by_layer = jax.vmap(lambda s: margins(s, batch.comparisons))(layers)
    return minimised, StepReadout(jax.lax.stop_gradient(loss_sum), count, by_layer, scores)


def make_gradient_fn(config: ModelConfig, *, out_shardings: Any = None, **options: Any) -> GradientFn:
    """The jitted gradient of `loss_and_readout` in the trained parameters.

    Gradients of micro-batches add up to the gradient of their union, because the loss is a sum.

    Args:
        config: the decoder.
        out_shardings: where the gradient and the readout are left; unset, the compiler chooses.
        **options: of `loss_and_readout`.

    Returns:
        `(trained, frozen, batch) -> (gradient of the sum, readout)`, compiled once per batch shape.
    """

    def gradient(trained: Params, frozen: Params, batch: Batch) -> tuple[Params, StepReadout]:
        return jax.grad(loss_and_readout, has_aux=True)(trained, frozen, batch, config, **options)

    return jax.jit(gradient, out_shardings=out_shardings)


@jax.jit
def add(a: Any, b: Any) -> Any:
    """Sum of two gradients."""
    return jax.tree.map(jnp.add, a, b)
