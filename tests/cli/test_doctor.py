"""The doctor runs where something is missing, and the other verbs send there."""

import importlib.metadata
import json
import subprocess
import sys

import pytest

from rmjax.cli import doctor

HIDING = """
import sys
class Hide:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in sys.argv[1].split(","):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Hide())
from rmjax.cli import main
main(sys.argv[2:])
"""


def without(packages, *arguments):
    return subprocess.run([sys.executable, "-c", HIDING, packages, *arguments], capture_output=True, text=True)


def test_the_doctor_runs_without_jax_and_without_the_reader_of_options():
    found = without("jax,tyro,rich", "doctor", "--json")
    assert found.returncode == 0, found.stderr
    assert "No module named 'jax'" in json.loads(found.stdout)["backend"]


def test_a_verb_that_misses_a_package_sends_to_the_doctor():
    found = without("orbax", "train")
    assert found.returncode == 2
    assert "`orbax" in found.stderr
    assert "rmjax doctor" in found.stderr
    assert "Traceback" not in found.stderr


@pytest.mark.parametrize(("package", "verbs"), [("gguf", "models from a .gguf file"), ("tensorboardX", "train")])
def test_what_is_missing_is_named_with_its_verbs_and_its_command(package, verbs, monkeypatch):
    real = importlib.metadata.version

    def version(name):
        if name == package:
            raise importlib.metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    gaps = {gap["package"]: gap for gap in doctor.diagnose()["missing"]}
    assert gaps[package] == {"package": package, "needed_for": verbs, "install": f"pip install {package}"}
