"""Laws of SubsetSums: exact, and a subset is what it says."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from rmjax.data.subset_sums import SubsetSums


@given(st.lists(st.integers(1, 30), max_size=9), st.integers(0, 60), st.data())
def test_best_is_the_best_of_all_subsets(sizes, capacity, data):
    sums = SubsetSums(sizes, capacity)
    limit = data.draw(st.integers(0, capacity))
    every = [sum(subset) for k in range(len(sizes) + 1) for subset in itertools.combinations(sizes, k)]
    assert sums.best(limit) == max(total for total in every if total <= limit)
    members = sums.members(sums.best(limit))
    assert members == sorted(set(members))
    assert sum(sizes[i] for i in members) == sums.best(limit)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=9))
def test_earlier_items_go_first(sizes):
    """Appending items changes no choice that was possible without them."""
    alone, more = SubsetSums(sizes, 40), SubsetSums([*sizes, *sizes], 40)
    for total in {alone.best(limit) for limit in range(41)}:
        assert more.members(total) == alone.members(total)
