"""Laws of groups: they are the connected components of prompts that have a text or a source in common."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from rmjax.data.formats.assemble import Row, assemble
from rmjax.data.formats.fields import Judgement
from rmjax.data.groups import group_of_comparison, group_sizes, groups

NUMBERS = st.integers(0, 9)
ROWS = st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS, st.integers(0, 60), st.integers(1, 2)), min_size=1, max_size=9)


def laid_out(rows):
    judged = [
        Row(n, Judgement("f", f"p{' ' * spaces}{p}", f"a {one}", f"b{' ' * spaces}{other}", (1, 0, 0, 0)), f"s{s}", ())
        for n, (p, s, one, other, spaces) in enumerate(rows, start=1)
    ]
    return assemble(judged, (), "file", {})


def components(rows):
    """By another method: rows and keys are nodes of one graph."""
    keys = [{("p", p), ("s", s), ("a", one), ("b", other)} for p, s, one, other, spaces in rows]
    names = {key: i for i, key in enumerate(sorted(set().union(*keys), key=str))}
    touches = csr_array(np.array([[key in mine for key in names] for mine in keys], int))
    return connected_components(touches @ touches.T, directed=False)[1]


@given(ROWS)
def test_groups_are_connected_components_however_white_space_runs(rows):
    data = laid_out(rows)
    mine, other = group_of_comparison(data, groups(data)), components(rows)
    np.testing.assert_array_equal(mine[:, None] == mine, other[:, None] == other)


@given(ROWS)
def test_groups_are_numbered_by_their_first_prompt_and_hold_every_comparison(rows):
    data = laid_out(rows)
    group = groups(data)
    _, first = np.unique(group, return_index=True)
    assert group[first].tolist() == list(range(len(first)))
    assert (np.diff(first) > 0).all()
    assert group_sizes(data).sum() == len(rows)
    assert (group_sizes(data) > 0).all()


def test_a_chain_that_is_closed_late_keeps_the_number_of_its_first_prompt():
    # The first and the last prompt share a text, the last two a source; the second stands alone.
    rows = [(0, 0, 0, 0, 1), (1, 1, 1, 1, 1), (2, 2, 2, 2, 1), (0, 2, 3, 3, 2)]
    assert groups(laid_out(rows)).tolist() == [0, 1, 0, 0]
