"""Curves pool as sums and counts, keep sets apart, and refuse levels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmjax.errors import GaugeError
from rmjax.report.training import POINTS, Curve, curve, training
from tests.report.reports import rows


@given(st.integers(1, 500), st.integers(0, 2**32 - 1))
def test_pooled_points_are_means_over_votes(steps, seed):
    rng = np.random.default_rng(seed)
    loss, count = rng.random(steps), rng.integers(1, 9, steps)
    made = [{"step": 10 * s, "loss": a, "count": float(c)} for s, (a, c) in enumerate(zip(loss, count, strict=True))]
    pooled = curve(rng.permutation(np.array(made, object)).tolist(), "loss")
    assert len(pooled.values) == min(steps, POINTS)
    assert list(pooled.steps) == sorted(pooled.steps)
    assert set(pooled.steps) <= {row["step"] for row in made}
    # Each point holds a run of neighbours; weighted by their votes, the points are the whole.
    group = np.arange(steps) * len(pooled.values) // steps
    votes = np.bincount(group, weights=count)
    assert np.dot(votes, pooled.values) == pytest.approx(np.dot(loss, count))


def test_held_out_rows_are_a_curve_of_their_own():
    run = training(rows(steps=30))
    assert [(c.quantity, c.held_out) for c in run.curves] == [
        (quantity, held) for quantity in ("loss", "margin", "accuracy") for held in (False, True)
    ]
    assert [len(c.values) for c in run.of("loss")] == [30, 3]
    assert run.num_steps == 30


def test_depths_run_from_the_embedding_to_the_model():
    run = training(rows(layers=31))
    assert [c.depth for c in run.by_depth] == pytest.approx([0, 8 / 30, 0.5, 22 / 30, 1])
    assert run.by_depth[-1].values == run.of("margin")[0].values
    assert training([{"step": 1, "loss": 0.5}]).by_depth == ()
    assert [c.depth for c in training(rows(layers=2)).by_depth] == [0, 1]


@pytest.mark.parametrize("name", ["mean_reward", "min_reward", "max_reward", "score"])
def test_a_level_is_not_drawn(name):
    with pytest.raises(GaugeError, match="level"):
        curve(rows(), name)
    with pytest.raises(GaugeError, match="level"):
        Curve(name, False, (1.0,), (2.0,))


def test_nothing_to_draw_is_none():
    assert training([]) is None
    assert training([{"step": 1, "learning_rate": 0.1}]) is None
    assert curve([{"step": 1, "loss": None}], "loss") is None
