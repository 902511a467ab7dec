"""The contract from text to token ids: one place where prompt and answer become one text."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import operator
from typing import TYPE_CHECKING, Any, Literal

from rmjax.checks import one_of, whole_characters
from rmjax.data.dataset import PreferenceData, Text
from rmjax.errors import DataError
from rmjax.tokenizer.chat_template import DATE_STRING

if TYPE_CHECKING:
    from rmjax.tokenizer import Tokenizer

_LIMIT = 1024

# How a tokenizer without a chat template reads messages: the plain transcript of the HH data.
_TRANSCRIPT = {"user": "Human", "assistant": "Assistant", "system": "System"}


@dataclasses.dataclass(frozen=True)
class TextContract:
    """How a prompt and an answer become token ids and a scored position.

    Prompt and answer are rendered and tokenised as one text: two lists of ids are never joined. "auto" says nothing:
    `resolve` decides it, or `overlay` leaves it as it was.

    Raises:
        DataError: a field holds what it cannot mean.

    Example:
        >>> overlay(TextContract(template="raw", max_length=512), TextContract(max_length=99))
        TextContract(template='raw', separator='auto', date_string='auto', add_bos='auto', add_eos='auto', \
max_length=99, truncation='auto', score_token='auto')
    """

    template: Literal["auto", "chat", "raw"] = "auto"
    """The tokenizer's chat template, or raw text. "auto": chat where there is a template and the file has prompts of
    their own; whole dialogues, of which the prompt was cut off, stay as they are."""
    separator: str = "auto"
    """Raw text only: what stands between prompt and answer. "auto": nothing in whole dialogues, else a blank line."""
    date_string: str = "auto"
    """The day that a template is told, so that scores do not change overnight. "auto": 26 Jul 2024."""
    add_bos: Literal["auto"] | bool = "auto"
    """Begin every text with one BOS, or with none. "auto": as the template writes it, or as the tokenizer wants it."""
    add_eos: Literal["auto"] | bool = "auto"
    """End every text with EOS. "auto": raw text does, a template ends as it wants."""
    max_length: Literal["auto"] | int = "auto"
    """Tokens of a prompt with an answer. "auto": 1024; the verbs say fewer where a model has fewer positions."""
    truncation: Literal["auto", "keep_response", "drop", "error"] = "auto"
    """What is done with longer texts. "keep_response", which is "auto": cut the beginning of the prompt, as much for
    every answer to it, and keep answers whole; where an answer does not fit, its comparisons are left out. "drop":
    leave out all comparisons with a longer side. "error": refuse the file."""
    score_token: Literal["auto", "last", "hf"] = "auto"
    """Which token is scored. "last", which is "auto": the last of the text. "hf": the rightmost that is not the pad
    token, for models that were trained with the sequence classifiers of transformers."""

    def __post_init__(self):
        for name, known in _CHOICES.items():
            one_of(name, getattr(self, name), known)
        for name in ("separator", "date_string"):
            if not isinstance(given := getattr(self, name), str) or not whole_characters(given):
                raise DataError(f"{name} is text", {name: repr(given)}, 'Give a string of whole characters, or "auto".')
        if not isinstance(self.max_length, str) or self.max_length != "auto":
            object.__setattr__(self, "max_length", _limit(self.max_length))

    @property
    def limit(self) -> int:
        """`max_length` as a number."""
        return _LIMIT if self.max_length == "auto" else self.max_length


_CHOICES = {
    "template": ("auto", "chat", "raw"),
    "add_bos": ("auto", True, False),
    "add_eos": ("auto", True, False),
    "truncation": ("auto", "keep_response", "drop", "error"),
    "score_token": ("auto", "last", "hf"),
}


def _limit(max_length: Any) -> int:
    """A number of tokens as Python's own, which JSON can hold."""
    try:
        limit = 0 if isinstance(max_length, bool) else operator.index(max_length)
    except TypeError:
        limit = 0
    if limit < 1:
        raise DataError("a limit is a number of tokens", {"max_length": max_length}, "Set max_length to 1 or more.")
    return limit


# What "auto" comes to whatever the data and the tokenizer are.
_ALWAYS = TextContract(date_string=DATE_STRING, max_length=_LIMIT, truncation="keep_response", score_token="last")


def overlay(contract: TextContract, asked: TextContract) -> TextContract:
    """A contract with what was asked for in place of its own, field by field.

    What stands before, between and after the texts belongs to the template: under another one it is as if unsaid.

    Args:
        contract: as it was.
        asked: "auto" where nothing was.

    Returns:
        The contract of both.

    Example:
        >>> overlay(TextContract(add_eos=False), TextContract(max_length=9)).add_eos
        False
    """
    said = {name: value for name, value in dataclasses.asdict(asked).items() if value != "auto"}
    if said.get("template", contract.template) != contract.template != "auto":
        contract = dataclasses.replace(contract, separator="auto", add_bos="auto", add_eos="auto")
    return dataclasses.replace(contract, **said)


