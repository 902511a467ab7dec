"""The summary in plain sentences."""

from __future__ import annotations

import numpy as np

from rmjax.diagnostics import Ceiling, Estimate, Scores, Summary
from rmjax.diagnostics.evaluation import SwapCheck
from rmjax.report.numbers import Kind, counted, interval, plural, written

SEEN = 5e-4  # a share below it is written as 0.0 %


def label_name(summary: Summary) -> str:
    """What one label is called: a single vote where the file has several on a pair, else a label."""
    return "single vote" if summary.agreement.measured else "label"


def sentences(summary: Summary) -> tuple[str, ...]:
    """What a reader should take away, most important first.

    Every sentence that claims a difference rests on an interval; where there is none, the sentence says so.

    Args:
        summary: the numbers.

    Returns:
        Sentences.
    """
    label = label_name(summary)
    main, name = summary.against_votes, label
    found = []
    if summary.against_gold:
        main, name = summary.against_gold, "decided label"
        found.append(_accuracy(summary.against_gold.accuracy, name, summary))
    found.append(_accuracy(summary.against_votes.accuracy, label, summary))
    found.append(_ceiling(summary))
    found.append(_length(main, name, summary))
    found.append(_calibration(summary))
    if summary.settling:
        found.append(_settling(summary))
    if summary.swap:
        # A model that knows the sides of its input makes every number below meaningless: that comes first.
        found.insert(len(found) if summary.swap.passed else 0, _swap(summary))
    return tuple(found)


def with_interval(estimate: Estimate, kind: Kind) -> str:
    """An interval in words, at its level."""
    if not estimate.has_interval:
        return interval(estimate, kind)
    return f"{100 * estimate.level:g} % interval {interval(estimate, kind)}"


def _accuracy(estimate: Estimate, label: str, summary: Summary) -> str:
    basis = plural(estimate.clusters, summary.cluster_name)
    if summary.unit != summary.cluster_name:
        basis = f"{plural(estimate.count, label if summary.unit == 'vote' else summary.unit)}, {basis}"
    share = written(estimate.value, "share")
    return f"The model agrees with {share} of the {label}s ({with_interval(estimate, 'share')}; {basis})."


def _ceiling(summary: Summary) -> str:
    ceiling = summary.agreement.ceiling
    if ceiling is None:
        reason = summary.agreement.reason
        if summary.agreement.measured:
            return f"Accuracy has no ceiling to be read against, because {reason}."
        return f"Agreement was not measured, because {reason}, and accuracy has no ceiling to be read against."
    place = _place(summary.against_votes.accuracy, ceiling)
    bounds = f"{written(ceiling.lower, 'share', unit=False)} and {written(ceiling.upper, 'share')}"
    if ceiling.agreement.has_interval:
        low, high = written(ceiling.confidence[0], "share", unit=False), written(ceiling.confidence[1], "share")
        bounds += f" ({low} and {high} within the error of that agreement)"
    who, half = "Two annotators who both decide", ""
    if summary.ties == "half":
        who, half = "Two annotators", "; a tie agrees by half with any vote"
    alone = ""
    if ceiling.covered < 1 - SEEN:
        alone = f"; of the {written(1 - ceiling.covered, 'share')} on pairs with one such vote nothing is known"
    return (
        f"{who} agree on {written(ceiling.agreement.value, 'share')} of the pairs, weighed as in the accuracy "
        f"({with_interval(ceiling.agreement, 'share')}{half}{alone}). So the best possible accuracy against single "
        f"votes lies between {bounds}. {place}"
    )


