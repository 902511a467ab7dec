"""`rmjax export`: a trained model in the ecosystem's files."""

from __future__ import annotations

import tyro

from rmjax.cli import show
from rmjax.models.save import save
from rmjax.train.run import open_run


def export(model: tyro.conf.Positional[str], directory: tyro.conf.Positional[str], *, json: bool = False) -> None:
    """Write safetensors, config.json and the tokenizer, which transformers opens with the same scores.

    Args:
        model: the directory of a run, or a model by name.
        directory: where the files go.
        json: print the result as JSON on standard output.
    """
    save(directory, open_run(model).model)
    if json:
        show.print_json({"directory": directory})
        return
    show.CONSOLE.print(f"written: {directory}")
