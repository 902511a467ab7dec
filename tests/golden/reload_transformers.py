"""Open directories that rmjax saved with transformers, and compare scores, alone and in a padded batch, ids and
rendered chats.

Run where torch and transformers 5 are installed; rmjax is not needed. Each directory holds `expected.json` beside the
model: `ids` and `scores` of sequences, `texts` with their `text_ids`, and `chats` with what was `rendered`.

    python tests/golden/reload_transformers.py DIRECTORY...
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
import transformers

TOLERANCE = 1e-5


def problems(directory: Path) -> list[str]:
    """What differs in one directory."""
    expected = json.loads((directory / "expected.json").read_text("utf-8"))
    found = []
    model, loading = transformers.AutoModelForSequenceClassification.from_pretrained(
        directory, dtype=torch.float32, attn_implementation="eager", output_loading_info=True
    )
    for kind, names in loading.items():
        if names and not (kind == "unexpected_keys" and set(names) == {"score.bias"}):
            found.append(f"{kind}: {names}")
    for ids, score in zip(expected["ids"], expected["scores"], strict=True):
        with torch.no_grad():
            logits = model(torch.tensor([ids])).logits
        if tuple(logits.shape) != (1, 1):
            found.append(f"logits of shape {tuple(logits.shape)}")
        elif abs(logits.item() - score) > TOLERANCE * max(1.0, abs(score)):
            found.append(f"score {logits.item()} and not {score}")
    tokenizer = transformers.AutoTokenizer.from_pretrained(directory)
    width = max(map(len, expected["ids"]))
    batch = torch.tensor([ids + [tokenizer.pad_token_id] * (width - len(ids)) for ids in expected["ids"]])
    lengths = torch.tensor([len(ids) for ids in expected["ids"]])
    with torch.no_grad():
        padded = model(batch, attention_mask=(torch.arange(width) < lengths[:, None]).long()).logits[:, 0].tolist()
    for ours, theirs in zip(expected["scores"], padded, strict=True):
        if abs(theirs - ours) > TOLERANCE * max(1.0, abs(ours)):
            found.append(f"score {theirs} in a padded batch and not {ours}")
    for text, ids in zip(expected["texts"], expected["text_ids"], strict=True):
        if (theirs := tokenizer(text, add_special_tokens=False)["input_ids"]) != ids:
            found.append(f"ids of {text!r}: {theirs} and not {ids}")
    for chat, rendered in zip(expected["chats"], expected["rendered"], strict=True):
        if (theirs := tokenizer.apply_chat_template(chat, tokenize=False)) != rendered:
            found.append(f"rendered {theirs!r} and not {rendered!r}")
    return found


def main() -> None:
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    wrong = False
    for directory in map(Path, sys.argv[1:]):
        found = problems(directory)
        wrong |= bool(found)
        print(f"{directory.name}: {'; '.join(found) or 'equal'}")
    raise SystemExit(int(wrong))


if __name__ == "__main__":
    main()
