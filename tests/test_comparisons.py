"""Laws of the central object: what the builders keep, what they refuse, and what padding and weights do."""

import dataclasses
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from graphs import E, N, edges, graphs
from hypothesis import given
from hypothesis import strategies as st

from rmjax import Comparisons, Rankings
from rmjax.comparisons import check_ties
from rmjax.errors import DataError

seeds = st.integers(0, 2**32 - 1)
sizes = st.integers(2, 7)


def matrix(c, ties=False):
    """Votes of row over column, or votes for a tie, added up from the comparisons."""
    table = np.zeros((c.num_responses, c.num_responses))
    for e, (i, j) in enumerate(zip(c.first, c.second)):
        table[i, j] += c.ties[e] if ties else c.wins_first[e]
        table[j, i] += c.ties[e] if ties else c.wins_second[e]
    return table


def arrays(c):
    """The fields that are there, by name."""
    fields = {field.name: getattr(c, field.name) for field in dataclasses.fields(c)}
    return {name: np.asarray(x) for name, x in fields.items() if x is not None}


def same(one, two):
    a, b = arrays(one), arrays(two)
    return a.keys() == b.keys() and all(np.array_equal(a[k], b[k]) and a[k].dtype == b[k].dtype for k in a)


# Builders


@given(seeds, sizes)
def test_a_win_matrix_is_kept_whole(seed, n):
    rng = np.random.default_rng(seed)
    wins, tied = rng.integers(0, 4, (n, n)), rng.integers(0, 3, (n, n))
    tied = np.triu(tied, 1) + np.triu(tied, 1).T
    c = Comparisons.from_wins(wins, tied)
    off_diagonal = ~np.eye(n, dtype=bool)
    np.testing.assert_array_equal(matrix(c), wins * off_diagonal)
    np.testing.assert_array_equal(matrix(c, ties=True), tied)
    pairs = list(zip(c.first.tolist(), c.second.tolist()))
    assert pairs == sorted(set(pairs))
    assert all(i < j for i, j in pairs)
    assert ((c.wins_first + c.wins_second + c.ties) > 0).all()


def test_a_win_matrix_within_prompts():
    wins = np.zeros((4, 4))
    wins[0, 1] = wins[3, 2] = 1
    assert Comparisons.from_wins(wins, prompt=[0, 0, 1, 1]).prompt.tolist() == [0, 0, 1, 1]
    with pytest.raises(DataError, match="joins two prompts"):
        Comparisons.from_wins(wins, prompt=[0, 1, 1, 1])


@given(seeds)
def test_pairs_are_single_votes_for_the_chosen(seed):
    first, second, prompt = edges(np.random.default_rng(seed))
    pairs = Comparisons.from_pairs(first, second, prompt, cluster=first)
    assert same(pairs, Comparisons.from_votes(first, second, np.ones(E), np.zeros(E), prompt, cluster=first))
    assert pairs.num_comparisons == E
    assert pairs.num_responses == N
    assert not pairs.ties.any()
    assert (pairs.weight == 1).all()


def test_optional_fields_have_their_types_and_may_be_none():
    c = Comparisons.from_pairs([0], [1], [0, 0], weight=[2], target_margin=[1], order=[-1], cluster=[5.0])
    assert {name: x.dtype.name for name, x in arrays(c).items()} == dict.fromkeys(
        ("first", "second", "prompt", "cluster"), "int32"
    ) | dict.fromkeys(("wins_first", "wins_second", "ties", "weight", "target_margin", "order"), "float32")
    assert Comparisons.from_pairs([0], [1], [0, 0], order=None).order is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("chosen", [0.5]),
        ("chosen", [2**32]),
        ("rejected", ["1"]),
        ("rejected", [None]),
        ("prompt", [0, np.nan]),
        ("prompt", [2**33, 2**34]),
        ("prompt", [0, np.inf]),
        ("cluster", [True]),
        ("cluster", np.array([True], object)),
        ("prompt", [1, True]),
        ("prompt", [np.longdouble(1) + np.finfo(np.longdouble).eps, 0]),
        ("prompt", np.array([1, np.longdouble(1) + np.finfo(np.longdouble).eps])),
        ("chosen", np.float32([2**31])),
        ("chosen", [np.float32(2**31)]),
        ("chosen", np.array([np.float32(2**31)], object)),
        ("chosen", [np.zeros((2, 3)), np.zeros((2, 4))]),
        ("chosen", np.float16([0.5])),
    ],
)
def test_an_index_that_is_no_whole_number_is_refused_and_not_rounded_or_wrapped(name, value):
    whole = {"chosen": [0.0], "rejected": np.array([1], object), "prompt": [0, 0]}
    Comparisons.from_pairs(**whole)
    for same in (np.float16([0]), np.array([0.0], object), [np.float16(0)], [np.array(0)], list(jnp.array([0]))):
        assert Comparisons.from_pairs(**whole | {"chosen": same}).first.dtype == np.int32
    with pytest.raises(DataError, match=f"{name} holds indices"):
        Comparisons.from_pairs(**whole | {name: value})


