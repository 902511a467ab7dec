"""One program on every mesh: the same loss, gradient and parameters, up to rounding."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rmjax import Comparisons
from rmjax.batch import Batch
from rmjax.data.buckets import PackSpec
from rmjax.models import ModelConfig, abstract
from rmjax.sharding import MeshShape, make_mesh, row_sharding, shardings
from rmjax.train import fit, open_run
from rmjax.train.metrics import read_metrics
from rmjax.train.optimizer import OptimizerConfig, make_optimizer
from rmjax.train.scoring import place
from rmjax.train.step import make_gradient_fn
from rmjax.train.trainable import split
from tests.train.small_runs import small_run, write_votes
from tests.train.trees import make_params, relative

CONFIG = ModelConfig(
    vocab_size=48, hidden_size=32, intermediate_size=48, num_layers=2, num_heads=4, num_kv_heads=2, head_dim=8
)
MESHES = [MeshShape(1, 1, 1), MeshShape(8, 1, 1), MeshShape(1, 8, 1), MeshShape(2, 2, 2)]


def make_batch():
    """Eight rows of two answers that continue one prompt, with padding at the end."""
    rng = np.random.default_rng(0)
    rows, one = 8, np.repeat([0, 1, 2, -1], [5, 4, 4, 3])
    segment = np.tile(one, (rows, 1)).astype(np.int32)
    parent = np.where((segment == 1) | (segment == 2), 0, -1).astype(np.int32)
    depth = np.tile(np.r_[0:5, 5:9, 5:9, 0:3], (rows, 1)).astype(np.int32)
    tokens = np.where(segment >= 0, rng.integers(0, 48, segment.shape), 0).astype(np.int32)
    start = np.arange(rows) * 16
    index = np.stack([start + 8, start + 12], axis=1).ravel().astype(np.int32)
    even = np.arange(0, 2 * rows, 2)
    votes = rng.integers(0, 3, (2, rows)) + 1
    comparisons = Comparisons.from_votes(even, even + 1, *votes, prompt=np.repeat(np.arange(rows), 2))
    return Batch(tokens, segment, parent, depth, index, comparisons)


def descend(shape, dtype):
    """Loss and gradient of the first step, and the parameters after three steps of plain gradient descent."""
    mesh = make_mesh(shape)
    placement, replicated = shardings(abstract(CONFIG), mesh)
    assert replicated == ()
    params, none = split(jax.device_put(make_params(CONFIG, dtype), placement), None)
    where = jax.tree.map(lambda x: x.sharding, params)
    fn = make_gradient_fn(CONFIG, dtype=dtype, out_shardings=(where, None))
    batch = place(make_batch(), mesh)
    first = None
    with jax.set_mesh(mesh):
        for _ in range(3):
            gradient, readout = fn(params, none, batch)
            first = first or (float(readout.loss_sum), jax.tree.map(np.asarray, gradient))
            params = jax.tree.map(lambda p, g: p - 0.1 * g / readout.count.astype(g.dtype), params, gradient)  # noqa: B023
    return *first, jax.tree.map(np.asarray, params)


def assert_same(dtype, bound):
    reference = descend(MESHES[0], dtype)
    for shape in MESHES[1:]:
        loss, gradient, params = descend(shape, dtype)
        assert abs(loss - reference[0]) <= bound * abs(reference[0]), shape
        for mine, theirs in ((gradient, reference[1]), (params, reference[2])):
            for (path, a), b in zip(
                jax.tree_util.tree_flatten_with_path(mine)[0], jax.tree.leaves(theirs), strict=True
            ):
                assert relative(a, b) < bound, (shape, path)


def test_meshes_agree_in_float32():
    assert_same(jnp.float32, 1e-5)


def test_meshes_agree_in_float64(x64):
    assert_same(jnp.float64, 1e-12)


@pytest.mark.parametrize("shape", MESHES)
def test_nothing_is_replicated_for_want_of_a_way_to_split_it(shape, capfd):
    """XLA says so where it does: the rows that are looked up in the embedding, on a mesh with all three axes."""
    jax.clear_caches()
    descend(shape, jnp.float32)
    assert "rematerialization" not in capfd.readouterr().err


def test_a_run_on_a_mesh_is_the_run_on_one_device(tmp_path):
    """Training, checkpoints, evaluation and all: AdamW's first steps are as large as their signs say."""
    file = write_votes(tmp_path / "votes.jsonl", prompts=24)
    packing = PackSpec(lengths=(64,), tokens_per_micro_batch=256)
    optimizer = OptimizerConfig(eps=1e-3)
    runs = []
    for shape in (MeshShape(1, 1, 1), MeshShape(2, 2, 2)):
        config = small_run(
            tmp_path / "-".join(map(str, dataclasses.astuple(shape))),
            file,
            mesh=shape,
            packing=packing,
            optimizer=optimizer,
            evaluate_every=2,
        )
        trained = fit(config).model.params
        opened = open_run(config.output).model.params
        for a, b in zip(jax.tree.leaves(trained), jax.tree.leaves(opened), strict=True):
            np.testing.assert_array_equal(a, b)
        runs.append((trained, read_metrics(config.output)))
    for a, b in zip(jax.tree.leaves(runs[1][0]), jax.tree.leaves(runs[0][0]), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
    for name in ("loss", "margin", "eval_loss"):
        mine, theirs = ([row[name] for row in rows if name in row] for _, rows in runs)
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)


def test_parameters_and_optimiser_state_are_shared_out():
    mesh = make_mesh(MeshShape(1, 4, 2))
    placement, _ = shardings(abstract(CONFIG), mesh)
    params = jax.device_put(make_params(CONFIG, jnp.float32), placement)
    state = make_optimizer(OptimizerConfig(), 10).init(params)
    whole = sum(x.nbytes for x in jax.tree.leaves(params))

    def on_one_device(tree):
        leaves = [x for x in jax.tree.leaves(tree) if x.ndim]
        return sum(x.addressable_shards[0].data.nbytes for x in leaves)

    # Norm gains and the head are replicated; everything else is cut in eight.
    assert on_one_device(params) < 1.2 * whole / 8
    assert on_one_device(state) < 2 * 1.2 * whole / 8


def test_an_axis_that_does_not_divide_is_replicated_and_said():
    uneven = dataclasses.replace(CONFIG, num_heads=9, num_kv_heads=3)
    placement, said = shardings(abstract(uneven), make_mesh(MeshShape(1, 1, 2)))
    assert said == ("heads is replicated: 3 does not divide by 2 devices on tensor",)
    assert "tensor" not in tuple(placement.blocks.wq.spec)
    assert "tensor" in tuple(placement.blocks.w_up.spec)


@pytest.mark.parametrize(("rows", "expected"), [(8, ("data", "fsdp")), (6, None)])
def test_rows_are_shared_over_both_data_axes_where_they_divide(rows, expected):
    sharding = row_sharding(make_mesh(MeshShape(2, 2, 2)), rows)
    assert sharding.spec == jax.sharding.PartitionSpec(expected)
