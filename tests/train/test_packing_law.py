"""The law that makes packing trustworthy: packed trees score, lose and learn as the isolated sequences do."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmjax import Comparisons
from rmjax.batch import Batch
from rmjax.data.batches import build, isolated
from rmjax.data.buckets import PackSpec
from rmjax.data.contract import TextContract
from rmjax.data.dataset import PreferenceData
from rmjax.data.packing import epoch_plan, make_layout
from rmjax.data.tokenise import TokenisedData
from rmjax.models import Llama3Scaling, ModelConfig, forward
from rmjax.train.step import loss_and_readout
from rmjax.train.trainable import split
from tests.train.trees import make_params, relative

BASE = ModelConfig(
    vocab_size=50, hidden_size=32, intermediate_size=48, num_layers=2, num_heads=4, num_kv_heads=2, head_dim=8
)
FAMILIES = {
    "llama": dataclasses.replace(BASE, rope_scaling=Llama3Scaling(8.0, 1.0, 4.0, 16), rope_theta=100.0),
    "mistral": dataclasses.replace(BASE, family="mistral", sliding_window=5),
    "qwen2": dataclasses.replace(BASE, family="qwen2", qkv_bias=True),
    "qwen3": dataclasses.replace(BASE, family="qwen3", qk_norm=True, head_dim=16),
}

WIDTH = 16  # of the rows of the reference
ROWS = 8
PAIR = Comparisons.from_pairs([0], [1], np.zeros(ROWS, np.int32))
PARAMS = make_params(BASE, jnp.float32)

# Lists of token ids per prompt. Every response of a prompt is compared with every other one.
GROUPS = {
    "pairs": [[[1, 2, 3, 4], [1, 2, 5, 6, 7]], [[8, 9, 9], [8, 9, 1]], [[3, 4, 4, 5, 6, 6], [3, 4, 7]]],
    "candidates": [[[1, 2, 3, k, k + 1, *range(10, 10 + k)] for k in range(1, 7)]],
    "empty prefix": [[[1, 2, 3], [4, 5, 6, 7]]],
    "prefix of the other": [[[1, 2, 3], [1, 2, 3, 4, 5]], [[6, 7, 8, 9], [6, 7]]],
    "several rows": [[[1, 2, *range(3 + k, 12 + k)] for k in range(7)]],
}

# Prefix length and number of responses of every row's share of a tree.
SHAPES = {
    "pairs": [(2, 2), (2, 2), (2, 2)],
    "candidates": [(3, 5), (7, 1)],
    "empty prefix": [(0, 2)],
    "prefix of the other": [(3, 2), (2, 2)],
    "several rows": [(2, 3), (2, 3), (11, 1)],
}


def make_data(groups):
    ids = [np.array(text, np.int32) for group in groups for text in group]
    prompt = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    pairs = [(i, j) for i in range(len(ids)) for j in range(i + 1, len(ids)) if prompt[i] == prompt[j]]
    first, second = np.array(pairs).T
    rng = np.random.default_rng(0)
    votes = rng.integers(0, 4, (2, len(pairs))) + np.array([[1], [0]])
    comparisons = Comparisons.from_votes(first, second, *votes, prompt=prompt)
    names = tuple(map(str, range(len(ids))))
    prompts = tuple(map(str, range(len(groups))))
    rows, none = np.arange(len(pairs)) + 1, np.zeros(len(pairs), np.float32)
    data = PreferenceData(prompts, prompts, names, comparisons, rows, none)
    last = np.array([len(text) - 1 for text in ids], np.int32)
    return TokenisedData(data, tuple(ids), last, TextContract(), None, "")


@functools.partial(jax.jit, static_argnames=("config", "dtype", "remat"))
def gradient(params, batch, config, dtype, remat="none"):
    trained, frozen = split(params, None)
    (loss, readout), grad = jax.value_and_grad(loss_and_readout, has_aux=True)(
        trained, frozen, batch, config, dtype=dtype, remat=remat
    )
    return loss, readout, grad


def packed_results(params, tokenised, config, dtype, lengths=(32,), remat="none"):
    layout = make_layout(tokenised, PackSpec(lengths=lengths, tokens_per_micro_batch=64))
    scores = np.full(len(tokenised.ids), np.nan)
    layers = np.full((config.num_layers + 1, tokenised.data.num_comparisons), np.nan)
    total, grads = 0.0, None
    for micro_batch in epoch_plan(layout, seed=0).micro_batches:
        host = build(layout, micro_batch)
        loss, readout, grad = gradient(params, host.batch, config, dtype, remat)
        scores[host.response[host.response >= 0]] = np.asarray(readout.scores)[host.response >= 0]
        real = host.comparison >= 0
        layers[:, host.comparison[real]] = np.asarray(readout.layer_margins)[:, real]
        total, grads = total + float(loss), grad if grads is None else jax.tree.map(jnp.add, grads, grad)
    return scores, layers, total, grads


def isolated_results(params, tokenised, config, dtype):
    """The reference: every side of every comparison in a row of its own, nothing shared."""
    c = tokenised.data.comparisons
    sides = np.stack([c.first, c.second], axis=1).ravel()
    rows = [isolated(tokenised, int(response)) for response in sides]

    def stack(name, value):
        arrays = [getattr(row, name) for row in rows]
        return np.concatenate([np.pad(x, ((0, 0), (0, WIDTH - x.shape[1])), constant_values=value) for x in arrays])

    index = np.array([r * WIDTH + int(row.score_index[0]) for r, row in enumerate(rows)], np.int32)
    even = np.arange(0, len(sides), 2)
    pairs = Comparisons.from_votes(even, even + 1, c.wins_first, c.wins_second, prompt=np.repeat(even, 2))
    fields = {"tokens": 0, "segment": -1, "parent": -1, "depth": 0}
    batch = Batch(score_index=index, comparisons=pairs, **{name: stack(name, value) for name, value in fields.items()})
    loss, readout, grads = gradient(params, batch, config, dtype)
    scores = np.full(len(tokenised.ids), np.nan)
    scores[sides] = readout.scores
    return scores, float(loss), grads


def assert_same(packed, reference, bound):
    scores, layers, total, grads = packed
    expected_scores, expected_total, expected_grads = reference
    assert relative(scores, expected_scores) < bound
    assert abs(total - expected_total) < bound * abs(expected_total)
    assert np.isfinite(layers).all()
    for (path, grad), expected in zip(
        jax.tree_util.tree_flatten_with_path(grads)[0], jax.tree.leaves(expected_grads), strict=True
    ):
        assert np.linalg.norm(expected) > 0, path
        assert relative(grad, expected) < bound, path


ALL = [group for groups in GROUPS.values() for group in groups]


def test_packed_trees_equal_isolated_sequences_in_float32():
    tokenised, params = make_data(ALL), make_params(BASE, jnp.float32)
    packed = packed_results(params, tokenised, BASE, jnp.float32)
    assert_same(packed, isolated_results(params, tokenised, BASE, jnp.float32), 1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_equals_isolated_sequences_in_float64(family, x64):
    config = FAMILIES[family]
    tokenised, params = make_data(ALL), make_params(config, jnp.float64)
    packed = packed_results(params, tokenised, config, jnp.float64)
    assert_same(packed, isolated_results(params, tokenised, config, jnp.float64), 1e-10)


@pytest.mark.parametrize("groups", GROUPS.values(), ids=GROUPS)
def test_the_cases_are_what_their_names_say(groups):
    layout = make_layout(make_data(groups), PackSpec(lengths=(32,), tokens_per_micro_batch=64))
    shapes = [(piece.prefix, len(piece.responses)) for tree in layout.trees for piece in tree.pieces]
    assert shapes == SHAPES[next(name for name in GROUPS if GROUPS[name] is groups)]


@pytest.mark.parametrize("remat", ["all", "attn_out,mlp_hidden"])
def test_what_is_recomputed_changes_nothing(remat):
    tokenised, params = make_data(GROUPS["pairs"]), make_params(BASE, jnp.float32)
    plain, again = (packed_results(params, tokenised, BASE, jnp.float32, remat=r) for r in ("none", remat))
    assert_same(again, (plain[0], plain[2], plain[3]), 1e-6)


def test_the_last_layer_margin_is_the_margin_of_the_scores():
    tokenised, params = make_data(GROUPS["candidates"]), make_params(BASE, jnp.float32)
    scores, layers, _, _ = packed_results(params, tokenised, BASE, jnp.float32)
    c = tokenised.data.comparisons
    np.testing.assert_allclose(layers[-1], (scores[c.first] - scores[c.second]).astype(np.float32), rtol=0, atol=2e-6)


def test_texts_that_end_in_one_token_start_with_a_margin_of_zero():
    # The state at depth 0 is the embedding of the scored token alone.
    tokenised, params = make_data([[[1, 2, 3, 9], [1, 5, 9], [1, 9]]]), make_params(BASE, jnp.float32)
    _, layers, _, _ = packed_results(params, tokenised, BASE, jnp.float32)
    assert (layers[0] == 0).all()
    assert (layers[-1] != 0).all()


def test_one_real_token_more_changes_the_score_and_padding_does_not():
    params = make_params(BASE, jnp.float32)
    text = [1, 2, 3, 4]
    worlds = ([[text, [5]]], [[text, [5]], [[6, 7], [8]]], [[[*text, 4], [5]]])
    scores = [packed_results(params, make_data(groups), BASE, jnp.float32)[0][0] for groups in worlds]
    assert scores[0] == pytest.approx(scores[1], rel=1e-6)
    assert abs(scores[0] - scores[2]) > 1e-3


@jax.jit
def scores_of_rows(params, tokens, length):
    """One text a row, of a length of its own, and padding behind it."""
    rows, width = tokens.shape
    place = jnp.broadcast_to(jnp.arange(width), tokens.shape)
    inside = place < length[:, None]
    batch = Batch(
        tokens=tokens,
        segment=jnp.where(inside, 0, -1),
        parent=jnp.full_like(place, -1),
        depth=jnp.where(inside, place, 0),
        score_index=jnp.arange(rows) * width + length - 1,
        comparisons=PAIR,
    )
    return forward(params, batch, BASE).scores


@given(st.integers(0, 2**32 - 1))
def test_tokens_of_padding_change_no_score_and_one_real_token_more_changes_each(seed):
    rng = np.random.default_rng(seed)
    tokens, others = rng.integers(1, BASE.vocab_size, (2, ROWS, WIDTH), np.int32)
    tokens[:, 0] = 0  # of one token repeated every state is the same, and so is the score at any length
    length = rng.integers(1, WIDTH, ROWS).astype(np.int32)
    padded = np.where(np.arange(WIDTH) < length[:, None], tokens, others)
    plain, same, longer = (np.asarray(scores_of_rows(PARAMS, *case)) for case in (
        (tokens, length), (padded, length), (tokens, length + 1)))  # fmt: skip
    np.testing.assert_allclose(same, plain, rtol=1e-6, atol=1e-6)
    assert (longer != plain).all()
    assert np.median(np.abs(longer - plain)) > 1e-3


def test_without_a_tap_and_with_one_that_does_nothing_the_scores_are_bitwise_the_same():
    tokenised, params = make_data(GROUPS["pairs"]), make_params(BASE, jnp.float32)
    layout = make_layout(tokenised, PackSpec(lengths=(32,), tokens_per_micro_batch=64))
    batch = build(layout, epoch_plan(layout, seed=0).micro_batches[0]).batch
    plain = jax.jit(lambda p: forward(p, batch, BASE).scores)(params)
    tapped = jax.jit(lambda p: forward(p, batch, BASE, tap=lambda site, layer, x: (x, None)).scores)(params)
    np.testing.assert_array_equal(plain, tapped)


def test_a_bias_raises_every_score_and_no_margin_and_who_else_is_scored_changes_nothing():
    """No centring hides in the forward function: a score is a level, of its own text alone."""
    params, groups = make_params(BASE, jnp.float32), [[[1, 2, 3, 4], [5]], [[6, 7], [8]]]
    head = dataclasses.replace(params.head, bias=jnp.float32(0.25))
    raised = dataclasses.replace(params, head=dataclasses.replace(head, bias=head.bias + 1))
    of = [packed_results(dataclasses.replace(p, head=h), make_data(groups), BASE, jnp.float32)
          for p, h in ((params, head), (raised, raised.head))]  # fmt: skip
    np.testing.assert_allclose(of[1][0] - of[0][0], 1, rtol=0, atol=4e-7)
    np.testing.assert_allclose(of[1][1], of[0][1], rtol=0, atol=1e-6)
    alone = packed_results(dataclasses.replace(params, head=head), make_data(groups[:1]), BASE, jnp.float32)[0]
    np.testing.assert_allclose(of[0][0][:2], alone, rtol=1e-6, atol=1e-7)
