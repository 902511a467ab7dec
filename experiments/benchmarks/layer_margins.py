"""What margins at every layer cost inside the training step of SmolLM2-135M's shape.

    python -m experiments.benchmarks.layer_margins

Steps with and without the readout alternate, and so does which of them comes first; the median of the ratios within a
turn is the cost, its quartiles say what the machine resolves. The target is at most 2 % of the step. Random weights, no
data, no network; about 4 minutes on 2 CPU cores.
"""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import jax
import numpy as np
import tyro

from experiments.benchmarks.rows import row, write
from rmjax import Comparisons
from rmjax.batch import Batch
from rmjax.head import Head
from rmjax.models import ModelConfig, init
from rmjax.train.step import make_gradient_fn
from rmjax.train.trainable import split

SMOLLM2_135M = ModelConfig(
    vocab_size=49_152,
    hidden_size=576,
    intermediate_size=1_536,
    num_layers=30,
    num_heads=9,
    num_kv_heads=3,
    head_dim=64,
    rope_theta=100_000.0,
)


@dataclasses.dataclass(frozen=True)
class Config:
    """What is timed."""

    rows: int = 4
    """Rows of a micro-batch."""
    length: int = 256
    """Of a row: a prefix of half of it and two answers."""
    repeats: int = 16
    """Steps of either kind."""
    json: str | None = None
    """Where rows of results go."""


def main(config: Config) -> list[dict[str, Any]]:
    """Time both kinds of step in turn."""
    batch, model = pairs(config.rows, config.length), SMOLLM2_135M
    params = init(jax.random.key(0), model)
    weight = np.random.default_rng(0).normal(0, 0.02, model.hidden_size).astype(np.float32)
    trained, frozen = split(dataclasses.replace(params, head=Head(jax.numpy.asarray(weight))), None)
    steps = {kind: make_gradient_fn(model, layer_margins=kind) for kind in (True, False)}
    seconds: dict[bool, list[float]] = {True: [], False: []}
    for repeat in range(config.repeats + 1):
        for kind in (True, False) if repeat % 2 else (False, True):
            start = time.perf_counter()
            jax.block_until_ready(steps[kind](trained, frozen, batch))
            if repeat:
                seconds[kind].append(time.perf_counter() - start)
    # Pair by pair: the two steps of one turn saw the machine in the same mood.
    low, overhead, high = np.quantile(
        np.array(seconds[True]) / np.array(seconds[False]) - 1, (0.25, 0.5, 0.75)
    ).tolist()
    command = "python -m experiments.benchmarks.layer_margins"
    rows = [
        row("seconds of a step with margins at every layer", float(np.median(seconds[True])), "s", command=command),
        row("seconds of a step without", float(np.median(seconds[False])), "s", command=command),
        row("cost of the margins, share of the step", overhead, "share", target=0.02, below=True, command=command),
        row("its lower quartile over the turns", low, "share", command=command),
        row("its upper quartile over the turns", high, "share", command=command),
    ]
    for line in rows:
        print(f"{line['name']}: {line['value']:.4g} {line['unit']}")
    if config.json:
        write(config.json, rows)
    return rows


def pairs(rows: int, length: int) -> Batch:
    """Rows of one prompt and two answers each, without padding."""
    half, quarter = length // 2, length // 4
    segment = np.tile(np.repeat([0, 1, 2], [half, quarter, quarter]), (rows, 1)).astype(np.int32)
    depth = np.tile(np.r_[0:half, half : half + quarter, half : half + quarter], (rows, 1)).astype(np.int32)
    tokens = np.random.default_rng(0).integers(0, 49_152, (rows, length)).astype(np.int32)
    ends = np.array([half + quarter, length]) - 1
    index = (np.arange(rows)[:, None] * length + ends).ravel().astype(np.int32)
    even = np.arange(0, 2 * rows, 2)
    comparisons = Comparisons.from_pairs(even, even + 1, prompt=np.repeat(np.arange(rows), 2))
    return Batch(tokens, segment, np.where(segment > 0, 0, -1).astype(np.int32), depth, index, comparisons)


if __name__ == "__main__":
    main(tyro.cli(Config))
