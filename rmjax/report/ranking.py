"""The result of a fit as a table, a figure and JSON: differences from a reference, with what they rest on."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

import numpy as np

from rmjax.errors import DataError, SampleSizeError
from rmjax.identifiability import Identification
from rmjax.preferences import Fit, Verdict
from rmjax.preferences.influence import Errors
from rmjax.report import svg
from rmjax.report.figures import Figure

# More items are no longer read as a picture.
MOST = 60


@dataclasses.dataclass(frozen=True)
class Ranking:
    """Items by their difference from a reference, best first; those without a finite one come last."""

    names: tuple[str, ...]
    prompts: tuple[str, ...]  # of every item; empty names where there is one prompt
    sets: tuple[int, ...]  # of every item: within a set differences are finite, between sets nothing is known
    difference: np.ndarray  # [M] in the unit of the link, NaN where it is no finite number
    standard_error: np.ndarray  # [M]
    lower: np.ndarray
    upper: np.ndarray
    reference: str  # an item, "the mean of its set", or under a ridge "the mean of the prior"
    unit: str
    level: float
    errors: Errors  # what the standard errors trust


def rank(
    estimate: Fit,
    names: Sequence[str],
    prompts: Sequence[str],
    *,
    reference: int | None = None,
    errors: Errors = "model",
    level: float = 0.95,
) -> Ranking:
    """Order the items by their difference from a reference.

    Args:
        estimate: of `preferences.fit`.
        names: of the items.
        prompts: by number of the prompt.
        reference: index of an item; the mean of each set whose contrasts are finite, if unset.
        errors: as in `Fit.contrast`.
        level: of the intervals.

    Returns:
        The ranking, prompt by prompt and set by set, the largest first; without intervals where there are more items
        than have them at once.

    Raises:
        DataError: no such item, no clusters, or a level that is none.

    Example:
        >>> from rmjax import Comparisons
        >>> from rmjax.preferences import fit
        >>> games = Comparisons.from_wins([[0, 3], [1, 0]])
        >>> rank(fit(games), ["A", "B"], [""], reference=1).difference.round(3).tolist()
        [1.099, 0.0]
    """
    check_level(level)
    try:
        difference, error = estimate.relative_to(reference, errors=errors)
    except SampleSizeError:  # intervals of so many items would need a dense inverse
        difference = estimate.differences(reference)
        error = np.full(len(difference), np.nan)
    prompt, label = estimate.identification.prompt, estimate.sets
    finite = np.isfinite(difference)
    smaller = -np.bincount(label[label >= 0], minlength=1)[label]
    order = np.lexsort((np.where(finite, -difference, 0), label, smaller, ~finite, prompt))
    order = [int(i) for i in order if prompt[i] >= 0]
    number: dict[int, int] = {}
    for i in order:
        number.setdefault(int(label[i]), len(number) + 1)
    reach = NormalDist().inv_cdf(0.5 + level / 2) * error
    anchor = "the mean of its set" if estimate.solution.gauge.free else "the mean of the prior"
    return Ranking(
        names=tuple(names[i] for i in order),
        prompts=tuple(prompts[int(prompt[i])] for i in order),
        sets=tuple(number[int(label[i])] for i in order),
        difference=difference[order],
        standard_error=error[order],
        lower=(difference - reach)[order],
        upper=(difference + reach)[order],
        reference=anchor if reference is None else names[reference],
        unit="standard deviations" if estimate.link == "thurstone" else "logits",
        level=level,
        errors=errors,
    )


def check_level(level: float) -> None:
    """Refuse a level at which there is no interval.

    Example:
        >>> check_level(0.95)
    """
    if not 0 < level < 0.5 + level / 2 < 1:
        raise DataError("a level lies between 0 and 1", {"level": level}, "Give 0.95, say.")


def figure(ranking: Ranking) -> Figure:
    """A forest plot of the first items.

    Args:
        ranking: what to show.

    Returns:
        The figure, with its numbers.

    Example:
        >>> from rmjax import Comparisons
        >>> from rmjax.preferences import fit
        >>> games = Comparisons.from_wins([[0, 3], [1, 0]])
        >>> figure(rank(fit(games), ["A", "B"], [""])).numbers[0][0]
        'A'
    """
    finite = [i for i, x in enumerate(ranking.difference.tolist()) if np.isfinite(x)][:MOST]
    lower, upper, difference = (x.tolist() for x in (ranking.lower, ranking.upper, ranking.difference))
    step, top = 22.0, 16.0
    bottom = top + step * len(finite) + 6
    left = 18 + 7.4 * max((len(_short(ranking.names[i])) for i in finite), default=1)
    ends = [x for i in finite for x in (lower[i], upper[i], difference[i])]
    frame = svg.Frame("", "", svg.spread(ends, zero=True), (0, 1), top=top, left=left, height=bottom + svg.BOTTOM)
    body = []
    for value in svg.ticks(*frame.x_range, most=6):
        place = frame.x(value)
        kind = "mark" if value == 0 else "grid"
        body.append(f'<line x1="{place:.1f}" y1="{top - 8}" x2="{place:.1f}" y2="{bottom:.1f}" class="{kind}"/>')
        body.append(svg.text(place, bottom + 16, f"{value:g}", "middle"))
    axis = f"{ranking.unit} above {_short(ranking.reference)}"
    if np.isfinite(ranking.lower[finite]).any():
        axis += f"; lines are {100 * ranking.level:g} % intervals"
    body.append(svg.text((frame.left + svg.WIDTH) / 2, bottom + 35, axis, "middle", "label"))
    rows = []
    for line, i in enumerate(finite):
        y = top + step * line + 12
        name, value = ranking.names[i], difference[i]
        if line and ranking.sets[i] != ranking.sets[finite[line - 1]]:
            body.append(f'<line x1="18" y1="{y - 11}" x2="{svg.WIDTH}" y2="{y - 11}" class="mark"/>')
        known = np.isfinite(lower[i]) and np.isfinite(upper[i])
        interval = f"{lower[i]:z.3f} to {upper[i]:z.3f}" if known else "no interval"
        body.append(svg.text(frame.left - 8, y + 4, _short(name), "end", "entry"))
        if known:
            x1, x2 = frame.x(lower[i]), frame.x(upper[i])
            body.append(f'<line x1="{x1:.1f}" y1="{y}" x2="{x2:.1f}" y2="{y}" stroke="var(--a)" class="whisker"/>')
        body.append(svg.dot(frame.x(value), y, 4, "var(--a)", f"{name}: {value:z.3f} ({interval})"))
        rows.append((name, f"{value:z.3f}", interval))
    left_out = len(ranking.names) - len(finite)
    caption = f"Dots are differences from {ranking.reference}, lines their {100 * ranking.level:g} % intervals."
    if len({ranking.sets[i] for i in finite}) > 1:
        caption += " A line parts sets, between which no difference is known."
    if left_out:
        caption += f" {left_out} more items are in the table, or have no finite difference."
    name = f"Items by their difference from {ranking.reference}"
    return Figure(
        name,
        svg.chart(name, "; ".join(f"{a} {b}, {c}" for a, b, c in rows), body, height=bottom + svg.BOTTOM),
        caption,
        ("item", ranking.unit, "interval"),
        tuple(rows),
    )


def sentences(
    report: Identification, names: Sequence[str], prompts: Sequence[str] = ("",), *, penalised: bool = False
) -> list[str]:
    """What the comparisons pin down, in words.

    Args:
        report: of `identifiability.identify`.
        names: of the items.
        prompts: by number of the prompt.
        penalised: whether numbers are given where the comparisons alone have none, by a ridge or bias reduction.

    Returns:
        One sentence each.

    Example:
        >>> from rmjax import Comparisons
        >>> from rmjax.identifiability import identify
        >>> sentences(identify(Comparisons.from_pairs([0], [1], prompt=[0, 0])), ["A", "B"])[1]
        'A never lost to B: no difference between the two sides is finite, and no number is given for it.'
    """
    several = len(np.unique(report.prompt[report.prompt >= 0]))
    told = []
    if report.unique:
        told.append("All differences within a prompt are finite and identified.")
    elif report.num_components > several:
        told += _islands(report, names)
    elif report.num_strong_components == np.count_nonzero(report.prompt >= 0):
        told.append("The votes alone leave no difference between two items finite.")
    else:
        told.append(f"{report.num_strong_components:,} sets of items, within which differences are finite.")
    cut = report.separating_cut
    if cut is not None:
        sides = (_several(side, names) for side in (cut.winners, cut.losers))
        under = f"Under prompt {_short(prompts[int(report.prompt[cut.winners[0]])])}: " if len(prompts) > 1 else ""
        number = "a number that is given for it is of the penalty" if penalised else "no number is given for it"
        infinite = f"no difference between the two sides is finite, and {number}."
        told.append("{}{} never lost to {}: {}".format(under, *sides, infinite))
        losers = _several(cut.losers, names)
        told.append(f"To mend it, judge more such pairs until {'one of ' * (len(cut.losers) > 1)}{losers} wins one.")
    return told


def _islands(report: Identification, names: Sequence[str]) -> list[str]:
    """How many sets of one prompt were never compared, which are the largest, and what would join them."""
    _, member = np.unique(report.components, return_inverse=True)
    size, prompt = np.bincount(member), np.zeros(int(member.max()) + 1, int)
    prompt[member] = report.prompt
    size[prompt < 0] = 0  # of padding
    of_prompt = np.bincount(prompt[size > 0])
    split = int(np.argmax(of_prompt))
    here = np.flatnonzero((prompt == split) & (size > 0))
    one, two = (_several(np.flatnonzero(member == k), names) for k in here[np.argsort(-size[here], kind="stable")[:2]])
    prompts = int((of_prompt > 1).sum())
    several = f"In {prompts:,} prompts items" if prompts > 1 else f"{of_prompt[split]:,} sets of items"
    return [
        f"{several} were never compared with each other, such as {one} and {two}: between them nothing is known.",
        f"To mend it, compare one of {one} with one of {two} until both have won.",
    ]


def as_json(
    ranking: Ranking, estimate: Fit, verdict: Verdict | None, told: Sequence[str], counts: dict[str, Any]
) -> dict[str, Any]:
    """Everything that was found, for machines.

    Args:
        ranking: items by their difference.
        estimate: the fit.
        verdict: on scalars, if one was asked for.
        told: the sentences of the report.
        counts: of rows and votes.

    Returns:
        Plain numbers, text and lists; None stands for what is no number.
    """
    report = estimate.identification

    def numbers(values: np.ndarray) -> list[float | None]:
        return [float(x) if np.isfinite(x) else None for x in values]

    items = zip(
        ranking.names,
        ranking.prompts,
        ranking.sets,
        *(numbers(x) for x in (ranking.difference, ranking.standard_error, ranking.lower, ranking.upper)),
    )
    keys = ("item", "prompt", "set", "difference", "standard_error", "lower", "upper")
    return {
        "counts": counts,
        "reference": ranking.reference,
        "unit": ranking.unit,
        "level": ranking.level,
        "errors": ranking.errors,
        "items": [dict(zip(keys, item)) for item in items],
        "link": estimate.link,
        "parameters": {
            name: {"value": value, "standard_error": estimate.parameter_error(name, errors=ranking.errors)}
            for name, value in estimate.parameters.items()
        },
        "log_likelihood": estimate.log_likelihood,
        "gradient_norm": estimate.gradient_norm,
        "penalised": estimate.penalised,
        "identification": {
            "components": report.num_components,
            "strong_components": report.num_strong_components,
            "exists": report.exists,
            "unique": report.unique,
            "sentences": list(told),
        },
        "verdict": None if verdict is None else _verdict_json(verdict),
    }


def _verdict_json(verdict: Verdict) -> dict[str, Any]:
    triples = verdict.transitivity
    return {
        "answer": verdict.answer,
        "sentence": verdict.sentence,
        "deviance": verdict.deviance,
        "expected_deviance": verdict.expected_deviance,
        "p_value": verdict.p_value,
        "cost_in_nats": verdict.cost_in_nats,
        "cost_in_accuracy": verdict.cost_in_accuracy,
        "best_scalar_accuracy": [verdict.accuracy.lower, verdict.accuracy.upper],
        "majority_accuracy": verdict.accuracy.majority,
        "triples": triples.triples,
        "violations": {kind: getattr(triples, kind).count for kind in ("weak", "moderate", "strong")},
    }


def _short(name: str) -> str:
    return name if len(name) <= 22 else name[:21] + "…"


def _several(items: np.ndarray, names: Sequence[str]) -> str:
    shown = ", ".join(str(names[int(i)]) for i in items[:4])
    return f"{shown} and {len(items) - 4} more" if len(items) > 4 else shown
