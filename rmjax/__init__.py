"""Reward models in JAX."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rmjax import errors, losses
    from rmjax.comparisons import Comparisons, Rankings
    from rmjax.votes import Votes

__all__ = ["Comparisons", "Rankings", "Votes", "errors", "losses"]

_CLASSES = {"Comparisons": "rmjax.comparisons", "Rankings": "rmjax.comparisons", "Votes": "rmjax.votes"}


def __getattr__(name: str) -> Any:
    """Load a public name when it is used: `rmjax doctor` has to run where jax is broken or absent."""
    if name in _CLASSES:
        return getattr(importlib.import_module(_CLASSES[name]), name)
    if name in __all__:
        return importlib.import_module(f"rmjax.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
