"""Parameters from the ecosystem's tensors and back: one table of names, and nothing unaccounted for."""

from __future__ import annotations

import dataclasses
import math
import re
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from rmjax.errors import CheckpointError
from rmjax.head import Head
from rmjax.models.config import ModelConfig
from rmjax.models.params import Block, Params, ParamSpec, abstract


class Row(NamedTuple):
    """Where a tensor of a layer goes. A linear map with n input axes is stored as [out, in] and turned around."""

    field: str
    inputs: int = 0  # 0: a vector


LAYER_TABLE = {
    "input_layernorm.weight": Row("attn_norm"),
    "self_attn.q_proj.weight": Row("wq", 1),
    "self_attn.k_proj.weight": Row("wk", 1),
    "self_attn.v_proj.weight": Row("wv", 1),
    "self_attn.o_proj.weight": Row("wo", 2),
    "self_attn.q_proj.bias": Row("bq"),
    "self_attn.k_proj.bias": Row("bk"),
    "self_attn.v_proj.bias": Row("bv"),
    "self_attn.o_proj.bias": Row("bo"),
    "self_attn.q_norm.weight": Row("q_norm"),
    "self_attn.k_norm.weight": Row("k_norm"),
    "post_attention_layernorm.weight": Row("mlp_norm"),
    "mlp.gate_proj.weight": Row("w_gate", 1),
    "mlp.up_proj.weight": Row("w_up", 1),
    "mlp.down_proj.weight": Row("w_down", 1),
    "mlp.gate_proj.bias": Row("b_gate"),
    "mlp.up_proj.bias": Row("b_up"),
    "mlp.down_proj.bias": Row("b_down"),
}
TRUNK_TABLE = {"embed_tokens.weight": "embed", "norm.weight": "norm"}
# A linear head is a linear head, whatever its authors called it.
HEAD_NAMES = ("score", "score_head", "value_head", "v_head", "v_head.summary", "regression_head")
# The vocabulary head does not score; the rotary frequencies are computed from the configuration.
_UNUSED = re.compile(r"lm_head\.weight|(.*\.)?rotary_emb\.inv_freq")
_FLOATS = ("float64", "float32", "float16", "bfloat16")


@dataclasses.dataclass(frozen=True)
class LoadReport:
    """What was read, under which names, and what was left out."""

    source: str
    format: str  # "safetensors" or "gguf"
    head: str  # the name of its weight in the file; "new head" where the file is a trunk alone; "trained" in a run
    num_tensors: int  # in the file
    ignored: tuple[str, ...]  # known, and no part of a reward model
    stored: Mapping[str, int]  # how many tensors in which number format; all become float32
    directory: str | None = None  # where the files lie; None for a GGUF file or a model that was made here


def import_params(
    tensors: Mapping[str, np.ndarray], config: ModelConfig, *, source: str = "", format: str = "safetensors"
) -> tuple[Params, LoadReport]:
    """Parameters from tensors under the ecosystem's names.

    Guarantees: every tensor of the file is a parameter or stands in `report.ignored`, every parameter comes from the
    file but a new head, and every shape is the configuration's; else nothing is returned.

    Args:
        tensors: name -> array, read one at a time.
        config: the decoder.
        source: where they come from, for the report.
        format: of the file, for the report.

    Returns:
        float32 parameters and a report.

    Raises:
        CheckpointError: a tensor is missing, unknown, of another shape or quantised; there are two heads.

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
        >>> from rmjax.models.params import init
        >>> import jax
        >>> tensors = export_tensors(init(jax.random.key(0), config), config)
        >>> import_params(tensors, config)[1].head
        'score.weight'
    """
    # A file of the bare trunk has no prefix.
    prefix = "model." if any(name.startswith("model.") for name in tensors) else ""
    head_weights = [f"{name}.weight" for name in HEAD_NAMES if f"{name}.weight" in tensors]
    if len(head_weights) > 1:
        raise CheckpointError(
            "the file has two heads",
            {"heads": ", ".join(head_weights)},
            "Remove the one that does not score from the file.",
        )
    head_bias = bool(head_weights) and _bias_of(head_weights[0]) in tensors
    spec = abstract(config, head_bias=head_bias)
    expected = _expected(spec, config, prefix, head_weights)
    ignored = _account(tensors, expected)
    stored: Counter[str] = Counter()

    def read(name: str, shape: tuple[int, ...]) -> np.ndarray:
        tensor = tensors[name]
        if tensor.dtype.name not in _FLOATS:
            raise CheckpointError(
                "a tensor is quantised",
                {"tensor": name, "dtype": tensor.dtype},
                "Load the model in float32, float16 or bfloat16, or from GGUF, which says how to undo it.",
            )
        if tensor.shape != shape:
            raise CheckpointError(
                "a tensor has another shape than the configuration says",
                {"tensor": name, "shape": tensor.shape, "expected": shape},
                "Use the config.json that belongs to these weights."
                + (" A reward model here has one output." if name in head_weights else ""),
            )
        stored[tensor.dtype.name] += 1
        return tensor.astype(np.float32, copy=False)

    fields = {}
    for suffix, row in LAYER_TABLE.items():
        if (leaf := getattr(spec.blocks, row.field)) is None:
            continue
        stacked = np.empty(leaf.shape, np.float32)
        for layer in range(config.num_layers):
            name = f"{prefix}layers.{layer}.{suffix}"
            tensor = read(name, expected[name])
            stacked[layer] = (tensor.T if row.inputs else tensor).reshape(leaf.shape[1:])
        fields[row.field] = jnp.asarray(stacked)
    trunk = {field: jnp.asarray(read(n := prefix + name, expected[n])) for name, field in TRUNK_TABLE.items()}
    head = Head.zeros(config.hidden_size)
    if head_weights:
        weight = head_weights[0]
        bias = jnp.asarray(read(_bias_of(weight), (1,))[0]) if head_bias else None
        head = Head(jnp.asarray(read(weight, (1, config.hidden_size))[0]), bias)
    report = LoadReport(
        source=source,
        format=format,
        head=head_weights[0] if head_weights else "new head",
        num_tensors=len(tensors),
        ignored=ignored,
        stored=dict(stored),
    )
    return Params(blocks=Block(**fields), head=head, **trunk), report


