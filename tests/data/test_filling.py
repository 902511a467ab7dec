"""Laws of filling: rows and micro-batches take what they can hold, and no more."""

import dataclasses

from token_worlds import from_ids, pairs_like_dialogues

from rmjax.data.buckets import PackSpec
from rmjax.data.filling import pack
from rmjax.data.packing import epoch_plan, make_layout


def test_a_row_is_completed_by_what_fills_it_exactly():
    """To 9 tokens of 16, the pool offers 6, 4 and 3: greed takes 6, and one position stays empty."""
    sizes = [9, 6, 4, 3, 10]
    groups = [[[3] * (size - 1), [3] * (size - 1) + [4]] for size in sizes]
    layout = make_layout(from_ids(groups, [(p, 0, 1) for p in range(5)]), PackSpec(lengths=(16,), pool=5))
    (batch,) = pack(layout, layout.trees)
    assert [{sizes[piece.prompt] for piece in row} for row in batch.rows] == [{9, 4, 3}, {6, 10}]


def test_a_micro_batch_closes_where_its_responses_or_comparisons_are_full():
    """Epochs may draw together more small prompts than the trial did: N and E hold all the same."""
    layout = make_layout(pairs_like_dialogues(), PackSpec(tokens_per_micro_batch=4096))
    for change in ({"responses": 6}, {"comparisons": 3}):
        tight = tuple(dataclasses.replace(bucket, **change) for bucket in layout.buckets)
        plan = epoch_plan(dataclasses.replace(layout, buckets=tight), seed=0)
        assert sum(len(batch.comparisons) for batch in plan.micro_batches) == len(layout.trees)
        for batch in plan.micro_batches:
            assert batch.num_responses <= batch.bucket.responses
            assert len(batch.comparisons) <= batch.bucket.comparisons
