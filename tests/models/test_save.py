import dataclasses
import json
import os
import subprocess

import jax
import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file

from rmjax.errors import CheckpointError, DataError
from rmjax.head import Head
from rmjax.models.forward import forward
from rmjax.models.hf_config import config_from_hf
from rmjax.models.load import RewardModel, load
from rmjax.models.save import save
from tests.models.model_files import FAMILIES, GOLDEN, golden_config, golden_directory, qwen2_tokenizer, unpacked


def bits(model: RewardModel) -> list[bytes]:
    return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(model.params)]


@pytest.mark.parametrize("name", FAMILIES)
def test_save_then_load_gives_the_same_bits(name, tmp_path):
    model = load(golden_directory(name, tmp_path))
    save(tmp_path / "saved", model)
    again = load(tmp_path / "saved")
    assert bits(again) == bits(model)
    assert jax.tree.structure(again.params) == jax.tree.structure(model.params)
    assert again.config == model.config
    assert again.tokenizer.fingerprint() == model.tokenizer.fingerprint()


@pytest.mark.parametrize("name", FAMILIES)
def test_a_model_of_transformers_goes_back_tensor_for_tensor(name, tmp_path):
    """So its score under transformers is the golden one."""
    model = load(golden_directory(name, tmp_path))
    save(tmp_path / "saved", model)
    ours = load_file(tmp_path / "saved" / "model.safetensors")
    theirs = {key: value for file in (GOLDEN / name).glob("*.safetensors") for key, value in load_file(file).items()}
    assert ours.keys() == theirs.keys()
    for key, value in theirs.items():
        assert ours[key].dtype == np.float32
        assert np.array_equal(ours[key], value.astype(np.float32))
    with safe_open(tmp_path / "saved" / "model.safetensors", framework="numpy") as file:
        assert file.metadata() == {"format": "pt"}  # older transformers refuse a file that does not say so
    raw = json.loads((tmp_path / "saved" / "config.json").read_text())
    assert raw["architectures"] == golden_config(name)["architectures"]
    assert config_from_hf(raw) == config_from_hf(golden_config(name))


def test_a_head_that_came_with_a_bias_keeps_it(tmp_path):
    model = load(golden_directory("mistral", tmp_path))
    head = Head(model.params.head.weight, jax.numpy.float32(-0.25))
    biased = dataclasses.replace(model, params=dataclasses.replace(model.params, head=head))
    save(tmp_path / "saved", biased)
    assert bits(load(tmp_path / "saved")) == bits(biased)


def narrowed(x):
    return jax.numpy.asarray(np.asarray(x).astype(jax.numpy.bfloat16))


def test_parameters_in_bfloat16_are_written_as_float32(tmp_path):
    model = load(golden_directory("qwen3", tmp_path))
    narrow = dataclasses.replace(model, params=jax.tree.map(narrowed, model.params))
    save(tmp_path / "saved", narrow)
    again = load(tmp_path / "saved")
    assert all(leaf.dtype == np.float32 for leaf in jax.tree.leaves(again.params))
    for ours, theirs in zip(jax.tree.leaves(again.params), jax.tree.leaves(narrow.params)):
        assert np.array_equal(ours, np.asarray(theirs).astype(np.float32))


def test_a_directory_of_shards_is_not_written_into(tmp_path):
    directory = golden_directory("qwen2", tmp_path)
    with pytest.raises(CheckpointError, match=r"another model.*model\.safetensors\.index\.json"):
        save(directory, load(directory))


@pytest.mark.parametrize(
    "name", ["chat_template.jinja", "special_tokens_map.json", "added_tokens.json", "rmjax.json", "contract.json"]
)
def test_nor_one_with_what_would_be_read_with_the_new_files(name, tmp_path):
    model = load(golden_directory("llama", tmp_path))
    (tmp_path / "saved").mkdir()
    (tmp_path / "saved" / name).write_text("{}")
    with pytest.raises(CheckpointError, match=name):
        save(tmp_path / "saved", model)
    assert [path.name for path in (tmp_path / "saved").iterdir()] == [name]


