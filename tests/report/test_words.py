"""The sentences say what the intervals allow, and no more."""

import dataclasses
import re

import numpy as np
import pytest

from rmjax.diagnostics import SwapCheck, clustered_proportion, summarise
from rmjax.report.words import sentences
from tests.report.reports import bare, evaluation


def estimate(value, error=0.02, clusters=16):
    bounds = (value - error, value + error) if error else (float("nan"), float("nan"))
    method = "t" if error else "no interval: 1 cluster, and 2 are needed"
    return dataclasses.replace(
        clustered_proportion([1, 0], [1, 1], [0, 1]),
        value=value, lower=bounds[0], upper=bounds[1], clusters=clusters, method=method,
    )  # fmt: skip


def changed(accuracy=None, confidence=None, gain=None, longer=None, calibration=None):
    """A summary whose ceiling is .70 to .82, with some numbers replaced."""
    summary = summarise(evaluation(gold=None))
    ceiling = dataclasses.replace(
        summary.agreement.ceiling, lower=0.70, upper=0.82, confidence=confidence or (0.68, 0.84)
    )
    agreement = dataclasses.replace(summary.agreement, ceiling=ceiling)
    scores = summary.against_votes
    length = dataclasses.replace(scores.length, gain=gain or scores.length.gain, longer_wins=longer or estimate(0.6))
    length = dataclasses.replace(length, rule="longer" if length.longer_wins.value >= 0.5 else "shorter")
    scores = dataclasses.replace(scores, accuracy=accuracy or scores.accuracy, length=length)
    calibration = dataclasses.replace(summary.calibration, **(calibration or {}))
    return dataclasses.replace(summary, agreement=agreement, against_votes=scores, calibration=calibration)


def about(summary, word):
    found = [s for s in sentences(summary) if word in s]
    assert len(found) == 1, sentences(summary)
    return found[0]


@pytest.mark.parametrize(
    ("accuracy", "confidence", "verdict"),
    [
        (estimate(0.60), None, "below that interval: better is possible"),
        (estimate(0.69), None, "within the error of one of them"),
        (estimate(0.65), (0.64, 0.84), "within the error of one of them"),
        (estimate(0.60), (float("nan"), float("nan")), "nobody knows how sure"),
        (estimate(0.75), None, "inside that interval: agreement alone cannot say"),
        (estimate(0.83), None, "within the error of one of them"),
        (estimate(0.82), None, "the upper end of that interval: nothing better"),
        (estimate(0.86, error=0.05), None, "within the error of one of them"),
        (estimate(0.95), None, "look for a leak"),
        (estimate(0.95), (float("nan"), float("nan")), "nobody knows how sure"),
    ],
)
def test_accuracy_is_read_against_the_ceiling(accuracy, confidence, verdict):
    sentence = about(changed(accuracy=accuracy, confidence=confidence), "best possible")
    assert "between 70.0 and 82.0 %" in sentence
    assert verdict in sentence


@pytest.mark.parametrize(
    ("gain", "verdict"),
    [
        (estimate(0.08), "the model is better by 8.0 points"),
        (estimate(-0.08), "the model is worse by 8.0 points"),
        (estimate(0.01), "cannot be told from that rule"),
        (estimate(0.08, error=0), "cannot be said (no interval: 1 cluster"),
    ],
)
def test_better_than_length_needs_an_interval(gain, verdict):
    assert verdict in about(changed(gain=gain), "Choosing the longer answer")


def test_the_better_rule_of_length_is_named():
    assert "agrees with 60.0 %" in about(changed(longer=estimate(0.4)), "Choosing the shorter answer")


def test_noise_is_not_called_miscalibration():
    floor = {"noise_floor": 0.02, "noise_upper": 0.03}
    assert "more than noise explains" in about(changed(calibration=floor | {"error": 0.031}), "predicted shares")
    assert "more than noise" not in about(changed(calibration=floor | {"error": 0.029}), "predicted shares")


