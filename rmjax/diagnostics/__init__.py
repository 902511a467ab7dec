"""Numbers that say what a reward model is worth: arrays in, estimates with clustered intervals out."""

from rmjax.diagnostics.agreement import Agreement, Ceiling, ceiling_bounds, vote_agreement
from rmjax.diagnostics.calibration import Reliability, ReliabilityBin, expected_calibration_error, reliability
from rmjax.diagnostics.ceiling import (
    VoteCeiling,
    beta_ceiling,
    ceiling_from_moments,
    ceiling_from_votes,
    majority_target,
    normal_ceiling,
)
from rmjax.diagnostics.evaluation import Evaluation, Levels, Provenance, SwapCheck, swap_check
from rmjax.diagnostics.intervals import (
    Estimate,
    clustered_mean,
    clustered_proportion,
    mean_over_clusters,
    paired_difference,
)
from rmjax.diagnostics.length import LengthBaseline, length_baseline, length_margins
from rmjax.diagnostics.metrics import (
    Targets,
    accuracy,
    accuracy_terms,
    likelihood_terms,
    margin_terms,
    mean_margin,
    negative_log_likelihood,
)
from rmjax.diagnostics.settling import Settling, settled_layer, settling_curve
from rmjax.diagnostics.summary import Counts, Scores, Summary, as_json, summarise

__all__ = [
    "Agreement",
    "Ceiling",
    "Counts",
    "Estimate",
    "Evaluation",
    "LengthBaseline",
    "Levels",
    "Provenance",
    "Reliability",
    "ReliabilityBin",
    "Scores",
    "Settling",
    "Summary",
    "SwapCheck",
    "Targets",
    "VoteCeiling",
    "accuracy",
    "accuracy_terms",
    "as_json",
    "beta_ceiling",
    "ceiling_bounds",
    "ceiling_from_moments",
    "ceiling_from_votes",
    "clustered_mean",
    "clustered_proportion",
    "expected_calibration_error",
    "length_baseline",
    "length_margins",
    "likelihood_terms",
    "majority_target",
    "margin_terms",
    "mean_margin",
    "mean_over_clusters",
    "negative_log_likelihood",
    "normal_ceiling",
    "paired_difference",
    "reliability",
    "settled_layer",
    "settling_curve",
    "summarise",
    "swap_check",
    "vote_agreement",
]
