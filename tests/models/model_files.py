"""What the tests of model files share: the golden directories, the offline weights, and small trees of arrays."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import jax
import numpy as np
import pytest

from rmjax.batch import Batch
from rmjax.comparisons import Comparisons
from rmjax.errors import CheckpointError
from rmjax.models.config import ModelConfig
from rmjax.models.load import installed_weights
from rmjax.models.params import Params, ParamSpec, abstract
from rmjax.tokenizer import ByteTokenizer, Tokenizer, from_gguf

GOLDEN = Path(__file__).parents[1] / "golden"
FAMILIES = ("llama", "llama_biased", "mistral", "qwen2", "qwen3")


def golden_directory(name: str, folder: Path) -> Path:
    """A copy of a golden model with a tokenizer beside it, as `load` wants it."""
    target = folder / name
    shutil.copytree(GOLDEN / name, target, copy_function=shutil.copyfile)
    ByteTokenizer().save(target)
    return target


def golden_config(name: str) -> dict:
    return json.loads((GOLDEN / name / "config.json").read_text("utf-8"))


def qwen2_tokenizer() -> Tokenizer:
    """The small vocabulary of the golden ids, cut as Qwen2 does."""
    parts = json.loads((GOLDEN / "qwen2_tokenizer.json").read_text("utf-8"))
    return from_gguf(
        {
            "tokenizer.ggml.model": "gpt2",
            "tokenizer.ggml.pre": "qwen2",
            "tokenizer.ggml.tokens": parts["tokens"],
            "tokenizer.ggml.merges": parts["merges"],
            "tokenizer.ggml.token_type": [3 if token.startswith("<|") else 1 for token in parts["tokens"]],
            "tokenizer.ggml.eos_token_id": 2,
            "tokenizer.ggml.padding_token_id": 0,
        }
    )


def smollm2() -> Path:
    """The GGUF file of SmolLM2-135M; the test is skipped where it is not installed."""
    try:
        return installed_weights("smollm2-135m")
    except CheckpointError as error:
        pytest.skip(str(error))


def random_params(config: ModelConfig, *, seed: int = 0, head_bias: bool = False) -> Params:
    """Every leaf drawn by NumPy, biases and gains included."""
    generator = np.random.default_rng(seed)

    def draw(spec: ParamSpec) -> jax.Array:
        gain = float(spec.init == "ones")
        return jax.numpy.asarray(generator.normal(gain, spec.fan_in**-0.5, spec.shape).astype(np.float32))

    return jax.tree.map(draw, abstract(config, head_bias=head_bias), is_leaf=lambda x: isinstance(x, ParamSpec))


def unpacked(sequences: list[np.ndarray]) -> Batch:
    """One sequence a row, scored at its last token."""
    width = max(map(len, sequences))
    tokens, segment = np.zeros((2, len(sequences), width), np.int32)
    segment -= 1
    for row, ids in enumerate(sequences):
        tokens[row, : len(ids)], segment[row, : len(ids)] = ids, 0
    return Batch(
        tokens=tokens,
        segment=segment,
        parent=np.full_like(segment, -1),
        depth=np.broadcast_to(np.arange(width, dtype=np.int32), tokens.shape),
        score_index=np.array([row * width + len(ids) - 1 for row, ids in enumerate(sequences)], np.int32),
        comparisons=Comparisons.from_pairs([], [], prompt=[0] * len(sequences)),
    )


def relative(ours: jax.Array, theirs: np.ndarray) -> float:
    """The largest difference of a vector over its norm."""
    ours = np.asarray(ours)
    return float((np.linalg.norm(ours - theirs, axis=-1) / np.linalg.norm(theirs, axis=-1)).max())
