"""What two parts of the data have in common, counted from the parts themselves."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterable, Mapping

from rmjax.data.dataset import PreferenceData, Text
from rmjax.errors import DataError


@dataclasses.dataclass(frozen=True)
class SplitProof:
    """Sizes of the parts, and how many texts and sources stand in more than one of them.

    Example:
        >>> proof = SplitProof({"train": 8}, {"train": 4}, {"train": 2}, {"train": 9}, 0, 0, 1)
        >>> proof.holds
        False
    """

    comparisons: Mapping[str, int]
    prompts: Mapping[str, int]
    sources: Mapping[str, int]
    responses: Mapping[str, int]  # different texts
    shared_prompts: int  # in more than one part; 0 in a split that does not leak
    shared_sources: int
    shared_responses: int

    @property
    def holds(self) -> bool:
        """Whether nothing is shared."""
        return self.shared_prompts == self.shared_sources == self.shared_responses == 0

    def check(self) -> None:
        """Refuse parts that share anything.

        Raises:
            DataError: with the counts of what is shared.

        Example:
            >>> SplitProof({}, {}, {}, {}, 0, 0, 0).check()
        """
        if not self.holds:
            raise DataError(
                "the parts share texts or sources, so that what is measured on one was seen in another",
                {
                    "prompts": self.shared_prompts,
                    "sources": self.shared_sources,
                    "responses": self.shared_responses,
                },
                "Split the whole with rmjax.data.split.split.",
            )


def prove(parts: Mapping[str, PreferenceData]) -> SplitProof:
    """Count what parts of the data share, from their texts alone. The parts may come from files split by others.

    Guarantees: looks at nothing but the parts; texts are compared by `same_text`; order of rows and of parts does not
    matter.

    Args:
        parts: the parts by name.

    Returns:
        The counts. `check` refuses parts that share anything.

    Example:
        >>> import numpy as np
        >>> from rmjax import Comparisons
        >>> pairs = Comparisons.from_pairs([0], [1], prompt=[0, 0])
        >>> data = PreferenceData(("p",), ("s",), ("a", "b"), pairs, np.array([1]), np.zeros(1, np.float32))
        >>> prove({"train": data, "test": data}).shared_responses
        2
    """
    prompts = {name: {same_text(text) for text in part.prompts} for name, part in parts.items()}
    sources = {name: set(part.sources) for name, part in parts.items()}
    responses = {name: {same_text(text) for text in part.responses} for name, part in parts.items()}
    return SplitProof(
        comparisons={name: part.num_comparisons for name, part in parts.items()},
        prompts={name: len(part.prompts) for name, part in parts.items()},
        sources={name: len(found) for name, found in sources.items()},
        responses={name: len(found) for name, found in responses.items()},
        shared_prompts=_in_several(prompts.values()),
        shared_sources=_in_several(sources.values()),
        shared_responses=_in_several(responses.values()),
    )


def same_text(text: Text) -> str:
    """What two texts have in common if a reader would call them the same: their words.

    Guarantees: white space and the roles of messages do not tell texts apart; every other character does.

    Args:
        text: a string or messages.

    Returns:
        A key.

    Example:
        >>> same_text(" two  words\\n") == same_text((("assistant", "two words"),))
        True
    """
    whole = text if isinstance(text, str) else " ".join(content for _, content in text)
    return " ".join(whole.split())


def _in_several(parts: Iterable[set[str]]) -> int:
    """Number of members that more than one set has."""
    seen: set[Hashable] = set()
    shared: set[Hashable] = set()
    for part in parts:
        shared |= seen & part
        seen |= part
    return len(shared)
