"""Laws of batches: a scored token sees its own text and nothing else, and every number finds its way back."""

import dataclasses

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from token_worlds import from_ids, token_worlds

from rmjax import Comparisons
from rmjax.data.batches import build, empty, isolated
from rmjax.data.buckets import PackSpec
from rmjax.data.packing import epoch_plan, make_layout
from rmjax.models.layers import attention_mask

SPEC = PackSpec(lengths=(24, 40), tokens_per_micro_batch=160, pool=6)


def micro_batches(world, seed=3):
    layout = make_layout(world, SPEC)
    return [build(layout, micro_batch) for micro_batch in epoch_plan(layout, seed).micro_batches]


def attends(batch):
    """The mask of the definition, [R, query, key]."""
    segment, parent, depth = batch.segment, batch.parent, batch.depth
    own = (segment[:, :, None] == segment[:, None]) & (depth[:, None] <= depth[:, :, None])
    both_real = (segment[:, :, None] >= 0) & (segment[:, None] >= 0)
    return both_real & (own | (parent[:, :, None] == segment[:, None]))


@given(token_worlds(max_prompts=4, inside=True))
def test_a_scored_token_sees_exactly_its_text_in_order(world):
    for host in micro_batches(world):
        batch = host.batch
        for index, n in zip(batch.score_index, host.response):
            if n < 0:
                assert index == 0
                continue
            r, q = divmod(int(index), batch.tokens.shape[1])
            own = (batch.segment[r] == batch.segment[r, q]) & (batch.depth[r] <= batch.depth[r, q])
            seen = np.flatnonzero(own | ((batch.segment[r] == batch.parent[r, q]) & (batch.parent[r, q] >= 0)))
            seen = seen[np.argsort(batch.depth[r, seen])]
            text = world.ids[n][: world.score_position[n] + 1]
            np.testing.assert_array_equal(batch.depth[r, seen], np.arange(len(text)))
            np.testing.assert_array_equal(batch.tokens[r, seen], text)


@given(token_worlds(max_prompts=3))
def test_gathered_masks_are_causal(world):
    """Along the path of a response the mask is that of the isolated text; no token of the path sees another."""
    for host in micro_batches(world):
        batch = host.batch
        mask = attends(batch)
        for index, n in zip(batch.score_index, host.response):
            if n < 0:
                continue
            r, q = divmod(int(index), batch.tokens.shape[1])
            on_path = (batch.segment[r] == batch.segment[r, q]) | (batch.segment[r] == batch.parent[r, q])
            path = np.flatnonzero(on_path & (batch.segment[r] >= 0))
            path = path[np.argsort(batch.depth[r, path])]
            alone = attends(isolated(world, int(n)))[0]
            np.testing.assert_array_equal(mask[r][np.ix_(path, path)], alone)
            np.testing.assert_array_equal(mask[r, path].sum(-1), alone.sum(-1))


@given(token_worlds(max_prompts=3))
def test_the_model_reads_the_mask_as_defined(world):
    for host in micro_batches(world)[:2]:
        batch = host.batch
        model = np.asarray(attention_mask(batch.segment, batch.parent, batch.depth, None))
        real = batch.segment >= 0
        np.testing.assert_array_equal(model[real], attends(batch)[real])


@given(token_worlds())
def test_every_entry_finds_its_way_back(world):
    c = world.data.comparisons
    seen = []
    for host in micro_batches(world):
        local, e, n = host.batch.comparisons, host.comparison, host.response
        real = e >= 0
        seen += e[real].tolist()
        assert len(set(n[n >= 0])) == (n >= 0).sum()  # scored once
        np.testing.assert_array_equal(n[local.first[real]], c.first[e[real]])
        np.testing.assert_array_equal(n[local.second[real]], c.second[e[real]])
        np.testing.assert_array_equal(local.cluster[real], c.cluster[e[real]])
        np.testing.assert_array_equal(local.wins_first[real], c.wins_first[e[real]])
        np.testing.assert_array_equal(local.prompt, np.where(n >= 0, c.prompt[n], -1))
        assert not local.weight[~real].any()
        assert host.num_tokens == (host.batch.segment >= 0).sum()
    assert sorted(seen) == list(range(c.num_comparisons))


@given(token_worlds(), st.integers(0, 3))
def test_shapes_are_those_of_the_buckets_in_every_epoch(world, epoch):
    layout = make_layout(world, SPEC)
    for micro_batch in epoch_plan(layout, 0, epoch).micro_batches:
        host, bucket = build(layout, micro_batch), micro_batch.bucket
        assert bucket in layout.buckets
        assert shapes(host) == shapes(empty(bucket), cluster=True)
        assert host.batch.tokens.shape == (bucket.rows, bucket.length)


def shapes(host, cluster=False):
    comparisons = host.batch.comparisons
    if cluster:
        comparisons = dataclasses.replace(comparisons, cluster=comparisons.first)
    values = {**vars(host.batch), **vars(comparisons), "n": host.response, "e": host.comparison}
    return {k: (v.shape, v.dtype) for k, v in values.items() if v is not None and not isinstance(v, Comparisons)}


def test_two_answers_with_the_same_prefix_and_one_that_is_it():
    world = from_ids([[[5, 6, 7], [5, 6], [5, 6, 8, 9]]], [(0, 0, 1), (0, 1, 2)])
    (host,) = micro_batches(world, seed=None)
    batch = host.batch
    assert batch.tokens[0, :5].tolist() == [5, 6, 7, 8, 9]
    assert batch.segment[0, :6].tolist() == [0, 0, 1, 2, 2, -1]
    assert batch.parent[0, :5].tolist() == [-1, -1, 0, 0, 0]
    assert batch.depth[0, :5].tolist() == [0, 1, 2, 2, 3]
    assert batch.score_index[:3].tolist() == [2, 1, 4]
