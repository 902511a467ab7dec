"""Laws of preference models for your own tests: Hypothesis strategies, and checks of a head or a loss of yours.

It needs Hypothesis: `pip install 'rmjax[testing]'`.

>>> from rmjax import losses, testing
>>> testing.check_loss(losses.soft_label)
>>> testing.check_likelihood(lambda scores, c: losses.negative_log_likelihood(scores, c, ties="drop"))
"""

import importlib.util

if importlib.util.find_spec("hypothesis") is None:
    raise ModuleNotFoundError(
        "rmjax.testing draws its cases with Hypothesis, which is not installed. Install it with "
        "pip install 'rmjax[testing]'.",
        name="hypothesis",
    )

from rmjax.testing.laws import (
    LawError,
    a_bias_of_1_adds_1,
    a_score_is_of_its_own_response,
    check_head,
    check_likelihood,
    check_loss,
    check_penalty,
    constants_change_nothing,
    each_margin_counts_alone,
    exchange_changes_nothing,
    float32_is_kept,
    levels_are_kept,
    levels_are_pulled_and_margins_are_not,
    padding_changes_nothing,
    parts_add_up,
    scale_matters,
    scale_matters_to_votes,
    swapped_sides_change_nothing,
    votes_count_once,
    weight_0_is_deletion,
)
from rmjax.testing.strategies import comparisons, features, heads, margins, scored_comparisons, shares, votes

__all__ = [
    "LawError",
    "a_bias_of_1_adds_1",
    "a_score_is_of_its_own_response",
    "check_head",
    "check_likelihood",
    "check_loss",
    "check_penalty",
    "comparisons",
    "constants_change_nothing",
    "each_margin_counts_alone",
    "exchange_changes_nothing",
    "features",
    "float32_is_kept",
    "heads",
    "levels_are_kept",
    "levels_are_pulled_and_margins_are_not",
    "margins",
    "padding_changes_nothing",
    "parts_add_up",
    "scale_matters",
    "scale_matters_to_votes",
    "scored_comparisons",
    "shares",
    "swapped_sides_change_nothing",
    "votes",
    "votes_count_once",
    "weight_0_is_deletion",
]
