"""Laws of stochastic transitivity: counts, their intervals, and what chance alone breaks."""

import dataclasses
import itertools

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmjax import Comparisons, losses
from rmjax.errors import DataError
from rmjax.identifiability import triangles
from rmjax.identifiability.tally import tally
from rmjax.identifiability.transitivity import _intervals, transitivity, transitivity_under
from rmjax.preferences.published import BASEBALL, NETFLIX, SUSHI

ITEMS = 7
EPS = float(np.finfo(np.float32).eps)
ALL = np.array(list(itertools.combinations(range(ITEMS), 2)))
KINDS = ("weak", "moderate", "strong")
seeds = st.integers(0, 2**32 - 1)

# Of Plackett-Luce, from the 5,000 orders.
SUSHI_FIT = [
    0.044603754166795205,
    0.48587320589115446,
    -0.12596919651008237,
    -0.24512636899699103,
    0.07139759208183567,
    -0.5408283622829035,
    1.0298710886412388,
    -0.018206299709295243,
    -0.9393079880374479,
    0.23769257475569597,
]


@jax.jit
def of_margins(d):
    """Log-odds as the likelihood has them, and chances."""
    return losses.bradley_terry(-d) - losses.bradley_terry(d), losses.probability(d)


@st.composite
def votes(draw, most=12):
    """Small whole votes on most pairs of seven items, so that ties, equal shares and cycles are frequent."""
    rng = np.random.default_rng(draw(seeds))
    i, j = ALL[rng.random(len(ALL)) < draw(st.sampled_from([0.5, 0.9, 1.0]))].T
    number = rng.integers(1, draw(st.sampled_from([1, 3, most])) + 1, len(i))
    won = rng.binomial(number, rng.beta(0.7, 0.7, len(i)))
    turned = rng.random(len(i)) < 0.5
    first, second = np.where(turned, j, i), np.where(turned, i, j)
    return Comparisons.from_votes(
        first, second, won, number - won, np.zeros(ITEMS, int), ties=rng.integers(0, 3, len(i))
    )


def shares(c, ties="drop"):
    p = np.full((ITEMS, ITEMS), np.nan)
    t = tally(c, ties)
    p[t.first, t.second], p[t.second, t.first] = t.share, t.wins_second / t.votes
    return p


def shortfalls(p, triple, slack=0.0):
    """By how much a triple misses each kind of transitivity, by its definition over six orders."""
    out = np.full(3, -np.inf)
    for a, b, c in itertools.permutations(triple):
        if p[a, b] >= 0.5 - slack and p[b, c] >= 0.5 - slack:
            asks = 0.5, min(p[a, b], p[b, c]), max(p[a, b], p[b, c])
            out = np.maximum(out, np.array(asks) - p[a, c])
    return out


def judged(p):
    return [
        t
        for t in itertools.combinations(range(ITEMS), 3)
        if not np.isnan([p[x] for x in itertools.combinations(t, 2)]).any()
    ]


def counts(result):
    return [getattr(result, kind).count for kind in KINDS]


# Counts


@given(votes(), st.sampled_from(["drop", "half"]))
def test_violations_are_those_of_the_definition(c, ties):
    """In whole votes equal shares are equal; the slack is for the rounding of 1 - share."""
    result, p = transitivity(c, ties=ties), shares(c, ties)
    triples = judged(p)
    want = np.sum([shortfalls(p, t, slack=1e-12) > 1e-9 for t in triples], axis=0) if triples else np.zeros(3)
    assert result.triples == len(triples)
    assert counts(result) == want.tolist()
    for kind, count in zip(KINDS, want):
        share = getattr(result, kind).share
        assert np.isnan(share) if not triples else share == count / len(triples)


