"""Errors that say what is wrong, with which numbers, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping


class RMJaxError(Exception):
    """What is wrong, the numbers that show it, and a remedy that the user can act on.

    Example:
        >>> from rmjax.errors import DataError
        >>> print(DataError("the vote is not a number", {"row": 7, "vote": "nan"}, "Mend or drop the row."))
        the vote is not a number [row=7, vote=nan]. Mend or drop the row.
    """

    def __init__(self, what: str, numbers: Mapping[str, object], remedy: str):
        super().__init__(what, numbers, remedy)
        self.what, self.numbers, self.remedy = what, dict(numbers), remedy

    def __str__(self) -> str:
        shown = ", ".join(f"{name}={value}" for name, value in self.numbers.items())
        return f"{self.what} [{shown}]. {self.remedy}" if shown else f"{self.what}. {self.remedy}"


class DataError(RMJaxError):
    """A row, a vote or a file that cannot be understood."""


class IdentifiabilityError(RMJaxError):
    """The data do not pin down the number that was asked for."""


class GaugeError(RMJaxError):
    """A level, or a difference across prompts or models, was asked for where only margins mean anything."""


class FrameError(RMJaxError):
    """A shared frame of two models rests on too little, or on other data."""


class ReadoutError(RMJaxError):
    """A readout's end point is not the margin that it must equal."""


class CompletenessError(RMJaxError):
    """The parts of an attribution do not sum to the margin."""


class AlignmentError(RMJaxError):
    """Two answers of different length were to be patched without saying how positions correspond."""


class HeadError(RMJaxError):
    """The scalar head is missing, has another shape, or does not fit the states."""


class CheckpointError(RMJaxError):
    """A model file or a checkpoint that is incomplete, foreign or damaged."""


class SampleSizeError(RMJaxError):
    """Fewer rows, clusters or votes than the claim needs."""
