"""What may enter: choices that are known, indices that are whole numbers, and texts of whole characters."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import ArrayLike

from rmjax.errors import DataError

_SURROGATE = re.compile("[\ud800-\udfff]")


def one_of(name: str, value: object, known: tuple[str | bool, ...]) -> None:
    """Refuse a choice that is none, which would otherwise mean one of them in silence.

    Args:
        name: of the argument.
        value: what was given.
        known: what may be given.

    Raises:
        DataError: the value is not known.

    Example:
        >>> one_of("ties", "drop", ("drop", "half"))
    """
    # By type too: 1 equals True, and is not what the field means.
    if not any(isinstance(value, type(choice)) and value == choice for choice in known):
        shown = value if isinstance(value, str) else repr(value)
        raise DataError(
            f"{name} is a choice of {len(known)}", {name: shown}, f"Choose {' or '.join(map(repr, known))}."
        )


def count(name: str, value: object, least: int = 1, most: int = 2**31 - 1) -> int:
    """A number of draws, bins or starts, or a seed: whole, and within its bounds.

    Args:
        name: of the argument.
        value: what was given; a truth value, or a float that is whole, is none.
        least: the smallest that may be given.
        most: the largest.

    Returns:
        The number.

    Raises:
        DataError: it is none, or out of bounds.

    Example:
        >>> count("draws", 100)
        100
    """
    given = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not given or not least <= value <= most:  # type: ignore[operator]
        raise DataError(f"{name} is a whole number", {name: repr(value)}, f"Give one from {least} to {most}.")
    return int(value)  # type: ignore[call-overload]


def whole_numbers(name: str, value: ArrayLike) -> np.ndarray:
    """Numbers of responses, prompts or clusters as int32: rounding or wrapping one would name another.

    Args:
        name: of the argument.
        value: integers, or other numbers that are whole.

    Returns:
        The same numbers.

    Raises:
        DataError: names the first that is not whole, or has more than 32 bits.

    Example:
        >>> whole_numbers("first", [0.0, 2])
        array([0, 2], dtype=int32)
    """
    try:
        given = np.asarray(value)
        # Among numbers NumPy would take True for 1: what may hold a truth value is looked at one by one.
        if isinstance(value, list | tuple) and any(isinstance(x, bool | np.bool_ | list | tuple) for x in value):
            given = np.asarray(value, object)
    except ValueError as error:
        raise DataError(
            f"{name} holds indices, which are whole numbers of 32 bits",
            {"problem": str(error)},
            "Number responses, prompts and clusters from 0.",
        ) from error
    bound = np.iinfo(np.int32)
    if given.dtype.kind in "iu":
        if not given.size or (given.min() >= bound.min and given.max() <= bound.max):
            return given.astype(np.int32)
        right = (given >= bound.min) & (given <= bound.max)
    elif given.dtype.kind == "f":
        wide = given.astype(np.promote_types(given.dtype, np.float64))  # the bounds are no numbers of fewer bits
        with np.errstate(invalid="ignore"):  # infinity has no remainder
            right = (wide >= bound.min) & (wide <= bound.max) & (wide % 1 == 0)
    else:
        given = np.asarray(value, object)
        right = np.array([_whole(x, bound) for x in given.flat], bool).reshape(given.shape)
    if not right.all():
        at = int(np.flatnonzero(~right)[0])
        raise DataError(
            f"{name} holds indices, which are whole numbers of 32 bits",
            {"position": at, name: given.flat[at]},
            "Number responses, prompts and clusters from 0.",
        )
    return given.astype(np.int32)


def real_numbers(name: str, value: ArrayLike, dtype: type[np.floating]) -> np.ndarray:
    """Votes, weights or margins in a floating type; words, and rows of different lengths, are refused.

    Args:
        name: of the argument.
        value: numbers; None stands for none.
        dtype: what they become.

    Returns:
        The same numbers.

    Raises:
        DataError: they are no numbers.

    Example:
        >>> real_numbers("weight", [1, 2], np.float32)
        array([1., 2.], dtype=float32)
    """
    try:
        return np.asarray(value, dtype)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} holds numbers", {"problem": str(error)}, "Give one number each.") from error


def whole_characters(text: str) -> bool:
    """Whether a text holds no half of a surrogate pair, which no tokenizer reads and no file in UTF-8 can hold.

    Example:
        >>> whole_characters("4 + 4"), whole_characters(chr(0xD83D))
        (True, False)
    """
    return text.isascii() or not _SURROGATE.search(text)


def _whole(value: object, bound: np.iinfo) -> bool:
    value = value.item() if isinstance(value, np.generic) else value  # which compares in its own few bits
    if isinstance(value, bool) or not isinstance(value, int | float | np.floating):
        return False
    return bool(bound.min <= value <= bound.max) and bool(value % 1 == 0)
