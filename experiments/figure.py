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
    figures = {
        unescape(name): (box, body)
        for box, name, body in re.findall(r'<svg viewBox="([^"]*)" role="img" aria-label="([^"]*)">(.*?)</svg>', page)
    }
    found = [name for name in figures if name.startswith(config.figure)]
    if len(found) != 1:
        names = "; ".join(name.split(".")[0] for name in figures)
        raise SystemExit(f"{len(found)} figures begin with {config.figure!r}; the page has: {names}")
    box, body = figures[found[0]]
    _, _, width, height = box.split()
    Path(config.output).write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" width="{2 * float(width):g}" '
        f'height="{2 * float(height):g}" role="img">\n'
        f"<title>{found[0].replace('&', '&amp;').replace('<', '&lt;')}</title>\n"
        f"<style>{style}</style>\n"
        f'<rect width="100%" height="100%" fill="var(--paper)"/>\n{body}\n</svg>\n'
    )


if __name__ == "__main__":
    main(tyro.cli(Config))
