"""What is done about texts that are longer than the limit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from rmjax.data.contract import TextContract
from rmjax.data.dataset import PreferenceData
from rmjax.data.trees import shared_prefix
from rmjax.errors import DataError


class Shortened(NamedTuple):
    """Ids after the limit, and which comparisons it touched."""

    ids: list[np.ndarray]  # [N]
    lost: np.ndarray  # [N] int, tokens that were cut from the beginning of the prompt
    over: np.ndarray  # [E] bool, a side is longer than the limit
    cut: np.ndarray  # [E] bool, both sides lost the beginning of their prompt
    keep: np.ndarray  # [E] bool, the comparison stays


def shorten(
    ids: Sequence[np.ndarray],
    data: PreferenceData,
    contract: TextContract,
    bos_id: int | None,
    encode_prompt: Callable[[int], np.ndarray],
) -> Shortened:
    """Bring every response that stays within `contract.max_length`.

    Under "keep_response" all answers to a prompt lose the same tokens, from the beginning of what they share of the
    prompt; a BOS token before it stays. An answer is what was judged, and its end is what is scored, so it is kept
    whole: where it does not fit even without its prompt, its comparisons go.

    Args:
        ids: token ids of every response.
        data: the comparisons.
        contract: resolved.
        bos_id: the token to keep at the beginning, if there is one.
        encode_prompt: ids of a prompt without an answer; called only where something is too long.

    Returns:
        Ids and what happened.

    Raises:
        DataError: under "error", names the first row that is too long.

    Example:
        >>> from rmjax.data.tokenise import example_parts
        >>> data, _ = example_parts()
        >>> ids = [np.array([1, 2, 3, 9]), np.array([1, 2, 3, 8, 8])]
        >>> limit = TextContract(template="raw", max_length=4)
        >>> [text.tolist() for text in shorten(ids, data, limit, 1, lambda prompt: np.array([1, 2, 3])).ids]
        [[1, 3, 9], [1, 3, 8, 8]]
    """
    c, limit = data.comparisons, contract.limit
    length = np.array([len(text) for text in ids], np.int64)
    over = np.maximum(length[c.first], length[c.second]) > limit
    if contract.truncation == "error" and over.any():
        e = int(np.flatnonzero(over)[0])
        raise DataError(
            "a text is longer than the limit",
            {"row": int(data.rows[e]), "tokens": int(max(length[c.first[e]], length[c.second[e]])), "limit": limit},
            "Leave the row out. Where no model was trained under the contract yet, raise max_length or choose "
            'truncation="keep_response" or truncation="drop".',
        )
    no_cut = np.zeros_like(over)
    if contract.truncation == "drop" or not over.any():
        return Shortened(list(ids), np.zeros_like(length), over, no_cut, ~over)

    prompt_of = np.asarray(c.prompt)
    answers: dict[int, list[int]] = {}
    for n in np.flatnonzero(np.isin(prompt_of, prompt_of[c.first[over]])).tolist():
        answers.setdefault(int(prompt_of[n]), []).append(n)
    spare = np.zeros(len(ids), np.int64)  # tokens that a response may lose
    head = np.zeros(len(ids), np.int64)  # tokens before them
    for prompt, members in answers.items():
        texts = [ids[n] for n in members]
        head[members] = bos_id is not None and all(text[0] == bos_id for text in texts)
        spare[members] = np.maximum(shared_prefix([*texts, encode_prompt(prompt)]) - head[members], 0)
    excess = np.maximum(length - limit, 0)
    fits = excess <= spare
    keep = fits[c.first] & fits[c.second]
    # The longest answer that is still compared says how much all answers to its prompt lose.
    stays = np.zeros(len(ids), bool)
    stays[c.first[keep]] = stays[c.second[keep]] = True
    loss = np.zeros(len(data.prompts), np.int64)
    np.maximum.at(loss, prompt_of[stays], excess[stays])
    lost = loss[prompt_of]
    shorter = [
        np.concatenate([text[:h], text[h + cut :]]) if cut else text
        for text, h, cut in zip(ids, head.tolist(), lost.tolist())
    ]
    return Shortened(shorter, lost, over, keep & (lost[c.first] > 0), keep)
