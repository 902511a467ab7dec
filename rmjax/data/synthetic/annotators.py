"""How the people of the synthetic world judge: Bradley-Terry with Davidson's ties, abstentions and exchanged sides."""

from __future__ import annotations

import dataclasses

import numpy as np

from rmjax.data.synthetic.world import World
from rmjax.votes import CANNOT_JUDGE, FIRST, SECOND, TIE


@dataclasses.dataclass(frozen=True)
class Judged:
    """The comparisons of one prompt and what was said of them."""

    first: np.ndarray  # [C], which of the prompt's answers
    second: np.ndarray  # [C]
    margin: np.ndarray  # [C], logit of the share of deciding annotators who choose the first
    flipped: np.ndarray  # [C] bool, sides were exchanged afterwards
    annotator: np.ndarray  # [C, V]
    value: np.ndarray  # [C, V], after the exchange


def taste(world: World, reward: np.ndarray, wording: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    r"""Log-odds with which an annotator who decides chooses the first.

    $$\Delta_e = (r_1 - r_2) / T + \kappa\, c(w_1, w_2), \qquad c(w, w + 1 \bmod 3) = 1 = -c(w + 1 \bmod 3, w)$$

    Guarantees: antisymmetric in the two answers; a difference of rewards where `cycle` is 0.

    Args:
        world: temperature T and cycle κ.
        reward: gold rewards, [N].
        wording: 0 to 2, [N].
        first: index of the one answer, [E].
        second: index of the other, [E].

    Returns:
        Logits, [E].

    Example:
        >>> taste(World(cycle=1.0), np.zeros(3), np.arange(3), np.array([0, 1, 2]), np.array([1, 2, 0]))
        array([1., 1., 1.])
    """
    step = (wording[second] - wording[first]) % 3
    return (reward[first] - reward[second]) / world.temperature + world.cycle * np.array([0.0, 1.0, -1.0])[step]


def judge(world: World, index: int, reward: np.ndarray, wording: np.ndarray) -> Judged:
    """Every pair of a prompt's answers, in random order of sides, judged by `world.votes` people.

    The random numbers are a function of (seed, index) and not of the dials, so a dial that is turned moves only the
    judgements that cross its threshold.

    Args:
        world: the dials.
        index: which prompt.
        reward: gold rewards of its answers, [K].
        wording: 0 to 2, [K].

    Returns:
        K(K-1)/2 comparisons.

    Example:
        >>> judge(World(), 0, np.array([0.0, 1.0]), np.array([0, 0])).value.shape
        (1, 3)
    """
    rng = np.random.default_rng([world.seed, index, 1])
    low, high = np.triu_indices(len(reward), k=1)
    exchange = rng.random(len(low)) < 0.5
    first, second = np.where(exchange, high, low), np.where(exchange, low, high)
    annotator = np.stack([rng.permutation(world.annotators)[: world.votes] for _ in first])
    chance_flip, chance = rng.random(len(first)), rng.random((3, len(first), world.votes))

    margin = taste(world, reward, wording, first, second)
    tied = world.tie / (world.tie + 2 * np.cosh(np.clip(margin / 2, -300, 300)))  # Davidson: e^{Δ/2} : e^{-Δ/2} : ν
    prefer_first = 1 / (1 + np.exp(-np.clip(margin, -600, 600)))
    value = np.where(chance[0] < prefer_first[:, None], FIRST, SECOND)
    flipped = chance_flip < world.flip_rate
    value = np.where(flipped[:, None], FIRST + SECOND - value, value)
    value = np.where(chance[1] < tied[:, None], TIE, value)
    value = np.where(chance[2] < world.abstention, CANNOT_JUDGE, value)
    return Judged(first, second, margin, flipped, annotator, value)
