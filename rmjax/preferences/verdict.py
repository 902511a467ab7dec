"""Whether a scalar can say what the votes say, and what it costs where it cannot."""

from __future__ import annotations

import dataclasses
from typing import Literal

import numpy as np
from scipy import special

from rmjax.comparisons import Comparisons, Ties
from rmjax.errors import DataError
from rmjax.identifiability.cycles import ScalarAccuracy, best_scalar_accuracy
from rmjax.identifiability.transitivity import Transitivity, transitivity
from rmjax.preferences.projection import Projection, project_to_bradley_terry

# Rounds in which the scores that votes are drawn from are brought to the spread of the observed.
_CALIBRATIONS = 6

_ROUNDING = 1e-9  # nats a vote

Answer = Literal["can", "not under this link", "cannot"]


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What the votes say of scalars as such, with the cost of one in nats and in accuracy."""

    answer: Answer
    deviance: float  # of the votes from the nearest Bradley-Terry model
    expected_deviance: float  # its mean if that model were the truth, over drawn votes
    p_value: float  # of a deviance as large, by the normal law of the drawn ones
    cost_in_nats: float  # per vote, beyond what chance alone would leave; not negative
    accuracy: ScalarAccuracy
    transitivity: Transitivity
    projection: Projection
    level: float
    replicates: int

    @property
    def cost_in_accuracy(self) -> float:
        """How much of the votes the best scores lose against the majority of every pair, at the least."""
        return self.accuracy.majority - self.accuracy.upper

    @property
    def sentence(self) -> str:
        """The verdict in words, with its numbers."""
        if self.answer == "can" and not self.projection.degrees_of_freedom:
            return "Nothing here speaks against a scalar: one says every share exactly."  # the deviance is rounding
        p = f"p = {self.p_value:.2g}" if self.p_value >= 1e-6 else "p < 1e-6"  # 40 draws say nothing of the far tail
        chance = f"{self.expected_deviance:.4g} expected under a scalar ({p})"
        told = f"deviance {self.deviance:.4g}, {chance}"
        cost = f"it costs {self.cost_in_nats:.4f} nats a vote and {self.cost_in_accuracy:.4f} of the accuracy"
        if self.answer == "can":
            return f"Nothing here speaks against a scalar: {told}."
        if self.answer == "cannot":
            share, triples = self.transitivity.strong.lower, self.transitivity.triples
            broken = "the only triple breaks" if triples == 1 else f"at least {share:.2%} of {triples} triples break"
            return f"A scalar cannot say this, whatever its link: {broken} strong transitivity; {told}; {cost}."
        return f"Bradley-Terry cannot say this, although another link might: {told}; {cost}."


def scalar_verdict(
    comparisons: Comparisons,
    *,
    ties: Ties | None = None,
    level: float = 0.95,
    replicates: int = 40,
    seed: int = 0,
) -> Verdict:
    r"""Say whether one score per item can have produced the votes.

    "cannot": some triples break strong stochastic transitivity wherever within their intervals the true shares lie, and
    every scalar under every increasing link obeys it. "not under this link": the deviance from the nearest
    Bradley-Terry model is larger than votes drawn from that model leave, by a one-sided test. "can": neither. Each of
    the two errs at half of what the level leaves, so that both together err as often as it says.

    The deviance has no known law where pairs have few votes, so votes are drawn from a scalar, projected anew, and the
    observed deviance is set against the mean and the deviation of theirs. The scalar is the nearest one, its scores
    shrunk until those of drawn votes spread as the observed do: with few votes an item, fitted scores spread too much.

    Guarantees: weight 0 is deletion; renaming items and turning sides change the sums by their rounding alone; shares
    of a scalar are never called otherwise by more than the level allows.

    Args:
        comparisons: the judged pairs; whole votes, since their number is what is drawn.
        ties: "half" counts a tie as half a vote for either side, "drop" leaves it out.
        level: of the verdict: one minus the chance that a scalar is called otherwise.
        replicates: how often votes are drawn; each costs a fit.
        seed: of the draws.

    Returns:
        The verdict with everything that it rests on.

    Raises:
        DataError: as `tally`; a level outside (0, 1); fewer than 2 replicates; votes of a pair that are not whole.

    Example:
        >>> circle = Comparisons.from_votes([0, 1, 2], [1, 2, 0], [80] * 3, [20] * 3, prompt=[0, 0, 0])
        >>> found = scalar_verdict(circle)
        >>> found.answer, round(found.accuracy.upper, 3), round(found.cost_in_accuracy, 3)
        ('cannot', 0.6, 0.2)

    Reference:
        Zermelo's model as an exponential family: Csiszár 1975; the parametric bootstrap: Efron and Tibshirani, An
        Introduction to the Bootstrap, 1993.
    """
    if not 0 < level < 1 or replicates < 2:
        raise DataError(
            "a level lies between 0 and 1, and a spread needs two draws",
            {"level": level, "replicates": replicates},
            "Choose a level such as 0.95 and 2 or more replicates.",
        )
    nearest = project_to_bradley_terry(comparisons, ties=ties)
    number = nearest.pairs.votes
    # Weights in float32 are whole to rounding; beyond 2^53 no count is.
    part = (np.abs(number - np.rint(number)) > 1e-6 * number) | (number > 2.0**53)
    if part.any():
        p = int(np.flatnonzero(part)[0])
        pair = {"first": int(nearest.pairs.first[p]), "second": int(nearest.pairs.second[p])}
        raise DataError(
            "votes that are drawn anew are whole, and no more than 2^53",
            pair | {"votes": float(number[p])},
            "Give counts of votes, and no weights; a fit without a verdict (--no-verdict) needs none that are whole.",
        )
    size = (1 - level) / 2
    triples = transitivity(comparisons, ties=ties, level=1 - size)
    drawn = _drawn_deviances(nearest, replicates, np.random.default_rng(seed))
    mean, spread = float(drawn.mean()), float(drawn.std(ddof=1))
    excess = nearest.deviance - mean
    votes = float(nearest.pairs.votes.sum())
    # A tree of comparisons is fitted to rounding, in truth and in every draw: rounding is no evidence.
    p_value = float(special.ndtr(-excess / max(spread, _ROUNDING * votes)))
    if triples.triples and triples.strong.lower > 0:
        answer: Answer = "cannot"
    else:
        answer = "not under this link" if p_value < size else "can"
    return Verdict(
        answer=answer,
        deviance=nearest.deviance,
        expected_deviance=mean,
        p_value=p_value,
        cost_in_nats=max(0.0, excess / 2 / votes),
        accuracy=best_scalar_accuracy(comparisons, ties=ties),
        transitivity=triples,
        projection=nearest,
        level=level,
        replicates=replicates,
    )


def _drawn_deviances(nearest: Projection, replicates: int, rng: np.random.Generator) -> np.ndarray:
    """Deviances of votes that were drawn from the nearest model, each from its own projection."""
    shrunk = _unspread(nearest, rng)
    return np.array([_redrawn(nearest, shrunk, rng).deviance for _ in range(replicates)])


def _unspread(nearest: Projection, rng: np.random.Generator) -> np.ndarray:
    """Margins [P] of scores so much smaller that those fitted to votes drawn from them spread as the observed do.

    With few votes an item, fitted scores spread more than the truth, and what is drawn from them is too easy to fit.
    """
    pairs = nearest.pairs
    label = nearest.identification.strong_components
    within = label[pairs.first] == label[pairs.second]
    margin = np.where(within, special.logit(np.clip(nearest.probability, 1e-300, 1 - 1e-16)), 0)
    observed, share = _spread(nearest), 1.0
    if not observed > 0:
        return np.where(within, margin, special.logit(pairs.share))
    for _ in range(_CALIBRATIONS):
        drawn = _spread(_redrawn(nearest, np.where(within, share * margin, special.logit(pairs.share)), rng))
        if not drawn > 0:
            break
        share = float(np.clip(share * observed / drawn, 0.05, 1.0))
    return np.where(within, share * margin, special.logit(pairs.share))


def _spread(projection: Projection) -> float:
    """Deviation of the finite scores; 0 where there are none."""
    scores = projection.scores[np.isfinite(projection.scores)]
    return float(scores.std()) if len(scores) else 0.0


def _redrawn(nearest: Projection, margin: np.ndarray, rng: np.random.Generator) -> Projection:
    """The projection of votes that were drawn at these margins."""
    pairs = nearest.pairs
    votes = np.rint(pairs.votes).astype(np.int64)
    wins = rng.binomial(votes, special.expit(margin))
    prompt = nearest.identification.prompt
    return project_to_bradley_terry(Comparisons.from_votes(pairs.first, pairs.second, wins, votes - wins, prompt))
