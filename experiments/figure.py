"""One figure of a report as an SVG file of its own, for a README or a paper.

    python -m experiments.figure results/ukp/fold-0/report.html "Decisions against depth" depth.svg

The page carries its figures and their style with it, so the file needs nothing else; it follows the reader's light or
dark setting as the page does.
"""

from __future__ import annotations

import dataclasses
import re
from html import unescape
from pathlib import Path
from typing import Annotated

import tyro

from rmjax.report.standalone import standalone


@dataclasses.dataclass(frozen=True)
class Config:
    """Which figure of which page, and where to."""

    page: Annotated[str, tyro.conf.Positional]
    """A report.html."""
    figure: Annotated[str, tyro.conf.Positional]
    """The beginning of the figure's name."""
    output: Annotated[str, tyro.conf.Positional]
    """The SVG file to write."""


def main(config: Config) -> None:
    """Cut the figure out and write it."""
    page = Path(config.page).read_text()
    style = page.partition("<style>")[2].partition("</style>")[0]
    charts = re.findall(r'<svg viewBox="[^"]*" role="img" aria-label="[^"]*">.*?</svg>', page)
    figures = {unescape(re.search(r'aria-label="([^"]*)"', chart)[1]): chart for chart in charts}
    found = [name for name in figures if name.startswith(config.figure)]
    if len(found) != 1:
        names = "; ".join(name.split(".")[0] for name in figures)
        raise SystemExit(f"{len(found)} figures begin with {config.figure!r}; the page has: {names}")
    Path(config.output).write_text(standalone(figures[found[0]], style))


if __name__ == "__main__":
    main(tyro.cli(Config))
