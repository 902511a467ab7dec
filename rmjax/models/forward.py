"""From a batch to scores: one scan over the layers, with taps at named sites."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name

from rmjax.arrays import at_least_float32
from rmjax.batch import Batch
from rmjax.errors import DataError
from rmjax.head import score
from rmjax.models.config import ModelConfig
from rmjax.models.layers import affine, attend, attention_mask, rms_norm, rope_table, rotate
from rmjax.models.params import Block, Params
from rmjax.sharding import constrain_looked_up, constrain_rows

Tap: TypeAlias = Callable[[str, jax.Array, jax.Array], tuple[jax.Array, Any]]
SITES = (
    "resid_pre",
    "q",
    "k",
    "v",
    "head_out",
    "attn_out",
    "resid_mid",
    "mlp_hidden",
    "mlp_out",
    "resid_post",
)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Output:
    """Scores of the batch's responses, and what was read on the way."""

    scores: jax.Array  # [N], at least float32, up to one constant per prompt
    layer_scores: jax.Array | None  # [L + 1, N], the head on each layer's state through the final norm; no gradient
    reads: dict[str, Any]  # site -> what the tap read there, stacked over layers


def forward(
    params: Params,
    batch: Batch,
    config: ModelConfig,
    *,
    below: Block | None = None,
    tap: Tap | None = None,
    layer_scores: bool = False,
    dtype: Any = jnp.float32,
    remat: str = "none",
) -> Output:
    """Score every response of a batch.

    Guarantees: a response's score depends on the tokens of its own text alone, so packed trees score as the isolated
    sequences do, up to rounding; the last row of `layer_scores` is `scores`; a tap that returns its input and reads
    nothing changes nothing.

    Args:
        params: parameters; their dtype is the master's, float32 in training.
        batch: packed rows.
        config: the decoder.
        below: layers under those of `params.blocks`, run without gradient: what partial training keeps frozen.
        tap: `(site, layer, x) -> (x, read)`, called at every site of `SITES` in the scan over `params.blocks`; a read
            that is not None is stacked over layers.
        layer_scores: also read the head on the residual stream before every layer.
        dtype: of matmuls. Norms, softmax, and scores are in at least float32 under every choice; with float32 the
            matmuls have full precision on every device.
        remat: what the backward pass recomputes: "none" of it, "all" of a layer, or all but the sites named here,
            separated by commas.

    Returns:
        Scores and reads.

    Example:
        >>> import numpy as np
        >>> from rmjax import Comparisons
        >>> from rmjax.models.params import init
        >>> config = ModelConfig(
        ...     vocab_size=258,
        ...     hidden_size=64,
        ...     intermediate_size=128,
        ...     num_layers=2,
        ...     num_heads=4,
        ...     num_kv_heads=2,
        ...     head_dim=16,
        ... )
        >>> position = np.arange(6, dtype=np.int32)[None]
        >>> two_texts = Batch(
        ...     tokens=position,
        ...     segment=position // 3,
        ...     parent=position * 0 - 1,
        ...     depth=position % 3,
        ...     score_index=np.array([2, 5]),
        ...     comparisons=Comparisons.from_pairs([0], [1], [0, 0]),
        ... )
        >>> forward(init(jax.random.key(0), config), two_texts, config).scores
        Array([0., 0.], dtype=float32)
    """
    with jax.default_matmul_precision("default" if jnp.dtype(dtype).itemsize < 4 else "highest"):
        states, readouts, reads = _trunk(params, batch, config, below, tap, layer_scores, dtype, remat)
        pooled = rms_norm(at_least_float32(_scored(states, batch)), params.norm, config.norm_eps)
        scores = score(pooled, params.head)
    if not layer_scores:
        return Output(scores, None, reads)
    return Output(scores, jnp.concatenate([readouts, jax.lax.stop_gradient(scores)[None]]), reads)


def hidden_states(params: Params, ids: jax.Array, config: ModelConfig, *, dtype: Any = jnp.float32) -> jax.Array:
    """States after the final norm of plain, unpacked sequences of one length.

    Args:
        params: parameters.
        ids: token ids, [B, T].
        config: the decoder.
        dtype: of matmuls.

    Returns:
        States, [B, T, D].

    Example:
        >>> from rmjax.models.params import init
        >>> config = ModelConfig(
        ...     vocab_size=258,
        ...     hidden_size=64,
        ...     intermediate_size=128,
        ...     num_layers=2,
        ...     num_heads=4,
        ...     num_kv_heads=2,
        ...     head_dim=16,
        ... )
        >>> hidden_states(init(jax.random.key(0), config), jnp.array([[1, 2, 3]]), config).shape
        (1, 3, 64)
    """
    tokens = jnp.asarray(ids, jnp.int32)
    zeros = jnp.zeros_like(tokens)
    depth = jnp.broadcast_to(jnp.arange(tokens.shape[1], dtype=jnp.int32)[None], tokens.shape)
    batch = Batch(tokens, zeros, zeros - 1, depth, zeros[0, :1], comparisons=None)  # pyright: ignore[reportArgumentType] - no scores are taken
    with jax.default_matmul_precision("default" if jnp.dtype(dtype).itemsize < 4 else "highest"):
        states, _, _ = _trunk(params, batch, config, None, None, False, dtype, "none")
        return rms_norm(states, params.norm, config.norm_eps)


