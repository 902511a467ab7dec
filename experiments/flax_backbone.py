"""A backbone that others wrote, through the Flax door: our data, likelihood and layer margins on an NNX decoder.

    python -m experiments.flax_backbone

The decoder below knows nothing of rmjax: learned positions, layer norms, a mask as an argument. `run_on_trees` tells
`NNXReward` how to run it on packed trees; the training loop is NNX's own. It ends with accuracy and negative
log-likelihood on held-out prompts at every layer, with intervals clustered by prompt: what the embedding of the last
token knows (its character and its position, which is the length), and what each layer adds.

The synthetic world, no downloads. About a minute and a half on 2 CPU cores; to expect: about .56 at the embedding and
.65 from the first layer on, of labels that annotators with a temperature gave. `--smoke` takes two steps with a smaller
decoder.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import numpy as np
import optax
import tyro
from flax import nnx
from rich.console import Console
from rich.progress import track
from rich.table import Table

from rmjax.batch import Batch
from rmjax.data import synthetic
from rmjax.data.buckets import Layout, PackSpec
from rmjax.data.packing import make_layout
from rmjax.data.split import split
from rmjax.data.tokenise import tokenise
from rmjax.diagnostics.metrics import Targets, accuracy, negative_log_likelihood
from rmjax.interop.flax import NNXReward
from rmjax.models.layers import attention_mask
from rmjax.tokenizer import ByteTokenizer
from rmjax.train.scoring import host_batches


@dataclasses.dataclass(frozen=True)
class Config:
    """The whole experiment."""

    world: synthetic.World = synthetic.World(num_prompts=800)
    """The data."""
    width: int = 64
    """Of the decoder."""
    layers: int = 3
    """Of the decoder."""
    epochs: int = 1
    """Passes over the training prompts."""
    learning_rate: float = 2e-3
    """Of AdamW, after a warm-up over a tenth of the steps; it falls to a tenth by a cosine."""
    max_steps: int | None = None
    """Stop after this many steps."""
    smoke: bool = False
    """Two steps of a small decoder on a small world, to see that it runs."""


class Layer(nnx.Module):
    """Attention and a perceptron, each behind a layer norm."""

    def __init__(self, width: int, heads: int, rngs: nnx.Rngs):
        self.norm_1, self.norm_2 = nnx.LayerNorm(width, rngs=rngs), nnx.LayerNorm(width, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(heads, width, decode=False, rngs=rngs)
        self.up, self.down = nnx.Linear(width, 4 * width, rngs=rngs), nnx.Linear(4 * width, width, rngs=rngs)

    def __call__(self, x: jax.Array, mask: jax.Array) -> jax.Array:
        """[B, T, D] with a mask [B, T, T]."""
        x = x + self.attention(self.norm_1(x), mask=mask[:, None])
        return x + self.down(nnx.gelu(self.up(self.norm_2(x))))


class Decoder(nnx.Module):
    """A decoder as others write it."""

    def __init__(self, vocabulary: int, width: int, layers: int, longest: int, rngs: nnx.Rngs):
        self.embed = nnx.Embed(vocabulary, width, rngs=rngs)
        self.position = nnx.Embed(longest, width, rngs=rngs)
        self.layers = nnx.List([Layer(width, 4, rngs) for _ in range(layers)])
        self.norm = nnx.LayerNorm(width, rngs=rngs)

    def __call__(self, tokens: jax.Array, positions: jax.Array, mask: jax.Array) -> tuple[jax.Array, list[jax.Array]]:
        """States after the final norm, and the stream before every layer and after the last."""
        stream = [self.embed(tokens) + self.position(positions)]
        for layer in self.layers:
            stream.append(layer(stream[-1], mask))
        return self.norm(stream[-1]), stream


def run_on_trees(net: Decoder, batch: Batch) -> tuple[jax.Array, list[jax.Array]]:
    """How rmjax runs it: positions and mask say what a token of a tree continues."""
    return net(batch.tokens, batch.depth, attention_mask(batch.segment, batch.parent, batch.depth, None))


@nnx.jit
def step(model: NNXReward, optimizer: nnx.Optimizer, batch: Batch) -> jax.Array:
    """One step of NNX's own optimiser."""

    def loss(model: NNXReward) -> jax.Array:
        reading = model(batch, ties="drop")
        return reading.loss_sum / reading.count

    value, gradient = nnx.value_and_grad(loss)(model)
    optimizer.update(model, gradient)
    return value


