"""One fit in a process of its own: its seconds, its gradient, and the most memory that the process ever held.

    python -m experiments.benchmarks.fit_alone pairs.npz

The file holds `winner` and `loser` [E] and `items`. Prints one JSON object; `fit_vs_peers.py` reads it.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

import numpy as np

from rmjax.comparisons import Comparisons
from rmjax.preferences import fit


def main(path: str) -> dict[str, float]:
    """Fit, and print what it took."""
    data = np.load(path)
    start = time.perf_counter()
    estimate = fit(Comparisons.from_pairs(data["winner"], data["loser"], np.zeros(int(data["items"]), np.int32)))
    seconds = time.perf_counter() - start
    out = {
        "seconds": seconds,
        "gradient": estimate.gradient_norm,
        "spread": float(np.ptp(estimate.scores)),
        "gigabytes": most_memory() / 1e9,
    }
    print(json.dumps(out))
    return out


def most_memory() -> int:
    """Bytes that this process held at most. What getrusage says on Linux may be of the process that started it."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes on macOS


if __name__ == "__main__":
    main(sys.argv[1])
