"""The scalar head: a hidden state in, one number out."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
from jaxtyping import Float

from rmjax.arrays import Array, at_least_float32


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Head:
    """A linear head. A head that is trained here has no bias; one that came with a file is kept.

    The gradient of any loss of margins in the bias is 0, and on shared responses it is rounding noise, which Adam
    would amplify.
    """

    weight: jax.Array  # [D]
    bias: jax.Array | None = None  # []

    @classmethod
    def zeros(cls, hidden_size: int) -> Head:
        """A head that says nothing yet: every margin is 0 and the loss is log 2, at any width and on any mesh.

        Args:
            hidden_size: D.

        Returns:
            A float32 head.

        Example:
            >>> Head.zeros(3).weight
            Array([0., 0., 0.], dtype=float32)
        """
        return cls(jnp.zeros(hidden_size, jnp.float32))


def score(states: Float[Array, "*b D"], head: Head) -> Float[jax.Array, "*b"]:
    """Scores of hidden states.

    $$r = w \\cdot h + b$$

    Guarantees: computed in at least float32 with the highest matmul precision of the device, whatever the dtype of
    the states; a score depends on its own state only, so nothing is centred; (w, h) and (A⁻ᵀw, Ah) give the same.

    Args:
        states: hidden states at the scored tokens, after the final norm.
        head: the head.

    Returns:
        Scores in logits, up to one constant per prompt.

    Example:
        >>> score(jnp.array([[1.0, 2.0]]), Head(jnp.array([3.0, -1.0])))
        Array([1.], dtype=float32)
    """
    states = at_least_float32(states)
    scores = jnp.einsum("...d,d->...", states, head.weight.astype(states.dtype), precision=jax.lax.Precision.HIGHEST)
    return scores if head.bias is None else scores + head.bias.astype(scores.dtype)
