"""What `pip install .` puts on a machine is the whole package."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_the_wheel_carries_every_file_of_the_package(tmp_path):
    """Modules, the page's template and py.typed: an editable install finds them also where a wheel lacks them."""
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--quiet", "--wheel-dir", str(tmp_path)]
    done = subprocess.run([*command, str(ROOT)], capture_output=True, text=True, check=False)
    if done.returncode and "No matching distribution found for hatchling" in done.stderr:
        pytest.skip("the package index, from which the build takes hatchling, cannot be reached")
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("rmjax-*.whl")
    carried = set(zipfile.ZipFile(wheel).namelist())
    files = {path for path in (ROOT / "rmjax").rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    assert {path.relative_to(ROOT).as_posix() for path in files} <= carried
    assert {"rmjax/py.typed", "rmjax/report/page.html.jinja"} <= carried
