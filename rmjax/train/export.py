"""A trained model in the ecosystem's files, with the contract under which it reads text."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

from rmjax.data.contract import fingerprint
from rmjax.models.save import EXPORTED, save
from rmjax.train.run import Run


def export(directory: str | Path, run: Run) -> None:
    """Write safetensors, config.json and the tokenizer, which transformers opens, and the contract beside them.

    Guarantees: `open_run` of the directory gives the same parameters and the same contract, hence the same scores
    under the same fingerprint. Until all is written, an export that stood there stays as it was, and at no time does a
    model open with the contract of another.

    Args:
        directory: made where it does not exist; an export in it is replaced once the new one is written, so that the
            disk holds both for a moment.
        run: of `open_run`.

    Raises:
        CheckpointError: as `rmjax.models.save`.
        DataError: as `rmjax.models.save`.
    """
    contract, tokenizer = run.contract, run.model.tokenizer
    # transformers scores the last token that is not its pad token: where that is EOS, or nothing, a text that ends in
    # EOS would be scored a token early. BOS ends no text. A template that names the pad token would write another text.
    last = contract is None or contract.score_token == "last"
    early = last and tokenizer.pad_id in (None, tokenizer.eos_id) and "pad_token" not in (tokenizer.chat_template or "")
    pad_token = tokenizer.special_tokens.get("bos_token") if early else None
    text = None
    if contract is not None:
        said = {
            "contract": dataclasses.asdict(contract),
            "fingerprint": fingerprint(contract, tokenizer),
            "format": run.format,
            "files": run.files,
        }
        text = json.dumps(said, indent=2) + "\n"
    save(directory, run.model, pad_token=pad_token, beside={EXPORTED: text})
