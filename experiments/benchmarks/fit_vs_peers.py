"""Fitting Bradley-Terry scores with rmjax, evalica, choix and arena-rank: the same comparisons, in one run.

    python -m venv /path/to/peers && /path/to/peers/bin/pip install choix==0.4.1 evalica==0.4.2 arena-rank==0.1.1
    python -m experiments.benchmarks.fit_vs_peers --peers-python /path/to/peers/bin/python --json fit.json

Comparisons are drawn from a Bradley-Terry model with standard normal scores and given to everyone as integer arrays.
rmjax is timed from these arrays to the fit, checks and the report of what is identified included; its first call, which
compiles, is a row of its own. Both sides take turns, and times are medians.

- evalica takes arrays and turns them into lists itself: that is in its time, and also a row of its own. It stops by
  default where scores move by less than 1e-6; asked for 1e-12 it reaches the same optimum as rmjax.
- All are also timed with votes added up per pair by NumPy before, which is the fastest way to use evalica and choix.
  The adding up is in the time of each, and rmjax reads the same counts.
- choix is timed in two forms: the matrix of wins and, on 100,000 comparisons, the lists of pairs that its documentation
  shows, which are made before its clock starts.
- arena-rank compiles at every fit, so that no call of it is warm. Its default tolerance is of the mean loss per vote;
  it is asked to go on until the gradient of the mean is below 1e-12 or 1,000 steps are done.

A million comparisons of 100,000 items are fitted in a process of its own, which reports the most memory that it held.
In them every item beats the next in a circle once, so that the graph of wins is strongly connected. evalica and most of
choix hold full matrices, which do not fit; arena-rank runs with its default tolerance.

Three minutes and 6 GB of memory on 2 CPU cores. Expected: rmjax takes at most the time of evalica on 10 million
comparisons as arrays, contrasts agree to 1e-6, and the large fit stays under 2 GB.
"""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tyro

from experiments.benchmarks.peers import Peers
from experiments.benchmarks.peers_side import count
from experiments.benchmarks.rows import absent, row, write
from rmjax.comparisons import Comparisons
from rmjax.preferences import Fit, fit

SAME = 1e-6  # largest difference of two contrasts, in logits, of what is called one optimum


@dataclasses.dataclass(frozen=True)
class Config:
    """What is timed."""

    peers_python: str | None = None
    """Interpreter of an environment with choix, evalica and arena-rank; their rows say that it is absent without."""
    repeats: int = 5
    """Turns that each side is timed for."""
    small: bool = False
    """Sizes that a test runs."""
    json: str | None = None
    """Where the rows of results go."""


@dataclasses.dataclass(frozen=True)
class Problem:
    """Comparisons that all sides read."""

    items: int
    winner: np.ndarray  # [E] int32
    loser: np.ndarray  # [E] int32

    @property
    def name(self) -> str:
        """Its size, in words."""
        return f"{len(self.winner):,} comparisons of {self.items:,} items"


@dataclasses.dataclass(frozen=True)
class Peer:
    """Another library, and how it is asked."""

    name: str
    method: str
    options: dict[str, Any]
    once: bool = False  # slow: one turn
    same: bool = True  # asked for the same optimum


TIGHT = {"tolerance": 1e-12, "limit": 10_000}
ARRAYS = "evalica, integer arrays"
COUNTED = "evalica, counted votes"
PEERS = (
    Peer(ARRAYS, "evalica", TIGHT),
    Peer("evalica, integer arrays, default tolerance", "evalica", {}, same=False),
    Peer(COUNTED, "evalica", TIGHT | {"counted": True}),
    Peer("choix.ilsr_pairwise_dense", "choix", {"function": "ilsr_pairwise_dense", "counted": True}, same=False),
    Peer("arena-rank", "arena_rank", {"ftol": 0.0, "gtol": 1e-12}, once=True),
)
LISTS = (
    Peer("choix.opt_pairwise, lists", "choix", {"function": "opt_pairwise", "alpha": 0.0, "tol": 1e-10}, once=True),
    Peer("choix.ilsr_pairwise, lists", "choix", {"function": "ilsr_pairwise"}, once=True, same=False),
)
TOO_LARGE = {
    "evalica": "holds two full matrices of items by items: 160 GB",
    "choix": "all methods but mm_pairwise hold a full matrix of items by items, 80 GB; that one walks a list of pairs "
    "in Python, up to 10,000 times",
}


