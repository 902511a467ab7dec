"""Training SmolLM2-135M with rmjax and with TRL: the same weights, pairs, order and threads, in one run.

    make smollm2
    python -m venv /path/to/trl && /path/to/trl/bin/pip install torch trl==1.16.0
    python -m experiments.benchmarks.train_vs_trl --trl-python /path/to/trl/bin/python \
        --hh hh_harmless_test.jsonl.gz --ukp-pairs ukp_pairs.jsonl.gz --ukp-texts ukp_arguments.jsonl.gz

TRL runs in float32 with batches of 8 pairs, padded as it pads by default, and without gradient checkpointing. rmjax
runs its packed rows with margins at every layer. rmjax is timed before and after TRL, so a machine that drifts shows.
About 15 minutes on 2 CPU cores.

HH is Anthropic's hh-rlhf, harmless-base/test, as published. Pairs with a side of over 512 tokens (6 %) are left out for
both: one of them in a padded batch of 8 takes TRL past 24 GiB of memory. rmjax is also timed alone on pairs of up to
1,024 tokens, in rows of 256, 512 and 1,024: steps of every shape, counted as often as an epoch has them. TRL's rate on
its shorter pairs is more than it could reach on these, so their ratio is less than the true one. UKP is UKPConvArg1
(see experiments/convert_ukp.py): a topic has some 33 arguments and 530 comparisons, and an argument that is scored once
serves all of its comparisons; TRL has a pair of texts per comparison.

Where rmjax's time goes, by `python -m experiments.benchmarks.step_profile` on the same cores: .55 of a step in the
projections' matmuls and their gradients, .14 in attention, .20 in all else of the layers, .10 in the optimiser. The
matmuls alone are a bound: no arrangement of the rest makes a step more than 1.8 times as fast. What is won against TRL
is won before: each prompt once, each argument once, and no padding.
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import tyro

from experiments.benchmarks.rows import row, write
from rmjax.data.batches import build
from rmjax.data.buckets import Bucket, Layout, PackSpec
from rmjax.data.contract import TextContract, render
from rmjax.data.formats import Fields, read
from rmjax.data.packing import MicroBatch, epoch_plan, make_layout
from rmjax.data.tokenise import tokenise
from rmjax.head import Head
from rmjax.models.load import RewardModel, load
from rmjax.models.save import save
from rmjax.train.optimizer import OptimizerConfig, make_optimizer, update
from rmjax.train.scoring import place
from rmjax.train.step import make_gradient_fn
from rmjax.train.trainable import split

COMMAND = "python -m experiments.benchmarks.train_vs_trl"
PAIRS = 8  # in a batch of TRL
EACH = 3  # steps of every shape


@dataclasses.dataclass(frozen=True)
class Config:
    """What is timed."""

    trl_python: str
    """Interpreter of an environment with torch and trl."""
    hh: str
    """hh_harmless_test.jsonl.gz."""
    ukp_pairs: str
    """ukp_pairs.jsonl.gz."""
    ukp_texts: str
    """ukp_arguments.jsonl.gz."""
    hh_steps: int = 4
    """Steps of 8 pairs that both are timed on, or more until rows and batches end with the same pair."""
    ukp_steps: int = 4
    """Steps of 8 pairs that TRL is timed on; rmjax is timed on the whole topics that these pairs are of."""
    model: str = "smollm2-135m"
    """The weights."""
    json: str | None = None
    """Where rows of results go."""


@dataclasses.dataclass(frozen=True)
class Timing:
    """Comparisons, and the seconds that they took: rows and batches differ in speed by design."""

    comparisons: int
    seconds: float

    @property
    def rate(self) -> float:
        """Comparisons per second."""
        return self.comparisons / self.seconds


def main(config: Config) -> list[dict[str, Any]]:
    """Time both sides and print the ratios."""
    threads = os.cpu_count() or 1
    model = load(config.model)
    # A head away from zero: with a zero head the trunk has no gradient, which is no training step.
    weight = np.random.default_rng(0).normal(0, 0.02, model.config.hidden_size).astype(np.float32)
    model = dataclasses.replace(model, params=dataclasses.replace(model.params, head=Head(jax.numpy.asarray(weight))))
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        save(Path(scratch) / "model", model)
        for name, layout, steps, same, target in (
            ("HH pairs", hh_layout(config, model), config.hh_steps, True, 2.0),
            ("UKP comparisons", ukp_layout(config, model), config.ukp_steps, False, 30.0),
        ):
            batches = first_batches(layout, PAIRS * steps, in_step=same)
            order = [e for batch in batches for e in batch.comparisons]
            # The comparisons of a topic are much alike in length: a few of them stand for all.
            theirs_of = order[: len(order) // PAIRS * PAIRS] if same else order[: PAIRS * steps]
            before = time_rmjax(model, layout, batches)
            theirs = time_trl(config, Path(scratch), model, layout, theirs_of, threads)
            after = time_rmjax(model, layout, batches)
            ours = Timing(before.comparisons + after.comparisons, before.seconds + after.seconds)
            print(f"{name}: rmjax is timed on {before.comparisons}, twice, and TRL on {theirs.comparisons} of them")
            rows += [
                row(f"{name} per second, rmjax", ours.rate, "1/s", command=COMMAND),
                row(f"{name} per second, TRL", theirs.rate, "1/s", command=COMMAND),
                row(f"{name}, ratio", ours.rate / theirs.rate, "ratio", target=target, command=COMMAND),
                row(f"{name}, drift of rmjax between its halves", after.rate / before.rate, "ratio", command=COMMAND),
            ]
            for line in rows[-4:]:
                print(f"{line['name']}: {line['value']:.3g} {line['unit']}", flush=True)
    alone = time_epoch(model, hh_layout(config, model, (256, 512, 1024)))
    shorter = next(line["value"] for line in rows if line["name"] == "HH pairs per second, TRL")
    rows += [
        row("HH pairs per second up to 1024 tokens, rmjax alone", alone.rate, "1/s", command=COMMAND),
        row("HH up to 1024 tokens to TRL up to 512, ratio", alone.rate / shorter, "ratio", target=2.0, command=COMMAND),
    ]
    for line in rows[-2:]:
        print(f"{line['name']}: {line['value']:.3g} {line['unit']}")
    if config.json:
        write(config.json, rows)
    return rows


def hh_layout(config: Config, model: RewardModel, lengths: tuple[int, ...] = (256, 512)) -> Layout:
    """HH as TRL reads it: the whole dialogue as text, EOS at the end, no pair over the longest row."""
    contract = TextContract(template="raw", add_eos=True, max_length=lengths[-1], truncation="drop")
    tokenised = tokenise(read(config.hh, on_bad_row="drop"), model.tokenizer, contract)
    return make_layout(tokenised, PackSpec(lengths=lengths, tokens_per_micro_batch=1024))


def ukp_layout(config: Config, model: RewardModel) -> Layout:
    """UKP with its votes; a topic spans rows, and a micro-batch holds one or two topics."""
    fields = Fields(prompt=("prompt", "stance"), source="prompt")
    data = read(config.ukp_pairs, texts=config.ukp_texts, fields=fields)
    tokenised = tokenise(data, model.tokenizer, TextContract(template="raw", add_eos=True))
    return make_layout(tokenised, PackSpec(lengths=(256,), tokens_per_micro_batch=4096))


def first_batches(layout: Layout, comparisons: int, *, in_step: bool) -> list[MicroBatch]:
    """Micro-batches of a shuffled epoch until they hold that many comparisons; in step with batches of 8 on demand."""
    chosen: list[MicroBatch] = []
    total = 0
    for batch in epoch_plan(layout, seed=0).micro_batches:
        chosen.append(batch)
        total += len(batch.comparisons)
        if total >= comparisons and not (in_step and total % PAIRS):
            break
    return chosen


def make_timed_step(model: RewardModel, layout: Layout) -> Callable[[MicroBatch], float]:
    """One optimiser step on one micro-batch, with margins at every layer; gives the seconds that it took."""
    trained, frozen = split(model.params, None)
    optimizer = make_optimizer(OptimizerConfig(), 100)
    state = optimizer.init(trained)
    gradient_fn = make_gradient_fn(model.config, ties="drop")
    apply = jax.jit(lambda t, s, g, n: update(optimizer, t, s, g, n))

    def step(batch: MicroBatch) -> float:
        nonlocal trained, state
        start = time.perf_counter()
        gradient, readout = gradient_fn(trained, frozen, place(build(layout, batch).batch, None))
        trained, state, _ = jax.block_until_ready(apply(trained, state, gradient, readout.count))
        np.asarray(readout.layer_margins)
        return time.perf_counter() - start

    return step


def time_rmjax(model: RewardModel, layout: Layout, batches: list[MicroBatch]) -> Timing:
    """One step per micro-batch, each shape compiled before it is timed."""
    step = make_timed_step(model, layout)
    for batch in {b.bucket: b for b in batches}.values():
        step(batch)
    return Timing(sum(len(batch.comparisons) for batch in batches), sum(step(batch) for batch in batches))


def time_epoch(model: RewardModel, layout: Layout) -> Timing:
    """What a whole epoch would take: a few steps of every shape, which counts as often as the epoch has it."""
    step = make_timed_step(model, layout)
    shapes: dict[Bucket, list[MicroBatch]] = {}
    for batch in epoch_plan(layout, seed=0).micro_batches:
        shapes.setdefault(batch.bucket, []).append(batch)
    seconds = 0.0
    for batches in shapes.values():
        step(batches[0])
        seconds += len(batches) * float(np.mean([step(batch) for batch in batches[:EACH]]))
    return Timing(sum(len(batch.comparisons) for batches in shapes.values() for batch in batches), seconds)


def time_trl(
    config: Config, scratch: Path, model: RewardModel, layout: Layout, comparisons: list[int], threads: int
) -> Timing:
    """These comparisons in this order, in batches of 8, in TRL's own environment."""
    data, contract = layout.tokenised.data, layout.tokenised.contract
    path = scratch / "pairs.jsonl"
    steps = len(comparisons) // PAIRS
    order = [*comparisons[:PAIRS], *comparisons]  # the first step warms up and is not counted
    with path.open("w") as file:
        for e in order:
            sides = []
            for response in (data.comparisons.first[e], data.comparisons.second[e]):
                prompt = data.prompts[data.comparisons.prompt[response]]
                sides.append(render(prompt, data.responses[response], model.tokenizer, contract))
            file.write(json.dumps({"chosen": sides[0], "rejected": sides[1]}) + "\n")
    command = [config.trl_python, str(Path(__file__).with_name("trl_side.py")), "--model", str(scratch / "model")]
    command += ["--pairs", str(path), "--batch", str(PAIRS), "--steps", str(steps + 1), "--threads", str(threads)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"TRL ended with {done.returncode}:\n{done.stderr[-3000:]}")
    result = json.loads(done.stdout.strip().splitlines()[-1])
    print(f"TRL: {result['versions']}, {result['kept']} of {result['given']} pairs kept")
    return Timing(PAIRS * steps, sum(result["seconds"][1:]))


if __name__ == "__main__":
    main(tyro.cli(Config))
