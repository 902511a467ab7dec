"""Laws of trees: what is shared is shared by all, and cutting loses nothing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from token_worlds import token_worlds

from rmjax.data.trees import make_piece, shared_prefix, split_tree


@given(st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=8), min_size=1, max_size=5))
def test_the_prefix_is_shared_by_all_and_the_next_token_is_not(texts):
    length = shared_prefix([np.array(text) for text in texts])
    assert len({tuple(text[:length]) for text in texts}) == 1
    ends = min(map(len, texts)) == length
    assert ends or len({text[length] for text in texts}) > 1


@given(token_worlds(), st.integers(1, 40))
def test_pieces_hold_every_response_once_and_fit(world, length):
    prompt = np.asarray(world.data.comparisons.prompt)
    for p in np.unique(prompt):
        responses = np.flatnonzero(prompt == p).tolist()
        whole = make_piece(world.ids, int(p), responses)
        pieces = split_tree(world.ids, whole, length)
        if max(len(world.ids[n]) for n in responses) > length:
            assert pieces is None
            continue
        assert sorted(n for piece in pieces for n in piece.responses) == responses
        for piece in pieces:
            texts = [world.ids[n] for n in piece.responses]
            assert piece.prefix == shared_prefix(texts) >= whole.prefix
            assert piece.size == sum(map(len, texts)) - (len(texts) - 1) * piece.prefix <= length


@pytest.mark.parametrize("count", [2, 5])
def test_a_tree_that_fits_stays_whole(count):
    ids = [np.array([7, 7, n]) for n in range(count)]
    whole = make_piece(ids, 0, range(count))
    assert split_tree(ids, whole, 2 + count) == (whole,)
    assert len(split_tree(ids, whole, 1 + count)) == 2
