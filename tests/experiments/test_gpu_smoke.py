"""The checks that are made for accelerators hold on a CPU, and their oracle is another program."""

import json

import numpy as np

from experiments.benchmarks.gpu_smoke import Config, main, relative, round_to
from experiments.benchmarks.rows import missed


def test_every_target_is_met_on_a_cpu(tmp_path, capsys):
    rows = main(Config(small=True, json=str(tmp_path / "rows.json")))
    assert missed(rows) == []
    assert json.loads((tmp_path / "rows.json").read_text()) == rows
    assert {line["command"] for line in rows} == {"python -m experiments.benchmarks.gpu_smoke --small"}
    with_target = [line["name"] for line in rows if line["met"]]
    for part in ("shift law", "head, float32", "forward, float32", "end point", "worst gradient leaf", "loss after"):
        assert any(part in name for name in with_target), part
    assert "MISSED" not in capsys.readouterr().out


def test_rounding_keeps_as_many_bits_as_it_says():
    x = np.random.default_rng(0).normal(size=10_000).astype(np.float32)
    np.testing.assert_array_equal(round_to(x, 24), x)
    for bits in (8, 11):
        error = np.abs(round_to(x, bits) - x) / np.abs(x)
        assert error.max() <= 2.0**-bits
        assert error.max() > 0.9 * 2.0**-bits


def test_a_relative_difference_is_taken_in_float64():
    assert relative(np.float32([1, 1e-3]), np.float64([1, 0])) == float(np.float32(1e-3))
