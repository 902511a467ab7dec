"""A run that is killed goes on to bitwise the same parameters, and loses nothing that was on disk."""

import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys

import jax
import numpy as np
import pytest

from rmjax.errors import CheckpointError
from rmjax.train import TrainConfig, fit, open_run
from rmjax.train.config import from_json, to_json
from rmjax.train.metrics import read_metrics
from tests.train.small_runs import small_run, write_votes

STEPS = 5
KILLED = """
import os, pathlib, signal, sys, time
from rmjax.train import fit
from rmjax.train.config import from_json
config = from_json(sys.stdin.read())
def die(step, row):
    if step.number == 4:
        while not (pathlib.Path(config.output) / "checkpoints" / "2").exists():
            time.sleep(0.05)  # saving is asynchronous: wait for the first to be complete
        os.kill(os.getpid(), signal.SIGKILL)
fit(config, observe=[die])
"""


def same(a, b):
    return all(np.array_equal(x, y) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that nothing interrupts: it ends in the middle of its second pass, and looks at what is held out."""
    folder = tmp_path_factory.mktemp("whole")
    config = small_run(
        folder / "run",
        write_votes(folder / "votes.jsonl", prompts=24),
        max_steps=STEPS,
        epochs=2,
        accumulate=3,
        evaluate_every=1,
        checkpoint_every=2,
        keep_checkpoints=5,
    )
    return config, fit(config)


def test_a_killed_run_resumes_to_bitwise_the_same_parameters(whole, tmp_path):
    config, trained = whole
    again = dataclasses.replace(config, output=str(tmp_path / "killed"))
    # The devices and threads of this process: bitwise equality is promised for those alone.
    environment = os.environ | {"JAX_NUM_CPU_DEVICES": str(jax.device_count())}
    dead = subprocess.run([sys.executable, "-c", KILLED], input=to_json(again), text=True, env=environment, timeout=300)
    assert dead.returncode == -signal.SIGKILL
    assert max(row["step"] for row in read_metrics(again.output)) == 4
    resumed = fit(again)
    assert 0 < resumed.resumed_from < STEPS
    assert same(resumed.model.params, trained.model.params)
    rows = [
        [{k: v for k, v in row.items() if k != "tokens_per_second"} for row in read_metrics(c.output)]
        for c in (config, again)
    ]
    assert rows[0] == rows[1]
    epochs = [row["epoch"] for row in rows[0]]
    assert epochs == sorted(epochs)
    assert 1 in epochs
    assert 1 < max(epochs) <= 2
    assert all(row["eval_swap_passed"] for row in rows[0] if "eval_loss" in row)
    assert sum("eval_loss" in row for row in rows[0]) == STEPS


def test_a_finished_run_is_not_trained_again(whole):
    config, trained = whole
    again = fit(config)
    assert again.resumed_from == STEPS
    assert same(again.model.params, trained.model.params)


def test_a_run_opens_with_the_model_that_it_ended_with(whole):
    config, trained = whole
    assert same(open_run(config.output).model.params, trained.model.params)


def test_another_configuration_is_refused_and_nothing_is_touched(whole):
    config, _ = whole
    before = sorted(os.listdir(config.output))
    other = dataclasses.replace(config, optimizer=dataclasses.replace(config.optimizer, learning_rate=1.0))
    with pytest.raises(CheckpointError, match=r"another configuration.*optimizer"):
        fit(other)
    assert sorted(os.listdir(config.output)) == before


def test_a_checkpoint_of_another_tokenizer_is_refused(whole, tmp_path):
    config, _ = whole
    copy = tmp_path / "copy"
    shutil.copytree(config.output, copy)
    stored = json.loads((copy / "contract.json").read_text())
    (copy / "contract.json").write_text(json.dumps(stored | {"fingerprint": "0" * 64}))
    with pytest.raises(CheckpointError, match="another tokenizer"):
        open_run(copy)


def test_a_run_without_a_complete_checkpoint_is_refused(whole, tmp_path):
    config, _ = whole
    copy = tmp_path / "copy"
    shutil.copytree(config.output, copy)
    shutil.rmtree(copy / "checkpoints")
    with pytest.raises(CheckpointError, match="no complete checkpoint"):
        open_run(copy)


def test_configurations_survive_the_disk():
    config = TrainConfig(epochs=7, data=dataclasses.replace(TrainConfig().data, ties="half"))
    assert from_json(to_json(config)) == config
