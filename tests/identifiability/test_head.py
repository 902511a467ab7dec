"""Laws of the information of a head: what differences within prompts see, what they cannot, and how sure they are."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest
from graphs import BASEBALL_FIT, PER_PROMPT, PROMPTS, E, N, edges
from hypothesis import assume, given
from hypothesis import strategies as st

from rmjax import Comparisons
from rmjax.errors import DataError, IdentifiabilityError
from rmjax.identifiability import head as module
from rmjax.identifiability.head import identify_head
from rmjax.preferences.published import BASEBALL

D = 5
EPS = float(np.finfo(np.float64).eps)
seeds = st.integers(0, 2**32 - 1)
PROMPT = np.repeat(np.arange(PROMPTS), PER_PROMPT)


@st.composite
def judged_features(draw):
    """Features [N, D] of one scale, a head with moderate margins, votes of which some weigh 0, and a generator."""
    rng = np.random.default_rng(draw(seeds))
    scale = draw(st.sampled_from([1e-3, 1.0, 1e3]))
    features = scale * rng.normal(size=(N, D))
    first, second, prompt = edges(rng)
    a, b = rng.integers(0, 9, (2, E)) / 4
    votes = Comparisons.from_votes(first, second, a, b, prompt, weight=rng.integers(0, 5, E) / 4)
    return features, rng.normal(size=D) / scale, votes, rng


def differences(features, votes):
    return features[votes.first] - features[votes.second]


def oracle(features, head, votes):
    """The information, by a loop over comparisons; p (1 - p) is well conditioned at these margins."""
    total = np.zeros((D, D))
    for e, d in enumerate(differences(features, votes)):
        p = 1 / (1 + np.exp(-d @ head))
        total += (
            float(votes.weight[e]) * float(votes.wins_first[e] + votes.wins_second[e]) * p * (1 - p) * np.outer(d, d)
        )
    return total


def close(one, two, rtol=1e-11):
    np.testing.assert_allclose(one, two, rtol=0, atol=rtol * np.abs(two).max())


# The information and its rank


@given(judged_features())
def test_the_information_is_that_of_differences_within_prompts(case):
    features, head, votes, _ = case
    found = identify_head(features, votes, head=head)
    close(found.information, oracle(features, head, votes))
    np.testing.assert_array_equal(found.information, found.information.T)
    given_margins = identify_head(features, votes, margins=differences(features, votes) @ head)
    close(given_margins.information, found.information)
    close(identify_head(features, votes).information, oracle(features, 0 * head, votes))


@given(judged_features())
def test_the_rank_is_that_of_the_differences_that_count(case):
    features, head, votes, rng = case
    features[:, 2:] = features[:, :2] @ rng.normal(size=(2, D - 2))  # two features in five coordinates
    found = identify_head(features, votes, head=head)
    d = differences(features, votes)[votes.counted("drop") > 0]
    assert found.rank == np.linalg.matrix_rank(d, tol=1e-6 * np.abs(d).max()) <= 2
    assert found.directions.shape == (D, found.rank)
    assert found.null_directions.shape == (D, D - found.rank)
    whole = np.concatenate([found.directions, found.null_directions], axis=1)
    np.testing.assert_allclose(whole.T @ whole, np.eye(D), rtol=0, atol=1e-13)
    assert (np.diff(found.eigenvalues) <= 0).all()
    assert found.eigenvalues.min() >= -D * EPS * found.eigenvalues[0]


@given(judged_features())
def test_no_margin_moves_along_a_null_direction(case):
    features, head, votes, rng = case
    features[:, 2:] = features[:, :2] @ rng.normal(size=(2, D - 2))
    found = identify_head(features, votes, head=head)
    moved = head + found.null_directions @ rng.normal(size=D - found.rank)
    d = differences(features, votes)[votes.counted("drop") > 0]
    bound = 1e-6 * np.abs(d).max() * (1 + np.linalg.norm(moved - head))
    assert (np.abs(d @ moved - d @ head) <= bound).all()


@given(judged_features(), st.sampled_from([np.float64, np.float32]))
def test_a_bias_and_what_is_constant_within_prompts_are_null(case, dtype):
    features, head, votes, rng = case
    features[:, 0] = 1.0
    features[:, 3] = rng.normal(size=PROMPTS)[PROMPT]
    found = identify_head(features.astype(dtype), votes, head=head)
    assert found.rank <= D - 2
    close(found.null_share(np.eye(D)[[0, 3]]), np.ones(2))
    for feature in (0, 3):
        with pytest.raises(IdentifiabilityError, match="no comparison can see"):
            found.standard_error(np.eye(D)[feature])


@given(judged_features())
def test_a_constant_per_prompt_added_to_the_features_changes_nothing(case):
    features, head, votes, rng = case
    moved = features + np.abs(features).max() * rng.normal(size=(PROMPTS, D))[PROMPT]
    close(identify_head(moved, votes, head=head).information, oracle(features, head, votes))


@given(judged_features(), st.sampled_from([np.nan, np.inf]), seeds)
def test_weight_0_is_deletion_whatever_the_features_are(case, bad, seed):
    features, head, votes, _ = case
    victim = np.random.default_rng(seed).integers(N)
    touched = (votes.first == victim) | (votes.second == victim)
    erased = dataclasses.replace(votes, weight=np.where(touched, 0, votes.weight).astype(np.float32))
    spoilt = features.copy()
    spoilt[victim] = bad
    close(identify_head(spoilt, erased, head=head).information, oracle(features, head, erased))


def layer_norm(x, gain, bias):
    centred = x - x.mean(axis=1, keepdims=True)
    return gain * centred / np.sqrt(np.square(centred).mean(axis=1, keepdims=True) + 1e-5) + bias


@given(seeds)
def test_the_null_direction_of_a_layer_norm_is_found_in_its_float32_states(seed):
    """D - 1 directions are seen, and the other is 1 / gain. Behind an RMSNorm all D are seen."""
    rng = np.random.default_rng(seed)
    x, gain, bias = rng.normal(size=(400, 16)), rng.uniform(0.5, 2, 16), rng.normal(size=16)
    pairs = Comparisons.from_pairs(np.arange(0, 400, 2), np.arange(1, 400, 2), np.arange(400) // 2)
    found = identify_head(layer_norm(x, gain, bias).astype(np.float32), pairs)
    assert found.rank == 15
    direction = 1 / gain / np.linalg.norm(1 / gain)
    assert abs(found.null_directions[:, 0] @ direction) == pytest.approx(1, abs=1e-6)
    root_mean_square = gain * x / np.sqrt(np.square(x).mean(axis=1, keepdims=True))
    assert identify_head(root_mean_square.astype(np.float32), pairs).rank == 16


def test_rounding_of_narrow_features_is_no_information():
    """In bfloat16 a null direction of a LayerNorm has an eigenvalue far above what float64 rounds."""
    rng = np.random.default_rng(0)
    states = layer_norm(rng.normal(size=(400, 16)), rng.uniform(0.5, 2, 16), rng.normal(size=16))
    pairs = Comparisons.from_pairs(np.arange(0, 400, 2), np.arange(1, 400, 2), np.arange(400) // 2)
    narrow = jnp.asarray(states, jnp.bfloat16)
    found = identify_head(narrow, pairs)
    assert found.rank == 15
    assert found.eigenvalues[-1] > 1e-7 * found.eigenvalues[0]
    assert identify_head(np.asarray(narrow, np.float64), pairs).rank == 16  # nobody says that they were narrow
    assert identify_head(np.asarray(narrow, np.float64), pairs, tolerance=1e-3).rank == 15


@given(judged_features(), st.sampled_from([np.float64, np.float32]))
def test_a_direction_of_little_information_is_not_a_null_direction(case, dtype):
    """Features of a hundred-thousandth of the others: eigenvalues of 1e-10, far above what either type rounds."""
    features, _, votes, _ = case
    plain = identify_head(features, votes)
    assume(plain.eigenvalues[-1] > 1e-2 * plain.eigenvalues[0])
    found = identify_head((features * np.geomspace(1, 1e-5, D)).astype(dtype), votes)
    assert found.rank == D
    assert found.eigenvalues[-1] < 1e-8 * found.eigenvalues[0]


# Standard errors


@given(judged_features())
def test_the_standard_error_of_a_margin_is_that_of_the_inverse_information(case):
    features, head, votes, rng = case
    found = identify_head(features, votes, head=head)
    assume(found.eigenvalues[-1] > 1e-6 * found.eigenvalues[0])
    x = rng.normal(size=(3, 2, D))
    covariance = np.linalg.inv(found.information)
    want = np.sqrt(np.einsum("...i,ij,...j->...", x, covariance, x))
    np.testing.assert_allclose(found.standard_error(x), want, rtol=1e-8)
    np.testing.assert_allclose(found.standard_error(-2 * x), 2 * want, rtol=1e-8)
    np.testing.assert_allclose(found.standard_error(x[0, 0]), want[0, 0], rtol=1e-8)
    more = dataclasses.replace(votes, weight=votes.weight * np.float32(4))
    np.testing.assert_allclose(identify_head(features, more, head=head).standard_error(x), want / 2, rtol=1e-8)


@given(judged_features())
def test_a_change_of_basis_leaves_the_rank_and_the_standard_errors(case):
    features, head, votes, rng = case
    features[:, 0] = features[:, 1]
    matrix = np.linalg.qr(rng.normal(size=(D, D)))[0] * rng.uniform(0.5, 2, D)
    plain = identify_head(features, votes, head=head)
    moved = identify_head(features @ matrix.T, votes, head=np.linalg.solve(matrix.T, head))
    if plain.rank > 0 and plain.eigenvalues[plain.rank - 1] > 1e-6 * plain.eigenvalues[0]:
        assert moved.rank == plain.rank
        counted = votes.counted("drop") > 0
        d = differences(features, votes)[counted]
        np.testing.assert_allclose(moved.standard_error(d @ matrix.T), plain.standard_error(d), rtol=1e-7)


@given(judged_features(), st.sampled_from([1e-3, 1.0]))
def test_a_ridge_shrinks_errors_and_identifies_nothing(case, share):
    features, head, votes, rng = case
    features[:, 0] = 1.0
    plain = identify_head(features, votes, head=head)
    ridge = share * plain.eigenvalues[0]
    found = identify_head(features, votes, head=head, ridge=ridge)
    assert found.rank == plain.rank
    x = found.directions @ rng.normal(size=found.rank)
    want = np.sqrt(x @ np.linalg.inv(oracle(features, head, votes) + ridge * np.eye(D)) @ x)
    assert found.standard_error(x) == pytest.approx(want, rel=1e-9)
    assert found.standard_error(x) < plain.standard_error(x)
    with pytest.raises(IdentifiabilityError):
        found.standard_error(np.eye(D)[0])


@given(judged_features(), st.sampled_from([3, 7, module.CHUNK]))
def test_clustered_errors_sum_gradients_by_cluster(case, chunk):
    """By loops, and whatever the chunks are that the comparisons are read in."""
    features, head, votes, rng = case
    cluster = rng.integers(-2, 3, E)
    meat = {}
    for e, d in enumerate(differences(features, votes)):
        p = 1 / (1 + np.exp(-d @ head))
        a, b = (float(votes.weight[e]) * float(x[e]) for x in (votes.wins_first, votes.wins_second))
        meat[cluster[e]] = meat.get(cluster[e], 0) + (a - (a + b) * p) * d
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "CHUNK", chunk)
        found = identify_head(features, votes, head=head, cluster=cluster)
    close(found.information, oracle(features, head, votes))
    want = sum(np.outer(g, g) for g in meat.values())
    np.testing.assert_allclose(found.gradients, want, rtol=0, atol=1e-11 * np.trace(want))
    if found.rank == D and found.eigenvalues[-1] > 1e-6 * found.eigenvalues[0]:
        x = rng.normal(size=(4, D))
        back = x @ np.linalg.inv(found.information)
        np.testing.assert_allclose(
            found.standard_error(x), np.sqrt(np.einsum("ki,ij,kj->k", back, want, back)), rtol=1e-7
        )


@given(judged_features())
def test_what_comparisons_cannot_see_has_no_standard_error(case):
    features, head, votes, rng = case
    features[:, 0] = 1.0
    found = identify_head(features, votes, head=head)
    seen = found.directions @ rng.normal(size=(found.rank, 1))
    direction = seen[:, 0] / np.linalg.norm(seen) * 3 + 4 * found.null_directions[:, 0]
    with pytest.raises(
        IdentifiabilityError, match=rf"direction=1, null_share=0\.[78].*rank={found.rank}, features={D}"
    ):
        found.standard_error(np.stack([seen[:, 0], direction]))
    assert found.null_share(direction) == pytest.approx(0.8, rel=1e-12)
    assert found.null_share(seen[:, 0]) <= 1e-12
    assert found.standard_error(np.zeros(D)) == 0


# Agresti 2002, table 10.11: errors of contrasts with Baltimore, and of scores that sum to 0 (by inversion of the
# information at 40 digits); eigenvalues of the information.
BASEBALL_ERRORS = [0.3338782070, 0.3318766727, 0.3395685064, 0.3432559816, 0.3358609225, 0.3366694014]
BASEBALL_CENTRED = [0.232462, 0.200919, 0.205044, 0.204157, 0.207419, 0.201604, 0.202062]
BASEBALL_EIGENVALUES = [21.42827113, 21.33090416, 21.08150470, 20.69044017, 20.12624818, 15.71695102, 0]
# The same with gradients of single games, by arena-rank 0.1.1, which adds 1e-5 to the mean information.
BASEBALL_SANDWICH = [0.228407, 0.193735, 0.213988, 0.207628, 0.207620, 0.205743, 0.195049]


def test_one_feature_per_response_is_the_laplacian_of_the_graph():
    found = identify_head(np.eye(7), Comparisons.from_wins(BASEBALL), head=BASEBALL_FIT)
    assert found.rank == 6
    np.testing.assert_allclose(np.abs(found.null_directions[:, 0]), 7**-0.5, rtol=1e-12)
    np.testing.assert_allclose(found.eigenvalues, BASEBALL_EIGENVALUES, rtol=0, atol=5e-9)
    np.testing.assert_array_equal(found.standard_error(np.eye(7)[1:] - np.eye(7)[0]).round(10), BASEBALL_ERRORS)
    np.testing.assert_array_equal(found.standard_error(np.eye(7) - 1 / 7).round(6), BASEBALL_CENTRED)
    with pytest.raises(IdentifiabilityError, match=r"null_share=0\.37796"):  # 1 / √7: a level
        found.standard_error(np.eye(7)[0])


def test_clustered_by_game_the_errors_of_baseball_are_those_of_a_sandwich():
    i, j = np.nonzero(BASEBALL)
    games = BASEBALL[i, j]
    single = Comparisons.from_pairs(i.repeat(games), j.repeat(games), np.zeros(7))
    ridge = 1e-5 * games.sum()
    found = identify_head(np.eye(7), single, head=BASEBALL_FIT, ridge=ridge, cluster=np.arange(games.sum()))
    np.testing.assert_array_equal(found.standard_error(np.eye(7) - 1 / 7).round(6), BASEBALL_SANDWICH)


# What enters

PAIRS = Comparisons.from_votes([0, 2], [1, 3], [2, 1], [1, 1], [0, 0, 1, 1])
STATES = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0], [0.0, 0.5]])


@pytest.mark.parametrize(
    ("optional", "what"),
    [
        ({"features": STATES[:3]}, "one row of features"),
        ({"features": STATES[:, 0]}, "one row of features"),
        ({"features": STATES[:, :0]}, "one row of features"),
        ({"features": STATES.astype(str)}, "one row of features"),
        ({"head": [1.0]}, "one weight per feature"),
        ({"head": ["a", "b"]}, "head holds numbers"),
        ({"head": [np.nan, 1.0]}, "comparison=0, margin=nan"),
        ({"margins": [1.0]}, "one margin per comparison"),
        ({"margins": [0.0, np.inf]}, "comparison=1, margin=inf"),
        ({"head": [1.0, 1.0], "margins": [1.0, 1.0]}, "`head` or `margins`"),
        ({"ridge": -1.0}, "ridge"),
        ({"tolerance": np.nan}, "tolerance"),
        ({"cluster": [0, 1]}, "need the head that was fitted"),
        ({"cluster": [0], "head": [1.0, 1.0]}, "one cluster per comparison"),
        ({"cluster": ["a", "b"], "head": [1.0, 1.0]}, "whole numbers"),
        ({"features": np.where(np.eye(4, 2), np.nan, STATES)}, "response=0, feature=0, value=nan"),
    ],
)
def test_what_does_not_fit_is_refused(optional, what):
    with pytest.raises(DataError, match=what):
        identify_head(**{"features": STATES, "comparisons": PAIRS} | optional)


def test_no_votes_and_unset_ties_are_refused():
    with pytest.raises(DataError, match="no comparison counts a vote"):
        identify_head(STATES, dataclasses.replace(PAIRS, weight=np.zeros(2, np.float32)))
    tied = dataclasses.replace(PAIRS, ties=np.ones(2, np.float32))
    with pytest.raises(DataError, match="ties=2"):
        identify_head(STATES, tied)
    halves, dropped = (identify_head(STATES, tied, ties=ties).information for ties in ("half", "drop"))
    assert np.trace(halves) > np.trace(dropped)


@pytest.mark.parametrize("direction", [[1.0], 1.0, [1.0, np.nan], ["a", "b"]])
def test_a_direction_that_is_none_is_refused(direction):
    with pytest.raises(DataError, match="direction"):
        identify_head(STATES, PAIRS).standard_error(direction)


def test_features_that_never_differ_have_rank_0():
    found = identify_head(np.ones((4, 2)), PAIRS)
    assert found.rank == 0
    with pytest.raises(IdentifiabilityError, match=r"null_share=1\.0, rank=0"):
        found.standard_error([1.0, 0.0])


def test_whole_numbers_are_features_too():
    close(identify_head((2 * STATES).astype(int), PAIRS).information, identify_head(2 * STATES, PAIRS).information)
