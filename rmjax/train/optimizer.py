"""AdamW with warm-up, decay and clipping, on gradients that arrive as a sum and a count."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

import jax
import jax.numpy as jnp
import optax

PRETRAINED_RATE = 1e-5


@dataclasses.dataclass(frozen=True)
class OptimizerConfig:
    """AdamW. Norm gains, biases and the head are not decayed."""

    learning_rate: float | None = None
    """The highest. Unset: 1e-5 for a pretrained trunk, 2e-3 for one from scratch."""
    head_learning_rate: float | None = None
    """Of the head alone; unset: the same."""
    warmup: float = 0.1
    """Share of all steps in which the rate rises."""
    decay: Literal["cosine", "linear", "constant"] = "cosine"
    """How it falls afterwards."""
    final: float = 0.1
    """The rate at the end, as a share of the highest."""
    weight_decay: float = 0.01
    """Of matrices."""
    b1: float = 0.9
    """Memory of the gradient."""
    b2: float = 0.95
    """Memory of its square."""
    eps: float = 1e-8
    """Added to the root of that square."""
    clip_norm: float = 1.0
    """Longest mean gradient of a step."""


def schedule(config: OptimizerConfig, peak: float, steps: int) -> optax.Schedule:
    """Linear warm-up to `peak`, then decay to `final` of it at the last step.

    Args:
        config: shape of the curve.
        peak: highest learning rate.
        steps: optimiser steps in all.

    Returns:
        Learning rate as a function of the step, counted from 0.

    Example:
        >>> rate = schedule(OptimizerConfig(decay="linear", warmup=0.5, final=0.0), 1.0, 4)
        >>> [round(float(rate(step)), 2) for step in range(5)]
        [0.5, 1.0, 1.0, 0.5, 0.0]
    """
    warmup = round(config.warmup * steps)
    rest = max(steps - warmup, 1)
    if config.decay == "cosine":
        after = optax.cosine_decay_schedule(peak, rest, alpha=config.final)
    elif config.decay == "linear":
        after = optax.linear_schedule(peak, peak * config.final, rest)
    else:
        after = optax.constant_schedule(peak)
    # The first step already moves: with k warm-up steps the rates are 1/k, 2/k, ..., 1.
    rising = optax.linear_schedule(peak / max(warmup, 1), peak, max(warmup - 1, 1))
    return optax.join_schedules([rising, after], [warmup]) if warmup else after


def make_optimizer(config: OptimizerConfig, steps: int) -> optax.GradientTransformation:
    """The optimiser of a run.

    Args:
        config: its numbers.
        steps: optimiser steps in all, for the schedule.

    Returns:
        An optax transformation of mean gradients of a `Params` tree.

    Example:
        >>> optimizer = make_optimizer(OptimizerConfig(), steps=100)
    """

    def adamw(peak: float) -> optax.GradientTransformation:
        return optax.adamw(
            schedule(config, peak, steps),
            config.b1,
            config.b2,
            config.eps,
            weight_decay=config.weight_decay,
            mask=_decays,
        )

    def group(params: Any) -> Any:
        is_head = lambda path: path[0] == jax.tree_util.GetAttrKey("head")  # noqa: E731
        return jax.tree_util.tree_map_with_path(lambda path, _: "head" if is_head(path) else "trunk", params)

    trunk_rate = PRETRAINED_RATE if config.learning_rate is None else config.learning_rate
    head_rate = trunk_rate if config.head_learning_rate is None else config.head_learning_rate
    by_group = optax.multi_transform({"trunk": adamw(trunk_rate), "head": adamw(head_rate)}, group)
    return optax.chain(optax.clip_by_global_norm(config.clip_norm), by_group)


def update(
    optimizer: optax.GradientTransformation, params: Any, opt_state: Any, gradient_sum: Any, count: jax.Array
) -> tuple[Any, Any, jax.Array]:
    """One step on the mean gradient `gradient_sum / count`.

    Guarantees: any split of the step's comparisons into micro-batches gives the same step; where the gradient, or a
    parameter that it leads to, is not finite, nothing moves, and the norm that is returned is not finite either.

    Args:
        optimizer: of `make_optimizer`, or any optax transformation.
        params: trained parameters.
        opt_state: the optimiser's state.
        gradient_sum: gradient of the summed loss.
        count: weighted votes in that sum.

    Returns:
        New parameters, new state, and the norm of the mean gradient before clipping.
    """
    mean = jax.tree.map(lambda g: g / count.astype(g.dtype), gradient_sum)
    norm = optax.tree.norm(mean)
    # optax corrects Adam's bias with a weakly typed integer step, which strict promotion refuses.
    with jax.numpy_dtype_promotion("standard"):
        updates, new_state = optimizer.update(mean, opt_state, params)
        new_params = optax.apply_updates(params, updates)
    whole = [jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(new_params)]
    sound = jnp.isfinite(norm) & jnp.stack(whole).all()
    keep = lambda new, old: jnp.where(sound, new, old)  # noqa: E731
    moved, state = jax.tree.map(keep, new_params, params), jax.tree.map(keep, new_state, opt_state)
    return moved, state, jnp.where(sound, norm, jnp.nan)


def _decays(params: Any) -> Any:
    """True at matrices: norm gains, biases and the head keep their size."""
    flat = {"attn_norm", "mlp_norm", "q_norm", "k_norm", "norm", "weight", "bias"}

    def decays(path, _) -> bool:
        name = path[-1].name
        return name not in flat and not name.startswith("b")

    return jax.tree_util.tree_map_with_path(decays, params)
