"""Maximum likelihood of votes and rankings, with the report of what it rests on."""

from __future__ import annotations

import dataclasses
from typing import Literal, get_args

import numpy as np

from rmjax.checks import one_of
from rmjax.comparisons import Comparisons, Rankings, Ties
from rmjax.errors import DataError, IdentifiabilityError
from rmjax.identifiability.identify import Identification, identify
from rmjax.losses.links import WITH_TIES, check_policy
from rmjax.preferences.estimate import Fit, Solution
from rmjax.preferences.firth import bias_reduced
from rmjax.preferences.linear import Gauge
from rmjax.preferences.listwise import RankingTerms, ranking_terms
from rmjax.preferences.newton import Optimum, minimise
from rmjax.preferences.pairwise import PairTerms
from rmjax.preferences.recession import check_parameters
from rmjax.preferences.rows import gather

FitLink = Literal["bradley_terry", "thurstone", "rao_kupper", "davidson"]


def fit(
    comparisons: Comparisons | Rankings,
    *,
    link: FitLink = "bradley_terry",
    ridge: float = 0.0,
    bias_reduction: bool = False,
    position: bool = False,
    ties: Ties | None = None,
) -> Fit:
    r"""Scores that make the votes likeliest.

    $$\hat r = \arg\min_r \; \mathrm{NLL}(r) + \frac{\tau}{2}\|r\|^2$$

    with the likelihood of `losses.negative_log_likelihood` under the same link, and for `Rankings` that of
    `losses.plackett_luce`. Newton's method in float64; up to 3,000 unknowns by factorisation, beyond by conjugate
    gradients on the sparse Laplacian.

    Where no maximum exists, votes between strong components say nothing finite: each strong component is fitted on its
    own votes, and what is beyond is refused by `contrast`. A ridge or bias reduction makes all scores finite; no
    contrast between sets that were never compared is identified by it.

    Guarantees: expected wins equal wins; contrasts do not depend on how scores are fixed, nor on the order or the names
    of the comparisons; m times the votes leave the scores and divide variances by m; an unrelated island changes
    nothing; reversing all votes reverses the scores; each estimate comes with its gradient.

    Args:
        comparisons: the judged pairs with their votes, or rankings.
        link: "bradley_terry"; "thurstone", whose unit is the standard deviation of a difference; "rao_kupper" and
            "davidson", which have a probability for ties and estimate its parameter.
        ridge: τ >= 0; the standard errors are then those of the Laplace approximation of the posterior.
        bias_reduction: Firth's estimate, which is finite wherever items are compared at all.
        position: estimate the effect of being shown first, from `comparisons.order`.
        ties: what a link that has no ties does with them.

    Returns:
        The estimate, with the report of what it rests on.

    Raises:
        DataError: comparisons that are none; ties that nobody said what to do with; a ridge that is negative; options
            that do not go together.
        IdentifiabilityError: the tie parameter or the effect of position is infinite, or the data say nothing of it.
        RMJaxError: the maximum was not reached.

    Example:
        >>> games = Comparisons.from_wins([[0, 3, 2], [1, 0, 2], [1, 2, 0]])
        >>> estimate = fit(games)
        >>> margin = estimate.contrast(0, 1)
        >>> print(f"{margin.value:.3f} +- {margin.standard_error:.3f} logits")
        0.962 +- 0.919 logits

    Reference:
        Hunter, MM algorithms for generalized Bradley-Terry models, Annals of Statistics 2004; Firth, Bias reduction of
        maximum likelihood estimates, Biometrika 1993.
    """
    one_of("link", link, get_args(FitLink))
    if not isinstance(comparisons, Comparisons | Rankings):
        raise DataError(
            "a fit is of comparisons or rankings",
            {"given": type(comparisons).__name__},
            "Build them: Comparisons.from_votes(...), or Comparisons.from_wins of a matrix of wins.",
        )
    rank = isinstance(comparisons, Rankings)
    _check_options(link, ridge, bias_reduction, position, ties, rank)
    report = identify(comparisons, link=link, ties=ties)
    penalised = bias_reduction or ridge > 0
    block, number = _blocks(report, penalised, everyone=ridge > 0)
    items = int(number.max(initial=-1)) + 1
    gauge = Gauge(block[number >= 0], free=ridge == 0)
    if rank:
        terms = ranking_terms(comparisons, block, number, ridge)
        start = np.zeros(items)
    else:
        rows = gather(comparisons, link, ties, position)
        rows = rows.take((block[rows.first] == block[rows.second]) & (block[rows.first] >= 0))
        rows = dataclasses.replace(rows, first=number[rows.first], second=number[rows.second])
        if items and not bias_reduction:  # whose prior holds every parameter of which the votes say anything
            check_parameters(rows, items, link, position, held=ridge > 0)
        terms = PairTerms(rows, items, link, position, ridge)
        start = np.concatenate([np.zeros(items), _start(terms)])[: items + len(terms.names)]
    # A ridge leaves no constant free, and its optimum sums to 0 in every set all the same.
    found = _maximise(terms, start, dataclasses.replace(gauge, free=True), bias_reduction)
    scores = np.full(len(report.prompt), np.nan)
    scores[number >= 0] = found.x[:items]
    return Fit(
        scores=scores,
        parameters=dict(zip(terms.names, found.x[items:].tolist())),
        identification=report,
        log_likelihood=ridge / 2 * float(found.x[:items] @ found.x[:items]) - found.value,
        gradient_norm=float(np.abs(found.gradient).max(initial=0)),
        iterations=found.iterations,
        link="plackett_luce" if rank else link,
        penalised=penalised,
        solution=Solution(terms, found, gauge, number, comparisons, ties),
    )


