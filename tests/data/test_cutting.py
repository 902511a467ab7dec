"""Laws of shapes: few, and every prompt has one that holds it."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from token_worlds import from_ids, token_worlds

from rmjax.data.buckets import MAX_BUCKETS, PackSpec
from rmjax.data.cutting import cut_trees, judged_prompts, made_to_measure

LENGTHS = (24, 48)


def cut(world, spec, **choices):
    return cut_trees(world, judged_prompts(world, spec.lengths), spec, **choices)


@given(token_worlds(), st.sampled_from([24, 96, 960]), st.booleans(), st.booleans(), st.sampled_from([1, 4]))
def test_every_prompt_has_a_shape_that_holds_it(world, tokens, to_measure, alike, multiple):
    spec = PackSpec(lengths=LENGTHS, tokens_per_micro_batch=tokens, row_multiple=multiple)
    layout = cut(world, spec, shapes_for_prompts=to_measure, alike=alike)
    assert len(layout.buckets) <= MAX_BUCKETS
    assert all(bucket.rows % multiple == 0 for bucket in layout.buckets)
    for tree in layout.trees:
        lengths = [b.length for b in layout.buckets] if tree.bucket is None else [layout.buckets[tree.bucket].length]
        assert max(lengths) >= max(piece.size for piece in tree.pieces)
        assert tree.bucket is None or len(tree.pieces) <= layout.buckets[tree.bucket].rows
        assert tree.bucket is not None or len(tree.pieces) == 1


@given(st.lists(st.tuples(*[st.integers(0, 6)] * 2, st.integers(1, 6)), min_size=1, max_size=12), st.integers(1, 3))
def test_a_choice_of_shapes_within_a_budget_holds_every_prompt(kinds, budget):
    """Rows that each prompt needs at each of three lengths, 0 where a text is longer than the row."""
    spec = PackSpec(lengths=(24, 32, 64), tokens_per_micro_batch=64)
    shapes = made_to_measure(np.array(kinds), spec, budget)
    assert len(set(shapes)) <= budget
    for needed, (count, length) in zip(kinds, shapes, strict=True):
        assert 0 < needed[spec.lengths.index(length)] <= count


def test_four_shapes_are_chosen_where_they_save_most():
    """Prompts that need 2, 3, 9, 10 and 30 rows: with one shape too few, two neighbours share."""
    groups, pairs = [], []
    for p, count in enumerate([2, 3, 9, 10, 30]):
        groups.append([np.full(24, 3 + i) for i in range(count)])
        pairs += [(p, i, i + 1) for i in range(count - 1)]
    layout = cut(from_ids(groups, pairs), PackSpec((24,), tokens_per_micro_batch=24), shapes_for_prompts=True)
    assert sorted(bucket.rows for bucket in layout.buckets) in ([2, 3, 10, 30], [3, 9, 10, 30])


def test_responses_that_nothing_judges_are_not_packed():
    layout = cut(from_ids([[[3, 4], [3, 5], [3, 6]]], [(0, 0, 2)]), PackSpec(lengths=LENGTHS))
    assert [piece.responses for tree in layout.trees for piece in tree.pieces] == [(0, 2)]


def test_four_lengths_leave_room_for_a_prompt_that_needs_its_own():
    group = [np.full(20, 3 + i) for i in range(30)]
    world = from_ids([group, [[3], [4]]], [(0, i, i + 1) for i in range(29)] + [(1, 0, 1)])
    layout = cut(world, PackSpec(lengths=(8, 16, 24, 32), tokens_per_micro_batch=64))
    assert len(layout.buckets) <= MAX_BUCKETS
