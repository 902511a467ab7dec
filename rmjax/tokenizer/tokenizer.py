"""A tokenizer as a value: ids, special tokens and the chat template, read from a file or made of bytes."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import decoders, models, pre_tokenizers

from rmjax.errors import DataError
from rmjax.tokenizer.chat_template import DATE_STRING, render_chat


@dataclasses.dataclass(frozen=True, eq=False)
class Tokenizer:
    """A model's own tokenizer.

    Nothing is added to a text in silence: BOS and EOS are the decision of whoever renders it, and `add_bos` only says
    what the file's author did with plain text.
    """

    backend: tokenizers.Tokenizer
    special_tokens: Mapping[str, str] = dataclasses.field(default_factory=dict)  # {"bos_token": "<s>"}
    chat_template: str | None = None
    add_bos: bool = False

    def __post_init__(self):
        # A file may carry the limits of somebody's training run, which would cut texts in silence.
        self.backend.no_truncation()
        self.backend.no_padding()
        for name, token in self.special_tokens.items():
            if self.backend.token_to_id(token) is None:
                raise DataError(
                    "a special token is not in the vocabulary",
                    {name: token},
                    "Add the token to tokenizer.json, or correct tokenizer_config.json.",
                )

    def encode(self, text: str, specials: bool = True) -> list[int]:
        """Token ids.

        Args:
            text: what a template rendered, or plain text.
            specials: read special strings such as `<|im_end|>` as their tokens, as rendered text needs; False takes
                them as the characters that they are.

        Returns:
            Ids of the text alone: no BOS or EOS that is not written in it.

        Example:
            >>> ByteTokenizer().encode("Hi<|eos|>"), ByteTokenizer().encode("<|", specials=False)
            ([72, 105, 257], [60, 124])
        """
        return self._backend(specials).encode(text, add_special_tokens=False).ids

    def encode_batch(self, texts: Sequence[str], specials: bool = True) -> list[list[int]]:
        """`encode` of every text, on all cores.

        Args:
            texts: as in `encode`.
            specials: as in `encode`.

        Returns:
            Ids of every text.

        Example:
            >>> ByteTokenizer().encode_batch(["a", "ab"])
            [[97], [97, 98]]
        """
        encoded = self._backend(specials).encode_batch_fast(list(texts), add_special_tokens=False)
        return [encoding.ids for encoding in encoded]

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids, special strings included.

        Args:
            ids: token ids.

        Returns:
            Text; bytes that are no UTF-8 become U+FFFD.

        Example:
            >>> ByteTokenizer().decode([72, 105, 257])
            'Hi<|eos|>'
        """
        return self.backend.decode([int(i) for i in ids], skip_special_tokens=False)

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        date_string: str = DATE_STRING,
        *,
        add_generation_prompt: bool = False,
    ) -> str:
        """The text that the chat template makes of messages; see `render_chat`.

        Args:
            messages: dictionaries with `role` and `content`.
            date_string: the day that the template is told.
            add_generation_prompt: end with the opening of an answer.

        Returns:
            Text for `encode`.

        Raises:
            DataError: there is no template, or it does not take these messages.

        Example:
            >>> import dataclasses
            >>> chatty = dataclasses.replace(ByteTokenizer(), chat_template="{{ messages[0].content }}{{ eos_token }}")
            >>> chatty.render([{"role": "user", "content": "Hi"}])
            'Hi<|eos|>'
        """
        if self.chat_template is None:
            raise DataError(
                "the tokenizer has no chat template", {}, 'Use template="raw", or a tokenizer that has one.'
            )
        return render_chat(
            self.chat_template,
            messages,
            date_string=date_string,
            special_tokens=self.special_tokens,
            add_generation_prompt=add_generation_prompt,
        )

    @property
    def bos_id(self) -> int | None:
        """Beginning of sequence."""
        return self._id("bos_token")

    @property
    def eos_id(self) -> int | None:
        """End of sequence."""
        return self._id("eos_token")

    @property
    def pad_id(self) -> int | None:
        """What others fill rows with; nothing in rmjax looks at it but the compatibility rule `hf`."""
        return self._id("pad_token")

    @property
    def vocab_size(self) -> int:
        """Ids that exist, added tokens included. A model's embedding may have more rows."""
        return self.backend.get_vocab_size(with_added_tokens=True)

    @functools.cached_property
    def special_strings(self) -> dict[str, int]:
        """The strings that `encode` reads as one special token, with their ids.

        A user's text that contains one is not a turn: `sum(text.count(s) for s in tokenizer.special_strings)`.

        Example:
            >>> ByteTokenizer().special_strings
            {'<|bos|>': 256, '<|eos|>': 257}
        """
        return {t.content: i for i, t in sorted(self.backend.get_added_tokens_decoder().items()) if t.special}

    def fingerprint(self) -> str:
        """SHA-256 over vocabulary, merges, splitting rules, special tokens and template.

        The pad token is part of it only where the template names it.

        Guarantees: the same before and after `save` and `load_tokenizer`; what does not change ids or rendered text
        does not change it.

        Returns:
            64 hexadecimal digits.

        Example:
            >>> ByteTokenizer().fingerprint() == ByteTokenizer().fingerprint()
            True
        """
        return self._fingerprint

    def save(self, directory: str | Path) -> None:
        """Write `tokenizer.json` and `tokenizer_config.json`, which `load_tokenizer` and transformers open.

        Args:
            directory: made where it does not exist.

        Example:
            >>> import tempfile
            >>> from rmjax.tokenizer import load_tokenizer
            >>> with tempfile.TemporaryDirectory() as directory:
            ...     ByteTokenizer().save(directory)
            ...     load_tokenizer(directory).encode("Hi")
            [72, 105]
        """
        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        # What the library raises where it cannot write is no OSError.
        (folder / "tokenizer.json").write_text(self.backend.to_str(pretty=True), "utf-8")
        config = {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "clean_up_tokenization_spaces": False,
            "add_bos_token": self.add_bos,
            **self.special_tokens,
        }
        if self.chat_template is not None:
            config["chat_template"] = self.chat_template
        (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=2, ensure_ascii=False) + "\n", "utf-8")

    def _id(self, name: str) -> int | None:
        token = self.special_tokens.get(name)
        return None if token is None else self.backend.token_to_id(token)

    def _backend(self, specials: bool) -> tokenizers.Tokenizer:
        return self.backend if specials else self._without_specials

    @functools.cached_property
    def _without_specials(self) -> tokenizers.Tokenizer:
        """A second tokenizer, because the switch is a state of the first that other threads would see."""
        plain = tokenizers.Tokenizer.from_str(self.backend.to_str())
        plain.encode_special_tokens = True
        return plain

    @functools.cached_property
    def _fingerprint(self) -> str:
        rules = json.loads(self.backend.to_str())
        # What belongs to nobody's text: the file's version, padding, and BOS or EOS that `encode` does not add.
        for name in ("version", "truncation", "padding", "post_processor"):
            rules.pop(name, None)
        pads = "pad_token" in (self.chat_template or "")
        specials = {name: token for name, token in self.special_tokens.items() if pads or name != "pad_token"}
        parts = [rules, specials, self.chat_template, self.add_bos]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def ByteTokenizer() -> Tokenizer:
    """UTF-8 bytes as ids 0 to 255, BOS 256 and EOS 257: the tokenizer of models trained from scratch.

    Guarantees: `decode(encode(text)) == text` for every text.

    Returns:
        A tokenizer without a chat template.

    Example:
        >>> tokenizer = ByteTokenizer()
        >>> tokenizer.vocab_size, tokenizer.bos_id, tokenizer.eos_id, tokenizer.encode("é")
        (258, 256, 257, [195, 169])
    """
    # Byte-level models write the bytes that are not printable as the characters from 256 on, in this order.
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    vocabulary = {chr(byte): byte for byte in printable} | {chr(256 + n): byte for n, byte in enumerate(others)}
    backend = tokenizers.Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)  # pyright: ignore[reportAttributeAccessIssue]
    backend.decoder = decoders.ByteLevel()  # pyright: ignore[reportAttributeAccessIssue]
    specials = {"bos_token": "<|bos|>", "eos_token": "<|eos|>"}
    backend.add_special_tokens(list(specials.values()))
    return Tokenizer(backend, specials)
