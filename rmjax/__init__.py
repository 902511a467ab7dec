"""Reward models in JAX."""

from rmjax import errors, losses
from rmjax.comparisons import Comparisons, Rankings
from rmjax.votes import Votes

__all__ = ["Comparisons", "Rankings", "Votes", "errors", "losses"]
