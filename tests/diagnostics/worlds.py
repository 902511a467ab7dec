"""Simulated comparisons with known truth."""

import dataclasses

import numpy as np

from rmjax import Comparisons


def swap(comparisons, flip=None):
    """The same judgements with the two sides of some (or all) comparisons exchanged."""
    c = comparisons
    flip = np.ones(c.num_comparisons, bool) if flip is None else flip

    def exchange(a, b):
        return np.where(flip, b, a), np.where(flip, a, b)

    first, second = exchange(c.first, c.second)
    wins_first, wins_second = exchange(c.wins_first, c.wins_second)
    return dataclasses.replace(c, first=first, second=second, wins_first=wins_first, wins_second=wins_second)


def world(seed, prompts=12, per_prompt=5, votes=4, noise=0.5, tie_rate=0.15):
    """Votes of annotators on answers with known rewards: margins of a noisy model, comparisons, gold and lengths.

    Each prompt has 4 answers; the lengths correlate with quality; some margins are exactly 0.
    """
    rng = np.random.default_rng(seed)
    reward = rng.normal(0, 1.5, (prompts, 4))
    scores = (reward + rng.normal(0, noise, reward.shape) + rng.normal(0, 50, (prompts, 1))).ravel()
    pairs = np.array([(i, j) for i in range(4) for j in range(4) if i != j])
    chosen = np.concatenate([4 * p + pairs[rng.permutation(len(pairs))[:per_prompt]] for p in range(prompts)])
    first, second = chosen.T
    truth = reward.ravel()[first] - reward.ravel()[second]
    tied = rng.binomial(votes, tie_rate, len(first))
    wins = rng.binomial(votes - tied, 1 / (1 + np.exp(-truth)))
    comparisons = Comparisons.from_votes(
        first, second, wins, votes - tied - wins, prompt=np.repeat(np.arange(prompts), 4), ties=tied
    )
    margins = scores[first] - scores[second]
    margins[rng.random(len(margins)) < 0.05] = 0.0
    gold = np.sign(truth).astype(int) * (rng.random(len(truth)) < 0.9)
    lengths = np.maximum(1, np.rint(40 + 10 * reward.ravel() + rng.normal(0, 10, reward.size)))
    return margins, comparisons, gold, lengths, np.asarray(comparisons.prompt)[first]
