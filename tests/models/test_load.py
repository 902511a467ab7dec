import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from rmjax.errors import CheckpointError
from rmjax.models.forward import forward, hidden_states
from rmjax.models.layers import rms_norm
from rmjax.models.load import INSTALLED, installed_weights, load
from tests.models.model_files import FAMILIES, GOLDEN, golden_config, golden_directory, relative, smollm2, unpacked


def residual_stream(site, layer, x):
    return x, x if site in ("resid_pre", "resid_post") else None


@pytest.mark.parametrize("name", FAMILIES)
def test_every_layer_and_the_score_are_those_of_transformers(name, tmp_path):
    golden = np.load(GOLDEN / name / "golden.npz")
    model = load(golden_directory(name, tmp_path))
    sequences = [golden[f"ids_{n}"] for n in range(3)]
    out = jax.jit(lambda params, batch: forward(params, batch, model.config, tap=residual_stream))(
        model.params, unpacked(sequences)
    )
    for n, ids in enumerate(sequences):
        embedded, layers = out.reads["resid_pre"][:1, n, : len(ids)], out.reads["resid_post"][:, n, : len(ids)]
        assert relative(jnp.concatenate([embedded, layers]), golden[f"states_{n}"]) < 2e-5
    ours, theirs = np.asarray(out.scores), np.concatenate([golden[f"score_{n}"] for n in range(3)])
    # Of the vector of scores, as of the states: a single score may cancel to nearly 0.
    assert relative(ours, theirs.ravel()) < 2e-5


def test_a_missing_window_and_a_missing_scaling_would_be_seen(tmp_path):
    """The parity above has teeth: what distinguishes a family moves its states by more than the tolerance."""
    for name, change in {"mistral": {"sliding_window": None}, "llama": {"rope_scaling": None}}.items():
        golden = np.load(GOLDEN / name / "golden.npz")
        model = load(golden_directory(name, tmp_path))
        config = dataclasses.replace(model.config, **change)
        states = jax.jit(lambda params, ids, c=config: hidden_states(params, ids, c))(
            model.params, golden["ids_0"][None]
        )
        assert relative(states[0], golden["final_0"]) > 1e-2


def test_the_head_of_the_file_is_kept_and_a_trunk_gets_a_zero_head(tmp_path):
    directory = golden_directory("qwen2", tmp_path)
    assert load(directory).report.head == "score.weight"
    index = json.loads((directory / "model.safetensors.index.json").read_text())
    shard = directory / index["weight_map"]["score.weight"]
    tensors = load_file(shard)
    del tensors["score.weight"], index["weight_map"]["score.weight"]
    save_file(tensors, shard)
    (directory / "model.safetensors.index.json").write_text(json.dumps(index))
    trunk = load(directory)
    assert trunk.report.head == "new head"
    assert not np.any(trunk.params.head.weight)


def test_shards_are_read_as_one_file(tmp_path):
    report = load(golden_directory("qwen2", tmp_path)).report
    assert report.num_tensors == 2 * 12 + 3
    assert report.stored == {"bfloat16": report.num_tensors}
    assert report.ignored == ()


@pytest.mark.parametrize(
    ("path", "word"),
    [("smollm3", "owner/name"), ("nowhere/at/all", "directory"), ("missing.gguf", "directory"), ("./x", "directory")],
)
def test_what_is_not_there_is_named_with_a_remedy(path, word):
    with pytest.raises(CheckpointError, match=word) as error:
        load(path)
    assert error.value.numbers["name"] == path


def test_a_directory_without_configuration_or_tokenizer_says_what_it_lacks(tmp_path):
    with pytest.raises(CheckpointError, match=r"config\.json"):
        load(tmp_path)
    directory = golden_directory("llama", tmp_path)
    (directory / "tokenizer.json").unlink()
    with pytest.raises(CheckpointError, match=r"tokenizer\.json"):
        load(directory)


@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json", "special_tokens_map.json"])
@pytest.mark.parametrize("damage", ["{", "[]", "[" * 100_000])
def test_a_file_that_is_no_object_is_named(name, damage, tmp_path):
    directory = golden_directory("llama", tmp_path)
    (directory / name).write_text(damage)
    with pytest.raises(CheckpointError, match=name):
        load(directory)


