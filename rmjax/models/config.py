"""What distinguishes one decoder of the Llama family from another."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from rmjax.errors import CheckpointError

_SMALLEST, _LARGEST = float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).max)
Family = Literal["llama", "mistral", "qwen2", "qwen3"]


@dataclasses.dataclass(frozen=True)
class Llama3Scaling:
    """How Llama 3.1 and later stretch the slow rotary frequencies to a longer context."""

    factor: float
    low_freq_factor: float
    high_freq_factor: float
    original_max_positions: int

    def __post_init__(self):
        _require(self, ("original_max_positions",), is_size, _SIZE)
        _require(self, _SCALING_FACTORS, is_positive, f"factors are {_POSITIVE}")


@dataclasses.dataclass(frozen=True)
class ModelConfig:
    """One decoder: Llama 2 and 3, Mistral, Qwen2 and Qwen3 are values of this class, not classes of their own.

    Raises:
        CheckpointError: what no decoder has: sizes that are not whole or below 1, heads that do not share key heads
            evenly, an odd head, an epsilon or a theta that is not positive, or a window of no tokens.

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
        >>> config.num_parameters
        90624
    """

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    family: Family = "llama"
    norm_eps: float = 1e-5
    rope_theta: float = 10_000.0
    rope_scaling: Llama3Scaling | None = None
    qkv_bias: bool = False
    o_bias: bool = False
    mlp_bias: bool = False
    qk_norm: bool = False
    sliding_window: int | None = None  # tokens that a token sees, itself included; in every layer
    tie_embeddings: bool = True  # of the vocabulary head, which a reward model does not have: kept for export
    max_positions: int = 2048

    def __post_init__(self):
        sizes = _SIZES if self.sliding_window is None else (*_SIZES, "sliding_window")
        _require(self, sizes, is_size, _SIZE)
        _require(self, ("norm_eps", "rope_theta"), is_positive, f"norm_eps and rope_theta are {_POSITIVE}")
        if self.num_heads % self.num_kv_heads:
            said = {"num_heads": self.num_heads, "num_kv_heads": self.num_kv_heads}
            raise _no_decoder("every key head serves as many heads", said)
        if self.head_dim % 2:
            raise _no_decoder("head_dim is even, since rotary positions turn pairs", {"head_dim": self.head_dim})

    @property
    def num_parameters(self) -> int:
        """Trunk and head, embeddings included."""
        return self.vocab_size * self.hidden_size + self.num_layers * self.block_parameters + 2 * self.hidden_size

    @property
    def block_parameters(self) -> int:
        """One layer."""
        query, key = self.num_heads * self.head_dim, self.num_kv_heads * self.head_dim
        matrices = self.hidden_size * (2 * query + 2 * key + 3 * self.intermediate_size)
        biases = (
            self.qkv_bias * (query + 2 * key)
            + self.o_bias * self.hidden_size
            + self.mlp_bias * (2 * self.intermediate_size + self.hidden_size)
        )
        return matrices + biases + 2 * self.hidden_size + self.qk_norm * 2 * self.head_dim


def is_size(value: Any) -> bool:
    """Whether a value counts something that a decoder has: a whole number from 1 on.

    Example:
        >>> is_size(4), is_size(4.0), is_size(True)
        (True, False, False)
    """
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def is_positive(value: Any) -> bool:
    """Whether a value is a number above 0 that float32 can hold, in which the model computes.

    Example:
        >>> is_positive(1e-5), is_positive(float("nan")), is_positive("1e-5")
        (True, False, False)
    """
    return isinstance(value, int | float) and not isinstance(value, bool) and _SMALLEST <= value <= _LARGEST


_SIZES = (
    *("vocab_size", "hidden_size", "intermediate_size", "num_layers"),
    *("num_heads", "num_kv_heads", "head_dim", "max_positions"),
)
_SIZE, _POSITIVE = "sizes are of type int, from 1 on", "of type float or int, and positive in float32"
_SCALING_FACTORS = ("factor", "low_freq_factor", "high_freq_factor")


def _require(
    config: ModelConfig | Llama3Scaling, names: tuple[str, ...], holds: Callable[[Any], bool], rule: str
) -> None:
    values = {name: getattr(config, name) for name in names}
    if wrong := {name: repr(value) for name, value in values.items() if not holds(value)}:
        raise _no_decoder(rule, wrong)


def _no_decoder(rule: str, values: dict[str, Any]) -> CheckpointError:
    return CheckpointError(
        f"the model's configuration is damaged: {rule}", values, "Copy the model's files again, or mend these numbers."
    )
