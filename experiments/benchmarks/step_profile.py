"""Where the time of a training step goes: its parts, each alone, for SmolLM2-135M's shape on full rows.

    python -m experiments.benchmarks.step_profile

The parts run in turn and medians are compared with the median of the whole step. `projections` are the matmuls of the
seven weights of every layer and their gradients with nothing between them: what no arrangement of the rest can save.
`attention` is softmax attention of all layers with its gradient. Random weights, no data, no network. About 3 minutes.

On 2 CPU cores, jax 0.10.2, 4 rows of 256, by this command: gradient .90 of the step and the optimiser .10, which is
paid once for however many micro-batches are accumulated. Projections are .55 and attention .14; the other .20 are
norms, rotations, activations and residuals. The forward pass alone is .24, so that a gradient costs 3.7 of it.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import tyro

from experiments.benchmarks.layer_margins import SMOLLM2_135M, pairs
from experiments.benchmarks.rows import row, write
from rmjax.batch import Batch
from rmjax.head import Head
from rmjax.models.forward import forward
from rmjax.models.layers import affine, attend, attention_mask
from rmjax.models.params import Block, init
from rmjax.train.optimizer import OptimizerConfig, make_optimizer, update
from rmjax.train.step import make_gradient_fn
from rmjax.train.trainable import split


@dataclasses.dataclass(frozen=True)
class Config:
    """What is timed."""

    rows: int = 4
    """Rows of a micro-batch."""
    length: int = 256
    """Of a row: a prefix of half of it and two answers."""
    repeats: int = 5
    """Runs of every part, after one that is not counted."""
    json: str | None = None
    """Where rows of results go."""


def main(config: Config) -> list[dict[str, Any]]:
    """Time the whole and its parts in turn."""
    batch, model = pairs(config.rows, config.length), SMOLLM2_135M
    params = init(jax.random.key(0), model)
    weight = np.random.default_rng(0).normal(0, 0.02, model.hidden_size).astype(np.float32)
    trained, frozen = split(dataclasses.replace(params, head=Head(jnp.asarray(weight))), None)
    optimizer = make_optimizer(OptimizerConfig(), 100)
    state = optimizer.init(trained)
    gradient_fn = make_gradient_fn(model)
    score_fn = jax.jit(lambda params: forward(params, batch, model).scores)
    update_fn = jax.jit(lambda t, s, g: update(optimizer, t, s, g, jnp.float32(1)))
    projections_fn, attention_fn = projections(batch), attention(batch)
    gradient, _ = gradient_fn(trained, frozen, batch)
    parts: dict[str, Callable[[], Any]] = {
        "gradient of the loss": lambda: gradient_fn(trained, frozen, batch),
        "forward pass alone": lambda: score_fn(params),
        "projections": lambda: projections_fn(params.blocks),
        "attention": lambda: attention_fn(params.blocks),
        "optimiser": lambda: update_fn(trained, state, gradient),
    }
    seconds: dict[str, list[float]] = {name: [] for name in parts}
    for repeat in range(config.repeats + 1):
        for name, part in parts.items():
            start = time.perf_counter()
            jax.block_until_ready(part())
            if repeat:
                seconds[name].append(time.perf_counter() - start)
    median = {name: float(np.median(values)) for name, values in seconds.items()}
    step = median["gradient of the loss"] + median["optimiser"]
    command = "python -m experiments.benchmarks.step_profile"
    rows = [row("tokens per second of the step", config.rows * config.length / step, "1/s", command=command)]
    rows += [
        row(f"{name}, share of the step", value / step, "share", command=command) for name, value in median.items()
    ]
    for line in rows:
        print(f"{line['name']}: {line['value']:.3g} {line['unit']}")
    if config.json:
        write(config.json, rows)
    return rows


def projections(batch: Batch) -> Callable[[Block], Any]:
    """Gradients of all projections with nothing between them: [R, T, D] -> q, k, v -> o -> gate, up -> down."""

    def layer(x: jax.Array, block: Block) -> tuple[jax.Array, None]:
        q, k, v = affine(x, block.wq, None), affine(x, block.wk, None), affine(x, block.wv, None)
        wide = q.reshape(*q.shape[:2], k.shape[2], -1, q.shape[-1]) + (k + v)[:, :, :, None]
        x = affine(wide.reshape(q.shape), block.wo, None)
        return affine(affine(x, block.w_gate, None) + affine(x, block.w_up, None), block.w_down, None), None

    def total(blocks: Block, x: jax.Array) -> jax.Array:
        return jax.lax.scan(layer, x, blocks)[0].sum()

    x = jnp.ones((*batch.tokens.shape, SMOLLM2_135M.hidden_size))
    return jax.jit(lambda blocks: jax.grad(total)(blocks, x))


def attention(batch: Batch) -> Callable[[Block], Any]:
    """Gradients of attention alone, in as many layers."""
    R, T = batch.tokens.shape
    H, G, K = SMOLLM2_135M.num_heads, SMOLLM2_135M.num_kv_heads, SMOLLM2_135M.head_dim
    mask = attention_mask(batch.segment, batch.parent, batch.depth, None)

    def layer(carry: tuple[jax.Array, ...], block: Block) -> tuple[tuple[jax.Array, ...], None]:
        q, k, v = carry
        # The gain makes every layer's attention its own, so that none is computed once for all.
        return (attend(q, k, v, mask) * block.attn_norm[0], k * block.attn_norm[1], v * block.attn_norm[2]), None

    def total(qkv: tuple[jax.Array, ...], blocks: Block) -> jax.Array:
        return jax.lax.scan(layer, qkv, blocks)[0][0].sum()

    keys = jax.random.split(jax.random.key(0), 3)
    qkv = tuple(jax.random.normal(key, (R, T, heads, K)) for key, heads in zip(keys, (H, G, G)))
    return jax.jit(lambda blocks: jax.grad(total)(qkv, blocks))


if __name__ == "__main__":
    main(tyro.cli(Config))
