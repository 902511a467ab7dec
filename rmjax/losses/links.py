"""Links: what a margin says about the votes on a comparison, one row a link."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from rmjax.arrays import Array
from rmjax.checks import one_of
from rmjax.comparisons import Ties
from rmjax.errors import DataError
from rmjax.losses.kernels import bradley_terry, times_votes
from rmjax.losses.noise import label_smoothed, lapse, noise_corrected
from rmjax.losses.normal import thurstone
from rmjax.losses.ties import FIRST, SECOND, TIE, davidson, rao_kupper

LinkName = Literal[
    "bradley_terry",
    "label_smoothed",
    "noise_corrected",
    "lapse",
    "target_margin",
    "thurstone",
    "rao_kupper",
    "davidson",
]
Parameters = Mapping[str, Array | float]


@dataclasses.dataclass(frozen=True)
class Link:
    """The losses of the three kinds of votes at a margin, and the number that the link needs besides."""

    losses: Callable[..., tuple[jax.Array, ...]]  # (margin[, parameter]) -> losses of first, second and, if any, tie
    parameter: str | None = None
    lowest: float = -np.inf  # the parameter lies in [lowest, highest)
    highest: float = np.inf

    @property
    def names(self) -> tuple[str, ...]:
        """Parameters that may be given: how much it helps to be shown first, under every link."""
        return ("position",) if self.parameter is None else (self.parameter, "position")


def _sides(loss: Callable[..., jax.Array]) -> Callable[..., tuple[jax.Array, ...]]:
    """A loss of a win, seen from both sides."""
    return lambda margin, *parameter: (loss(margin, *parameter), loss(-margin, *parameter))


def _outcomes(loss: Callable[..., jax.Array]) -> Callable[..., tuple[jax.Array, ...]]:
    """A loss of an outcome, for all three."""
    return lambda margin, parameter: tuple(loss(margin, outcome, parameter) for outcome in (FIRST, SECOND, TIE))


LINKS: dict[str, Link] = {
    "bradley_terry": Link(_sides(bradley_terry)),
    "label_smoothed": Link(_sides(label_smoothed), "rate", 0, 0.5),
    "noise_corrected": Link(_sides(noise_corrected), "flip_rate", 0, 0.5),
    "lapse": Link(_sides(lapse), "rate", 0, 1),
    "target_margin": Link(_sides(bradley_terry)),
    "thurstone": Link(_sides(thurstone)),
    "rao_kupper": Link(_outcomes(rao_kupper), "log_threshold", 0),
    "davidson": Link(_outcomes(davidson), "log_tie"),
}
WITH_TIES = ("rao_kupper", "davidson")


def check_link(link: str, parameters: Parameters | None) -> Link:
    """The row of a link whose parameters are given, known and, where they can be seen, in range.

    Args:
        link: its name.
        parameters: by name; "position" is the effect of being shown first, in logits, under every link.

    Returns:
        The link.

    Raises:
        DataError: no such link; a parameter is missing, unknown, no number, or out of range.

    Example:
        >>> check_link("lapse", {"rate": 0.1}).parameter
        'rate'
    """
    one_of("link", link, get_args(LinkName))
    row, given = LINKS[link], {} if parameters is None else dict(parameters)
    missing = row.parameter is not None and row.parameter not in given
    if missing or any(name not in row.names for name in given):
        raise DataError(
            f"the link {link!r} needs other parameters",
            {"given": sorted(given), "needed": [row.parameter] if row.parameter else []},
            f'It takes {" and ".join(map(repr, row.names))}; "position" may be absent.',
        )
    for name, value in given.items():
        if not isinstance(value, Tracer):
            low, high = (row.lowest, row.highest) if name == row.parameter else (-np.inf, np.inf)
            _check_range(name, value, low, high)
    return row


def check_policy(link: str, ties: Ties | None) -> None:
    """Refuse to be told what a tie is under a link that has a probability for one.

    Args:
        link: its name.
        ties: what a link that has no ties does with them.

    Raises:
        DataError: the link has ties and is told what to do with them, or it is no policy.

    Example:
        >>> check_policy("bradley_terry", "half")
    """
    if ties is None:
        return
    one_of("ties", ties, get_args(Ties))
    if link in WITH_TIES:
        raise DataError(
            "this link has a probability for a tie",
            {"link": link, "ties": ties},
            "Leave `ties` unset: every tie counts as the datum that it is.",
        )


def _check_range(name: str, value: object, low: float, high: float) -> None:
    try:
        number = np.asarray(value, np.float64)
        right = number.shape == () and bool(low <= number < high) and bool(np.isfinite(number))
    except (TypeError, ValueError):
        right = False
    if not right:
        raise DataError(
            "a parameter of a link is out of range",
            {name: value},
            f"Give one finite number in [{low:g}, {high:g}).",
        )


def vote_loss(link: Link, margin: jax.Array, parameters: Parameters, votes: tuple[jax.Array, ...]) -> jax.Array:
    """Loss of all votes on a comparison: that of each kind, times their number, and nothing where there are none.

    Args:
        link: a row of the table.
        margin: in the unit of the link; the effect of the position is in it already.
        parameters: of the link.
        votes: for the first, the second and, under a link with ties, for a tie.

    Returns:
        Nats, elementwise.
    """
    own = () if link.parameter is None else (jnp.asarray(parameters[link.parameter], margin.dtype),)
    return sum(
        (times_votes(count, loss) for count, loss in zip(votes, link.losses(margin, *own), strict=True)),
        start=jnp.zeros_like(margin),
    )
