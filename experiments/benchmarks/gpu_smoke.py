"""Do the laws hold on this device? Training, shift, packing, layer margins, and float32 that is float32.

    python -m experiments.benchmarks.gpu_smoke --json results/gpu_smoke.json

No data, no weights, no network. About two minutes on a GPU, most of them compilation; on a CPU add `--small`, which
takes half a minute on 2 cores. Oracles are computed in float64 by NumPy on the host. Exit status 1 if a target is
missed.

Accelerators multiply float32 in fewer bits unless told otherwise: TPU in bfloat16 (8 bits), recent NVIDIA chips in TF32
(11 bits). The bounds are such that either would miss them, and the same contractions with operands rounded to those
widths are measured beside them, as proof that the bounds bite.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import tyro

from experiments.benchmarks.decoder_oracle import decoder_states, rms_norm
from experiments.benchmarks.rows import missed, row, write
from rmjax import Comparisons
from rmjax.batch import Batch
from rmjax.data.batches import build
from rmjax.data.buckets import PackSpec
from rmjax.data.contract import TextContract
from rmjax.data.dataset import PreferenceData
from rmjax.data.packing import epoch_plan, make_layout
from rmjax.data.tokenise import TokenisedData
from rmjax.head import Head, score
from rmjax.interop.unpack import unpack
from rmjax.losses import margins, negative_log_likelihood
from rmjax.models import ModelConfig, Params, ParamSpec, abstract, forward
from rmjax.train.optimizer import OptimizerConfig, make_optimizer, update
from rmjax.train.step import GradientFn, make_gradient_fn
from rmjax.train.trainable import split


@dataclasses.dataclass(frozen=True)
class Config:
    """What to run."""

    small: bool = False
    """A model and a batch for CPUs."""
    json: str | None = None
    """Where the rows of results go."""


@dataclasses.dataclass(frozen=True)
class Size:
    """How large the model and its batch are."""

    model: ModelConfig
    length: int  # of rows, packed or not
    prompts: int
    prefix: int  # tokens that the answers of a prompt share
    answer: int  # tokens of an answer at most
    steps: int = 5


def _model(hidden: int, layers: int, heads: int) -> ModelConfig:
    return ModelConfig(1024, hidden, 3 * hidden, layers, heads, num_kv_heads=heads // 2, head_dim=hidden // heads)


SMALL = Size(_model(hidden=32, layers=2, heads=4), length=48, prompts=4, prefix=10, answer=12)
LARGE = Size(_model(hidden=1024, layers=8, heads=16), length=512, prompts=4, prefix=120, answer=130)


def main(config: Config) -> list[dict[str, Any]]:
    """Run every check and print its number beside its target."""
    size = SMALL if config.small else LARGE
    command = "python -m experiments.benchmarks.gpu_smoke" + (" --small" if config.small else "")
    start = time.perf_counter()
    params = make_params(size.model)
    packed = make_batch(size)
    plain = unpack(packed, size.length)
    rows = []
    for check in (shift_law, contractions, layers_and_forward, packing, training):
        for name, value, unit, *target in check(size, params, packed, plain):
            bound, below = target or (None, False)
            rows.append(row(name, value, unit, target=bound, below=below, command=command))
            verdict = {None: "", True: "ok", False: "MISSED"}[rows[-1]["met"]]
            print(f"{verdict:6}  {name}: {value:.3g} {unit}  {rows[-1]['target'] or ''}", flush=True)
    rows.append(row("seconds in all", time.perf_counter() - start, "s", command=command))
    print(f"{rows[-1]['machine']}: {rows[-1]['value']:.0f} s")
    if config.json:
        write(config.json, rows)
    return rows


# Every check yields (name, value, unit), then (target, below) where there is one.
Check = Any


def shift_law(size: Size, params: Params, packed: Batch, plain: Batch) -> Check:
    """One constant per prompt changes nothing. Scores are multiples of 1/1024: adding it is exact in float32."""
    rng = np.random.default_rng(1)
    c = packed.comparisons
    prompt = np.asarray(c.prompt)
    scores = np.float32(rng.integers(-4096, 4096, len(prompt)) / 1024)
    constants = np.float32(rng.integers(-1000, 1000, prompt.max() + 2))
    loss = jax.jit(jax.value_and_grad(lambda scores: negative_log_likelihood(scores, c)[0]))
    here, there = loss(scores), loss(scores + constants[prompt])
    change = max(float(np.abs(np.asarray(a) - np.asarray(b)).max()) for a, b in zip(here, there, strict=True))
    yield "shift law in float32, change of loss and gradient", change, "nats", 0.0, True
    coarse = jax.jit(lambda scores: scores.astype(jnp.bfloat16).astype(jnp.float32))
    lost = np.asarray(margins(coarse(scores + constants[prompt]), c)) - np.asarray(margins(scores, c))
    yield "what scores in bfloat16 would lose of a margin", float(np.abs(lost).max()), "logits"


def contractions(size: Size, params: Params, packed: Batch, plain: Batch) -> Check:
    """The head on states of full width, against float64."""
    rng = np.random.default_rng(2)
    states, weight = rng.normal(size=(4096, 2048)).astype(np.float32), rng.normal(size=2048).astype(np.float32)
    exact = states.astype(np.float64) @ weight.astype(np.float64)
    head = jax.jit(lambda states, weight: score(states, Head(weight)))
    yield "head, float32 against float64", relative(head(states, weight), exact), "relative", 1e-6, True
    for name, bits in (("TF32", 11), ("bfloat16", 8)):
        rounded = relative(head(round_to(states, bits), round_to(weight, bits)), exact)
        yield f"head with operands in {name}, which must miss that bound", rounded, "relative", 1e-5, False


def layers_and_forward(size: Size, params: Params, packed: Batch, plain: Batch) -> Check:
    """Scores and margins at every layer, against a decoder in float64; the end point against the lens by hand."""
    real = np.asarray(plain.comparisons.prompt) >= 0
    c = plain.comparisons
    states = decoder_states(params, plain.tokens[real], size.model)
    at = (plain.score_index % plain.tokens.shape[1])[real]
    normed = rms_norm(states[:, np.arange(len(at)), at], np.float64(params.norm), size.model.norm_eps)
    exact = np.zeros((len(states), len(real)))
    exact[:, real] = normed @ np.float64(params.head.weight)

    def tap(site: str, layer: jax.Array, x: jax.Array) -> tuple[jax.Array, Any]:
        return x, x.reshape(-1, x.shape[-1])[packed.score_index] if site == "resid_post" else None

    run = jax.jit(lambda params: forward(params, packed, size.model, tap=tap, layer_scores=True))
    out = run(params)
    assert out.layer_scores is not None
    yield "forward, float32 against float64", relative(out.scores[real], exact[-1, real]), "relative", 1e-5, True
    coarse = gradient_fn(size, jnp.bfloat16)(*split(params, None), packed)[1].scores[real]
    off = relative(coarse, exact[-1, real])
    yield "forward in bfloat16, which must miss that bound", off, "relative", 1e-4, False
    by_layer, expected = (np.float64(s)[:, c.first] - np.float64(s)[:, c.second] for s in (out.layer_scores, exact))
    used = np.asarray(c.weight) > 0
    worst = max(relative(a[used], b[used]) for a, b in zip(by_layer, expected, strict=True))
    yield "layer margins, worst layer, float32 against float64", worst, "relative", 1e-5, True
    # The lens on the states that left the last layer, in float64: the margin without the code that made it.
    last = np.asarray(out.reads["resid_post"], np.float64)[-1]
    lens = rms_norm(last, np.float64(params.norm), size.model.norm_eps) @ np.float64(params.head.weight)
    ours, byhand = (np.asarray(s[c.first] - s[c.second])[used] for s in (out.scores, lens))
    yield "layer margins, end point against the margin", relative(by_layer[-1][used], ours), "relative", 1e-6, True
    yield "margin against the lens on the last layer's states", relative(ours, byhand), "relative", 1e-6, True


def packing(size: Size, params: Params, packed: Batch, plain: Batch) -> Check:
    """Packed trees score, lose and learn as single texts do."""
    real = np.asarray(packed.comparisons.prompt) >= 0
    for dtype in (jnp.float32, jnp.bfloat16):
        (slope, one), (expected, other) = (gradient_fn(size, dtype)(*split(params, None), b) for b in (packed, plain))
        differences = {
            "scores": relative(one.scores[real], other.scores[real]),
            "margins at every layer": relative(one.layer_margins, other.layer_margins),
            "loss": relative(one.loss_sum, other.loss_sum),
            "worst gradient leaf": max(map(relative, jax.tree.leaves(slope), jax.tree.leaves(expected))),
        }
        for name, value in differences.items():
            bound = (1e-5, True) if dtype == jnp.float32 else ()
            yield f"packed against single, {name}, {jnp.dtype(dtype).name}", value, "relative", *bound


def training(size: Size, params: Params, packed: Batch, plain: Batch) -> Check:
    """A few steps of AdamW from a head of zeros, in bfloat16 with float32 masters."""
    params = dataclasses.replace(params, head=Head.zeros(size.model.hidden_size))
    trained, frozen = split(params, None)
    # Adam moves every coordinate by the rate, so that scores move as much at any width.
    rate = 1 / size.model.hidden_size
    optimizer = make_optimizer(OptimizerConfig(learning_rate=rate, warmup=0.0, decay="constant"), size.steps)
    gradient = gradient_fn(size, jnp.bfloat16)
    move = jax.jit(lambda *state: update(optimizer, *state)[:2])
    state = jax.jit(optimizer.init)(trained)
    losses = []
    for _ in range(size.steps + 1):
        slope, readout = gradient(trained, frozen, packed)
        losses.append(float(readout.loss_sum) / float(readout.count))
        trained, state = move(trained, state, slope, readout.count)
    yield "loss before training, distance from log 2", abs(losses[0] - float(np.log(2))), "nats", 1e-6, True
    yield f"loss after {size.steps} steps, share of the first", losses[-1] / losses[0], "share", 0.9, True


@functools.cache
def gradient_fn(size: Size, dtype: Any) -> GradientFn:
    """The step's gradient and readout: compiled once, for packed and single texts and for training."""
    return make_gradient_fn(size.model, dtype=dtype)


