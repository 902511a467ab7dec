"""Judgements as data: simulated, pooled, and fitted exactly."""

from rmjax.preferences.agreement import cohen_kappa, fleiss_kappa
from rmjax.preferences.annotators import DawidSkene, dawid_skene, label_counts
from rmjax.preferences.estimate import Contrast, Fit
from rmjax.preferences.fit import fit
from rmjax.preferences.krippendorff import krippendorff_alpha
from rmjax.preferences.leave_one_out import leave_one_out_agreement
from rmjax.preferences.overdispersion import BetaBinomial, beta_binomial
from rmjax.preferences.pooling import Homogeneity, homogeneity
from rmjax.preferences.projection import Projection, project_to_bradley_terry
from rmjax.preferences.simulate import simulate
from rmjax.preferences.skew import SkewFit, SkewModel, fit_skew, skew_margins
from rmjax.preferences.soft_targets import SoftTargets, soft_targets
from rmjax.preferences.verdict import Verdict, scalar_verdict

__all__ = [
    "BetaBinomial",
    "Contrast",
    "DawidSkene",
    "Fit",
    "Homogeneity",
    "Projection",
    "SkewFit",
    "SkewModel",
    "SoftTargets",
    "Verdict",
    "beta_binomial",
    "cohen_kappa",
    "dawid_skene",
    "fit",
    "fit_skew",
    "fleiss_kappa",
    "homogeneity",
    "krippendorff_alpha",
    "label_counts",
    "leave_one_out_agreement",
    "project_to_bradley_terry",
    "scalar_verdict",
    "simulate",
    "skew_margins",
    "soft_targets",
]