def _trunk(params, batch, config, below, tap, layer_scores, dtype, remat) -> tuple[jax.Array, Any, dict[str, Any]]:
    """The residual stream after the last layer [R, T, D], layer scores [L, N] and reads."""
    table = rope_table(batch.depth, config, dtype)
    mask = attention_mask(batch.segment, batch.parent, batch.depth, config.sliding_window)
    frozen = 0 if below is None else below.wq.shape[0]
    head, norm = jax.lax.stop_gradient((params.head, params.norm))

    def layer(x, inputs, tap, remat):
        block, index = inputs
        read = None
        if layer_scores:
            state = rms_norm(at_least_float32(_scored(jax.lax.stop_gradient(x), batch)), norm, config.norm_eps)
            read = score(state, head)
        step = _remat(lambda block, x: _block(block, x, index, table, mask, config, tap), remat)
        x, reads = step(block, x)
        return constrain_rows(x), (read, reads)

    x = constrain_looked_up(params.embed[batch.tokens].astype(dtype))
    readouts: list[Any] = []
    if below is not None:
        x, (read, _) = jax.lax.scan(
            lambda x, inputs: layer(x, inputs, None, "none"),
            jax.lax.stop_gradient(x),
            (_cast(below, dtype), jnp.arange(frozen)),
        )
        x = jax.lax.stop_gradient(x)
        readouts.append(read)
    count = params.blocks.wq.shape[0]
    x, (read, reads) = jax.lax.scan(
        lambda x, inputs: layer(x, inputs, tap, remat),
        x,
        (_cast(params.blocks, dtype), frozen + jnp.arange(count)),
    )
    readouts.append(read)
    return x, jnp.concatenate(readouts) if layer_scores else None, reads


def _block(block, x, index, table, mask, config, tap):
    """One layer; returns the new residual stream and the tap's reads."""
    reads = {}

    def at(site, value):
        if tap is not None:
            value, read = tap(site, index, value)
            if read is not None:
                reads[site] = read
        return checkpoint_name(value, site)

    x = at("resid_pre", x)
    h = rms_norm(x, block.attn_norm, config.norm_eps)
    q, k, v = affine(h, block.wq, block.bq), affine(h, block.wk, block.bk), affine(h, block.wv, block.bv)
    if config.qk_norm:
        q, k = rms_norm(q, block.q_norm, config.norm_eps), rms_norm(k, block.k_norm, config.norm_eps)
    q, k, v = at("q", rotate(q, table)), at("k", rotate(k, table)), at("v", v)
    heads = at("head_out", attend(q, k, v, mask))
    x = at("resid_mid", x + at("attn_out", affine(heads, block.wo, block.bo)))
    h = rms_norm(x, block.mlp_norm, config.norm_eps)
    gate, up = affine(h, block.w_gate, block.b_gate), affine(h, block.w_up, block.b_up)
    hidden = at("mlp_hidden", jax.nn.silu(gate) * up)
    x = at("resid_post", x + at("mlp_out", affine(hidden, block.w_down, block.b_down)))
    return x, reads


def _scored(states: jax.Array, batch: Batch) -> jax.Array:
    """The states [N, D] at which the responses are scored."""
    return states.reshape(-1, states.shape[-1])[batch.score_index]


def _cast(blocks: Block, dtype) -> Block:
    """Matmul weights in the compute dtype. Norm gains keep theirs: `rms_norm` applies them in float32."""
    gains = {"attn_norm", "mlp_norm", "q_norm", "k_norm"}
    fields = {f.name: getattr(blocks, f.name) for f in dataclasses.fields(blocks)}
    cast = {n: v if v is None or n in gains else v.astype(dtype) for n, v in fields.items()}
    return Block(**cast)


def _remat(step, names: str):
    """Recompute in the backward pass everything but the named sites."""
    if names == "none":
        return step
    keep = check_remat(names)
    return jax.checkpoint(step, policy=jax.checkpoint_policies.save_only_these_names(*keep))


def check_remat(names: str) -> tuple[str, ...]:
    """The sites that a choice of `remat` keeps.

    Args:
        names: "none", "all", or sites separated by commas.

    Returns:
        The sites.

    Raises:
        DataError: one of them does not exist.

    Example:
        >>> check_remat("attn_out, mlp_out")
        ('attn_out', 'mlp_out')
    """
    keep = () if names in ("none", "all") else tuple(name.strip() for name in names.split(","))
    if unknown := [name for name in keep if name not in SITES]:
        raise DataError(
            "remat names a site that does not exist",
            {"unknown": ", ".join(unknown)},
            f'Use "none", "all", or sites among {", ".join(SITES)}.',
        )
    return keep