def test_the_hub_is_asked_for_what_looks_like_a_name_there(monkeypatch, tmp_path):
    import huggingface_hub

    directory = golden_directory("llama", tmp_path)
    asked = []
    monkeypatch.setattr(
        huggingface_hub, "snapshot_download", lambda name, allow_patterns: asked.append(name) or str(directory)
    )
    assert load("owner/name").config.rope_scaling is not None
    assert asked == ["owner/name"]

    def fail(name, allow_patterns):
        raise OSError("no route\nto the hub")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fail)
    with pytest.raises(CheckpointError, match="network"):
        load("owner/name")


def test_weights_that_are_not_installed_name_the_command(monkeypatch):
    monkeypatch.setitem(INSTALLED, "smollm2-135m", ("no-such-distribution", "make smollm2"))
    with pytest.raises(CheckpointError, match="make smollm2"):
        installed_weights("smollm2-135m")


@pytest.fixture(scope="module")
def smol():
    smollm2()
    return load("smollm2-135m")


@pytest.fixture(scope="module")
def read_out(smol):
    """Every layer's states, the final ones, and nats of every token, as a function of parameters and ids."""

    def run(params, batch):
        reads = forward(params, batch, smol.config, tap=residual_stream).reads
        states = jnp.concatenate([reads["resid_pre"][:1, 0], reads["resid_post"][:, 0]])
        final = rms_norm(states[-1], params.norm, smol.config.norm_eps)
        logits = jnp.einsum("td,vd->tv", final[:-1], params.embed, precision="highest")
        taken = jnp.take_along_axis(logits, batch.tokens[0, 1:, None], axis=1)[:, 0]
        return states, final, jax.nn.logsumexp(logits, axis=1) - taken

    compiled = jax.jit(run)
    return lambda params, ids: map(np.asarray, compiled(params, unpacked([ids])))


@pytest.fixture(scope="module")
def paragraph(smol):
    return np.array(smol.tokenizer.encode((GOLDEN / "paragraph.txt").read_text("utf-8").strip()), np.int32)


def test_smollm2_is_what_transformers_reads_in_the_same_file(smol, paragraph, read_out):
    golden = np.load(GOLDEN / "smollm2.npz")
    assert np.array_equal(paragraph, golden["ids"])
    states, final, nll = read_out(smol.params, paragraph)
    assert np.abs(np.linalg.norm(states, axis=-1) / golden["norms"] - 1).max() < 1e-4
    assert relative(states[:, -1, ::9], golden["last"]) < 1e-4
    assert relative(final[-1, ::9], golden["final"]) < 1e-4
    assert np.abs(nll - golden["nll"]).max() < 1e-4 * golden["nll"].max()


def test_smollm2_reads_english_and_with_rows_as_the_file_permutes_them_it_does_not(smol, paragraph, read_out):
    def permuted(weight):
        """Undo the undoing: each head's rows in the order of the file, on the axis K of [L, D, H, K]."""
        L, D, H, K = weight.shape
        return np.asarray(weight).reshape(L, D, H, 2, K // 2).swapaxes(3, 4).reshape(L, D, H, K)

    blocks = smol.params.blocks
    broken = dataclasses.replace(blocks, wq=permuted(blocks.wq), wk=permuted(blocks.wk))
    *_, right = read_out(smol.params, paragraph)
    *_, wrong = read_out(dataclasses.replace(smol.params, blocks=broken), paragraph)
    perplexity, without = np.exp(right.mean()), np.exp(wrong.mean())
    print(f"perplexity {perplexity:.1f}; with q and k rows as the file has them {without:.1f}")
    assert perplexity < 16
    assert without > 4 * perplexity


def test_smollm2_is_wholly_accounted_for(smol):
    assert smol.report.num_tensors == 272
    assert smol.report.stored == {"Q4_1": 210, "F32": 61, "Q8_0": 1}
    assert smol.report.ignored == ()
    assert smol.report.head == "new head"
    assert smol.config.tie_embeddings
    assert golden_config("llama")["model_type"] == smol.config.family
