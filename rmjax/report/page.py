"""The report as one self-contained HTML page."""

from __future__ import annotations

from importlib import resources

import jinja2
from markupsafe import Markup

from rmjax.diagnostics import Scores
from rmjax.report import figures
from rmjax.report.model import Report
from rmjax.report.numbers import Row, counted, plural
from rmjax.report.words import flipped, label_name


def render(report: Report) -> str:
    """The page: no script, no external request, light and dark, readable on a phone and in print.

    Args:
        report: what to show.

    Returns:
        HTML.

    Example:
        >>> import numpy as np
        >>> from rmjax import Comparisons
        >>> from rmjax.diagnostics import Evaluation, Provenance
        >>> from rmjax.report import build_report
        >>> pairs = Comparisons.from_pairs([0, 2], [1, 3], prompt=[0, 0, 1, 1])
        >>> where = Provenance("a model", "0f3a", "pairs.jsonl")
        >>> evaluation = Evaluation(np.array([1.0, 0.5]), pairs, np.array([0, 1]), np.array([9, 4, 6, 6]), where)
        >>> render(build_report(evaluation))[:15]
        '<!doctype html>'
    """
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.globals |= {"counted": counted, "plural": plural}
    environment.filters["svg"] = Markup
    template = resources.files("rmjax.report").joinpath("page.html.jinja").read_text(encoding="utf-8")
    summary = report.summary
    return environment.from_string(template).render(
        report=report,
        summary=summary,
        counts=summary.counts,
        accuracy=figures.shares(*accuracies(report), summary.agreement.ceiling),
        calibration=figures.reliability(summary.calibration),
        depth=depth_figures(report),
        training=figures.training_curves(report.training) if report.training else (),
        origin=origin(report),
        choices=choices(report),
    )


def depth_figures(report: Report) -> list[figures.Figure]:
    """The figures against depth, where there are layers and a pair that is decided.

    Args:
        report: what to show.

    Returns:
        Two figures or none.
    """
    curve = report.summary.settling
    if curve is None or curve.settled_depth.count == 0:
        return []
    return [figures.margin_by_depth(curve), figures.decision_by_depth(curve)]


def origin(report: Report) -> tuple[tuple[str, str], ...]:
    """What was evaluated, as (label, text).

    Args:
        report: what to show.

    Returns:
        Rows.
    """
    where = report.summary.provenance
    split = (("Split", where.split),) if where.split else ()
    return (("Model", where.model), ("Fingerprint", where.fingerprint), ("File", where.file), *split, *where.facts)


def choices(report: Report) -> tuple[tuple[str, str], ...]:
    """What was counted, and by which rules, as (label, text).

    Args:
        report: what to show.

    Returns:
        Rows.
    """
    summary, counts = report.summary, report.summary.counts
    ties = {
        "drop": f"{counted(counts.ties)}; left out of every metric",
        "half": f"{counted(counts.ties)}; counted as half a vote for either side",
        "none": "none",
    }[summary.ties]
    weighing = {
        "vote": "every vote counts as one",
        "comparison": "every pair counts as one, whatever its number of votes",
        "prompt": "every prompt counts as one, whatever its number of pairs",
    }[summary.unit]
    rows = [
        ("Pairs", f"{counted(counts.comparisons)} in {plural(counts.prompts, 'prompt')}"),
        ("Votes", f"{counted(counts.votes_first)} for the first, {counted(counts.votes_second)} for the second answer"),
        ("Ties", ties),
        ("“Cannot judge”", f"{counted(counts.abstentions)}; no vote, and not a tie"),
    ]
    if counts.gold:
        rows.append(("Decided labels", counted(counts.gold)))
    rows += [
        ("Equal scores", plural(counts.score_ties, "pair")),
        ("Weighing", weighing),
        (
            "Intervals",
            f"{100 * summary.level:g} %, clustered by {summary.cluster_name}; {counted(counts.clusters)} clusters",
        ),
    ]
    if summary.settling:
        rows.append(("End of the lens", f"differs from the margin by at most {summary.end_point_residual:.1e} of it"))
    if summary.swap:
        swap = summary.swap
        cancel = f"margins cancel to {swap.largest_sum:.1e}, where rounding explains {swap.rounding:.1e}"
        rows.append(("Sides exchanged", f"{plural(swap.comparisons, 'pair')} scored anew: {flipped(swap)}; {cancel}"))
    return tuple(rows)


def accuracies(report: Report) -> tuple[list[Row], list[Row]]:
    """The shares that stand beside one another in the first figure: of decided labels, and of the votes."""
    summary = report.summary
    votes = f"{label_name(summary)}s"

    def both(scores: Scores, labels: str) -> list[Row]:
        longer = Row(f"The longer answer wins, against {labels}", scores.length.longer_wins)
        return [Row(f"The model, against {labels}", scores.accuracy), longer]

    gold = both(summary.against_gold, "decided labels") if summary.against_gold else []
    if summary.agreement.vote_and_rest:
        gold.append(Row("One annotator, against the majority of the others", summary.agreement.vote_and_rest))
    return gold, both(summary.against_votes, votes)
