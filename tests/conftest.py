"""The test house: strict numerics, eight virtual devices, and one place for what Hypothesis does."""

import os
import pathlib

# Tests run in as many processes as there are cores, and threads of a process would take each other's.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy is loaded

import jax
import pytest
from hypothesis import Phase, settings

jax.config.update("jax_num_cpu_devices", 8)  # before any device is used: meshes are tested on one machine
# Without these, margins of shape [4] and [4, 1] make a loss of shape [4, 4], and bfloat16 creeps in unseen.
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")

# No deadline: the first example compiles, the others take a thousandth of that.
settings.register_profile("dev", max_examples=50, deadline=None, print_blob=True)
settings.register_profile("ci", max_examples=50, deadline=None, print_blob=True, derandomize=True, database=None)
# Of a planted fault it is enough to know that a test fails; shrinking the case would take the longest part of the time.
settings.register_profile("mutants", settings.get_profile("ci"), phases=[Phase.explicit, Phase.generate])
settings.register_profile("deep", max_examples=2_000, deadline=None, print_blob=True)
PROFILE = os.environ.get("RMJAX_PROFILE", "ci" if os.environ.get("CI") else "dev")
settings.load_profile(PROFILE)

# Most of the time of these tests is compilation of small programs, and most of that is LLVM's optimisation and the
# making of fused loops. They are left out here and stay in `make test-deep`; no tolerance leans on them.
QUICK = "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"
if PROFILE != "deep":
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {QUICK}".strip()

# Public preference data lie beside the project, or where this says. Tests that read them skip without them.
os.environ.setdefault("RMJAX_SHARED", str(pathlib.Path(__file__).parents[2] / "shared"))


def pytest_collection_modifyitems(config, items):
    """Skip long runs unless they are asked for, by `RMJAX_PROFILE=deep` or `-m deep`."""
    if PROFILE == "deep" or "deep" in config.option.markexpr:
        return
    for item in items:
        if "deep" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="a long run: `make test-deep` asks for it"))


@pytest.fixture
def x64():
    """Run one test in float64. The setting is never global; a property enters `jax.enable_x64()` itself."""
    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="session")
def shared():
    """The folder of public preference data and reference numbers; skips where it is absent."""
    folder = pathlib.Path(os.environ["RMJAX_SHARED"])
    if not folder.is_dir():
        pytest.skip(f"no reference material at {folder}")
    return folder
