"""The figures of a report. Each takes differences, shares or losses; none can take a level of scores."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from rmjax.diagnostics import Ceiling, Estimate, Reliability, Settling
from rmjax.report import svg
from rmjax.report.numbers import Row, plural, written
from rmjax.report.training import Curve, Quantity, Training


@dataclasses.dataclass(frozen=True)
class Figure:
    """A chart with its caption and the numbers behind it."""

    name: str
    svg: str
    caption: str
    header: tuple[str, ...]
    numbers: tuple[tuple[str, ...], ...]


def shares(rows: Sequence[Row], single_votes: Sequence[Row], ceiling: Ceiling | None) -> Figure:
    """Accuracies beside one another, with their intervals, and the ceiling over those that it holds for.

    Args:
        rows: shares of decided labels.
        single_votes: shares of single votes.
        ceiling: of single votes.

    Returns:
        A forest plot from the smallest bound to 100 %.

    Example:
        >>> from rmjax.diagnostics import clustered_proportion
        >>> found = clustered_proportion([1.0, 0.0, 1.0], [1, 1, 1], cluster=[0, 1, 2])
        >>> shares([Row("accuracy", found)], [], None).numbers[0][:2]
        ('accuracy', '66.7 %')
    """
    everything = [*rows, *single_votes]
    bounds = [v for row in everything for v in (row.estimate.value, row.estimate.lower) if v == v]
    low = max(min([0.5, *bounds]) - 0.02, 0.0)
    top, step = (32.0 if ceiling else 16.0), 38.0
    bottom = top + step * len(everything) + 6
    frame = svg.Frame("", "", (low, 1.0), (0, 1), top=top, left=14, height=bottom + svg.BOTTOM)
    body = []
    if ceiling is not None:
        x1, x2, y = frame.x(ceiling.lower), frame.x(ceiling.upper), top + step * len(rows) + 2
        said = f"best possible accuracy against single votes: {written(ceiling.lower, 'share')} to "
        body.append(
            f'<rect x="{x1:.1f}" y="{y:.1f}" width="{x2 - x1:.1f}" height="{bottom - y:.1f}" class="ceiling">'
            f"<title>{said}{written(ceiling.upper, 'share')}</title></rect>"
        )
    for value in svg.ticks(*frame.x_range, most=7):
        place = frame.x(value)
        kind = "mark" if value == 0.5 else "grid"
        body.append(f'<line x1="{place:.1f}" y1="{top - 8}" x2="{place:.1f}" y2="{bottom:.1f}" class="{kind}"/>')
        body.append(svg.text(place, bottom + 16, f"{100 * value:g} %", "middle"))
    body.append(
        svg.text((frame.left + svg.WIDTH) / 2, bottom + 35, "share of labels; 50 % is a coin", "middle", "label")
    )
    if ceiling is not None:
        body.append(f'<rect x="{frame.left}" y="6" width="12" height="12" class="ceiling"/>')
        body.append(svg.text(frame.left + 18, 16, "where the best possible accuracy against single votes lies"))
    for i, row in enumerate(everything):
        y = top + step * i + 26
        estimate = row.estimate
        body.append(svg.text(frame.left, y - 11, row.label, "start", "entry"))
        if estimate.has_interval:
            x1, x2 = frame.x(estimate.lower), frame.x(estimate.upper)
            body.append(f'<line x1="{x1:.1f}" y1="{y}" x2="{x2:.1f}" y2="{y}" stroke="var(--a)" class="whisker"/>')
        said = f"{row.label}: {row.value} ({row.interval}; n {row.count})"
        body.append(svg.dot(frame.x(estimate.value), y, 4.5, "var(--a)", said))
    description = "; ".join(f"{row.label} {row.value}, {row.interval}" for row in everything)
    name = "Accuracy beside its baselines"
    return Figure(
        name,
        svg.chart(name, description, body, height=bottom + svg.BOTTOM),
        "Dots are shares of labels, lines their intervals.",
        ("measure", "share", "interval", "n"),
        tuple((row.label, row.value, row.interval, row.count) for row in everything),
    )


def reliability(diagram: Reliability) -> Figure:
    """Predicted against observed shares on both orientations, with the band of a calibrated model.

    Args:
        diagram: the bins.

    Returns:
        The reliability diagram.

    Example:
        >>> from rmjax import Comparisons
        >>> from rmjax.diagnostics import Targets, reliability as bins_of
        >>> pairs = Comparisons.from_pairs([0, 2], [1, 3], prompt=[0, 0, 1, 1])
        >>> diagram = reliability(bins_of([0.2, 0.3], Targets.from_votes(pairs, cluster=[0, 1])))
        >>> diagram.header[:2]
        ('predicted', 'observed')
    """
    seen = [b for b in diagram.bins if b.count > 0]
    most = max((b.count for b in seen), default=1.0)
    frame = svg.Frame(
        diagram.predicted_label, diagram.observed_label, (0, 1), (0, 1), top=svg.TOP + 16, percent=True, percent_x=True
    )
    body = svg.axes(frame)
    body.append(svg.text(4, svg.TOP + 2, diagram.observed_label, "start", "label"))
    reach = [1.96 * b.noise for b in seen]
    lower = [max(b.predicted - r, 0.0) for b, r in zip(seen, reach)]
    upper = [min(b.predicted + r, 1.0) for b, r in zip(seen, reach)]
    body.append(svg.band(frame, [b.predicted for b in seen], lower, upper, "var(--grey)"))
    diagonal = [(frame.x(v), frame.y(v)) for v in (0, 1)]
    (x1, y1), (x2, y2) = diagonal
    body.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="mark"/>')
    for b in seen:
        said = (
            f"predicted {written(b.predicted, 'share')}, observed {written(b.observed, 'share')}; "
            f"{b.count:,.0f} labels in {b.clusters} clusters"
        )
        radius = 2.5 + 4 * (b.count / most) ** 0.5
        body.append(svg.dot(frame.x(b.predicted), frame.y(b.observed), radius, "var(--a)", said))
    error, floor, upper_error = (written(v, "share") for v in (diagram.error, diagram.noise_floor, diagram.noise_upper))
    description = (
        f"Mean gap {error}; a perfectly calibrated model would show about {floor} and, one time in twenty, more than "
        f"{upper_error}."
    )
    return Figure(
        "Predicted against observed shares",
        svg.chart("Predicted against observed shares of annotators", description, body),
        f"{description} The grey band is where the dots of a calibrated model would fall. Every pair enters both ways "
        "round, so the curve is symmetric about its middle; larger dots hold more labels.",
        ("predicted", "observed", "95 % of calibrated models within", "labels", "clusters"),
        tuple(
            (
                written(b.predicted, "share"),
                written(b.observed, "share"),
                f"± {written(1.96 * b.noise, 'share', unit=False)} points",
                f"{b.count:,.0f}",
                str(b.clusters),
            )
            for b in seen
        ),
    )


def margin_by_depth(curve: Settling) -> Figure:
    """The margin towards the final decision, against depth.

    Args:
        curve: margins read out at every depth, with at least one pair decided.

    Returns:
        A line with its band and the layer where the median pair settles.

    Example:
        >>> from rmjax import Comparisons
        >>> from rmjax.diagnostics import Targets, settling_curve
        >>> pairs = Comparisons.from_pairs([0, 2], [1, 3], prompt=[0, 0, 1, 1])
        >>> curve = settling_curve([[0.0, -1.0], [0.5, 1.0], [1.0, 2.0]], Targets.from_votes(pairs, cluster=[0, 1]))
        >>> [numbers[:2] for numbers in margin_by_depth(curve).numbers]
        [('0', '−0.500'), ('1', '0.750'), ('2', '1.500')]
    """
    last = len(curve.depth) - 1
    layers = range(last + 1)
    line = _estimates("margin towards the final decision", layers, curve.aligned_margin, "number")
    median = curve.settled_layer[1]
    marks = [svg.Mark(f"median pair settles: layer {median:g}", x=median)]
    frame = _layers_frame("logits", svg.spread(_ends(line), zero=True), last)
    settled = f"In the median pair the decision holds from layer {median:g} of {last} on."
    if curve.undecided:
        settled += f" {plural(curve.undecided, 'pair')} within rounding of 0 left out."
    return Figure(
        "Margin against depth",
        svg.line_chart(frame, [line], name="Margin against depth", description=settled, marks=marks),
        f"The head read at every layer: layer 0 is the embedding, layer {last} the model itself. {settled}",
        ("layer", "margin", "interval"),
        _numbers(layers, curve.aligned_margin, "number"),
    )


def decision_by_depth(curve: Settling) -> Figure:
    """Accuracy and agreement with the final decision, against depth.

    Args:
        curve: margins read out at every depth.

    Returns:
        Two lines with bands and the layer from which the accuracy holds.

    Example:
        >>> from rmjax import Comparisons
        >>> from rmjax.diagnostics import Targets, settling_curve
        >>> pairs = Comparisons.from_pairs([0, 2], [1, 3], prompt=[0, 0, 1, 1])
        >>> curve = settling_curve([[0.0, -1.0], [0.5, 1.0], [1.0, 2.0]], Targets.from_votes(pairs, cluster=[0, 1]))
        >>> [numbers[:2] for numbers in decision_by_depth(curve).numbers]
        [('0', '25.0 %'), ('1', '100.0 %'), ('2', '100.0 %')]
    """
    last = len(curve.depth) - 1
    layers = range(last + 1)
    right = _estimates("accuracy", layers, curve.accuracy, "share")
    same = _estimates("same decision as the last layer", layers, curve.same_sign, "share")
    marks = []
    if curve.population_layer is not None:
        marks = [svg.Mark(f"accuracy holds: layer {curve.population_layer}", x=curve.population_layer)]
    low, _ = svg.spread([*_ends(right), *_ends(same), 0.5])
    frame = _layers_frame("share of pairs", (max(low, 0.0), 1.0), last, percent=True)
    reason = curve.reason and f"From which layer on the accuracy holds cannot be said, because {curve.reason}."
    holds = (
        reason or f"The accuracy stays within the interval of its final value from layer {curve.population_layer} on."
    )
    return Figure(
        "Decisions against depth",
        svg.line_chart(frame, [right, same], name="Decisions against depth", description=holds, marks=marks),
        f"{holds} A margin of 0 counts as half right.",
        ("layer", "accuracy", "interval", "same decision", "interval"),
        tuple(
            (*a, *b[1:])
            for a, b in zip(_numbers(layers, curve.accuracy, "share"), _numbers(layers, curve.same_sign, "share"))
        ),
    )


def training_curves(training: Training) -> tuple[Figure, ...]:
    """Loss, margin and accuracy over the steps of training, and the margin by depth.

    Args:
        training: curves of one run.

    Returns:
        One figure per quantity that the run logged.

    Example:
        >>> from rmjax.report.training import training
        >>> run = training([{"step": s, "loss": 1 / s, "margin": s / 10} for s in (1, 2, 3)])
        >>> [figure.name for figure in training_curves(run)]
        ['Loss over training', 'Margin over training']
    """
    named: dict[Quantity, tuple[str, str, str]] = {
        "loss": (
            "Loss over training",
            f"nats per {training.unit}",
            "A model that decides nothing has a loss of 0.693.",
        ),
        "margin": ("Margin over training", "logits, chosen minus rejected", ""),
        "accuracy": (
            "Accuracy over training",
            "share of labels",
            "A margin of 0 counts as wrong: a new head, which scores everything 0, begins at 0 %.",
        ),
    }
    figures = [
        _curves(name, axis, caption, curves, ["held out" if c.held_out else "training" for c in curves])
        for quantity, (name, axis, caption) in named.items()
        if (curves := training.of(quantity))
    ]
    if training.by_depth:
        deepest_first = training.by_depth[::-1]
        labels = [_depth_name(c.depth) for c in deepest_first]
        caption = "The head read at some layers during training: where in the depth the margin forms."
        figures.append(_curves("Margin by depth over training", "logits", caption, deepest_first, labels))
    return tuple(figures)


def _depth_name(depth: float) -> str:
    return {0.0: "embedding", 1.0: "last layer"}.get(depth, f"{100 * depth:.0f} % deep")


def _curves(name: str, axis: str, caption: str, curves: Sequence[Curve], labels: Sequence[str]) -> Figure:
    """Curves over steps in one chart."""
    steps = [s for c in curves for s in c.steps]
    percent = curves[0].quantity == "accuracy"
    kind = "share" if percent else "number"
    values = [v for c in curves for v in c.values]
    low, high = svg.spread(values, zero=curves[0].quantity == "margin")
    if percent:
        low, high = max(low, 0.0), min(high, 1.0)
    frame = svg.Frame("step", axis, _steps_range(steps), (low, high), percent=percent, whole_x=True)
    lines = [
        svg.Line(
            label,
            c.steps,
            c.values,
            shown=[f"{label}, step {s:g}: {written(v, kind)}" for s, v in zip(c.steps, c.values)],
        )
        for label, c in zip(labels, curves)
    ]
    last = "; ".join(f"{label} ends at {written(c.values[-1], kind)}" for label, c in zip(labels, curves))
    return Figure(
        name,
        svg.line_chart(frame, lines, name=name, description=last),
        f"{last[0].upper()}{last[1:]}. {caption}".strip(),
        ("curve", "first", "last", "points"),
        tuple(
            (label, written(c.values[0], kind), written(c.values[-1], kind), str(len(c.values)))
            for label, c in zip(labels, curves)
        ),
    )


def _steps_range(steps: Sequence[float]) -> tuple[float, float]:
    low, high = min(steps), max(steps)
    return (low, high) if high > low else (low - 1, high + 1)


def _layers_frame(axis: str, y_range: tuple[float, float], last: int, *, percent: bool = False) -> svg.Frame:
    return svg.Frame("layer", axis, (0, last), y_range, percent=percent, whole_x=True)


def _estimates(label: str, layers: Sequence[int], estimates: Sequence[Estimate], kind) -> svg.Line:
    """A line with a band from estimates by layer."""
    rows = [Row(f"layer {layer}, {label}", estimate, kind) for layer, estimate in zip(layers, estimates)]
    return svg.Line(
        label,
        layers,
        [e.value for e in estimates],
        [e.lower for e in estimates],
        [e.upper for e in estimates],
        [f"{row.label}: {row.value} ({row.interval})" for row in rows],
    )


def _ends(line: svg.Line) -> list[float]:
    return [*line.y, *(line.lower or ()), *(line.upper or ())]


def _numbers(layers: Sequence[int], estimates: Sequence[Estimate], kind) -> tuple[tuple[str, ...], ...]:
    rows = [Row(str(layer), estimate, kind) for layer, estimate in zip(layers, estimates)]
    return tuple((row.label, row.value, row.interval) for row in rows)
