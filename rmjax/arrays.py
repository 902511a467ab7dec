"""The array type that the core takes, and the precision in which it computes."""

from __future__ import annotations

from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

Array: TypeAlias = jax.Array | np.ndarray


def at_least_float32(x: Array) -> jax.Array:
    """`x` in `promote_types(x.dtype, float32)`.

    Scores, margins and losses live here under every policy: in bfloat16 the margin of (1, 0) + 1000 is 0.
    """
    x = jnp.asarray(x)
    return x.astype(jnp.promote_types(x.dtype, jnp.float32))
