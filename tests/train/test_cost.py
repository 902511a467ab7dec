"""The cost that is said before a run: operations are those that the compiler counts, seconds follow the work."""

import dataclasses

import jax
import pytest

from rmjax.data.batches import empty
from rmjax.data.buckets import Bucket
from rmjax.models import ModelConfig, init
from rmjax.sharding import MeshShape
from rmjax.train import cost
from rmjax.train.loop import estimate_cost
from rmjax.train.setup import prepare
from rmjax.train.step import make_gradient_fn
from rmjax.train.trainable import split
from tests.train.small_runs import small_run, write_votes

CONFIG = ModelConfig(258, 64, 192, num_layers=1, num_heads=4, num_kv_heads=2, head_dim=16)
BUCKET = Bucket(rows=2, length=128, responses=4, comparisons=2)


def test_operations_are_those_that_the_compiler_counts():
    trained, frozen = split(init(jax.random.key(0), CONFIG), None)
    compiled = make_gradient_fn(CONFIG).lower(trained, frozen, empty(BUCKET).batch).compile()
    counted = compiled.cost_analysis()["flops"]
    said = cost.flops_per_position(CONFIG, BUCKET.length) * BUCKET.rows * BUCKET.length
    # The compiler also counts norms, rotations and the softmax: a share that falls with the width, 64 here.
    assert 0.8 * counted < said < counted


@pytest.mark.parametrize(("layers", "trained", "passes"), [(1, None, 1), (6, None, 6), (6, 0, 2), (6, 3, 4)])
def test_seconds_follow_layers_that_are_passed(layers, trained, passes, monkeypatch):
    monkeypatch.setattr(cost, "layer_seconds", lambda config, bucket, dtype: 0.5 * bucket.rows)
    config = dataclasses.replace(CONFIG, num_layers=layers)
    counts = {BUCKET: 3, dataclasses.replace(BUCKET, rows=1): 2}
    said = cost.estimate(config, counts, 700, trained)
    assert said.seconds == pytest.approx(passes * (3 * 1.0 + 2 * 0.5), rel=1e-12)
    assert cost.estimate(config, counts, 700, trained, devices=4).seconds == pytest.approx(said.seconds / 4, rel=1e-12)
    assert said.positions == (3 * 2 + 2) * 128
    assert said.tokens == 700


def test_a_run_shares_its_work_over_the_devices_of_its_mesh(tmp_path, monkeypatch):
    monkeypatch.setattr(cost, "layer_seconds", lambda config, bucket, dtype: 0.5 * bucket.rows)
    config = small_run(tmp_path / "run", write_votes(tmp_path / "votes.jsonl"))
    prepared = prepare(config)
    one, four = (
        estimate_cost(prepared, dataclasses.replace(config, mesh=shape))
        for shape in (MeshShape(), MeshShape(data=2, fsdp=2))
    )
    assert four.seconds == pytest.approx(one.seconds / 4, rel=1e-12)
