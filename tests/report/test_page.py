"""The page stands alone, is well-formed, shows no level, and works with parts missing."""

import dataclasses
import html
import html.parser
import re

import pytest

from rmjax.diagnostics import Provenance
from rmjax.report import build_report, render
from tests.report.reports import LEVELS, bare, evaluation, rows, variants

VARIANTS = variants()
PAGES = {name: render(report) for name, report in VARIANTS.items()}
VOID = {"meta", "br", "hr", "img", "link", "input"}


class Nesting(html.parser.HTMLParser):
    """Checks that elements close in order; keeps the words and the attributes."""

    def __init__(self):
        super().__init__()
        self.open, self.words, self.attributes, self.headings = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.words.append(data)
        if self.open and self.open[-1] == "h2":
            self.headings.append(data)


def parsed(page):
    nesting = Nesting()
    nesting.feed(page)
    nesting.close()
    assert nesting.open == []
    return nesting


@pytest.mark.parametrize("variant", PAGES)
def test_a_page_stands_alone(variant):
    page = PAGES[variant]
    nesting = parsed(page)
    assert page.startswith("<!doctype html>")
    assert not re.search(r"<script|<link|<iframe|<img|@import|url\(|https?://|javascript:", page)
    assert not {"src", "href", "onclick", "onload"} & {name for name, _ in nesting.attributes}
    assert 'name="viewport"' in page
    assert "prefers-color-scheme: dark" in page
    assert "@media print" in page
    assert len(page.encode()) < 1_000_000


@pytest.mark.parametrize("variant", PAGES)
def test_a_page_says_everything_and_nothing_that_is_no_number(variant):
    report, words = VARIANTS[variant], " ".join(parsed(PAGES[variant]).words)
    for sentence in report.sentences:
        assert sentence in words
    for table in report.tables:
        for row in table.rows:
            assert row.value in words
            assert row.interval in words
    assert not re.search(r"\b(nan|None|inf)\b", words)


@pytest.mark.parametrize("variant", PAGES)
def test_a_page_shows_no_level(variant):
    for level in (LEVELS.smallest, LEVELS.mean, LEVELS.largest):
        assert f"{abs(level):.0f}"[:5] not in PAGES[variant].replace(",", "")
    assert "_reward" not in PAGES[variant]


def test_sections_stand_where_there_is_something_to_show():
    whole, nothing = (parsed(PAGES[name]).headings for name in ("whole", "bare"))
    extra = {"Against decided labels", "Against single votes", "Where the preference forms", "Training", "Cost"}
    assert set(whole) - set(nothing) == extra
    assert set(nothing) - set(whole) == {"Against labels"}


def test_choices_are_stated():
    whole = " ".join(" ".join(parsed(PAGES["whole"]).words).split())
    ties = VARIANTS["whole"].summary.counts.ties
    assert f"{ties:.0f}; left out of every metric" in whole
    assert "every vote counts as one" in whole
    assert "clustered by prompt; 12 clusters" in whole
    assert "60 pairs scored anew: all of 60 that could flip did; margins cancel to 1.0e-06" in whole
    assert "held out by prompt" in whole
    assert "as it stands" in whole
    selected = " ".join(parsed(PAGES["selected"]).words)
    assert "counted as half a vote for either side" in selected
    assert "every prompt counts as one" in selected
    assert "7 of 60 that could flip did not" in " ".join(parsed(PAGES["swap failed"]).words)
    per_pair = render(build_report(evaluation(unit="comparison")))
    assert "every pair counts as one" in per_pair


def test_what_a_user_names_is_escaped():
    wicked = "<script>alert('&')</script>"
    where = Provenance(wicked, wicked, wicked, wicked, ((wicked, wicked),))
    named = dataclasses.replace(bare(), provenance=where, cluster_name=wicked)
    page = render(build_report(named, title=wicked, cost=[(wicked, wicked)]))
    assert "<script" not in page
    assert html.escape(wicked).replace("&#x27;", "&#39;") in page
    parsed(page)


def test_a_long_run_does_not_make_a_large_page():
    page = render(build_report(evaluation(), rows(steps=5_000, layers=49)))
    assert len(page.encode()) < 1_000_000