@pytest.mark.parametrize("given", [[7, 8, True], np.array([7, 8, None], object), [7, 8, 0.5], np.array([7, 8, 1e10])])
def test_the_index_that_is_no_whole_number_is_the_one_that_is_named(given):
    with pytest.raises(DataError, match="position=2"):
        Comparisons.from_pairs(given, [0, 0, 0], [0] * 9)


def test_a_ranking_of_what_are_no_indices_is_refused():
    with pytest.raises(DataError, match="ranking holds indices"):
        Rankings.from_lists([[0.6, 1.7]], prompt=[0, 0])
    with pytest.raises(DataError, match="prompt holds indices"):
        Rankings.from_lists([[0, 1]], prompt=[0.2, 0.9])


@pytest.mark.parametrize(("name", "value"), [("target_margin", np.nan), ("target_margin", np.inf), ("order", 0.5)])
def test_a_margin_or_an_order_that_is_none_is_refused_by_its_comparison(name, value):
    with pytest.raises(DataError, match="comparison=1"):
        Comparisons.from_pairs([0, 0], [1, 2], [0, 0, 0], **{name: [1, value]})


@pytest.mark.parametrize("name", ["wins_first", "wins_second", "ties", "weight", "target_margin", "order"])
@pytest.mark.parametrize("value", [["many"], [[1], [1, 2]], [1j]])
def test_words_and_ragged_rows_are_no_numbers(name, value):
    given = {"wins_first": [1], "wins_second": [0], name: value}
    with pytest.raises(DataError, match=f"{name} holds numbers"):
        Comparisons.from_votes([0], [1], prompt=[0, 0], **given)
    with pytest.raises(DataError, match="wins holds numbers"):
        Comparisons.from_wins(value)
    with pytest.raises(DataError, match="weight holds numbers"):
        Rankings.from_lists([[0, 1]], prompt=[0, 0], weight=value)


def test_ties_of_weight_0_are_none_whatever_they_are():
    c = Comparisons.from_pairs([0, 0], [1, 1], prompt=[0, 0], weight=[1, 0])
    for spoilt in (3.0, np.nan, np.inf):
        check_ties(dataclasses.replace(c, ties=np.float32([0, spoilt])), None)
    with pytest.raises(DataError, match="contain ties"):
        check_ties(dataclasses.replace(c, ties=np.float32([np.nan, 0])), None)


def test_a_policy_or_a_unit_that_is_none_is_refused():
    pairs = Comparisons.from_pairs([0], [1], [0, 0])
    with pytest.raises(DataError, match="ties is a choice"):
        check_ties(pairs, "halve")
    for use in (lambda: pairs.counted("halve"), lambda: pairs.weigh("prompt", "halve")):
        with pytest.raises(DataError, match="ties is a choice"):
            use()
    with pytest.raises(DataError, match="unit is a choice"):
        pairs.weigh("votes")


@given(st.lists(st.permutations(range(5)).flatmap(lambda p: st.integers(0, 5).map(lambda k: p[:k])), max_size=4))
def test_a_ranking_breaks_into_all_its_pairs(rankings):
    c = Comparisons.from_rankings(Rankings.from_lists(rankings, prompt=np.zeros(5)))
    want = [(r, a, b) for r, row in enumerate(rankings) for i, a in enumerate(row) for b in row[i + 1 :]]
    assert list(zip(c.cluster.tolist(), c.first.tolist(), c.second.tolist())) == want
    assert (c.wins_first == 1).all()


