"""Stochastic transitivity of judged triples: how many break it, how sure that is, and which."""

from __future__ import annotations

import dataclasses
import itertools
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from rmjax.comparisons import Comparisons, Ties
from rmjax.errors import DataError
from rmjax.identifiability.tally import Tally, tally
from rmjax.identifiability.triangles import triangle_blocks

LEVEL = 0.95
# Shares are quotients of sums of votes: what is nearer to one half, or to another share, is rounding.
TOLERANCE = 1e-9
Leads: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray]  # shares less one half around triples, sorted, each [T]


@dataclasses.dataclass(frozen=True)
class Violations:
    """Triples that break one kind of transitivity."""

    count: int  # triples whose observed shares break it
    share: float  # of the judged triples; NaN where there are none
    lower: float  # share of triples that break it whatever the true shares are, within their intervals
    upper: float  # share of triples that may break it


@dataclasses.dataclass(frozen=True)
class Triple:
    """Items a, b, c with a over b and b over c by majority, or in a tie, and their shares."""

    items: tuple[int, int, int]
    shares: tuple[float, float, float]  # of a against b, b against c, a against c
    shortfall: float  # how far the last is below the larger of the first two


@dataclasses.dataclass(frozen=True)
class Transitivity:
    """Weak, moderate and strong stochastic transitivity of the triples of which all three pairs were judged."""

    triples: int
    weak: Violations
    moderate: Violations
    strong: Violations
    cyclic: np.ndarray  # [M, 3] int32, items a over b over c over a, as many as were asked for
    num_cyclic: int  # all of them
    worst: Triple | None  # the triple that breaks strong transitivity most, if any does
    level: float  # of the intervals


@dataclasses.dataclass(frozen=True)
class Expected:
    """Violations among triples under scores: a mean over drawn votes, and the chance of as many as observed."""

    mean: float  # triples
    at_least: float  # share of the draws with no fewer than observed, the observed votes counted as one draw


@dataclasses.dataclass(frozen=True)
class ExpectedViolations:
    """What the counts of `transitivity` would be if the scores were the truth and votes were drawn from them."""

    weak: Expected
    moderate: Expected
    strong: Expected
    replicates: int


