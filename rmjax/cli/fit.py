"""`rmjax fit`: scores of judged items with intervals, what identifies them, and whether a scalar can say it."""

from __future__ import annotations

import dataclasses
import json as jsonlib
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import tyro
from rich.table import Table
from rich.text import Text

from rmjax.cli import show
from rmjax.cli.outputs import check_directory
from rmjax.comparisons import check_ties
from rmjax.data.formats.judgements import Columns, Judgements, read_judgements
from rmjax.errors import DataError
from rmjax.losses.links import WITH_TIES
from rmjax.preferences import Verdict, fit, scalar_verdict
from rmjax.report.ranking import Ranking, as_json, check_level, figure, rank, sentences
from rmjax.report.standalone import standalone

_ROWS_SHOWN = 40


@dataclasses.dataclass(frozen=True)
class FitConfig:
    """What is fitted, and how."""

    votes: Annotated[str, tyro.conf.Positional]
    """Table with a header (commas, tabs, semicolons) or JSON lines, plain or gzip: two items and who won, or counts."""
    columns: Columns = Columns()
    """Names of the columns."""
    link: Literal["bradley_terry", "thurstone", "rao_kupper", "davidson"] = "bradley_terry"
    """What a difference says about votes; the last two have a probability for ties."""
    ties: Literal["drop", "half"] | None = None
    """What a link without ties does with them."""
    ridge: float = 0.0
    """Penalty on squared scores. It makes numbers finite and identifies nothing."""
    bias_reduction: bool = False
    """Firth's estimate, which is finite wherever items are compared."""
    position: bool = False
    """Estimate the effect of being shown first, from the column `order`."""
    reference: str = ""
    """Item that differences are taken from; the mean of each set whose differences are finite, if unset."""
    errors: Literal["model", "sandwich", "cluster"] = "model"
    """Whether standard errors trust the model, only that votes are independent, or only that clusters are."""
    level: float = 0.95
    """Of the intervals."""
    verdict: bool = True
    """Ask whether a scalar can say what the votes say; it fits drawn votes 40 times: a minute for a million rows."""
    on_bad_row: Literal["error", "drop"] = "error"
    """Refuse the file by its first bad row, or leave bad rows out and count them."""
    output: str = "fit"
    """Directory for fit.json and fit.svg."""


