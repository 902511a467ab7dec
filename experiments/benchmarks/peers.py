"""choix, evalica and arena-rank, asked through a process of an environment of their own."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

NOT_ASKED = "no interpreter with choix, evalica and arena-rank was named: --peers-python"


class Peers:
    """One process for all requests, so that both sides are warm; without an interpreter every answer is its reason."""

    def __init__(self, python: str | None, scratch: str | Path):
        self.scratch = Path(scratch)
        self.process = None
        if python is not None:
            side = str(Path(__file__).with_name("peers_side.py"))
            # What its compiler has to say of its own slowness is no part of our table.
            quiet = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"}
            self.process = subprocess.Popen(
                [python, side], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=quiet
            )

    def __enter__(self) -> Peers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process is not None:
            self.process.communicate()

    def save(self, name: str, **arrays: Any) -> Path:
        """Write the arrays of a problem where the other side finds them."""
        path = self.scratch / f"{name}.npz"
        np.savez(path, **arrays)
        return path

    def ask(self, method: str, data: Path, **options: Any) -> dict[str, Any]:
        """The answer to one request.

        Args:
            method: of `peers_side.py`.
            data: what `save` wrote.
            **options: of the method.

        Returns:
            `scores` in logits and `seconds`, or `error` in words; `warnings`.
        """
        if self.process is None:
            return {"error": NOT_ASKED, "warnings": []}
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"method": method, "data": str(data), "options": options}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            return {"error": f"its process ended with {self.process.wait()}", "warnings": []}
        answer = json.loads(line)
        if answer["error"] is None:
            answer["scores"] = np.array(answer["scores"])
        return answer
