"""From understood data to token ids with a scored position, and a report of everything that was decided."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from rmjax.comparisons import Comparisons
from rmjax.data.contract import TextContract, fingerprint, render, resolve
from rmjax.data.dataset import PreferenceData, is_empty, plain, subset
from rmjax.data.truncation import shorten
from rmjax.errors import DataError

if TYPE_CHECKING:
    from rmjax.tokenizer import Tokenizer

SHOWN = 5  # rows named in a report


@dataclasses.dataclass(frozen=True)
class Count:
    """How many comparisons something happened to, and the first few rows of the file."""

    count: int
    rows: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class TokeniseReport:
    """What was decided between the text and the ids. `dataclasses.asdict` of it is JSON."""

    contract: TextContract  # in force: nothing is "auto" but what a template writes itself
    responses: int
    comparisons: int
    tokens: int  # of all responses, prompts included
    begin_with_bos: int  # responses
    double_bos: Count  # one of the two was removed
    eos_appended: int  # responses
    over_limit: Count  # a side was longer than max_length
    cut: Count  # kept, with the prompt's beginning cut off
    left_out: Count  # not kept, for being too long
    became_identical: Count  # not kept: both sides have the same ids
    score_rules_disagree: Count  # `last` and `hf` would score another token of a side
    special_strings: Count  # a text of the file spells a special token, and is read as one


@dataclasses.dataclass(frozen=True, eq=False)
class TokenisedData:
    """Token ids of every response, with the position at which it is scored."""

    data: PreferenceData  # after what was left out
    ids: tuple[np.ndarray, ...]  # [N], int32
    score_position: np.ndarray  # [N] int32, an index into the response's ids
    contract: TextContract  # in force
    report: TokeniseReport
    fingerprint: str
    lost: np.ndarray | None = None  # [N] int, tokens cut from the beginning of the prompt; None: nothing was cut

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each response with its prompt, [N]."""
        return np.array([len(text) for text in self.ids], np.int64)


def tokenise(
    data: PreferenceData,
    tokenizer: Tokenizer,
    contract: TextContract | None = None,
    *,
    on_empty_answer: Literal["bad", "keep"] = "bad",
) -> TokenisedData:
    """Tokenise every response with its prompt, once.

    Guarantees: the ids of a response that is not cut depend on its own text alone; responses to one prompt are cut by
    the same number of tokens, so what they share stays shared, and answers stay whole; no BOS stands twice at the
    beginning; two sides with the same ids are not compared; the scored position is inside the text.

    Args:
        data: what the file said.
        tokenizer: the model's own.
        contract: the rules; the defaults if absent.
        on_empty_answer: whether an answer without a visible character is refused, or is an answer, as in `read`.

    Returns:
        Ids, positions and a report. `data` in it holds what is left.

    Raises:
        DataError: an answer is empty; under `truncation="error"`, a text is too long; nothing is left.

    Example:
        >>> data, tokenizer = example_parts()
        >>> tokenise(data, tokenizer).lengths
        array([10, 13])
    """
    contract = resolve(contract or TextContract(), data, tokenizer)
    empty = [n for n, text in enumerate(data.responses) if is_empty(text)]
    if empty and on_empty_answer == "bad":
        raise DataError(
            "an answer is empty",
            {"row": int(_rows(data, _judged(data, empty))[0]), "empty_answers": len(empty)},
            "Mend the row or leave it out: there is no token of the answer to score.",
        )
    prompt_of = np.asarray(data.comparisons.prompt).tolist()
    texts = [render(data.prompts[p], text, tokenizer, contract) for p, text in zip(prompt_of, data.responses)]
    framed = [_frame(ids, tokenizer, contract) for ids in tokenizer.encode_batch(texts)]

    def encode_prompt(prompt: int) -> np.ndarray:
        text = render(data.prompts[prompt], None, tokenizer, contract)
        return _begin(np.array(tokenizer.encode(text), np.int32), tokenizer, contract)[0]

    ids, lost, over, cut, keep = shorten([f.ids for f in framed], data, contract, tokenizer.bos_id, encode_prompt)
    c = data.comparisons
    same = keep & np.array([np.array_equal(ids[a], ids[b]) for a, b in zip(c.first, c.second)], bool)
    if not (keep & ~same).any():
        raise DataError(
            "nothing is left to compare",
            {"comparisons": data.num_comparisons, "too_long": int((~keep).sum()), "identical": int(same.sum())},
            f"Look at the texts with `rmjax inspect`; {contract.limit} tokens are what max_length allows.",
        )
    kept = dataclasses.replace(subset(data, keep & ~same), dropped=data.dropped)
    used = np.unique(np.concatenate([x[keep & ~same] for x in (c.first, c.second)]))
    last, hf = (
        np.array([score_position(ids[n], tokenizer.pad_id, rule) for n in used], np.int32) for rule in ("last", "hf")
    )

    def count(comparisons: np.ndarray) -> Count:
        return Count(int(comparisons.sum()), tuple(_rows(data, comparisons)[:SHOWN].tolist()))

    report = TokeniseReport(
        contract=contract,
        responses=len(used),
        comparisons=kept.num_comparisons,
        tokens=sum(len(ids[n]) for n in used),
        begin_with_bos=sum(tokenizer.bos_id is not None and bool(ids[n][0] == tokenizer.bos_id) for n in used),
        double_bos=count(_judged(data, [n for n, f in enumerate(framed) if f.double_bos])),
        eos_appended=sum(framed[n].eos_appended for n in used),
        over_limit=count(over),
        cut=count(cut),
        left_out=count(~keep),
        became_identical=count(same),
        score_rules_disagree=count(_judged(data, used[last != hf])),
        special_strings=count(_judged(data, _spell_specials(data, tokenizer))),
    )
    return TokenisedData(
        data=kept,
        ids=tuple(ids[n] for n in used),
        score_position=last if contract.score_token == "last" else hf,
        contract=contract,
        report=report,
        fingerprint=fingerprint(contract, tokenizer),
        lost=lost[used],
    )