def transitivity(
    comparisons: Comparisons,
    *,
    ties: Ties | None = None,
    tolerance: float = TOLERANCE,
    level: float = LEVEL,
    max_cyclic: int = 1000,
) -> Transitivity:
    r"""Count the triples that break weak, moderate and strong stochastic transitivity.

    Whenever $p_{ab} \ge 1/2$ and $p_{bc} \ge 1/2$, transitivity asks that

    $$p_{ac} \ge \tfrac12 \;(\text{weak}), \qquad p_{ac} \ge \min(p_{ab}, p_{bc}) \;(\text{moderate}), \qquad
      p_{ac} \ge \max(p_{ab}, p_{bc}) \;(\text{strong}).$$

    A triple breaks one of them if any order of its items does. Bradley-Terry implies the strong one. Shares that are
    estimated break it by chance, most of all between items of like quality: a count alone is no evidence. So `lower`
    and `upper` come from Clopper-Pearson intervals of all pairs together, at the level by Bonferroni: with at least
    that probability every true share lies in its interval, and then the true number of violations lies between the
    triples that break it for all shares within them and those that do for some. This holds for any dependence between
    pairs and triples, for independent votes within a pair, and is wide where pairs have few votes.
    `transitivity_under` gives the number that scores would lead one to expect.

    Guarantees: lower <= share <= upper; weak <= moderate <= strong; exact Bradley-Terry shares break none; relabelling
    and turning sides change no count.

    Args:
        comparisons: the judged pairs.
        ties: "half" counts a tie as half a vote for either side, "drop" leaves it out.
        tolerance: a share this near to one half is one half, and a violation is by more than this. Probabilities in
            float32 need 1e-6.
        level: probability that all three intervals hold.
        max_cyclic: how many cyclic triples are listed.

    Returns:
        Counts, shares with their intervals, the worst triple and the cyclic ones. Where no triple was judged, shares
        are NaN.

    Raises:
        DataError: as `tally`, or a level outside (0, 1), or a tolerance or limit that is negative.

    Example:
        >>> circle = Comparisons.from_votes([0, 1, 2], [1, 2, 0], [80, 80, 80], [20, 20, 20], prompt=[0, 0, 0])
        >>> result = transitivity(circle)
        >>> result.triples, result.weak.count, result.weak.lower, result.cyclic.tolist()
        (1, 1, 1.0, [[0, 1, 2]])

    Reference:
        David, The Method of Paired Comparisons, 1988; Clopper and Pearson, Biometrika 1934.
    """
    _check_options(tolerance, level, max_cyclic)
    votes = tally(comparisons, ties)
    lead = _lead(votes.wins_first, votes.wins_second, tolerance)
    least, most = _intervals(votes, 1 - level)
    least, most = np.minimum(least, lead), np.maximum(most, lead)
    triples, counts = 0, np.zeros((3, 3), np.int64)
    cyclic, num_cyclic = [np.zeros((0, 3), np.int32)], 0
    worst, deepest = None, -np.inf
    for rows in triangle_blocks(votes.first, votes.second, votes.num_items):
        seen, low, high = _around(lead, lead, rows), _around(least, most, rows), _around(most, least, rows)
        broken = _either(_broken(seen, tolerance))
        # Violations one way round are an upper set of the leads around a triple, and the other way a lower set.
        (low_one, low_other), (high_one, high_other) = _broken(low, tolerance), _broken(high, tolerance)
        for row, kinds in enumerate((broken, _either((low_one, high_other)), _either((high_one, low_other)))):
            counts[row] += [np.count_nonzero(kind) for kind in kinds]
        triples += len(rows[0])
        circles = np.flatnonzero((seen[0] > 0) | (seen[2] < 0))
        cyclic.append(_circles(votes, lead, rows, circles[: max(0, max_cyclic - num_cyclic)]))
        num_cyclic += len(circles)
        if broken[2].any():
            at = np.flatnonzero(broken[2])
            depth = _depth((seen[0][at], seen[1][at], seen[2][at]))
            if depth.max() > deepest:
                deepest, worst = float(depth.max()), _items(votes, rows, at[[depth.argmax()]])[0]
    return Transitivity(
        triples,
        *(_violations(counts[:, kind], triples) for kind in range(3)),
        cyclic=np.concatenate(cyclic),
        num_cyclic=num_cyclic,
        worst=None if worst is None else _triple(votes, lead, worst),
        level=level,
    )


