"""One fit in a process of its own: its seconds, its gradient, and the most memory that the process ever held.

    python -m experiments.benchmarks.fit_alone pairs.npz

The file holds `winner` and `loser` [E] and `items`. Prints one JSON object; `fit_vs_peers.py` reads it.
"""

from __future__ import annotations

import json
import resource
import sys
import time

import numpy as np

from rmjax.comparisons import Comparisons
from rmjax.preferences import fit


def main(path: str) -> dict[str, float]:
    """Fit, and print what it took."""
    data = np.load(path)
    start = time.perf_counter()
    estimate = fit(Comparisons.from_pairs(data["winner"], data["loser"], np.zeros(int(data["items"]), np.int32)))
    seconds = time.perf_counter() - start
    # Kilobytes on Linux, bytes on macOS.
    unit = 1 if sys.platform == "darwin" else 1024
    out = {
        "seconds": seconds,
        "gradient": estimate.gradient_norm,
        "spread": float(np.ptp(estimate.scores)),
        "gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9,
    }
    print(json.dumps(out))
    return out


if __name__ == "__main__":
    main(sys.argv[1])
