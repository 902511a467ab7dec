"""`rmjax export`: a trained model in the ecosystem's files."""

from __future__ import annotations

import tyro

from rmjax.cli import show
from rmjax.cli.outputs import check_directory
from rmjax.errors import RMJaxError
from rmjax.train.export import export as write
from rmjax.train.run import open_run
from rmjax.train.stored import is_run


def export(model: tyro.conf.Positional[str], directory: tyro.conf.Positional[str], *, json: bool = False) -> None:
    """Write safetensors, config.json and the tokenizer, which transformers opens with the same scores.

    rmjax.json beside them keeps how text becomes tokens, so that `rmjax score` of the directory gives the same scores.

    Args:
        model: the directory of a run, or a model by name.
        directory: where the files go.
        json: print the result as JSON on standard output.
    """
    check_directory(directory)
    if is_run(directory):
        raise RMJaxError(
            "the directory holds a run, whose files an export would replace",
            {"directory": directory},
            "Give a directory of its own.",
        )
    write(directory, open_run(model))
    if json:
        show.print_json({"directory": directory})
        return
    show.CONSOLE.print(f"written: {directory}")