def resolve(contract: TextContract, data: PreferenceData, tokenizer: Tokenizer) -> TextContract:
    """Replace what is "auto" by what it comes to for these data and this tokenizer.

    Guarantees: resolving twice changes nothing, so a checkpoint that stores the result gives every later file the
    same ids. `add_bos` stays "auto" under a chat template, which writes its own.

    Args:
        contract: as the user gave it.
        data: the texts.
        tokenizer: the model's own.

    Returns:
        The contract in force.

    Raises:
        DataError: a chat template was asked for and the tokenizer has none, or a token that it has not.

    Example:
        >>> from rmjax.data.tokenise import example_parts
        >>> data, tokenizer = example_parts()
        >>> resolve(TextContract(), data, tokenizer).template
        'raw'
    """
    contract = overlay(_ALWAYS, contract)
    implicit = "implicit" in data.format
    messages = any(not isinstance(text, str) for text in (*data.prompts, *data.responses))
    template = contract.template
    if template == "auto":
        whole_strings = implicit and not messages
        template = "chat" if tokenizer.chat_template is not None and not whole_strings else "raw"
    if template == "chat" and tokenizer.chat_template is None:
        raise DataError(
            "the tokenizer has no chat template",
            {"template": contract.template},
            'Choose template="raw", or a tokenizer that comes with a template.',
        )
    raw = template == "raw"
    separator = ("" if implicit else "\n\n") if contract.separator == "auto" else contract.separator
    add_bos, add_eos = contract.add_bos, contract.add_eos
    if add_bos == "auto" and raw:
        add_bos = tokenizer.add_bos
    if add_eos == "auto":
        add_eos = raw and tokenizer.eos_id is not None
    for name, wanted, token in (("BOS", add_bos is True, tokenizer.bos_id), ("EOS", add_eos is True, tokenizer.eos_id)):
        if wanted and token is None:
            raise DataError(f"the tokenizer has no {name} token to add", {}, f"Set add_{name.lower()}=False.")
    return dataclasses.replace(
        contract, template=template, separator=separator if raw else "", add_bos=add_bos, add_eos=add_eos
    )


def render(prompt: Text, response: Text | None, tokenizer: Tokenizer, contract: TextContract) -> str:
    """The exact text of a prompt and an answer.

    Args:
        prompt: a string or messages.
        response: a string or messages; None for the prompt alone.
        tokenizer: whose template is used.
        contract: resolved.

    Returns:
        One text.

    Example:
        >>> from rmjax.data.tokenise import example_parts
        >>> data, tokenizer = example_parts()
        >>> render("2 + 2?", "4", tokenizer, resolve(TextContract(), data, tokenizer))
        '2 + 2?\\n\\n4'
    """
    if contract.template == "raw" and isinstance(prompt, str) and (response is None or isinstance(response, str)):
        if response is None:
            return prompt
        return prompt + contract.separator + response if prompt else response
    messages = _messages(prompt, "user") if prompt else []
    if response is not None:
        messages += _messages(response, "assistant")
    if contract.template == "chat":
        turns = [{"role": role, "content": content} for role, content in messages]
        return tokenizer.render(turns, contract.date_string)
    return "".join(f"\n\n{_TRANSCRIPT.get(role, role)}: {content}" for role, content in messages)


def fingerprint(contract: TextContract, tokenizer: Tokenizer) -> str:
    """What a checkpoint stores to refuse scoring under other ids or at other tokens.

    Guarantees: the pad token, which others choose anew when they save a model, is part of it only where it decides
    which token is scored.

    Args:
        contract: resolved.
        tokenizer: the model's own.

    Returns:
        A SHA-256 over the contract and the tokenizer's fingerprint.

    Example:
        >>> from rmjax.data.tokenise import example_parts
        >>> _, tokenizer = example_parts()
        >>> one, other = (fingerprint(TextContract(max_length=n), tokenizer) for n in (128, 256))
        >>> one == other
        False
    """
    pad = tokenizer.pad_id if contract.score_token == "hf" else None
    parts = {"tokenizer": tokenizer.fingerprint(), "contract": dataclasses.asdict(contract), "pad": pad}
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _messages(text: Text, role: str) -> list[tuple[str, str]]:
    return [(role, text)] if isinstance(text, str) else list(text)
