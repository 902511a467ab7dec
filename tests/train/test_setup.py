"""What a run needs is checked before any long work, and ties of a file need a choice."""

import dataclasses
import json

import pytest

from rmjax.data.contract import TextContract
from rmjax.errors import DataError
from rmjax.models import save
from rmjax.train import OptimizerConfig, TrainConfig
from rmjax.train.config import resolve
from rmjax.train.setup import open_model, prepare
from tests.train.small_runs import small_run, write_votes


def test_ties_of_a_file_need_a_choice_and_the_row_is_named(tmp_path):
    file = write_votes(tmp_path / "votes.jsonl", ties=3)
    with pytest.raises(DataError, match=r"ties=3\.0, row=1\b"):
        prepare(small_run(tmp_path / "run", file))
    for choice in ("drop", "half"):
        prepare(small_run(tmp_path / "run", file, ties=choice))


def test_the_embedded_world_leaves_its_ties_out():
    assert resolve(TrainConfig()).data.ties == "drop"


def test_comparisons_without_a_vote_that_counts_are_left_out_of_training_and_said(tmp_path):
    file = tmp_path / "votes.jsonl"
    rows = [
        {"prompt": f"p{k}", "a": f"x{k}", "b": f"y{k}", "votes": {"a": int(k < 20), "tie": int(k >= 20)}}
        for k in range(40)
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    dropped, half = (prepare(small_run(tmp_path / "run", file, ties=choice)) for choice in ("drop", "half"))
    counted = dropped.train.tokenised.data.comparisons
    assert counted.counted("drop").min() > 0
    silent = half.train.tokenised.data.num_comparisons - counted.num_comparisons
    assert silent > 0
    assert f"{silent} comparisons of training have no vote that counts and are left out" in dropped.train.notes
    assert not half.train.notes


TOO_SMALL = ("epochs", "max_steps", "accumulate", "log_every", "checkpoint_every", "keep_checkpoints")


@pytest.mark.parametrize(
    ("name", "value"),
    [*((name, 0) for name in TOO_SMALL), ("evaluate_every", -1), ("remat", "attention"), ("trainable", "some")],
)
def test_an_impossible_option_is_refused(name, value, tmp_path):
    with pytest.raises(DataError, match=f"{name}.*{value}"):
        prepare(small_run(tmp_path / "run", write_votes(tmp_path / "votes.jsonl"), **{name: value}))


def test_a_file_of_ties_alone_says_so(tmp_path):
    file = tmp_path / "votes.jsonl"
    rows = [{"prompt": f"p{k}", "a": f"x{k}", "b": f"y{k}", "votes": {"tie": 2}} for k in range(12)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(DataError, match="no comparison of training has a vote that counts"):
        prepare(small_run(tmp_path / "run", file, ties="drop"))


@pytest.mark.parametrize(
    ("name", "value"), [("learning_rate", float("nan")), ("learning_rate", -1.0), ("warmup", 2.0), ("clip_norm", 0.0)]
)
def test_an_optimiser_that_cannot_learn_is_refused(name, value):
    with pytest.raises(DataError, match=name):
        resolve(TrainConfig(optimizer=OptimizerConfig(**{name: value})))


def test_a_limit_that_is_not_said_is_no_longer_than_the_model(tmp_path):
    """A run stores its limit, and under it no later file can have a text that the model has no positions for."""
    short = open_model("tiny", seed=0)
    short = dataclasses.replace(short, config=dataclasses.replace(short.config, max_positions=300))
    save(tmp_path / "model", short)
    file = write_votes(tmp_path / "votes.jsonl")
    made = prepare(small_run(tmp_path / "run", file, model=str(tmp_path / "model"), text=TextContract()))
    assert made.train.tokenised.contract.max_length == 300
    asked = small_run(tmp_path / "run", file, model=str(tmp_path / "model"), text=TextContract(max_length=301))
    with pytest.raises(DataError, match=r"limit=301, positions=300\]. Say max_length=300"):
        prepare(asked)
