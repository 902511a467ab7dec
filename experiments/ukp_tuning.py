"""Why training SmolLM2-135M further on UKPConvArg1 adds so little to a head on its frozen states.

    make smollm2
    python -m experiments.ukp_tuning --pairs ukp_pairs.jsonl.gz --texts ukp_arguments.jsonl.gz

In the twelve training debates of fold 0 a fifth of the arguments is set aside. The last layers are trained on the pairs
of the others, from the frozen head that fits the same pairs, at several rates. After every epoch three sets are read:
the pairs trained on, pairs of two unseen arguments in the same debates, and the four unseen debates. What rises on the
first and not on the second is memory of single arguments; what rises on the second and not on the third is knowledge of
debates.

The layers below are frozen, so that their states are computed once. About 25 minutes on 2 CPU cores.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import tyro
from rich.console import Console

from experiments import ukp
from rmjax.batch import Batch
from rmjax.data.batches import HostBatch
from rmjax.data.buckets import Layout
from rmjax.data.dataset import PreferenceData, subset
from rmjax.data.formats import Fields, read
from rmjax.data.packing import make_layout
from rmjax.data.split import group_folds
from rmjax.diagnostics.intervals import mean_over_clusters, paired_difference
from rmjax.diagnostics.metrics import Targets, accuracy_terms
from rmjax.models.config import ModelConfig
from rmjax.models.forward import forward
from rmjax.models.load import RewardModel, load
from rmjax.models.params import Params
from rmjax.train.frozen import fit_head, layer_states
from rmjax.train.optimizer import OptimizerConfig, make_optimizer, update
from rmjax.train.scoring import host_batches
from rmjax.train.step import make_gradient_fn


@dataclasses.dataclass(frozen=True)
class Config:
    """The whole experiment."""

    pairs: str
    """ukp_pairs.jsonl.gz."""
    texts: str
    """ukp_arguments.jsonl.gz."""
    output: str = "results/ukp_tuning"
    """Directory for the numbers."""
    model: str = "smollm2-135m"
    """The trunk."""
    trained_layers: int = 10
    """Layers that are trained."""
    rates: tuple[float, ...] = (2e-5, 1e-4)
    """Learning rates of the trunk; the head, which starts at its optimum, has a tenth."""
    epochs: int = 3
    """Passes."""
    ridge: float = 0.3
    """Of the frozen head."""


@dataclasses.dataclass(frozen=True)
class Part:
    """Comparisons, with the residual stream of their tokens under the trained layers."""

    data: PreferenceData
    debate: np.ndarray
    streams: list[np.ndarray]  # per micro-batch, [R T, D]
    hosts: list[HostBatch]


def main(config: Config) -> dict[str, Any]:
    """Train at every rate and print what each epoch did to the three sets."""
    console = Console()
    data = read(config.pairs, texts=config.texts, fields=Fields(prompt=("prompt", "stance"), source="prompt"))
    model = load(config.model)
    parts = set_aside(ukp.lay_out(data, model).tokenised.data)
    layouts = {name: make_layout(ukp.lay_out(part, model).tokenised, ukp.ONE_TOPIC) for name, part in parts.items()}
    states = layer_states(model.params, layouts["trained on"], model.config)[-1]
    fit = fit_head(states, layouts["trained on"].tokenised.data.comparisons, ridge=config.ridge, ties="drop")
    below, above, stream = cut(model, config.trained_layers)
    sets = {name: prepare(layout, stream, below) for name, layout in layouts.items()}
    start = dataclasses.replace(above, head=fit.head)
    upper = dataclasses.replace(model.config, num_layers=config.trained_layers)
    results: dict[str, Any] = {}
    for rate in config.rates:
        frozen, rows = {}, []
        for epoch, params in enumerate(trained(start, sets["trained on"], upper, rate, config.epochs)):
            margins = {name: score(params, part, upper) for name, part in sets.items()}
            frozen = frozen or margins
            row = {name: measure(margins[name], frozen[name], part) for name, part in sets.items()}
            rows.append(row)
            said = "; ".join(
                f"{name} {r['votes']:.3f} ({r['difference']:+.3f}, SE {r['error']:.3f})" for name, r in row.items()
            )
            console.print(f"rate {rate:g}, epoch {epoch}: votes, and difference from the frozen head: {said}")
        results[f"{rate:g}"] = rows
    output = Path(config.output)
    output.mkdir(parents=True, exist_ok=True)
    (output / "results.json").write_text(json.dumps(results, indent=2) + "\n")
    return results


def set_aside(data: PreferenceData) -> dict[str, PreferenceData]:
    """Pairs to train on, pairs of two unseen arguments in the same debates, and the unseen debates."""
    c, new_debate = data.comparisons, group_folds(data, 4, seed=0) == 0
    unseen = np.random.default_rng(0).random(len(data.responses)) < 0.2
    first, second = unseen[c.first], unseen[c.second]
    return {
        "trained on": subset(data, ~new_debate & ~first & ~second),
        "unseen arguments": subset(data, ~new_debate & first & second),
        "unseen debates": subset(data, new_debate),
    }


def cut(model: RewardModel, count: int) -> tuple[Params, Params, Callable[[Params, Batch], jax.Array]]:
    """Parameters below and above the lowest trained layer, and the residual stream between them, [R T, D]."""
    at = model.config.num_layers - count
    below = dataclasses.replace(model.params, blocks=jax.tree.map(lambda x: x[:at], model.params.blocks))
    above = dataclasses.replace(model.params, embed=None, blocks=jax.tree.map(lambda x: x[at:], model.params.blocks))
    lower = dataclasses.replace(model.config, num_layers=at)

    @jax.jit
    def stream(params: Params, batch: Batch) -> jax.Array:
        def tap(site: str, layer: jax.Array, x: jax.Array) -> tuple[jax.Array, Any]:
            return x, x if site == "resid_post" else None

        return forward(params, batch, lower, tap=tap).reads["resid_post"][-1].reshape(-1, lower.hidden_size)

    return below, above, stream


def prepare(layout: Layout, stream: Callable[[Params, Batch], jax.Array], below: Params) -> Part:
    """Run the frozen layers once. A token of the batch is then the number of its state, and the states are a table."""
    data = layout.tokenised.data
    _, debate = np.unique(np.array(data.sources)[data.comparisons.prompt[data.comparisons.first]], return_inverse=True)
    streams, hosts = [], []
    for host in host_batches(layout, seed=None):
        streams.append(np.asarray(stream(below, host.batch)))
        number = np.arange(streams[-1].shape[0], dtype=np.int32).reshape(host.batch.tokens.shape)
        hosts.append(dataclasses.replace(host, batch=dataclasses.replace(host.batch, tokens=number)))
    return Part(data, debate, streams, hosts)


def trained(start: Params, part: Part, config: ModelConfig, rate: float, epochs: int) -> Iterator[Params]:
    """Parameters at the start and after every epoch."""
    optimizer = make_optimizer(
        OptimizerConfig(learning_rate=rate, head_learning_rate=rate / 10), epochs * len(part.hosts)
    )
    gradient_fn = make_gradient_fn(config, ties="drop", layer_margins=False)
    step = jax.jit(lambda p, s, g, n: update(optimizer, p, s, g, n))
    params, state = start, optimizer.init(start)
    yield params
    for epoch in range(epochs):
        for k in np.random.default_rng(epoch).permutation(len(part.hosts)):
            table = Params(embed=jnp.asarray(part.streams[k]), blocks=None, norm=None, head=None)  # pyright: ignore[reportArgumentType] - the trained tree has them
            gradient, readout = gradient_fn(params, table, part.hosts[k].batch)
            params, state, _ = step(params, state, gradient, readout.count)
        yield params


@functools.partial(jax.jit, static_argnames="config")
def scores_of(params: Params, stream: jax.Array, batch: Batch, config: ModelConfig) -> jax.Array:
    """Scores of a batch whose tokens are rows of `stream`."""
    return forward(dataclasses.replace(params, embed=stream), batch, config).scores


def score(params: Params, part: Part, config: ModelConfig) -> np.ndarray:
    """Margins of all comparisons of a part."""
    scores = np.full(len(part.data.responses), np.nan)
    for stream, host in zip(part.streams, part.hosts, strict=True):
        real = host.response >= 0
        scores[host.response[real]] = np.asarray(scores_of(params, stream, host.batch, config))[real]
    return scores[part.data.comparisons.first] - scores[part.data.comparisons.second]


def measure(margins: np.ndarray, frozen: np.ndarray, part: Part) -> dict[str, float]:
    """Accuracy on single votes, mean over debates, and the paired difference from the frozen head."""
    targets = Targets.from_votes(part.data.comparisons, cluster=part.debate, ties="drop")
    (sums, counts), (other, _) = (accuracy_terms(m, targets, score_ties="half") for m in (margins, frozen))
    difference = paired_difference(sums, other, counts, part.debate)
    return {
        "votes": mean_over_clusters(sums, counts, part.debate).value,
        "difference": difference.value,
        "error": difference.standard_error,
    }


if __name__ == "__main__":
    main(tyro.cli(Config))
