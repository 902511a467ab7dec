"""Laws of what a run minimises: the likelihood of the core under its link, and a penalty that pins numbers only."""

import dataclasses

import jax
import numpy as np
import pytest
from graphs import graphs
from hypothesis import given
from hypothesis import strategies as st

from rmjax import Comparisons, losses
from rmjax.errors import DataError, GaugeError
from rmjax.identifiability import compare_levels
from rmjax.losses.links import LINKS, WITH_TIES
from rmjax.train import fit
from rmjax.train.metrics import held_out_metrics, read_metrics
from rmjax.train.objective import Objective, check_objective, held_out_loss, training_loss
from tests.train.small_runs import small_run, write_votes

OBJECTIVES = [
    Objective(),
    Objective("label_smoothed", 0.1),
    Objective("noise_corrected", 0.1),
    Objective("lapse", 0.1),
    Objective("thurstone"),
    Objective("rao_kupper", 0.5),
    Objective("davidson", -0.5),
]


@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda o: o.link)
@given(graphs(ties=True))
def test_training_minimises_the_likelihood_of_the_core(objective, graph):
    scores, c = graph
    scores = np.clip(scores, -5, 5)
    ties = None if objective.link in WITH_TIES else "half"
    want = losses.negative_log_likelihood(scores, c, link=objective.link, parameters=objective.parameters, ties=ties)
    minimised, nats, count = training_loss(scores, c, objective, "half")
    assert (float(minimised), float(nats), float(count)) == (float(want[0]), float(want[0]), float(want[1]))
    margins = np.float64(scores)[c.first] - np.float64(scores)[c.second]
    held_out = held_out_loss(margins, c, objective, "half")
    assert held_out == pytest.approx(float(nats), rel=1e-5, abs=1e-5)
    if count:
        found = held_out_metrics(margins, c, "half", objective)
        assert found["eval_loss"] == pytest.approx(held_out / float(count), rel=1e-6)


@given(graphs(ties=True), st.sampled_from(OBJECTIVES), st.sampled_from([0.01, 1.0]))
def test_centring_is_added_by_the_vote(graph, objective, weight):
    scores, c = graph
    scores = np.clip(scores, -5, 5)
    minimised, nats, _ = training_loss(scores, c, dataclasses.replace(objective, centering=weight), "drop")
    votes = np.float64(c.weight) * (np.float64(c.wins_first) + c.wins_second)
    if objective.link in WITH_TIES:
        votes = votes + np.float64(c.weight) * c.ties
    sums = np.float64(scores)[c.first] + np.float64(scores)[c.second]
    want = weight * (votes * sums**2).sum()
    assert float(minimised) == pytest.approx(float(nats) + want, rel=1e-4, abs=1e-4)


@given(st.integers(0, 2**32 - 1))
def test_centring_moves_no_margin_of_free_scores_and_the_squared_difference_does(seed):
    """Disjoint pairs, each score a parameter of its own: the gradient along (1, -1) is that without it."""
    scores = np.random.default_rng(seed).normal(0, 3, 8).astype(np.float32)
    c = Comparisons.from_pairs([0, 2, 4, 6], [1, 3, 5, 7], np.repeat(np.arange(4), 2))
    pull = np.asarray(jax.grad(lambda r: losses.centering_penalty(r, c)[0])(scores))
    np.testing.assert_array_equal(pull[::2], pull[1::2])
    wrong = np.asarray(jax.grad(lambda r: ((r[::2] - r[1::2]) ** 2).sum())(scores))
    assert (wrong[::2] != wrong[1::2]).any()


def test_a_centred_run_is_another_run_whose_loss_is_said_without_the_penalty(tmp_path):
    file = write_votes(tmp_path / "votes.jsonl")
    rows = {}
    for name, weight in (("plain", 0.0), ("centred", 10.0)):
        fit(small_run(tmp_path / name, file, loss=Objective(centering=weight), max_steps=4))
        rows[name] = [row for row in read_metrics(tmp_path / name) if "mean_reward" in row]
    assert rows["plain"][0]["loss"] == rows["centred"][0]["loss"] == pytest.approx(np.log(2), rel=1e-5)
    assert rows["plain"][-1]["loss"] != rows["centred"][-1]["loss"]
    # Pinned or not, levels are refused.
    levels = np.array([row["mean_reward"] for row in rows["centred"]])
    with pytest.raises(GaugeError):
        compare_levels(levels, np.arange(len(levels)))


@pytest.mark.parametrize("objective", [Objective("davidson", 0.0), Objective("lapse", 0.1)], ids=lambda o: o.link)
def test_a_run_trains_under_a_link_and_says_its_loss(tmp_path, objective):
    file = write_votes(tmp_path / "votes.jsonl", ties=3)
    ties = None if objective.link in WITH_TIES else "half"
    fit(small_run(tmp_path / "run", file, loss=objective, ties=ties, evaluate_every=2))
    rows = read_metrics(tmp_path / "run")
    # A new head says nothing: all outcomes of equals are as likely as the link says.
    kinds = 3 if objective.link in WITH_TIES else 2
    assert rows[0]["loss"] == pytest.approx(np.log(kinds), rel=1e-5)
    assert any("eval_loss" in row for row in rows)


@pytest.mark.parametrize(
    ("objective", "ties", "message"),
    [
        (Objective("lapse"), None, "needs other parameters"),
        (Objective("lapse", 1.0), None, "rate=1.0"),
        (Objective("bradley_terry", 0.1), None, "takes no parameter"),
        (Objective(centering=-1), None, "centering=-1"),
        (Objective("davidson", 0.0), "drop", "probability for a tie"),
        (Objective("logit"), None, "link"),  # type: ignore[arg-type]
    ],
)
def test_an_objective_that_is_none_is_refused(objective, ties, message):
    with pytest.raises(DataError, match=message):
        check_objective(objective, ties)


def test_the_policy_for_ties_is_that_of_the_link():
    assert check_objective(Objective(), None) is None
    assert check_objective(Objective(), "drop") == "drop"
    assert check_objective(Objective("rao_kupper", 0.2), None) == "half"
    assert {o.link for o in OBJECTIVES} == LINKS.keys() - {"target_margin"}
