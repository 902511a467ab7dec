"""Curves of a training run, from its rows of metrics."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np

from rmjax.comparisons import Unit
from rmjax.errors import GaugeError

Quantity = Literal["loss", "margin", "accuracy"]
POINTS = 120  # of a curve; more are not told apart on a page


@dataclasses.dataclass(frozen=True)
class Curve:
    """One quantity over the steps of training, on one set. Only what is free of the gauge can be a curve."""

    quantity: Quantity
    held_out: bool
    steps: tuple[float, ...]
    values: tuple[float, ...]
    depth: float = 1.0  # 0 the embedding, 1 the model's own margin

    def __post_init__(self):
        if self.quantity not in get_args(Quantity):
            raise GaugeError(
                "a level of scores is not a result and is not drawn",
                {"quantity": self.quantity},
                "Draw the loss, the margin or the accuracy: adding a constant to every score changes a level, and "
                "no decision.",
            )


@dataclasses.dataclass(frozen=True)
class Training:
    """Curves of one run, and how many steps it had."""

    curves: tuple[Curve, ...]
    by_depth: tuple[Curve, ...]  # the training margin at some depths
    num_steps: int
    unit: Unit = "vote"  # what its losses are a mean over

    def of(self, quantity: Quantity) -> tuple[Curve, ...]:
        """The curves of one quantity: training, then held out, as far as there are any."""
        return tuple(curve for curve in self.curves if curve.quantity == quantity)


def curve(
    rows: Sequence[Mapping[str, Any]], quantity: Quantity, *, held_out: bool = False, layer: int | None = None
) -> Curve | None:
    """One curve from rows of metrics, thinned to what a page can show.

    Neighbouring rows are pooled as sums and counts (`count`, or `eval_count` for held-out rows, says how many votes
    a row is a mean over), so a pooled point is the mean over its votes and not a mean of means.

    Args:
        rows: dicts with `step` and metrics under TRL's names; held-out ones begin with `eval_`.
        quantity: which one; a name of a level raises.
        held_out: whether to read the `eval_` names.
        layer: which entry of `layer_<quantity>` to read; the model's own value if None.

    Returns:
        The curve, or None where no row has it.

    Raises:
        GaugeError: the quantity is a level of scores.

    Example:
        >>> curve([{"step": 1, "loss": 0.7}, {"step": 2, "loss": 0.5}], "loss").values
        (0.7, 0.5)
    """
    Curve(quantity, held_out, (), ())  # refuse a level before it is read
    prefix = "eval_" if held_out else ""
    name = prefix + quantity if layer is None else f"{prefix}layer_{quantity}"
    found = [
        (row["step"], row[name] if layer is None else row[name][layer], row.get(prefix + "count", 1.0))
        for row in rows
        if row.get(name) is not None
    ]
    if not found:
        return None
    step, value, count = np.array(sorted(found), np.float64).T
    pooled = np.arange(len(step)) * min(POINTS, len(step)) // len(step)
    votes = np.bincount(pooled, weights=count)
    steps, values = (np.bincount(pooled, weights=count * x) / votes for x in (step, value))
    # A point stands at a step that has a row: the one nearest to the mean.
    near = [np.abs(step[pooled == i] - mean).argmin() for i, mean in enumerate(steps)]
    steps = np.array([step[pooled == i][at] for i, at in enumerate(near)])
    depth = 1.0
    if layer is not None:
        depth = layer / (len(next(row[name] for row in rows if row.get(name) is not None)) - 1)
    return Curve(quantity, held_out, tuple(steps.tolist()), tuple(values.tolist()), depth)


def training(rows: Sequence[Mapping[str, Any]], unit: Unit = "vote") -> Training | None:
    """All curves that the rows hold.

    Args:
        rows: of metrics.jsonl.
        unit: what counted as one in the training.

    Returns:
        The curves, or None where there is nothing to draw.

    Example:
        >>> run = training([{"step": s, "loss": 1 / s, "margin": s / 10} for s in (1, 2, 3)])
        >>> run.num_steps, [c.quantity for c in run.curves]
        (3, ['loss', 'margin'])
    """
    candidates = [curve(rows, quantity, held_out=held) for quantity in get_args(Quantity) for held in (False, True)]
    curves = tuple(c for c in candidates if c is not None)
    if not curves:
        return None
    depths = max((len(row.get("layer_margin") or ()) for row in rows), default=0)
    layers = sorted({round(share * (depths - 1)) for share in (0, 0.25, 0.5, 0.75, 1)}) if depths > 1 else []
    by_depth = tuple(c for c in (curve(rows, "margin", layer=layer) for layer in layers) if c is not None)
    return Training(curves, by_depth, int(max(row["step"] for row in rows)), unit)