def main(config: Config) -> list[dict[str, Any]]:
    """Time everyone and print the rows."""
    command = "python -m experiments.benchmarks.fit_vs_peers" + (" --small" if config.small else "")
    many, few, sparse = (
        ((2_000, 20), (500, 10), (3_000, 500))
        if config.small
        else ((10_000_000, 1_000), (100_000, 100), (1_000_000, 100_000))
    )
    rows: list[dict[str, Any]] = []

    def emit(line: dict[str, Any]) -> None:
        rows.append(line)
        verdict = {None: "", True: "ok", False: "MISSED"}[line["met"]]
        shown = f"not here: {line['reason']}" if "reason" in line else f"{line['value']:.4g} {line['unit']}"
        print(f"{verdict:6}  {line['name']}: {shown}  {line['target'] or ''}", flush=True)

    with tempfile.TemporaryDirectory() as scratch, Peers(config.peers_python, scratch) as peers:
        for line in compare(draw(*many), PEERS, peers, config.repeats, command, target=not config.small):
            emit(line)
        for line in compare(draw(*few), (*PEERS, *LISTS), peers, config.repeats, command):
            emit(line)
        for line in alone(draw(*sparse, circle=True), peers, command):
            emit(line)
    if config.json:
        write(config.json, rows)
    return rows


def draw(comparisons: int, items: int, *, circle: bool = False) -> Problem:
    """Comparisons from a Bradley-Terry model; with a circle, every item beats the next once."""
    rng = np.random.default_rng(0)
    scores, ring = rng.normal(size=items), np.arange(items if circle else 0)
    first = rng.integers(0, items, comparisons - len(ring))
    second = (first + rng.integers(1, items, len(first))) % items
    won = rng.random(len(first)) < 1 / (1 + np.exp(scores[second] - scores[first]))
    winner = np.concatenate([np.where(won, first, second), ring])
    loser = np.concatenate([np.where(won, second, first), (ring + 1) % items])
    return Problem(items, winner.astype(np.int32), loser.astype(np.int32))


def from_arrays(problem: Problem) -> tuple[Fit, dict[str, float]]:
    """rmjax on the comparisons as they are, with its seconds."""
    start = time.perf_counter()
    data = Comparisons.from_pairs(problem.winner, problem.loser, np.zeros(problem.items, np.int32))
    built = time.perf_counter()
    estimate = fit(data)
    return estimate, {"all": time.perf_counter() - start, "building": built - start}


def from_counts(problem: Problem) -> tuple[Fit, dict[str, float]]:
    """rmjax on votes that NumPy added up, the adding up included."""
    start = time.perf_counter()
    winner, loser, votes = count(problem.winner, problem.loser, problem.items)
    data = Comparisons.from_votes(winner, loser, votes, np.zeros(len(votes)), np.zeros(problem.items, np.int32))
    estimate = fit(data)
    return estimate, {"all": time.perf_counter() - start}