@nnx.jit
def layer_margins(model: NNXReward, batch: Batch) -> jax.Array:
    """Margins at every layer, [L + 1, E]."""
    return model(batch, ties="drop").layer_margins


def main(config: Config) -> list[dict[str, Any]]:
    """Train, and print what every layer knows."""
    if config.smoke:
        world = dataclasses.replace(config.world, num_prompts=40)
        config = dataclasses.replace(config, world=world, width=16, layers=2, epochs=1, max_steps=2)
    tokenizer = ByteTokenizer()
    parts = split(synthetic.make(config.world).data, {"train": 0.8, "held_out": 0.2}, seed=0).parts
    train, held_out = (
        make_layout(tokenise(parts[name], tokenizer), PackSpec(lengths=(256,), tokens_per_micro_batch=2048))
        for name in ("train", "held_out")
    )
    longest = int(max(layout.tokenised.lengths.max() for layout in (train, held_out)))
    decoder = nnx.jit(lambda: Decoder(tokenizer.vocab_size, config.width, config.layers, longest, nnx.Rngs(0)))()
    model = NNXReward(decoder, config.width, states=run_on_trees, final_norm=lambda net, x: net.norm(x), trees=True)

    batches = [host.batch for epoch in range(config.epochs) for host in host_batches(train, seed=0, epoch=epoch)]
    batches = batches[: config.max_steps]
    rate = optax.warmup_cosine_decay_schedule(
        config.learning_rate / 10,
        config.learning_rate,
        max(len(batches) // 10, 1),
        max(len(batches), 2),
        config.learning_rate / 10,
    )
    optimizer = nnx.Optimizer(model, optax.adamw(rate), wrt=nnx.Param)
    for batch in track(batches, description="training"):
        step(model, optimizer, batch)
    return show(evaluate(model, held_out))


def evaluate(model: NNXReward, layout: Layout) -> list[dict[str, Any]]:
    """Accuracy and loss of the margins of every layer, on every comparison of a layout."""
    comparisons = layout.tokenised.data.comparisons
    found: dict[int, np.ndarray] = {}
    for host in host_batches(layout, seed=None):
        real = host.comparison >= 0
        margins = np.asarray(layer_margins(model, host.batch), np.float64)[:, real]
        found |= dict(zip(host.comparison[real].tolist(), margins.T, strict=True))
    by_layer = np.stack([found[e] for e in range(comparisons.num_comparisons)], axis=1)
    cluster = np.asarray(comparisons.prompt)[comparisons.first]
    targets = Targets.from_votes(comparisons, cluster=cluster, ties="drop")
    return [
        {
            "layer": layer,
            "accuracy": accuracy(margins, targets, score_ties="half"),
            "nll": negative_log_likelihood(margins, targets),
        }
        for layer, margins in enumerate(by_layer)
    ]


def show(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Print the table."""
    table = Table("layers below", "accuracy, ties as halves", "negative log-likelihood, nats a vote", title="Held out")
    for row in rows:
        numbers = (f"{e.value:.3f} [{e.lower:.3f}, {e.upper:.3f}]" for e in (row["accuracy"], row["nll"]))
        table.add_row(str(row["layer"]), *numbers)
    Console().print(table)
    return rows


if __name__ == "__main__":
    main(tyro.cli(Config))
