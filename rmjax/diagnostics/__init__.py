"""Numbers that say what a reward model is worth: arrays in, estimates with clustered intervals out."""

from rmjax.diagnostics.agreement import Agreement, Ceiling, ceiling_bounds, vote_agreement
from rmjax.diagnostics.calibration import Reliability, ReliabilityBin, reliability
from rmjax.diagnostics.calibration_error import (
    CalibrationNoise,
    calibration_noise,
    expected_calibration_error,
    squared_calibration_error,
)
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
from rmjax.diagnostics.overoptimization import OveroptimizationCurve, Peak, kl_best_of_n, n_of_kl
from rmjax.diagnostics.proper_scores import (
    ScoreDecomposition,
    brier_score,
    corp_decomposition,
    log_score,
    murphy_decomposition,
)
from rmjax.diagnostics.settling import Settling, settled_layer, settling_curve
from rmjax.diagnostics.summary import Counts, Scores, Summary, as_json, summarise

__all__ = [
    "Agreement",
    "CalibrationNoise",
    "Ceiling",
    "Counts",
    "Estimate",
    "Evaluation",
    "LengthBaseline",
    "Levels",
    "OveroptimizationCurve",
    "Peak",
    "Provenance",
    "Reliability",
    "ReliabilityBin",
    "ScoreDecomposition",
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
    "brier_score",
    "calibration_noise",
    "ceiling_bounds",
    "ceiling_from_moments",
    "ceiling_from_votes",
    "clustered_mean",
    "clustered_proportion",
    "corp_decomposition",
    "expected_calibration_error",
    "kl_best_of_n",
    "length_baseline",
    "length_margins",
    "likelihood_terms",
    "log_score",
    "majority_target",
    "margin_terms",
    "mean_margin",
    "mean_over_clusters",
    "murphy_decomposition",
    "n_of_kl",
    "negative_log_likelihood",
    "normal_ceiling",
    "paired_difference",
    "reliability",
    "settled_layer",
    "settling_curve",
    "squared_calibration_error",
    "summarise",
    "swap_check",
    "vote_agreement",
]
