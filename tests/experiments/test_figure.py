"""A figure that is cut out of a page stands alone as SVG, with its style and its words."""

import re
from xml.etree import ElementTree

import pytest

from experiments.figure import Config, main
from rmjax.report import build_report, render
from tests.report.reports import evaluation, rows

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render(build_report(evaluation(), rows())))
    return path


def test_every_figure_of_a_page_stands_alone(page, tmp_path):
    names = re.findall(r'role="img" aria-label="([^".]*)', page.read_text())
    assert len(names) > 3
    for k, name in enumerate(names):
        path = tmp_path / f"{k}.svg"
        main(Config(str(page), name, str(path)))
        root = ElementTree.parse(path).getroot()
        assert root.tag == f"{SVG}svg"
        assert root.findtext(f"{SVG}title").startswith(name)
        assert "--paper" in root.findtext(f"{SVG}style")
        used = set(re.findall(r"var\((--\w+)\)", path.read_text()))
        assert used <= set(re.findall(r"(--\w+):", root.findtext(f"{SVG}style")))


def test_a_name_that_no_figure_has_is_told_the_names(page, tmp_path):
    with pytest.raises(SystemExit, match="0 figures begin with 'Cost'; the page has: Accuracy"):
        main(Config(str(page), "Cost", str(tmp_path / "x.svg")))
