"""A run compiles each shape once, and stops where a gradient is not finite."""

import dataclasses

import chex
import jax.numpy as jnp
import pytest

from rmjax.data.buckets import PackSpec
from rmjax.errors import RMJaxError
from rmjax.head import Head
from rmjax.train import loop as loop_module
from rmjax.train import step as step_module
from rmjax.train.checkpoint import Checkpoints
from rmjax.train.config import resolve
from rmjax.train.loop import claim, run_steps, steps_done, train
from rmjax.train.metrics import read_metrics
from rmjax.train.setup import prepare
from tests.train.small_runs import small_run, write_votes


def test_after_the_first_step_of_a_shape_nothing_is_compiled(tmp_path, monkeypatch):
    file = write_votes(tmp_path / "votes.jsonl", prompts=40)
    config = resolve(
        small_run(
            tmp_path / "run",
            file,
            epochs=2,
            max_steps=None,
            accumulate=2,
            packing=PackSpec(lengths=(64, 80), tokens_per_micro_batch=128),
        )
    )
    prepared = prepare(config)
    shapes = {batch.bucket for step in run_steps(prepared.train, config) for batch in step.micro_batches}
    assert len(shapes) == 2
    chex.clear_trace_counter()
    for module, name, count in ((step_module, "loss_and_readout", len(shapes)), (loop_module, "update", 1)):
        monkeypatch.setattr(module, name, chex.assert_max_traces(getattr(module, name), n=count))
    trained = train(prepared, config)
    assert trained.steps > 2 * len(shapes)
    chex.assert_trees_all_equal_shapes_and_dtypes(trained.model.params, prepared.model.params)
    chex.assert_tree_all_finite(trained.model.params)


def test_a_gradient_that_is_not_finite_stops_the_run_and_the_step_is_named(tmp_path):
    config = resolve(small_run(tmp_path / "run", write_votes(tmp_path / "votes.jsonl"), checkpoint_every=1))
    prepared = prepare(config)
    model = prepared.model
    head = Head(jnp.full(model.config.hidden_size, jnp.nan))
    broken = dataclasses.replace(model, params=dataclasses.replace(model.params, head=head))
    with pytest.raises(RMJaxError, match=r"not finite.*step=1,"):
        train(dataclasses.replace(prepared, model=broken), config)
    assert read_metrics(config.output) == []
    assert steps_done(config.output) == 0


def test_the_steps_of_a_run_that_is_not_there_are_none(tmp_path):
    assert steps_done(tmp_path / "nowhere") == 0
    with Checkpoints(tmp_path / "run" / "checkpoints") as checkpoints:
        checkpoints.save(7, {"x": jnp.zeros(2)})
    assert steps_done(tmp_path / "run") == 7


def test_claiming_a_directory_again_changes_nothing(tmp_path):
    config = resolve(small_run(tmp_path / "run", "file"))
    claim(tmp_path / "run", config)
    before = (tmp_path / "run" / "config.json").read_text()
    claim(tmp_path / "run", config)
    assert (tmp_path / "run" / "config.json").read_text() == before
