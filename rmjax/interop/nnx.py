"""Our trunk and head as an `nnx.Module`, and our head on an NNX backbone of others."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import optax
from flax import nnx

from rmjax.batch import Batch
from rmjax.comparisons import Ties
from rmjax.head import Head
from rmjax.interop.reading import FinalNorm, How, Reading, States, read_backbone
from rmjax.models.config import ModelConfig
from rmjax.models.forward import Output, forward
from rmjax.models.params import Block, Params


class _Fields(nnx.Module):
    """The arrays of a parameter dataclass as `nnx.Param`s under the same names."""

    def __init__(self, params: Any):
        for field in dataclasses.fields(params):
            value = getattr(params, field.name)
            if value is not None:
                setattr(self, field.name, _Fields(value) if dataclasses.is_dataclass(value) else nnx.Param(value))


class RewardDecoder(_Fields):
    """The decoder with its scalar head, as `from_params` makes it: `embed`, `blocks.wq`, ..., `norm`, `head.weight`.

    It is `rmjax.models.forward` on parameters that NNX holds: the scores are the same numbers.
    """

    def __init__(self, params: Params, config: ModelConfig, *, dtype: Any = jnp.float32):
        super().__init__(params)
        self.config, self.dtype = config, dtype

    def __call__(self, batch: Batch, **options: Any) -> Output:
        """Score every response of a batch.

        Args:
            batch: packed rows.
            **options: `layer_scores`, `tap` and `remat` of `rmjax.models.forward`.

        Returns:
            Scores and reads.
        """
        return forward(to_params(self), batch, self.config, dtype=self.dtype, **options)


def from_params(params: Params, config: ModelConfig, *, dtype: Any = jnp.float32) -> RewardDecoder:
    """An `nnx.Module` that holds these parameters.

    Args:
        params: of `models.init` or `models.load`.
        config: the decoder.
        dtype: of matmuls, as in `forward`.

    Returns:
        The module. `to_params` is the way back, bit for bit.

    Example:
        >>> from rmjax.models import init
        >>> config = ModelConfig(258, 64, 128, num_layers=2, num_heads=4, num_kv_heads=2, head_dim=16)
        >>> module = from_params(init(jax.random.key(0), config), config)
        >>> module.blocks.wq.shape
        (2, 64, 4, 16)
    """
    return RewardDecoder(params, config, dtype=dtype)


def to_params(module: RewardDecoder | Mapping) -> Params:
    """The parameters of a module, or what stands in their places in one of its states: gradients, updates.

    Args:
        module: the module, or an `nnx.State` of it. Where a state of a filter leaves a parameter out, None stands.

    Returns:
        A `Params` tree of arrays; nothing is copied.

    Example:
        >>> from rmjax.models import init
        >>> config = ModelConfig(258, 64, 128, num_layers=2, num_heads=4, num_kv_heads=2, head_dim=16)
        >>> module = from_params(init(jax.random.key(0), config), config)
        >>> to_params(module).embed.shape, to_params(nnx.state(module, nnx.PathContains("head"))).embed
        ((258, 64), None)
    """
    state = nnx.as_pure(module if isinstance(module, Mapping) else nnx.state(module, nnx.Param))

    def take(kind: type, node: Mapping) -> Any:
        nested = {"blocks": Block, "head": Head}
        return kind(
            **{
                f.name: None if (x := node.get(f.name)) is None else take(nested[f.name], x) if f.name in nested else x
                for f in dataclasses.fields(kind)
            }
        )

    return take(Params, state)


def for_module(optimizer: optax.GradientTransformation) -> optax.GradientTransformationExtraArgs:
    """An optimiser of a `Params` tree, for `nnx.Optimizer` of a `RewardDecoder`.

    What an optimiser decides by the names and places of parameters (which are decayed, the head's own rate) it then
    decides as in `rmjax.train`.

    Args:
        optimizer: such as `rmjax.train.optimizer.make_optimizer` gives.

    Returns:
        The same transformation of the module's state.

    Example:
        >>> from rmjax.models import init
        >>> config = ModelConfig(258, 64, 128, num_layers=2, num_heads=4, num_kv_heads=2, head_dim=16)
        >>> module = from_params(init(jax.random.key(0), config), config)
        >>> optimizer = nnx.Optimizer(module, for_module(optax.sgd(1e-3)), wrt=nnx.Param)
    """
    inner: Any = optax.with_extra_args_support(optimizer)  # optax's types know arrays and containers, not dataclasses

    def init(params: Any) -> Any:
        return inner.init(to_params(params))

    def update(updates: Any, state: Any, params: Any = None, **extra: Any) -> tuple[Any, Any]:
        here = None if params is None else to_params(params)
        new, state = inner.update(to_params(updates), state, here, **extra)

        def at(path: tuple[Any, ...], _: Any) -> Any:
            value: Any = new
            for key in path:
                value = getattr(value, key.key)
            return value

        return jax.tree_util.tree_map_with_path(at, updates), state

    return optax.GradientTransformationExtraArgs(init, update)


class NNXReward(nnx.Module):
    """Our head, likelihood and layer margins on an NNX backbone.

    The backbone stays as it is: two functions say how to run it. It sees the batch's rows; where a response is scored
    is `batch.score_index`, so it needs no pad id. A backbone with plain causal attention takes `unpack(batch)`; one
    that takes positions and a mask may run packed trees, with `batch.depth` and `attention_mask` of
    `rmjax.models.layers`.

    Args:
        backbone: any `nnx.Module`.
        hidden_size: D.
        states: `(backbone, batch) -> states [R, T, D]` after the final norm, or `(states, layers)` with the residual
            stream before every layer and after the last, before the final norm.
        final_norm: `(backbone, x) -> x`, the backbone's; needed with layers.
        trees: the backbone attends along `segment` and `parent`. Unless it does, packed rows are refused, where they
            can be looked at: not under jit.

    Example:
        >>> import numpy as np
        >>> from rmjax import Comparisons
        >>> rows = np.array([[1, 2, 3], [1, 2, 4]])
        >>> none, depth, pairs = rows * 0, rows * 0 + np.arange(3), Comparisons.from_pairs([0], [1], [0, 0])
        >>> batch = Batch(rows, none, none - 1, depth, np.array([2, 5]), pairs)
        >>> backbone = nnx.Embed(9, 4, rngs=nnx.Rngs(0))  # of others
        >>> model = NNXReward(backbone, 4, states=lambda net, batch: net(batch.tokens))
        >>> optimizer = nnx.Optimizer(model, optax.sgd(1e-1), wrt=nnx.Param)
        >>> updates = optimizer.update(model, nnx.grad(lambda model: model(batch).loss_sum)(model))
        >>> bool(model(batch).margins[0] > 0)
        True
    """

    def __init__(
        self,
        backbone: nnx.Module,
        hidden_size: int,
        *,
        states: States,
        final_norm: FinalNorm | None = None,
        trees: bool = False,
    ):
        self.backbone = backbone
        self.head = nnx.Param(Head.zeros(hidden_size).weight)
        self.how = How(states, final_norm, trees)

    def __call__(self, batch: Batch, *, ties: Ties | None = None) -> Reading:
        """Read a batch.

        Args:
            batch: rows that the backbone can take.
            ties: what the link does with ties.

        Returns:
            Scores, loss as sum and count, margins, and margins at every layer where `states` gives layers.
        """
        return read_backbone(self.backbone, batch, lambda _: Head(self.head[...]), self.how, ties)
