"""What a run will cost, said before it starts."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import jax
import jax.numpy as jnp

from rmjax.data.batches import empty
from rmjax.data.buckets import Bucket
from rmjax.models.config import ModelConfig
from rmjax.models.forward import forward
from rmjax.models.params import init


@dataclasses.dataclass(frozen=True)
class Cost:
    """Tokens, floating point operations and seconds. Seconds are an estimate from one timed layer of every shape."""

    tokens: int
    positions: int  # tokens and padding: what the devices compute
    flops: float
    seconds: float

    def __str__(self) -> str:
        minutes = f"{self.seconds:.0f} s" if self.seconds < 120 else f"{self.seconds / 60:.0f} min"
        share = self.tokens / max(self.positions, 1)
        work = f"{self.tokens:,} tokens ({share:.1%} of positions), {self.flops:.2e} FLOPs"
        return f"{work}, about {minutes} after compilation"


def flops_per_position(config: ModelConfig, row_length: int, trained_layers: int | None = None) -> float:
    """Floating point operations of one position in one training step.

    $$F = 2P_b\\,(L + 2L_t) + 4HK\\,T\\,(L + 2L_t)$$

    with P_b the weights of one block, L all layers, L_t the trained ones and T the row length: a matmul costs 2 per
    weight forward and 4 backward, and attention under a dense mask takes 4HK per key and layer. There is no
    vocabulary head.

    Args:
        config: the decoder.
        row_length: T.
        trained_layers: L_t; None for all, 0 for the head alone.

    Returns:
        FLOPs per position.

    Example:
        >>> config = ModelConfig(49152, 576, 1536, num_layers=30, num_heads=9, num_kv_heads=3, head_dim=64)
        >>> f"{flops_per_position(config, 256):.3g}"
        '6.9e+08'
    """
    layers = config.num_layers
    trained = layers if trained_layers is None else trained_layers
    attention = 4 * config.num_heads * config.head_dim * row_length
    return (2 * config.block_parameters + attention) * (layers + 2 * trained)


def layer_seconds(config: ModelConfig, bucket: Bucket, *, dtype: Any = jnp.float32, seconds: float = 0.3) -> float:
    """Seconds of one layer, forward and backward, on one micro-batch of this shape on the default device.

    Args:
        config: the decoder.
        bucket: the shape.
        dtype: of matmuls.
        seconds: how long to time; the best run counts.

    Returns:
        Seconds.
    """
    one = dataclasses.replace(config, num_layers=1, vocab_size=1)
    params, batch = init(jax.random.key(0), one), empty(bucket).batch

    @jax.jit
    def gradient(blocks: Any) -> Any:
        return jax.grad(lambda b: forward(dataclasses.replace(params, blocks=b), batch, one, dtype=dtype).scores.sum())(
            blocks
        )

    jax.block_until_ready(gradient(params.blocks))
    best, until = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < until:
        start = time.perf_counter()
        jax.block_until_ready(gradient(params.blocks))
        best = min(best, time.perf_counter() - start)
    return best


def estimate(
    config: ModelConfig,
    counts: dict[Bucket, int],
    tokens: int,
    trained_layers: int | None,
    *,
    devices: int = 1,
    dtype: Any = jnp.float32,
) -> Cost:
    """Cost of training on micro-batches of these shapes.

    Args:
        config: the decoder.
        counts: how many micro-batches there are of every shape.
        tokens: positions among them that hold a token.
        trained_layers: as in `flops_per_position`.
        devices: of the mesh, which share the work.
        dtype: of matmuls.

    Returns:
        The cost. Seconds leave out compilation, embeddings and the optimiser.
    """
    positions = sum(bucket.rows * bucket.length * count for bucket, count in counts.items())
    flops = sum(
        bucket.rows * bucket.length * count * flops_per_position(config, bucket.length, trained_layers)
        for bucket, count in counts.items()
    )
    trained = config.num_layers if trained_layers is None else trained_layers
    # A backward pass costs two forward passes; a frozen layer has none.
    passes = (config.num_layers + 2 * trained) / 3
    seconds = sum(count * layer_seconds(config, bucket, dtype=dtype) for bucket, count in counts.items())
    return Cost(tokens, positions, flops, passes * seconds / devices)