@given(votes(), st.sampled_from([2, 1 << 15]))
def test_the_worst_triple_is_the_worst(c, block):
    """Also where the triples come in several blocks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(triangles, "_BLOCK", block)
        result, p = transitivity(c, ties="drop"), shares(c)
    depths = [shortfalls(p, t, slack=1e-12)[2] for t in judged(p)]
    if not depths or max(depths) <= 1e-9:
        assert result.worst is None
        return
    a, b, c = result.worst.items
    assert result.worst.shortfall == pytest.approx(max(depths), abs=1e-12)
    np.testing.assert_allclose(result.worst.shares, [p[a, b], p[b, c], p[a, c]], atol=1e-12)
    assert min(p[a, b], p[b, c]) >= 0.5 - 1e-12
    assert max(p[a, b], p[b, c]) - p[a, c] == pytest.approx(result.worst.shortfall, abs=1e-12)


@given(votes())
def test_cyclic_triples_are_listed_each_over_the_next(c):
    result, p = transitivity(c, ties="drop"), shares(c)
    beats = p > 0.5 + 1e-9
    want = {
        frozenset(t)
        for t in judged(p)
        if any(beats[a, b] and beats[b, d] and beats[d, a] for a, b, d in itertools.permutations(t))
    }
    assert {frozenset(t) for t in result.cyclic.tolist()} == want
    assert len(result.cyclic) == result.num_cyclic == len(want)
    for a, b, d in result.cyclic:
        assert beats[a, b]
        assert beats[b, d]
        assert beats[d, a]
    short = transitivity(c, ties="drop", max_cyclic=1)
    np.testing.assert_array_equal(short.cyclic, result.cyclic[:1])
    assert short.num_cyclic == len(want)


@given(votes(), seeds)
def test_relabelling_and_turning_sides_change_no_count(c, seed):
    new = np.random.default_rng(seed).permutation(ITEMS).astype(np.int32)
    other = dataclasses.replace(
        c, first=new[c.second], second=new[c.first], wins_first=c.wins_second, wins_second=c.wins_first
    )
    one, two = transitivity(c, ties="drop"), transitivity(other, ties="drop")
    for kind in KINDS:
        a, b = dataclasses.astuple(getattr(one, kind)), dataclasses.astuple(getattr(two, kind))
        np.testing.assert_array_equal(a, b)


@given(votes())
def test_a_kind_that_asks_for_more_is_broken_more_often(c):
    result = transitivity(c, ties="drop")
    for name in ("count", "lower", "upper"):
        values = [getattr(getattr(result, kind), name) for kind in KINDS]
        assert np.isnan(values).all() or values == sorted(values)


@given(seeds, st.sampled_from([0.05, 1.0, 4.0]))
def test_exact_bradley_terry_shares_are_strongly_transitive(seed, scale):
    """Two of the scores are equal. Shares of float32 are off by 6e-8, and 1 less one of them by as much."""
    scores = np.random.default_rng(seed).normal(0, scale, ITEMS)
    scores[1] = scores[0]
    i, j = ALL.T
    chance = 1 / (1 + np.exp(scores[j] - scores[i]))
    c = Comparisons.from_votes(i, j, chance, 1 - chance, np.zeros(ITEMS, int))
    result = transitivity(c, tolerance=1e-6)
    assert result.triples == 35
    assert counts(result) == [0, 0, 0]
    assert result.worst is None
    # And one share that no scores have is seen: the best item loses to the last by 9 to 1.
    best, last = scores.argmax(), scores.argmin()
    spoilt = np.where((i == best) & (j == last), 0.1, np.where((j == best) & (i == last), 0.9, chance))
    broken = transitivity(dataclasses.replace(c, wins_first=np.float32(spoilt), wins_second=np.float32(1 - spoilt)))
    assert broken.strong.count >= 5


@given(seeds, st.sampled_from([0.05, 1.0, 30.0, 1e4]))
def test_log_odds_of_a_scalar_add_up_and_its_chances_are_strongly_transitive(seed, scale):
    """Thousands of triples: ℓ(-Δ) - ℓ(Δ) from i to j to k is that from i to k, which is no less likely than either."""
    r = -np.sort(-np.random.default_rng(seed).normal(0, scale, (3, 4096)).astype(np.float32), axis=0)
    odds, chance = (np.asarray(x, np.float64) for x in of_margins(r[[0, 1, 0]] - r[[1, 2, 2]]))
    size = np.maximum(1, np.abs(odds)).sum(axis=0)
    assert (np.abs(odds[0] + odds[1] - odds[2]) <= 4 * EPS * size).all()
    assert (chance[:2] >= 0.5).all()
    assert (chance[2] >= chance[:2].max(axis=0) * (1 - 4 * EPS)).all()


def test_prompts_are_never_joined_into_triples():
    c = Comparisons.from_pairs([0, 1, 0, 3, 4], [1, 2, 2, 4, 5], prompt=[0, 0, 0, 1, 1, 1])
    assert transitivity(c).triples == 1


# Intervals


@given(votes())
def test_the_observed_share_lies_in_its_interval(c):
    result = transitivity(c, ties="drop")
    for kind in KINDS:
        v = getattr(result, kind)
        assert result.triples == 0 or 0 <= v.lower <= v.share <= v.upper <= 1


@given(votes(most=200), seeds)
def test_shares_within_their_intervals_break_no_more_and_no_fewer(c, seed):
    """Whatever the true shares are in there: random ones, and random corners of the box."""
    result, t = transitivity(c, ties="drop", level=0.5), tally(c, "drop")
    least, most = _intervals(t, 0.5)
    rng = np.random.default_rng(seed)
    for corner in (False, True):
        at = rng.random(len(least))
        truth = 0.5 + least + (most - least) * (np.round(at) if corner else at)
        p = np.full((ITEMS, ITEMS), np.nan)
        p[t.first, t.second], p[t.second, t.first] = truth, 1 - truth
        broken = [shortfalls(p, triple) > 1e-9 for triple in judged(p)]
        for kind, share in zip(KINDS, np.mean(broken, axis=0) if broken else ()):
            v = getattr(result, kind)
            assert v.lower - 1e-12 <= share <= v.upper + 1e-12


@given(votes(most=40))
def test_the_intervals_of_shares_are_of_clopper_and_pearson(c):
    """At the ends, so many votes or more, and so few or fewer, have the chance of one tail: by sums of binomials."""
    t = tally(c, "drop")
    least, most = _intervals(t, 0.1)
    tail = 0.1 / 2 / len(t.first)
    for a, b, low, high in zip(t.wins_first.astype(int), t.wins_second.astype(int), least + 0.5, most + 0.5):
        mass = lambda p, a=a, n=a + b: np.array([_choose(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)])  # noqa: E731
        assert low == 0 if a == 0 else mass(low)[a:].sum() == pytest.approx(tail, rel=1e-6)
        assert high == 1 if b == 0 else mass(high)[: a + 1].sum() == pytest.approx(tail, rel=1e-6)


def _choose(n, k):
    return float(np.prod(np.arange(n - k + 1, n + 1) / np.arange(1, k + 1)))


def test_the_intervals_hold_as_often_as_they_say():
    """Three hundred draws from shares of which 9 triples in 35 break strong transitivity, at a level of 80 %."""
    rng = np.random.default_rng(3)
    truth = np.clip(0.5 + 0.15 * np.sign(ALL[:, 1] - ALL[:, 0]) + rng.normal(0, 0.12, len(ALL)), 0.05, 0.95)
    exact = transitivity(Comparisons.from_votes(*ALL.T, truth, 1 - truth, np.zeros(ITEMS, int)), tolerance=1e-6)
    assert 0 < exact.strong.count < exact.triples
    held = 0
    for _ in range(300):
        won = rng.binomial(60, truth)
        drawn = transitivity(Comparisons.from_votes(*ALL.T, won, 60 - won, np.zeros(ITEMS, int)), level=0.8)
        held += all(getattr(drawn, k).lower <= getattr(exact, k).share <= getattr(drawn, k).upper for k in KINDS)
    assert held >= 0.8 * 300


# What chance breaks


def test_votes_drawn_from_scores_break_as_many_triples_as_expected():
    rng = np.random.default_rng(5)
    scores = np.linspace(1, -1, ITEMS)
    i, j = ALL.T
    chance = 1 / (1 + np.exp(scores[j] - scores[i]))
    want = transitivity_under(_drawn(rng, chance), scores, seed=1, replicates=400)
    seen = [counts(transitivity(_drawn(rng, chance))) for _ in range(400)]
    # Both are means of 400; twice the standard error of their difference.
    error = np.std(seen, axis=0) * np.sqrt(2 / 400)
    assert (np.abs([getattr(want, k).mean for k in KINDS] - np.mean(seen, axis=0)) <= 3 * error).all()


def _drawn(rng, chance):
    won = rng.binomial(12, chance)
    return Comparisons.from_votes(*ALL.T, won, 12 - won, np.zeros(ITEMS, int))


@given(votes(), seeds)
def test_one_seed_gives_one_answer_and_a_constant_cancels(c, seed):
    scores = np.random.default_rng(seed).integers(-4, 5, ITEMS) / 4  # so that the constant adds exactly
    one, two = (transitivity_under(c, s, seed=seed, ties="drop", replicates=3) for s in (scores, scores + 8))
    assert one == two
    for kind in KINDS:
        assert 0 < getattr(one, kind).at_least <= 1


def test_scores_that_leave_no_doubt_break_nothing():
    c = Comparisons.from_votes([0, 1, 0], [1, 2, 2], [5, 5, 0], [0, 0, 5], prompt=[0, 0, 0])
    result = transitivity_under(c, [2000.0, 1000.0, 0.0], seed=0, replicates=19)
    assert [getattr(result, k).mean for k in KINDS] == [0, 0, 0]
    assert result.weak.at_least == 1 / 20  # the observed circle itself


# Published numbers


def test_published_triples():
    """Sushi: 120 triples, weak and moderate hold, strong fails in 28. Netflix: four triples, none fails."""
    result = transitivity(Comparisons.from_wins(SUSHI))
    assert (result.triples, counts(result)) == (120, [0, 0, 28])
    assert result.num_cyclic == 0
    assert result.strong.lower > 0  # at a level of 95 %, some do fail
    netflix = transitivity(Comparisons.from_wins(NETFLIX))
    assert (netflix.triples, counts(netflix)) == (4, [0, 0, 0])


def test_sushi_breaks_more_than_the_best_scalar_explains():
    """The scores are the Plackett-Luce estimate of the same orders; they expect 3 or 4 violations and not 28."""
    expected = transitivity_under(Comparisons.from_wins(SUSHI), SUSHI_FIT, seed=0)
    assert expected.strong.mean == pytest.approx(3.5, abs=0.5)
    assert expected.strong.at_least == pytest.approx(1 / 201)


def test_equal_groups_with_turned_orders_are_a_circle():
    """Condorcet: ABC, BCA and CAB are transitive each, and pooled each beats the next by 2 to 1."""
    groups = [[0, 1, 2], [1, 2, 0], [2, 0, 1]]
    pairs = [(g[a], g[b]) for g in groups for a, b in ((0, 1), (0, 2), (1, 2))]
    result = transitivity(Comparisons.from_pairs(*np.transpose(pairs), prompt=[0, 0, 0]))
    assert counts(result) == [1, 1, 1]
    assert result.cyclic.tolist() == [[0, 1, 2]]
    assert result.worst.shortfall == pytest.approx(1 / 3)


# Refusals


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tolerance": -1e-9}, "tolerance"),
        ({"tolerance": np.nan}, "tolerance"),
        ({"tolerance": 0.5}, "tolerance"),
        ({"level": 1.0}, "level"),
        ({"level": 0.0}, "level"),
        ({"max_cyclic": -1}, "max_cyclic"),
    ],
)
def test_options_that_are_none_are_refused(options, message):
    with pytest.raises(DataError, match=message):
        transitivity(Comparisons.from_wins(BASEBALL), **options)


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (np.zeros(6), "one score per response"),
        (["a"] * 7, "one score per response"),
        ([0, 0, 0, np.nan, 0, 0, 0], "item=3"),
        ([0, 0, 0, 0, 0, np.inf, 0], "item=5"),
    ],
)
def test_scores_that_are_none_are_refused(scores, message):
    with pytest.raises(DataError, match=message):
        transitivity_under(Comparisons.from_wins(BASEBALL), scores, seed=0)


def test_votes_that_cannot_be_drawn_are_refused():
    half = Comparisons.from_votes([0, 0], [1, 2], [1, 1], [1, 0.5], prompt=[0, 0, 0])
    with pytest.raises(DataError, match=r"first=0, second=2, votes=1\.5"):
        transitivity_under(half, np.zeros(3), seed=0)
    with pytest.raises(DataError, match="replicate"):
        transitivity_under(Comparisons.from_wins(BASEBALL), np.zeros(7), seed=0, replicates=0)


def test_without_triples_there_are_no_shares():
    result = transitivity(Comparisons.from_pairs([0], [1], prompt=[0, 0]))
    assert (result.triples, counts(result), result.worst) == (0, [0, 0, 0], None)
    assert np.isnan([result.weak.share, result.strong.lower, result.moderate.upper]).all()
    assert transitivity(Comparisons.from_pairs([], [], prompt=[])).triples == 0
