"""A trained model in the ecosystem's files, with the contract under which it reads text."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

from rmjax.data.contract import TextContract
from rmjax.models.save import save
from rmjax.train.run import Run
from rmjax.train.stored import EXPORTED
from rmjax.train.whole_files import write_whole


def export(directory: str | Path, run: Run) -> None:
    """Write safetensors, config.json and the tokenizer, which transformers opens, and the contract beside them.

    Guarantees: `open_run` of the directory gives the same parameters and the same contract, hence the same scores
    under the same fingerprint.

    Args:
        directory: made where it does not exist.
        run: of `open_run`.

    Raises:
        CheckpointError: as `rmjax.models.save`.
    """
    contract, tokenizer = run.contract or TextContract(), run.model.tokenizer
    # transformers scores the last token that is not its pad token: where that is EOS, or nothing, a text that ends in
    # EOS would be scored a token early. BOS ends no text.
    last = contract.score_token == "last" and tokenizer.pad_id in (None, tokenizer.eos_id)
    save(directory, run.model, pad_token=tokenizer.special_tokens.get("bos_token") if last else None)
    path = Path(directory) / EXPORTED
    if run.contract is None:
        path.unlink(missing_ok=True)
    else:
        said = {"contract": dataclasses.asdict(run.contract), "format": run.format}
        write_whole(path, json.dumps(said, indent=2) + "\n")
