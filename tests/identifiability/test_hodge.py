"""Laws of the Hodge decomposition: three orthogonal parts, of which a scalar says the first."""

import dataclasses
import itertools

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmjax import Comparisons, losses
from rmjax.errors import DataError, IdentifiabilityError, SampleSizeError
from rmjax.identifiability import triangles
from rmjax.identifiability.hodge import hodge, hodge_flow
from rmjax.identifiability.triangles import triangle_blocks
from rmjax.preferences.published import BASEBALL, NETFLIX, SUSHI

EPS = float(np.finfo(np.float64).eps)
ITEMS = 9
ALL = np.array(list(itertools.combinations(range(ITEMS), 2)))
PARTS = ("gradient", "curl", "harmonic")


@jax.jit
def log_odds(d):
    """As the likelihood has them."""
    return losses.bradley_terry(-d) - losses.bradley_terry(d)


@st.composite
def flows(draw, complete=False):
    """Pairs of nine items, dense or sparse, with flows and with weights over up to four orders of magnitude."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    share = 1.0 if complete else draw(st.sampled_from([0.15, 0.4, 0.8]))
    chosen = rng.random(len(ALL)) < share
    chosen[rng.integers(len(ALL))] = True
    pairs = ALL[chosen]
    turned = rng.random(len(pairs)) < 0.5
    pairs = np.where(turned[:, None], pairs[:, ::-1], pairs)[rng.permutation(len(pairs))]
    weight = draw(st.sampled_from([1.0, 10.0, 1e4])) ** rng.random(len(pairs))
    return pairs[:, 0], pairs[:, 1], rng.normal(size=len(pairs)), weight


def inner(h, one, two):
    return (h.weight * one * two).sum()


def dense(h):
    """The three parts by projection with pseudo-inverses, in the coordinates sqrt(w) Y."""
    root = np.sqrt(h.weight)
    row = {pair: p for p, pair in enumerate(zip(h.first.tolist(), h.second.tolist()))}
    gradient = np.zeros((len(row), ITEMS))
    gradient[np.arange(len(row)), h.first] = root
    gradient[np.arange(len(row)), h.second] = -root
    triples = [
        t for t in itertools.combinations(range(ITEMS), 3) if all(p in row for p in itertools.combinations(t, 2))
    ]
    around = np.zeros((len(row), len(triples)))
    for t, (i, j, k) in enumerate(triples):
        around[row[i, j], t], around[row[j, k], t], around[row[i, k], t] = 1, 1, -1
    around /= root[:, None]
    y = root * h.flow
    parts = [m @ (np.linalg.pinv(m, rcond=1e-10) @ y) if m.size else 0 * y for m in (gradient, around)]
    return triples, [part / root for part in (*parts, y - sum(parts))]


# The decomposition


@given(flows())
def test_the_parts_are_orthogonal_and_add_up(drawn):
    h = hodge_flow(*drawn, ITEMS)
    for one, two in itertools.combinations(PARTS, 2):
        assert abs(inner(h, getattr(h, one), getattr(h, two))) <= 1e-12 * h.energy
    np.testing.assert_allclose(h.gradient + h.curl + h.harmonic, h.flow, atol=1e-12)
    total = h.gradient_energy + h.curl_energy + h.harmonic_energy
    assert total == pytest.approx(h.energy, rel=1e-12)
    assert h.energy == pytest.approx((drawn[3] * drawn[2] ** 2).sum(), rel=1e-14)
    assert 0 <= h.cyclicity_ratio <= 1 + 1e-12
    assert h.residual <= 1e-13


@given(flows())
def test_the_parts_are_projections(drawn):
    """Against pseudo-inverses over every triple of a loop. Their cut-off at 1e-10 is of the weights' 1e-4."""
    h = hodge_flow(*drawn, ITEMS)
    triples, parts = dense(h)
    for name, part in zip(PARTS, parts):
        np.testing.assert_allclose(getattr(h, name), part, atol=1e-9)
    assert h.triangles.tolist() == [list(t) for t in triples]
    flow = np.zeros((ITEMS, ITEMS))
    flow[h.first, h.second], flow[h.second, h.first] = h.flow, -h.flow
    want = [flow[i, j] + flow[j, k] + flow[k, i] for i, j, k in triples]
    np.testing.assert_allclose(h.triangle_curls, want, atol=8 * EPS)