def score_position(ids: np.ndarray, pad_id: int | None, rule: Literal["last", "hf"]) -> int:
    """Where a response is scored.

    Args:
        ids: its token ids.
        pad_id: the pad token, which only "hf" looks at.
        rule: "last": the last token. "hf": the rightmost that is not the pad token, and the first where all are.

    Returns:
        An index into `ids`.

    Example:
        >>> ids = np.array([5, 6, 2])
        >>> score_position(ids, 2, "last"), score_position(ids, 2, "hf")
        (2, 1)

    Reference:
        transformers 5.24, modeling_layers.GenericForSequenceClassification.
    """
    if rule == "last" or pad_id is None:
        return len(ids) - 1
    return int(np.max(np.flatnonzero(ids != pad_id), initial=0))


class _Framed(NamedTuple):
    """Ids with the beginning and the end that the contract asks for."""

    ids: np.ndarray
    double_bos: bool
    eos_appended: bool


def _frame(ids: Sequence[int], tokenizer: Tokenizer, contract: TextContract) -> _Framed:
    text, double_bos = _begin(np.array(ids, np.int32), tokenizer, contract)
    eos = tokenizer.eos_id
    if contract.add_eos is not True or eos is None or (len(text) and text[-1] == eos):
        return _Framed(text, double_bos, False)
    return _Framed(np.append(text, np.int32(eos)), double_bos, True)


def _begin(ids: np.ndarray, tokenizer: Tokenizer, contract: TextContract) -> tuple[np.ndarray, bool]:
    """One BOS or none at the beginning, and whether there were two."""
    bos = tokenizer.bos_id
    if bos is None:
        return ids, False
    found = int(np.argmin(np.append(ids, bos - 1) == bos))  # how many BOS the text begins with
    added = int(contract.add_bos is True and found == 0)
    wanted = min(found, 1) if contract.add_bos == "auto" else int(contract.add_bos)
    text = np.concatenate([np.full(wanted, bos, np.int32), ids[found:]]) if found != wanted else ids
    return text, found + added > 1


def _spell_specials(data: PreferenceData, tokenizer: Tokenizer) -> list[int]:
    """Responses that contain a special string, or whose prompt does."""
    if not tokenizer.special_strings:
        return []
    special = re.compile("|".join(map(re.escape, tokenizer.special_strings)))
    prompts = [bool(special.search(plain(text))) for text in data.prompts]
    prompt_of = np.asarray(data.comparisons.prompt).tolist()
    return [n for n, text in enumerate(data.responses) if prompts[prompt_of[n]] or special.search(plain(text))]


def _judged(data: PreferenceData, responses: Sequence[int] | np.ndarray) -> np.ndarray:
    """Which comparisons judge one of these responses, [E] bool."""
    chosen = np.zeros(len(data.responses), bool)
    chosen[np.asarray(responses, np.int64)] = True
    return chosen[data.comparisons.first] | chosen[data.comparisons.second]


def _rows(data: PreferenceData, comparisons: np.ndarray) -> np.ndarray:
    """Rows of the file that these comparisons came from."""
    return data.rows[comparisons]


def example_parts() -> tuple[PreferenceData, Tokenizer]:
    """One pair and a tokenizer of bytes, for the examples in docstrings."""
    from rmjax.tokenizer import ByteTokenizer

    pair = Comparisons.from_pairs([0], [1], prompt=[0, 0])
    texts = ("2 + 2?",), ("sums",), ("4", "four")
    data = PreferenceData(*texts, pair, rows=np.array([1]), abstentions=np.zeros(1, np.float32))
    return data, ByteTokenizer()


def example() -> TokenisedData:
    """The example, tokenised."""
    return tokenise(*example_parts())
