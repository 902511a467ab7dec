"""The parameters of a decoder with a scalar head, and the one abstract tree that describes them."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, Literal, TypeAlias

import jax
import jax.numpy as jnp

from rmjax.head import Head
from rmjax.models.config import ModelConfig

# A jax.Array; in trees of the same form, its ParamSpec, sharding, gradient or optimiser state.
Leaf: TypeAlias = Any


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Block:
    """All layers, stacked on a leading axis. L layers, D hidden, H heads, G key heads, K head size, F neurons."""

    attn_norm: Leaf  # [L, D]
    wq: Leaf  # [L, D, H, K]
    wk: Leaf  # [L, D, G, K]
    wv: Leaf  # [L, D, G, K]
    wo: Leaf  # [L, H, K, D]
    mlp_norm: Leaf  # [L, D]
    w_gate: Leaf  # [L, D, F]
    w_up: Leaf  # [L, D, F]
    w_down: Leaf  # [L, F, D]
    bq: Leaf = None  # [L, H, K]
    bk: Leaf = None  # [L, G, K]
    bv: Leaf = None  # [L, G, K]
    bo: Leaf = None  # [L, D]
    q_norm: Leaf = None  # [L, K]
    k_norm: Leaf = None  # [L, K]
    b_gate: Leaf = None  # [L, F]
    b_up: Leaf = None  # [L, F]
    b_down: Leaf = None  # [L, D]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Params:
    """Everything that is trained."""

    embed: Leaf  # [V, D]
    blocks: Block
    norm: Leaf  # [D]
    head: Head


@dataclasses.dataclass(frozen=True)
class ParamSpec:
    """Shape, logical axes and initial values of one parameter."""

    shape: tuple[int, ...]
    axes: tuple[str | None, ...]
    init: Literal["uniform", "ones", "zeros"]
    fan_in: int = 1


def abstract(config: ModelConfig, *, head_bias: bool = False) -> Params:
    """The tree of `ParamSpec`s: initialisation, shardings, import and restore are maps over it.

    A logical axis is a word ("embed", "heads", "mlp", "vocab"); `rmjax.sharding` gives it to a mesh axis.

    Args:
        config: the decoder.
        head_bias: whether the head has one, as some files do.

    Returns:
        A `Params` with a `ParamSpec` at every leaf.

    Example:
        >>> config = ModelConfig(
        ...     vocab_size=258,
        ...     hidden_size=64,
        ...     intermediate_size=128,
        ...     num_layers=2,
        ...     num_heads=4,
        ...     num_kv_heads=2,
        ...     head_dim=16,
        ... )
        >>> abstract(config).blocks.wq.shape
        (2, 64, 4, 16)
    """
    L, D, F = config.num_layers, config.hidden_size, config.intermediate_size
    H, G, K = config.num_heads, config.num_kv_heads, config.head_dim

    def weight(shape, axes, fan_in):
        return ParamSpec((L, *shape), (None, *axes), "uniform", fan_in)

    def gain(size):
        return ParamSpec((L, size), (None, None), "ones")

    def bias(shape, axes, present):
        return ParamSpec((L, *shape), (None, *axes), "zeros") if present else None

    # Key heads carry the name of query heads: grouped queries stay with their keys, so either both axes are
    # sharded or neither is.
    blocks = Block(
        attn_norm=gain(D),
        wq=weight((D, H, K), ("embed", "heads", None), D),
        wk=weight((D, G, K), ("embed", "heads", None), D),
        wv=weight((D, G, K), ("embed", "heads", None), D),
        wo=weight((H, K, D), ("heads", None, "embed"), H * K),
        mlp_norm=gain(D),
        w_gate=weight((D, F), ("embed", "mlp"), D),
        w_up=weight((D, F), ("embed", "mlp"), D),
        w_down=weight((F, D), ("mlp", "embed"), F),
        bq=bias((H, K), ("heads", None), config.qkv_bias),
        bk=bias((G, K), ("heads", None), config.qkv_bias),
        bv=bias((G, K), ("heads", None), config.qkv_bias),
        bo=bias((D,), (None,), config.o_bias),
        q_norm=gain(K) if config.qk_norm else None,
        k_norm=gain(K) if config.qk_norm else None,
        b_gate=bias((F,), ("mlp",), config.mlp_bias),
        b_up=bias((F,), ("mlp",), config.mlp_bias),
        b_down=bias((D,), (None,), config.mlp_bias),
    )
    head: Leaf = ParamSpec((D,), (None,), "zeros")
    bias_of_head: Leaf = ParamSpec((), (), "zeros") if head_bias else None
    return Params(
        embed=ParamSpec((config.vocab_size, D), ("vocab", "embed"), "uniform", D),
        blocks=blocks,
        norm=ParamSpec((D,), (None,), "ones"),
        head=Head(weight=head, bias=bias_of_head),
    )


@functools.partial(jax.jit, static_argnames="config")  # one compilation, not one per shape
def init(key: jax.Array, config: ModelConfig) -> Params:
    """Random float32 parameters: weights uniform with variance 1 / fan-in, gains one, the head zero.

    The zero head makes the first loss exactly log 2 and every first margin 0, at any width, seed and mesh.

    Args:
        key: PRNG key.
        config: the decoder.

    Returns:
        Parameters.

    Example:
        >>> config = ModelConfig(
        ...     vocab_size=258,
        ...     hidden_size=64,
        ...     intermediate_size=128,
        ...     num_layers=2,
        ...     num_heads=4,
        ...     num_kv_heads=2,
        ...     head_dim=16,
        ... )
        >>> init(jax.random.key(0), config).embed.shape
        (258, 64)
    """
    specs, tree = jax.tree.flatten(abstract(config), is_leaf=lambda x: isinstance(x, ParamSpec))

    def draw(key: jax.Array, spec: ParamSpec) -> jax.Array:
        if spec.init == "uniform":
            bound = (3 / spec.fan_in) ** 0.5
            return jax.random.uniform(key, spec.shape, jnp.float32, -bound, bound)
        return jnp.full(spec.shape, float(spec.init == "ones"), jnp.float32)

    return jax.tree.unflatten(tree, map(draw, jax.random.split(key, len(specs)), specs))
