"""The dials of the synthetic world."""

from __future__ import annotations

import dataclasses
import math

from rmjax.errors import DataError


@dataclasses.dataclass(frozen=True)
class World:
    """A world of prompts, answers and annotators; everything in it is a function of these numbers.

    An annotator who decides chooses the first of two answers with probability σ((gold₁ - gold₂) / temperature), plus
    `cycle` inside σ where tastes go round in a circle. Prompt number i is a function of (seed, i): more prompts extend
    the same world, and dials of the annotators leave the texts as they are.

    Example:
        >>> World(temperature=0.5).candidates
        4
    """

    seed: int = 0
    """Of everything."""
    num_prompts: int = 1_500
    """Prompts; each has its own person and things, so that no text stands under two prompts."""
    candidates: int = 4
    """Answers to a prompt, all different, each compared with every other."""
    correct: float = 2.0
    """Gold reward of a right number, in logits at temperature 1."""
    form: float = 1.5
    """Gold reward of an answer in the form that was asked for."""
    polite: float = 1.5
    """Gold reward of a polite closing, and what a rude one costs."""
    length_correlation: float = 0.3
    """From -1 to 1: how much the number of idle sentences follows the gold reward. They are worth nothing."""
    annotators: int = 12
    """People who judge."""
    votes: int = 3
    """Judgements of each comparison, by different people."""
    temperature: float = 1.0
    """Of the annotators: small is decided, large is random."""
    tie: float = 0.25
    """Davidson's tie parameter ν: two equal answers tie with probability ν / (2 + ν)."""
    abstention: float = 0.03
    """Probability that a judgement is "cannot judge", whatever the answers."""
    flip_rate: float = 0.02
    """Probability that the sides of a comparison's judgements are exchanged."""
    cycle: float = 0.0
    """Strength in logits of a taste that no reward explains: of three wordings, each beats the next in a circle."""

    def __post_init__(self):
        shares = {name: getattr(self, name) for name in ("abstention", "flip_rate")}
        wrong = {name: share for name, share in shares.items() if not 0 <= share <= 1}
        if not 0 < self.temperature < math.inf:
            wrong["temperature"] = self.temperature
        if not 0 <= self.tie < math.inf:
            wrong["tie"] = self.tie
        if not -1 <= self.length_correlation <= 1:
            wrong["length_correlation"] = self.length_correlation
        wrong |= {
            name: getattr(self, name)
            for name in ("correct", "form", "polite", "cycle")
            if not math.isfinite(getattr(self, name))
        }
        lowest = {"seed": 0, "num_prompts": 1, "candidates": 2, "votes": 1}
        wrong |= {name: getattr(self, name) for name, low in lowest.items() if getattr(self, name) < low}
        if self.candidates > 1_000:  # of some 100,000 texts that a prompt's grammar has
            wrong["candidates"] = self.candidates
        if self.annotators < self.votes:
            wrong["annotators"] = self.annotators
        if wrong:
            raise DataError(
                "a dial of the synthetic world is out of range",
                wrong,
                "Shares lie in [0, 1], length_correlation in [-1, 1], temperature above 0, tie from 0 up; there are at "
                "least 1 prompt, 2 candidates (1,000 at most), 1 vote, and as many annotators as votes.",
            )