def _place(accuracy: Estimate, ceiling: Ceiling) -> str:
    """Where an accuracy stands with respect to the ceiling."""
    share = written(accuracy.value, "share")
    if np.isnan(ceiling.confidence).any() and not ceiling.lower <= accuracy.value <= ceiling.upper:
        return f"The model's {share} lies outside that interval, of which nobody knows how sure it is."
    if accuracy.value < ceiling.lower:
        if not accuracy.excludes(ceiling.lower) or not accuracy.value < ceiling.confidence[0]:
            return f"The model's {share} is below that interval, but within the error of one of them."
        return f"The model's {share} is below that interval: better is possible."
    if accuracy.value == ceiling.upper:
        return f"The model's {share} is the upper end of that interval: nothing better is possible."
    if accuracy.value < ceiling.upper:
        return f"The model's {share} lies inside that interval: agreement alone cannot say whether better is possible."
    if not accuracy.excludes(ceiling.upper) or not accuracy.value > ceiling.confidence[1]:
        return f"The model's {share} is above that interval, but within the error of one of them."
    return (
        f"The model's {share} is above that interval, which no model should reach: look for a leak between training "
        "and evaluation, or for votes that are not independent."
    )


def _length(scores: Scores, label: str, summary: Summary) -> str:
    longer, gain, rule = scores.length.longer_wins, scores.length.gain, scores.length.rule
    share = longer.value if rule == "longer" else 1 - longer.value
    baseline = f"Choosing the {rule} answer agrees with {written(share, 'share')} of the {label}s"
    mean = f"averaged over {summary.cluster_name}s"
    if not gain.has_interval:
        return f"{baseline}; whether the model is better cannot be said ({gain.method})."
    by = f"{written(abs(gain.value), 'share', unit=False)} points"
    bounds = with_interval(gain, "points")
    if not gain.excludes(0):
        difference = written(gain.value, "points")
        return f"{baseline}; {mean}, the model cannot be told from that rule (difference {difference}, {bounds})."
    verdict = "better" if gain.value > 0 else "worse"
    return f"{baseline}; {mean}, the model is {verdict} by {by} ({bounds})."


def _calibration(summary: Summary) -> str:
    error, floor = summary.calibration.error, summary.calibration.noise_floor
    off = f"The predicted shares of annotators are off by {written(error, 'share', unit=False)} points on average"
    noise = f"{written(floor, 'share', unit=False)} points"
    if error <= summary.calibration.noise_upper:
        return f"{off}; a perfectly calibrated model would show about {noise} on a sample like this one."
    return f"{off}, more than noise explains: a perfectly calibrated model would show about {noise} here."


def _settling(summary: Summary) -> str:
    curve = summary.settling
    assert curve is not None
    last = len(curve.depth) - 1
    median = curve.settled_layer[1]
    if median != median:
        return "No pair has a margin that can be told from rounding, so there is no layer where decisions settle."
    typical = f"In the median pair the decision holds from layer {median:g} of {last} on"
    if curve.population_layer is None:
        return f"{typical}; from which layer on the accuracy holds cannot be said, because {curve.reason}."
    return (
        f"{typical}; the accuracy stays within the interval of its final value from layer {curve.population_layer} on."
    )


def _swap(summary: Summary) -> str:
    swap = summary.swap
    assert swap is not None
    exchanged = f"xchanging the two sides of {plural(swap.comparisons, 'comparison')} and scoring anew"
    if swap.passed and swap.undecided == swap.comparisons:
        return f"E{exchanged} could test nothing: {flipped(swap)}."
    if swap.passed:
        return f"E{exchanged} flips every decision, as it must: {flipped(swap)}."
    return (
        f"Warning: e{exchanged} did more than change the signs of margins: {flipped(swap)}, and margins that must "
        f"cancel left up to {swap.largest_sum:.2g} logits, where rounding explains {swap.rounding:.2g}. "
        "The score depends on which side an answer stands on; do not use these numbers before that is understood."
    )


def flipped(swap: SwapCheck) -> str:
    """How many decisions flipped of those that could.

    Args:
        swap: the check.

    Returns:
        Text.

    Example:
        >>> flipped(SwapCheck(60, 1e-6, kept=0, undecided=7))
        'all of 53 that could flip did, and 7 margins are 0 up to rounding'
    """
    tested = swap.comparisons - swap.undecided
    zero = f"{plural(swap.undecided, 'margin')} {'is' if swap.undecided == 1 else 'are'} 0 up to rounding"
    if tested == 0:
        return zero
    did = f"{counted(swap.kept)} of {counted(tested)} that could flip did not" if swap.kept else ""
    did = did or f"all of {counted(tested)} that could flip did"
    return f"{did}, and {zero}" if swap.undecided else did
