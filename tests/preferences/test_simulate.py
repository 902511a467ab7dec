"""Laws of drawn votes: their shares are the probabilities of the link, and the estimate comes back."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rmjax import Comparisons
from rmjax.errors import DataError
from rmjax.losses.links import LINKS
from rmjax.preferences import fit, simulate

N = 4
FIRST, SECOND = np.triu_indices(N, k=1)
PAIRS = Comparisons.from_pairs(FIRST, SECOND, [0] * N, order=[1, -1, 1, 0, 1, -1])
SCORES = jnp.array([0.9, 0.2, -0.3, -0.8])
GIVEN = {
    "bradley_terry": {},
    "lapse": {"rate": 0.2},
    "thurstone": {},
    "rao_kupper": {"log_threshold": 0.5},
    "davidson": {"log_tie": -0.4},
}
VOTES = 4000


@pytest.mark.parametrize("link", GIVEN)
def test_shares_of_drawn_votes_are_the_probabilities_of_the_link(link):
    given = {**GIVEN[link], "position": 0.3}
    drawn = simulate(jax.random.key(1), SCORES, PAIRS, votes=VOTES, link=link, parameters=given)
    counts = np.stack([drawn.wins_first, drawn.wins_second, drawn.ties], axis=1)
    assert (counts.sum(axis=1) == VOTES).all()
    margin = SCORES[FIRST] - SCORES[SECOND] + 0.3 * PAIRS.order
    own = [jnp.float32(x) for x in GIVEN[link].values()]
    chance = np.exp(-np.stack([np.asarray(loss) for loss in LINKS[link].losses(margin, *own)], axis=1))
    shares = counts[:, : chance.shape[1]] / VOTES
    # Four standard errors of each of at most 18 shares.
    assert (np.abs(shares - chance) <= 4 * np.sqrt(chance * (1 - chance) / VOTES)).all()


@pytest.mark.parametrize("link", ["bradley_terry", "thurstone", "rao_kupper", "davidson"])
def test_the_estimate_comes_back(link):
    given = {**GIVEN[link], "position": 0.3}
    drawn = simulate(jax.random.key(2), SCORES, PAIRS, votes=VOTES, link=link, parameters=given)
    estimate = fit(drawn, link=link, position=True)
    for k in range(1, N):
        got = estimate.contrast(k, 0)
        assert abs(got.value - float(SCORES[k] - SCORES[0])) <= 4 * got.standard_error
    for name, value in given.items():
        assert abs(estimate.parameters[name] - value) <= 4 * estimate.parameter_error(name)


def test_the_same_key_draws_the_same_votes_and_a_constant_changes_none():
    one, two, moved = (
        simulate(key, scores, PAIRS, votes=50)
        for key, scores in (
            (jax.random.key(3), SCORES),
            (jax.random.key(3), SCORES),
            (jax.random.key(3), SCORES + 1.0),
        )
    )
    np.testing.assert_array_equal(one.wins_first, two.wins_first)
    assert np.abs(one.wins_first - moved.wins_first).max() <= 1
    assert (one.ties == 0).all()


def test_only_probabilities_are_drawn_from():
    for link, given in (
        ("noise_corrected", {"flip_rate": 0.1}),
        ("label_smoothed", {"rate": 0.1}),
        ("target_margin", {}),
    ):
        with pytest.raises(DataError, match="probability of outcomes"):
            simulate(jax.random.key(0), SCORES, PAIRS, link=link, parameters=given)
    with pytest.raises(DataError, match="votes=0"):
        simulate(jax.random.key(0), SCORES, PAIRS, votes=0)
    plain = Comparisons.from_pairs(FIRST, SECOND, [0] * N)
    with pytest.raises(DataError, match="shown first"):
        simulate(jax.random.key(0), SCORES, plain, parameters={"position": 0.1})
