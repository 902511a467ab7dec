"""Laws of PreferenceData: parts keep what they hold, parts compose, and swapping twice changes nothing."""

import dataclasses
import json
import pathlib
import tempfile

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmjax import Comparisons, Votes
from rmjax.data.dataset import PreferenceData, characters, is_empty, plain, subset, swap
from rmjax.data.formats import read
from rmjax.errors import DataError


@st.composite
def datasets(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    prompts, edges = draw(st.integers(1, 4)), draw(st.integers(1, 12))
    of_prompt = rng.integers(0, prompts, edges)
    first = 3 * of_prompt + rng.integers(0, 3, edges)
    second = 3 * of_prompt + (first + rng.integers(1, 3, edges)) % 3
    nodes, ends = np.unique(np.concatenate([first, second]), return_inverse=True)
    used, prompt = np.unique(nodes // 3, return_inverse=True)
    per_edge = {"target_margin": rng.normal(size=edges), "order": rng.choice([-1, 0, 1], edges)}
    return PreferenceData(
        prompts=tuple(f"p{p}" for p in used),
        sources=tuple(f"s{p % 2}" for p in used),
        responses=tuple(f"r{n}" for n in nodes),
        comparisons=Comparisons.from_votes(
            ends[:edges],
            ends[edges:],
            rng.integers(0, 4, edges),
            rng.integers(0, 4, edges),
            prompt,
            ties=rng.integers(0, 4, edges),
            cluster=of_prompt,
            **per_edge,
        ),
        rows=np.arange(1, edges + 1),
        abstentions=rng.integers(0, 2, edges).astype(np.float32),
        gold=rng.integers(-1, 2, edges).astype(np.int8),
        gold_ties=rng.integers(0, 2, edges) > 0,
        votes=Votes.build(rng.integers(0, edges, 9), *rng.integers(0, 4, (2, 9)), *rng.integers(0, 3, (2, 9))),
        columns={"length": rng.normal(size=edges)},
        dropped={"identical answers": (99,)},
    )


def told(data):
    """Everything that the data say, comparison by comparison, in texts instead of indices."""
    c = data.comparisons
    per_edge = [getattr(c, f.name) for f in dataclasses.fields(c) if f.name not in ("first", "second", "prompt")]
    per_edge += [data.rows, data.abstentions, data.gold, data.gold_ties, data.columns["length"]]
    votes = data.votes
    return [
        (
            *(
                (data.prompts[c.prompt[i]], data.sources[c.prompt[i]], data.responses[i])
                for i in (c.first[e], c.second[e])
            ),
            *(float(values[e]) for values in per_edge),
            [
                tuple(int(x[v]) for x in (votes.annotator, votes.value, votes.group, votes.instructions))
                for v in np.flatnonzero(votes.item == e)
            ],
        )
        for e in range(data.num_comparisons)
    ]


@given(datasets(), st.integers(0, 2**12 - 1))
def test_a_subset_tells_what_the_whole_tells_of_it_and_holds_no_more(data, bits):
    keep = np.array([bits >> e & 1 > 0 for e in range(data.num_comparisons)])
    part = subset(data, keep)
    assert told(part) == [line for line, kept in zip(told(data), keep) if kept]
    assert part.comparisons.first.dtype == part.comparisons.prompt.dtype == np.int32
    ends = np.concatenate([part.comparisons.first, part.comparisons.second])
    assert set(ends) == set(range(len(part.responses)))
    assert set(part.comparisons.prompt) == set(range(len(part.prompts)))
    assert part.dropped == {}


@given(datasets())
def test_keeping_all_changes_nothing(data):
    part = subset(data, np.ones(data.num_comparisons, bool))
    assert told(part) == told(data)
    assert (part.prompts, part.responses) == (data.prompts, data.responses)


@given(datasets(), st.integers(0, 2**12 - 1), st.integers(0, 2**12 - 1))
def test_subsets_compose(data, a, b):
    one, other = (np.array([bits >> e & 1 > 0 for e in range(data.num_comparisons)]) for bits in (a, b))
    assert told(subset(subset(data, one), other[one])) == told(subset(data, one & other))


@given(datasets())
def test_swapping_twice_gives_the_data_back(data):
    assert told(swap(swap(data))) == told(data)


@given(
    st.lists(
        st.tuples(st.sampled_from("pq"), st.sampled_from("wxyz"), st.sampled_from("wxyz"), st.integers(0, 3)).filter(
            lambda row: row[1] != row[2]
        ),
        min_size=1,
        max_size=8,
    )
)
def test_swapping_is_reading_the_file_with_its_sides_exchanged(rows):
    with tempfile.TemporaryDirectory() as folder:
        read_back = []
        for a, b in (("a", "b"), ("b", "a")):
            path = pathlib.Path(folder) / f"{a}.jsonl"
            lines = ({"prompt": p, a: x, b: y, "votes": {a: 2, b: n}, "gold": a} for p, x, y, n in rows)
            path.write_text("".join(json.dumps(line) + "\n" for line in lines))
            read_back.append(read(path))
    data, exchanged = read_back
    swapped = swap(data)
    assert (swapped.prompts, swapped.responses) == (exchanged.prompts, exchanged.responses)
    for mine, theirs in zip(*map(jax.tree.leaves, (swapped.comparisons, exchanged.comparisons)), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(swapped.gold, exchanged.gold)


@given(datasets())
def test_swapping_exchanges_the_sides_of_every_field(data):
    c, s = data.comparisons, swap(data).comparisons
    np.testing.assert_array_equal(c.wins_first, s.wins_second)
    np.testing.assert_array_equal(s.wins_first, c.wins_second)
    assert [(line[1], line[0]) for line in told(swap(data))] == [line[:2] for line in told(data)]
    np.testing.assert_array_equal(swap(data).gold, -data.gold)
    np.testing.assert_array_equal(s.order, -c.order)
    np.testing.assert_array_equal(s.target_margin, -c.target_margin)
    np.testing.assert_array_equal(swap(data).votes.counts(len(c.ties)), data.votes.counts(len(c.ties))[:, [1, 0, 2, 3]])


@given(datasets(), st.sampled_from(["sources", "responses", "rows", "abstentions", "gold", "gold_ties"]))
def test_parts_of_another_length_are_refused_by_name(data, name):
    with pytest.raises(DataError, match=name):
        dataclasses.replace(data, **{name: getattr(data, name)[:-1]})


@given(datasets())
def test_indices_and_columns_that_do_not_fit_are_refused(data):
    with pytest.raises(DataError, match="length"):
        dataclasses.replace(data, columns={"length": np.zeros(data.num_comparisons + 1)})
    with pytest.raises(DataError, match="item of a vote"):
        dataclasses.replace(data, votes=Votes.build([data.num_comparisons], [0], [0]))
    with pytest.raises(DataError, match="prompt of a response"):
        dataclasses.replace(data, comparisons=dataclasses.replace(data.comparisons, prompt=data.comparisons.prompt + 9))


def test_a_subset_needs_a_mask():
    data = PreferenceData(
        ("p",), ("p",), ("a", "b"), Comparisons.from_pairs([0], [1], [0, 0]), np.array([1]), np.zeros(1, np.float32)
    )
    for keep in (np.array([0]), np.array([True, False])):
        with pytest.raises(DataError, match="one boolean per comparison"):
            subset(data, keep)


MESSAGES = st.lists(st.tuples(st.sampled_from(["user", "assistant"]), st.text('aé"', max_size=4)), max_size=3).map(
    tuple
)


@given(MESSAGES, MESSAGES)
def test_plain_tells_texts_apart_and_characters_adds_up(a, b):
    assert (plain(a) == plain(b)) == (a == b)
    assert characters(a + b) == characters(a) + characters(b)


INVISIBLE = " \n\t\u00a0\u00ad\u034f\u200b\u200d\u2060\u2800\u3000\u3164\ufe0f\ufeff\uffa0\x00\x7f\U000e0041"
VISIBLE = "a.0-_\u0301\u06dd\u0600\U000110bd\U0001f600\ue000"


@given(st.text(st.sampled_from(INVISIBLE), max_size=4), st.sampled_from(VISIBLE) | st.just(""))
def test_an_answer_is_empty_where_nothing_of_it_is_drawn(blank, seen):
    assert is_empty(blank + seen + blank) == (seen == "")
    assert is_empty((("user", "hello"), ("assistant", blank + seen))) == (seen == "")
