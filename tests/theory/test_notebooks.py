"""Every notebook runs from top to bottom: its assertions hold, and its figure is drawn."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "theory").glob("[0-9]*.py"))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_holds_what_it_asserts_and_draws_its_figure(notebook, tmp_path):
    """As a script in a process of its own, with the settings of jax that a reader has."""
    pytest.importorskip("matplotlib", reason="the notebooks draw with matplotlib, which is not installed")
    place = {"MPLBACKEND": "Agg", "RMJAX_FIGURES": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, str(notebook)], capture_output=True, text=True, check=False, env=os.environ | place
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / f"{notebook.stem[:2]}.svg").read_text().startswith("<?xml")


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_section_of_a_notebook_ends_in_an_assertion(notebook):
    """A section is what stands below a heading; the first only says what follows."""
    text = notebook.read_text()
    headings = [number for number, line in enumerate(text.splitlines(), 1) if line.startswith("# ## ")]
    statements = ast.parse(text).body
    assert headings
    for begin, end in zip(headings, [*headings[1:], len(text)]):
        last = [statement for statement in statements if begin < statement.lineno < end][-1]
        while isinstance(last, ast.For):
            last = last.body[-1]
        assert isinstance(last, ast.Assert), text.splitlines()[begin - 1]
