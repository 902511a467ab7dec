"""Win matrices of a few items, connected in every way that graphs can be."""

import itertools

import numpy as np
from hypothesis import strategies as st

from rmjax import Comparisons
from rmjax.testing.strategies import generators

ITEMS = 6


@st.composite
def win_matrices(draw, items=ITEMS, connected=None):
    """Whole wins of row over column: sparse, one-sided, islands; or with a circle of wins, which a maximum needs."""
    rng = draw(generators())
    density = draw(st.sampled_from([0.15, 0.3, 0.6, 1.0]))
    wins = rng.integers(1, draw(st.sampled_from([2, 8, 200])), (items, items)) * (rng.random((items, items)) < density)
    if draw(st.booleans()):  # one side of each pair never lost
        wins = np.triu(wins) + np.tril(wins) * (rng.random((items, items)) < 0.3)
    if connected:
        circle = rng.permutation(items)
        wins[circle, np.roll(circle, 1)] += 1
    np.fill_diagonal(wins, 0)
    order = rng.permutation(items)
    return wins[np.ix_(order, order)]


def reaches(wins):
    """Which items beat which, if only through others, by closing paths one item at a time."""
    closed = (wins > 0) | np.eye(len(wins), dtype=bool)
    for k in range(len(wins)):
        closed |= closed[:, [k]] & closed[[k], :]
    return closed


def splits(items):
    """Every way to split items in two, as masks."""
    for size in range(1, items):
        for chosen in itertools.combinations(range(items), size):
            mask = np.zeros(items, bool)
            mask[list(chosen)] = True
            yield mask


def laplacian(wins, scores):
    """Information of the scores, by a loop over pairs."""
    out = np.zeros((len(wins),) * 2)
    for i, j in itertools.combinations(range(len(wins)), 2):
        p = 1 / (1 + np.exp(scores[j] - scores[i]))
        c = (wins[i, j] + wins[j, i]) * p * (1 - p)
        out[[i, j], [i, j]] += c
        out[[i, j], [j, i]] -= c
    return out


def newton(wins, ridge=0.0):
    """The estimate by plain Newton steps with a pseudo-inverse, sum 0."""
    theta = np.zeros(len(wins))
    total = wins + wins.T
    for _ in range(200):
        p = 1 / (1 + np.exp(theta[None, :] - theta[:, None]))
        gradient = (wins - total * p).sum(axis=1) - ridge * theta
        step = np.linalg.pinv(laplacian(wins, theta) + ridge * np.eye(len(wins)), rcond=1e-13) @ gradient
        theta = theta + step * min(1.0, 2.0 / max(np.abs(step).max(), 1e-300))
        if np.abs(step).max() < 1e-14:
            break
    return theta - theta.mean()


CHAIN = Comparisons.from_wins([[0, 5, 0], [0, 0, 5], [0, 0, 0]])
ISLANDS = Comparisons.from_wins([[0, 3, 0, 0], [1, 0, 0, 0], [0, 0, 0, 2], [0, 0, 1, 0]])
CIRCLE = Comparisons.from_wins([[0, 1, 0], [0, 0, 1], [1, 0, 0]])
ALWAYS_WINNER = Comparisons.from_wins([[0, 2, 2], [0, 0, 3], [0, 2, 0]])
WEAK_BRIDGE = Comparisons.from_wins([[0, 2, 1, 0], [2, 0, 0, 0], [0, 0, 0, 3], [0, 0, 1, 0]])
