"""What annotators are like: how each of them errs, by Dawid and Skene's estimate from their labels alone."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import ArrayLike

from rmjax.errors import DataError, SampleSizeError
from rmjax.votes import CANNOT_JUDGE, Votes, check_items

_LARGEST = 1 << 28  # counts of 8 bytes


@dataclasses.dataclass(frozen=True)
class DawidSkene:
    """Classes of the items and confusions of the annotators, at a maximum of the likelihood or on the way to one."""

    posterior: np.ndarray  # [items, categories], chance of every class given the labels
    prevalence: np.ndarray  # [categories], share of the items of every class
    confusion: np.ndarray  # [annotators, class, label], chance of a label; NaN where nothing of that class was judged
    log_likelihood: float  # nats, at these numbers
    trace: np.ndarray  # [iterations + 1], the log-likelihood at every step; it never falls
    iterations: int
    converged: bool  # whether the last step moved no posterior by more than the tolerance


def label_counts(votes: Votes, num_items: int | None = None) -> np.ndarray:
    """How often which annotator gave an item which label: first, second or tie.

    A tie is a label of its own. "Cannot judge" says nothing about the answers and is left out.

    Guarantees: summed over annotators these are the first three columns of `Votes.counts`.

    Args:
        votes: single judgements.
        num_items: number of judged comparisons; the largest index and one if absent.

    Returns:
        Counts, [items, annotators, 3].

    Raises:
        DataError: a vote is on an item beyond them.
        SampleSizeError: the table would have more numbers than fit in memory.

    Example:
        >>> votes = Votes.build(item=[0, 0, 1], annotator=[0, 1, 1], value=[0, 2, 3])
        >>> label_counts(votes).tolist()
        [[[1, 0, 0], [0, 0, 1]], [[0, 0, 0], [0, 0, 0]]]
    """
    items = int(votes.item.max(initial=-1)) + 1 if num_items is None else num_items
    annotators = int(votes.annotator.max(initial=-1)) + 1
    check_items(votes, items)
    if items * annotators * 3 > _LARGEST:
        raise SampleSizeError(
            "a table of all items and annotators is too large",
            {"items": items, "annotators": annotators, "most": _LARGEST // 3},
            "Number both from 0 without gaps, as np.unique(..., return_inverse=True) does, or take fewer of them.",
        )
    said = votes.take(votes.value != CANNOT_JUDGE)
    flat = (said.item.astype(np.int64) * annotators + said.annotator) * 3 + said.value
    return np.bincount(flat, minlength=3 * items * annotators).reshape(items, annotators, 3)


def dawid_skene(counts: ArrayLike, *, max_iterations: int = 10_000, tolerance: float = 1e-10) -> DawidSkene:
    r"""Classes of items and confusion matrices of annotators, by expectation and maximisation.

    With $n_{ial}$ labels $l$ of annotator $a$ on item $i$, class prevalence $\pi_j$ and confusions $\theta_{ajl}$,

    $$\log L = \sum_i \log \sum_j \pi_j \prod_{a,l} \theta_{ajl}^{n_{ial}}, \qquad
      T_{ij} \propto \pi_j \prod_{a,l} \theta_{ajl}^{n_{ial}}, \qquad
      \pi_j = \frac{1}{I}\sum_i T_{ij}, \qquad
      \theta_{ajl} = \frac{\sum_i T_{ij} n_{ial}}{\sum_{i,l} T_{ij} n_{ial}}$$

    It starts from the shares of labels on every item. The likelihood has several maxima, since classes can change
    names; from this start the names are those that most labels use. Labels of one annotator on one item count as
    independent, and so do labels of all annotators once the class is known: annotators who copy look reliable.

    Guarantees: the log-likelihood never falls from step to step; renaming the labels or the annotators renames the
    result; an item without labels changes nothing and has the prevalence as its posterior; every posterior and every
    confusion that is known sums to 1.

    Args:
        counts: how often which label was given, [items, annotators, categories]; see `label_counts`.
        max_iterations: steps at most; `converged` says whether they were enough.
        tolerance: largest change of a posterior at which to stop.

    Returns:
        The estimate, converged or not.

    Raises:
        DataError: the counts are not whole, are negative, or have another shape, or a bound is none.
        SampleSizeError: no item has two labels, so that no label can be held against another.

    Example:
        >>> said = [[0, 0, 0], [0, 0, 0], [1, 1, 1], [1, 1, 0], [0, 0, 1], [1, 1, 1]]  # [items, annotators]
        >>> fit = dawid_skene(np.eye(2)[said])
        >>> print(fit.posterior[:, 1].round(2), fit.confusion[2].round(2).tolist())
        [0. 0. 1. 1. 0. 1.] [[0.67, 0.33], [0.33, 0.67]]

    Reference:
        Dawid and Skene, Maximum likelihood estimation of observer error-rates using the EM algorithm, Applied
        Statistics 1979, equations 2.3 to 2.5.
    """
    every = _label_counts(counts)
    if max_iterations < 1 or not tolerance > 0:
        raise DataError(
            "the bounds of the iteration are above 0",
            {"max_iterations": max_iterations, "tolerance": tolerance},
            "Allow at least one step, and a change above 0.",
        )
    items, annotators, categories = every.shape
    labelled = every.sum(axis=(1, 2)) > 0
    n = every[labelled].reshape(-1, annotators * categories)
    posterior = every[labelled].sum(axis=1) / n.sum(axis=1, keepdims=True)
    trace: list[float] = []
    change = np.inf
    while True:
        prevalence = posterior.mean(axis=0)
        confusion = _confusion(posterior, n, annotators)
        expected, log_likelihood = _expectation(n, prevalence, confusion)
        trace.append(log_likelihood)
        change = float(np.abs(expected - posterior).max())
        posterior = expected
        if change <= tolerance or len(trace) > max_iterations:
            break
    full = np.tile(prevalence, (items, 1))
    full[labelled] = posterior
    return DawidSkene(
        posterior=full,
        prevalence=prevalence,
        confusion=confusion,
        log_likelihood=trace[-1],
        trace=np.array(trace),
        iterations=len(trace) - 1,
        converged=change <= tolerance,
    )


def _confusion(posterior: np.ndarray, n: np.ndarray, annotators: int) -> np.ndarray:
    """Share of every label among an annotator's labels of a class, [annotators, class, label]."""
    given = (posterior.T @ n).reshape(posterior.shape[1], annotators, -1).swapaxes(0, 1)
    total = given.sum(axis=2, keepdims=True)
    return np.divide(given, total, out=np.full_like(given, np.nan), where=total > 0)