@given(st.lists(st.lists(st.integers(0, 9), unique=True, max_size=5), max_size=4))
def test_rankings_come_back_from_their_mask(rankings):
    built = Rankings.from_lists(rankings, prompt=np.zeros(10))
    assert [row[kept].tolist() for row, kept in zip(built.items, built.mask)] == rankings


# What is refused, and how it is said

ONE = {"first": [0, 2], "second": [1, 3], "wins_first": [1, 1], "wins_second": [0, 0], "prompt": [0, 0, 1, 1]}
REFUSED = [
    ({"first": [0, 4]}, r"out of range \[comparison=1, first=4, second=3\]. Indices run from 0 to 3"),
    ({"second": [-1, 3]}, "out of range .comparison=0, first=0, second=-1"),
    ({"first": [0, 3]}, "compared with itself .comparison=1"),
    ({"second": [2, 3]}, "joins two prompts .comparison=0, first=0, second=2, prompt_of_first=0, prompt_of_second=1"),
    ({"wins_first": [1, np.nan]}, "wins_first must be finite and not negative .comparison=1, wins_first=nan"),
    ({"wins_second": [-1, 0]}, "wins_second must be finite and not negative .comparison=0, wins_second=-1.0"),
    ({"ties": [0, np.inf]}, "ties must be finite"),
    ({"weight": [0, -2]}, "weight must be finite"),
    ({"wins_first": [1]}, "one length"),
    ({"first": [[0, 2]]}, "one length"),
    ({"prompt": [[0, 0, 1, 1]]}, "one length"),
    ({"cluster": [1]}, "one length"),
]


@pytest.mark.parametrize(("change", "message"), REFUSED, ids=lambda value: next(iter(value), "")[:12])
def test_what_is_wrong_is_named_where_it_enters(change, message):
    Comparisons.from_votes(**ONE)
    with pytest.raises(DataError, match=message):
        Comparisons.from_votes(**ONE | change)


def test_no_comparisons_are_comparisons():
    c = Comparisons.from_pairs(np.zeros(0), np.zeros(0), prompt=[0, 0])
    assert (c.num_comparisons, c.num_responses) == (0, 2)


@pytest.mark.parametrize(
    ("wins", "ties", "message"),
    [
        (np.zeros((2, 3)), None, "square"),
        (np.zeros(4), None, "square"),
        (np.zeros((2, 2)), np.zeros((3, 3)), "square"),
        (np.zeros((2, 2)), [[0, 1], [2, 0]], "not symmetric .row=0, column=1, here=1.0, mirrored=2.0"),
        ([[0, np.nan], [0, 0]], None, "wins_first must be finite"),
        ([[0, 0], [-1, 0]], None, "wins_second must be finite"),
        (np.zeros((2, 2)), [[0, np.nan], [np.nan, 0]], "ties must be finite"),
    ],
)
def test_a_matrix_that_is_no_count_is_refused(wins, ties, message):
    with pytest.raises(DataError, match=message):
        Comparisons.from_wins(wins, ties)


def test_a_ranking_with_a_response_twice_is_refused():
    with pytest.raises(DataError, match=re.escape("ranking=1, items=[2, 0, 2]")):
        Rankings.from_lists([[0, 1], [2, 0, 2]], prompt=[0, 0, 0])


@pytest.mark.parametrize(
    ("rankings", "options", "message"),
    [
        ([[0, 1], [1, 4]], {}, "out of range .ranking=1, item=4"),
        ([[0, -1]], {}, "out of range .ranking=0, item=-1"),
        ([[0, 1], [1, 2, 3]], {}, "two prompts .ranking=1, items=.1, 2, 3."),
        ([[0, 1]], {"behind": [[2], [3]]}, "behind for every ranking .rankings=1, lists=2"),
        ([[0, 1]], {"weight": [1, 2]}, "one weight per ranking"),
        ([[0, 1]], {"weight": [-1]}, "one weight per ranking"),
        ([[0, 1]], {"weight": [np.nan]}, "one weight per ranking"),
        ([[0, 1]], {"cluster": [1, 2]}, "one cluster per ranking"),
        ([[0, 1]], {"cluster": [0.5]}, "cluster"),
    ],
)
def test_a_ranking_that_is_none_is_refused(rankings, options, message):
    with pytest.raises(DataError, match=message):
        Rankings.from_lists(rankings, prompt=[0, 0, 0, 1], **options)


