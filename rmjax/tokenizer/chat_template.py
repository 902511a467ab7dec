"""Chat templates, rendered as their models were trained with them, on a clock that stands still."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import jinja2
import jinja2.ext
from jinja2.nodes import CallBlock
from jinja2.sandbox import ImmutableSandboxedEnvironment

from rmjax.errors import DataError

DATE_STRING = "26 Jul 2024"  # the date that Llama's own templates fall back to


def render_chat(
    template: str,
    messages: Sequence[Mapping[str, Any]],
    *,
    date_string: str = DATE_STRING,
    special_tokens: Mapping[str, str] | None = None,
    add_generation_prompt: bool = False,
) -> str:
    """The text that a chat template makes of messages.

    Guarantees: a function of its arguments. A template that asks for the time is told `date_string`, so a score does
    not depend on the day on which it is computed. Templates come with files and are run in a sandbox.

    Args:
        template: Jinja source.
        messages: dictionaries with `role` and `content`.
        date_string: the day that the template is told, like "26 Jul 2024".
        special_tokens: what a template may name, `{"bos_token": "<s>"}`.
        add_generation_prompt: end with the opening of an answer.

    Returns:
        The text, special strings included.

    Raises:
        DataError: the template does not take these messages, or the date is not one.

    Example:
        >>> template = "{% for m in messages %}[{{ m.role }}] {{ m.content }}\\n{% endfor %}{{ strftime_now('%Y-%m') }}"
        >>> render_chat(template, [{"role": "user", "content": "2 + 2?"}])
        '[user] 2 + 2?\\n2024-07'
    """
    try:
        day = datetime.strptime(date_string, "%d %b %Y")
    except ValueError as error:
        raise DataError("the date is not one", {"date_string": date_string}, 'Write it like "26 Jul 2024".') from error
    try:
        return _compile(template).render(
            messages=[dict(message) for message in messages],
            tools=None,
            documents=None,
            add_generation_prompt=add_generation_prompt,
            date_string=date_string,
            strftime_now=lambda pattern: day.strftime(pattern),
            **(special_tokens or {}),
        )
    except (jinja2.TemplateError, TypeError, ValueError) as error:
        raise DataError(
            "the chat template does not take these messages",
            {"roles": ", ".join(str(message.get("role")) for message in messages), "template says": error},
            'Reorder or rename the roles as the template asks, or use template="raw".',
        ) from error


@functools.lru_cache(maxsize=16)
def _compile(template: str) -> jinja2.Template:
    """A template in the environment that the ecosystem's templates are written for."""
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, jinja2.ext.loopcontrols]
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _raise
    return environment.from_string(template)


class _Generation(jinja2.ext.Extension):
    """`{% generation %}` marks what the model wrote; here it is only read through."""

    tags = {"generation"}  # noqa: RUF012 - Jinja's own declaration

    def parse(self, parser: Any) -> Any:
        """The body of the block, called as a macro so that whitespace and scope are those of a block."""
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return CallBlock(self.call_method("_said"), [], [], body).set_lineno(line)

    def _said(self, caller: Callable[[], str]) -> str:
        return caller()


def _to_json(value: Any, indent: int | None = None, ensure_ascii: bool = False, **options: Any) -> str:
    """JSON as it is: Jinja's own filter escapes HTML."""
    return json.dumps(value, indent=indent, ensure_ascii=ensure_ascii, **options)


def _raise(message: str) -> None:
    raise jinja2.TemplateError(message)
