"""What a run will cost, said before it starts."""

from __future__ import annotations

import dataclasses
import time

import jax
import jax.numpy as jnp

from rmjax.models.config import ModelConfig

# Of the matmul rate of the device, what a whole training step reaches; measured with SmolLM2-135M in rows of 256 on
# 2 CPU cores, where the rest is attention under a dense mask, norms and memory traffic.
_STEP_EFFICIENCY = 0.6


@dataclasses.dataclass(frozen=True)
class Cost:
    """Tokens, floating point operations and seconds. Seconds are an estimate from one timed matmul."""

    tokens: int
    positions: int  # tokens and padding: what the devices compute
    flops: float
    seconds: float

    def __str__(self) -> str:
        minutes = f"{self.seconds:.0f} s" if self.seconds < 120 else f"{self.seconds / 60:.0f} min"
        share = self.tokens / max(self.positions, 1)
        return f"{self.tokens:,} tokens ({share:.1%} of positions), {self.flops:.2e} FLOPs, about {minutes}"


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


def matmul_rate(seconds: float = 0.2) -> float:
    """FLOPs per second of a float32 matmul of a usual shape on the default device, timed for a moment.

    Args:
        seconds: how long to time.

    Returns:
        FLOPs per second.
    """
    size = 768
    x = jnp.ones((size, size))
    multiply = jax.jit(lambda a: a @ a / size)
    jax.block_until_ready(multiply(x))
    start, count = time.perf_counter(), 0
    while (elapsed := time.perf_counter() - start) < seconds:
        x = jax.block_until_ready(multiply(x))
        count += 1
    return count * 2 * size**3 / elapsed


def estimate(config: ModelConfig, shapes: dict[tuple[int, int], int], tokens: int, trained_layers: int | None) -> Cost:
    """Cost of training on micro-batches of these shapes.

    Args:
        config: the decoder.
        shapes: how many micro-batches there are of each (rows, length).
        tokens: positions among them that hold a token.
        trained_layers: as in `flops_per_position`.

    Returns:
        The cost.
    """
    positions = sum(rows * length * count for (rows, length), count in shapes.items())
    flops = sum(
        rows * length * count * flops_per_position(config, length, trained_layers)
        for (rows, length), count in shapes.items()
    )
    return Cost(tokens, positions, flops, flops / (matmul_rate() * _STEP_EFFICIENCY * jax.device_count()))
