"""A run from start, or from where it was killed, to its end."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rmjax.data.batches import HostBatch, build
from rmjax.data.buckets import Layout
from rmjax.data.packing import MicroBatch, epoch_plan
from rmjax.errors import CheckpointError, RMJaxError
from rmjax.models.load import RewardModel
from rmjax.models.params import abstract
from rmjax.sharding import make_mesh, shardings
from rmjax.train.checkpoint import Checkpoints
from rmjax.train.config import TrainConfig, resolve, to_json
from rmjax.train.config import load as load_config
from rmjax.train.cost import Cost, estimate
from rmjax.train.evaluation import rounding, score_swapped
from rmjax.train.metrics import MetricsLog, held_out_metrics, read_metrics, step_metrics
from rmjax.train.optimizer import make_optimizer, schedule, update
from rmjax.train.scoring import make_score_fn, place, score_all
from rmjax.train.setup import Prepared
from rmjax.train.step import add, make_gradient_fn
from rmjax.train.stored import RUN
from rmjax.train.trainable import parse, split, whole
from rmjax.train.whole_files import write_whole

_FLOAT_OF = {"float32": jnp.float32, "bfloat16": jnp.bfloat16}


@dataclasses.dataclass(frozen=True)
class Step:
    """One optimiser step of the schedule of a run."""

    number: int  # counted from 1
    epoch: float  # passes over the data when it is done, as others log it
    micro_batches: tuple[MicroBatch, ...]


@dataclasses.dataclass(frozen=True)
class Trained:
    """What a run has made."""

    model: RewardModel
    steps: int
    resumed_from: int  # 0 if it was not
    seconds: float


Observer = Callable[[Step, dict[str, Any]], None]


def run_steps(layout: Layout, config: TrainConfig) -> tuple[Step, ...]:
    """The whole schedule of a run: a pure function of the data and (data_seed, epoch, index).

    Args:
        layout: the training data, cut into trees.
        config: the run.

    Returns:
        All steps; the last of an epoch may have fewer micro-batches.
    """
    steps: list[Step] = []
    for epoch in range(config.epochs):
        batches = epoch_plan(layout, config.data_seed, epoch).micro_batches
        for start in range(0, len(batches), config.accumulate):
            end = min(start + config.accumulate, len(batches))
            steps.append(Step(len(steps) + 1, epoch + end / len(batches), batches[start:end]))
    return tuple(steps[: config.max_steps])


def estimate_cost(prepared: Prepared, config: TrainConfig, done: int = 0) -> Cost:
    """Tokens, operations and seconds of a run, before its first step.

    Args:
        prepared: model and data.
        config: the run.
        done: steps that an earlier process has taken.

    Returns:
        The cost of the other steps.
    """
    batches = [batch for step in run_steps(prepared.train, config)[done:] for batch in step.micro_batches]
    counts = Counter(batch.bucket for batch in batches)
    tokens = sum(batch.num_tokens for batch in batches)
    trained = parse(config.trainable, prepared.model.config.num_layers)
    devices = make_mesh(config.mesh).size
    return estimate(
        prepared.model.config, dict(counts), tokens, trained, devices=devices, dtype=_FLOAT_OF[config.dtype]
    )


def train(prepared: Prepared, config: TrainConfig, observe: Sequence[Observer] = ()) -> Trained:
    """Train, or go on training, and leave checkpoints and metrics in `config.output`.

    Guarantees: the gradient of a step is the same however its comparisons are cut into micro-batches, rows or
    devices, up to rounding; after a kill, the same command goes on from the last checkpoint and reaches, on CPU with
    the same devices and threads, bitwise the same parameters; rows of metrics after that checkpoint are made anew.

    Args:
        prepared: model and data.
        config: the run.
        observe: called after every step with the row of metrics, also on steps that are not logged.

    Returns:
        The trained model.

    Raises:
        CheckpointError: the directory holds a run of another configuration.
        RMJaxError: a gradient or a new parameter was not finite; the last checkpoint stays.
    """
    config, output = resolve(config), Path(config.output)
    claim(output, config)
    model, steps = prepared.model, run_steps(prepared.train, config)
    mesh = make_mesh(config.mesh)
    placement, _ = shardings(abstract(model.config, head_bias=model.params.head.bias is not None), mesh)
    params = jax.device_put(model.params, placement)
    trained, frozen = split(params, parse(config.trainable, model.config.num_layers))
    del params
    optimizer: Any = make_optimizer(config.optimizer, len(steps))
    rate: Any = schedule(config.optimizer, config.optimizer.learning_rate or 0.0, len(steps))
    where = jax.tree.map(lambda x: x.sharding, trained)
    trained = jax.device_put(trained, where, may_alias=False)  # steps donate it; the caller's own must live on
    everywhere = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    gradient_fn = make_gradient_fn(
        model.config,
        objective=config.loss,
        ties=config.data.ties,
        dtype=_FLOAT_OF[config.dtype],
        remat=config.remat,
        out_shardings=(where, everywhere),
    )
    score_fn = make_score_fn(model.config, _FLOAT_OF[config.dtype])
    # Counts are born on one device: left there, the second step would be compiled anew for where the first put them.
    opt_state = jax.tree.map(lambda x: jax.device_put(x, everywhere) if x.ndim == 0 else x, optimizer.init(trained))
    apply = jax.jit(
        lambda trained, state, gradient, count: update(optimizer, trained, state, gradient, count),
        donate_argnums=(0, 1),
        out_shardings=(where, jax.tree.map(lambda x: x.sharding, opt_state), None),
    )
    start = time.perf_counter()
    with contextlib.ExitStack() as stack:
        stack.enter_context(jax.set_mesh(mesh))
        checkpoints = stack.enter_context(Checkpoints(output / "checkpoints", config.keep_checkpoints))
        first = checkpoints.latest or 0
        if first:
            trained, opt_state = checkpoints.restore((trained, opt_state))
        log = stack.enter_context(MetricsLog(output, after=first))
        tokens, clock = sum(b.num_tokens for s in steps[:first] for b in s.micro_batches), time.perf_counter()
        waiting: list[tuple[Step, list[HostBatch], list[Any], jax.Array]] = []

        def report() -> None:
            """Read what the last step said; one step late, so that the device does not wait for the host."""
            nonlocal tokens, clock
            if not waiting:
                return
            step, hosts, readouts, norm = waiting.pop()
            if not np.isfinite(float(norm)):
                raise RMJaxError(
                    "the gradient, or a parameter that it leads to, is not finite",
                    {"step": step.number, "epoch": step.epoch, "loss": float(sum(r.loss_sum for r in readouts))},
                    f"The step changed nothing; the last checkpoint is {checkpoints.latest or 'the start'}. Lower the "
                    "learning rate and give another output directory.",
                )
            parts = [(h.batch.comparisons, r, h.response >= 0) for h, r in zip(hosts, readouts, strict=True)]
            now = time.perf_counter()
            done = sum(host.num_tokens for host in hosts)
            tokens += done
            row = {"step": step.number, "epoch": step.epoch} | step_metrics(parts, config.data.ties)
            row |= {"grad_norm": float(norm), "learning_rate": float(rate(step.number - 1)), "num_tokens": tokens}
            row |= {"tokens_per_second": done / max(now - clock, 1e-9)}
            clock = now
            if step.number % config.log_every == 0 or step.number == len(steps):
                log.write(row)
            for observer in observe:
                observer(step, row)

        for step in steps[first:]:
            hosts = [build(prepared.train, batch) for batch in step.micro_batches]
            gradient, readouts = None, []
            for host in hosts:
                part, readout = gradient_fn(trained, frozen, place(host.batch, mesh))
                gradient = part if gradient is None else add(gradient, part)
                readouts.append(readout)
            count = sum(readout.count for readout in readouts[1:]) + readouts[0].count
            trained, opt_state, norm = apply(trained, opt_state, gradient, count)
            report()
            waiting.append((step, hosts, readouts, norm))
            if config.evaluate_every and step.number % config.evaluate_every == 0:
                report()
                now = dataclasses.replace(model, params=whole(trained, frozen))
                found = evaluate_held_out(now, prepared.held_out, score_fn, config, mesh)
                log.write({"step": step.number, "epoch": step.epoch} | found)
                clock = time.perf_counter()
            if step.number % config.checkpoint_every == 0 and step.number < len(steps):
                report()
                checkpoints.save(step.number, (trained, opt_state))
        report()
        if first < len(steps):
            checkpoints.save(len(steps), (trained, opt_state))
    result = dataclasses.replace(model, params=whole(trained, frozen))
    return Trained(result, len(steps), first, time.perf_counter() - start)


def evaluate_held_out(
    model: RewardModel, layout: Layout, score_fn: Callable[..., Any], config: TrainConfig, mesh: jax.sharding.Mesh
) -> dict[str, Any]:
    """A row of metrics on what is held out, with the swap check on a sample of it.

    Args:
        model: as trained so far.
        layout: of what is held out.
        score_fn: of `make_score_fn`.
        config: of the run.
        mesh: the devices.

    Returns:
        As `held_out_metrics`, with `eval_swap_passed`.
    """
    scored, held_out = score_all(model.params, layout, score_fn, mesh=mesh), layout.tokenised.data.comparisons
    allowed = rounding(model, _FLOAT_OF[config.dtype])
    swap = score_swapped(model, layout, scored, score_fn, rounding=allowed)
    found = held_out_metrics(scored.margins(held_out), held_out, config.data.ties, config.loss)
    return found | {"eval_swap_passed": swap.passed}


def steps_done(directory: str | Path) -> int:
    """The step of the last complete checkpoint of a run; 0 without one."""
    folder = Path(directory) / "checkpoints"
    if not folder.is_dir():
        return 0
    with Checkpoints(folder) as checkpoints:
        return checkpoints.latest or 0


def restore(directory: str | Path, model: RewardModel, config: TrainConfig) -> RewardModel:
    """The model of a run: the one that it started from, with the trained parameters of its last checkpoint.

    Args:
        directory: of the run.
        model: what the run started from.
        config: of the run.

    Returns:
        The trained model.

    Raises:
        CheckpointError: there is no complete checkpoint, or it holds other parameters.
    """
    trained, frozen = split(model.params, parse(config.trainable, model.config.num_layers))
    steps_unknown = 1  # the schedule is no part of the state
    optimizer: Any = make_optimizer(config.optimizer, steps_unknown)
    opt_state = jax.eval_shape(optimizer.init, trained)
    here = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    like = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=here), (trained, opt_state))
    with Checkpoints(Path(directory) / "checkpoints") as checkpoints:
        trained, _ = checkpoints.restore(like)
    return dataclasses.replace(model, params=whole(trained, frozen))


def claim(output: Path, config: TrainConfig) -> None:
    """Make the directory of a run, or check that it holds a run of this configuration.

    A run that stopped before its first row of metrics has left nothing to lose: its directory is free.

    Args:
        output: the directory.
        config: the run.

    Raises:
        CheckpointError: it holds another run, or is a file; nothing is touched.
    """
    path = output / "config.json"
    if output.exists() and not output.is_dir():
        raise CheckpointError("the output is a file", {"output": str(output)}, "Give a directory.")
    begun = bool(read_metrics(output)) or any((output / "checkpoints").glob("*"))
    if not path.exists():
        if begun:
            raise CheckpointError(
                "the directory holds a run without its configuration",
                {"lacks": str(path)},
                "Restore the file, or give another output directory.",
            )
        output.mkdir(parents=True, exist_ok=True)
        write_whole(path, to_json(config))
        return
    found, wanted = (_essence(c) for c in (load_config(output), config))
    if found == wanted:
        return
    if not begun:
        (output / RUN).unlink(missing_ok=True)
        write_whole(path, to_json(config))
    else:
        a, b = _options(dataclasses.asdict(found)), _options(dataclasses.asdict(wanted))
        differing = {name: f"{a[name]!r}, now {b[name]!r}" for name in a if a[name] != b[name]}
        raise CheckpointError(
            "the directory holds a run of another configuration",
            {"directory": str(output)} | differing,
            "Give another output directory, or the configuration of that run to go on with it.",
        )


def _essence(config: TrainConfig) -> TrainConfig:
    """What decides the parameters of a run: not where it lies, nor what is logged and kept of it."""
    data = dataclasses.replace(config.data, path=_resolved(config.data.path), texts=_resolved(config.data.texts))
    plain = TrainConfig()
    told = {name: getattr(plain, name) for name in ("output", "log_every", "keep_checkpoints")}
    return dataclasses.replace(config, data=data, **told)


def _resolved(path: str | None) -> str | None:
    """One spelling of a path, where there is a file."""
    return str(Path(path).resolve()) if path and Path(path).exists() else path


def _options(config: dict[str, Any], under: str = "") -> dict[str, Any]:
    """A configuration with one name per option, as they are typed."""
    flat: dict[str, Any] = {}
    for name, value in config.items():
        flat |= _options(value, f"{under}{name}.") if isinstance(value, dict) else {f"{under}{name}": value}
    return flat
