"""State on disk: saved asynchronously through orbax, restored onto any mesh."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import orbax.checkpoint as ocp

from rmjax.errors import CheckpointError


class Checkpoints:
    """The checkpoints of one run. A save returns as soon as the arrays are copied; a save that was cut off is ignored.

    Args:
        directory: where they live.
        keep: how many of the latest stay.
    """

    def __init__(self, directory: str | Path, keep: int = 2):
        options = ocp.CheckpointManagerOptions(max_to_keep=keep, cleanup_tmp_directories=True)
        self._manager = ocp.CheckpointManager(Path(directory).absolute(), options=options)

    def __enter__(self) -> Checkpoints:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def latest(self) -> int | None:
        """The last step that is complete on disk."""
        return self._manager.latest_step()

    def save(self, step: int, state: Any) -> None:
        """Start to save; returns before the files are complete."""
        self._manager.save(step, args=ocp.args.StandardSave(state))

    def restore(self, like: Any, step: int | None = None) -> Any:
        """The saved state, with the structure, dtypes and shardings of `like`.

        Args:
            like: arrays or `jax.ShapeDtypeStruct`s with shardings: on another mesh than the one that saved, if wanted.
            step: which; the latest if absent.

        Returns:
            The state.

        Raises:
            CheckpointError: there is none, or it holds other parameters.
        """
        step = self.latest if step is None else step
        if step is None:
            raise CheckpointError("the run has no complete checkpoint", {}, "Train it first: nothing can be restored.")

        def describe(x: Any) -> jax.ShapeDtypeStruct:
            return jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding)

        try:
            return self._manager.restore(step, args=ocp.args.StandardRestore(jax.tree.map(describe, like)))
        except Exception as error:  # orbax and its storage raise errors of several libraries, bare ones among them
            older = [other for other in self._manager.all_steps() if other != step]
            raise CheckpointError(
                "the checkpoint is damaged, or of another configuration",
                {"step": step, "because": str(error).splitlines()[0][:200] if str(error) else type(error).__name__},
                "Resume with the configuration that saved it; if that is what you did, remove the directory of this "
                f"step: {f'step {max(older)} is there to go on from' if older else 'the run then starts anew'}.",
            ) from error

    def close(self) -> None:
        """Wait until everything is on disk."""
        self._manager.wait_until_finished()
        self._manager.close()
