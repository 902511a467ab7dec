"""Penalties on scores: what no comparison asks for."""

from __future__ import annotations

import jax
from jaxtyping import Float

from rmjax.arrays import Array, at_least_float32


def centering(first: Float[Array, "*b"], second: Float[Array, "*b"]) -> Float[jax.Array, "*b"]:
    r"""Pull the mean score of a pair towards 0.

    $$(r_1 + r_2)^2$$

    It pins the constant of a prompt, which no comparison can see, to a convention. The numbers look like levels then
    and are none: differences across prompts mean as little as before.

    Guarantees: even and convex; its gradient is along (1, 1) and leaves the margin of scores that are free variables as
    it is, exactly. Parameters that are shared by all scores feel it.

    Args:
        first: score of the one answer, in logits.
        second: score of the other.

    Returns:
        Squared logits, at least float32.

    Example:
        >>> import jax.numpy as jnp
        >>> print(centering(jnp.array(1.5), jnp.array(-0.5)))
        1.0

    Reference:
        Eisenstein et al., Helping or herding? Reward model ensembles mitigate but do not eliminate reward hacking,
        2023, equation 2.
    """
    total = at_least_float32(first) + at_least_float32(second)
    return total * total


def ridge(scores: Float[Array, "*b"]) -> Float[jax.Array, "*b"]:
    r"""Half the squared score: the negative log-density of a standard normal prior, up to a constant.

    $$r^2 / 2$$

    Multiplied by τ and added to a negative log-likelihood it makes a unique optimum, which sums to 0 over every
    connected set of responses, whatever the votes. It makes numbers finite; it identifies nothing.

    Guarantees: gradient r, curvature 1; 0 only at 0.

    Args:
        scores: in logits.

    Returns:
        Squared logits, at least float32.

    Example:
        >>> import jax.numpy as jnp
        >>> print(ridge(jnp.array([1.0, -2.0])))
        [0.5 2. ]

    Reference:
        Hoerl and Kennard, Ridge regression, Technometrics 1970.
    """
    scores = at_least_float32(scores)
    return scores * scores / 2
