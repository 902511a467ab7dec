"""The gauge of scores: one constant per prompt says nothing, so what is reported must not depend on it.

>>> import jax.numpy as jnp
>>> from rmjax.identifiability.gauge import gauge_distance, gauge_fix
>>> prompt = jnp.array([0, 0, 1, 1])
>>> print(gauge_fix(jnp.array([3.0, 1.0, 102.0, 100.0]), prompt))
[ 1. -1.  1. -1.]
>>> print(gauge_distance(jnp.array([3.0, 1.0, 102.0, 100.0]), jnp.array([7.0, 1.0, 6.0, 0.0]), prompt))
0.0
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Float, Int

from rmjax.arrays import Array, at_least_float32
from rmjax.checks import whole_numbers
from rmjax.errors import DataError, GaugeError, IdentifiabilityError

PADDING = -1  # the prompt of a response that is none


def gauge_fix(scores: Float[Array, " N"], prompt: Int[Array, " N"]) -> Float[jax.Array, " N"]:
    r"""Scores with mean zero within every prompt.

    $$r_i - \frac{1}{|x(i)|} \sum_{k:\, x(k) = x(i)} r_k$$

    A convention for tables and figures. It changes no margin; it does depend on which responses a prompt has, so it is
    no part of scoring.

    Guarantees: one constant per prompt is forgotten; margins within a prompt stay, and doing it twice is doing it once;
    the error is that of the differences, whatever the level; what stands in padding, be it infinite or not a number,
    reaches neither values nor gradients, and padding becomes 0.

    Args:
        scores: one score per response, in logits.
        prompt: the prompt of every response, any whole numbers in any order; -1 for padding.

    Returns:
        Centred scores in logits, at least float32.

    Raises:
        DataError: there is not one prompt per score, or a score is not finite. Values under a transformation cannot be
            looked at and pass.

    Example:
        >>> print(gauge_fix(jnp.array([2.0, 0.0, 5.0]), jnp.array([7, 7, -1])))
        [ 1. -1.  0.]

    Reference:
        Firth and de Menezes, Quasi-variances, Biometrika 2004: conventions change no contrast.
    """
    scores, prompt = _checked("scores", scores, prompt)
    return _centred(scores, prompt)


def gauge_distance(a: Float[Array, " N"], b: Float[Array, " N"], prompt: Int[Array, " N"]) -> Float[jax.Array, ""]:
    r"""How differently two models judge the same responses, whatever their constants and units.

    $$d(a, b) = \sqrt{\frac{1 - \rho}{2}} = \frac12 \left\| \frac{\tilde a}{|\tilde a|} -
      \frac{\tilde b}{|\tilde b|} \right\|$$

    with $\tilde a$ the scores centred within prompts and $\rho$ the correlation of all centred scores. The second form
    is computed: the first loses half of the digits of small distances.

    Guarantees, to rounding: a distance on classes of scores, symmetric, 0 to itself, with the triangle inequality; one
    constant per prompt and one positive scale change nothing, so d(r, a r + c(x)) = 0 for a > 0; d(r, -r) = 1. Padding
    does not leak. A scale of its own for every prompt does change it.

    Args:
        a: scores of one model.
        b: scores of another model on the same responses.
        prompt: the prompt of every response; -1 for padding.

    Returns:
        A number in [0, 1], at least float32; not a number where a model has one level per prompt, which only concrete
        arrays can show. At distance 0, where there is no gradient, a finite one comes back.

    Raises:
        DataError: as `gauge_fix`.
        IdentifiabilityError: a model has no differences within prompts.

    Example:
        >>> r = jnp.array([1.0, 0.0, 4.0, 2.0])
        >>> print(gauge_distance(r, -r, jnp.array([0, 0, 1, 1])))
        1.0

    Reference:
        Gleave et al., Quantifying differences in reward functions, ICLR 2021: the Pearson distance.
    """
    (a, same), (b, prompt) = _checked("a", a, prompt), _checked("b", b, prompt)
    one, other = (_direction(name, _centred(x, same)) for name, x in (("a", a), ("b", b)))
    square = jnp.square(one - other).sum()
    # The root has no derivative at 0: the inner `where` keeps its infinity out of the gradient.
    return jnp.where(square == 0, 0, jnp.sqrt(jnp.where(square == 0, 1, square))) / 2


def group_normalise(
    scores: Float[Array, " N"], prompt: Int[Array, " N"], *, epsilon: float = 0.0
) -> Float[jax.Array, " N"]:
    r"""Scores centred and divided by the spread within their prompt: advantages of group-relative policy optimisation.

    $$\frac{r_i - \bar r_x}{s_x + \epsilon}, \qquad s_x^2 = \frac{1}{|x|} \sum_{k \in x} (r_k - \bar r_x)^2$$

    This discards scale: a prompt whose answers differ by 0.001 logits is as loud as one whose answers differ by 10, and
    so is one that differs by rounding alone. Margins no longer are log-odds. Where sizes matter, use `gauge_fix`.

    Guarantees: one constant per prompt and, with `epsilon` 0, one positive scale per prompt change nothing; squares
    average to 1 in every group with spread; groups without spread, and padding, are 0 in value and gradient.

    Args:
        scores: one score per response, in logits.
        prompt: the prompt of every response; -1 for padding.
        epsilon: added to the standard deviation, in logits. A positive one makes small groups quieter, and the result
            depends on scale again. Implementations add about 1e-4 to the deviation over |x| - 1.

    Returns:
        Advantages without unit, at least float32.

    Raises:
        DataError: as `gauge_fix`, or `epsilon` is negative or not finite.

    Example:
        >>> print(group_normalise(jnp.array([10.0, 0.0, 0.001, 0.0, 5.0, 5.0]), jnp.array([0, 0, 1, 1, 2, 2])))
        [ 1. -1.  1. -1.  0.  0.]

    Reference:
        Shao et al., DeepSeekMath, arXiv 2402.03300, section 4.1.
    """
    if not 0 <= epsilon < float("inf"):
        raise DataError("epsilon is finite and not negative", {"epsilon": epsilon}, "Give 0, or a small number.")
    scores, prompt = _checked("scores", scores, prompt)
    over = _by_prompt(prompt)
    centred = _centred(scores, prompt)
    # In units of the largest, so that squares neither overflow nor vanish; the quotient does not depend on the unit.
    unit = jax.lax.stop_gradient(over(jax.ops.segment_max, jnp.abs(centred)))
    spread = unit > 0
    unit = jnp.where(spread, unit, 1)
    centred = centred / unit
    variance = over(jax.ops.segment_sum, jnp.square(centred)) / over(jax.ops.segment_sum, jnp.ones_like(centred))
    deviation = jnp.sqrt(jnp.where(spread, variance, 1))
    return jnp.where(spread, centred / (deviation + epsilon / unit), 0)


def margin_between(
    scores: Float[Array, " N"], prompt: Int[Array, " N"], i: Int[Array, "*b"] | int, j: Int[Array, "*b"] | int
) -> Float[jax.Array, "*b"]:
    r"""Score of response i minus score of response j, of one prompt.

    $$\Delta_{ij} = r_i - r_j, \qquad x(i) = x(j)$$

    Guarantees: one constant per prompt changes nothing; the margin of j and i is the opposite; no number is returned
    for two prompts.

    Args:
        scores: one score per response, in logits.
        prompt: the prompt of every response; -1 for padding.
        i: a response, or several.
        j: another of the same prompt, or as many.

    Returns:
        Margins in logits, at least float32. Under a transformation, which cannot raise, a pair of two prompts, of
        padding or out of range is not a number, and has gradient 0.

    Raises:
        DataError: an index is out of range or padding, there are not as many i as j, or as `gauge_fix`.
        GaugeError: two prompts.

    Example:
        >>> print(margin_between(jnp.array([3.0, 1.0, 9.0]), jnp.array([0, 0, 1]), 0, 1))
        2.0

    Reference:
        Bradley and Terry, Biometrika 1952: probabilities depend on differences alone.
    """
    scores, prompt = _checked("scores", scores, prompt)
    i, j = (x if isinstance(x, Tracer) else jnp.asarray(whole_numbers(n, x)) for n, x in (("i", i), ("j", j)))
    if i.shape != j.shape:
        raise DataError("a margin has two ends", {"i": i.shape, "j": j.shape}, "Give as many i as j.")
    inside = (jnp.minimum(i, j) >= 0) & (jnp.maximum(i, j) < scores.shape[0])
    real = inside & (prompt[i] != PADDING) & (prompt[j] != PADDING)
    right = real & (prompt[i] == prompt[j])
    if not isinstance(right, Tracer) and not right.all():
        at = int(np.flatnonzero(~np.asarray(right))[0])
        pair = {"i": int(np.ravel(i)[at]), "j": int(np.ravel(j)[at])}
        if not np.asarray(real).flat[at]:
            raise DataError(
                "a margin is of two responses that there are",
                pair | {"responses": scores.shape[0]},
                "Indices run from 0 to the number of responses, and -1 marks padding among the prompts.",
            )
        raise GaugeError(
            "a difference of scores of two prompts means nothing",
            pair | {"prompt_of_i": int(prompt[pair["i"]]), "prompt_of_j": int(prompt[pair["j"]])},
            "Take two answers to one prompt: each prompt has a constant of its own, which no comparison can see.",
        )
    return jnp.where(right, scores[i] - scores[j], jnp.nan)


def compare_levels(scores: Float[Array, " N"], prompt: Int[Array, " N"], *, other: Array | None = None) -> NoReturn:
    r"""Refuse to average or compare levels of scores across prompts or models, and say what to use instead.

    $$P(i \succ j) = \sigma(r_i - r_j) = \sigma\big((r_i + c_x) - (r_j + c_x)\big) \quad \text{for every } c_x$$

    Scores + c(x) are the same model of preferences, with any average that one likes. A bias of the head or a centring
    penalty picks one of them by convention, which the data neither support nor contradict.

    Guarantees: always raises, also for levels of a model that was trained with a centring penalty.

    Args:
        scores: scores whose mean was to be taken, or compared over prompts.
        prompt: the prompt of every response.
        other: scores of another model, if two were to be compared.

    Raises:
        GaugeError: always.

    Example:
        >>> compare_levels(jnp.array([1.0, 2.0]), jnp.array([0, 1]))
        Traceback (most recent call last):
        ...
        rmjax.errors.GaugeError: levels of scores have no common zero ...

    Reference:
        The gauge group of data that compare answers to one prompt has one constant per prompt, not one for all.
    """
    numbers: dict[str, object] = {"responses": np.size(scores)}
    if not isinstance(prompt, Tracer):
        numbers["prompts"] = np.setdiff1d(np.asarray(prompt), PADDING).size
    whose = "across prompts" if other is None else "across models, and no common unit"
    raise GaugeError(
        f"levels of scores have no common zero {whose}",
        numbers,
        "Use margin_between for two answers of one prompt, gauge_distance for two models on the same responses, the "
        "accuracy or likelihood of margins to say which is better, and gauge_fix to draw scores. A bias or a centring "
        "penalty pins these numbers and changes none of this.",
    )


def _checked(name: str, scores: Array, prompt: Array) -> tuple[jax.Array, jax.Array]:
    """Scores in at least float32 and prompts; shapes are always checked, values where they can be seen."""
    if not isinstance(scores, jax.Array):
        scores = np.asarray(scores)
        if scores.dtype.kind in "OUS":
            raise DataError("scores are numbers", {name: scores.dtype}, "Give one number per response.")
    scores = at_least_float32(scores)
    if not isinstance(prompt, Tracer):
        prompt = whole_numbers("prompt", prompt)
    if scores.ndim != 1 or scores.shape != prompt.shape or not scores.size:
        raise DataError(
            "there is one score and one prompt per response, and at least one response",
            {name: scores.shape, "prompt": prompt.shape},
            "Give two vectors of equal length.",
        )
    if not isinstance(scores, Tracer) and not isinstance(prompt, Tracer):
        wrong = ~np.isfinite(scores) & (prompt != PADDING)
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            raise DataError(
                "a score is finite",
                {"response": at, name: float(scores[at]), "prompt": int(prompt[at])},
                "Mend it, or mark the response as padding with prompt -1.",
            )
    return scores, jnp.asarray(prompt)


def _by_prompt(prompt: jax.Array) -> Callable[[Callable, jax.Array], jax.Array]:
    """Reductions over the responses of a prompt, handed back to each of them."""
    # Where its prompt begins in sorted order names a segment; the number of prompts need not be known.
    segment = jnp.searchsorted(jnp.sort(prompt), prompt)
    return lambda reduce, x: reduce(x, segment, num_segments=prompt.shape[0])[segment]


def _centred(scores: jax.Array, prompt: jax.Array) -> jax.Array:
    """Scores minus the mean of their prompt; padding, which is a prompt of its own, is 0."""
    over, real = _by_prompt(prompt), prompt != PADDING
    # A mean of levels would round like the levels. The reference cancels, and so it has no derivative.
    gap = scores - jax.lax.stop_gradient(over(jax.ops.segment_max, scores))
    mean = over(jax.ops.segment_sum, gap) / over(jax.ops.segment_sum, jnp.ones_like(gap))
    return jnp.where(real, gap - mean, 0)


def _direction(name: str, centred: jax.Array) -> jax.Array:
    """Centred scores at length 1."""
    largest = jax.lax.stop_gradient(jnp.abs(centred).max())
    if not isinstance(largest, Tracer) and largest == 0:
        raise IdentifiabilityError(
            "scores without differences within prompts have no distance to others",
            {"model": name, "responses": centred.shape[0]},
            "Give scores of at least one prompt with two answers that the model tells apart.",
        )
    centred = centred / largest  # squares of the rest neither overflow nor vanish
    return centred / jnp.sqrt(jnp.square(centred).sum())