def _maximise(terms: PairTerms | RankingTerms, start: np.ndarray, gauge: Gauge, bias_reduction: bool) -> Optimum:
    if not len(gauge.block):
        return Optimum(start, 0.0, np.zeros(len(start)), np.zeros((len(start), len(start))), 0)
    if terms.names:
        _check_pinned(terms, start, gauge)
    if bias_reduction and isinstance(terms, PairTerms):
        return bias_reduced(terms, start, gauge)
    positive = terms.items if "log_threshold" in terms.names else None
    return minimise(terms, start, gauge, positive)


def _blocks(report: Identification, penalised: bool, everyone: bool) -> tuple[np.ndarray, np.ndarray]:
    """The set that an item is fitted in [N], and its place among the unknowns [N]; -1 where it is in none."""
    label = report.components if penalised else report.strong_components
    there = label >= 0
    alone = np.bincount(label[there], minlength=1)[label] < 2
    fitted = there & (everyone | ~alone)
    block, number = np.full(len(label), -1), np.full(len(label), -1)
    _, block[fitted] = np.unique(label[fitted], return_inverse=True)
    number[fitted] = np.arange(fitted.sum())
    return block, number


def _start(terms: PairTerms) -> np.ndarray:
    """Parameters at which equals tie as often as all pairs do; no effect of position."""
    own = []
    if terms.link in WITH_TIES:
        share = float(terms.rows.votes[:, 2].sum() / max(terms.rows.votes.sum(), 1e-300))
        share = min(max(share, 1e-6), 1 - 1e-6)
        davidson = np.log(2 * share / (1 - share))
        own = [davidson if terms.link == "davidson" else np.log1p(share) - np.log1p(-share)]
    return np.array([*own, *([0.0] if terms.position else [])])


def _check_pinned(terms: PairTerms | RankingTerms, start: np.ndarray, gauge: Gauge) -> None:
    """Refuse parameters that a change of the scores imitates: what is left of their information is nothing."""
    # Of the votes alone: a ridge gives a number to what they do not say. An item without votes has nothing to say.
    _, _, hessian = dataclasses.replace(terms, ridge=0.0).derivatives(start)
    n, met = terms.items, np.flatnonzero(np.bincount(gauge.block)[gauge.block] > 1)
    if not isinstance(hessian, np.ndarray):
        hessian = hessian.tocsc()
    border, own = (
        np.asarray(part if isinstance(part, np.ndarray) else part.toarray())
        for part in (hessian[:n, n:], hessian[n:, n:])
    )
    scores, left = hessian[met][:, met], own
    if len(met):
        inner = Gauge(np.unique(gauge.block[met], return_inverse=True)[1])
        solve = inner.solver(scores if isinstance(scores, np.ndarray) else scores.tocsr())
        left = own - border[met].T @ solve(border[met])
    lost = np.diagonal(left) <= 1e-9 * np.diagonal(own)
    if lost.any():
        names = [name for name, gone in zip(terms.names, lost) if gone]
        raise IdentifiabilityError(
            f"the data say nothing of {' and '.join(names)}: a change of the scores does the same",
            {"information": np.diagonal(own).tolist(), "left": np.diagonal(left).tolist()},
            "Show pairs in both orders; where an order is always the same, it is part of the score.",
        )


def _check_options(
    link: str, ridge: float, bias_reduction: bool, position: bool, ties: Ties | None, rank: bool
) -> None:
    """Refuse what does not go together."""
    if not (isinstance(ridge, int | float | np.number) and not isinstance(ridge, bool) and 0 <= ridge < np.inf):
        raise DataError("a ridge is a finite number, not negative", {"ridge": ridge}, "Give 0 for none.")
    if bias_reduction and (ridge > 0 or rank or link != "bradley_terry"):
        raise DataError(
            "bias reduction is made for Bradley-Terry votes, without a ridge",
            {"link": link, "ridge": ridge, "rankings": rank},
            "Leave one of them out.",
        )
    if rank and (position or link != "bradley_terry" or ties is not None):
        raise DataError(
            "rankings have a likelihood of their own",
            {"link": link, "position": position, "ties": ties},
            "Leave the link, the position and the ties unset.",
        )
    check_policy(link, ties)
