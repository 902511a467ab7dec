"""What tests of forecasts share: twelve forecasts with known figures, and worlds of heavily tied ones."""

import numpy as np

P = (0.05, 0.15, 0.25, 0.35, 0.45, 0.55, 0.55, 0.65, 0.75, 0.85, 0.95, 0.95)
Y = (0, 0, 1, 0, 1, 0, 1, 1, 0, 1, 1, 1)


def tied(seed, rows=60):
    """Predictions of few values, outcomes and weights, some of them 0; a last row that has weight."""
    rng = np.random.default_rng(seed)
    p = rng.choice([0.0, 0.1, 0.3, 0.3, 0.5, 0.7, 1.0], rows)
    return p, rng.integers(0, 2, rows), np.append(rng.integers(0, 3, rows - 1), 1)
