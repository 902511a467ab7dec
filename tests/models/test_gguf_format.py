import dataclasses
import struct

import gguf
import numpy as np
import pytest

from rmjax.errors import CheckpointError
from rmjax.models.gguf_format import GGUFFile

KINDS = ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1"]
METADATA = {"a.word": "höhe", "a.flag": True, "a.words": ["x", "", "yz"], "a.numbers": [1, -2], "a.one": [7]}


@dataclasses.dataclass(frozen=True)
class Written:
    path: object
    tensors: dict


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A file of the package's own writer, with a tensor of every kind."""
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_string("a.word", METADATA["a.word"])
    writer.add_bool("a.flag", True)
    writer.add_float32("a.float", 0.25)
    writer.add_uint64("a.large", 2**40)
    for key in ("a.words", "a.numbers", "a.one"):
        writer.add_array(key, METADATA[key])
    values = np.random.default_rng(0).normal(size=(5, 64)).astype(np.float32)
    tensors = {}
    for name in KINDS:
        kind = gguf.GGMLQuantizationType[name]
        stored = gguf.quants.quantize(values, kind)
        writer.add_tensor(name.lower(), stored, raw_dtype=kind)
        tensors[name.lower()] = gguf.quants.dequantize(stored, kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return Written(path, tensors)


def test_metadata_are_what_was_written(written):
    metadata = GGUFFile(written.path).metadata
    assert {key: metadata[key] for key in METADATA} == METADATA
    assert metadata["general.architecture"] == "llama"
    assert (metadata["a.float"], metadata["a.large"]) == (0.25, 2**40)


def test_every_kind_is_dequantised_as_the_package_does(written):
    file = GGUFFile(written.path)
    assert set(file) == set(written.tensors)
    assert file.kinds == dict.fromkeys(KINDS, 1)
    for name, values in written.tensors.items():
        assert file.shape(name) == values.shape
        assert file[name].dtype == np.float32
        assert np.array_equal(file[name], values)


@pytest.mark.parametrize("kept", [0, 3, 20, 60, 500])
def test_a_header_cut_short_is_damage(written, kept):
    with pytest.raises(CheckpointError, match="cannot be read"):
        GGUFFile("cut", memory=written.path.read_bytes()[:kept])


def test_a_tensor_cut_short_is_damage(written):
    file = GGUFFile("cut", memory=written.path.read_bytes()[:-64])
    with pytest.raises(CheckpointError, match="ends at byte"):
        file["q5_1"]


@pytest.mark.parametrize("start", [b"GGUF" + struct.pack("<I", 1), b"GGUF" + struct.pack(">I", 3), b"\x80\x02}q" * 2])
def test_other_formats_versions_and_byte_orders_are_refused(start):
    with pytest.raises(CheckpointError, match="version 2 or 3"):
        GGUFFile("other", memory=start + bytes(64))


def test_a_file_that_is_not_there_or_empty_is_damage(tmp_path):
    for name in ("absent.gguf", "empty.gguf"):
        (tmp_path / "empty.gguf").write_bytes(b"")
        with pytest.raises(CheckpointError, match=name):
            GGUFFile(tmp_path / name)


def test_a_kind_that_cannot_be_undone_is_named():
    name = b"x"
    info = struct.pack("<Q", 1) + name + struct.pack("<IQIQ", 1, 256, gguf.GGMLQuantizationType.Q8_K, 0)
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + info
    memory = head + bytes(-len(head) % 32) + bytes(4096)
    with pytest.raises(CheckpointError, match="Q8_K"):
        GGUFFile("odd", memory=memory)["x"]


def test_a_kind_that_nobody_defined_is_damage():
    info = struct.pack("<Q", 1) + b"x" + struct.pack("<IQIQ", 1, 32, 99, 0)
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + info
    file = GGUFFile("odd", memory=head + bytes(-len(head) % 32) + bytes(4096))
    for use in (lambda: file["x"], lambda: file.kinds):
        with pytest.raises(CheckpointError, match="tensor x is of kind 99"):
            use()


def test_a_tensor_without_dimensions_and_an_alignment_to_nothing_are_damage():
    tensor = struct.pack("<Q", 1) + b"x" + struct.pack("<IIQ", 0, 0, 0)
    key = b"general.alignment"
    alignment = struct.pack("<Q", len(key)) + key + struct.pack("<II", 4, 0)
    for counts, header in (((1, 0), tensor), ((0, 1), alignment)):
        with pytest.raises(CheckpointError, match=r"no dimensions|general\.alignment=0"):
            GGUFFile("odd", memory=b"GGUF" + struct.pack("<IQQ", 3, *counts) + header + bytes(64))
