import json

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import save_file

from rmjax.errors import CheckpointError
from rmjax.models.safetensors_io import SafetensorsDirectory

TENSORS = {
    "a": np.arange(6, dtype=np.float32).reshape(2, 3),
    "b": np.array([1.5, -2.0]).astype(ml_dtypes.bfloat16),
    "c": np.array([0.1], np.float16),
}


def shards(directory, *groups: str, **listed: str):
    for n, group in enumerate(groups):
        save_file({name: TENSORS[name] for name in group}, directory / f"part-{n}.safetensors")
    weight_map = {name: f"part-{n}.safetensors" for n, group in enumerate(groups) for name in group} | listed
    (directory / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))


def test_one_file_and_shards_hold_the_same(tmp_path):
    for name in ("one", "many"):
        (tmp_path / name).mkdir()
    save_file(TENSORS, tmp_path / "one" / "model.safetensors")
    shards(tmp_path / "many", "ac", "b")
    for name in ("one", "many"):
        read = SafetensorsDirectory(tmp_path / name)
        assert set(read) == set(TENSORS)
        for key, tensor in TENSORS.items():
            assert read[key].dtype == tensor.dtype
            assert np.array_equal(read[key], tensor)


@pytest.mark.parametrize("listed", [{"missing": "part-1.safetensors"}, {"a": "part-1.safetensors"}])
def test_an_index_that_promises_what_a_shard_has_not_is_found_before_anything_is_read(tmp_path, listed):
    shards(tmp_path, "a", "bc", **listed)
    with pytest.raises(CheckpointError, match="disagree"):
        SafetensorsDirectory(tmp_path)


def test_a_tensor_that_the_index_forgets_is_found(tmp_path):
    shards(tmp_path, "a", "bc")
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "part-0.safetensors", "b": "part-1.safetensors"}}))
    with pytest.raises(CheckpointError, match="tensor=c"):
        SafetensorsDirectory(tmp_path)


def test_a_missing_shard_and_a_file_cut_short_are_damage(tmp_path):
    shards(tmp_path, "a", "bc")
    whole = (tmp_path / "part-1.safetensors").read_bytes()
    (tmp_path / "part-1.safetensors").write_bytes(whole[:-1])
    with pytest.raises(CheckpointError, match="cannot be read"):
        SafetensorsDirectory(tmp_path)
    (tmp_path / "part-1.safetensors").unlink()
    with pytest.raises(CheckpointError, match="cannot be read"):
        SafetensorsDirectory(tmp_path)


def test_pickled_weights_are_not_read_and_named(tmp_path):
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(CheckpointError, match=r"pytorch_model\.bin"):
        SafetensorsDirectory(tmp_path)
