import dataclasses
import math

import numpy as np
import pytest

from rmjax.errors import CheckpointError
from rmjax.models.config import Llama3Scaling, ModelConfig

CONFIG = ModelConfig(258, 64, 128, num_layers=2, num_heads=4, num_kv_heads=2, head_dim=16)
SCALING = Llama3Scaling(8.0, 1.0, 4.0, 8192)
SIZES = ("vocab_size", "hidden_size", "intermediate_size", "num_layers", "num_heads", "num_kv_heads", "head_dim")


@pytest.mark.parametrize("name", [*SIZES, "max_positions", "sliding_window"])
@pytest.mark.parametrize("size", [0, -1, 2.0, 2.5, True, math.nan, "2", [2, 2]])
def test_a_size_is_a_whole_number_from_1_on(name, size):
    with pytest.raises(CheckpointError, match=f"{name}="):
        dataclasses.replace(CONFIG, **{name: size})


@pytest.mark.parametrize("name", ["norm_eps", "rope_theta"])
@pytest.mark.parametrize("number", [0, -1.0, math.nan, math.inf, 1e300, 1e-60, 10**400, True, "1", None])
def test_what_is_divided_by_is_a_positive_number(name, number):
    with pytest.raises(CheckpointError, match=f"{name}="):
        dataclasses.replace(CONFIG, **{name: number})


@pytest.mark.parametrize(
    ("name", "value"),
    [("factor", 0.0), ("low_freq_factor", math.nan), ("high_freq_factor", "4"), ("original_max_positions", 8192.0)],
)
def test_a_scaling_has_positive_factors(name, value):
    with pytest.raises(CheckpointError, match=f"{name}="):
        dataclasses.replace(SCALING, **{name: value})


@pytest.mark.parametrize(
    ("change", "named"),
    [({"num_kv_heads": 3}, "num_heads=4, num_kv_heads=3"), ({"head_dim": 15}, "head_dim=15")],
)
def test_heads_share_keys_evenly_and_turn_in_pairs(change, named):
    with pytest.raises(CheckpointError, match=named):
        dataclasses.replace(CONFIG, **change)


def test_a_number_of_numpy_is_shown_as_such():
    with pytest.raises(CheckpointError, match=r"num_heads=np\.int64\(4\)"):
        dataclasses.replace(CONFIG, num_heads=np.int64(4))


def test_no_window_is_a_choice():
    assert dataclasses.replace(CONFIG, sliding_window=None).sliding_window is None