def export_tensors(params: Params, config: ModelConfig) -> dict[str, np.ndarray]:
    """Tensors of a sequence classifier under the ecosystem's names, float32.

    Guarantees: `import_params(export_tensors(params, config), config)` gives the same bits.

    Args:
        params: float32 parameters.
        config: the decoder.

    Returns:
        name -> contiguous array.

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
        >>> from rmjax.models.params import init
        >>> import jax
        >>> export_tensors(init(jax.random.key(0), config), config)["model.layers.1.self_attn.k_proj.weight"].shape
        (32, 64)
    """
    tensors = {f"model.{name}": np.asarray(getattr(params, field)) for name, field in TRUNK_TABLE.items()}
    for suffix, row in LAYER_TABLE.items():
        if (stacked := getattr(params.blocks, row.field)) is None:
            continue
        for layer, value in enumerate(np.asarray(stacked)):
            flat = value.reshape(math.prod(value.shape[: row.inputs]), -1).T if row.inputs else value.reshape(-1)
            tensors[f"model.layers.{layer}.{suffix}"] = flat
    tensors["score.weight"] = np.asarray(params.head.weight)[None]
    if params.head.bias is not None:
        tensors["score.bias"] = np.asarray(params.head.bias)[None]
    return {name: np.ascontiguousarray(tensor, np.float32) for name, tensor in tensors.items()}


def _expected(spec: Params, config: ModelConfig, prefix: str, head_weights: list[str]) -> dict[str, tuple[int, ...]]:
    """Name and shape of every tensor that this decoder is made of."""
    expected = {prefix + name: getattr(spec, field).shape for name, field in TRUNK_TABLE.items()}
    for suffix, row in LAYER_TABLE.items():
        leaf: ParamSpec | None = getattr(spec.blocks, row.field)
        if leaf is not None:
            shape = leaf.shape[1:]
            inner, outer = math.prod(shape[: row.inputs]), math.prod(shape[row.inputs :])
            stored = (outer, inner) if row.inputs else (outer,)
            expected |= {f"{prefix}layers.{layer}.{suffix}": stored for layer in range(config.num_layers)}
    for weight in head_weights:
        expected[weight] = (1, config.hidden_size)
        if spec.head.bias is not None:
            expected[_bias_of(weight)] = (1,)
    return expected


def _account(tensors: Mapping[str, np.ndarray], expected: Mapping[str, tuple[int, ...]]) -> tuple[str, ...]:
    """The tensors that are ignored, by name; any other that is too many or too few is an error."""
    if missing := [name for name in expected if name not in tensors]:
        raise CheckpointError(
            "the file lacks a tensor",
            {"tensor": missing[0], "missing": len(missing)},
            "Copy the file again, with all its shards, and with the config.json that belongs to it.",
        )
    extra = sorted(set(tensors) - set(expected))
    if unknown := [name for name in extra if not _UNUSED.fullmatch(name)]:
        raise CheckpointError(
            "the file holds a tensor that this model has no place for",
            {"tensor": unknown[0], "unknown": len(unknown), "all": ", ".join(unknown[:6])},
            "Check that config.json belongs to these weights. Heads with several layers or outputs, and adapters that "
            "were not merged, are not read: leaving them out would give other scores in silence.",
        )
    return tuple(extra)


def _bias_of(weight: str) -> str:
    return weight.removesuffix("weight") + "bias"
