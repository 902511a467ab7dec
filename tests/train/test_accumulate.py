"""A step on several micro-batches is the step on their union: sums are added, and divided by the sum of the counts."""

import dataclasses
import json

import jax
import numpy as np
import pytest

from rmjax.data.batches import build
from rmjax.data.buckets import PackSpec
from rmjax.head import Head
from rmjax.train import TrainConfig
from rmjax.train.config import DataConfig, resolve
from rmjax.train.loop import run_steps, train
from rmjax.train.metrics import read_metrics
from rmjax.train.optimizer import make_optimizer, update
from rmjax.train.setup import prepare
from rmjax.train.step import loss_and_readout
from rmjax.train.trainable import split
from tests.train.trees import relative


@pytest.fixture
def run(tmp_path):
    """A run of one step on three micro-batches whose comparisons have from 1 to 9 votes."""
    path = tmp_path / "votes.jsonl"
    rng = np.random.default_rng(0)
    with path.open("w") as file:
        for prompt in range(12):
            votes = {"a": int(rng.integers(1, 10)), "b": int(rng.integers(0, 3))}
            texts = ["".join(rng.choice(list("abcdef "), 24)) for _ in range(3)]
            file.write(
                json.dumps({"prompt": texts[0], "a": f"{prompt} {texts[1]}", "b": texts[2], "votes": votes}) + "\n"
            )
    return resolve(
        TrainConfig(
            output=str(tmp_path / "run"),
            data=DataConfig(path=str(path), held_out=0.2),
            packing=PackSpec(lengths=(128,), tokens_per_micro_batch=256),
            accumulate=3,
            max_steps=1,
        )
    )


def test_a_step_on_parts_is_the_step_on_their_union(run):
    prepared = prepare(run)
    model = prepared.model
    # With a head of zeros the trunk has no gradient.
    head = Head(jax.random.normal(jax.random.key(1), (model.config.hidden_size,)))
    model = dataclasses.replace(model, params=dataclasses.replace(model.params, head=head))
    prepared = dataclasses.replace(prepared, model=model)
    (step,) = run_steps(prepared.train, run)
    batches = [build(prepared.train, micro_batch).batch for micro_batch in step.micro_batches]
    assert len(batches) == 3
    trained, frozen = split(model.params, None)

    @jax.jit
    def mean_loss(params):
        parts = [loss_and_readout(params, frozen, batch, model.config, ties="drop") for batch in batches]
        counts = [readout.count for _, readout in parts]
        return sum((loss for loss, _ in parts[1:]), parts[0][0]) / sum(counts[1:], counts[0]), counts

    gradient, counts = jax.grad(mean_loss, has_aux=True)(trained)
    assert len({float(c) for c in counts}) > 1  # otherwise a mean of means would do
    optimizer = make_optimizer(run.optimizer, 1)
    stepped = jax.jit(lambda p, g: update(optimizer, p, optimizer.init(p), g, jax.numpy.float32(1)))
    expected, _, norm = stepped(trained, gradient)
    result = train(prepared, run)
    # Adam divides by the gradient's size, which hides a wrong count: the logged norm shows it. Float32 sums over three
    # micro-batches in another order leave a few of its 24 bits.
    assert read_metrics(run.output)[0]["grad_norm"] == pytest.approx(float(norm), rel=1e-5)
    for mine, theirs, before in zip(*map(jax.tree.leaves, (result.model.params, expected, trained)), strict=True):
        assert relative(mine - before, theirs - before) < 1e-3
