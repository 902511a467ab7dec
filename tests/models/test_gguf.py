import dataclasses
import math

import gguf
import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmjax.errors import CheckpointError
from rmjax.models.config import Llama3Scaling
from rmjax.models.gguf import GGUFTensors, config_from_gguf, ecosystem_name, halves_from_pairs
from rmjax.models.gguf_format import GGUFFile
from rmjax.models.hf_config import config_from_hf
from rmjax.models.load import load
from rmjax.models.weights import export_tensors, import_params
from tests.models.model_files import golden_config, random_params

FAMILIES = ("llama_biased", "qwen2", "qwen3")
TOKENS = [*"abc", "ab", "abc", *(f"unused {n}" for n in range(253))]


def pairs_from_halves(rows: np.ndarray, heads: int) -> np.ndarray:
    """What the writers of llama files do: element k of the first half before element k of the second."""
    out = np.empty_like(rows)
    size = len(rows) // heads
    for head in range(heads):
        for k in range(size // 2):
            out[head * size + 2 * k] = rows[head * size + k]
            out[head * size + 2 * k + 1] = rows[head * size + size // 2 + k]
    return out


def theirs(name: str) -> str:
    """A tensor's name in GGUF, by the package's own table."""
    arch = gguf.MODEL_ARCH.LLAMA
    if name == "rope_freqs.weight":
        return name
    blocks = gguf.get_tensor_name_map(arch, 4)
    if "q_norm" in name or "k_norm" in name:
        blocks = gguf.get_tensor_name_map(gguf.MODEL_ARCH.QWEN3, 4)
    return blocks.get_name(name, try_suffixes=(".weight", ".bias"))


def write(path, config, tensors, **metadata):
    """A GGUF file of a golden configuration."""
    arch = config.family
    writer = gguf.GGUFWriter(path, arch)
    writer.add_block_count(config.num_layers)
    writer.add_context_length(config.max_positions)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_heads)
    writer.add_head_count_kv(config.num_kv_heads)
    writer.add_key_length(config.head_dim)
    writer.add_layer_norm_rms_eps(config.norm_eps)
    writer.add_rope_freq_base(config.rope_theta)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(TOKENS)
    writer.add_token_types([1] * len(TOKENS))
    writer.add_token_merges(["a b", "ab c"])
    for key, value in metadata.items():
        writer.add_key_value(key, value, gguf.GGUFValueType.STRING)
    for name, tensor in tensors.items():
        heads = {"q": config.num_heads, "k": config.num_kv_heads}
        if arch == "llama" and (letter := name.partition("_proj")[0][-1]) in heads and "_proj" in name:
            tensor = pairs_from_halves(tensor, heads[letter])
        writer.add_tensor(theirs(name), np.ascontiguousarray(tensor))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def trunk(name: str):
    """A configuration that GGUF can say, and its parameters without a head."""
    config = dataclasses.replace(config_from_hf(golden_config(name)), max_positions=64)
    tensors = export_tensors(random_params(config), config)
    del tensors["score.weight"]
    if not config.tie_embeddings:
        tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"] + 1
    return config, tensors


@pytest.mark.parametrize("name", FAMILIES)
def test_a_file_gives_the_configuration_and_the_parameters_that_were_written(name, tmp_path):
    config, tensors = trunk(name)
    write(tmp_path / "m.gguf", config, tensors)
    file = GGUFFile(tmp_path / "m.gguf")
    assert config_from_gguf(file) == config
    read = GGUFTensors(file, config)
    assert set(read) == set(tensors)
    params, report = import_params(read, config, format="gguf")
    expected, _ = import_params(tensors, config)
    for ours, wanted in zip(jax.tree.leaves(params), jax.tree.leaves(expected), strict=True):
        assert np.array_equal(ours, wanted)
    assert report.head == "new head"
    assert report.ignored == (() if config.tie_embeddings else ("lm_head.weight",))


@given(st.integers(1, 4), st.integers(1, 8), st.integers(0, 2**32 - 1))
def test_rows_go_from_pairs_to_halves_and_back(heads, half, seed):
    rows = np.random.default_rng(seed).normal(size=(heads * 2 * half, 3))
    assert np.array_equal(halves_from_pairs(pairs_from_halves(rows, heads), heads), rows)


def test_the_names_are_those_of_the_package(tmp_path):
    for name in FAMILIES:
        _, tensors = trunk(name)
        assert {ecosystem_name(theirs(key)) for key in tensors} == set(tensors)


def test_names_that_are_not_defined_stay_and_are_refused_later(tmp_path):
    assert ecosystem_name("blk.0.ffn_gate_exps.weight") == "blk.0.ffn_gate_exps.weight"
    config, tensors = trunk("qwen3")
    write(tmp_path / "m.gguf", config, tensors)
    file = GGUFFile(tmp_path / "m.gguf")
    read = dict(GGUFTensors(file, config)) | {"blk.0.ffn_gate_exps.weight": np.zeros(3, np.float32)}
    with pytest.raises(CheckpointError, match="ffn_gate_exps"):
        import_params(read, config)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"general.architecture": "gemma3"}, "general.architecture=gemma3"),
        ({"llama.rope.scaling.type": "yarn"}, "rope scaling=yarn"),
        ({"llama.rope.dimension_count": 4}, "rope.dimension_count=4"),
        ({"llama.block_count": None}, "key=llama.block_count"),
        ({"llama.block_count": 0}, "llama.block_count=0"),
        ({"llama.block_count": 2.5}, "llama.block_count=2.5"),
        ({"llama.attention.head_count": 0}, "llama.attention.head_count=0"),
        ({"llama.attention.head_count_kv": [2, 2]}, "head_count_kv is a whole number"),
        ({"llama.feed_forward_length": [64, 64]}, "feed_forward_length is a whole number"),
        ({"llama.embedding_length": "64"}, "llama.embedding_length=64"),
        ({"llama.context_length": True}, "llama.context_length=True"),
        ({"llama.attention.sliding_window": 0}, "llama.attention.sliding_window=0"),
        ({"llama.attention.layer_norm_rms_epsilon": "x"}, "layer_norm_rms_epsilon=x"),
        ({"llama.attention.layer_norm_rms_epsilon": math.nan}, "layer_norm_rms_epsilon=nan"),
        ({"llama.rope.freq_base": 0.0}, "llama.rope.freq_base=0.0"),
        ({"llama.attention.head_count_kv": 3}, "num_heads=4, num_kv_heads=3"),
        ({"llama.attention.key_length": 15, "llama.rope.dimension_count": 15}, "head_dim=15"),
    ],
)
def test_what_would_change_scores_is_refused_by_name(change, named, tmp_path):
    config, tensors = trunk("llama_biased")
    write(tmp_path / "m.gguf", config, tensors)
    file = GGUFFile(tmp_path / "m.gguf")
    file.metadata.update(change)
    with pytest.raises(CheckpointError, match=named):
        config_from_gguf(file)


