"""Losses of margins, and likelihoods of comparisons."""

from rmjax.losses.kernels import bradley_terry, curvature, probability, soft_label
from rmjax.losses.likelihood import margins, negative_log_likelihood

__all__ = ["bradley_terry", "curvature", "margins", "negative_log_likelihood", "probability", "soft_label"]
