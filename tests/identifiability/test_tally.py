"""Laws of the tally: votes of a pair are added up, however they came."""

import dataclasses
import sys

import numpy as np
import pytest
from graphs import PER_PROMPT, PROMPTS, E, N, graphs
from hypothesis import given
from hypothesis import strategies as st

from rmjax import Comparisons
from rmjax.errors import DataError
from rmjax.identifiability.tally import Tally, tally
from rmjax.preferences.published import BASEBALL

# The facade has a function of the module's name.
module = sys.modules[Tally.__module__]
POLICIES = st.sampled_from(["drop", "half"])
seeds = st.integers(0, 2**32 - 1)


def by_loop(c, ties):
    """{(low, high): [votes for low, votes for high]}, one comparison after the other."""
    wins = {}
    for e, (i, j) in enumerate(zip(c.first.tolist(), c.second.tolist())):
        half = float(c.ties[e]) / 2 if ties == "half" else 0.0
        won, lost = (float(c.weight[e]) * (float(v[e]) + half) for v in (c.wins_first, c.wins_second))
        at = wins.setdefault((min(i, j), max(i, j)), [0.0, 0.0])
        at[i > j] += won
        at[i < j] += lost
    return {pair: votes for pair, votes in sorted(wins.items()) if sum(votes) > 0 and c.prompt[pair[0]] >= 0}


def as_dict(t):
    pairs = zip(t.first.tolist(), t.second.tolist())
    return dict(zip(pairs, map(list, zip(t.wins_first.tolist(), t.wins_second.tolist()))))


def same(one, two):
    for field in dataclasses.fields(one):
        np.testing.assert_array_equal(getattr(one, field.name), getattr(two, field.name))


@pytest.mark.parametrize("way", ["table", "sorted", "blocks"])
@given(graph=graphs(ties=True), ties=POLICIES)
def test_the_votes_of_a_pair_are_added_up(way, graph, ties):
    """Against a loop; quarters of quarters add exactly. The rows are sorted, and a pair without votes is none."""
    _, c = graph
    with pytest.MonkeyPatch.context() as patch:
        if way == "sorted":
            patch.setattr(module, "_TABLE", 0)
        if way == "blocks":
            patch.setattr(module, "_BLOCK", 5)
        t = tally(dataclasses.replace(c, prompt=np.where(c.prompt == 1, -1, c.prompt)), ties)
    want = by_loop(dataclasses.replace(c, prompt=np.where(c.prompt == 1, -1, c.prompt)), ties)
    assert list(as_dict(t).items()) == list(want.items())
    assert t.num_items == N
    np.testing.assert_array_equal(t.votes, [a + b for a, b in want.values()])
    np.testing.assert_array_equal(t.share, [a / (a + b) for a, b in want.values()])


def test_the_sizes_of_these_graphs_reach_every_way():
    assert N * N > E  # so that _TABLE = 0 sorts
    assert N * N <= module._TABLE


@given(seeds)
def test_one_vote_a_comparison_is_counted(seed):
    """The way without weights, in several blocks, some of which hold a comparison that is no unit vote."""
    rng = np.random.default_rng(seed)
    rows = 400
    low = rng.integers(0, PER_PROMPT, rows)
    offset = rng.integers(0, PROMPTS, rows) * PER_PROMPT
    other = (low + rng.integers(1, PER_PROMPT, rows)) % PER_PROMPT
    prompt = np.repeat(np.arange(PROMPTS), PER_PROMPT)
    c = Comparisons.from_pairs(offset + low, offset + other, prompt)
    odd = {name: getattr(c, name).copy() for name in ("wins_first", "wins_second", "ties", "weight")}
    odd[rng.choice(list(odd))][rng.integers(rows)] = 2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_BLOCK", 150)
        for data in (c, dataclasses.replace(c, **odd)):
            assert as_dict(tally(data, "half")) == by_loop(data, "half")


@given(graphs(ties=True), POLICIES, seeds)
def test_sides_and_order_of_the_comparisons_do_not_matter(graph, ties, seed):
    _, c = graph
    turned = dataclasses.replace(c, first=c.second, second=c.first, wins_first=c.wins_second, wins_second=c.wins_first)
    at = np.random.default_rng(seed).permutation(E)
    names = ("first", "second", "wins_first", "wins_second", "ties", "weight")
    mixed = dataclasses.replace(c, **{name: getattr(turned, name)[at] for name in names})
    same(tally(mixed, ties), tally(c, ties))