def test_a_link_to_nowhere_is_a_file_too(tmp_path):
    (tmp_path / "saved").mkdir()
    (tmp_path / "saved" / "chat_template.jinja").symlink_to(tmp_path / "nowhere")
    with pytest.raises(CheckpointError, match=r"chat_template\.jinja"):
        save(tmp_path / "saved", load(golden_directory("llama", tmp_path)))


@pytest.mark.parametrize("place", ["x" * 300, "a\0b", "\ud800"])
def test_a_place_that_no_file_system_has_is_refused(place, tmp_path):
    with pytest.raises(CheckpointError, match="cannot be written"):
        save(tmp_path / place, load(golden_directory("llama", tmp_path)))


def test_a_file_beside_the_model_is_written_with_it_and_has_a_name_of_its_own(tmp_path):
    model = load(golden_directory("llama", tmp_path))
    save(tmp_path / "saved", model, beside={"notes.txt": "mine", "other.txt": None})
    assert (tmp_path / "saved" / "notes.txt").read_text() == "mine"
    save(tmp_path / "saved", model, beside={"notes.txt": None})
    assert not (tmp_path / "saved" / "notes.txt").exists()
    for name in ("../notes.txt", "config.json", "model.safetensors"):
        with pytest.raises(DataError, match="a name of its own"):
            save(tmp_path / "saved", model, beside={name: "x"})
    with pytest.raises(CheckpointError, match="cannot be written"):
        save(tmp_path / "saved", model, beside={"notes.txt": "\ud800"})


def test_a_pad_token_of_its_own_is_written_for_model_and_tokenizer(tmp_path):
    model = load(golden_directory("llama", tmp_path))
    save(tmp_path / "saved", model, pad_token="<|bos|>")
    assert load(tmp_path / "saved").tokenizer.pad_id == 256
    assert json.loads((tmp_path / "saved" / "config.json").read_text())["pad_token_id"] == 256
    with pytest.raises(DataError, match="vocabulary"):
        save(tmp_path / "other", model, pad_token="<pad>")


def test_transformers_gives_the_same_score(tmp_path):
    python = os.environ.get("RMJAX_TORCH_PYTHON")
    if not python:
        pytest.skip("RMJAX_TORCH_PYTHON names no interpreter with torch and transformers: `make parity` sets it")
    chats = json.loads((GOLDEN / "chats.json").read_text("utf-8"))
    texts = json.loads((GOLDEN / "mixed_texts.json").read_text("utf-8"))
    directories = []
    for name in FAMILIES:
        model = load(golden_directory(name, tmp_path))
        # Numbers that no file of transformers holds, and a template that has its own line ends.
        noise = np.random.default_rng(1)
        leaves, tree = jax.tree.flatten(model.params)
        params = jax.tree.unflatten(tree, [x + noise.normal(0, 0.01, x.shape).astype("f4") for x in leaves])
        tokenizer = qwen2_tokenizer() if name == "qwen2" else model.tokenizer
        tokenizer = dataclasses.replace(tokenizer, chat_template=chats["templates"]["whitespace"])
        model = dataclasses.replace(model, params=params, tokenizer=tokenizer)
        directories.append(tmp_path / "saved" / name)
        bos, eos = ("<|im_start|>", 2) if name == "qwen2" else ("<|bos|>", 257)
        save(directories[-1], model, pad_token=bos)
        golden = np.load(GOLDEN / name / "golden.npz")
        ids = [np.append(golden[f"ids_{n}"], eos) for n in range(3)]
        expected = {
            "ids": [sequence.tolist() for sequence in ids],
            "scores": forward(params, unpacked(ids), model.config).scores.tolist(),
            "texts": texts,
            "text_ids": [tokenizer.encode(text) for text in texts],
            "chats": chats["messages"],
            "rendered": [tokenizer.render(chat) for chat in chats["messages"]],
        }
        (directories[-1] / "expected.json").write_text(json.dumps(expected), "utf-8")
    script = [python, str(GOLDEN / "reload_transformers.py"), *map(str, directories)]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
