"""Laws of the gauge: what one constant per prompt, a positive scale, padding and a penalty do and do not change."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmjax.errors import DataError, GaugeError, IdentifiabilityError
from rmjax.identifiability.gauge import compare_levels, gauge_distance, gauge_fix, group_normalise, margin_between

N = 32
EPS = float(np.finfo(np.float32).eps)
NAMES = np.array([-7, 0, 3, 2**31 - 1], np.int32)  # prompts are any whole numbers but -1
seeds = st.integers(0, 2**32 - 1)

fix = jax.jit(gauge_fix)
fix_each = jax.jit(jax.vmap(gauge_fix, in_axes=(0, None)))
distance = jax.jit(gauge_distance)
normalise = jax.jit(group_normalise)
between = jax.jit(margin_between)
fix_slope = jax.jit(jax.grad(lambda r, x, v: (gauge_fix(r, x) * v).sum()))
distance_slope = jax.jit(jax.grad(gauge_distance))
normalise_slope = jax.jit(jax.grad(lambda r, x, v: (group_normalise(r, x) * v).sum()))
between_slope = jax.jit(jax.grad(lambda r, x, i, j: jnp.nan_to_num(margin_between(r, x, i, j)).sum()))


@st.composite
def worlds(draw, padding=True):
    """Float32 scores with a level and a spread of their own, prompts in any order, and a generator."""
    rng = np.random.default_rng(draw(seeds))
    spread = draw(st.sampled_from([1e-3, 1.0, 1e3]))
    level = draw(st.sampled_from([0.0, 1.0, 1e4]))
    prompt = rng.choice(NAMES, N)
    if padding:
        prompt[rng.random(N) < 0.2] = -1
    prompt[:2] = NAMES[0]  # there is always a margin
    scores = (level * rng.normal() + spread * rng.normal(size=N)).astype(np.float32)
    scores[0] = scores[1] + 2 * np.spacing(scores[1])
    return scores, prompt, rng


@st.composite
def exact_worlds(draw):
    """The same in eighths, so that float32 holds every sum and product below."""
    _, prompt, rng = draw(worlds())
    scores = rng.integers(-512, 512, N) / 8
    scores[0] = scores[1] + 1
    return scores.astype(np.float32), prompt, rng


def constants(prompt, rng, size=10_000):
    """A whole number for every prompt, handed to its responses."""
    return np.select([prompt == name for name in NAMES], rng.integers(-size, size, 4), 0).astype(np.float32)


def groups(prompt):
    return [np.flatnonzero(prompt == name) for name in NAMES if (prompt == name).any()]


def centred(scores, prompt):
    """In float64, prompt by prompt."""
    out = np.zeros(N)
    for members in groups(prompt):
        out[members] = scores[members].astype(np.float64) - scores[members].astype(np.float64).mean()
    return out


def spreads(scores, prompt):
    """Largest minus smallest score of the prompt, for every response."""
    out = np.zeros(N)
    for members in groups(prompt):
        out[members] = np.ptp(scores[members].astype(np.float64))
    return out


# gauge_fix


@given(worlds())
def test_scores_have_mean_zero_within_every_prompt_at_the_precision_of_their_differences(world):
    """A mean of levels in float32 would be off by the rounding of the level."""
    scores, prompt, _ = world
    got = np.asarray(fix(scores, prompt), np.float64)
    assert (np.abs(got - centred(scores, prompt)) <= (N + 4) * EPS * spreads(scores, prompt)).all()
    assert (got[prompt == -1] == 0).all()


@given(exact_worlds())
def test_one_constant_per_prompt_is_forgotten(world):
    scores, prompt, rng = world
    np.testing.assert_array_equal(fix(scores + constants(prompt, rng), prompt), fix(scores, prompt))


@given(worlds())
def test_margins_within_a_prompt_stay_and_fixing_twice_is_fixing_once(world):
    scores, prompt, _ = world
    fixed = np.asarray(fix(scores, prompt))
    for members in groups(prompt):
        wide = scores[members].astype(np.float64)
        margins, kept = wide[:, None] - wide, fixed[members].astype(np.float64)
        assert (np.abs(margins - (kept[:, None] - kept)) <= 4 * EPS * np.ptp(wide)).all()
    assert (np.abs(fix(fixed, prompt) - fixed) <= (N + 4) * EPS * spreads(scores, prompt)).all()


@given(worlds())
def test_the_gradient_of_fixing_is_fixing(world):
    """Centring is a symmetric projection; the reference that it subtracts has no derivative."""
    scores, prompt, rng = world
    v = rng.normal(size=N).astype(np.float32)
    got = np.asarray(fix_slope(scores, prompt, v), np.float64)
    assert (np.abs(got - centred(v, prompt)) <= (N + 4) * EPS * np.abs(v).max()).all()


def test_fixing_depends_on_who_is_there_and_so_is_no_part_of_scoring():
    alone = gauge_fix(np.array([3.0, 1.0, 8.0]), [0, 0, -1])
    together = gauge_fix(np.array([3.0, 1.0, 8.0]), [0, 0, 0])
    assert alone[0] != together[0]
    assert alone[0] - alone[1] == together[0] - together[1]


@given(worlds())
def test_a_batch_of_score_vectors_is_each_of_them(world):
    scores, prompt, rng = world
    batch = np.stack([scores, rng.permutation(scores)])
    got, bound = np.asarray(fix_each(batch, prompt)), (N + 4) * EPS * np.ptp(batch)
    np.testing.assert_allclose(got, [fix(r, prompt) for r in batch], rtol=0, atol=bound)


# Padding


@given(worlds(), st.sampled_from([np.inf, -np.inf, np.nan]))
def test_what_stands_in_padding_reaches_neither_values_nor_gradients(world, bad):
    scores, prompt, rng = world
    padding = prompt == -1
    spoilt = np.where(padding, np.float32(bad), scores)
    clean = np.where(padding, np.float32(0), scores)
    other, v = rng.normal(size=(2, N)).astype(np.float32)
    for of in (fix, normalise, distance, fix_slope, normalise_slope, distance_slope):
        more = {distance: (other, prompt), distance_slope: (other, prompt), fix: (prompt,), normalise: (prompt,)}
        arguments = more.get(of, (prompt, v))
        got = np.asarray(of(spoilt, *arguments))
        np.testing.assert_array_equal(got, of(clean, *arguments))
        assert np.isfinite(got).all()
        if got.shape:
            assert (got[padding] == 0).all()
    np.testing.assert_array_equal(gauge_fix(spoilt, prompt), gauge_fix(clean, prompt))  # and where values are seen


# gauge_distance


@given(exact_worlds(), st.sampled_from([0.25, 1.0, 3.0, 7.0]))
def test_a_constant_per_prompt_and_a_positive_scale_are_no_distance(world, scale):
    """Whole factors of eighths are exact, so that only the lengths round: the form √((1 - ρ)/2) is off by √ε."""
    scores, prompt, rng = world
    moved = np.float32(scale) * scores + constants(prompt, rng)
    assert 0 <= distance(scores, moved, prompt) <= N * EPS
    # A compiled program may round one of two equal products and not the other: ε/2 of every entry of a unit vector.
    assert 0 <= distance(scores, scores, prompt) <= EPS / 2


@given(worlds())
def test_the_opposite_model_is_at_distance_1(world):
    scores, prompt, _ = world
    assert abs(float(distance(scores, -scores, prompt)) - 1) <= N * EPS


@given(worlds())
def test_the_distance_is_that_of_the_correlation_of_centred_scores(world):
    scores, prompt, rng = world
    other = (scores + rng.choice([1e-3, 1.0, 1e3]) * rng.normal(size=N)).astype(np.float32)
    a, b = centred(scores, prompt), centred(other, prompt)
    rho = (a @ b) / np.sqrt((a @ a) * (b @ b))
    got = float(distance(scores, other, prompt))
    # ε of float64 under a root is 1.5e-8; what float32 does to the two directions is N ε.
    assert abs(got**2 - (1 - rho) / 2) <= 4 * N * EPS * got + (N * EPS) ** 2
    assert 0 <= got <= 1 + N * EPS


@given(worlds())
def test_the_distance_is_symmetric_and_has_the_triangle_inequality(world):
    a, prompt, rng = world
    b, c = (np.float32(x) for x in (a + rng.normal(size=N), rng.normal(size=N)))
    assert abs(distance(a, b, prompt) - distance(b, a, prompt)) <= EPS
    assert distance(a, c, prompt) <= distance(a, b, prompt) + distance(b, c, prompt) + 4 * EPS


def test_a_scale_for_every_prompt_is_a_distance():
    r, prompt = np.array([1.0, 0.0, 1.0, 0.0]), np.array([0, 0, 1, 1])
    assert gauge_distance(r, r * [1, 1, 9, 9], prompt) > 0.1


@given(worlds(padding=False))
def test_the_gradient_of_the_distance_is_its_slope_and_finite_where_there_is_none(world):
    _, prompt, rng = world
    a, b, along = rng.normal(size=(3, N))
    with jax.enable_x64():
        up, down = (float(distance(a + h * along, b, prompt)) for h in (1e-5, -1e-5))
        assert float(distance_slope(a, b, prompt) @ along) == pytest.approx((up - down) / 2e-5, rel=1e-5, abs=1e-8)
        # No longer than half a unit of the direction of a.
        at_0 = np.asarray(distance_slope(a, a, prompt))
        assert np.linalg.norm(at_0) * np.linalg.norm(centred(a, prompt)) <= 0.5 + 1e-9


def test_scores_without_differences_have_no_distance():
    flat, r, prompt = np.array([5.0, 5.0, 1.0]), np.array([1.0, 0.0, 0.0]), np.array([0, 0, 1])
    for pair in ((flat, r), (r, flat)):
        with pytest.raises(IdentifiabilityError, match="without differences within prompts"):
            gauge_distance(*pair, prompt)
        assert np.isnan(distance(*pair, prompt))


def test_the_unit_of_scores_is_free_down_to_the_smallest():
    """Squares of 1e-30 are 0 in float32."""
    r, prompt = np.array([1.0, 0.0, 2.0, 5.0], np.float32), np.zeros(4, np.int32)
    for unit in (1e-30, 1e30):
        assert distance(r * np.float32(unit), r, prompt) <= 4 * EPS
        np.testing.assert_allclose(normalise(r * np.float32(unit), prompt), normalise(r, prompt), rtol=8 * EPS)


# group_normalise


@given(worlds(), st.sampled_from([0.0, 1e-4, 1.0]))
def test_advantages_are_centred_scores_over_the_deviation_of_the_group(world, epsilon):
    scores, prompt, _ = world
    want = centred(scores, prompt)
    for members in groups(prompt):
        deviation = np.sqrt(np.square(want[members]).mean()) + epsilon
        want[members] /= deviation if deviation > 0 else 1
    got = group_normalise(scores, prompt, epsilon=epsilon)
    np.testing.assert_allclose(got, want, rtol=0, atol=2 * (N + 8) * EPS * np.abs(want).max())


@given(exact_worlds())
def test_a_constant_and_a_scale_of_every_prompt_change_no_advantage(world):
    scores, prompt, rng = world
    scale = 2.0 ** np.select([prompt == name for name in NAMES], rng.integers(-3, 4, 4), 0)
    moved = (scores * scale + constants(prompt, rng, size=1000)).astype(np.float32)  # sixty-fourths up to 2^10: exact
    np.testing.assert_array_equal(normalise(moved, prompt), normalise(scores, prompt))


@given(worlds())
def test_squares_average_to_1_in_groups_with_spread_and_others_are_0(world):
    scores, prompt, rng = world
    flat = groups(prompt)[-1]
    scores[flat] = scores[flat[0]]
    got = np.asarray(normalise(scores, prompt), np.float64)
    slope = np.asarray(normalise_slope(scores, prompt, rng.normal(size=N).astype(np.float32)))
    for members in groups(prompt):
        if np.ptp(scores[members]) > 0:
            assert np.square(got[members]).mean() == pytest.approx(1, abs=(N + 8) * EPS)
        else:
            assert (got[members] == 0).all()
            assert (slope[members] == 0).all()
    assert np.isfinite(slope).all()


def test_advantages_discard_scale():
    """A gap of one ulp is as loud as one of 10 logits, which is what a margin is not."""
    prompt = np.array([0, 0, 1, 1])
    loud, quiet = np.array([10.0, 0.0, 1.0, 0.0]), np.array([1.0, 0.0, 1000.0, np.nextafter(np.float32(1000), 0)])
    np.testing.assert_array_equal(group_normalise(loud, prompt), group_normalise(quiet, prompt))
    assert not np.array_equal(gauge_fix(loud, prompt), gauge_fix(quiet, prompt))


def test_with_epsilon_scale_matters_again():
    r, prompt = np.array([1.0, 0.0]), np.array([0, 0])
    assert group_normalise(r, prompt, epsilon=0.5)[0] == 0.5
    assert group_normalise(3 * r, prompt, epsilon=0.5)[0] == 0.75


@pytest.mark.parametrize("epsilon", [-1e-9, np.inf, np.nan])
def test_an_epsilon_that_is_none_is_refused(epsilon):
    with pytest.raises(DataError, match="epsilon"):
        group_normalise(np.array([1.0, 0.0]), [0, 0], epsilon=epsilon)


# margin_between


@given(worlds())
def test_a_margin_is_a_difference_within_a_prompt_and_nothing_across(world):
    scores, prompt, rng = world
    i, j = rng.integers(-2, N + 2, (2, N))
    inside = (np.minimum(i, j) >= 0) & (np.maximum(i, j) < N)
    x, y = (prompt[np.clip(k, 0, N - 1)] for k in (i, j))
    right = inside & (x == y) & (x != -1)
    got = np.asarray(between(scores, prompt, i, j))
    np.testing.assert_array_equal(got[right], scores[i[right]] - scores[j[right]])
    np.testing.assert_array_equal(between(scores, prompt, j, i), -got)
    assert np.isnan(got[~right]).all()
    slope = np.bincount(i[right], minlength=N) - np.bincount(j[right], minlength=N)
    np.testing.assert_array_equal(between_slope(scores, prompt, i, j), slope)
    i, j = np.where(right, i, 0), np.where(right, j, 0)
    np.testing.assert_array_equal(margin_between(scores, prompt, i, j), np.where(right, got, 0))


def test_two_prompts_have_no_margin():
    with pytest.raises(GaugeError, match=r"i=1, j=2, prompt_of_i=0, prompt_of_j=7") as caught:
        margin_between(np.array([1.0, 2.0, 3.0]), [0, 0, 7], [0, 1], [1, 2])
    assert "same prompt" in caught.value.remedy or "one prompt" in caught.value.remedy
    with pytest.raises(GaugeError):
        margin_between(np.array([1.0, 2.0]), [0, 1], 0, 1)


@pytest.mark.parametrize(
    ("i", "j", "what"),
    [(0, 3, "that there are"), (-1, 0, "that there are"), (2, 2, "that there are"), ([0, 1], [1], "two ends")],
)
def test_a_response_that_is_none_has_no_margin(i, j, what):
    with pytest.raises(DataError, match=what):
        margin_between(np.array([1.0, 2.0, 3.0]), [0, 0, -1], i, j)


# compare_levels


@given(worlds())
def test_levels_are_never_compared(world):
    scores, prompt, _ = world
    with pytest.raises(GaugeError, match="across prompts") as caught:
        compare_levels(scores, prompt)
    assert caught.value.numbers == {"responses": N, "prompts": len(groups(prompt))}
    with pytest.raises(GaugeError, match="across models") as caught:
        compare_levels(scores, prompt, other=-scores)
    assert "gauge_distance" in caught.value.remedy


def test_levels_are_not_compared_under_a_transformation_either():
    with pytest.raises(GaugeError):
        jax.jit(compare_levels)(np.zeros(2, np.float32), np.zeros(2, np.int32))


def trained(votes, weight):
    """Newton on Bradley-Terry of disjoint pairs plus weight · (r1 + r2)²; without it the Hessian has no inverse."""
    r = np.zeros(votes.shape)
    for _ in range(60):
        p = 1 / (1 + np.exp(r[:, 1] - r[:, 0]))
        pull = votes.sum(axis=1) * p - votes[:, 0]
        gradient = np.stack([pull, -pull], axis=1) + 2 * weight * r.sum(axis=1, keepdims=True)
        bend = (votes.sum(axis=1) * p * (1 - p))[:, None, None] * np.array([[1, -1], [-1, 1]]) + 2 * weight
        r = r - np.linalg.solve(bend, gradient[..., None])[..., 0]
    return r


@given(seeds)
def test_centring_pins_numbers_and_lifts_no_refusal(seed):
    """Two worlds whose rewards differ by a constant per prompt give the same votes, and so the same pinned numbers."""
    rng = np.random.default_rng(seed)
    votes = rng.integers(1, 9, (8, 2)).astype(float)
    pinned = trained(votes, 0.01)
    np.testing.assert_allclose(pinned[:, 0] - pinned[:, 1], np.log(votes[:, 0] / votes[:, 1]), rtol=0, atol=1e-12)
    np.testing.assert_allclose(pinned.sum(axis=1), 0, atol=1e-11)  # the penalty's choice, whatever the rewards were
    np.testing.assert_allclose(trained(votes, 10.0), pinned, rtol=0, atol=1e-11)
    with pytest.raises(np.linalg.LinAlgError):
        trained(np.ones((1, 2)), 0.0)
    with pytest.raises(GaugeError, match="no common zero") as caught:
        compare_levels(pinned.ravel(), np.repeat(np.arange(8), 2))
    assert "penalty pins these numbers" in caught.value.remedy


# What enters


@pytest.mark.parametrize(
    ("scores", "prompt"),
    [
        ([1.0, 2.0], [0]),
        ([[1.0, 2.0]], [[0, 0]]),
        ([], []),
        (["a", "b"], [0, 0]),
        ([1.0, 2.0], [0.5, 0.5]),
        ([1.0, 2.0], ["a", "a"]),
        ([1.0, np.nan], [0, 0]),
        ([np.inf, 1.0], [0, 0]),
    ],
)
@pytest.mark.parametrize("of", [gauge_fix, group_normalise, lambda r, x: gauge_distance(r, r, x)])
def test_scores_and_prompts_that_are_none_are_refused(of, scores, prompt):
    with pytest.raises(DataError):
        of(scores, prompt)


def test_the_first_score_that_is_not_finite_is_named():
    with pytest.raises(DataError, match=r"response=2, scores=nan, prompt=5"):
        gauge_fix(np.array([1.0, np.inf, np.nan]), [5, -1, 5])


def test_narrow_scores_are_widened():
    narrow = jnp.array([1.0, 0.0], jnp.bfloat16)
    assert {f(narrow, np.array([0, 0])).dtype for f in (gauge_fix, group_normalise)} == {jnp.dtype(jnp.float32)}
