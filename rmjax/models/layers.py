"""The layers of a decoder as functions of arrays."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from rmjax.arrays import accumulator, at_least_float32
from rmjax.models.config import ModelConfig


def rms_norm(x: jax.Array, gain: jax.Array, eps: float) -> jax.Array:
    """x / √(mean x² + ε) · gain over the last axis, in at least float32, in the dtype of `x`."""
    wide = at_least_float32(x)
    normed = wide * jax.lax.rsqrt(jnp.mean(wide * wide, axis=-1, keepdims=True) + eps)
    return (normed * gain.astype(wide.dtype).reshape((1,) * (x.ndim - 1) + (-1,))).astype(x.dtype)


def affine(x: jax.Array, weight: jax.Array, bias: jax.Array | None) -> jax.Array:
    """x W + b for every token: all axes of `x` [R, T, ...] behind the token are contracted.

    Tokens are flattened to one axis. With two, XLA on CPU writes a transposed copy of the activations for every
    weight gradient.
    """
    contracted = x.ndim - 2
    tokens = x.reshape(x.shape[0] * x.shape[1], -1)
    out = tokens @ weight.reshape(tokens.shape[1], -1)
    if bias is not None:
        out = out + bias.reshape(1, -1)
    return out.reshape(*x.shape[:2], *weight.shape[contracted:])


def rope_frequencies(config: ModelConfig) -> np.ndarray:
    """Rotary frequencies [K/2], rounded to float32 as the models were trained with them."""
    exponent = np.arange(0, config.head_dim, 2, dtype=np.float32) / np.float32(config.head_dim)
    frequency = 1.0 / np.power(np.float32(config.rope_theta), exponent)
    if (scaling := config.rope_scaling) is None:
        return frequency
    wavelength = 2 * np.pi / frequency
    longest = scaling.original_max_positions / scaling.low_freq_factor
    shortest = scaling.original_max_positions / scaling.high_freq_factor
    # Between the two bands the frequencies are blended linearly in original positions per wavelength.
    blend = (scaling.original_max_positions / wavelength - scaling.low_freq_factor) / (
        scaling.high_freq_factor - scaling.low_freq_factor
    )
    blended = (1 - blend) * frequency / scaling.factor + blend * frequency
    slow = np.where(wavelength > longest, frequency / scaling.factor, blended)
    return np.where(wavelength < shortest, frequency, slow).astype(np.float32)


def rope_table(depth: jax.Array, config: ModelConfig, dtype: jnp.dtype) -> tuple[jax.Array, jax.Array]:
    """Cosine and sine [R, T, K/2] of every token's position in its own text."""
    wide = accumulator(dtype)
    angle = jnp.asarray(depth, wide)[..., None] * jnp.asarray(rope_frequencies(config), wide)[None, None, :]
    return jnp.cos(angle).astype(dtype), jnp.sin(angle).astype(dtype)


def rotate(x: jax.Array, table: tuple[jax.Array, jax.Array]) -> jax.Array:
    """Rotate the halves of every head [R, T, heads, K] against each other."""
    cos, sin = (t[:, :, None, :] for t in table)
    left, right = jnp.split(x, 2, axis=-1)
    return jnp.concatenate([left * cos - right * sin, right * cos + left * sin], axis=-1)


def attention_mask(segment: jax.Array, parent: jax.Array, depth: jax.Array, window: int | None) -> jax.Array:
    """Which keys each query sees: its own segment up to itself, and all of its segment's parent.

    Padding sees padding: a row of the mask without any key would make its softmax not a number.

    Args:
        segment: of every position, [R, T]; -1 for padding.
        parent: the segment that a segment continues, at each of its positions, [R, T]; -1 for a root.
        depth: positions along the path from the root, [R, T].
        window: how far back a query sees, in depth; None for all the way.

    Returns:
        Booleans [R, T, T], query by key.

    Example:
        >>> path = np.array([[0, 1, 2]])  # a prompt of one token, and two answers of one token
        >>> attention_mask(path, np.array([[-1, 0, 0]]), np.array([[0, 1, 1]]), None)[0].astype(int)
        array([[1, 0, 0],
               [1, 1, 0],
               [1, 0, 1]])
    """
    query = lambda x: x[:, :, None]  # noqa: E731
    key = lambda x: x[:, None, :]  # noqa: E731
    distance = query(depth) - key(depth)
    seen = ((query(segment) == key(segment)) & (distance >= 0)) | (query(parent) == key(segment))
    # A root's parent is -1, which is also the segment of padding.
    seen = seen & ((key(segment) >= 0) | (query(segment) < 0))
    return seen if window is None else seen & (distance < window)


def attend(q: jax.Array, k: jax.Array, v: jax.Array, mask: jax.Array) -> jax.Array:
    """Softmax attention with grouped queries: q [R, T, H, K], k and v [R, T, G, K] -> [R, T, H, K].

    Queries that share a key head are folded into the rows of one matmul per (row, key head), and the softmax is in
    at least float32.
    """
    R, T, H, K = q.shape
    G = k.shape[2]
    M = H // G
    q = q.reshape(R, T, G, M, K).transpose(0, 2, 3, 1, 4).reshape(R, G, M * T, K)
    logits = at_least_float32(jnp.einsum("rgqk,rtgk->rgqt", q, k)) * K**-0.5
    logits = jnp.where(mask[:, None, None], logits.reshape(R, G, M, T, T), -jnp.inf).reshape(R, G, M * T, T)
    weights = jax.nn.softmax(logits, axis=-1).astype(v.dtype)
    out = jnp.einsum("rgqt,rtgk->rgqk", weights, v)
    return out.reshape(R, G, M, T, K).transpose(0, 3, 1, 2, 4).reshape(R, T, H, K)
