"""Where there is no answer: what choix, evalica and arena-rank return, and why rmjax refuses.

    python -m venv /path/to/peers && /path/to/peers/bin/pip install choix==0.4.1 evalica==0.4.2 arena-rank==0.1.1
    python -m experiments.benchmarks.peers_refusals --peers-python /path/to/peers/bin/python --json refusals.json

Four sets of comparisons, and one contrast of each that the data do not pin down:

- separated: A beat B five times and B beat C five times; A and C differ by plus infinity.
- islands: A against B and C against D, who never met; A and C have no difference.
- never lost: American League baseball of 1987 (Agresti, Categorical Data Analysis, 2002, table 10.11) and an eighth
  team that beat every other once; it is infinitely better than any.
- NASCAR: the 36 races of 2002 with 87 drivers, four of whom never beat any of the others (Hunter, Annals of Statistics
  2004, who drops them; `published.nascar` says how they are put back). choix fits the orders; evalica and
  arena-rank, which have no rankings, every pair of a race.

Peers run with their defaults, and choix also without its penalty. A number is what they return as the contrast, in
logits; an error is theirs, in words. Two minutes on 2 CPU cores, most of them iterations of choix that do not end.
Expected: rmjax refuses all four and names the cut or the sets that never met; choix's iterative methods end in an error
on most, and every other answer is a number without a warning, with standard errors from arena-rank.
"""

from __future__ import annotations

import dataclasses
import tempfile
from typing import Any

import numpy as np
import tyro

from experiments.benchmarks.peers import Peers
from experiments.benchmarks.rows import absent, row, write
from rmjax.comparisons import Comparisons, Rankings
from rmjax.errors import IdentifiabilityError
from rmjax.preferences import fit, published

COMMAND = "python -m experiments.benchmarks.peers_refusals"


@dataclasses.dataclass(frozen=True)
class Config:
    """Who is asked."""

    peers_python: str | None = None
    """Interpreter of an environment with choix, evalica and arena-rank; their rows say that it is absent without."""
    json: str | None = None
    """Where the rows of results go."""


@dataclasses.dataclass(frozen=True)
class Case:
    """Comparisons, and a contrast that they do not pin down."""

    name: str
    wins: np.ndarray  # [N, N], row over column
    first: int
    second: int
    orders: tuple[tuple[int, ...], ...] = ()  # rankings that the wins were counted from


def cases() -> list[Case]:
    """The four sets."""
    separated, islands = np.zeros((3, 3), int), np.zeros((4, 4), int)
    separated[0, 1] = separated[1, 2] = 5
    islands[0, 1] = islands[2, 3] = 3
    islands[1, 0] = islands[3, 2] = 1
    never_lost = np.pad(published.BASEBALL, (0, 1))
    never_lost[-1, :-1] = 1
    orders = tuple(map(tuple, published.nascar(all_drivers=True).items.tolist()))
    races = np.zeros((published.DRIVERS + 4,) * 2, int)
    for order in orders:
        races[tuple(np.array(order)[np.stack(np.triu_indices(len(order), k=1))])] += 1
    return [
        Case("separated", separated, 0, 2),
        Case("islands", islands, 0, 2),
        Case("never lost", never_lost, 7, 0),
        Case("NASCAR", races, 57, published.DRIVERS, orders),
    ]


def main(config: Config) -> list[dict[str, Any]]:
    """Ask everyone, and print the table."""
    rows = []
    with tempfile.TemporaryDirectory() as scratch, Peers(config.peers_python, scratch) as peers:
        for case in cases():
            print(f"\n{case.name}, item {case.first} against item {case.second}")
            rows.append(_ours(case))
            rows += _theirs(peers, case)
            for line in rows[-1 - len(_asked(case)) :]:
                print(f"  {line['name'].partition(': ')[2]:44}{line['said']}")
    if config.json:
        write(config.json, rows)
    return rows


def _ours(case: Case) -> dict[str, Any]:
    """Whether the contrast is refused, and in which words."""
    everyone = np.zeros(len(case.wins), np.int32)
    data = Rankings.from_lists(case.orders, everyone) if case.orders else Comparisons.from_wins(case.wins)
    try:
        said, refused = f"{fit(data).contrast(case.first, case.second)}", 0.0
    except IdentifiabilityError as error:
        said, refused = f"refused: {error}", 1.0
    return row(f"{case.name}: rmjax refuses", refused, "yes", target=1.0, command=COMMAND) | {"said": said}


def _asked(case: Case) -> list[tuple[str, str, dict[str, Any]]]:
    """Name, method and options of everyone asked."""
    kind = "rankings" if case.orders else "pairwise"
    return [
        (f"choix.opt_{kind}", "choix", {"function": f"opt_{kind}"}),
        (f"choix.opt_{kind}, alpha=0", "choix", {"function": f"opt_{kind}", "alpha": 0.0}),
        (f"choix.ilsr_{kind}", "choix", {"function": f"ilsr_{kind}"}),
        (f"choix.mm_{kind}", "choix", {"function": f"mm_{kind}"}),
        ("evalica.bradley_terry", "evalica", {}),
        ("evalica.newman", "evalica", {"newman": True}),
        ("arena_rank.BradleyTerry", "arena_rank", {"intervals": True}),
    ]


def _theirs(peers: Peers, case: Case) -> list[dict[str, Any]]:
    """What every peer returns as the contrast, or the words of its error."""
    pair = np.nonzero(case.wins)
    winner, loser = (np.repeat(side, case.wins[pair]) for side in pair)
    pairs = peers.save("pairs", winner=winner, loser=loser, items=len(case.wins))
    data = {"evalica": pairs, "arena_rank": pairs, "choix": pairs}
    if case.orders:
        width = max(map(len, case.orders))
        padded = np.array([[*order, *[-1] * (width - len(order))] for order in case.orders])
        data["choix"] = peers.save("orders", orders=padded, items=len(case.wins))
    rows = []
    for name, method, options in _asked(case):
        answer = peers.ask(method, data[method], **options)
        name = f"{case.name}: {name}"
        if answer["error"] is not None:
            rows.append(absent(name, answer["error"], command=COMMAND) | {"said": f"error: {answer['error']}"})
            continue
        value = float(answer["scores"][case.first] - answer["scores"][case.second])
        said = f"{value:+.4g}"
        if "errors" in answer:
            said += " from two scores with standard errors " + " and ".join(
                f"{answer['errors'][item]:.2g}" for item in (case.first, case.second)
            )
        said += "; warns: " + "; ".join(answer["warnings"]) if answer["warnings"] else ", no warning"
        rows.append(row(name, value, "logits", command=COMMAND) | {"said": said})
    return rows


if __name__ == "__main__":
    main(tyro.cli(Config))
