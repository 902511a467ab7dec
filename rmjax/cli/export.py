"""`rmjax export`: a trained model in the ecosystem's files."""

from __future__ import annotations

import tyro

from rmjax.cli import show
from rmjax.cli.outputs import check_directory
from rmjax.errors import RMJaxError
from rmjax.models.save import save
from rmjax.train.run import is_run, open_run


def export(model: tyro.conf.Positional[str], directory: tyro.conf.Positional[str], *, json: bool = False) -> None:
    """Write safetensors, config.json and the tokenizer, which transformers opens with the same scores.

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
    run = open_run(model)
    tokenizer = run.model.tokenizer
    # transformers scores the last token that is not its pad token: where that is EOS, or nothing, a text that ends in
    # EOS would be scored a token early. BOS ends no text.
    last = run.contract.score_token == "last" and tokenizer.pad_id in (None, tokenizer.eos_id)
    save(directory, run.model, pad_token=tokenizer.special_tokens.get("bos_token") if last else None)
    if json:
        show.print_json({"directory": directory})
        return
    show.CONSOLE.print(f"written: {directory}")