def llama3_factors(config, factor, original=8192):
    """What the writers of Llama 3 files store, by their own plain loop."""
    found = []
    for k in range(0, config.head_dim, 2):
        length = 2 * math.pi * config.rope_theta ** (k / config.head_dim)
        if length < original / 4:
            found.append(1.0)
        elif length > original:
            found.append(factor)
        else:
            smooth = (original / length - 1) / 3
            found.append(1 / ((1 - smooth) / factor + smooth))
    return np.array(found, np.float32)


@pytest.mark.parametrize("factor", [8.0, 32.0])
def test_the_scaling_of_llama_3_is_found_in_its_factors(factor, tmp_path):
    config, tensors = trunk("llama_biased")
    config = dataclasses.replace(config, rope_theta=500_000.0, rope_scaling=Llama3Scaling(factor, 1.0, 4.0, 8192))
    factors = llama3_factors(config, factor)
    assert len(set(factors.tolist())) > 2
    write(tmp_path / "m.gguf", config, tensors | {"rope_freqs.weight": factors})
    file = GGUFFile(tmp_path / "m.gguf")
    assert config_from_gguf(file) == config
    assert set(GGUFTensors(file, config)) == set(tensors)


@pytest.mark.parametrize(
    "change",
    [
        lambda f: f * np.linspace(1, 1.01, len(f)),
        lambda f: f[1:],
        lambda f: f[:0],
        lambda f: f[None],
        lambda f: f[::-1],
        lambda f: 0 * f,
        lambda f: np.append(f[:-1], np.nan),
        lambda f: np.append(f[:-1], np.inf),
    ],
)
def test_other_factors_are_refused(change, tmp_path):
    config, tensors = trunk("llama_biased")
    config = dataclasses.replace(config, rope_theta=500_000.0)
    factors = change(llama3_factors(config, 8.0)).astype(np.float32)
    write(tmp_path / "m.gguf", config, tensors | {"rope_freqs.weight": np.ascontiguousarray(factors)})
    with pytest.raises(CheckpointError, match=r"rope_freqs\.weight"):
        config_from_gguf(GGUFFile(tmp_path / "m.gguf"))


def test_load_opens_a_file_by_its_ending(tmp_path):
    config, tensors = trunk("qwen3")
    write(tmp_path / "m.gguf", config, tensors, **{"tokenizer.chat_template": "{{ messages[0].content }}"})
    model = load(tmp_path / "m.gguf")
    assert model.config == config
    assert model.report.stored == {"F32": len(tensors)}
    assert model.tokenizer.render([{"role": "user", "content": "abc"}]) == "abc"
    assert model.tokenizer.encode("abc") == [4]
