"""The report on one evaluation: a page, a table for the terminal, and JSON, with the same numbers in each."""

from rmjax.report.model import Report, build_report, to_json
from rmjax.report.page import render
from rmjax.report.terminal import render_text

__all__ = ["Report", "build_report", "render", "render_text", "to_json"]
