"""A tokenizer from the metadata of a GGUF file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers

from rmjax.errors import CheckpointError
from rmjax.tokenizer.tokenizer import Tokenizer

_CONTROL, _USER_DEFINED = 3, 4  # token types of the format
# How Qwen2 and Llama 3 cut text into words before merging: contractions, letters with one sign before them, numerals
# (of Qwen2 each by itself, of Llama 3 up to three), other signs up to the line's end, line breaks, spaces.
_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|NUMERALS| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def from_gguf(metadata: Mapping[str, Any]) -> Tokenizer:
    """Rebuild the tokenizer that a GGUF file describes.

    Guarantees: the same ids as the tokenizer that the file was made from. How text is cut into words stands in the file
    only as a name, `tokenizer.ggml.pre`; names whose rule is not proven here are refused.

    Args:
        metadata: the file's, `tokenizer.ggml.*` and `tokenizer.chat_template`.

    Returns:
        The tokenizer.

    Raises:
        CheckpointError: the vocabulary is of another kind, or the splitting rule is not known.

    Example:
        >>> tokens = ["<|end|>", "a", "b", "ab"]
        >>> parts = {"model": "gpt2", "pre": "smollm", "tokens": tokens, "token_type": [3, 1, 1, 1], "merges": ["a b"]}
        >>> from_gguf({f"tokenizer.ggml.{name}": part for name, part in parts.items()}).encode("abb<|end|>")
        [3, 2, 0]

    Source:
        the splitting rules of llama.cpp, src/llama-vocab.cpp, which defines the names.
    """
    kind, pre = metadata.get("tokenizer.ggml.model"), metadata.get("tokenizer.ggml.pre")
    if kind != "gpt2" or pre not in _SPLITS:
        raise CheckpointError(
            "the file's tokenizer is of a kind that cannot be rebuilt exactly",
            {"tokenizer.ggml.model": kind, "tokenizer.ggml.pre": pre},
            "Load the model from a directory with its tokenizer.json; from GGUF, byte-level BPE is read with the "
            f"splitting rules {', '.join(_SPLITS)}.",
        )
    try:
        tokens, kinds = list(metadata["tokenizer.ggml.tokens"]), list(metadata["tokenizer.ggml.token_type"])
        merges = [tuple(merge.split(" ", 1)) for merge in metadata["tokenizer.ggml.merges"]]
        # Llama 3 takes a word that is a token as it is, also where no merges lead to it.
        whole = pre == "llama-bpe"
        vocabulary = {token: i for i, token in enumerate(tokens)}
        backend = tokenizers.Tokenizer(models.BPE(vocab=vocabulary, merges=merges, ignore_merges=whole))
    except Exception as error:  # the library raises bare Exception where a merge is not in the vocabulary
        raise CheckpointError(
            "the file's vocabulary is incomplete", {"reason": error}, "Convert the model to GGUF again."
        ) from error
    backend.pre_tokenizer = pre_tokenizers.Sequence(_SPLITS[pre]())  # pyright: ignore[reportAttributeAccessIssue]
    if pre == "qwen2":
        backend.normalizer = normalizers.NFC()  # pyright: ignore[reportAttributeAccessIssue]
    backend.decoder = decoders.ByteLevel()  # pyright: ignore[reportAttributeAccessIssue]
    backend.add_special_tokens([t for t, kind in zip(tokens, kinds) if kind == _CONTROL])
    backend.add_tokens([AddedToken(t, normalized=False) for t, kind in zip(tokens, kinds) if kind == _USER_DEFINED])
    ids = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}
    found = {name: metadata.get(f"tokenizer.ggml.{word}_token_id") for name, word in ids.items()}
    return Tokenizer(
        backend,
        special_tokens={f"{name}_token": tokens[index] for name, index in found.items() if index is not None},
        chat_template=metadata.get("tokenizer.chat_template"),
        add_bos=bool(metadata.get("tokenizer.ggml.add_bos_token", whole)) and found["bos"] is not None,
    )


def _smollm() -> list[Any]:
    """Every numeral of every script by itself, then GPT-2's words."""
    return [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]


def _words(numerals: str) -> list[Any]:
    """The words of Qwen2 or Llama 3, taken as bytes."""
    return [
        pre_tokenizers.Split(Regex(_WORDS.replace("NUMERALS", numerals)), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ]


_SPLITS = {"smollm": _smollm, "qwen2": lambda: _words(r"\p{N}"), "llama-bpe": lambda: _words(r"\p{N}{1,3}")}
