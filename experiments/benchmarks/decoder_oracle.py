"""A plain Llama decoder in float64 NumPy: another formula for what `rmjax.models.forward` computes."""

from __future__ import annotations

import numpy as np

from rmjax.models import ModelConfig, Params


def decoder_states(params: Params, tokens: np.ndarray, config: ModelConfig) -> np.ndarray:
    """The residual stream of plain, unpacked texts.

    Args:
        params: of a Llama: no biases, no norms of queries and keys, no window, no scaling.
        tokens: token ids from position 0, [N, T].
        config: the decoder.

    Returns:
        [L + 1, N, T, D] float64: the embedding, and the stream after every layer.
    """
    length, blocks = tokens.shape[1], params.blocks
    group = config.num_heads // config.num_kv_heads
    half = config.head_dim // 2
    # One complex number per pair of coordinates: rotary embedding is a multiplication by e^{iθt}.
    turn = np.exp(1j * np.outer(np.arange(length), config.rope_theta ** (-np.arange(half) / half)))[None, :, None]
    future = np.triu(np.full((length, length), -np.inf), k=1)

    def rotate(x: np.ndarray) -> np.ndarray:
        z = (x[..., :half] + 1j * x[..., half:]) * turn
        return np.concatenate([z.real, z.imag], axis=-1)

    def layer(x: np.ndarray, at: int) -> np.ndarray:
        w = {name: np.asarray(getattr(blocks, name)[at], np.float64) for name in _WEIGHTS}
        h = rms_norm(x, w["attn_norm"], config.norm_eps)
        q, k, v = (np.tensordot(h, w[name], axes=1) for name in ("wq", "wk", "wv"))
        k, v = np.repeat(rotate(k), group, axis=2), np.repeat(v, group, axis=2)
        q, k, v = (np.swapaxes(z, 1, 2) for z in (rotate(q), k, v))
        logits = q @ np.swapaxes(k, 2, 3) / np.sqrt(config.head_dim) + future
        weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
        heads = np.swapaxes((weights / weights.sum(axis=-1, keepdims=True)) @ v, 1, 2)
        x = x + np.tensordot(heads, w["wo"], axes=2)
        h = rms_norm(x, w["mlp_norm"], config.norm_eps)
        gate = h @ w["w_gate"]
        return x + (gate / (1 + np.exp(-gate)) * (h @ w["w_up"])) @ w["w_down"]

    states = [np.asarray(params.embed, np.float64)[tokens]]
    for at in range(config.num_layers):
        states.append(layer(states[-1], at))
    return np.stack(states)


def rms_norm(x: np.ndarray, gain: np.ndarray, eps: float) -> np.ndarray:
    """x / √(mean x² + ε) · gain."""
    return x / np.sqrt(np.mean(x**2, axis=-1, keepdims=True) + eps) * gain


_WEIGHTS = ("attn_norm", "wq", "wk", "wv", "wo", "mlp_norm", "w_gate", "w_up", "w_down")
