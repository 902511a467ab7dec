"""Rows of metrics: sums and counts over a step, under TRL's names, as JSON lines and TensorBoard events."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rmjax.comparisons import Comparisons, Ties
from rmjax.data.tokenise import SHOWN
from rmjax.diagnostics.metrics import Targets, accuracy_terms, margin_terms
from rmjax.diagnostics.summary import as_json
from rmjax.errors import CheckpointError
from rmjax.train.objective import Objective, held_out_loss
from rmjax.train.step import StepReadout
from rmjax.train.whole_files import write_whole

_TERMS = {"accuracy": accuracy_terms, "margin": margin_terms}
# Levels have a constant per prompt that nothing fixes: they stand in the file and no curve is drawn of them.
_LEVELS = ("min_reward", "mean_reward", "max_reward")


def step_metrics(parts: Sequence[tuple[Comparisons, StepReadout, np.ndarray]], ties: Ties | None) -> dict[str, Any]:
    """Metrics of one step from the readouts of its micro-batches.

    Args:
        parts: comparisons, readout, and which of the scores are real, per micro-batch.
        ties: what becomes of ties.

    Returns:
        `loss` in nats per vote, `accuracy` with score ties as wrong, `margin` in logits from chosen to rejected, the
        same two at every layer, `count` of weighted votes, and TRL's levels.
    """
    loss = sum(float(readout.loss_sum) for _, readout, _ in parts)
    count = sum(float(readout.count) for _, readout, _ in parts)
    correct, gained = np.zeros(1), np.zeros(1)
    for comparisons, readout, _ in parts:
        targets = Targets.from_votes(comparisons, cluster=np.zeros(comparisons.num_comparisons), ties=ties)
        layers = np.asarray(readout.layer_margins, np.float64)
        correct = correct + np.array([accuracy_terms(layer, targets)[0].sum() for layer in layers])
        gained = gained + np.array([margin_terms(layer, targets)[0].sum() for layer in layers])
    accuracy, margin = (correct / max(count, 1e-30)).tolist(), (gained / max(count, 1e-30)).tolist()
    scores = np.concatenate([np.asarray(readout.scores)[real] for _, readout, real in parts])
    return {
        "loss": loss / max(count, 1e-30),
        "accuracy": accuracy[-1],
        "margin": margin[-1],
        "count": count,
        "layer_margin": margin,
        "layer_accuracy": accuracy,
        "min_reward": float(scores.min()),
        "mean_reward": float(scores.mean(dtype=np.float64)),
        "max_reward": float(scores.max()),
    }


def held_out_metrics(
    margins: np.ndarray, comparisons: Comparisons, ties: Ties | None, objective: Objective = Objective()
) -> dict[str, Any]:
    """Metrics of one evaluation during training.

    Args:
        margins: of the model, [E], in logits.
        comparisons: what was held out.
        ties: what becomes of ties.
        objective: the loss of the run.

    Returns:
        `eval_loss`, `eval_accuracy`, `eval_margin` and `eval_count`, as in `step_metrics`.
    """
    targets = Targets.from_votes(comparisons, cluster=np.zeros(comparisons.num_comparisons), ties=ties)
    count = float(targets.counts.sum())
    sums = {"loss": held_out_loss(margins, comparisons, objective, ties)}
    sums |= {name: float(of(margins, targets)[0].sum()) for name, of in _TERMS.items()}
    return {f"eval_{name}": total / max(count, 1e-30) for name, total in sums.items()} | {"eval_count": count}


class MetricsLog:
    """metrics.jsonl and TensorBoard events of a run.

    Args:
        directory: of the run.
        after: the step to resume from; rows of later steps, which will be made again, are cut off.
    """

    def __init__(self, directory: str | Path, after: int = 0):
        from tensorboardX import SummaryWriter

        self._path = Path(directory) / "metrics.jsonl"
        kept = [row for row in read_metrics(directory) if row["step"] <= after]
        write_whole(self._path, (json.dumps(as_json(row), allow_nan=False) + "\n" for row in kept))
        self._file = self._path.open("a")
        self._board = SummaryWriter(str(Path(directory) / "tensorboard"), purge_step=after + 1)

    def write(self, row: dict[str, Any]) -> None:
        """Add one row; it has a `step`. What is not finite is null in the file: JSON has no word for it."""
        self._file.write(json.dumps(as_json(row), allow_nan=False) + "\n")
        self._file.flush()
        for name, value in row.items():
            if isinstance(value, int | float) and name not in ("step", *_LEVELS):
                self._board.add_scalar(name, value, row["step"])
            elif isinstance(value, list):
                for layer, at in enumerate(value):
                    self._board.add_scalar(f"{name}/{layer}", at, row["step"])

    def __enter__(self) -> MetricsLog:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Flush both files."""
        self._file.close()
        self._board.close()


def read_metrics(directory: str | Path) -> list[dict[str, Any]]:
    """Rows of a run's metrics.jsonl; a last line that was cut off by a kill is left out.

    Args:
        directory: of the run.

    Returns:
        One dict per row; none if there is no file.

    Raises:
        CheckpointError: a line that was written whole is damaged.
    """
    path = Path(directory) / "metrics.jsonl"
    if not path.exists():
        return []
    rows = []
    for number, line in enumerate(path.read_text(errors="replace").split("\n")[:-1], start=1):
        try:
            row = json.loads(line)
            if not isinstance(row, dict) or type(row.get("step")) is not int:
                raise ValueError("no row with a step")
            rows.append(row)
        except (ValueError, RecursionError) as error:
            raise CheckpointError(
                "a row of the metrics is damaged",
                {"file": str(path), "line": number},
                "Restore the file, or remove the line and those after it: rows after a checkpoint are made again.",
            ) from error
    return rows


def swaps_failed(rows: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    """A fact about a run whose scores knew, at some step, which of two answers came first.

    Args:
        rows: of `read_metrics`.

    Returns:
        Label and text; nothing where every evaluation passed.

    Example:
        >>> swaps_failed([{"step": 5, "eval_swap_passed": True}, {"step": 10, "eval_swap_passed": False}])
        [('swap check failed in training', 'at step 10: the score there knew which answer came first')]
    """
    steps = [str(row["step"]) for row in rows if row.get("eval_swap_passed") is False]
    where = f"step{'s' if len(steps) > 1 else ''} {', '.join(steps[:SHOWN])}{' ...' if len(steps) > SHOWN else ''}"
    said = ("swap check failed in training", f"at {where}: the score there knew which answer came first")
    return [said] if steps else []
