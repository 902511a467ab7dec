"""Small graphs of judged responses of one fixed shape, and two published ones."""

import numpy as np
from hypothesis import strategies as st

from rmjax import Comparisons

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


@st.composite
def graphs(draw, ties=False, weighted=True):
    """Float32 scores [N] and comparisons [E]: repeated pairs, contradicting votes, some of weight 0.

    The weights and votes are multiples of 1/4, so that float32 holds their products and sums exactly.
    """
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scale = draw(st.sampled_from([0.1, 3.0, 30.0]))
    first, second, prompt = edges(rng)
    a, b = rng.integers(0, 9, (2, E)) / 4
    tied = rng.integers(0, 5, E) / 4 * ties
    weight = rng.integers(0, 5, E) / 4 if weighted else np.ones(E)
    scores = rng.normal(0, scale, N).astype(np.float32)
    return scores, Comparisons.from_votes(first, second, a, b, prompt, ties=tied, weight=weight)


def edges(rng):
    """E random pairs within prompts, and the prompt of every response."""
    offset = rng.integers(0, PROMPTS, E) * PER_PROMPT
    low = rng.integers(0, PER_PROMPT, E)
    high = (low + rng.integers(1, PER_PROMPT, E)) % PER_PROMPT
    return offset + low, offset + high, np.repeat(np.arange(PROMPTS), PER_PROMPT)
