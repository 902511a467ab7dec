"""`config.json` of the ecosystem, read into a `ModelConfig` and written back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from rmjax.errors import CheckpointError
from rmjax.models.config import Family, Llama3Scaling, ModelConfig, is_positive, is_size

_ARCHITECTURES: dict[Family, str] = {"llama": "Llama", "mistral": "Mistral", "qwen2": "Qwen2", "qwen3": "Qwen3"}
# What a key means where a file leaves it out. None: as many key heads as heads, hidden size over heads, no window.
_DEFAULTS: dict[Family, dict[str, Any]] = {
    "llama": {"num_key_value_heads": None, "head_dim": None, "max_position_embeddings": 2048},
    "mistral": {
        "num_key_value_heads": 8,
        "head_dim": None,
        "sliding_window": 4096,
        "max_position_embeddings": 131072,
    },
    "qwen2": {
        "num_key_value_heads": 32,
        "head_dim": None,
        "sliding_window": 4096,
        "max_position_embeddings": 32768,
    },
    "qwen3": {
        "num_key_value_heads": 32,
        "head_dim": 128,
        "sliding_window": 4096,
        "max_position_embeddings": 32768,
    },
}
# What would change scores and is not computed here, with the values under which it does nothing.
_REFUSED: dict[str, tuple[Any, ...]] = {
    "hidden_act": ("silu", "swish"),
    "partial_rotary_factor": (None, 1, 1.0),
    "quantization_config": (None,),
    "normalize_reward": (None, False),
    "do_normalize": (None, False),
}


def config_from_hf(raw: Mapping[str, Any]) -> ModelConfig:
    """The decoder that a `config.json` describes.

    Guarantees: the layout of transformers 5 (`rope_parameters`) and the older one (`rope_theta`, `rope_scaling`) give
    the same; what would change scores and is not known is refused by name, never ignored.

    Args:
        raw: the file's object.

    Returns:
        The configuration.

    Raises:
        CheckpointError: another family, activation, rotary scaling or mixture of windows, or a key that is missing.

    Example:
        >>> sizes = {"vocab_size": 258, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
        >>> config_from_hf(
        ...     {"model_type": "qwen2", "num_attention_heads": 4, "num_key_value_heads": 2, **sizes}
        ... ).head_dim
        16

    Source:
        configuration classes of transformers 5.24.
    """
    if (kind := raw.get("model_type")) not in _ARCHITECTURES:
        raise _unknown("model_type", kind, _ARCHITECTURES)
    family = cast(Family, kind)
    values = {
        "hidden_act": "silu",
        "rms_norm_eps": 1e-6,
        "tie_word_embeddings": False,
        **_DEFAULTS[family],
        **raw,
    }
    for key, allowed in _REFUSED.items():
        if values.get(key) not in allowed:
            raise _unknown(key, values[key], allowed)
    heads, hidden = _size(values, "num_attention_heads"), _size(values, "hidden_size")
    theta, scaling = _rope(values)
    biased = family in ("llama", "qwen3") and bool(raw.get("attention_bias", False))
    kv_heads = heads if values["num_key_value_heads"] is None else _size(values, "num_key_value_heads")
    head_dim = hidden // heads if values["head_dim"] is None else _size(values, "head_dim")
    tied = False if values["tie_word_embeddings"] is None else values["tie_word_embeddings"]
    if not isinstance(tied, bool):
        raise _no_number(values, "tie_word_embeddings", "true or false")
    return ModelConfig(
        family=family,
        vocab_size=_size(values, "vocab_size"),
        hidden_size=hidden,
        intermediate_size=_size(values, "intermediate_size"),
        num_layers=_size(values, "num_hidden_layers"),
        num_heads=heads,
        num_kv_heads=kv_heads,
        head_dim=head_dim,
        norm_eps=_positive(values, "rms_norm_eps"),
        rope_theta=theta,
        rope_scaling=scaling,
        qkv_bias=biased or family == "qwen2",  # Qwen2 has it without saying so
        o_bias=biased,
        mlp_bias=family == "llama" and bool(raw.get("mlp_bias", False)),
        qk_norm=family == "qwen3",
        sliding_window=_window(family, values),
        tie_embeddings=tied,
        max_positions=_size(values, "max_position_embeddings"),
    )


def config_to_hf(config: ModelConfig, **extra: Any) -> dict[str, Any]:
    """The `config.json` of a sequence classifier with one label, in both layouts of the rotary keys.

    Guarantees: `config_from_hf(config_to_hf(config)) == config`.

    Args:
        config: the decoder.
        extra: further keys, such as token ids.

    Returns:
        A dictionary that is JSON.

    Raises:
        CheckpointError: no family of the ecosystem has this combination of biases, norms and windows.

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
        >>> config_to_hf(config)["architectures"]
        ['LlamaForSequenceClassification']
    """
    family = config.family
    rope: dict[str, Any] = {"rope_type": "default"}
    if (scaling := config.rope_scaling) is not None:
        rope = {
            "rope_type": "llama3",
            "factor": scaling.factor,
            "low_freq_factor": scaling.low_freq_factor,
            "high_freq_factor": scaling.high_freq_factor,
            "original_max_position_embeddings": scaling.original_max_positions,
        }
    raw = {
        "architectures": [f"{_ARCHITECTURES[family]}ForSequenceClassification"],
        "model_type": family,
        "num_labels": 1,
        "id2label": {"0": "LABEL_0"},  # transformers counts labels here, not in num_labels
        "label2id": {"LABEL_0": 0},
        "vocab_size": config.vocab_size,
        "hidden_size": config.hidden_size,
        "intermediate_size": config.intermediate_size,
        "num_hidden_layers": config.num_layers,
        "num_attention_heads": config.num_heads,
        "num_key_value_heads": config.num_kv_heads,
        "head_dim": config.head_dim,
        "hidden_act": "silu",
        "rms_norm_eps": config.norm_eps,
        "rope_theta": config.rope_theta,
        "rope_scaling": rope if config.rope_scaling else None,
        "rope_parameters": {"rope_theta": config.rope_theta, **rope},
        "attention_bias": config.o_bias,
        "mlp_bias": config.mlp_bias,
        "sliding_window": config.sliding_window,
        "tie_word_embeddings": config.tie_embeddings,
        "max_position_embeddings": config.max_positions,
        "dtype": "float32",
        "torch_dtype": "float32",
        **extra,
    }
    if family.startswith("qwen"):
        raw["use_sliding_window"] = config.sliding_window is not None
        raw["max_window_layers"] = 0 if config.sliding_window is not None else config.num_layers
    if (reread := config_from_hf(raw)) != config:
        differing = [name for name, value in vars(config).items() if getattr(reread, name) != value]
        raise CheckpointError(
            "no family of the ecosystem is this decoder",
            {"family": family, **{name: getattr(config, name) for name in differing}},
            f"Only a decoder with {', '.join(f'{name}={getattr(reread, name)}' for name in differing)} can be written.",
        )
    return raw


def _rope(values: Mapping[str, Any]) -> tuple[float, Llama3Scaling | None]:
    """Theta and scaling from either layout; as in transformers, the older one wins where both are there."""
    rope = values.get("rope_scaling") or values.get("rope_parameters") or {}
    if not isinstance(rope, Mapping):
        raise _no_number({"rope_parameters": rope}, "rope_parameters", "an object")
    theta = _positive({"rope_theta": values.get("rope_theta", 10_000.0), **rope}, "rope_theta")
    kind = rope.get("rope_type", rope.get("type", "default"))
    if rope.get("partial_rotary_factor") not in _REFUSED["partial_rotary_factor"]:
        raise _unknown("partial_rotary_factor", rope["partial_rotary_factor"], (1.0,))
    if kind == "default" and not any(isinstance(value, Mapping) for value in rope.values()):
        return theta, None
    if kind != "llama3":
        raise _unknown("rope_type", kind if kind != "default" else "one for each kind of layer", ("default", "llama3"))
    original = {"original_max_position_embeddings": values["max_position_embeddings"], **rope}
    return theta, Llama3Scaling(
        factor=_positive(rope, "factor"),
        low_freq_factor=_positive(rope, "low_freq_factor"),
        high_freq_factor=_positive(rope, "high_freq_factor"),
        original_max_positions=_size(original, "original_max_position_embeddings"),
    )


def _window(family: Family, values: Mapping[str, Any]) -> int | None:
    """The sliding window, where every layer has the same one."""
    if family == "llama" or values.get("sliding_window") is None:
        return None
    if family != "mistral" and not values.get("use_sliding_window", False):
        return None
    window = _size(values, "sliding_window")
    if family == "mistral":
        return window
    layers = values["num_hidden_layers"]
    kinds = values.get("layer_types") or [
        "sliding_attention" if layer >= values.get("max_window_layers", 28) else "full_attention"
        for layer in range(layers)
    ]
    if len(set(kinds)) > 1:
        raise _unknown("layer_types", f"{kinds.count('sliding_attention')} of {layers} sliding", ("all", "none"))
    return window if kinds[0] == "sliding_attention" else None


def _size(values: Mapping[str, Any], key: str) -> int:
    value = _required(values, key)
    if not is_size(value):
        raise _no_number(values, key, "a whole number from 1 on")
    return value


def _positive(values: Mapping[str, Any], key: str) -> float:
    value = _required(values, key)
    if not is_positive(value):
        raise _no_number(values, key, "a positive number")
    return float(value)


def _required(values: Mapping[str, Any], key: str) -> Any:
    if values.get(key) is None:
        raise CheckpointError(
            "the model's configuration lacks a key", {"key": key}, "Copy config.json again, or add the key to it."
        )
    return values[key]


def _no_number(values: Mapping[str, Any], key: str, wanted: str) -> CheckpointError:
    return CheckpointError(
        f"the model's configuration is damaged: {key} is {wanted}", {key: values[key]}, "Copy config.json again."
    )


def _unknown(key: str, value: Any, known: Any) -> CheckpointError:
    return CheckpointError(
        "the model's configuration asks for what is not computed here",
        {key: value, "known": ", ".join(str(k) for k in known)},
        "Use a model of the known kinds: loading this one anyway would give other scores than its authors'.",
    )
