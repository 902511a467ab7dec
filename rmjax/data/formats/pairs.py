"""Rows of a chosen and a rejected answer, with the prompt in a column or implicit in both texts."""

from __future__ import annotations

from rmjax.data.dataset import Message, Text
from rmjax.data.formats.fields import BadRow, Fields, Judgement, shown
from rmjax.data.formats.texts import Texts, answer, column, prompt, same_kind

IMPLICIT_STRINGS = "strings with an implicit prompt (HH)"
STRINGS = "prompt, chosen and rejected strings"
IMPLICIT_MESSAGES = "messages with an implicit prompt"
MESSAGES = "messages with a prompt"

_ASSISTANT, _HUMAN = "\n\nAssistant:", "\n\nHuman:"


def pair(row: dict, fields: Fields, texts: Texts | None = None) -> Judgement:
    """One vote for the chosen answer.

    Args:
        row: a parsed row.
        fields: names of the columns.
        texts: texts by id, if the row holds ids.

    Returns:
        The judgement, with the chosen answer first.

    Raises:
        BadRow: what is missing or contradicts itself.

    Example:
        >>> row = {
        ...     "chosen": "\\n\\nHuman: 2 + 2?\\n\\nAssistant: 4",
        ...     "rejected": "\\n\\nHuman: 2 + 2?\\n\\nAssistant: 5",
        ... }
        >>> understood = pair(row, Fields())
        >>> understood.prompt, understood.first
        ('\\n\\nHuman: 2 + 2?\\n\\nAssistant:', ' 4')
    """
    chosen, rejected = (answer(row, name, texts) for name in (fields.chosen, fields.rejected))
    stated = prompt(row, fields)
    if stated is not None:
        stated, chosen, rejected = same_kind(stated, chosen, rejected)
    if isinstance(chosen, str) and isinstance(rejected, str):
        understood = (
            (IMPLICIT_STRINGS, *split_strings(chosen, rejected))
            if stated is None
            else (STRINGS, stated, chosen, rejected)
        )
    elif isinstance(chosen, tuple) and isinstance(rejected, tuple):
        understood = (
            (IMPLICIT_MESSAGES, *split_messages(chosen, rejected))
            if stated is None
            else (MESSAGES, *_with_prompt(stated, chosen, rejected))
        )
    else:
        kinds = {name: shown(column(row, name), 30) for name in (fields.chosen, fields.rejected)}
        raise BadRow("one answer is a string and the other a list of messages", kinds, "Write both the same way.")
    return Judgement(*understood, counts=(1, 0, 0, 0))


def split_strings(chosen: str, rejected: str) -> tuple[str, str, str]:
    """Prompt and answers of two dialogues: the prompt is what they share, up to the last assistant's turn in it.

    Guarantees: prompt + answer is the dialogue, to the character.

    Args:
        chosen: the one dialogue.
        rejected: the other.

    Returns:
        Prompt, and what follows it on either side.

    Raises:
        BadRow: they share no assistant's turn, or a human speaks after they part: then the prompts differ.

    Example:
        >>> split_strings("\\n\\nHuman: Hi\\n\\nAssistant: Ho", "\\n\\nHuman: Hi\\n\\nAssistant: Hm")[1:]
        (' Ho', ' Hm')
    """
    shared = shared_length(chosen, rejected)
    turn = chosen.rfind(_ASSISTANT, 0, shared)
    if turn < 0 and not (_ASSISTANT in chosen and _ASSISTANT in rejected):
        raise BadRow(
            f"there is no prompt: no column `prompt`, and no {_ASSISTANT!r} in the text",
            {"chosen": shown(chosen), "rejected": shown(rejected)},
            "Give the prompt in a column of its own.",
        )
    cut = turn + len(_ASSISTANT)
    first, second = chosen[cut:], rejected[cut:]
    if turn < 0 or _HUMAN in first or _HUMAN in second:
        around = slice(max(shared - 20, 0), None)
        raise _prompt_differs(chosen[around], rejected[around], {"character": shared})
    return chosen[:cut], first, second


def shared_length(a: str, b: str) -> int:
    """Number of characters that two strings have in common at their start, by bisection."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if a[low:middle] == b[low:middle] else (low, middle - 1)
    return low


def split_messages(
    chosen: tuple[Message, ...], rejected: tuple[Message, ...]
) -> tuple[tuple[Message, ...], tuple[Message, ...], tuple[Message, ...]]:
    """Prompt and answers of two dialogues in messages: what they share, up to the assistant's turn where they part.

    Args:
        chosen: the one dialogue.
        rejected: the other.

    Returns:
        Prompt, and the messages that follow it on either side.

    Raises:
        BadRow: another role speaks after they part: then the prompts differ.

    Example:
        >>> ask = ("user", "2 + 2?")
        >>> split_messages((ask, ("assistant", "4")), (ask, ("assistant", "5")))
        ((('user', '2 + 2?'),), (('assistant', '4'),), (('assistant', '5'),))
    """
    shared = 0
    while shared < min(len(chosen), len(rejected)) and chosen[shared] == rejected[shared]:
        shared += 1
    # Where one dialogue ends inside the other, or both are the same, the last shared turn is the answer.
    while shared and not all(side[shared:] and side[shared][0] == "assistant" for side in (chosen, rejected)):
        shared -= 1
    first, second = chosen[shared:], rejected[shared:]
    if any(role != "assistant" for role, _ in first + second):
        raise _prompt_differs(first, second, {"messages shared": shared})
    return chosen[:shared], first, second


def _with_prompt(
    stated: Text, chosen: tuple[Message, ...], rejected: tuple[Message, ...]
) -> tuple[Text, tuple[Message, ...], tuple[Message, ...]]:
    """Prompt and answers where a column states the prompt and the messages may repeat it."""
    if all(role == "assistant" for role, _ in chosen + rejected):
        return stated, chosen, rejected
    shared, first, second = split_messages(chosen, rejected)
    if shared[-len(stated) :] != stated:
        raise BadRow(
            "the column `prompt` is not what the messages answer",
            {"prompt": shown(stated), "messages": shown(shared)},
            "Mend the column, or leave it out: the prompt is then what both sides share.",
        )
    return shared, first, second


def _prompt_differs(first: object, second: object, numbers: dict[str, object]) -> BadRow:
    return BadRow(
        "the prompt differs between the two sides",
        numbers | {"chosen": shown(first), "rejected": shown(second)},
        "Compare answers to one prompt: each prompt has a constant of its own that no comparison can see.",
    )
