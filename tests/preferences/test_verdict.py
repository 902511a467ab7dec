"""Laws of the verdict: a scalar is not called a cycle, a cycle is not called a scalar, and costs are what they cost."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from games import CHAIN
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from rmjax import Comparisons, losses
from rmjax.errors import DataError
from rmjax.preferences import fit_skew, scalar_verdict, simulate, skew_margins
from rmjax.preferences.published import BASEBALL

RPS = Comparisons.from_votes([0, 1, 2], [1, 2, 0], [160] * 3, [40] * 3, [0] * 3)
EVERY = np.array([(i, j) for i in range(6) for j in range(i + 1, 6)])
ROUND = Comparisons.from_pairs(EVERY[:, 0], EVERY[:, 1], [0] * 6)


def world(seed, votes, link="bradley_terry", scale=1.0):
    key = jax.random.key(seed)
    scores = scale * jax.random.normal(key, (6,))
    return simulate(jax.random.fold_in(key, 1), scores, ROUND, votes=votes, link=link)


def test_a_cycle_cannot_be_said_and_the_cost_is_named():
    found = scalar_verdict(RPS)
    assert found.answer == "cannot"
    assert found.accuracy.upper == pytest.approx(0.6)  # two pairs of three at .8, one at .2
    assert found.cost_in_accuracy == pytest.approx(0.2)
    assert found.cost_in_nats == pytest.approx(0.1927, abs=0.01)
    assert "cannot say this, whatever its link: the only triple breaks strong transitivity" in found.sentence
    twice = Comparisons.from_wins(np.kron(np.eye(2, dtype=int), [[0, 160, 40], [40, 0, 160], [160, 40, 0]]))
    assert "% of 2 triples break strong transitivity" in scalar_verdict(twice).sentence


def test_a_skew_model_says_what_no_scalar_can():
    fitted = fit_skew(RPS, rank=1)
    margin = np.asarray(skew_margins(fitted.model, RPS), np.float64)
    np.testing.assert_allclose(special.expit(margin), 0.8, atol=1e-6)


AROUND = Comparisons.from_votes([0, 1, 2], [1, 2, 0], [1] * 3, [0] * 3, [0] * 3)


@jax.jit
@jax.vmap
def around(scores):
    """Margins around the circle, and the mean loss of a vote."""
    total, count = losses.negative_log_likelihood(scores, AROUND)
    return losses.margins(scores, AROUND), total / count


@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-9, 1.0, 50.0, 1e300]))
def test_no_scores_whatever_beat_a_cycle(seed, scale):
    """At most two pairs of three, and a loss of at least log 2 a vote; some scores are equal, and some all but."""
    r = scale * np.random.default_rng(seed).uniform(-1, 1, (4096, 3))
    r[:64, 1] = r[:64, 0]
    r[:8] = r[:8, :1]
    with jax.enable_x64():
        d, nats = (np.asarray(x) for x in around(r))
    right = ((d > 0) + (d == 0) / 2).sum(axis=1)
    assert right.max() == 2
    assert (nats >= np.log(2) * (1 - 1e-12)).all()
    assert nats.min() <= np.log(2) * (1 + 1e-12)  # and equal scores attain it


@given(st.integers(0, 2**32 - 1))
def test_drawn_cycles_are_called_so_and_their_cost_is_counted(seed):
    """Majorities of 75 % and more around, of 400 votes: no draw of a scalar looks like that."""
    rng = np.random.default_rng(seed)
    first, second = rng.permutation([[0, 1, 2], [1, 2, 0]])  # either way around
    won = rng.integers(300, 390, 3)
    found = scalar_verdict(Comparisons.from_votes(first, second, won, 400 - won, [0] * 3), replicates=4)
    assert found.answer == "cannot"
    assert found.accuracy.upper == pytest.approx((won.sum() - won.min() + 400 - won.min()) / 1200)
    assert found.transitivity.cyclic.shape == (1, 3)
    assert found.cost_in_nats > 0


def test_scalars_are_left_in_peace_as_often_as_promised():
    """Of 8 worlds of few votes: at the level .95 one in twenty is called otherwise, and hardly ever four."""
    said = [scalar_verdict(world(seed, votes=8), seed=seed).answer for seed in range(8)]
    assert said.count("cannot") == 0
    assert said.count("not under this link") <= 3


def test_another_link_is_not_called_a_cycle():
    """Votes of a scalar with lapses: Bradley-Terry does not fit them, and no triple breaks transitivity for sure."""
    key = jax.random.key(5)
    scores = jnp.linspace(-6, 6, 6)
    c = simulate(key, scores, ROUND, votes=4000, link="lapse", parameters={"rate": 0.3})
    found = scalar_verdict(c)
    assert found.answer == "not under this link"
    assert found.p_value < 1e-6
    assert found.cost_in_nats > 0
    assert "another link might" in found.sentence


def test_a_season_of_baseball_can_be_said():
    found = scalar_verdict(Comparisons.from_wins(BASEBALL))
    assert found.answer == "can"
    assert f"{found.deviance:.6f}" == "15.736501"
    assert 10 < found.expected_deviance < 20  # 15 degrees of freedom
    assert found.sentence.startswith("Nothing here speaks against a scalar")
    assert scalar_verdict(CHAIN).answer == "can"
    assert scalar_verdict(CHAIN).cost_in_nats == 0


def test_a_tree_of_comparisons_says_nothing_of_scalars():
    """It has no circle, and no degree of freedom is left: what the fit leaves is rounding."""
    tree = Comparisons.from_votes([0, 1, 1], [1, 2, 3], [3, 1, 5], [1, 2, 7], [0] * 4)
    found = scalar_verdict(tree)
    assert found.answer == "can"
    assert found.p_value == pytest.approx(0.5, abs=1e-3)
    assert found.projection.degrees_of_freedom == 0
    assert found.sentence.endswith("one says every share exactly.")


def test_a_chance_too_small_for_forty_draws_is_a_bound():
    assert scalar_verdict(RPS).p_value < 1e-6
    assert "(p < 1e-6)" in scalar_verdict(RPS).sentence
    assert "(p = 0." in scalar_verdict(Comparisons.from_wins(BASEBALL)).sentence


@pytest.mark.parametrize("seed", range(4))
def test_four_votes_on_one_pair_can_be_said(seed):
    """Drawn anew they often come out even, or all for one, and then no scores spread at all."""
    found = scalar_verdict(Comparisons.from_votes([0], [1], [3], [1], [0, 0]), seed=seed)
    assert found.answer == "can"
    assert found.p_value == pytest.approx(0.5, abs=1e-3)


def test_votes_that_are_not_whole_cannot_be_drawn_anew():
    with pytest.raises(DataError, match=r"first=0, second=1, votes=1\.4"):
        scalar_verdict(dataclasses.replace(RPS, weight=np.full(3, 0.007, np.float32)))
    # A float32 weight of 0.1 times 2,000 votes is 200 to rounding; half a tie for either side is one vote.
    tenth = Comparisons.from_votes([0, 1, 2], [1, 2, 0], [1600] * 3, [400] * 3, [0] * 3, weight=[0.1] * 3)
    assert scalar_verdict(tenth).answer == scalar_verdict(RPS).answer
    tied = Comparisons.from_votes([0], [1], [3], [2], [0, 0], ties=[1])
    assert scalar_verdict(tied, ties="half").answer == "can"


def test_options_that_mean_nothing_are_refused():
    for options in ({"level": 1.0}, {"level": 0}, {"replicates": 1}):
        with pytest.raises(DataError, match="level"):
            scalar_verdict(RPS, **options)


def test_more_votes_than_whole_numbers_reach_are_refused():
    with pytest.raises(DataError, match=r"no more than 2.53"):
        scalar_verdict(Comparisons.from_votes([0], [1], [1e19], [1e19], [0, 0]))
