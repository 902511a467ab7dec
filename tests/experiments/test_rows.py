"""Laws of benchmark rows: a target is met or missed, and nothing that is not a number meets one."""

import json

import pytest

from experiments.benchmarks.rows import absent, missed, row, write

FIELDS = ["name", "value", "unit", "target", "met", "command", "machine"]


@pytest.mark.parametrize(
    ("value", "options", "met", "target"),
    [
        (2.0, {"target": 2.0}, True, ">= 2"),
        (1.9, {"target": 2.0}, False, ">= 2"),
        (1e-6, {"target": 1e-6, "below": True}, True, "<= 1e-06"),
        (2e-6, {"target": 1e-6, "below": True}, False, "<= 1e-06"),
        (float("nan"), {"target": 1.0}, False, ">= 1"),
        (float("nan"), {"target": 1.0, "below": True}, False, "<= 1"),
        (5.0, {}, None, None),
    ],
)
def test_a_row_says_whether_its_target_is_met(value, options, met, target):
    line = row("speed", value, "1/s", command="python -m bench", **options)
    assert list(line) == FIELDS
    assert line["met"] is met
    assert line["target"] == target
    assert missed([line]) == (["speed"] if met is False else [])


def test_what_is_written_is_read_back_and_what_is_absent_has_its_reason(tmp_path):
    rows = [
        row("loss", float("inf"), "nats", target=1.0, below=True, command="python -m bench"),
        absent("speed of another", "it does not install here", command="python -m bench"),
    ]
    write(tmp_path / "deep" / "rows.json", rows)
    infinite, gone = json.loads((tmp_path / "deep" / "rows.json").read_text())
    assert list(infinite) == FIELDS
    assert infinite["value"] is None
    assert infinite["met"] is False
    assert list(gone) == [*FIELDS, "reason"]
    assert gone["met"] is None
    assert missed([gone]) == []
    assert "jax" in gone["machine"]
    assert "CPU" in gone["machine"]
