"""Small graphs of judged responses of one fixed shape, and the estimates of two published ones."""

import numpy as np

from rmjax.testing import scored_comparisons
from rmjax.testing.strategies import pairs_within

PROMPTS, PER_PROMPT, E = 3, 4, 24
N = PROMPTS * PER_PROMPT

# Estimates of the American League of 1987 with Baltimore at 0, and of the citations with Biometrika at 0; they and the
# numbers that tests derive from them were computed at 40 digits.
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
CITATIONS_FIT = np.array([0.0, -2.9490724968439098, -0.47956976975199284, 0.2689540558194716])


def graphs(ties=False, weighted=True):
    """Float32 scores [N] and comparisons [E]: repeated pairs, contradicting votes, some of weight 0."""
    return scored_comparisons(prompts=PROMPTS, per_prompt=PER_PROMPT, size=E, ties=ties, weighted=weighted)


def edges(rng):
    """E random pairs within prompts, and the prompt of every response."""
    return pairs_within(rng, PROMPTS, PER_PROMPT, E)
