"""Firth's estimate: the maximum of the likelihood times Jeffreys' prior, finite where the likelihood has none."""

from __future__ import annotations

import dataclasses

import numpy as np

from rmjax.errors import RMJaxError, SampleSizeError
from rmjax.preferences.linear import DENSE, Gauge
from rmjax.preferences.newton import Optimum, minimise
from rmjax.preferences.pairwise import PairTerms

_ROUNDS = 500


def bias_reduced(terms: PairTerms, start: np.ndarray, gauge: Gauge) -> Optimum:
    r"""Maximise $\log L + \frac12 \log\det I$ on the complement of the constants.

    Its gradient is that of the likelihood in which either side of a pair has $h/2$ votes more, with $h = n p(1-p) R$
    the leverage of the pair and R its effective resistance; the two are made to agree by turns.

    Args:
        terms: Bradley-Terry votes within connected sets of items.
        start: the unknowns.
        gauge: one constant per connected set.

    Returns:
        The estimate; its value is the negative log-likelihood, its Hessian the Fisher information, both without the
        prior, and its gradient that of what is maximised.

    Raises:
        SampleSizeError: more items than a dense inverse is made for.
        RMJaxError: the turns do not settle.
    """
    if len(start) > DENSE:
        raise SampleSizeError(
            "bias reduction needs the leverage of every pair, from a dense inverse",
            {"items": len(start), "most": DENSE},
            "Fit with a ridge, or fewer items.",
        )
    x, change = start, np.inf
    for _ in range(_ROUNDS):
        _, _, bend = terms.terms(x)
        more = _leverage(terms, bend, gauge) / 2
        votes = terms.rows.votes + more[:, None]
        found = minimise(dataclasses.replace(terms, rows=dataclasses.replace(terms.rows, votes=votes)), x, gauge)
        before, change = change, float(np.abs(found.x - x).max(initial=0))
        x = found.x
        size = 1 + float(np.abs(x).max(initial=0))
        # Where weights are uneven, a step no longer shrinks at what they round.
        if change <= 1e-13 * size or before <= change <= 1e-9 * size:
            value, _, hessian = terms.derivatives(x)
            return Optimum(x, value, found.gradient, hessian, found.iterations)
    raise RMJaxError(
        "the bias-reduced estimate did not settle", {"rounds": _ROUNDS, "change": change}, "Fit with a ridge instead."
    )


def _leverage(terms: PairTerms, bend: np.ndarray, gauge: Gauge) -> np.ndarray:
    """Trace of the information of every row times the inverse of the whole, [E]."""
    size = terms.items + len(terms.names)
    inverse = gauge.solver(terms.hessian(bend))(np.eye(size))
    i, j, n = terms.rows.first, terms.rows.second, terms.items
    spread = inverse[i, i] + inverse[j, j] - 2 * inverse[i, j]
    if terms.position:
        z = terms.rows.order
        spread = spread + z * z * inverse[n, n] + 2 * z * (inverse[i, n] - inverse[j, n])
    return bend[:, 0, 0] * spread