# Ties


@given(graphs(ties=True))
def test_ties_are_refused_only_where_they_count_and_nobody_chose(graph):
    _, c = graph
    tied = c.ties * (c.weight > 0)
    check_ties(c, "drop")
    check_ties(c, "half")
    if tied.any():
        with pytest.raises(DataError) as caught:
            check_ties(c, None)
        assert caught.value.numbers == {"ties": tied.sum(), "first_comparison": np.argmax(tied > 0)}
    else:
        check_ties(c, None)
    check_ties(dataclasses.replace(c, weight=np.zeros(E)), None)


def test_a_tracer_cannot_be_looked_at():
    c = Comparisons.from_votes([0], [1], [1], [0], prompt=[0, 0], ties=[1])
    jax.eval_shape(lambda traced: check_ties(traced, None), c)


# Weights


@given(graphs(ties=True), st.sampled_from(["comparison", "prompt"]), st.sampled_from([None, "drop", "half"]))
def test_every_unit_that_has_votes_counts_as_one(graph, unit, ties):
    """To E + 1 roundings of float32; padding and units without a vote stay at 0."""
    _, c = graph
    weighed = c.weigh(unit, ties)
    votes = c.wins_first + c.wins_second + (c.ties if ties == "half" else 0)
    member = np.arange(E) if unit == "comparison" else c.prompt[c.first]
    total = np.bincount(member, np.float64(weighed.weight) * votes)
    alive = np.bincount(member, np.float64(c.weight) * votes) > 0
    np.testing.assert_allclose(total, alive, rtol=0, atol=(E + 1) * np.finfo(np.float32).eps)
    assert (weighed.weight[c.weight == 0] == 0).all()
    assert same(dataclasses.replace(weighed, weight=c.weight), c)


@given(graphs())
def test_relative_weights_within_a_prompt_stay(graph):
    _, c = graph
    weighed = c.weigh("prompt")
    one, two = np.float64(c.weight), np.float64(weighed.weight)
    for prompt in np.unique(c.prompt):
        inside = (c.prompt[c.first] == prompt) & (two > 0)
        ratio = two[inside] / one[inside]
        np.testing.assert_allclose(ratio, ratio[:1].repeat(len(ratio)), rtol=2 * np.finfo(np.float32).eps)


def test_a_vote_counts_as_it_is():
    c = Comparisons.from_votes([0], [1], [3], [1], prompt=[0, 0])
    assert c.weigh("vote") is c


# Padding


@given(graphs(ties=True), st.integers(0, 5), st.integers(0, 5))
def test_padding_adds_weight_0_and_prompt_minus_1(graph, more_edges, more_nodes):
    _, c = graph
    c = dataclasses.replace(c, cluster=np.arange(E, dtype=np.int32))
    padded = c.pad(E + more_edges, N + more_nodes)
    assert (padded.num_comparisons, padded.num_responses) == (E + more_edges, N + more_nodes)
    assert not padded.weight[E:].any()
    assert (padded.prompt[N:] == -1).all()
    assert padded.order is None
    cut = {name: x[: N if name == "prompt" else E] for name, x in arrays(padded).items()}
    assert same(Comparisons(**cut), c)


@pytest.mark.parametrize("shape", [(E - 1, N), (E, N - 1)])
def test_a_padded_shape_is_not_smaller(shape):
    first, second, prompt = edges(np.random.default_rng(0))
    with pytest.raises(DataError, match=f"comparisons={E}, responses={N}"):
        Comparisons.from_pairs(first, second, prompt).pad(*shape)


# A pytree


@given(graphs(ties=True))
def test_the_tree_survives_jax(graph):
    _, c = graph
    leaves, tree = jax.tree.flatten(c)
    assert same(jax.tree.unflatten(tree, leaves), c)
    assert same(jax.jit(lambda x: x)(c), c)
    shapes = jax.eval_shape(lambda x: x, c)
    assert shapes.weight.shape == (E,)
    assert jax.tree.map(jnp.shape, c).prompt == (N,)