def _expectation(n: np.ndarray, prevalence: np.ndarray, confusion: np.ndarray) -> tuple[np.ndarray, float]:
    """Chance of every class given the labels, [items, class], and the log-likelihood."""
    theta = confusion.swapaxes(0, 1).reshape(len(prevalence), -1)
    # 0 log 0 is 0, and a label that a class never gets rules that class out: neither is left to arithmetic with inf.
    seen = theta > 0
    log_theta = np.log(np.where(seen, theta, 1.0))
    joint = n @ log_theta.T + np.log(np.where(prevalence > 0, prevalence, 1.0))
    joint = np.where((n @ ~seen.T > 0) | (prevalence == 0), -np.inf, joint)
    top = joint.max(axis=1, keepdims=True)
    weight = np.exp(joint - top)
    total = weight.sum(axis=1, keepdims=True)
    return weight / total, float((top + np.log(total)).sum())


def _label_counts(counts: ArrayLike) -> np.ndarray:
    """Label counts in float64, checked."""
    try:
        n = np.asarray(counts, np.float64)
    except (ValueError, TypeError):  # words, or rows of different lengths
        n = np.zeros((0, 0, 0))
    if n.ndim != 3 or n.shape[2] < 2:
        raise DataError(
            "label counts are [items, annotators, categories] with two categories or more",
            {"shape": n.shape},
            "Make them of votes with label_counts.",
        )
    wrong = ~((n >= 0) & (n == np.floor(n)) & np.isfinite(n))
    if wrong.any():
        i, a, label = (int(x) for x in np.argwhere(wrong)[0])
        raise DataError(
            "label counts are whole and not negative",
            {"item": i, "annotator": a, "label": label, "count": n[i, a, label]},
            "Count labels; a share of one is none.",
        )
    most = n.sum(axis=(1, 2)).max(initial=0)
    if most < 2:
        raise SampleSizeError(
            "no item has two labels, so that no annotator can be held against another",
            {"items": len(n), "labels_on_one": int(most)},
            "Let several annotators label the same items.",
        )
    return n
