"""The array type that the core takes, and the precision in which it computes."""

from __future__ import annotations

from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

Array: TypeAlias = jax.Array | np.ndarray


def accumulator(dtype: Any) -> Any:
    """float32 for narrower floating types, else the type itself.

    Scores, margins and losses live here under every policy: in bfloat16 the margin of (1, 0) + 1000 is 0. (Strict
    dtype promotion refuses `promote_types`.)
    """
    return jnp.dtype(dtype) if jnp.finfo(dtype).bits >= 32 else jnp.dtype(jnp.float32)


def at_least_float32(x: Array) -> jax.Array:
    """`x` in at least float32; integers as float32."""
    x = jnp.asarray(x)
    return x.astype(accumulator(x.dtype) if jnp.issubdtype(x.dtype, jnp.floating) else jnp.float32)
