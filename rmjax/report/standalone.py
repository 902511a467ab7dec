"""A chart as an SVG file of its own: it carries the page's style and follows the reader's light or dark setting."""

from __future__ import annotations

import re
from html import escape, unescape
from importlib import resources

# What no XML document may hold, not even escaped; a name in it would make the file one that nothing opens.
_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_CHART = re.compile(r'<svg viewBox="(?P<box>[^"]*)" role="img" aria-label="(?P<name>[^"]*)">(?P<body>.*)</svg>', re.S)


def standalone(chart: str, style: str | None = None) -> str:
    """An SVG document from a chart of `rmjax.report.svg.chart`.

    Args:
        chart: the element.
        style: CSS; that of the report's page, if unset.

    Returns:
        The document, with U+FFFD for each character that XML has no place for.

    Raises:
        ValueError: the element is no chart.

    Example:
        >>> from rmjax.report.svg import chart
        >>> standalone(chart("A line", "It rises.", []))[:47]
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox'
    """
    found = _CHART.fullmatch(chart)
    if found is None:
        raise ValueError(f"no chart of rmjax.report.svg: {chart[:80]!r}")
    _, _, width, height = found["box"].split()
    css = _page_style() if style is None else style
    document = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{found["box"]}" width="{2 * float(width):g}" '
        f'height="{2 * float(height):g}" role="img">\n'
        f"<title>{escape(unescape(found['name']), quote=False)}</title>\n"
        f"<style>{css}</style>\n"
        f'<rect width="100%" height="100%" fill="var(--paper)"/>\n{found["body"]}\n</svg>\n'
    )
    return _NO_XML.sub("\N{REPLACEMENT CHARACTER}", document)


def _page_style() -> str:
    page = resources.files("rmjax.report").joinpath("page.html.jinja").read_text(encoding="utf-8")
    return page.partition("<style>")[2].partition("</style>")[0]
