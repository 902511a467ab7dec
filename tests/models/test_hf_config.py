import dataclasses
import json

import pytest

from rmjax.errors import CheckpointError
from rmjax.models.config import Llama3Scaling
from rmjax.models.hf_config import config_from_hf, config_to_hf
from tests.models.model_files import FAMILIES, golden_config

LLAMA = golden_config("llama")


def legacy(raw: dict) -> dict:
    """The same configuration as transformers 4 wrote it."""
    old = {key: value for key, value in raw.items() if key != "rope_parameters"}
    rope = dict(raw["rope_parameters"])
    old["rope_theta"] = rope.pop("rope_theta")
    old["rope_scaling"] = rope if rope["rope_type"] != "default" else None
    return old


@pytest.mark.parametrize("name", FAMILIES)
def test_both_layouts_of_the_rotary_keys_say_the_same(name):
    raw = golden_config(name)
    assert config_from_hf(legacy(raw)) == config_from_hf(raw)


def test_the_oldest_name_of_the_scaling_and_a_missing_length_are_understood():
    old = legacy(LLAMA)
    old["rope_scaling"]["type"] = old["rope_scaling"].pop("rope_type")
    assert config_from_hf(old) == config_from_hf(LLAMA)
    del old["rope_scaling"]["original_max_position_embeddings"]
    scaling = config_from_hf({**old, "max_position_embeddings": 99}).rope_scaling
    assert scaling == Llama3Scaling(8.0, 1.0, 4.0, original_max_positions=99)


@pytest.mark.parametrize("name", FAMILIES)
def test_what_is_written_reads_back_equal_and_is_json(name):
    config = config_from_hf(golden_config(name))
    written = json.loads(json.dumps(config_to_hf(config, pad_token_id=3)))
    assert config_from_hf(written) == config_from_hf(legacy(written)) == config
    assert written["pad_token_id"] == 3
    assert len(written["id2label"]) == 1


def test_families_differ_where_transformers_hard_codes_it():
    configs = {name: config_from_hf(golden_config(name)) for name in FAMILIES}
    biases = {name: (c.qkv_bias, c.o_bias, c.mlp_bias, c.qk_norm) for name, c in configs.items()}
    assert biases == {
        "llama": (False, False, False, False),
        "llama_biased": (True, True, True, False),
        "mistral": (False, False, False, False),
        "qwen2": (True, False, False, False),
        "qwen3": (False, False, False, True),
    }
    assert configs["mistral"].sliding_window == 5
    assert configs["qwen3"].head_dim * configs["qwen3"].num_heads != configs["qwen3"].hidden_size


def test_absent_keys_mean_what_the_class_of_transformers_means():
    sizes = {"vocab_size": 9, "hidden_size": 64, "intermediate_size": 8, "num_hidden_layers": 2}
    got = {
        family: config_from_hf({"model_type": family, "num_attention_heads": 32, **sizes})
        for family in ("llama", "mistral", "qwen2", "qwen3")
    }
    assert [c.num_kv_heads for c in got.values()] == [32, 8, 32, 32]
    assert [c.head_dim for c in got.values()] == [2, 2, 2, 128]
    assert [c.sliding_window for c in got.values()] == [None, 4096, None, None]
    assert [c.max_positions for c in got.values()] == [2048, 131072, 32768, 32768]
    assert {(c.norm_eps, c.rope_theta, c.tie_embeddings) for c in got.values()} == {(1e-6, 10_000.0, False)}
    assert config_from_hf({**LLAMA, "head_dim": None, "num_key_value_heads": None}).num_kv_heads == 4
    assert not config_from_hf({**LLAMA, "tie_word_embeddings": None}).tie_embeddings


