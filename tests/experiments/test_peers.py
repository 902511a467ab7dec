"""Other libraries are asked through a process of their own; what is not there has its reason, and ours refuses."""

import json
import sys

import numpy as np
import pytest

from experiments.benchmarks import fit_vs_peers, peers_refusals
from experiments.benchmarks.peers import NOT_ASKED, Peers
from experiments.benchmarks.peers_side import count
from experiments.benchmarks.rows import missed
from rmjax.comparisons import Comparisons
from rmjax.identifiability import identify


def test_the_small_run_meets_its_targets_and_lists_who_is_absent(tmp_path):
    rows = fit_vs_peers.main(fit_vs_peers.Config(small=True, repeats=1, json=str(tmp_path / "rows.json")))
    assert missed(rows) == []
    assert json.loads((tmp_path / "rows.json").read_text()) == rows
    assert {line["command"] for line in rows} == {"python -m experiments.benchmarks.fit_vs_peers --small"}
    reasons = {line["name"].partition(": ")[2]: line["reason"] for line in rows if "reason" in line}
    for peer in (*fit_vs_peers.PEERS, *fit_vs_peers.LISTS):
        assert reasons[peer.name] == NOT_ASKED
    assert [line["met"] for line in rows if "memory" in line["name"]] == [True]


def test_ours_refuses_every_case_and_says_why():
    rows = peers_refusals.main(peers_refusals.Config())
    ours = [line for line in rows if "rmjax" in line["name"]]
    assert [line["met"] for line in ours] == [True] * 4
    for line, words in zip(ours, ("infinite", "no comparison pins down", "infinite", "infinite"), strict=True):
        assert words in line["said"]
    assert all(line["reason"] == NOT_ASKED for line in rows if line not in ours)


def test_a_library_that_does_not_import_is_absent_with_its_error(tmp_path):
    # Our own environment has none of the three.
    with Peers(sys.executable, tmp_path) as peers:
        data = peers.save("pairs", winner=np.array([0]), loser=np.array([1]), items=2)
        for method, module in (("evalica", "evalica"), ("choix", "choix"), ("arena_rank", "arena_rank")):
            options = {"function": "ilsr_pairwise"} if method == "choix" else {}
            assert f"No module named '{module}'" in peers.ask(method, data, **options)["error"]


def test_a_process_that_ends_is_a_reason(tmp_path):
    with Peers(sys.executable, tmp_path) as peers:
        data = tmp_path / "nowhere.npz"
        assert peers.ask("evalica", data)["error"] == "its process ended with 1"


@pytest.mark.parametrize("items", [3, 5_000])  # a table of all pairs, and a sort
def test_counted_votes_are_those_of_a_loop(items):
    winner, loser = np.array([0, 2, 0, 1, 0]), np.array([1, 0, 1, 0, 2])
    a, b, votes = count(winner, loser, items)
    expected = {(0, 1): 2, (0, 2): 1, (1, 0): 1, (2, 0): 1}
    assert dict(zip(zip(a.tolist(), b.tolist()), votes)) == expected


def test_drawn_comparisons_have_a_maximum_and_compare_two_items():
    problem = fit_vs_peers.draw(300, 100, circle=True)
    assert len(problem.winner) == 300
    assert (problem.winner != problem.loser).all()
    data = Comparisons.from_pairs(problem.winner, problem.loser, np.zeros(100, np.int32))
    assert identify(data).exists


def test_both_forms_of_the_input_are_fitted_alike():
    problem = fit_vs_peers.draw(2_000, 20)
    arrays, counts = fit_vs_peers.from_arrays(problem)[0], fit_vs_peers.from_counts(problem)[0]
    np.testing.assert_allclose(arrays.scores, counts.scores, atol=1e-12)
