"""The side of choix, evalica and arena-rank: runs in an environment of its own and answers one request a line.

    echo '{"method": "evalica", "data": "pairs.npz"}' | python experiments/benchmarks/peers_side.py

A request names a method below, an .npz with `winner`, `loser` and `items` (or `orders`, best first, -1 behind the end),
and options of the method. An answer has the scores in logits, seconds, warnings, and the error in place of the scores
where there was one. Imports nothing of rmjax. Each method has its most favourable honest form: what its interface does
not force on a caller is done before the clock starts.
"""

import json
import sys
import time
import warnings

import numpy as np


def evalica(data, *, counted=False, newman=False, **options):
    """Integer arrays through the public interface, which turns them into lists; or votes counted by NumPy first."""
    import evalica as library
    import pandas as pd

    winner, loser, items = data["winner"], data["loser"], int(data["items"])
    index = pd.RangeIndex(items)
    # As many entries as there are comparisons are no work of the fit: they stand ready.
    outcomes = [library.Winner.X] * len(winner)
    seconds = {}
    start = time.perf_counter()
    if counted:
        winner, loser, votes = count(winner, loser, items)
        outcomes, options["weights"] = outcomes[: len(winner)], votes
        seconds["counting"] = time.perf_counter() - start
    method = library.newman if newman else library.bradley_terry
    result = method(winner, loser, outcomes, index=index, **options)
    seconds["all"] = time.perf_counter() - start
    if not counted:
        start = time.perf_counter()
        library.indexing(winner, loser, index)
        seconds["conversion"] = time.perf_counter() - start
    with np.errstate(divide="ignore"):
        scores = np.log(result.scores.reindex(index).to_numpy())
    return {"scores": scores, "seconds": seconds, "iterations": result.iterations}


def choix(data, *, function, counted=False, **options):
    """Lists of pairs or of orders, made before the clock starts; or the matrix of wins, counted by NumPy."""
    import choix as library

    items, fit = int(data["items"]), getattr(library, function)
    if "orders" in data:
        given = [[item for item in order if item >= 0] for order in data["orders"].tolist()]
    else:
        given = list(zip(data["winner"].tolist(), data["loser"].tolist(), strict=True))
    start = time.perf_counter()
    if counted:
        wins = np.bincount(data["winner"].astype(np.int64) * items + data["loser"], minlength=items * items)
        scores = fit(wins.reshape(items, items).astype(float), **options)
    else:
        scores = fit(items, given, **options)
    return {"scores": scores, "seconds": {"all": time.perf_counter() - start}}


def arena_rank(data, *, intervals=False, **options):
    """Votes counted by NumPy, so that its own table of words is not charged. Compiles anew at every fit."""
    import jax.numpy as jnp
    from arena_rank.models.bradley_terry import BradleyTerry
    from arena_rank.utils.data_utils import PairDataset

    items = int(data["items"])
    start = time.perf_counter()
    winner, loser, votes = count(data["winner"], data["loser"], items)
    ones, votes = jnp.ones(len(votes)), jnp.asarray(votes)
    pairs = jnp.asarray(np.stack([winner, loser], axis=1).astype(np.int32))
    dataset = PairDataset(list(range(items)), pairs, outcomes=ones, counts=votes, weights=ones, opt_weights=votes)
    model = BradleyTerry(items, **options)
    scores = np.asarray(model.fit(dataset).params["ratings"])
    answer = {"scores": scores, "seconds": {"all": time.perf_counter() - start}}
    if intervals:
        table = model.compute_ratings_and_cis(dataset)
        answer["errors"] = np.sqrt(np.asarray(table["variances"])) / model.alpha
    return answer


def count(winner, loser, items):
    """Winner, loser and votes of every ordered pair that has some."""
    key = winner.astype(np.int64) * items + loser
    if items * items <= 4 * len(key) + (1 << 22):
        votes = np.bincount(key, minlength=items * items)
        key = np.flatnonzero(votes)
        votes = votes[key]
    else:
        key, votes = np.unique(key, return_counts=True)
    return key // items, key % items, votes.astype(float)


METHODS = {"evalica": evalica, "choix": choix, "arena_rank": arena_rank}


def answer(request):
    """Run one request; an exception is an answer."""
    data = dict(np.load(request["data"]))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            out = METHODS[request["method"]](data, **request.get("options", {}))
            error = None
        except Exception as problem:
            out, error = {}, f"{type(problem).__name__}: {problem}"
    for name in ("scores", "errors"):
        if name in out:
            out[name] = np.asarray(out[name], np.float64).tolist()
    return out | {"error": error, "warnings": sorted({str(w.message) for w in caught})}


def main() -> None:
    """Answer until there is no request."""
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
