"""Small graphs of judged responses of one fixed shape, and two published ones."""

import numpy as np

from rmjax.testing import scored_comparisons
from rmjax.testing.strategies import pairs_within

PROMPTS, PER_PROMPT, E = 3, 4, 24
N = PROMPTS * PER_PROMPT

# Agresti, Categorical Data Analysis, 2nd ed. 2002, table 10.11: wins of row over column, American League 1987;
# Baltimore, Boston, Cleveland, Detroit, Milwaukee, New York, Toronto. The estimates have Baltimore at 0; they and the
# numbers that tests derive from them were computed at 40 digits.
BASEBALL = np.array(
    [
        [0, 1, 7, 4, 2, 3, 1],
        [12, 0, 7, 2, 6, 7, 6],
        [6, 6, 0, 4, 4, 6, 5],
        [9, 11, 9, 0, 6, 5, 7],
        [11, 7, 9, 7, 0, 7, 9],
        [10, 6, 7, 8, 6, 0, 6],
        [12, 7, 8, 6, 4, 7, 0],
    ]
)
BASEBALL_FIT = np.array(
    [
        0.0,
        1.107697705378655,
        0.68385276915916173,
        1.4364084318124367,
        1.5813558766613942,
        1.2476178451413878,
        1.2944851239118066,
    ]
)
# Stigler, Citation patterns in the journals of statistics and probability, 1994 (Agresti 2002, p. 448).
CITATIONS = np.array([[0, 730, 498, 221], [33, 0, 68, 17], [320, 813, 0, 142], [284, 276, 325, 0]])
CITATIONS_FIT = np.array([0.0, -2.9490724968439098, -0.47956976975199284, 0.2689540558194716])


def graphs(ties=False, weighted=True):
    """Float32 scores [N] and comparisons [E]: repeated pairs, contradicting votes, some of weight 0."""
    return scored_comparisons(prompts=PROMPTS, per_prompt=PER_PROMPT, size=E, ties=ties, weighted=weighted)


def edges(rng):
    """E random pairs within prompts, and the prompt of every response."""
    return pairs_within(rng, PROMPTS, PER_PROMPT, E)
