"""What may enter: choices that are known, and indices that are whole numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from rmjax.errors import DataError


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
    # 1 equals True and is not what the field means.
    if not any(value == choice and isinstance(value, bool) == isinstance(choice, bool) for choice in known):
        raise DataError(
            f"{name} is a choice of {len(known)}", {name: value}, f"Choose {' or '.join(map(repr, known))}."
        )


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
    given = np.asarray(value)
    if given.dtype.kind == "O" and all(_integer(x) for x in given.flat):
        given = np.array([int(x) for x in given.flat], object).reshape(given.shape)
    elif given.dtype.kind == "f":
        given = given.astype(np.float64)  # the bounds are no numbers of fewer bits
    elif given.dtype.kind not in "iu":
        given = np.full(given.shape, np.nan)
    bound = np.iinfo(np.int32)
    with np.errstate(invalid="ignore"):  # infinity has no remainder
        right = ((given >= bound.min) & (given <= bound.max) & (given % 1 == 0)).astype(bool)
    if not right.all():
        at = int(np.flatnonzero(~right)[0])
        raise DataError(
            f"{name} holds indices, which are whole numbers of 32 bits",
            {"position": at, name: np.asarray(value).flat[at]},
            "Number responses, prompts and clusters from 0.",
        )
    return given.astype(np.int32)


def _integer(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
