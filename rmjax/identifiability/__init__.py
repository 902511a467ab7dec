"""What comparisons pin down, and what they can never say."""

from rmjax.identifiability.cycles import ScalarAccuracy, best_scalar_accuracy
from rmjax.identifiability.gauge import compare_levels, gauge_distance, gauge_fix, group_normalise, margin_between
from rmjax.identifiability.gradients import BlindStep, blind_step, estimate_sensitivity, head_step, score_step
from rmjax.identifiability.head import HeadIdentification, identify_head
from rmjax.identifiability.head_gauge import (
    change_basis,
    fold_gain,
    layer_norm_null_direction,
    rms_norm_margin_bound,
)
from rmjax.identifiability.hodge import HodgeDecomposition, hodge, hodge_flow
from rmjax.identifiability.identify import Cut, Identification, identify
from rmjax.identifiability.information import NextComparison, effective_resistance, fisher, next_comparison
from rmjax.identifiability.tally import Tally, tally
from rmjax.identifiability.temperature import Temperature, best_temperature
from rmjax.identifiability.transitivity import Transitivity, transitivity, transitivity_under

__all__ = [
    "BlindStep",
    "Cut",
    "HeadIdentification",
    "HodgeDecomposition",
    "Identification",
    "NextComparison",
    "ScalarAccuracy",
    "Tally",
    "Temperature",
    "Transitivity",
    "best_scalar_accuracy",
    "best_temperature",
    "blind_step",
    "change_basis",
    "compare_levels",
    "effective_resistance",
    "estimate_sensitivity",
    "fisher",
    "fold_gain",
    "gauge_distance",
    "gauge_fix",
    "group_normalise",
    "head_step",
    "hodge",
    "hodge_flow",
    "identify",
    "identify_head",
    "layer_norm_null_direction",
    "margin_between",
    "next_comparison",
    "rms_norm_margin_bound",
    "score_step",
    "tally",
    "transitivity",
    "transitivity_under",
]
