r"""Moves of a head, its states and its final norm that change no margin, and one bound that none of them can break.

>>> import jax.numpy as jnp
>>> from rmjax.identifiability.head_gauge import change_basis
>>> weight, states = change_basis(jnp.array([3.0, -1.0]), jnp.array([1.0, 2.0]), jnp.array([[2.0, 0.0], [1.0, 1.0]]))
>>> print(weight, states, weight @ states)  # 3 · 1 - 1 · 2 as well
[ 2. -1.] [2. 3.] 1.0
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Float

from rmjax.arrays import Array, at_least_float32
from rmjax.errors import DataError


def change_basis(
    weight: Float[Array, " D"], states: Float[Array, "*b D"], matrix: Float[Array, "D D"]
) -> tuple[Float[jax.Array, " D"], Float[jax.Array, "*b D"]]:
    r"""The same head on the same states, written in another basis.

    $$(w, h) \;\mapsto\; (A^{-\top} w, \; A h), \qquad (A^{-\top} w) \cdot (A h) = w \cdot h$$

    So a cosine between heads of two models, or the length of a head, is a fact about a basis and not about the model.

    Guarantees: scores are the same to 1e-12 cond(A) of |w||h| in float64, and those of the second basis change by
    their own matrix; the cosine of two weights, and that of two states, is not the same, unless A is orthogonal.

    Args:
        weight: weights of the head.
        states: states that it reads.
        matrix: A, which has an inverse.

    Returns:
        Weights and states in the new basis, at least float32.

    Raises:
        DataError: shapes do not fit, or A has no inverse within the precision of its type. Values under a
            transformation cannot be looked at and pass.

    Example:
        >>> weight, states = change_basis(
        ...     jnp.array([1.0, 0.0]), jnp.array([[5.0, 7.0]]), jnp.array([[1.0, 1.0], [0.0, 1.0]])
        ... )
        >>> print(weight, states)
        [ 1. -1.] [[12.  7.]]

    Reference:
        Linear algebra: the dual basis.
    """
    weight, states, matrix = (at_least_float32(x) for x in (weight, states, matrix))
    shapes = {"weight": weight.shape, "states": states.shape, "matrix": matrix.shape}
    if weight.ndim != 1 or states.shape[-1:] != weight.shape or matrix.shape != weight.shape * 2:
        raise DataError("weights, states and a basis have one width", shapes, "Give [D], [..., D] and [D, D].")
    if not isinstance(matrix, Tracer):
        finite = bool(jnp.isfinite(matrix).all())
        condition = float(np.linalg.cond(np.asarray(matrix, np.float64))) if finite else float("inf")
        if not condition < 1 / float(jnp.finfo(matrix.dtype).eps):
            raise DataError("a change of basis has an inverse", {"condition": condition}, "Give an invertible matrix.")
    moved = jnp.einsum("...d,kd->...k", states, matrix.astype(states.dtype), precision=jax.lax.Precision.HIGHEST)
    return jnp.linalg.solve(matrix.T, weight.astype(matrix.dtype)), moved


def layer_norm_null_direction(
    gain: Float[Array, " D"], bias: Float[Array, " D"] | None = None
) -> tuple[Float[jax.Array, " D"], Float[jax.Array, ""]]:
    r"""The direction along which a head behind a LayerNorm moves every score by one constant.

    $$h = \gamma \odot z + \beta, \quad \textstyle\sum_k z_k = 0 \;\Rightarrow\;
      (w + c/\gamma) \cdot h = w \cdot h + c \sum_k \beta_k / \gamma_k$$

    Guarantees: scores of all inputs move by the same constant, c times the second result, so no margin moves; behind
    an RMSNorm, whose z does not sum to 0, they do not.

    Args:
        gain: γ of the norm.
        bias: β of the norm; 0 if it has none.

    Returns:
        The direction for c = 1, and the constant that it adds to every score, at least float32.

    Raises:
        DataError: a gain is 0, or not one gain and one bias per feature. Values under a transformation cannot be
            looked at: there the direction is infinite.

    Example:
        >>> direction, shift = layer_norm_null_direction(jnp.array([2.0, 4.0]), jnp.array([1.0, 1.0]))
        >>> print(direction, shift)
        [0.5  0.25] 0.75

    Reference:
        Ba, Kiros and Hinton, Layer normalization, arXiv 1607.06450, equation 4.
    """
    gain = at_least_float32(gain)
    bias = jnp.zeros_like(gain) if bias is None else at_least_float32(bias)
    _same_width(gain=gain, bias=bias)
    _not_zero("gain", gain, "Its feature is constant: a head moves every score by one constant along it alone.")
    return 1 / gain, (bias / gain).sum()


def rms_norm_margin_bound(gain: Float[Array, " D"], weight: Float[Array, " D"]) -> Float[jax.Array, ""]:
    r"""The largest margin that a head behind an RMSNorm can give to any two answers.

    $$|z|_2 \le \sqrt D \;\Rightarrow\; |r| \le \sqrt D\,|\gamma \odot w|_2, \qquad
      |\Delta| \le 2 \sqrt D\,|\gamma \odot w|_2$$

    So the temperature of such a model lies in $|\gamma \odot w|$. Behind a LayerNorm without bias the bound holds too.

    Guarantees: no margin exceeds it, but by rounding, and states along ±γ ⊙ w attain it; `fold_gain` does not change
    it. There is no direction along which a head moves every score by one constant, as a LayerNorm has.

    Args:
        gain: γ of the norm.
        weight: weights of the head.

    Returns:
        The bound in logits, at least float32.

    Raises:
        DataError: there is not one gain and one weight per feature.

    Example:
        >>> print(rms_norm_margin_bound(jnp.ones(4), jnp.array([1.0, 0.0, 0.0, 0.0])))
        4.0

    Reference:
        Zhang and Sennrich, Root mean square layer normalization, NeurIPS 2019, equation 4; then Cauchy and Schwarz.
    """
    gain, weight = at_least_float32(gain), at_least_float32(weight)
    _same_width(gain=gain, weight=weight)
    return 2 * jnp.sqrt(jnp.asarray(gain.size, gain.dtype)) * jnp.linalg.norm(gain * weight.astype(gain.dtype))


def fold_gain(
    weight: Float[Array, " D"], gain: Float[Array, " D"], scale: Float[Array, " D"]
) -> tuple[Float[jax.Array, " D"], Float[jax.Array, " D"]]:
    r"""Move factors between the gain of a final RMSNorm and the head behind it.

    $$(w, \gamma) \;\mapsto\; (w \odot s, \; \gamma / s)$$

    With s = γ all of the gain is in the head, and the norm has none.

    Guarantees: no score changes; `rms_norm_margin_bound` does not either; the length of the head does.

    Args:
        weight: weights of the head.
        gain: γ of the norm.
        scale: s, without a 0.

    Returns:
        Weights and gain, at least float32.

    Raises:
        DataError: a factor is 0, or shapes differ. Values under a transformation cannot be looked at and pass.

    Example:
        >>> print(*fold_gain(jnp.array([1.0, 3.0]), jnp.array([2.0, 5.0]), jnp.array([2.0, 5.0])))
        [ 2. 15.] [1. 1.]

    Reference:
        Zhang and Sennrich, Root mean square layer normalization, NeurIPS 2019, equation 4.
    """
    weight, gain, scale = (at_least_float32(x) for x in (weight, gain, scale))
    _same_width(weight=weight, gain=gain, scale=scale)
    _not_zero("scale", scale, "Leave features whose gain is 0 at scale 1.")
    return weight * scale.astype(weight.dtype), gain / scale.astype(gain.dtype)


def _same_width(**arrays: jax.Array) -> None:
    shapes = {name: x.shape for name, x in arrays.items()}
    if any(x.ndim != 1 or not x.size for x in arrays.values()) or len(set(shapes.values())) > 1:
        raise DataError("there is one number of each kind per feature", shapes, "Give vectors of one length.")


def _not_zero(name: str, x: jax.Array, remedy: str) -> None:
    if not isinstance(x, Tracer) and bool((x == 0).any()):
        raise DataError(f"a {name} is 0", {"position": int(np.flatnonzero(np.asarray(x) == 0)[0])}, remedy)
