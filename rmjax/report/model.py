"""What a report holds, and how it is built from an evaluation."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from rmjax.comparisons import Unit
from rmjax.diagnostics import Evaluation, Summary, as_json, summarise
from rmjax.diagnostics.intervals import LEVEL
from rmjax.report.numbers import Row
from rmjax.report.training import Training, training
from rmjax.report.words import label_name, sentences


@dataclasses.dataclass(frozen=True)
class Table:
    """Rows under one heading, with what they are held against."""

    heading: str
    rows: tuple[Row, ...]
    note: str = ""


@dataclasses.dataclass(frozen=True)
class Report:
    """Everything that the page, the terminal and the JSON show."""

    title: str
    summary: Summary
    sentences: tuple[str, ...]
    training: Training | None = None
    cost: tuple[tuple[str, str], ...] = ()

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables of estimates, for page and terminal alike."""
        return _tables(self.summary)


def build_report(
    evaluation: Evaluation,
    training_rows: Sequence[Mapping[str, Any]] | None = None,
    *,
    training_unit: Unit | None = None,
    title: str = "Reward model report",
    cost: Sequence[tuple[str, str]] = (),
    level: float = LEVEL,
) -> Report:
    """Measure an evaluation and put it into words.

    Args:
        evaluation: margins, labels and clusters.
        training_rows: rows of metrics.jsonl, where the model was trained here.
        training_unit: what counted as one in that training; as in the evaluation, if unset.
        title: of the page.
        cost: what it cost, as (label, text).
        level: confidence level of the intervals.

    Returns:
        The report; parts that the evaluation lacks are absent and said to be.

    Raises:
        DataError: as `rmjax.diagnostics.summarise`.

    Example:
        >>> import numpy as np
        >>> from rmjax import Comparisons
        >>> from rmjax.diagnostics import Provenance
        >>> pairs = Comparisons.from_pairs([0, 2], [1, 3], prompt=[0, 0, 1, 1])
        >>> where = Provenance("a model", "0f3a", "pairs.jsonl")
        >>> evaluation = Evaluation(np.array([1.0, 0.5]), pairs, np.array([0, 1]), np.array([9, 4, 6, 6]), where)
        >>> build_report(evaluation).sentences[0]
        'The model agrees with 100.0 % of the labels (95 % interval 1.2 to 100.0 %; 2 labels, 2 prompts).'
    """
    summary = summarise(evaluation, level=level)
    curves = training(training_rows, training_unit or evaluation.unit) if training_rows else None
    return Report(title, summary, sentences(summary), curves, tuple((str(a), str(b)) for a, b in cost))


def to_json(report: Report) -> dict[str, Any]:
    """The report as plain JSON, with TRL's metric names on top.

    Levels of scores stand under `diagnostics_levels` and nowhere else: adding a constant to every score changes them
    and no decision.

    Args:
        report: the report.

    Returns:
        What `json.dump(..., allow_nan=False)` takes.

    Example:
        >>> import numpy as np
        >>> from rmjax import Comparisons
        >>> from rmjax.diagnostics import Provenance
        >>> pairs = Comparisons.from_pairs([0, 2], [1, 3], prompt=[0, 0, 1, 1])
        >>> where = Provenance("a model", "0f3a", "pairs.jsonl")
        >>> evaluation = Evaluation(np.array([1.0, 0.5]), pairs, np.array([0, 1]), np.array([9, 4, 6, 6]), where)
        >>> to_json(build_report(evaluation))["accuracy"]
        1.0
    """
    tree = as_json(report)
    levels = tree["summary"].pop("levels")
    votes = tree["summary"]["against_votes"]
    top = {"accuracy": votes["accuracy"]["value"], "margin": votes["margin"]["value"], "loss": votes["loss"]["value"]}
    if report.summary.swap:
        tree["summary"]["swap"]["passed"] = report.summary.swap.passed
    if levels:
        tree["diagnostics_levels"] = {
            "min_reward": levels["smallest"],
            "mean_reward": levels["mean"],
            "max_reward": levels["largest"],
            "note": "Levels are no result: they shift by any constant per prompt. Compare margins.",
        }
    return top | tree


def _tables(summary: Summary) -> tuple[Table, ...]:
    """Metrics against each kind of label, and the agreement of annotators."""
    scored = [(summary.against_gold, "decided label", "decided labels")] if summary.against_gold else []
    scored += [(summary.against_votes, label_name(summary), label_name(summary) + "s")]
    tables = []
    for scores, one, many in scored:
        rule, per = scores.length.rule, one if summary.unit == "vote" else summary.unit
        tables.append(
            Table(
                f"Against {many}",
                (
                    Row("Accuracy", scores.accuracy, note="a tie of scores counts as wrong"),
                    Row("Accuracy, ties of scores as halves", scores.accuracy_half),
                    Row(
                        "The longer answer wins", scores.length.longer_wins, note="same pairs; equal length counts half"
                    ),
                    Row(f"Model minus “the {rule} answer wins”", scores.length.pooled_gain, "points", note="paired"),
                    Row(f"The same, mean over {summary.cluster_name}s", scores.length.gain, "points", note="paired"),
                    Row(f"Loss, nats per {per}", scores.loss, "number", note="deciding nothing scores 0.693"),
                    Row("Margin", scores.margin, "number", note="logits, chosen minus rejected"),
                ),
            )
        )
    agreement = summary.agreement
    ceiling_note = "the ceiling rests on it" + ("; a tie agrees by half" if summary.ties == "half" else "")
    named = (
        ("Two votes on one pair are the same", agreement.two_votes, "first, second or tie; every pair of votes once"),
        ("The same, neither a tie", agreement.two_votes_decided, "every pair of votes once"),
        ("The same, weighed as the accuracy is", agreement.ceiling and agreement.ceiling.agreement, ceiling_note),
        ("One vote against the majority of the others", agreement.vote_and_rest, "ties left out"),
        ("Single votes against the decided label", agreement.vote_and_gold, "ties left out"),
    )
    rows = tuple(Row(label, estimate, note=note) for label, estimate, note in named if estimate is not None)
    note = "" if agreement.measured else f"Not measured, because {agreement.reason}."
    return (*tables, Table("Agreement of annotators", rows, note))