def run_fit(config: Annotated[FitConfig, tyro.conf.arg(name="")], *, json: bool = False) -> None:
    """Scores of judged items with intervals, what the votes identify, and whether a scalar can say it.

    Args:
        config: what is fitted, and how.
        json: print the result as JSON on standard output.
    """
    where = show.console(json)
    check_directory(config.output)
    check_level(config.level)
    if Path(config.votes).is_file():  # what is no file is refused by the reader
        size = Path(config.votes).stat().st_size
        where.print(f"reading {size / 1e6:,.1f} MB: about 4 seconds for a million rows", highlight=False)
    with where.status("reading"):
        data = read_judgements(config.votes, columns=config.columns, on_bad_row=config.on_bad_row)
    _check_columns(config, data)
    if config.link not in WITH_TIES:
        check_ties(data.comparisons, config.ties, rows=data.row)
    reference = _reference(config.reference, data)
    with where.status("fitting"):
        estimate = fit(
            data.comparisons,
            link=config.link,
            ridge=config.ridge,
            bias_reduction=config.bias_reduction,
            position=config.position,
            ties=config.ties,
        )
    ranking = rank(estimate, data.names, data.prompts, reference=reference, errors=config.errors, level=config.level)
    verdict = _verdict(config, data, where) if config.verdict else None
    told = sentences(estimate.identification, data.names, data.prompts, penalised=estimate.penalised)
    found = as_json(ranking, estimate, verdict, told, _counts(data))
    directory = Path(config.output)
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "fit.json").write_text(jsonlib.dumps(found, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    (directory / "fit.svg").write_text(standalone(figure(ranking).svg), encoding="utf-8")
    if json:
        show.print_json(found)
        return
    where.print(_table(ranking))
    for name, value in estimate.parameters.items():
        error = estimate.parameter_error(name, errors=config.errors)
        where.print(f"{name}: {value:.4f} (standard error {error:.4f})", highlight=False)
    for sentence in (*told, *([verdict.sentence] if verdict else [])):
        where.print(f"• {sentence}", highlight=False, markup=False)
    show.notes(_notes(data), where)
    where.print(f"figure and JSON: {directory / 'fit.svg'}, {directory / 'fit.json'}", markup=False)


def _check_columns(config: FitConfig, data: Judgements) -> None:
    """Refuse before the fit what needs a column that the file does not have."""
    needs = (
        ("cluster", config.errors == "cluster", data.comparisons.cluster, "choose --errors sandwich"),
        ("order", config.position, data.comparisons.order, "leave --position out"),
    )
    for role, wanted, column, otherwise in needs:
        if wanted and column is None:
            raise DataError(
                f"the file has no column `{getattr(config.columns, role)}`",
                {"columns that play no part": ", ".join(data.unused)},
                f"Name it, --columns.{role} NAME, or {otherwise}.",
            )


def _reference(name: str, data: Judgements) -> int | None:
    if not name:
        return None
    found = [i for i, item in enumerate(data.names) if item == name]
    if len(found) != 1:
        raise DataError(
            "the reference is one item of the file",
            {"reference": name, "found": len(found), "items": len(data.names)},
            "Name an item as the file does; items of several prompts have no common reference.",
        )
    return found[0]


def _verdict(config: FitConfig, data: Judgements, where) -> Verdict | None:
    """The verdict needs to know what a tie is: under a link with ties they are left out of it."""
    ties = "drop" if config.link in ("rao_kupper", "davidson") else config.ties
    minutes = data.comparisons.num_comparisons / 1e6
    long = f": about {minutes:.0f} min" if minutes >= 1 else ""
    with where.status(f"asking whether a scalar can say it{long}"):
        return scalar_verdict(data.comparisons, ties=ties, level=config.level)


def _notes(data: Judgements) -> list[tuple[str, str]]:
    """What of the file is not in the numbers."""
    told = [("columns that play no part", ", ".join(data.unused))] if data.unused else []
    if data.without:
        told.append(("rows without a judgement", f"{data.without:,} of {data.rows:,}"))
    told += [("row left out", reason) for reason in data.dropped[:10]]
    if data.num_dropped > 10:
        told.append(("rows left out", f"{data.num_dropped:,} of {data.rows:,}; these were the first"))
    return told


def _counts(data: Judgements) -> dict[str, float]:
    c = data.comparisons
    return {
        "rows": data.rows,
        "without_judgement": data.without,
        "dropped": data.num_dropped,
        "items": len(data.names),
        "prompts": len(data.prompts),
        "wins": float(np.sum(c.wins_first, dtype=np.float64) + np.sum(c.wins_second, dtype=np.float64)),
        "ties": float(np.sum(c.ties, dtype=np.float64)),
    }


def _table(ranking: Ranking) -> Table:
    # Names are text as it stands, and no markup: "[/b]" is a name like any other.
    title = Text(f"{ranking.unit} above {ranking.reference}")
    shown = Table(title=title, title_justify="left", title_style="bold")
    several, apart = any(ranking.prompts), len(set(zip(ranking.prompts, ranking.sets))) > len(set(ranking.prompts))
    for heading in (*(["prompt"] if several else []), *(["set"] if apart else []), "item"):
        shown.add_column(heading, overflow="fold")
    for heading in ("difference", f"{100 * ranking.level:g} % interval", "standard error"):
        shown.add_column(heading, justify="right")
    for i, name in enumerate(ranking.names[:_ROWS_SHOWN]):
        value = ranking.difference[i]
        finite, known = np.isfinite(value), np.isfinite(ranking.standard_error[i])
        shown.add_row(
            *([Text(ranking.prompts[i])] if several else []),
            *([str(ranking.sets[i])] if apart else []),
            Text(name),
            f"{value:z.3f}" if finite else "no finite number",
            f"{ranking.lower[i]:z.3f} to {ranking.upper[i]:z.3f}" if known else "",
            f"{ranking.standard_error[i]:z.3f}" if known else "",
        )
    if len(ranking.names) > _ROWS_SHOWN:
        shown.caption = f"{len(ranking.names) - _ROWS_SHOWN} more are in fit.json"
    return shown
