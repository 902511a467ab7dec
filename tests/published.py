"""Counts of published experiments, as facts with their source."""

import numpy as np

from rmjax import Comparisons

# Davidson 1970, chocolate puddings: pair, wins of the first, of the second, ties.
PUDDING = [
    (0, 1, 19, 22, 16),
    (0, 2, 16, 19, 12),
    (1, 2, 19, 19, 10),
    (0, 3, 18, 23, 13),
    (1, 3, 23, 19, 9),
    (2, 3, 19, 20, 15),
    (0, 4, 13, 19, 18),
    (1, 4, 16, 20, 12),
    (2, 4, 16, 15, 17),
    (3, 4, 17, 14, 16),
    (0, 5, 18, 21, 12),
    (1, 5, 22, 20, 12),
    (2, 5, 13, 18, 10),
    (3, 5, 14, 19, 18),
    (4, 5, 11, 21, 12),
]
# Springall 1973, nine treatments: row, column, column over row as coded, the reverse, ties.
SPRINGALL = [
    (0, 1, 2, 16, 7),
    (0, 2, 0, 21, 1),
    (0, 3, 5, 10, 10),
    (0, 4, 2, 15, 7),
    (0, 5, 0, 22, 2),
    (0, 6, 12, 3, 9),
    (0, 7, 13, 9, 5),
    (0, 8, 10, 12, 3),
    (1, 2, 6, 11, 5),
    (1, 3, 17, 2, 7),
    (1, 4, 9, 6, 8),
    (1, 5, 8, 12, 6),
    (1, 6, 24, 2, 0),
    (1, 7, 16, 3, 5),
    (1, 8, 15, 2, 7),
    (2, 3, 22, 2, 4),
    (2, 4, 14, 4, 5),
    (2, 5, 11, 4, 7),
    (2, 6, 24, 1, 3),
    (2, 7, 22, 0, 3),
    (2, 8, 17, 2, 6),
    (3, 4, 3, 14, 9),
    (3, 5, 2, 18, 4),
    (3, 6, 12, 6, 5),
    (3, 7, 10, 6, 6),
    (3, 8, 8, 9, 11),
    (4, 5, 5, 11, 9),
    (4, 6, 20, 0, 2),
    (4, 7, 15, 2, 5),
    (4, 8, 13, 5, 9),
    (5, 6, 27, 1, 0),
    (5, 7, 19, 1, 5),
    (5, 8, 18, 2, 2),
    (6, 7, 2, 13, 8),
    (6, 8, 2, 21, 5),
    (7, 8, 6, 8, 8),
]
# Agresti, Categorical Data Analysis, 2nd ed. 2002, section 10.6: home team, visitors, wins at home, wins away. Teams
# are in the order of `graphs.BASEBALL`.
HOME = [
    (4, 3, 4, 3),
    (4, 6, 4, 2),
    (4, 5, 4, 3),
    (4, 1, 6, 1),
    (4, 2, 4, 2),
    (4, 0, 6, 0),
    (3, 4, 3, 3),
    (3, 6, 4, 2),
    (3, 5, 4, 3),
    (3, 1, 6, 0),
    (3, 2, 6, 1),
    (3, 0, 4, 3),
    (6, 4, 2, 5),
    (6, 3, 4, 3),
    (6, 5, 2, 4),
    (6, 1, 4, 3),
    (6, 2, 4, 2),
    (6, 0, 6, 0),
    (5, 4, 3, 3),
    (5, 3, 5, 1),
    (5, 6, 2, 5),
    (5, 1, 4, 3),
    (5, 2, 4, 2),
    (5, 0, 6, 1),
    (1, 4, 5, 1),
    (1, 3, 2, 5),
    (1, 6, 3, 3),
    (1, 5, 4, 2),
    (1, 2, 5, 2),
    (1, 0, 6, 0),
    (2, 4, 2, 5),
    (2, 3, 3, 3),
    (2, 6, 3, 4),
    (2, 5, 4, 3),
    (2, 1, 4, 2),
    (2, 0, 2, 4),
    (0, 4, 2, 5),
    (0, 3, 1, 5),
    (0, 6, 1, 6),
    (0, 5, 2, 4),
    (0, 1, 1, 6),
    (0, 2, 3, 4),
]
# Critchlow and Fligner 1991: ranks of salads A, B, C, D (1 for the most tart) by 32 people, with how many gave them.
SALAD = [
    ((1, 2, 3, 4), 2),
    ((2, 1, 3, 4), 1),
    ((2, 1, 4, 3), 2),
    ((2, 3, 1, 4), 1),
    ((3, 1, 2, 4), 2),
    ((3, 1, 4, 2), 1),
    ((3, 4, 2, 1), 1),
    ((4, 1, 2, 3), 11),
    ((4, 1, 3, 2), 6),
    ((4, 2, 1, 3), 3),
    ((4, 3, 1, 2), 1),
    ((4, 3, 2, 1), 1),
]


def matrices(rows, items):
    """Comparisons from rows of (i, j, wins of i, wins of j, ties)."""
    i, j, a, b, t = np.array(rows).T
    return Comparisons.from_votes(i, j, a, b, prompt=np.zeros(items, int), ties=t)


def _home():
    home, visitors, won, lost = np.array(HOME).T
    return Comparisons.from_votes(home, visitors, won, lost, prompt=np.zeros(7, int), order=np.ones(len(home)))


BASEBALL_HOME = _home()
