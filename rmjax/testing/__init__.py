"""Laws of preference models for your own tests: Hypothesis strategies, and checks of a head or a loss of yours."""

from rmjax.testing.strategies import comparisons, features, heads, margins, scored_comparisons, shares, votes

__all__ = [
    "comparisons",
    "features",
    "heads",
    "margins",
    "scored_comparisons",
    "shares",
    "votes",
]
