import dataclasses

import jax
import ml_dtypes
import numpy as np
import pytest

from rmjax.errors import CheckpointError
from rmjax.models.hf_config import config_from_hf
from rmjax.models.weights import export_tensors, import_params
from tests.models.model_files import FAMILIES, golden_config, random_params

CONFIGS = {name: config_from_hf(golden_config(name)) for name in FAMILIES}
CONFIG = CONFIGS["qwen3"]
TENSORS = export_tensors(random_params(CONFIG), CONFIG)


def leaves(params):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(params)]


@pytest.mark.parametrize("head_bias", [False, True])
@pytest.mark.parametrize("name", FAMILIES)
def test_export_then_import_gives_the_same_bits(name, head_bias):
    params = random_params(CONFIGS[name], head_bias=head_bias)
    again, report = import_params(export_tensors(params, CONFIGS[name]), CONFIGS[name])
    assert jax.tree.structure(again) == jax.tree.structure(params)
    for ours, theirs in zip(leaves(again), leaves(params)):
        assert ours.dtype == theirs.dtype
        assert np.array_equal(ours, theirs)
    assert report.ignored == ()
    assert report.stored == {"float32": report.num_tensors}


def test_a_linear_map_of_the_file_multiplies_as_it_does_there():
    """The file's x Wᵀ is our contraction over the input axes, for one and for two of them."""
    params, _ = import_params(TENSORS, CONFIG)
    x = np.random.default_rng(0).normal(size=CONFIG.hidden_size).astype(np.float32)
    q = x @ TENSORS["model.layers.1.self_attn.q_proj.weight"].T
    np.testing.assert_allclose(np.einsum("d,dhk->hk", x, params.blocks.wq[1]).ravel(), q, rtol=1e-5, atol=1e-5)
    o = q @ TENSORS["model.layers.1.self_attn.o_proj.weight"].T
    heads = q.reshape(CONFIG.num_heads, CONFIG.head_dim)
    np.testing.assert_allclose(np.einsum("hk,hkd->d", heads, params.blocks.wo[1]), o, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
def test_every_float_becomes_float32_without_a_change(dtype):
    narrow = {name: tensor.astype(dtype) for name, tensor in TENSORS.items()}
    params, report = import_params(narrow, CONFIG)
    back = export_tensors(params, CONFIG)
    assert report.stored == {np.dtype(dtype).name: len(TENSORS)}
    assert {leaf.dtype for leaf in leaves(params)} == {np.dtype(np.float32)}
    assert all(np.array_equal(back[name], tensor.astype(np.float32)) for name, tensor in narrow.items())


@pytest.mark.parametrize("name", TENSORS)
def test_no_tensor_can_be_missing_but_the_head(name):
    fewer = {key: value for key, value in TENSORS.items() if key != name}
    if name == "score.weight":
        params, report = import_params(fewer, CONFIG)
        assert report.head == "new head"
        assert not np.any(params.head.weight)
        return
    with pytest.raises(CheckpointError, match="lacks a tensor") as error:
        import_params(fewer, CONFIG)
    assert error.value.numbers == {"tensor": name, "missing": 1}


@pytest.mark.parametrize("name", TENSORS)
def test_no_tensor_can_have_another_shape(name):
    for wrong in (TENSORS[name][..., :-1], TENSORS[name][None]):
        with pytest.raises(CheckpointError, match="another shape") as error:
            import_params({**TENSORS, name: wrong}, CONFIG)
        assert error.value.numbers["tensor"] == name
        assert error.value.numbers["expected"] == TENSORS[name].shape


@pytest.mark.parametrize(
    "name",
    [
        "model.layers.0.self_attn.q_proj.bias",
        "model.layers.2.mlp.up_proj.weight",
        "model.layers.0.self_attn.q_proj.lora_A.weight",
        "score.0.weight",
        "regression_layer.weight",
        "something.new",
        "draft.lm_head.weight",
    ],
)
def test_no_tensor_is_left_out_in_silence(name):
    with pytest.raises(CheckpointError, match="no place for") as error:
        import_params({**TENSORS, name: np.zeros(3, np.float32)}, CONFIG)
    assert error.value.numbers["tensor"] == name


def test_what_is_known_and_unused_is_reported():
    extra = ("lm_head.weight", "model.layers.0.self_attn.rotary_emb.inv_freq", "model.rotary_emb.inv_freq")
    _, report = import_params({**TENSORS, **dict.fromkeys(extra, np.zeros(1, np.float32))}, CONFIG)
    assert report.ignored == extra
    assert report.num_tensors == len(TENSORS) + 3


@pytest.mark.parametrize("head", ["score", "score_head", "value_head", "v_head", "v_head.summary", "regression_head"])
def test_a_linear_head_is_kept_under_every_name(head):
    renamed = {name: tensor for name, tensor in TENSORS.items() if name != "score.weight"}
    renamed |= {f"{head}.weight": TENSORS["score.weight"], f"{head}.bias": np.array([0.5], np.float32)}
    params, report = import_params(renamed, CONFIG)
    assert report.head == f"{head}.weight"
    assert np.array_equal(params.head.weight, TENSORS["score.weight"][0])
    assert params.head.bias is not None
    assert float(params.head.bias) == 0.5


def test_two_heads_and_two_outputs_are_refused():
    with pytest.raises(CheckpointError, match=r"score\.weight, v_head\.weight"):
        import_params({**TENSORS, "v_head.weight": TENSORS["score.weight"]}, CONFIG)
    with pytest.raises(CheckpointError, match="one output"):
        import_params({**TENSORS, "score.weight": np.zeros((2, CONFIG.hidden_size), np.float32)}, CONFIG)


def test_a_bare_trunk_has_no_prefix():
    bare = {name.removeprefix("model."): tensor for name, tensor in TENSORS.items() if name != "score.weight"}
    params, _ = import_params(bare, CONFIG)
    assert np.array_equal(params.embed, TENSORS["model.embed_tokens.weight"])


def test_quantised_tensors_are_refused():
    name = "model.norm.weight"
    with pytest.raises(CheckpointError, match="quantised"):
        import_params({**TENSORS, name: TENSORS[name].astype(np.int8)}, CONFIG)


def test_more_layers_than_the_configuration_says_are_too_many_and_fewer_too_few():
    for layers, what in ((1, "no place for"), (3, "lacks a tensor")):
        with pytest.raises(CheckpointError, match=what):
            import_params(TENSORS, dataclasses.replace(CONFIG, num_layers=layers))