def test_a_ceiling_says_what_it_is_of_and_how_sure_it_is():
    whole = about(summarise(evaluation(gold=None)), "best possible")
    assert "Two annotators who both decide agree on" in whole
    assert re.search(r"between [\d.]+ and [\d.]+ % \([\d.]+ and [\d.]+ % within the error of that agreement\)", whole)
    ties = about(summarise(evaluation(gold=None, ties="half")), "best possible")
    assert ties.startswith("Two annotators agree on")
    assert "a tie agrees by half with any vote" in ties
    votes = evaluation().votes.copy()
    votes[:30] = np.eye(votes.shape[1])[0]
    c = dataclasses.replace(evaluation().comparisons, wins_first=votes[:, 0], wins_second=votes[:, 1], ties=votes[:, 2])
    alone = about(summarise(evaluation(gold=None, votes=votes, comparisons=c)), "best possible")
    assert re.search(r"of the [\d.]+ % on pairs with one such vote nothing is known", alone)


def test_one_label_a_pair_has_no_ceiling_and_says_so():
    sentence = about(summarise(bare()), "Agreement")
    assert "Agreement was not measured" in sentence
    assert "accuracy has no ceiling to be read against" in sentence
    selected = about(summarise(evaluation(selected=True)), "no ceiling")
    assert "selected by agreement" in selected


def test_labels_are_called_what_they_are():
    assert "of the decided labels" in sentences(summarise(evaluation()))[0]
    assert "of the single votes" in sentences(summarise(evaluation()))[1]
    assert "of the labels" in sentences(summarise(bare()))[0]
    per_prompt = sentences(summarise(evaluation(unit="prompt")))[0]
    assert per_prompt.endswith("; 12 prompts).")
    per_pair = sentences(summarise(evaluation(unit="comparison", cluster_name="source")))[0]
    assert re.search(r"; \d+ comparisons, 12 sources\)\.$", per_pair)
    assert not any("correct" in s for s in sentences(summarise(evaluation())))


def test_a_swap_that_could_flip_nothing_says_so():
    said = [sentences(summarise(evaluation(swap=SwapCheck(60, 1e-6, 0, undecided=n))))[-1] for n in (0, 7, 60)]
    assert said[0].endswith("flips every decision, as it must: all of 60 that could flip did.")
    assert said[1].endswith("all of 53 that could flip did, and 7 margins are 0 up to rounding.")
    assert said[2].endswith("could test nothing: 60 margins are 0 up to rounding.")


def test_a_failed_swap_comes_first_and_a_passed_one_last():
    passed, failed = (sentences(summarise(evaluation(swap=SwapCheck(60, 1e-6, kept)))) for kept in (0, 7))
    assert "flips every decision" in passed[-1]
    assert failed[0].startswith("Warning")
    assert "7 of 60 that could flip did not" in failed[0]
    sided = sentences(summarise(evaluation(swap=SwapCheck(60, 0.5, 0))))[0]
    assert "all of 60 that could flip did, and margins that must cancel left up to 0.5 logits" in sided
    assert "rounding explains 0.001" in sided


def test_settling_is_said_where_there_is_a_layer():
    whole, zero = summarise(evaluation()), summarise(evaluation(margins=np.zeros(60), layer_margins=np.zeros((3, 60))))
    assert f"from layer {whole.settling.settled_layer[1]:g} of 4 on" in about(whole, "decision holds")
    about(zero, "no layer where decisions settle")
    unsure = dataclasses.replace(whole.settling, population_layer=None, reason="so it is")
    assert "cannot be said, because so it is" in about(dataclasses.replace(whole, settling=unsure), "decision holds")


def test_no_interval_is_said_and_not_invented():
    lone = sentences(summarise(bare(clusters=1)))
    assert "2 are needed" in lone[0]
    assert not any("95 %" in s for s in lone)
