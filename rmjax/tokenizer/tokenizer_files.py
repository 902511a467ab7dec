"""A tokenizer from the directory that a model was saved in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import tokenizers

from rmjax.errors import CheckpointError, DataError
from rmjax.tokenizer.tokenizer import Tokenizer

_NAMED = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")


def load_tokenizer(directory: str | Path, *, template: str = "default") -> Tokenizer:
    """Read `tokenizer.json`, `tokenizer_config.json` and the chat template of a directory.

    Guarantees: ids and rendered text are those of transformers, but for BOS and EOS, which are never added here.

    Args:
        directory: of a model.
        template: which one, where a file brings several.

    Returns:
        The tokenizer.

    Raises:
        CheckpointError: there is no `tokenizer.json`, or it cannot be read.
        DataError: there are several templates and none of that name.

    Example:
        >>> import tempfile
        >>> from rmjax.tokenizer import ByteTokenizer
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     ByteTokenizer().save(directory)
        ...     load_tokenizer(directory).vocab_size
        258
    """
    folder = Path(directory)
    if not (folder / "tokenizer.json").is_file():
        raise CheckpointError(
            "there is no tokenizer.json",
            {"directory": folder},
            "Save the model's tokenizer beside it in the fast format: a vocabulary alone does not say how to cut text.",
        )
    try:
        backend = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    except Exception as error:  # the library raises bare Exception
        raise CheckpointError(
            "tokenizer.json cannot be read",
            {"directory": folder, "reason": error},
            "Update the tokenizers package, or save the tokenizer anew.",
        ) from error
    config = {**_read(folder / "special_tokens_map.json"), **_read(folder / "tokenizer_config.json")}
    specials = {name: _content(config[name]) for name in _NAMED if config.get(name) is not None}
    bos = specials.get("bos_token")
    begins_with_bos = bos is not None and backend.encode("", add_special_tokens=True).tokens[:1] == [bos]
    add_bos = config.get("add_bos_token")
    return Tokenizer(
        backend,
        special_tokens=specials,
        chat_template=_template(folder, config.get("chat_template"), template),
        add_bos=begins_with_bos if add_bos is None else bool(add_bos) and bos is not None,
    )


def _template(folder: Path, inline: Any, name: str) -> str | None:
    """The template of that name: files of their own win over what is written in the configuration."""
    templates: dict[str, str] = {}
    if isinstance(inline, str):
        templates["default"] = inline
    elif inline:
        templates |= {entry["name"]: entry["template"] for entry in inline}
    for path in sorted((folder / "additional_chat_templates").glob("*.jinja")):
        templates[path.stem] = path.read_text("utf-8")
    if (alone := folder / "chat_template.jinja").is_file():
        templates["default"] = alone.read_text("utf-8")
    if templates and name not in templates:
        raise DataError(
            "there is no chat template of that name",
            {"template": name, "templates": ", ".join(templates)},
            "Load the tokenizer with one of the names.",
        )
    return templates.get(name)


def _read(path: Path) -> dict[str, Any]:
    """A JSON object, empty where there is no file."""
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text("utf-8"))
        if not isinstance(found, dict):
            raise ValueError("not an object")
    except (ValueError, RecursionError) as error:
        raise CheckpointError(
            "a file of the tokenizer cannot be read",
            {"file": path, "problem": str(error)},
            "Copy or download the file again.",
        ) from error
    return found


def _content(token: Any) -> str:
    """The string of a special token, which some files write as an object."""
    return token["content"] if isinstance(token, dict) else token