@given(flows())
def test_the_potential_is_within_components_and_nan_where_nobody_judged(drawn):
    h = hodge_flow(*drawn, ITEMS)
    judged = np.isin(np.arange(ITEMS), drawn[:2])
    np.testing.assert_array_equal(np.isnan(h.potential), ~judged)
    np.testing.assert_array_equal(h.component < 0, ~judged)
    np.testing.assert_allclose(h.gradient, h.potential[h.first] - h.potential[h.second], atol=1e-12)
    assert (h.component[h.first] == h.component[h.second]).all()
    for c in set(h.component[judged].tolist()):
        assert abs(h.potential[h.component == c].sum()) <= 1e-12
    # The least-squares score: what is left has no divergence.
    rest = h.weight * (h.flow - h.gradient)
    divergence = np.bincount(h.first, rest, ITEMS) - np.bincount(h.second, rest, ITEMS)
    assert np.abs(divergence).max() <= 1e-11 * np.abs(h.weight * h.flow).max()


@given(flows(complete=True))
def test_a_graph_with_all_pairs_judged_has_no_harmonic_part(drawn):
    h = hodge_flow(*drawn, ITEMS)
    assert h.harmonic_energy <= 1e-20 * h.energy
    assert len(h.triangles) == 84


def test_a_graph_with_a_hole_has_a_harmonic_part():
    """The law above must be able to fail: a square of which no triple was judged."""
    h = hodge_flow([0, 1, 2, 3], [1, 2, 3, 0], [1, 1, 1, 1], [1, 1, 1, 1], 4)
    assert h.harmonic_energy == pytest.approx(4, rel=1e-14)


@given(flows(), st.integers(0, 2**32 - 1))
def test_relabelling_relabels_and_turning_a_pair_changes_nothing(drawn, seed):
    first, second, flow, weight = drawn
    h = hodge_flow(*drawn, ITEMS)
    new = np.random.default_rng(seed).permutation(ITEMS)
    other = hodge_flow(new[second], new[first], -flow, weight, ITEMS)
    np.testing.assert_allclose(other.potential[new], h.potential, atol=1e-12)
    for name in ("gradient_energy", "curl_energy", "harmonic_energy"):
        assert getattr(other, name) == pytest.approx(getattr(h, name), abs=1e-12 * h.energy)


@given(flows(), st.sampled_from([0.1, 7.0]))
def test_weights_may_be_scaled_and_a_scaled_flow_is_scaled(drawn, factor):
    first, second, flow, weight = drawn
    h = hodge_flow(*drawn, ITEMS)
    heavier = hodge_flow(first, second, flow, factor * weight, ITEMS)
    np.testing.assert_allclose(heavier.curl, h.curl, atol=1e-12)
    assert heavier.energy == pytest.approx(factor * h.energy, rel=1e-14)
    longer = hodge_flow(first, second, factor * flow, weight, ITEMS)
    np.testing.assert_allclose(longer.potential, factor * h.potential, rtol=1e-10, atol=1e-12)
    assert longer.cyclicity_ratio == pytest.approx(h.cyclicity_ratio, abs=1e-12)


# Votes


