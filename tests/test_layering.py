"""Imports point down: the plan of the house as data, checked against every import statement of rmjax."""

import ast
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]
MODULES = sorted((ROOT / "rmjax").rglob("*.py"))

# A room may import the rooms named here and, through them, what they may import.
MAY_IMPORT = {
    "errors": (),
    "arrays": (),
    "checks": ("errors",),
    "comparisons": ("arrays", "checks"),
    "votes": ("comparisons",),
    "losses": ("comparisons",),
    "identifiability": ("losses",),
    "preferences": ("losses", "identifiability", "votes"),
    "diagnostics": ("preferences",),
    "head": ("arrays", "errors"),
    "batch": ("comparisons",),
    "tokenizer": ("errors",),
    "sharding": ("errors",),
    "models": ("head", "batch", "tokenizer", "sharding"),
    "testing": ("diagnostics", "head"),
    "readouts": ("models", "diagnostics"),
    "data": ("comparisons", "votes", "batch", "tokenizer"),
    "train": ("diagnostics", "data", "models", "readouts"),
    "report": ("diagnostics", "readouts"),
    "interop": ("diagnostics", "models"),
    "cli": ("train", "report", "interop"),
    "__main__": ("cli",),
    "__init__": ("diagnostics",),  # the facade: what `import rmjax` loads
}
CORE = (
    "checks",
    "comparisons",
    "votes",
    "losses",
    "identifiability",
    "preferences",
    "diagnostics",
    "head",
    "arrays",
    "batch",
)
NUMERICS = {"jax", "numpy", "jaxtyping"}
THIRD_PARTY = {
    "errors": set(),
    **dict.fromkeys(CORE, NUMERICS | {"scipy"}),
    "__init__": set(),
    "sharding": NUMERICS,
    "tokenizer": {"numpy", "jinja2", "tokenizers"},
    "models": NUMERICS | {"ml_dtypes", "safetensors", "gguf", "huggingface_hub"},
    "testing": NUMERICS | {"hypothesis"},
    "readouts": NUMERICS | {"scipy"},
    "data": {"numpy", "rich", "grain", "tokenizers", "transformers"},
    "train": NUMERICS | {"scipy", "optax", "orbax", "tensorboardX"},
    "report": {"numpy", "jinja2", "markupsafe", "rich"},
    "interop": NUMERICS | {"flax", "optax"},
    "cli": NUMERICS | {"tyro", "rich"},
    "__main__": set(),
}
# What `import rmjax` must not load beyond what jax itself loads.
HEAVY = {"flax", "optax", "orbax", "grain", "transformers", "torch", "matplotlib", "scipy", "tokenizers", "chex"}
# The only files of models/ that may speak of a pad token: they read and write the files of others.
FOREIGN_FILES = {"hf_config", "load", "save", "weights", "gguf", "gguf_format", "safetensors_io"}


def room_of(path):
    """The file or folder directly under rmjax/."""
    return path.relative_to(ROOT / "rmjax").parts[0].removesuffix(".py")


def reachable(room):
    """The rooms that a room may import, itself included."""
    return {room}.union(*(reachable(below) for below in MAY_IMPORT[room]))


def imports(source):
    """Full names of everything that a source imports, wherever in the file the statement stands."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{'.' * node.level}{node.module or ''}.{alias.name}" for alias in node.names)


def trespasses(room, source):
    """The imports that a file in this room may not have."""
    for name in imports(source):
        top, *rest = name.split(".")
        if top == "rmjax":
            # `from rmjax import Comparisons` goes through the facade, which stands above every room.
            if not rest or rest[0] not in reachable(room):
                yield name
        elif top not in sys.stdlib_module_names and top not in THIRD_PARTY[room]:
            yield name


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_import_points_down(path):
    room = room_of(path)
    assert room in MAY_IMPORT, f"a new room, {room}: say in MAY_IMPORT and THIRD_PARTY what it may import"
    assert list(trespasses(room, path.read_text())) == []


@pytest.mark.parametrize(
    ("room", "source"),
    [
        ("losses", "from rmjax.models import forward"),
        ("losses", "from rmjax import Comparisons"),
        ("losses", "import rmjax"),
        ("losses", "from . import kernels"),
        ("losses", "def late():\n    import optax"),
        ("diagnostics", "from rmjax.data.dataset import PreferenceData"),
        ("report", "from rmjax.train.loop import train"),
        ("models", "import flax"),
        ("data", "import jax"),
        ("train", "import chex"),
        ("train", "import experiments.convert_ukp"),
        ("cli", "from theory import ties"),
    ],
)
def test_other_arrows_are_seen(room, source):
    assert list(trespasses(room, source))


def test_the_plan_has_no_cycle_and_one_line_per_room():
    assert MAY_IMPORT.keys() == THIRD_PARTY.keys()
    assert all(room not in reachable(below) for room in MAY_IMPORT for below in MAY_IMPORT[room])


def test_importing_rmjax_loads_little():
    code = "import jax, numpy, sys; before = set(sys.modules); import rmjax; print(*set(sys.modules) - before)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/")
    loaded = {name.split(".")[0] for name in shown.stdout.split()}
    assert "rmjax" in loaded
    assert not loaded & HEAVY


def test_no_pad_token_inside_a_model():
    """Where a response is scored comes with the batch; a model that looks for padding finds the wrong token."""
    inside = [path for path in MODULES if room_of(path) in ("models", "head", "batch", "losses", "readouts")]
    for path in inside:
        if path.stem not in FOREIGN_FILES:
            assert not re.search(r"pad_token|pad_id|eos_token|eos_id", path.read_text()), path
