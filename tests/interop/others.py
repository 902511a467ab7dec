"""Backbones as others write them, and a batch of trees to run them on."""

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen, nnx

from rmjax import Comparisons
from rmjax.batch import Batch

VOCAB, WIDTH, HEADS, LAYERS = 48, 16, 2, 2


def softmax_attention(q, k, v, mask):
    """[B, T, H, K] with a mask [B, T, T]."""
    logits = jnp.einsum("bqhk,bthk->bhqt", q, k) / np.float32(q.shape[-1] ** 0.5)
    return jnp.einsum("bhqt,bthk->bqhk", jax.nn.softmax(jnp.where(mask[:, None], logits, -1e30), axis=-1), v)


class Attention(nnx.Module):
    def __init__(self, rngs):
        self.qkv = nnx.LinearGeneral(WIDTH, (3, HEADS, WIDTH // HEADS), rngs=rngs)
        self.out = nnx.LinearGeneral((HEADS, WIDTH // HEADS), WIDTH, axis=(-2, -1), rngs=rngs)

    def __call__(self, x, mask):
        q, k, v = jnp.moveaxis(self.qkv(x), 2, 0)
        return self.out(softmax_attention(q, k, v, mask))


class Layer(nnx.Module):
    def __init__(self, rngs):
        self.before_attention = nnx.LayerNorm(WIDTH, rngs=rngs)
        self.attention = Attention(rngs)
        self.before_mlp = nnx.LayerNorm(WIDTH, rngs=rngs)
        self.up = nnx.Linear(WIDTH, 2 * WIDTH, rngs=rngs)
        self.down = nnx.Linear(2 * WIDTH, WIDTH, rngs=rngs)

    def __call__(self, x, mask):
        x = x + self.attention(self.before_attention(x), mask)
        return x + self.down(jax.nn.gelu(self.up(self.before_mlp(x))))


class NNXDecoder(nnx.Module):
    """Takes positions and a mask, returns logits or hidden states; learned positions, layer norms, tied vocabulary."""

    def __init__(self, rngs):
        self.embed = nnx.Embed(VOCAB, WIDTH, rngs=rngs)
        self.position = nnx.Embed(32, WIDTH, rngs=rngs)
        self.layers = nnx.List([Layer(rngs) for _ in range(LAYERS)])
        self.norm = nnx.LayerNorm(WIDTH, rngs=rngs)

    def hidden(self, tokens, positions, mask):
        x = self.embed(tokens) + self.position(positions)
        states = [x]
        for layer in self.layers:
            x = layer(x, mask)
            states.append(x)
        return self.norm(x), states

    def __call__(self, tokens, positions, mask):
        return self.embed.attend(self.hidden(tokens, positions, mask)[0])


class LinenLayer(linen.Module):
    @linen.compact
    def __call__(self, x):
        h = linen.RMSNorm()(x)
        q, k, v = jnp.moveaxis(linen.DenseGeneral((3, HEADS, WIDTH // HEADS))(h), 2, 0)
        causal = jnp.tri(x.shape[1], dtype=bool)[None]
        x = x + linen.DenseGeneral(WIDTH, axis=(-2, -1))(softmax_attention(q, k, v, causal))
        h = linen.RMSNorm()(x)
        return x + linen.Dense(WIDTH)(jax.nn.silu(linen.Dense(2 * WIDTH)(h)))


class LinenDecoder(linen.Module):
    """Takes token ids alone: plain causal attention from position 0."""

    def setup(self):
        self.embed = linen.Embed(VOCAB, WIDTH)
        self.position = linen.Embed(32, WIDTH)
        self.layers = [LinenLayer() for _ in range(LAYERS)]
        self.norm = linen.RMSNorm()

    def __call__(self, tokens):
        x = self.embed(tokens) + self.position(jnp.arange(tokens.shape[1])[None])
        states = [x]
        for layer in self.layers:
            x = layer(x)
            states.append(x)
        return self.norm(x), tuple(states)

    def final_norm(self, x):
        return self.norm(x)


def trees():
    """Two rows of a prefix and its branches, one response inside the prefix, one padded response and comparison."""
    rng = np.random.default_rng(0)
    segment = np.tile(np.repeat([0, 1, 2, -1], [5, 4, 3, 4]), (2, 1)).astype(np.int32)
    parent = np.where(segment >= 1, 0, -1).astype(np.int32)
    depth = np.tile(np.r_[0:5, 5:9, 5:8, 0:4], (2, 1)).astype(np.int32)
    tokens = np.where(segment >= 0, rng.integers(1, VOCAB, segment.shape), 0).astype(np.int32)
    index = np.array([8, 11, 24, 27, 20, 0], np.int32)
    pairs = Comparisons.from_votes([0, 2, 4], [1, 3, 2], [3, 1, 2], [1, 0, 2], prompt=[0, 0, 1, 1, 1])
    return Batch(tokens, segment, parent, depth, index, pairs.pad(4, 6))