def compare(
    problem: Problem, peers: tuple[Peer, ...], side: Peers, repeats: int, command: str, *, target: bool = False
) -> list[dict[str, Any]]:
    """Every side in turn, so often; medians, ratios and differences."""
    path = side.save("problem", winner=problem.winner, loser=problem.loser, items=problem.items)
    ours: dict[str, Callable[[Problem], tuple[Fit, dict[str, float]]]] = {
        "integer arrays": from_arrays,
        "counted votes": from_counts,
    }
    estimate, first = from_arrays(problem)
    assert estimate.identification.exists, "the drawn comparisons have no maximum"
    seconds: dict[str, list[dict[str, float]]] = {name: [] for name in (*ours, *(peer.name for peer in peers))}
    answers: dict[str, dict[str, Any]] = {}
    for turn in range(repeats):
        for name, run in ours.items():
            seconds[name].append(run(problem)[1])
        for peer in peers:
            if not (peer.once and turn):
                answer = answers[peer.name] = side.ask(peer.method, path, **peer.options)
                seconds[peer.name].append(answer.get("seconds", {}))

    def median(name: str, part: str = "all") -> float:
        return float(np.median([taken[part] for taken in seconds[name]]))

    def line(what: str, value: float, unit: str, bound: float | None = None, below: bool = True) -> dict[str, Any]:
        return row(f"{problem.name}: {what}", value, unit, target=bound, below=below, command=command)

    rows = [
        line("rmjax, first call, with compilation", first["all"], "s"),
        line("rmjax, integer arrays", median("integer arrays"), "s"),
        line("rmjax, integer arrays, of it building and checks", median("integer arrays", "building"), "s"),
        line("rmjax, counted votes", median("counted votes"), "s"),
        line("rmjax, largest entry of the gradient", estimate.gradient_norm, "votes"),
    ]
    for peer in peers:
        if answers[peer.name]["error"] is not None:
            rows.append(absent(f"{problem.name}: {peer.name}", answers[peer.name]["error"], command=command))
            continue
        own = "counted votes" if peer.options.get("counted") or peer.method == "arena_rank" else "integer arrays"
        rows.append(line(peer.name, median(peer.name), "s"))
        if "conversion" in seconds[peer.name][0]:
            rows.append(line(f"{peer.name}, of it arrays to lists", median(peer.name, "conversion"), "s"))
        bound = 1.0 if target and peer.name == ARRAYS else None
        rows.append(line(f"rmjax / {peer.name}, same input", median(own) / median(peer.name), "ratio", bound))
        # Scores are known up to a constant: the largest difference of two contrasts is the spread of the differences.
        apart = float(np.ptp(answers[peer.name]["scores"] - estimate.scores))
        bound = SAME if peer.name in (ARRAYS, COUNTED) else None
        rows.append(line(f"{peer.name}, largest difference in contrasts", apart, "logits", bound))
    return rows


def alone(problem: Problem, side: Peers, command: str) -> list[dict[str, Any]]:
    """The large and sparse fit, with the memory of its process."""
    path = side.save("sparse", winner=problem.winner, loser=problem.loser, items=problem.items)
    run = [sys.executable, "-m", "experiments.benchmarks.fit_alone", str(path)]
    root = Path(__file__).parents[2]
    done = subprocess.run(run, capture_output=True, text=True, check=False, cwd=root)
    if done.returncode:
        raise SystemExit(f"the fit ended with {done.returncode}:\n{done.stderr[-3000:]}")
    took = json.loads(done.stdout)
    rows = [
        row(f"{problem.name}: {what}", value, unit, target=bound, below=True, command=command)
        for what, value, unit, bound in (
            ("rmjax, first call, with compilation", took["seconds"], "s", None),
            ("rmjax, most memory of the process", took["gigabytes"], "GB", 2.0),
            ("rmjax, largest entry of the gradient", took["gradient"], "votes", SAME),
        )
    ]
    rows += [absent(f"{problem.name}: {name}", reason, command=command) for name, reason in TOO_LARGE.items()]
    answer = side.ask("arena_rank", path)
    name = f"{problem.name}: arena-rank, its default tolerance"
    if answer["error"] is not None:
        return [*rows, absent(name, answer["error"], command=command)]
    ours, _ = from_arrays(problem)
    apart = float(np.ptp(answer["scores"] - ours.scores))
    return [
        *rows,
        row(name, answer["seconds"]["all"], "s", command=command),
        row(f"{name}, largest difference in contrasts", apart, "logits", command=command),
    ]


if __name__ == "__main__":
    main(tyro.cli(Config))