def transitivity_under(
    comparisons: Comparisons,
    scores: ArrayLike,
    *,
    seed: int,
    ties: Ties | None = None,
    replicates: int = 200,
    tolerance: float = TOLERANCE,
) -> ExpectedViolations:
    r"""Violations to expect by chance if scores were the truth, on the same pairs with the same numbers of votes.

    $$W_{ij} \sim \text{Binomial}(n_{ij},\; \sigma(r_i - r_j))$$

    With the Bradley-Terry estimate of the data this is a parametric bootstrap of the best scalar. Many more violations
    observed than expected speak against any scalar; as many do not.

    Guarantees: reproducible from the seed; one constant per prompt changes nothing.

    Args:
        comparisons: the judged pairs; votes of a pair add up to a whole number.
        scores: one score per response, in logits, such as those of a fit.
        seed: of the draws.
        ties: "half" counts a tie as half a vote for either side, "drop" leaves it out.
        replicates: number of draws.
        tolerance: as in `transitivity`.

    Returns:
        For each kind of transitivity the mean count, and how often it was at least the observed one.

    Raises:
        DataError: as `transitivity`; there is not one score per response, a judged item has none that is finite, votes
            of a pair are not whole, or `replicates` is not positive.

    Example:
        >>> circle = Comparisons.from_votes([0, 1, 2], [1, 2, 0], [80, 80, 80], [20, 20, 20], prompt=[0, 0, 0])
        >>> transitivity_under(circle, [0.0, 0.0, 0.0], seed=0).strong.mean > 0.5
        True

    Reference:
        Davison and Hinkley, Bootstrap Methods and their Application, 1997, section 4.2.
    """
    _check_options(tolerance, LEVEL, 0)
    if replicates < 1:
        raise DataError("there is at least one replicate", {"replicates": replicates}, "Ask for 200, say.")
    votes = tally(comparisons, ties)
    number = votes.votes
    score = _scores(scores, votes)
    part = np.flatnonzero(number != np.floor(number))
    if len(part):
        p = int(part[0])
        raise DataError(
            "votes that are drawn anew are whole",
            {"first": int(votes.first[p]), "second": int(votes.second[p]), "votes": float(number[p])},
            "Give counts of votes, and no weights.",
        )
    chance = special.expit(score[votes.first] - score[votes.second])
    rng = np.random.default_rng(seed)
    drawn = [rng.binomial(number.astype(np.int64), chance) for _ in range(replicates)]
    counts = np.zeros((replicates + 1, 3), np.int64)
    for rows in triangle_blocks(votes.first, votes.second, votes.num_items):
        for draw, won in enumerate([votes.wins_first, *drawn]):
            lead = _lead(won, number - won, tolerance)
            broken = _either(_broken(_around(lead, lead, rows), tolerance))
            counts[draw] += [np.count_nonzero(kind) for kind in broken]
    means, as_many = counts[1:].mean(axis=0), (counts >= counts[0]).mean(axis=0)
    return ExpectedViolations(*(Expected(float(m), float(p)) for m, p in zip(means, as_many)), replicates=replicates)


def _lead(won: np.ndarray, lost: np.ndarray, tolerance: float) -> np.ndarray:
    """Share of the first less one half, [P]. Equal shares of whole votes are equal: one division rounds."""
    lead = (won - lost) / (won + lost) / 2
    return np.where(np.abs(lead) <= tolerance, 0, lead)


def _around(ahead: np.ndarray, back: np.ndarray, rows: tuple[np.ndarray, ...]) -> Leads:
    """Leads of i over j, j over k and k over i, sorted; the last is read from (i, k), in the other direction."""
    ij, jk, ik = rows
    one, two, three = ahead[ij], ahead[jk], -back[ik]
    low, high = np.minimum(one, two), np.maximum(one, two)
    return np.minimum(low, three), np.maximum(low, np.minimum(high, three)), np.maximum(high, three)