@given(graphs(ties=True), POLICIES)
def test_padding_changes_nothing(graph, ties):
    _, c = graph
    padded = tally(c.pad(E + 7, N + 3), ties)
    assert padded.num_items == N + 3
    same(dataclasses.replace(padded, num_items=N), tally(c, ties))


@pytest.mark.parametrize("bad", [np.inf, np.nan, -1.0])
@pytest.mark.parametrize("name", ["wins_first", "wins_second", "ties"])
def test_a_deleted_vote_may_be_anything_and_a_counted_one_is_refused(bad, name):
    c = Comparisons.from_votes([0, 0, 0], [1, 1, 1], [1, 2, 1], [1, 1, 1], prompt=[0, 0], ties=[1, 1, 0])
    spoilt = getattr(c, name).copy()
    spoilt[1] = bad
    c = dataclasses.replace(c, **{name: spoilt})
    deleted = tally(dataclasses.replace(c, weight=np.float32([1, 0, 1])), "half")
    np.testing.assert_array_equal([deleted.wins_first, deleted.wins_second], [[2.5], [2.5]])
    with pytest.raises(DataError, match="comparison=1"):
        tally(c, "half")


@pytest.mark.parametrize("way", ["table", "sorted"])
@pytest.mark.parametrize("bad", [np.inf, np.nan, -1.0])
def test_a_weight_that_is_none_is_refused_in_its_own_row(way, bad, monkeypatch):
    monkeypatch.setattr(module, "_TABLE", {"table": 1 << 22, "sorted": 0}[way])
    monkeypatch.setattr(module, "_BLOCK", 4)
    c = Comparisons.from_pairs([0] * 7, [1] * 7, prompt=[0, 0] * 3 + [1])
    with pytest.raises(DataError, match="comparison=5"):
        tally(Comparisons(**{**vars(c), "prompt": np.zeros(3, int), "weight": np.float32([1] * 5 + [bad, 1])}))


def test_ties_are_a_stated_choice():
    c = Comparisons.from_votes([1], [0], [6], [2], prompt=[0, 0], ties=[4])
    assert as_dict(tally(c, "drop")) == {(0, 1): [2, 6]}
    assert as_dict(tally(c, "half")) == {(0, 1): [4, 8]}
    with pytest.raises(DataError, match="ties=4"):
        tally(c)
    with pytest.raises(DataError, match="ties is a choice"):
        tally(c, "halves")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"first": [0, 0, 4]}, r"out of range \[comparison=2, first=4, second=1\]"),
        ({"second": [1, -1, 1]}, r"out of range \[comparison=1, first=0, second=-1\]"),
        ({"second": [1, 0, 1]}, r"with itself \[comparison=1, first=0, second=0\]"),
        ({"second": [1, 1, 2]}, r"joins two prompts \[comparison=2, first=0, second=2\]"),
        ({"second": [1, 1, 3]}, r"joins two prompts \[comparison=2, first=0, second=3\]"),
    ],
)
def test_a_comparison_that_cannot_be_is_named(change, message):
    """The constructor checks nothing; the builders refuse these earlier."""
    c = Comparisons.from_pairs([0, 0, 0], [1, 1, 1], prompt=[0, 0, 1, -1])
    c = dataclasses.replace(c, **{name: np.array(value, np.int32) for name, value in change.items()})
    with pytest.raises(DataError, match=message):
        tally(c)
    last_only = tally(dataclasses.replace(c, first=np.zeros(3, int), second=np.ones(3, int)))
    assert as_dict(last_only) == {(0, 1): [3, 0]}


def test_without_comparisons_there_is_no_pair():
    t = tally(Comparisons.from_pairs([], [], prompt=[0, 0]))
    assert (len(t.first), t.num_items) == (0, 2)


def test_a_win_matrix_comes_back():
    t = tally(Comparisons.from_wins(BASEBALL))
    np.testing.assert_array_equal(t.wins_first, BASEBALL[t.first, t.second])
    np.testing.assert_array_equal(t.wins_second, BASEBALL[t.second, t.first])
    assert (t.votes == 13).all()
    assert len(t.first) == 21