def make_params(config: ModelConfig) -> Params:
    """Parameters drawn on the host, with a head that says something."""
    rng = np.random.default_rng(0)

    def draw(spec: ParamSpec) -> jax.Array:
        noise = rng.standard_normal(spec.shape, np.float32)
        return jnp.asarray(1 + noise / 10 if spec.init == "ones" else noise / np.float32(spec.fan_in**0.5))

    params = jax.tree.map(draw, abstract(config), is_leaf=lambda leaf: isinstance(leaf, ParamSpec))
    head = rng.standard_normal(config.hidden_size, np.float32) / np.float32(config.hidden_size**0.5)
    return dataclasses.replace(params, head=Head(jnp.asarray(head)))


def make_batch(size: Size) -> Batch:
    """Random texts, three answers a prompt, all compared, packed by the data layer into one micro-batch."""
    rng = np.random.default_rng(0)
    texts = [
        np.concatenate([prefix, rng.integers(0, 1024, rng.integers(1, size.answer + 1))]).astype(np.int32)
        for prefix in rng.integers(0, 1024, (size.prompts, size.prefix))
        for _ in range(3)
    ]
    prompt = np.repeat(np.arange(size.prompts), 3)
    first = np.add.outer(3 * np.arange(size.prompts), [0, 0, 1]).ravel()
    second = np.add.outer(3 * np.arange(size.prompts), [1, 2, 2]).ravel()
    pairs = Comparisons.from_pairs(first, second, prompt=prompt)
    names, responses = (tuple(map(str, range(n))) for n in (size.prompts, len(texts)))
    lines, none = np.arange(len(first)) + 1, np.zeros(len(first), np.float32)
    data = PreferenceData(names, names, responses, pairs, lines, none)
    last = np.array([len(text) - 1 for text in texts], np.int32)
    tokenised = TokenisedData(data, tuple(texts), last, TextContract(), None, "")
    layout = make_layout(tokenised, PackSpec(lengths=(size.length,), tokens_per_micro_batch=size.length * size.prompts))
    (micro_batch,) = epoch_plan(layout, seed=0).micro_batches
    batch = build(layout, micro_batch).batch
    # As many rows as responses, so that one compilation serves packed and single texts.
    more = ((0, len(batch.score_index) - len(batch.tokens)), (0, 0))
    padding = {"tokens": 0, "segment": -1, "parent": -1, "depth": 0}
    rows = {name: np.pad(getattr(batch, name), more, constant_values=value) for name, value in padding.items()}
    return dataclasses.replace(batch, **rows)


def relative(a: Any, b: Any) -> float:
    """Difference of two arrays by the norm of the second, on the host in float64."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    return float(np.linalg.norm(a - b) / np.linalg.norm(b))


def round_to(x: np.ndarray, bits: int) -> np.ndarray:
    """float32 rounded to so many bits of significand, the leading one included."""
    mantissa, exponent = np.frexp(x)
    return np.ldexp(np.round(mantissa * 2.0**bits) / 2.0**bits, exponent).astype(np.float32)


if __name__ == "__main__":
    sys.exit(1 if missed(main(tyro.cli(Config))) else 0)
