"""The terminal shows the sentences and the numbers of the page."""

import pytest
from rich.console import Console

from rmjax.report import render_text
from tests.report.reports import LEVELS, variants

VARIANTS = variants()


@pytest.mark.parametrize("variant", VARIANTS)
def test_terminal_and_page_show_the_same_numbers(variant):
    report = VARIANTS[variant]
    console = Console(width=500)
    with console.capture() as shown:
        console.print(render_text(report))
    text = shown.get()
    for sentence in report.sentences:
        assert sentence in text
    for table in report.tables:
        assert table.heading in text
        for row in table.rows:
            assert row.label in text
            assert row.value in text
            assert row.interval in text
        if not table.rows:
            assert table.note in text
    assert str(LEVELS.largest)[:5] not in text.replace(",", "")
    assert "nan" not in text


def test_a_narrow_terminal_loses_nothing_but_line_breaks():
    console = Console(width=60)
    with console.capture() as shown:
        console.print(render_text(VARIANTS["whole"]))
    assert all(len(line) <= 60 for line in shown.get().splitlines())
