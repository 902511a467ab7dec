"""Reports on simulated worlds, whole and with parts missing."""

import dataclasses

import numpy as np

from rmjax import Comparisons
from rmjax.diagnostics import Evaluation, Levels, Provenance, SwapCheck
from rmjax.report import build_report
from tests.diagnostics.worlds import world

LEVELS = Levels(-123456.7, 345678.9, 987654.3)


def evaluation(seed=0, **changes):
    """An evaluation with every part."""
    margins, comparisons, gold, lengths, cluster = world(seed)
    rng = np.random.default_rng(seed)
    depth = np.linspace(0, 1, 5)[:, None]
    layers = depth * margins + (1 - depth) * rng.normal(0, 1, (5, len(margins)))
    votes = np.stack([comparisons.wins_first, comparisons.wins_second, comparisons.ties], axis=1)
    whole = Evaluation(
        margins,
        comparisons,
        cluster,
        lengths,
        Provenance("a model", "0f3a91", "pairs.jsonl", "held out by prompt", (("Text", "as it stands"),)),
        gold=gold,
        votes=votes,
        layer_margins=layers,
        ties="drop",
        swap=SwapCheck(60, 1e-6, 0),
        levels=LEVELS,
    )
    return dataclasses.replace(whole, **changes)


def bare(clusters=2):
    """An evaluation with nothing but margins and one label a pair."""
    prompt = np.repeat(np.arange(4), 2)
    return Evaluation(
        np.array([1.0, -0.5, 0.0, 2.0]),
        Comparisons.from_pairs([0, 2, 4, 6], [1, 3, 5, 7], prompt=prompt),
        np.arange(4) % clusters,
        np.array([9, 4, 6, 6, 3, 8, 2, 1]),
        Provenance("a model", "0f3a91", "pairs.jsonl"),
    )


def rows(steps=30, layers=5, held_out=True):
    """Rows of metrics as a run logs them, levels included."""
    made = []
    for step in range(1, steps + 1):
        share = step / steps
        row = {"step": step, "loss": 0.7 - 0.2 * share, "margin": share, "accuracy": 0.5 + 0.3 * share, "count": 8.0}
        row |= {"layer_margin": [share * layer / (layers - 1) for layer in range(layers)]}
        row |= {"min_reward": LEVELS.smallest, "mean_reward": LEVELS.mean, "max_reward": LEVELS.largest}
        if held_out and step % 10 == 0:
            row |= {
                "eval_loss": 0.7 - 0.1 * share,
                "eval_margin": 0.8 * share,
                "eval_accuracy": 0.5,
                "eval_count": 99.0,
            }
        made.append(row)
    return made


def variants():
    """Every combination of missing parts that a user may meet, by name."""
    one_cluster = evaluation(cluster=np.zeros(60, int))
    made = {
        "whole": build_report(evaluation(), rows(), cost=[("Tokens", "1,000")]),
        "bare": build_report(bare()),
        "one cluster": build_report(bare(clusters=1)),
        "votes without gold": build_report(evaluation(gold=None)),
        "no votes": build_report(evaluation(votes=None), [{"step": 1, "loss": 0.7}, {"step": 2, "loss": 0.6}]),
        "no layers": build_report(evaluation(layer_margins=None), rows(held_out=False)),
        "whole, one cluster": build_report(one_cluster, rows(steps=1)),
        "swap failed": build_report(evaluation(swap=SwapCheck(60, 3.0, 7))),
        "selected": build_report(evaluation(selected=True, ties="half", unit="prompt")),
        "all margins zero": build_report(evaluation(margins=np.zeros(60), layer_margins=np.zeros((3, 60)))),
    }
    return made
