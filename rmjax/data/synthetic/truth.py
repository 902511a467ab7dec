"""What the truth itself would score against the votes: the bar that no model of the synthetic world can pass."""

from __future__ import annotations

import dataclasses

import numpy as np

from rmjax.data.dataset import PreferenceData
from rmjax.data.synthetic.make import SyntheticData
from rmjax.errors import DataError


@dataclasses.dataclass(frozen=True)
class Bayes:
    """The best predictor of single deciding votes, who knows the rewards, tastes and rates but not which sides flipped.

    Ties and abstentions are not votes here. `accuracy` and `nll` are against the votes that were cast; the expected
    ones average over the votes that could have been.
    """

    accuracy: float
    nll: float  # nats per vote
    expected_accuracy: float
    expected_nll: float
    votes: int


def bayes(made: SyntheticData, part: PreferenceData | None = None) -> Bayes:
    r"""Accuracy and negative log-likelihood of the true probabilities.

    $$p = (1 - \epsilon)\,\sigma(\Delta) + \epsilon\,\sigma(-\Delta)$$

    Guarantees: no predictor that does not know the votes has a higher expected accuracy or a lower expected NLL.

    Args:
        made: the world with its truth.
        part: a subset of `made.data`, found again by its rows; all of it if absent.

    Returns:
        Means per deciding vote.

    Raises:
        DataError: `part` is not a part of this world, or nobody decided anything.

    Example:
        >>> from rmjax.data.synthetic import World, make
        >>> best = bayes(make(World(num_prompts=200)))
        >>> print(f"{best.expected_accuracy:.2f} of single votes, {best.expected_nll:.2f} nats")
        0.80 of single votes, 0.43 nats
    """
    data = made.data if part is None else part
    index = np.asarray(data.rows) - 1
    inside = (index >= 0) & (index < len(made.margin))
    if data.format != made.data.format or not inside.all():
        raise DataError(
            "these comparisons are not a part of that world",
            {"format": data.format, "rows": len(index), "outside": int((~inside).sum())},
            "Give a subset of `made.data`.",
        )
    first, second = (np.asarray(x, float) for x in (data.comparisons.wins_first, data.comparisons.wins_second))
    votes = first + second
    if not votes.sum():
        raise DataError("nobody decided anything", {"comparisons": len(index)}, "Ask more annotators, or lower ties.")
    with np.errstate(divide="ignore"):  # log 0 = -∞ is right where nothing or everything is flipped
        keep, flip = np.log1p(-made.world.flip_rate), np.log(made.world.flip_rate)
    margin = made.margin[index]
    log_sigmoid, log_sigmoid_minus = -np.logaddexp(0, -margin), -np.logaddexp(0, margin)
    log_p = np.logaddexp(keep + log_sigmoid, flip + log_sigmoid_minus)
    log_q = np.logaddexp(keep + log_sigmoid_minus, flip + log_sigmoid)
    p, q = np.exp(log_p), np.exp(log_q)
    decision = (1 + np.sign(log_p - log_q)) / 2  # 1 first, 0 second, 1/2 by coin
    return Bayes(
        accuracy=float((first * decision + second * (1 - decision)).sum() / votes.sum()),
        nll=float(-(first * log_p + second * log_q).sum() / votes.sum()),
        expected_accuracy=float((votes * np.maximum(p, q)).sum() / votes.sum()),
        expected_nll=float(-(votes * (p * log_p + q * log_q)).sum() / votes.sum()),
        votes=int(votes.sum()),
    )
