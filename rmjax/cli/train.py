"""`rmjax train`: a file of preferences in, a trained reward model and a report out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import tyro

from rmjax.cli import show
from rmjax.cli.outputs import check_directory
from rmjax.cli.pages import write_report
from rmjax.data.decisions import of_reading, of_tokenising
from rmjax.models.params import abstract
from rmjax.report.model import to_json
from rmjax.report.terminal import render_text
from rmjax.sharding import make_mesh, shardings
from rmjax.train.config import TrainConfig, resolve
from rmjax.train.cost import Cost
from rmjax.train.evaluation import evaluate, split_words
from rmjax.train.loop import Step, claim, estimate_cost, run_steps, steps_done
from rmjax.train.loop import train as run_training
from rmjax.train.metrics import read_metrics, swaps_failed
from rmjax.train.run import save_contract
from rmjax.train.setup import Prepared, prepare
from rmjax.train.stored import seen


def train(config: Annotated[TrainConfig, tyro.conf.arg(name="")] = TrainConfig(), *, json: bool = False) -> None:
    """Train a reward model. Without options: a small trunk from scratch on the synthetic world.

    Args:
        config: the run.
        json: print the result as JSON on standard output.
    """
    where = show.console(json)
    check_directory(config.output)
    config, output = resolve(config), Path(config.output)
    prepared = prepare(config)
    claim(output, config)
    save_contract(output, prepared, config)
    done = steps_done(output)
    steps, cost = run_steps(prepared.train, config), estimate_cost(prepared, config, done)
    title = f"Resumed after step {done} of {len(steps)}" if done else "Before the first step"
    where.print(show.facts(title, plan(config, prepared, len(steps), cost, done)))
    with show.progress("training", len(steps), where) as (bar, task):
        bar.update(task, completed=done)

        def observe(step: Step, row: dict[str, Any]) -> None:
            said = f"{row['loss']:.3f} nats per {config.data.unit}, accuracy {row['accuracy']:.1%}"
            bar.update(task, completed=step.number, description=said)

        trained = run_training(prepared, config, observe=[observe])
    spent = f"{trained.steps - done} steps in {trained.seconds:.0f} s" + (f", after {done} of earlier" if done else "")
    where.print(f"{spent}. Evaluating what was held out.")
    metrics = read_metrics(output)
    evaluation = evaluate(
        trained.model,
        prepared.held_out,
        config.data,
        file=f"{Path(config.data.path).name}, held out",
        proof=prepared.split.proof,
        facts=[*decisions(prepared), *seen(prepared.files, config.data.path, before=True), *swaps_failed(metrics)],
        dtype=config.dtype,
    )
    costs = [("Estimated", str(cost)), ("Training", spent)]
    report, page = write_report(output, evaluation, metrics, cost=costs)
    if json:
        show.print_json(to_json(report))
        return
    where.print(render_text(report))
    where.print(f"report: {page}")


def decisions(prepared: Prepared) -> list[tuple[str, str]]:
    """What was left out on reading the file, and what the limit did to the training half.

    Args:
        prepared: model and data.

    Returns:
        Labels and texts.
    """
    over, *what = of_tokenising(prepared.train.tokenised.report)
    told = [over, *(line for line in what if line[1] != "none")]
    return [*of_reading(prepared.dropped), *((f"{label.strip()}, in training", text) for label, text in told)]


def plan(config: TrainConfig, prepared: Prepared, steps: int, cost: Cost, done: int) -> list[tuple[str, str]]:
    """What is about to happen, in words.

    Args:
        config: the run.
        prepared: model and data.
        steps: of the optimiser.
        cost: of those that are left.
        done: how many an earlier process has taken.

    Returns:
        Labels and texts.
    """
    model, tokenised = prepared.model, prepared.train.tokenised
    _, replicated = shardings(abstract(model.config), make_mesh(config.mesh))
    rows = [
        ("model", f"{model.report.source}: {model.config.num_parameters:,} parameters, head: {model.report.head}"),
        ("trained", f"{config.trainable}, {config.dtype} matmuls, float32 master weights"),
        ("data", f"{config.data.path}: {split_words(prepared.split.proof)}"),
        ("ties", config.data.ties or "none"),
        ("weighs the same", f"every {config.data.unit}"),
        ("text", f"{tokenised.contract.template}, at most {tokenised.contract.limit:,} tokens"),
        ("shapes", ", ".join(f"{b.rows} x {b.length}" for b in prepared.train.buckets)),
        ("steps", f"{steps}{f', {done} of them done' if done else ''}"),
        ("micro-batches a step", str(config.accumulate)),
        ("cost", str(cost)),
    ]
    rows += decisions(prepared) + seen(prepared.files, config.data.path, before=True)
    notes = (*prepared.split.warnings, *prepared.train.notes, *replicated)
    return rows + [("note", note) for note in notes]
