"""Our head, likelihood and layer margins on the hidden states of any backbone."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rmjax.arrays import Array
from rmjax.batch import Batch
from rmjax.comparisons import Ties
from rmjax.errors import DataError, ReadoutError
from rmjax.head import Head, score
from rmjax.interop.unpack import check_plain
from rmjax.losses import margins, negative_log_likelihood

States = Callable[[Any, Batch], Any]  # (backbone, batch) -> states, or (states, layers)
FinalNorm = Callable[[Any, jax.Array], jax.Array]  # (backbone, x) -> x


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Reading:
    """What a batch says: sums, counts and values per response or comparison, no means."""

    scores: jax.Array  # [N], at least float32, up to one constant per prompt
    loss_sum: jax.Array  # [], nats
    count: jax.Array  # [], weighted votes
    margins: jax.Array  # [E], logits
    layer_margins: jax.Array | None  # [L + 1, E], logits, the embedding first; no gradient


def read(
    states: Array,
    batch: Batch,
    head: Head,
    *,
    layers: Array | Sequence[Array] | None = None,
    final_norm: Callable[[jax.Array], jax.Array] | None = None,
    ties: Ties | None = None,
) -> Reading:
    """Scores at the tokens that the data layer names, their likelihood, and margins at every layer.

    Guarantees: only the states at `batch.score_index` are read, so padding, on whichever side, changes nothing; head
    and margins are computed in at least float32 with the device's highest matmul precision, whatever the dtype of the
    states; `layer_margins` is the head on each layer's state through the final norm, and takes no gradient.

    Args:
        states: what the head reads, [R, T, D]: the backbone's output after its final norm.
        batch: the rows that the backbone saw.
        head: the head.
        layers: the residual stream before every layer and after the last one, L + 1 times [R, T, D], all before the
            final norm. (Some libraries put the normed output last: `check_end_point` sees it.)
        final_norm: the backbone's, over the last axis; needed with `layers`.
        ties: what the link does with ties.

    Returns:
        The reading; the mean loss is `loss_sum / count`.

    Raises:
        DataError: `layers` without `final_norm`, or ties that nobody said what to do with.

    Example:
        >>> from rmjax import Comparisons
        >>> pairs = Comparisons.from_pairs([0], [1], prompt=[0, 0])
        >>> zeros = np.zeros((2, 3), np.int32)
        >>> rows = Batch(zeros, zeros, zeros - 1, zeros + np.arange(3), np.array([2, 4]), pairs)
        >>> states = jnp.arange(6.0).reshape(2, 3, 1)
        >>> reading = read(states, rows, Head(jnp.array([2.0])), layers=[0 * states, states], final_norm=lambda x: x)
        >>> reading.scores.tolist(), reading.layer_margins.tolist()
        ([4.0, 8.0], [[0.0], [-4.0]])
    """

    def scored(x: Array) -> jax.Array:
        x = jnp.asarray(x)
        return x.reshape(-1, x.shape[-1])[batch.score_index]

    scores = score(scored(states), head)
    loss_sum, count = negative_log_likelihood(scores, batch.comparisons, ties=ties)
    by_layer = None
    if layers is not None:
        if final_norm is None:
            raise DataError(
                "margins at every layer need the backbone's final norm",
                {"layers": len(layers)},
                "Pass `final_norm`: the head reads normed states, and a layer's state is read as the last one is.",
            )
        lens = score(final_norm(jnp.stack([scored(x) for x in layers])), head)
        by_layer = jax.lax.stop_gradient(jax.vmap(lambda s: margins(s, batch.comparisons))(lens))
    return Reading(scores, loss_sum, count, margins(scores, batch.comparisons), by_layer)


def check_end_point(reading: Reading, bound: float = 1e-5) -> float:
    """Refuse layer margins whose last row is not the margin of the scores.

    It is not where `layers` ends in states that are already normed, leaves out the last layer, or `final_norm` is
    another than the backbone's. Run it once on a head that is not zero: a zero head has margin 0 everywhere.

    Args:
        reading: of `read`, outside of jit.
        bound: on the norm of the difference, relative to the norm of the margins.

    Returns:
        That relative difference.

    Raises:
        ReadoutError: the reading has no layers, the margins are all 0, or the difference exceeds the bound.

    Example:
        >>> margin = jnp.array([1.0, -2.0])
        >>> nothing = jnp.zeros(())
        >>> check_end_point(Reading(margin, nothing, nothing, margin, jnp.stack([0 * margin, margin])))
        0.0
    """
    margin = np.asarray(reading.margins, np.float64)
    size = float(np.linalg.norm(margin))
    if reading.layer_margins is None or not size > 0:
        raise ReadoutError(
            "there is nothing to check",
            {"margins": size, "layers": 0 if reading.layer_margins is None else reading.layer_margins.shape[0]},
            "Give `layers`, and a head that is not zero.",
        )
    residual = float(np.linalg.norm(np.asarray(reading.layer_margins, np.float64)[-1] - margin)) / size
    if not residual <= bound:
        raise ReadoutError(
            "the last layer's margins are not those of the scores",
            {"relative_difference": residual, "bound": bound},
            "Give the residual stream before the final norm, from the embedding to after the last layer, and the "
            "backbone's own final norm.",
        )
    return residual


@dataclasses.dataclass(frozen=True)
class How:
    """How a backbone of others is run: what `NNXReward` and `LinenReward` are told about it."""

    states: States
    final_norm: FinalNorm | None
    trees: bool


def read_backbone(
    backbone: Any, batch: Batch, make_head: Callable[[int], Head], how: How, ties: Ties | None
) -> Reading:
    """Run a backbone on a batch and read it; `make_head` is given the size of its states."""
    if not how.trees:
        check_plain(batch)
    found = how.states(backbone, batch)
    states, layers = found if isinstance(found, tuple) else (found, None)
    norm = None if how.final_norm is None else functools.partial(how.final_norm, backbone)
    return read(states, batch, make_head(states.shape[-1]), layers=layers, final_norm=norm, ties=ties)
