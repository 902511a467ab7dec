"""Curves on disk: the same numbers in both files, and no curve of a level."""

import pytest
from tensorboardX.proto.event_pb2 import Event

from rmjax.errors import CheckpointError
from rmjax.train.metrics import MetricsLog, read_metrics

ROW = {"step": 1, "epoch": 0, "loss": 0.5, "min_reward": -2.0, "mean_reward": 0.5, "max_reward": 3.0}


def events(directory):
    """Tags and values of the event files: records of length, checksum, message, checksum."""
    for path in sorted((directory / "tensorboard").iterdir()):
        raw, at = path.read_bytes(), 0
        while at < len(raw):
            size = int.from_bytes(raw[at : at + 8], "little")
            yield from Event.FromString(raw[at + 12 : at + 12 + size]).summary.value
            at += 16 + size


def test_what_is_not_finite_is_null_in_the_file(tmp_path):
    with MetricsLog(tmp_path) as log:
        log.write(ROW | {"loss": float("inf"), "layer_margin": [float("nan"), 1.0]})
    assert read_metrics(tmp_path) == [ROW | {"loss": None, "layer_margin": [None, 1.0]}]


def test_every_number_is_a_curve_but_levels_and_a_list_is_one_curve_a_layer(tmp_path):
    with MetricsLog(tmp_path) as log:
        log.write(ROW | {"layer_margin": [0.0, 0.25]})
    assert read_metrics(tmp_path) == [ROW | {"layer_margin": [0.0, 0.25]}]
    found = {value.tag: value.simple_value for value in events(tmp_path)}
    assert found == {"epoch": 0.0, "loss": 0.5, "layer_margin/0": 0.0, "layer_margin/1": 0.25}


def test_rows_after_the_step_that_is_resumed_from_are_cut_off(tmp_path):
    with MetricsLog(tmp_path) as log:
        for step in (1, 2, 3):
            log.write(ROW | {"step": step})
    with MetricsLog(tmp_path, after=2) as log:
        assert [row["step"] for row in read_metrics(tmp_path)] == [1, 2]
        log.write(ROW | {"step": 3})
    assert [row["step"] for row in read_metrics(tmp_path)] == [1, 2, 3]


def test_a_line_that_a_kill_cut_off_is_left_out(tmp_path):
    with MetricsLog(tmp_path) as log:
        log.write(ROW)
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 2, "lo')
    assert read_metrics(tmp_path) == [ROW]
    assert read_metrics(tmp_path / "elsewhere") == []


def test_levels_are_not_plotted_under_any_name(tmp_path):
    with MetricsLog(tmp_path) as log:
        log.write(ROW)
    assert not [value.tag for value in events(tmp_path) if "reward" in value.tag]


@pytest.mark.parametrize("step", [0, 5])
def test_resuming_where_nothing_is_makes_an_empty_log(step, tmp_path):
    with MetricsLog(tmp_path, after=step):
        assert read_metrics(tmp_path) == []


@pytest.mark.parametrize("line", ["{", "[1]", "5", "{}", '{"step": null, "eval_swap_passed": false}', '{"step": "1"}'])
def test_a_line_that_is_no_row_is_named(line, tmp_path):
    with MetricsLog(tmp_path) as log:
        log.write(ROW)
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write(line + "\n")
    with pytest.raises(CheckpointError, match="line=2"):
        read_metrics(tmp_path)
