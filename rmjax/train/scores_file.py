"""Scores on disk, with the fingerprint of the function that made them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rmjax.data.dataset import PreferenceData
from rmjax.errors import DataError, GaugeError
from rmjax.train.scoring import Scored
from rmjax.train.whole_files import write_whole


def write_scores(path: str | Path, data: PreferenceData, scored: Scored, lost: np.ndarray | None = None) -> int:
    """One JSON line per comparison: its row in the file, its prompt, both scores, their margin, and the fingerprint.

    Where a limit cut the beginning of the prompt, `prompt_tokens_cut` says how much of it no score has seen. `prompt`
    is a name for the prompt and its source: the first 16 digits of their SHA-256.

    Args:
        path: of the file; an existing one is replaced when the new one is complete.
        data: the judged pairs.
        scored: their scores.
        lost: tokens that were cut from the prompt of every response, [N]; none if absent.

    Returns:
        How many lines were written.
    """
    c = data.comparisons
    margins = scored.margins(c)
    cut = np.zeros(c.num_responses, np.int64) if lost is None else lost
    # A prompt under two sources is two prompts, each cut by its own longest answer.
    pairs = zip(data.prompts, data.sources, strict=True)
    names = [hashlib.sha256(repr(pair).encode()).hexdigest()[:16] for pair in pairs]

    def lines() -> Iterator[str]:
        for row, first, second, margin in zip(data.rows, c.first, c.second, margins, strict=True):
            line = {
                "row": int(row),
                "prompt": names[c.prompt[first]],
                "first": float(scored.scores[first]),
                "second": float(scored.scores[second]),
                "margin": float(margin),
                "prompt_tokens_cut": int(cut[first]),
                "fingerprint": scored.fingerprint,
            }
            yield json.dumps(line, allow_nan=False) + "\n"

    write_whole(path, lines())
    return len(margins)


def join_scores(paths: Sequence[str | Path]) -> list[dict[str, Any]]:
    """The lines of several score files, in order, if one function made them all.

    Args:
        paths: files that `write_scores` wrote.

    Returns:
        All lines.

    Raises:
        DataError: a line is no line of scores.
        GaugeError: the files were made by different models or contracts, or one prompt was cut by different amounts.
            Such scores are on different scales, each with a constant of its own for every prompt.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "scores.jsonl")
        ...     _ = path.write_text('{"margin": 0.5, "fingerprint": "0f3a", "prompt": "91", "prompt_tokens_cut": 0}')
        ...     join_scores([path, path])[1]["margin"]
        0.5
    """
    lines: list[dict[str, Any]] = []
    made_by: dict[str, str] = {}
    seen_as: dict[str, dict[int, str]] = {}  # prompt -> tokens cut -> where
    for path in paths:
        if not Path(path).is_file():
            raise DataError("there is no such file of scores", {"file": str(path)}, "Write it with `rmjax score`.")
        for number, text in enumerate(Path(path).read_bytes().splitlines(), start=1):
            try:
                line = json.loads(text)
                words, tokens = (line["fingerprint"], line["prompt"]), line["prompt_tokens_cut"]
                if not all(isinstance(word, str) for word in words) or type(tokens) is not int:
                    raise TypeError("no fingerprint, no prompt, or no number of tokens")
                made_by.setdefault(line["fingerprint"], where := f"{path}, line {number}")
                seen_as.setdefault(line["prompt"], {}).setdefault(line["prompt_tokens_cut"], where)
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                raise DataError(
                    "this is not a line of scores", {"file": str(path), "line": number}, "Write it with `rmjax score`."
                ) from error
            lines.append(line)
    if len(made_by) > 1:
        raise GaugeError(
            "these scores were made by different functions and are on different scales",
            {where: fingerprint for fingerprint, where in made_by.items()},
            "Score all rows with one model, or compare the margins of two models pair by pair.",
        )
    for cuts in seen_as.values():
        if len(cuts) > 1:
            raise GaugeError(
                "these scores saw one prompt cut by different amounts, so that they are no scores of one function",
                {where: f"{tokens} tokens cut" for tokens, where in cuts.items()},
                "Score all answers to a prompt in one file, or raise the limit of tokens.",
            )
    return lines
