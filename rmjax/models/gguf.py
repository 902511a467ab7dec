"""What a GGUF file says in its own names: configuration and weights, turned into the ecosystem's."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

import numpy as np

from rmjax.errors import CheckpointError
from rmjax.models.config import Family, Llama3Scaling, ModelConfig, is_positive, is_size
from rmjax.models.gguf_format import GGUFFile
from rmjax.models.layers import rope_frequencies

_FAMILIES = ("llama", "qwen2", "qwen3")  # Mistral files call themselves llama
_FACTORS = "rope_freqs.weight"
_CONVERT = "Convert the model to GGUF again."
_REQUIRED = object()
_TRUNK = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
_LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def config_from_gguf(file: GGUFFile) -> ModelConfig:
    """The decoder that a file's metadata describe.

    Args:
        file: opened.

    Returns:
        The configuration.

    Raises:
        CheckpointError: another architecture or rotary scaling than is known, metadata that are missing, or sizes that
            no decoder has.

    Example:
        >>> metadata = {
        ...     "general.architecture": "llama",
        ...     "llama.vocab_size": 258,
        ...     "llama.embedding_length": 64,
        ...     "llama.feed_forward_length": 128,
        ...     "llama.block_count": 2,
        ...     "llama.attention.head_count": 4,
        ...     "llama.attention.layer_norm_rms_epsilon": 1e-5,
        ... }
        >>> file = GGUFFile("header", memory=b"GGUF" + bytes([3]) + bytes(19))
        >>> file.metadata.update(metadata)
        >>> config_from_gguf(file).head_dim
        16
    """
    family = file.metadata.get("general.architecture")
    if family not in _FAMILIES:
        raise _unknown("general.architecture", family, _FAMILIES)

    def get(key: str, default: Any = _REQUIRED, *, wanted: str, holds: Callable[[Any], bool]) -> Any:
        key = f"{family}.{key}"
        if key not in file.metadata and default is not _REQUIRED:
            return default
        if (value := file.metadata.get(key)) is None:
            raise CheckpointError("the file's metadata lack a key", {"key": key}, _CONVERT)
        if not holds(value):
            raise CheckpointError(f"the file's metadata are damaged: {key} is {wanted}", {key: value}, _CONVERT)
        return value

    size = functools.partial(get, wanted="a whole number from 1 on", holds=is_size)
    positive = functools.partial(get, wanted="a positive number", holds=is_positive)
    if (scaling := file.metadata.get(f"{family}.rope.scaling.type", "none")) != "none":
        raise _unknown("rope scaling", scaling, ("none", f"that of Llama 3 in {_FACTORS}"))
    heads, hidden = size("attention.head_count"), size("embedding_length")
    head_dim = size("attention.key_length", hidden // heads)
    if (rotated := size("rope.dimension_count", head_dim)) != head_dim:
        raise _unknown("rope.dimension_count", rotated, (head_dim,))
    has = lambda name: f"blk.0.{name}" in file  # noqa: E731
    config = ModelConfig(
        family=cast(Family, family),
        vocab_size=file.shape("token_embd.weight")[0] if "token_embd.weight" in file else size("vocab_size"),
        hidden_size=hidden,
        intermediate_size=size("feed_forward_length"),
        num_layers=size("block_count"),
        num_heads=heads,
        num_kv_heads=size("attention.head_count_kv", heads),
        head_dim=head_dim,
        # The format keeps float32; the model was trained with the decimal number.
        norm_eps=_decimal(positive("attention.layer_norm_rms_epsilon")),
        rope_theta=positive("rope.freq_base", 10_000.0),
        qkv_bias=has("attn_q.bias"),
        o_bias=has("attn_output.bias"),
        mlp_bias=has("ffn_up.bias"),
        qk_norm=has("attn_q_norm.weight"),
        sliding_window=size("attention.sliding_window", None),
        tie_embeddings="output.weight" not in file,
        max_positions=size("context_length", 2048),
    )
    if _FACTORS not in file:
        return config
    return dataclasses.replace(config, rope_scaling=llama3_scaling(file[_FACTORS], config))


def llama3_scaling(factors: np.ndarray, config: ModelConfig) -> Llama3Scaling:
    """The scaling of Llama 3.1 and later, of which a GGUF file keeps only by how much each frequency is divided.

    Args:
        factors: one per frequency, [K/2].
        config: the decoder without a scaling.

    Returns:
        The scaling that gives these factors, to float32.

    Raises:
        CheckpointError: none of the published form does.

    Example:
        >>> config = ModelConfig(128, 64, 128, num_layers=1, num_heads=1, num_kv_heads=1, head_dim=4, rope_theta=5e5)
        >>> llama3_scaling(np.array([1.0, 1.0]), config).factor
        1.0
    """
    if factors.shape != (config.head_dim // 2,) or not (np.isfinite(factors) & (factors > 0)).all():
        raise _unknown(_FACTORS, f"{factors.size} numbers", ("one above 0 for each frequency",))
    scaling = Llama3Scaling(float(np.max(factors)), 1.0, 4.0, 8192)  # of all published ones, which differ in the factor
    plain, scaled = rope_frequencies(config), rope_frequencies(dataclasses.replace(config, rope_scaling=scaling))
    if not np.allclose(plain / factors, scaled, rtol=1e-5, atol=0):
        raise _unknown(_FACTORS, "other factors than those of Llama 3", ("that scaling",))
    return scaling


class GGUFTensors(Mapping[str, np.ndarray]):
    """A file's tensors under the ecosystem's names and in its order of rows.

    Guarantees: the query and key rows of a llama file are put back in order. The format interleaves the two halves
    that rotary embeddings turn against each other, for llama alone. Factors of rotary frequencies are part of the
    configuration.
    """

    def __init__(self, file: GGUFFile, config: ModelConfig):
        self._file, self._config = file, config
        self._theirs = {ecosystem_name(name): name for name in file if name != _FACTORS}

    def __getitem__(self, name: str) -> np.ndarray:
        tensor = self._file[self._theirs[name]]
        if self._config.family != "llama" or not (match := re.search(r"\.([qk])_proj\.", name)):
            return tensor
        return halves_from_pairs(tensor, self._config.num_heads if match[1] == "q" else self._config.num_kv_heads)

    def __iter__(self) -> Iterator[str]:
        return iter(self._theirs)

    def __len__(self) -> int:
        return len(self._theirs)


def ecosystem_name(name: str) -> str:
    """A tensor's name in safetensors files; names that GGUF does not define stay as they are.

    Args:
        name: in the GGUF file.

    Returns:
        The other name.

    Example:
        >>> ecosystem_name("blk.3.attn_output.weight")
        'model.layers.3.self_attn.o_proj.weight'
    """
    match = re.fullmatch(r"blk\.(\d+)\.(\w+)\.(weight|bias)", name)
    if match and match[2] in _LAYER:
        return f"model.layers.{match[1]}.{_LAYER[match[2]]}.{match[3]}"
    return _TRUNK.get(name, name)


def halves_from_pairs(rows: np.ndarray, heads: int) -> np.ndarray:
    """Rows of every head from the order (0, K/2, 1, K/2 + 1, ...) to 0, 1, ..., K - 1.

    Args:
        rows: [heads * K, ...].
        heads: how many.

    Returns:
        The rows in order.

    Example:
        >>> halves_from_pairs(np.array([0, 2, 1, 3]), heads=1)
        array([0, 1, 2, 3])
    """
    pairs = rows.reshape(heads, -1, 2, *rows.shape[1:])
    return np.swapaxes(pairs, 1, 2).reshape(rows.shape)


def _decimal(value: float) -> float:
    """The shortest decimal number that is this float32."""
    return float(str(np.float32(value)))


def _unknown(key: str, value: Any, known: tuple[Any, ...]) -> CheckpointError:
    return CheckpointError(
        "the GGUF file asks for what is not computed here",
        {key: value, "known": ", ".join(map(str, known))},
        "Load the model from a directory of safetensors, or use one of the known kinds.",
    )
