"""The frozen head is the one optimum of a convex problem, and knows nothing of levels."""

import dataclasses

import numpy as np
import pytest
from scipy import optimize

from rmjax import Comparisons
from rmjax.errors import DataError
from rmjax.train.frozen import fit_head


def make_problem(seed=0, prompts=12, candidates=4, features=6):
    rng = np.random.default_rng(seed)
    n = prompts * candidates
    prompt = np.repeat(np.arange(prompts), candidates)
    states = rng.normal(size=(n, features)) * np.logspace(-1, 1, features) + rng.normal(size=(prompts, 1))[prompt] * 5
    first, second = np.nonzero((prompt[:, None] == prompt) & np.triu(np.ones((n, n), bool), 1))
    votes = rng.integers(0, 4, (3, len(first)))
    pairs = Comparisons.from_votes(first, second, votes[0], votes[1] + 1, prompt, ties=votes[2])
    return states, pairs


def objective(weight, states, c, ridge, half):
    """The penalised mean loss by another formula, in float64."""
    a, b = c.wins_first + half * c.ties, c.wins_second + half * c.ties
    difference = states[c.first] - states[c.second]
    spread = np.sqrt(np.mean(difference**2, axis=0) / 2)
    margin = difference @ weight
    loss = (a * np.logaddexp(0, -margin) + b * np.logaddexp(0, margin)).sum() / (a + b).sum()
    return loss + ridge / 2 * ((weight * spread) ** 2).sum()


@pytest.mark.parametrize(("ties", "half"), [("drop", 0.0), ("half", 0.5)])
def test_the_fit_is_the_optimum_that_a_general_optimiser_finds(ties, half):
    states, pairs = make_problem()
    fit = fit_head(states, pairs, ridge=0.05, ties=ties)
    assert fit.gradient_norm < 1e-9
    start = np.zeros(states.shape[1])
    found = optimize.minimize(objective, start, (states, pairs, 0.05, half), method="BFGS", options={"gtol": 1e-9})
    # The head is float32; the optimum is flat, so weights agree to the root of the objective's rounding.
    np.testing.assert_allclose(fit.head.weight, found.x, rtol=1e-5, atol=1e-6)


def test_one_vector_per_prompt_changes_nothing():
    states, pairs = make_problem()
    shift = np.random.default_rng(1).normal(size=(12, states.shape[1]))[pairs.prompt] * 10
    one, other = (fit_head(x, pairs, ridge=0.1, ties="drop").head.weight for x in (states, states + shift))
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)


def test_the_ridge_does_not_depend_on_the_units_of_a_feature():
    states, pairs = make_problem()
    units = np.logspace(-3, 3, states.shape[1])
    one, other = (fit_head(x, pairs, ridge=0.1, ties="drop").head.weight for x in (states, states * units))
    np.testing.assert_allclose(np.asarray(one), np.asarray(other) * units, rtol=1e-4)


def test_weight_zero_is_deletion_also_of_states_that_are_not_numbers():
    states, pairs = make_problem()
    lost = np.arange(8)  # two prompts
    gone = np.isin(pairs.first, lost)
    weighed = dataclasses.replace(pairs, weight=np.where(gone, 0, 1).astype(np.float32))
    broken = states.copy()
    broken[lost] = np.nan
    kept = Comparisons.from_votes(
        pairs.first[~gone], pairs.second[~gone], pairs.wins_first[~gone], pairs.wins_second[~gone], pairs.prompt
    )
    one = fit_head(broken, weighed, ridge=0.1, ties="drop").head.weight
    np.testing.assert_allclose(one, fit_head(states, kept, ridge=0.1).head.weight, rtol=1e-6)


def test_a_separable_problem_has_a_finite_fit_and_an_infinite_ridge_none():
    pairs = Comparisons.from_pairs([0, 2], [1, 3], prompt=[0, 0, 1, 1])
    states = np.array([[1.0], [0.0], [1.0], [0.0]])
    small, large = (abs(float(fit_head(states, pairs, ridge=r).head.weight[0])) for r in (1e-6, 1e6))
    assert 5 < small < 100
    assert large < 1e-5


def test_a_feature_that_never_differs_within_a_prompt_has_no_weight():
    states, pairs = make_problem()
    constant = np.column_stack([states, pairs.prompt])
    assert fit_head(constant, pairs, ridge=0.1, ties="drop").head.weight[-1] == 0


def test_what_has_no_optimum_is_refused():
    states, pairs = make_problem()
    with pytest.raises(DataError, match="positive ridge"):
        fit_head(states, pairs, ridge=0.0, ties="drop")
    with pytest.raises(DataError, match="ties"):
        fit_head(states, pairs, ridge=0.1)
    with pytest.raises(DataError, match="no comparison counts"):
        fit_head(states, dataclasses.replace(pairs, weight=0 * pairs.weight), ridge=0.1, ties="drop")
