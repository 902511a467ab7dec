"""Losses of margins, and likelihoods of comparisons."""

from rmjax.losses.kernels import bradley_terry, curvature, probability, soft_label
from rmjax.losses.likelihood import centering_penalty, margins, negative_log_likelihood
from rmjax.losses.listwise import all_pairs, plackett_luce
from rmjax.losses.noise import label_smoothed, lapse, noise_corrected, with_target_margin
from rmjax.losses.normal import thurstone, thurstone_curvature, thurstone_probability
from rmjax.losses.penalties import centering, ridge
from rmjax.losses.ties import davidson, rao_kupper

__all__ = [
    "all_pairs",
    "bradley_terry",
    "centering",
    "centering_penalty",
    "curvature",
    "davidson",
    "label_smoothed",
    "lapse",
    "margins",
    "negative_log_likelihood",
    "noise_corrected",
    "plackett_luce",
    "probability",
    "rao_kupper",
    "ridge",
    "soft_label",
    "thurstone",
    "thurstone_curvature",
    "thurstone_probability",
    "with_target_margin",
]