@pytest.mark.parametrize(
    ("keys", "window"),
    [
        ({"sliding_window": 7, "max_window_layers": 0}, None),
        ({"sliding_window": 7, "use_sliding_window": True, "max_window_layers": 0}, 7),
        ({"sliding_window": 7, "use_sliding_window": True, "max_window_layers": 28}, None),
        ({"sliding_window": 7, "use_sliding_window": True, "layer_types": ["sliding_attention"] * 2}, 7),
        ({"sliding_window": None, "use_sliding_window": True}, None),
    ],
)
def test_qwens_window_counts_only_when_it_is_used(keys, window):
    raw = {key: value for key, value in golden_config("qwen2").items() if key != "layer_types"}
    config = config_from_hf({**raw, **keys})
    assert config.sliding_window == window
    assert config_from_hf(config_to_hf(config)) == config


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"model_type": "gemma2"}, "model_type=gemma2"),
        ({"model_type": None}, "model_type=None"),
        ({"hidden_act": "gelu"}, "hidden_act=gelu"),
        ({"rope_parameters": {"rope_type": "yarn", "factor": 4.0}}, "rope_type=yarn"),
        ({"rope_scaling": {"type": "linear", "factor": 4.0}}, "rope_type=linear"),
        ({"rope_parameters": {"full_attention": {"rope_type": "default"}}}, "rope_type"),
        ({"rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.5}}, "partial_rotary_factor=0.5"),
        ({"partial_rotary_factor": 0.5}, "partial_rotary_factor=0.5"),
        ({"quantization_config": {"bits": 4}}, "quantization_config"),
        ({"normalize_reward": True}, "normalize_reward=True"),
        ({"hidden_size": None}, "key=hidden_size"),
        ({"hidden_size": "64"}, "hidden_size=64"),
        ({"num_key_value_heads": 0}, "num_key_value_heads=0"),
        ({"head_dim": 16.0}, "head_dim=16.0"),
        ({"rms_norm_eps": "1e-5"}, "rms_norm_eps=1e-5"),
        ({"rms_norm_eps": float("nan")}, "rms_norm_eps=nan"),
        ({"max_position_embeddings": "2048"}, "max_position_embeddings=2048"),
        ({"num_attention_heads": 4, "num_key_value_heads": 3}, "num_heads=4, num_kv_heads=3"),
        ({"head_dim": 15}, "head_dim is even"),
        ({"tie_word_embeddings": "false"}, "tie_word_embeddings is true or false"),
        ({"rope_parameters": "x"}, "rope_parameters is an object"),
        ({"rope_parameters": {"rope_theta": "abc"}}, "rope_theta is a positive number"),
        ({"rope_parameters": {"rope_type": "llama3", "factor": 8.0}}, "key=low_freq_factor"),
        ({"model_type": "mistral", "sliding_window": 0}, "sliding_window=0"),
    ],
)
def test_what_would_change_scores_is_refused_by_name(change, named):
    with pytest.raises(CheckpointError, match=named):
        config_from_hf({**LLAMA, **change})


def test_a_window_that_is_not_used_is_not_looked_at():
    raw = {**golden_config("qwen2"), "use_sliding_window": False, "sliding_window": 0}
    assert config_from_hf(raw).sliding_window is None


def test_a_mixture_of_windows_is_refused():
    mixed = {"use_sliding_window": True, "sliding_window": 7, "max_window_layers": 1}
    raw = {key: value for key, value in golden_config("qwen3").items() if key != "layer_types"}
    with pytest.raises(CheckpointError, match="1 of 2 sliding"):
        config_from_hf({**raw, **mixed})


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("mistral", {"o_bias": True}),
        ("llama", {"sliding_window": 8}),
        ("llama", {"qk_norm": True}),
        ("qwen2", {"qkv_bias": False}),
        ("llama", {"qkv_bias": True}),
    ],
)
def test_a_decoder_that_no_family_is_cannot_be_written(name, change):
    config = dataclasses.replace(config_from_hf(golden_config(name)), **change)
    with pytest.raises(CheckpointError, match=next(iter(change))):
        config_to_hf(config)
