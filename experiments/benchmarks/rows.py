"""The lines that every benchmark writes: a number, what it should be, and where it was measured."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jax


def row(
    name: str,
    value: float,
    unit: str,
    *,
    target: float | None = None,
    below: bool = False,
    command: str,
) -> dict[str, Any]:
    """One measured number.

    Args:
        name: what was measured.
        value: the number. One that is not a number meets no target.
        unit: its unit.
        target: what it should reach; None for a number that only informs.
        below: the target is the most that it may be, not the least.
        command: what measured it.

    Returns:
        name, value, unit, target ("<= 0.02"), met (None without a target), command and machine.

    Example:
        >>> row("cost", 0.01, "share", target=0.02, below=True, command="python -m cost")["target"]
        '<= 0.02'
    """
    met = None if target is None else bool(value <= target if below else value >= target)
    wanted = None if target is None else f"{'<=' if below else '>='} {target:g}"
    fields = {"name": name, "value": float(value), "unit": unit, "target": wanted, "met": met}
    return fields | {"command": command, "machine": machine()}


def absent(name: str, reason: str, *, command: str) -> dict[str, Any]:
    """A measurement that could not be made here, with the reason in a field of its own.

    Args:
        name: what was to be measured.
        reason: what does not install or is not there.
        command: what was to measure it.

    Returns:
        The fields of `row`, empty but for the names, and `reason`.
    """
    empty: dict[str, Any] = {"name": name, "value": None, "unit": None, "target": None, "met": None}
    return empty | {"command": command, "machine": machine(), "reason": reason}


def missed(rows: Iterable[dict[str, Any]]) -> list[str]:
    """Names of the rows whose target is not met."""
    return [line["name"] for line in rows if line["met"] is False]


def machine() -> str:
    """Cores, device and versions: what a number depends on, and nothing that names the machine."""
    devices = jax.devices()
    accelerator = "" if devices[0].platform == "cpu" else f", {len(devices)} x {devices[0].device_kind}"
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{cores} CPU cores ({platform.machine()}){accelerator}, jax {jax.__version__}, {platform.system()}"


def write(path: str | Path, rows: Iterable[dict[str, Any]]) -> None:
    """The rows as one JSON list; numbers that JSON does not have become null."""
    finite = [{k: None if isinstance(v, float) and v - v != 0 else v for k, v in line.items()} for line in rows]
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(json.dumps(finite, indent=2) + "\n")
