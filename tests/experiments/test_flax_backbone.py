"""The example of the Flax door runs, through the data layer and back to intervals."""

import jax
import numpy as np

from experiments.flax_backbone import Config, main


def test_the_example_runs_and_reads_every_layer():
    # Flax and optax promote where strict numerics would refuse; the example is run as a user runs it.
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        rows = main(Config(smoke=True))
    assert [row["layer"] for row in rows] == [0, 1, 2]
    assert all(np.isfinite(row["nll"].value) for row in rows)
    assert len({row["nll"].count for row in rows}) == 1
    assert rows[0]["nll"].count > 20