@st.composite
def fractional(draw):
    """Bradley-Terry probabilities as fractions of votes, in three prompts with scores of their own; and the scores."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scores = rng.normal(0, draw(st.sampled_from([0.1, 1.0, 3.0])), ITEMS)
    i, j = ALL[ALL[:, 0] // 3 == ALL[:, 1] // 3].T if draw(st.booleans()) else ALL.T
    prompt = np.arange(ITEMS) // 3 if len(i) < len(ALL) else np.zeros(ITEMS, int)
    chance = 1 / (1 + np.exp(scores[j] - scores[i]))
    return scores, Comparisons.from_votes(i, j, chance, 1 - chance, prompt, weight=rng.integers(1, 50, len(i)))


@given(fractional())
def test_exact_bradley_terry_votes_are_a_gradient_of_their_scores(drawn):
    """The votes are float32, so that log-odds are off by 2 of its ulp over the smaller share."""
    scores, c = drawn
    h = hodge(c)
    off = 2 * np.finfo(np.float32).eps / np.minimum(c.wins_first, c.wins_second).min()
    assert h.curl_energy + h.harmonic_energy <= off**2 * h.weight.sum()
    want = scores - np.array([scores[h.component == k].mean() for k in h.component])
    np.testing.assert_allclose(h.potential, want, atol=4 * off)


@given(flows(), st.sampled_from([0.1, 1.0, 100.0]), st.integers(0, 2**32 - 1))
def test_log_odds_of_a_scalar_have_no_cyclic_part(drawn, scale, seed):
    """In float64 and whatever the pairs and their weights: what is left is the square of rounding."""
    first, second, _, weight = drawn
    scores = np.random.default_rng(seed).normal(0, scale, ITEMS)
    with jax.enable_x64():
        odds = np.asarray(log_odds(scores[:, None] - scores))
    assert hodge_flow(first, second, odds[first, second], weight, ITEMS).cyclicity_ratio <= 1e-24


@given(flows())
def test_a_flow_that_is_no_gradient_is_seen(drawn):
    """The law above must be able to fail: a judged cycle is added to it."""
    first, second, _, weight = drawn
    score = np.linspace(-1, 1, ITEMS)
    h = hodge_flow(first, second, score[first] - score[second], weight, ITEMS)
    assert h.curl_energy + h.harmonic_energy <= 1e-24 * h.energy
    if len(h.triangles):
        i, j, _ = h.triangles[0]
        spoilt = h.flow + (h.first == i) * (h.second == j) * 1.0
        assert hodge_flow(h.first, h.second, spoilt, weight=h.weight, num_items=ITEMS).curl_energy > 1e-6


def test_drawn_bradley_terry_votes_have_cyclic_energy_by_chance():
    """Even skills: 4 a degree of freedom of the cycles, as a mean of 40 draws over 28 degrees; its sd is 0.17."""
    rng = np.random.default_rng(1)
    energies = []
    for _ in range(40):
        won = rng.binomial(1000, 0.5, len(ALL))
        h = hodge(Comparisons.from_votes(*ALL.T, won, 1000 - won, np.zeros(ITEMS, int)))
        energies.append(h.curl_energy + h.harmonic_energy)
    assert np.mean(energies) / (len(ALL) - ITEMS + 1) == pytest.approx(4, abs=0.7)


def test_what_a_pair_says_is_a_choice():
    c = Comparisons.from_votes([0, 1, 0], [1, 2, 2], [6, 1, 2], [2, 3, 2], prompt=[0, 0, 0], ties=[8, 0, 0])
    says = {name: hodge(c, flow=name, ties="drop").flow.tolist() for name in ("share", "sign")}
    assert says == {"share": [0.5, 0, -0.5], "sign": [1, 0, -1]}  # in the order (0, 1), (0, 2), (1, 2)
    np.testing.assert_allclose(hodge(c, ties="drop").flow, [np.log(3), 0, -np.log(3)], rtol=4 * EPS)
    halves = hodge(c, ties="half", smoothing=1)
    np.testing.assert_allclose(halves.flow, [np.log(11 / 7), 0, np.log(0.5)], rtol=4 * EPS)
    np.testing.assert_array_equal(halves.weight, [16, 4, 4])  # votes, without what smoothing adds


def test_infinite_log_odds_are_refused_with_the_pair_and_a_remedy():
    c = Comparisons.from_votes([0, 2, 2], [1, 1, 0], [1, 0, 3], [1, 4, 0], prompt=[0, 0, 0])
    with pytest.raises(IdentifiabilityError, match="first=0, second=2, wins_first=0, wins_second=3") as caught:
        hodge(c)
    assert caught.value.numbers["such_pairs"] == 2
    assert "smoothing" in caught.value.remedy
    for remedy in ({"smoothing": np.float32(0.5)}, {"flow": "share"}, {"flow": "sign"}):
        assert np.isfinite(hodge(c, **remedy).energy)


def test_votes_that_say_nothing_have_no_ratio():
    h = hodge(Comparisons.from_votes([0], [1], [3], [3], prompt=[0, 0]))
    assert h.energy == 0
    assert np.isnan(h.cyclicity_ratio)


# Published and worked numbers


def test_rock_paper_scissors_is_all_curl():
    h = hodge_flow([0, 1, 2], [1, 2, 0], [1, 1, 1], [1, 1, 1], 3)
    np.testing.assert_allclose(
        [h.energy, h.gradient_energy, h.curl_energy, h.harmonic_energy], [3, 0, 3, 0], atol=1e-14
    )
    np.testing.assert_allclose(h.triangle_curls, [3])


def test_a_mixed_flow_on_four_items():
    h = hodge_flow([0, 0, 0, 1, 1, 2], [1, 2, 3, 2, 3, 3], [2, 1, 3, 2, 2, 1], np.ones(6), 4)
    np.testing.assert_allclose(
        [h.energy, h.gradient_energy, h.curl_energy, h.harmonic_energy], [23, 20, 3, 0], atol=1e-12
    )
    np.testing.assert_allclose(h.potential, [1.5, 0.5, -0.5, -1.5], atol=1e-14)
    np.testing.assert_array_equal(h.triangles, [[0, 1, 2], [0, 1, 3], [0, 2, 3], [1, 2, 3]])
    np.testing.assert_array_equal(h.triangle_curls, [3, 1, -1, 1])


def test_published_votes_in_parts():
    """Computed by weighted least squares and, for baseball, at 40 digits; the tables are cited where they stand."""
    h = hodge(Comparisons.from_wins(BASEBALL))
    energies = [h.energy, h.gradient_energy, h.curl_energy, h.harmonic_energy]
    np.testing.assert_allclose(energies, [297.976473, 203.632749, 94.343724, 0], atol=5e-7)
    assert f"{h.cyclicity_ratio:.7f}" == "0.3166147"
    assert f"{hodge(Comparisons.from_wins(NETFLIX)).cyclicity_ratio:.7f}" == "0.0108187"
    assert f"{hodge(Comparisons.from_wins(SUSHI)).cyclicity_ratio:.7f}" == "0.0438746"


# Triples


@pytest.mark.parametrize("way", ["table", "bisection", "blocks"])
@given(drawn=flows())
def test_every_judged_triple_comes_once(way, drawn):
    pairs = np.sort(np.stack(drawn[:2], axis=1))
    pairs = pairs[np.lexsort(pairs.T[::-1])]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(triangles, "_TABLE", 0 if way == "bisection" else 1 << 22)
        patch.setattr(triangles, "_BLOCK", 3 if way == "blocks" else 1 << 20)
        blocks = [np.stack(block) for block in triangle_blocks(*pairs.T, ITEMS)]
    rows = np.concatenate(blocks, axis=1)
    got = [pairs[rows[k]].tolist() for k in range(3)]
    known = set(map(tuple, pairs.tolist()))
    triples = [t for t in itertools.combinations(range(ITEMS), 3) if known.issuperset(itertools.combinations(t, 2))]
    want = [([i, j], [j, k], [i, k]) for i, j, k in triples]
    assert sorted(zip(*got)) == sorted(want)


def test_more_triples_than_the_limit_are_refused_before_they_are_solved():
    args = (*ALL.T, np.ones(len(ALL)), np.ones(len(ALL)), ITEMS)
    assert len(hodge_flow(*args, max_triangles=84).triangles) == 84
    with pytest.raises(SampleSizeError, match="max_triangles=83"):
        hodge_flow(*args, max_triangles=83)


def test_an_item_that_met_everybody_makes_no_work():
    """A star of 3,000: by its centre it has 4.5 million paths of two pairs, and by its ends none."""
    leaves = np.arange(1, 3000)
    zeros = np.zeros_like(leaves)
    h = hodge_flow(zeros, leaves, leaves * 1.0, np.ones(2999), 3000)
    assert h.gradient_energy == pytest.approx(h.energy, rel=1e-12)
    blocks = [np.stack(block) for block in triangle_blocks(leaves - 1 - (leaves - 1), leaves, 3000)]
    assert len(blocks) == 1
    assert blocks[0].size == 0


# Refusals


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"first": [0, 3]}, "out of range.*pair=1"),
        ({"second": [-1, 2]}, "out of range.*pair=0"),
        ({"second": [1, 1]}, "with itself.*pair=1"),
        ({"first": [0, 1], "second": [1, 0]}, "stands twice.*pair=1"),
        ({"flow": [np.nan, 1]}, "flow of a pair is finite.*pair=0"),
        ({"weight": [1, 0]}, "weight of a pair is positive.*pair=1"),
        ({"weight": [np.inf, 1]}, "weight of a pair is positive.*pair=0"),
        ({"weight": [1]}, "one flow and one weight a pair"),
        ({"flow": ["a", "b"]}, "one flow and one weight a pair"),
        ({"first": [[0], [1]], "second": [[1], [2]]}, "one flow and one weight a pair"),
    ],
)
def test_a_flow_that_cannot_be_is_refused(change, message):
    args = {"first": [0, 1], "second": [1, 2], "flow": [1.0, 1.0], "weight": [1.0, 1.0], "num_items": 3}
    assert hodge_flow(**args).energy == 2
    with pytest.raises(DataError, match=message):
        hodge_flow(**args | change)


@pytest.mark.parametrize("smoothing", [-1, np.nan, np.inf, "half", None])
def test_a_smoothing_that_is_no_number_of_votes_is_refused(smoothing):
    with pytest.raises(DataError, match="smoothing"):
        hodge(Comparisons.from_wins(BASEBALL), smoothing=smoothing)


def test_an_unknown_flow_and_no_votes_are_refused():
    c = Comparisons.from_wins(BASEBALL)
    with pytest.raises(DataError, match="flow is a choice"):
        hodge(c, flow="odds")
    with pytest.raises(SampleSizeError, match="no pair has votes"):
        hodge(dataclasses.replace(c, weight=0 * c.weight))
