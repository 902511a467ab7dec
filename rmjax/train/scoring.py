"""Scores of every response of a data set, each computed once."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rmjax.batch import Batch
from rmjax.comparisons import Comparisons
from rmjax.data.batches import HostBatch, build
from rmjax.data.buckets import Layout
from rmjax.data.packing import epoch_plan
from rmjax.errors import CheckpointError
from rmjax.models.config import ModelConfig
from rmjax.models.forward import forward
from rmjax.models.params import Params
from rmjax.sharding import row_sharding


@dataclasses.dataclass(frozen=True)
class Scored:
    """Levels on the host. They mean nothing across prompts or models: take margins."""

    scores: np.ndarray  # [N] float32
    layer_scores: np.ndarray  # [L + 1, N] float32, the embedding first, `scores` last
    fingerprint: str = ""  # of the model and the contract that made them

    def margins(self, comparisons: Comparisons) -> np.ndarray:
        """Margins [E] of the model, in float64: the subtraction adds no rounding of its own."""
        return _difference(self.scores, comparisons)

    def layer_margins(self, comparisons: Comparisons) -> np.ndarray:
        """Margins at every layer, [L + 1, E]; the last row is `margins`."""
        return _difference(self.layer_scores, comparisons)


def make_score_fn(config: ModelConfig, dtype: Any = jnp.float32) -> Callable[[Params, Batch], jax.Array]:
    """The jitted scores at every layer, [L + 1, N].

    Args:
        config: the decoder.
        dtype: of matmuls.

    Returns:
        `(params, batch) -> layer scores`, compiled once per batch shape.

    Example:
        >>> from rmjax.data.batches import build
        >>> from rmjax.data.packing import make_layout
        >>> from rmjax.data.tokenise import example
        >>> from rmjax.train.setup import open_model
        >>> model, layout = open_model("tiny", seed=0), make_layout(example())
        >>> batch = build(layout, epoch_plan(layout, seed=None).micro_batches[0]).batch
        >>> scores = make_score_fn(model.config)(model.params, batch)
        >>> scores.shape[0] == model.config.num_layers + 1
        True
    """

    @jax.jit
    def layer_scores(params: Params, batch: Batch) -> jax.Array:
        read = forward(params, batch, config, dtype=dtype, layer_scores=True).layer_scores
        assert read is not None
        return read

    return layer_scores


def score_all(
    params: Params,
    layout: Layout,
    score_fn: Callable[[Params, Batch], jax.Array],
    *,
    mesh: jax.sharding.Mesh | None = None,
    progress: Callable[[int], None] = lambda tokens: None,
) -> Scored:
    """Score every judged response of a layout.

    Guarantees: a score does not depend on what it is packed with, up to rounding; responses that no comparison uses
    are NaN.

    Args:
        params: parameters.
        layout: the data set, cut into trees.
        score_fn: of `make_score_fn`.
        mesh: devices to share rows over.
        progress: called with the number of tokens of every micro-batch that is done.

    Returns:
        Scores on the host, in the order of the data set's responses.

    Raises:
        CheckpointError: a judged response has no finite score.

    Example:
        >>> from rmjax.data.packing import make_layout
        >>> from rmjax.data.tokenise import example
        >>> from rmjax.train.setup import open_model
        >>> model, layout = open_model("tiny", seed=0), make_layout(example())
        >>> scored = score_all(model.params, layout, make_score_fn(model.config))
        >>> scored.margins(layout.tokenised.data.comparisons)  # of a new head
        array([0.])
    """
    found: list[np.ndarray] = []
    where: list[np.ndarray] = []
    for host in host_batches(layout, seed=None):
        values = np.asarray(score_fn(params, place(host.batch, mesh)))
        real = host.response >= 0
        found.append(values[:, real])
        where.append(host.response[real])
        progress(host.num_tokens)
    layers = np.full((found[0].shape[0], len(layout.tokenised.ids)), np.nan, found[0].dtype)
    layers[:, np.concatenate(where)] = np.concatenate(found, axis=1)
    c, data = layout.tokenised.data.comparisons, layout.tokenised.data
    broken = ~np.isfinite(layers[-1][np.asarray(c.first)] + layers[-1][np.asarray(c.second)])
    if broken.any():
        raise CheckpointError(
            "the model's scores are not finite",
            {"row": int(data.rows[broken][0]), "comparisons": int(broken.sum())},
            "Look for NaN or infinite weights in the model, or score in float32.",
        )
    return Scored(layers[-1], layers)


def host_batches(layout: Layout, seed: int | None, epoch: int = 0) -> Iterator[HostBatch]:
    """The micro-batches of one epoch as arrays, built one at a time.

    Args:
        layout: the data set, cut into trees.
        seed: of the order; None keeps that of the data.
        epoch: which pass.

    Yields:
        One micro-batch.
    """
    for micro_batch in epoch_plan(layout, seed, epoch).micro_batches:
        yield build(layout, micro_batch)


def place(batch: Batch, mesh: jax.sharding.Mesh | None) -> Batch:
    """A batch on the devices: rows shared over the data axes, the rest replicated.

    Args:
        batch: arrays on the host, the same in every process.
        mesh: the devices; None for the default device.

    Returns:
        The same batch; each process holds only its part of the rows.
    """
    if mesh is None:
        return jax.tree.map(jnp.asarray, batch)
    rows = row_sharding(mesh, batch.tokens.shape[0])
    everywhere = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())

    def put(x, sharding):
        x = np.asarray(x)
        return jax.make_array_from_callback(x.shape, sharding, lambda index: x[index])

    by_row = {name: put(getattr(batch, name), rows) for name in ("tokens", "segment", "parent", "depth")}
    comparisons = jax.tree.map(lambda x: put(x, everywhere), batch.comparisons)
    return Batch(score_index=put(batch.score_index, everywhere), comparisons=comparisons, **by_row)


def _difference(scores: np.ndarray, comparisons: Comparisons) -> np.ndarray:
    wide = np.asarray(scores, np.float64)
    return wide[..., np.asarray(comparisons.first)] - wide[..., np.asarray(comparisons.second)]
