"""Parameters for tests of training, and how two trees are held against each other."""

import jax
import jax.numpy as jnp
import numpy as np

from rmjax.models import ParamSpec, abstract


def make_params(config, dtype):
    """Every parameter away from its symmetric initial value, so that a missing gradient shows."""
    rng = np.random.default_rng(0)

    def draw(spec):
        spread = spec.fan_in**-0.5 if spec.init == "uniform" else 0.3
        return jnp.asarray((spec.init == "ones") + spread * rng.standard_normal(spec.shape), dtype)

    return jax.tree.map(draw, abstract(config), is_leaf=lambda leaf: isinstance(leaf, ParamSpec))


def relative(a, b):
    """Difference of two arrays by the norm of the second."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    return np.linalg.norm(a - b) / np.linalg.norm(b)
