"""A summary is a function of the judgements alone, works with parts missing, and is JSON."""

import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmjax import Comparisons
from rmjax.diagnostics import Evaluation, Levels, Provenance, SwapCheck, as_json, summarise, vote_agreement
from rmjax.errors import DataError
from tests.diagnostics.test_evaluation import evaluation
from tests.diagnostics.worlds import swap


def numbers(tree, path=""):
    """Every number of a JSON tree by its path."""
    if isinstance(tree, dict):
        return {k: v for name, e in tree.items() for k, v in numbers(e, f"{path}.{name}").items()}
    if isinstance(tree, list):
        return {k: v for i, e in enumerate(tree) for k, v in numbers(e, f"{path}.{i}").items()}
    return {path: tree}


@pytest.mark.parametrize("unit", ["vote", "comparison", "prompt"])
@given(seed=st.integers(0, 2**32 - 1))
def test_exchanging_the_sides_changes_nothing(unit, seed):
    one = evaluation(seed, unit=unit)
    other = dataclasses.replace(
        one,
        margins=-one.margins,
        comparisons=swap(one.comparisons),
        gold=-one.gold,
        votes=one.votes[:, [1, 0, 2]],
        layer_margins=-one.layer_margins,
    )
    a, b = (numbers(as_json(summarise(e))) for e in (one, other))
    a[".counts.votes_first"], a[".counts.votes_second"] = a[".counts.votes_second"], a[".counts.votes_first"]
    assert a.keys() == b.keys()
    for path in a:
        expected = pytest.approx(b[path], rel=1e-9, abs=1e-12) if isinstance(b[path], float) else b[path]
        assert a[path] == expected, path


def test_padding_changes_nothing():
    one = evaluation(3)
    n, responses = len(one.margins), len(one.token_lengths)
    padded = dataclasses.replace(
        one,
        comparisons=one.comparisons.pad(n + 2, responses + 1),
        margins=np.append(one.margins, [np.nan, 5.0]),
        layer_margins=np.hstack([one.layer_margins, np.full((4, 2), np.inf)]),
        token_lengths=np.append(one.token_lengths, 3),
        cluster=np.append(one.cluster, [500, 501]),
        gold=np.append(one.gold, [1, -1]),
        votes=np.vstack([one.votes, [[9, 0, 0], [0, 9, 0]]]),
    )
    assert as_json(summarise(padded)) == as_json(summarise(one))


def test_what_is_missing_is_none_or_says_why():
    bare = summarise(evaluation(gold=None, votes=None, layer_margins=None))
    assert bare.against_gold is bare.settling is bare.swap is bare.levels is None
    assert not bare.agreement.measured
    assert "one label a pair" in bare.agreement.reason
    undecided = summarise(evaluation(gold=np.zeros(60, int)))
    assert undecided.against_gold is None
    assert undecided.counts.gold == 0


def test_shares_of_votes_are_not_called_labels():
    one = evaluation(votes=None)
    shares = dataclasses.replace(one.comparisons, wins_first=one.comparisons.wins_first / 3)
    assert "shares of votes" in summarise(dataclasses.replace(one, comparisons=shares)).agreement.reason


def test_counts_are_those_of_the_file():
    one = evaluation(abstentions=3.0)
    counts = summarise(one).counts
    c = one.comparisons
    assert (counts.comparisons, counts.prompts, counts.clusters) == (60, 12, 12)
    assert counts.votes_first + counts.votes_second + counts.ties == one.votes.sum()
    assert counts.ties == c.ties.sum()
    assert counts.score_ties == (one.margins == 0).sum()
    assert counts.gold == np.abs(one.gold).sum()
    assert counts.abstentions == 3


def test_layers_are_held_against_gold_where_there_is_gold():
    one = evaluation()
    assert summarise(one).settling.accuracy[-1] == summarise(one).against_gold.accuracy_half
    votes_only = summarise(dataclasses.replace(one, gold=None))
    assert votes_only.settling.accuracy[-1] == votes_only.against_votes.accuracy_half


def test_rounding_found_by_the_swap_check_is_the_noise_of_settling():
    one = evaluation(swap=SwapCheck(60, 0.5, 0, rounding=1.0))
    assert summarise(one).settling.undecided == np.sum(np.abs(one.margins[_voted(one)]) <= 0.5)


def _voted(one):
    return one.gold != 0


def test_all_ties_count_only_as_halves():
    one = evaluation(gold=None, votes=None, layer_margins=None)
    c = dataclasses.replace(one.comparisons, wins_first=0 * one.comparisons.wins_first)
    c = dataclasses.replace(c, wins_second=0 * c.wins_second, ties=np.ones_like(c.ties))
    with pytest.raises(DataError, match="no comparison"):
        summarise(dataclasses.replace(one, comparisons=c))
    half = summarise(dataclasses.replace(one, comparisons=c, ties="half"))
    assert half.against_votes.accuracy_half.value == 0.5
    with pytest.raises(DataError, match="ties"):
        summarise(dataclasses.replace(one, ties=None))


def test_summary_is_json_without_nan():
    whole = summarise(evaluation(levels=Levels(-3.0, 0.1, 4.0)))
    lone = summarise(evaluation(levels=None, gold=None))
    one_cluster = evaluation()
    one_cluster = summarise(dataclasses.replace(one_cluster, cluster=np.zeros(60, int)))
    for summary in (whole, lone, one_cluster):
        assert json.loads(json.dumps(as_json(summary), allow_nan=False))["unit"] == "vote"
    assert as_json(one_cluster)["against_votes"]["accuracy"]["lower"] is None
    assert as_json({"a": np.arange(2), "b": [np.bool_(True)], "c": float("inf")}) == {
        "a": [0, 1],
        "b": [True],
        "c": None,
    }


UNEVEN = [[19, 1, 0]] * 40 + [[3, 2, 0]] * 200, np.arange(240)
CROWDED = [[19, 1, 0]] * 180 + [[3, 2, 0]] * 60, np.concatenate([np.repeat(np.arange(20), 9), np.arange(20, 80)])
TIED = [[4, 0, 4], [5, 0, 3]] * 100, np.arange(200)


@pytest.mark.parametrize(
    ("world", "unit", "ties"),
    [(UNEVEN, "vote", "drop"), (UNEVEN, "comparison", "drop"), (CROWDED, "prompt", "drop"), (TIED, "vote", "half")],
)
def test_who_cannot_be_beaten_on_these_votes_is_not_below_the_ceiling(world, unit, ties):
    """Pooled over pairs of votes, or with ties left out, the agreement is that of other pairs than the accuracy's."""
    votes, prompt = np.array(world[0]), world[1]
    number = len(votes)
    comparisons = Comparisons.from_votes(
        2 * np.arange(number),
        2 * np.arange(number) + 1,
        votes[:, 0],
        votes[:, 1],
        np.repeat(prompt, 2),
        ties=votes[:, 2],
    )
    oracle = Evaluation(
        np.where(votes[:, 0] >= votes[:, 1], 1.0, -1.0),
        comparisons,
        prompt,
        np.ones(2 * number),
        Provenance("an oracle", "0", "votes.jsonl"),
        votes=votes,
        ties=ties,
        unit=unit,
    )
    summary = summarise(oracle)
    assert summary.agreement.ceiling.lower <= summary.against_votes.accuracy.value + 1e-6
    elsewhere = vote_agreement(votes, prompt).two_votes_decided
    assert elsewhere.value > summary.against_votes.accuracy.value