def _broken(around: Leads, tolerance: float) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Which triples break weak, moderate and strong transitivity when read one way round, and the other.

    Two leads that are not negative are the premise, and minus the third is what it asks for. Where all three are not,
    any is the third: of the sums with what it must not fall short of, the largest decides.
    """

    def read(low: np.ndarray, middle: np.ndarray, high: np.ndarray) -> list[np.ndarray]:
        circle, premise = low >= 0, middle >= 0
        return [
            circle & (high > tolerance),
            premise & (low + np.where(circle, high, middle) > tolerance),
            premise & (high + np.where(circle, middle, low) > tolerance),
        ]

    low, middle, high = around
    return read(low, middle, high), read(-high, -middle, -low)


def _either(ways: tuple[list[np.ndarray], list[np.ndarray]]) -> list[np.ndarray]:
    return [one | other for one, other in zip(*ways)]


def _depth(around: Leads) -> np.ndarray:
    """By how much triples that break strong transitivity break it, [T]."""
    low, middle, high = around

    def read(low: np.ndarray, middle: np.ndarray, high: np.ndarray) -> np.ndarray:
        return np.where(middle >= 0, high + np.where(low >= 0, middle, low), -np.inf)

    return np.maximum(read(low, middle, high), read(-high, -middle, -low))


def _intervals(votes: Tally, alpha: float) -> tuple[np.ndarray, np.ndarray]:
    """Clopper-Pearson intervals of all leads, which hold together with probability 1 - alpha."""
    won, lost = votes.wins_first, votes.wins_second
    tail = alpha / 2 / max(1, len(won))

    def lower(hits: np.ndarray, misses: np.ndarray) -> np.ndarray:
        return np.where(hits > 0, special.betaincinv(np.where(hits > 0, hits, 1), misses + 1, tail), 0)

    return lower(won, lost) - 0.5, 0.5 - lower(lost, won)


def _violations(counts: np.ndarray, triples: int) -> Violations:
    share, lower, upper = (float(n) / triples if triples else float("nan") for n in counts)
    return Violations(int(counts[0]), share, lower, upper)


def _items(votes: Tally, rows: tuple[np.ndarray, ...], at: np.ndarray) -> np.ndarray:
    """Items i < j < k of triples, [M, 3]."""
    ij, jk, _ = rows
    return np.stack([votes.first[ij[at]], votes.second[ij[at]], votes.second[jk[at]]], axis=1)


def _circles(votes: Tally, lead: np.ndarray, rows: tuple[np.ndarray, ...], at: np.ndarray) -> np.ndarray:
    """Items of cyclic triples, each over the next and the last over the first, [M, 3]."""
    items = _items(votes, rows, at)
    return np.where(lead[rows[0][at], None] > 0, items, items[:, [0, 2, 1]])


def _triple(votes: Tally, lead: np.ndarray, items: np.ndarray) -> Triple:
    """The order of three items that falls shortest of strong transitivity."""
    ahead = {}
    for i, j in itertools.combinations(items.tolist(), 2):
        p = int(np.flatnonzero((votes.first == i) & (votes.second == j))[0])
        ahead[i, j], ahead[j, i] = float(lead[p]), -float(lead[p])
    orders = [
        (max(ahead[a, b], ahead[b, c]) - ahead[a, c], (a, b, c))
        for a, b, c in itertools.permutations(items.tolist())
        if ahead[a, b] >= 0 and ahead[b, c] >= 0
    ]
    shortfall, (a, b, c) = max(orders)
    return Triple((a, b, c), (0.5 + ahead[a, b], 0.5 + ahead[b, c], 0.5 + ahead[a, c]), shortfall)


def _scores(scores: ArrayLike, votes: Tally) -> np.ndarray:
    """Scores in float64, finite where an item was judged."""
    try:
        score = np.asarray(scores, np.float64)
    except (ValueError, TypeError):  # words, or rows of different lengths
        score = np.zeros(())
    if score.shape != (votes.num_items,):
        raise DataError(
            "there is one score per response",
            {"scores": score.shape, "responses": votes.num_items},
            "Score every response once, in the order of `comparisons.prompt`.",
        )
    judged = np.concatenate([votes.first, votes.second])
    bad = judged[~np.isfinite(score[judged])]
    if len(bad):
        raise DataError(
            "an item that was judged has no finite score",
            {"item": int(bad[0]), "score": float(score[bad[0]])},
            "Leave out its comparisons, or take a fit that exists, with a ridge for example.",
        )
    return score


def _check_options(tolerance: float, level: float, max_cyclic: int) -> None:
    if not 0 <= tolerance < 0.5:
        raise DataError("a tolerance is a small share", {"tolerance": tolerance}, "Choose one in [0, 0.5).")
    if not 0 < level < 1:
        raise DataError("a level is a probability", {"level": level}, "Choose one between 0 and 1, such as 0.95.")
    if max_cyclic < 0:
        raise DataError("the number to list is not negative", {"max_cyclic": max_cyclic}, "Ask for none with 0.")
