"""Laws of unpacking: every row is the text that the trees stand for, and nothing packed passes for plain."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmjax import Comparisons
from rmjax.data.batches import build
from rmjax.data.buckets import PackSpec
from rmjax.data.contract import TextContract
from rmjax.data.dataset import PreferenceData
from rmjax.data.packing import epoch_plan, make_layout
from rmjax.data.tokenise import TokenisedData
from rmjax.errors import DataError
from rmjax.interop.unpack import check_plain, unpack
from tests.interop.others import trees


@given(seed=st.integers(0, 2**32 - 1), prompts=st.integers(1, 5), letters=st.integers(1, 4))
def test_every_row_is_the_text_up_to_its_scored_token(seed, prompts, letters):
    """Few letters make long shared prefixes, answers that are prefixes of others, and roots scored in the middle."""
    rng = np.random.default_rng(seed)
    answers = rng.integers(2, 5, prompts)
    prompt = np.repeat(np.arange(prompts), answers)
    ids = tuple(rng.integers(0, letters, rng.integers(1, 9)).astype(np.int32) for _ in prompt)
    position = np.array([rng.integers(0, len(text)) for text in ids], np.int32)
    second = np.arange(1, len(prompt))
    second = second[prompt[second] == prompt[second - 1]]
    pairs = Comparisons.from_pairs(second - 1, second, prompt=prompt)
    names = tuple(map(str, range(prompts)))
    rows, none = np.arange(len(second)) + 1, np.zeros(len(second), np.float32)
    data = PreferenceData(names, names, tuple(map(str, range(len(ids)))), pairs, rows, none)
    tokenised = TokenisedData(data, ids, position, TextContract(), None, "")
    layout = make_layout(tokenised, PackSpec(lengths=(16,), tokens_per_micro_batch=32))
    for micro_batch in epoch_plan(layout, seed=seed).micro_batches:
        host = build(layout, micro_batch)
        plain = unpack(host.batch, length=10)
        for n, response in enumerate(host.response):
            length = position[response] + 1 if response >= 0 else 0
            np.testing.assert_array_equal(plain.tokens[n, :length], ids[response][:length])
            np.testing.assert_array_equal(plain.depth[n, :length], np.arange(length))
            np.testing.assert_array_equal(plain.segment[n], np.where(np.arange(10) < length, 0, -1))
            assert plain.score_index[n] == (n * 10 + length - 1 if length else 0)
        assert (plain.parent == -1).all()
        assert plain.comparisons is host.batch.comparisons
        check_plain(plain)


def test_what_is_unpacked_stays_as_it_is():
    once = unpack(trees())
    again = unpack(once)
    for field in ("tokens", "segment", "parent", "depth", "score_index"):
        np.testing.assert_array_equal(getattr(again, field), getattr(once, field))


def test_where_a_segment_stands_in_its_row_does_not_matter():
    batch, order = trees(), np.random.default_rng(0).permutation(16)
    moved = {name: getattr(batch, name)[:, order] for name in ("tokens", "segment", "parent", "depth")}
    row, at = np.divmod(batch.score_index, 16)
    shuffled = dataclasses.replace(batch, score_index=row * 16 + np.argsort(order)[at], **moved)
    np.testing.assert_array_equal(unpack(shuffled).tokens, unpack(batch).tokens)


def test_rows_that_are_too_short_are_refused():
    with pytest.raises(DataError, match="response=0, tokens=9, length=8"):
        unpack(trees(), length=8)


def test_packed_rows_do_not_pass_for_plain_ones():
    with pytest.raises(DataError, match="row=0, segments=3"):
        check_plain(trees())
    two_texts = dataclasses.replace(trees(), parent=np.full((2, 16), -1, np.int32))
    with pytest.raises(DataError, match="several texts"):
        check_plain(two_texts)
