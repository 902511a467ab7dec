"""Laws of the audit: it counts what a plain loop counts, and neither order nor sides change what it says."""

import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmjax import Votes
from rmjax.data.audit import audit
from rmjax.data.dataset import subset, swap
from rmjax.data.formats.assemble import Row, assemble
from rmjax.data.formats.fields import Judgement

GOLD = [1, -1, 0, None]


@st.composite
def judged(draw):
    """Rows of few texts, so that pairs recur and answers are shared."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    number = draw(st.integers(1, 12))
    rows = []
    for n in range(number):
        one, other = rng.choice(5, 2, replace=False)
        ballots = [(int(v), f"w{w}") for v, w in zip(rng.integers(0, 4, 4), rng.integers(0, 3, 4))][
            : rng.integers(0, 5)
        ]
        counts = [sum(value == v for value, _ in ballots) for v in range(4)]
        prompt = f"p{rng.integers(0, 3)}"
        gold = GOLD[rng.integers(0, 4)]
        rows.append(Row(n + 1, Judgement("f", prompt, "x" * one, "x" * other, counts, ballots, gold), prompt, ()))
    return rows


def laid_out(rows):
    return assemble(rows, (), "file", {"identical answers": (90, 91), "an answer is empty": (92,)})


def without_sides(counts):
    told = dataclasses.asdict(counts)
    sides = sorted([told.pop("first_characters"), told.pop("second_characters")])
    gold = told.pop("gold")
    return told, sides, gold and (sorted([gold["first"], gold["second"]]), gold["tie"], gold["none"])


@given(judged())
def test_counts_are_those_of_a_plain_loop(rows):
    found = audit(laid_out(rows))
    judgements = [row.judgement for row in rows]
    assert found.rows == len(rows) + 3
    assert found.dropped == {"identical answers": 2, "an answer is empty": 1}
    assert found.comparisons == len(rows)
    assert found.votes == sum(sum(j.counts[:3]) for j in judgements)
    assert found.ties == sum(j.counts[2] for j in judgements)
    assert found.abstentions == sum(j.counts[3] for j in judgements)
    assert found.without_votes == sum(sum(j.counts[:3]) == 0 for j in judgements)
    assert found.annotators == (len({name for j in judgements for _, name in j.ballots}) or None)
    assert found.repeated_votes == sum(len(j.ballots) - len({name for _, name in j.ballots}) for j in judgements)
    if found.gold is not None:
        assert list(found.gold.values()) == [sum(j.gold == g for j in judgements) for g in GOLD]

    pairs: dict = {}
    for j in judgements:
        lead = j.counts[0] - j.counts[1]
        pairs.setdefault((j.prompt, *sorted([j.first, j.second])), set()).add(
            int(np.sign(lead if j.first < j.second else -lead))
        )
    assert found.repeated_pairs == len(rows) - len(pairs)
    assert found.contradictory_pairs == sum({1, -1} <= leads for leads in pairs.values())
    answered: dict = {}
    for j in judgements:
        for text in (j.first, j.second):
            answered.setdefault(text, set()).add(j.prompt)
    assert found.shared_responses == sum(len(prompts) > 1 for prompts in answered.values())
    assert found.candidates.most == max(
        len({t for j in judgements if j.prompt == prompt for t in (j.first, j.second)})
        for prompt in {j.prompt for j in judgements}
    )


@given(judged())
def test_the_longer_answer_wins_as_a_plain_loop_counts_it(rows):
    won = total = 0
    for j in (row.judgement for row in rows):
        for value, _ in j.ballots:
            if value < 2:
                total += 1
                won += (len(j.first) > len(j.second)) == (value == 0)
    found = audit(laid_out(rows)).longer_wins_votes
    np.testing.assert_allclose(found, won / total if total else np.nan, rtol=1e-12)


@given(judged(), st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_nothing(rows, random):
    one, other = (dataclasses.asdict(audit(laid_out(r))) for r in (rows, random.sample(rows, len(rows))))
    np.testing.assert_equal(one, other)


@given(judged())
def test_exchanging_sides_changes_nothing_but_their_names(rows):
    data = laid_out(rows)
    np.testing.assert_equal(without_sides(audit(data)), without_sides(audit(swap(data))))


def test_equal_lengths_count_half():
    row = Row(1, Judgement("f", "p", "abc", "abd", (3, 1, 0, 0)), "p", ())
    assert audit(assemble([row], (), "", {})).longer_wins_votes == 0.5


def test_an_answer_that_starts_with_its_prompt_is_noticed():
    rows = [Row(1, Judgement("f", "2 + 2?", "2 + 2? 4", "5", (1, 0, 0, 0)), "s", ())]
    assert audit(assemble(rows, (), "", {})).repeated_prompts == 1
    ask, say = ("user", "2 + 2?"), ("assistant", "4")
    rows = [Row(1, Judgement("f", (ask,), (ask, say), (say,), (1, 0, 0, 0)), "s", ())]
    assert audit(assemble(rows, (), "", {})).repeated_prompts == 1


@given(judged())
def test_an_audit_is_json(rows):
    counts = dataclasses.asdict(audit(laid_out(rows)))
    back = json.loads(json.dumps(counts))
    assert back.keys() == counts.keys()
    assert back["comparisons"] == len(rows)


def test_no_comparisons_are_counted_as_none():
    row = Row(1, Judgement("f", "p", "a", "b", (1, 0, 0, 0)), "p", ())
    none = audit(subset(assemble([row], (), "", {}), np.array([False])))
    assert (none.comparisons, none.votes, none.groups, none.largest_group) == (0, 0, 0, 0)
    assert np.isnan(none.longer_wins_votes)


@pytest.mark.parametrize("annotators", [[0, 1, 0], [0, 1, 2]])
def test_a_second_vote_of_one_annotator_is_noticed(annotators):
    row = Row(1, Judgement("f", "p", "a", "b", (3, 0, 0, 0)), "p", ())
    data = dataclasses.replace(assemble([row], (), "", {}), votes=Votes.build([0, 0, 0], annotators, [0, 0, 0]))
    assert audit(data).repeated_votes == 3 - len(set(annotators))
