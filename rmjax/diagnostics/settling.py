"""Where in the depth of a model the decision forms: margins against depth, and the layer from which they hold."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import ArrayLike

from rmjax.diagnostics.intervals import LEVEL, Estimate, clustered_mean, clustered_proportion
from rmjax.diagnostics.metrics import Targets, accuracy, checked_margins
from rmjax.errors import DataError


@dataclasses.dataclass(frozen=True)
class Settling:
    """Margins read out at every depth. Depth 0 is the embedding, depth 1 the model's own margin.

    Everything is a difference of two answers to one prompt; no layer's score appears alone.
    """

    depth: tuple[float, ...]  # l / L
    aligned_margin: tuple[Estimate, ...]  # margin towards the final decision, in logits
    same_sign: tuple[Estimate, ...]  # share of comparisons whose decision is already the final one
    accuracy: tuple[Estimate, ...]  # against the labels; a margin of 0 counts half
    settled_depth: Estimate  # mean over comparisons of the depth from which the decision holds
    settled_layer: tuple[float, float, float]  # quartiles over comparisons, in layers; NaN where none is decided
    population_layer: int | None  # first layer from which accuracy stays in the interval of the final accuracy
    undecided: int  # comparisons whose final margin is within the noise, left out of everything but accuracy
    reason: str  # why there is no population layer; empty where there is one


def settled_layer(layer_margins: ArrayLike, *, noise: float = 0.0) -> np.ndarray:
    r"""First layer from which a comparison's decision is the final one and stays it.

    $$\ell^* = \min\{\ell : \operatorname{sign} m_k = \operatorname{sign} m_L \text{ for all } k \ge \ell\}$$

    Guarantees: invariant to a positive rescaling of each layer and to exchanging the sides; NaN, never a number,
    where the final margin is within the noise.

    Args:
        layer_margins: margin after every layer, the embedding first and the model's own margin last, [L+1, E].
        noise: final margins of at most this size decide nothing.

    Returns:
        Layers 0 to L as float64, [E].

    Raises:
        DataError: fewer than two depths.

    Example:
        >>> settled_layer([[1.0, -1.0], [-1.0, 2.0], [2.0, 3.0]])
        array([2., 1.])
    """
    margin = _layers(layer_margins)
    differs = np.sign(margin) != np.sign(margin[-1])
    last_depth = len(margin) - 1
    # Searching from the end: the last layer always agrees with itself.
    last_difference = last_depth - np.argmax(differs[::-1], axis=0)
    settled = np.where(differs.any(axis=0), last_difference + 1, 0)
    return np.where(np.abs(margin[-1]) > noise, settled, np.nan).astype(np.float64)


def settling_curve(layer_margins: ArrayLike, targets: Targets, *, noise: float = 0.0, level: float = LEVEL) -> Settling:
    """Margin, decision and accuracy against depth, with clustered intervals, and where they settle.

    The population settles at the first layer from which accuracy lies within the interval of the final accuracy and
    stays there. Where the final accuracy has no interval, or one that contains one half, there is nothing to settle
    on, and the layer is None with the reason.

    Guarantees: multiplying all margins by one positive number rescales `aligned_margin` and nothing else; exchanging
    the sides of any comparison together with its labels changes nothing.

    Args:
        layer_margins: margin after every layer, the embedding first and the model's own margin last, [L+1, E].
        targets: the labels; comparisons that count nothing are left out.
        noise: final margins of at most this size decide nothing (the rounding that the swap check found, say).
        level: confidence level.

    Returns:
        The curves and where they settle.

    Raises:
        DataError: fewer than two depths, another number of comparisons than labels, or a margin that is not finite.

    Example:
        >>> from rmjax import Comparisons
        >>> pairs = Comparisons.from_pairs([0, 2], [1, 3], prompt=[0, 0, 1, 1])
        >>> curve = settling_curve([[0.0, -1.0], [0.5, 1.0], [1.0, 2.0]], Targets.from_votes(pairs, cluster=[0, 1]))
        >>> curve.settled_layer[1], [round(e.value, 2) for e in curve.aligned_margin]
        (1.0, [-0.5, 0.75, 1.5])
    """
    margin = _layers(layer_margins)
    if margin.shape[1:] != targets.counts.shape:
        raise DataError(
            "there is one column of layer margins per comparison",
            {"layer_margins": margin.shape, "comparisons": targets.counts.shape},
            "Give margins [L+1, E] in the order of the comparisons.",
        )
    margin = np.stack([checked_margins(m, targets) for m in margin])
    last_depth = len(margin) - 1
    depth = np.arange(last_depth + 1) / last_depth
    final = margin[-1]
    used = targets.counts > 0
    decided = used & (np.abs(final) > noise)
    counts = decided.astype(np.float64)
    settled = settled_layer(margin, noise=noise)
    quartiles = np.quantile(settled[decided], (0.25, 0.5, 0.75)) if decided.any() else np.full(3, np.nan)
    right = tuple(accuracy(m, targets, score_ties="half", level=level) for m in margin)
    layer, reason = _population_layer(right)

    same_sign = [
        clustered_proportion(counts * (np.sign(m) == np.sign(final)), counts, targets.cluster, level=level)
        for m in margin
    ]
    by_definition = "no interval: the last layer is the decision itself"
    same_sign[-1] = dataclasses.replace(same_sign[-1], lower=np.nan, upper=np.nan, method=by_definition)

    return Settling(
        depth=tuple(depth.tolist()),
        aligned_margin=tuple(
            clustered_mean(counts * np.sign(final) * m, counts, targets.cluster, level=level) for m in margin
        ),
        same_sign=tuple(same_sign),
        accuracy=right,
        settled_depth=clustered_mean(
            np.where(decided, settled / last_depth, 0.0), counts, targets.cluster, level=level
        ),
        settled_layer=(float(quartiles[0]), float(quartiles[1]), float(quartiles[2])),
        population_layer=layer,
        undecided=int((used & ~decided).sum()),
        reason=reason,
    )


def _population_layer(right: tuple[Estimate, ...]) -> tuple[int | None, str]:
    """First layer from which accuracy stays in the interval of the last; None and the reason where there is none."""
    final = right[-1]
    if not final.has_interval:
        return None, "the final accuracy has no interval"
    if not final.excludes(0.5):
        return None, "the final accuracy cannot be told from one half"
    outside = [layer for layer, estimate in enumerate(right) if final.excludes(estimate.value)]
    return (outside[-1] + 1 if outside else 0), ""


def _layers(layer_margins: ArrayLike) -> np.ndarray:
    """Layer margins in float64, checked."""
    margin = np.asarray(layer_margins, np.float64)
    if margin.ndim != 2 or len(margin) < 2:
        raise DataError(
            "layer margins have at least two depths",
            {"shape": margin.shape},
            "Give margins [L+1, E]: after the embedding and after every block.",
        )
    return margin
