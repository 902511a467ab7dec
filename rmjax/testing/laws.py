"""Laws that a loss, a likelihood, a penalty or a head of yours should obey, as checks that name the case that breaks.

Each law is a function of one case, for a test of your own. `check_loss`, `check_likelihood`, `check_penalty` and
`check_head` draw the cases with Hypothesis, as many as its current profile says, and run every law that applies.

>>> import jax
>>> from rmjax import losses
>>> check_loss(losses.soft_label)
>>> def by_one_minus_sigma(margin, target):
...     return -target * jax.numpy.log(jax.nn.sigmoid(margin)) - (1 - target) * jax.numpy.log(
...         1 - jax.nn.sigmoid(margin)
...     )
>>> try:
...     check_loss(by_one_minus_sigma)
... except LawError as error:
...     print(error.what)
exchanging the sides together with the label changes the loss
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from rmjax.comparisons import Comparisons
from rmjax.errors import RMJaxError
from rmjax.testing.strategies import PER_PROMPT, PROMPTS, SIZE, features, generators, margins, scored_comparisons

Loss = Callable[[Any, Any], jax.Array]  # (margin [E], target [E]) -> nats [E]
Likelihood = Callable[[Any, Comparisons], tuple[jax.Array, jax.Array]]  # (scores [N], comparisons) -> (sum, count)
Penalty = Callable[[Any, Any], jax.Array]  # (first [E], second [E]) -> [E]
Score = Callable[[Any], jax.Array]  # features [N, D] -> scores [N]

_EPS = float(np.finfo(np.float32).eps)
_TINY = float(np.finfo(np.float32).tiny)
# What a product of matrices may round where its order of summation changes with the shape: thousands of terms of one
# size. A mean or a deviation that is taken over the batch moves a score by a share of itself.
_BATCH = 2.0**-13


# No deadline, since the first example compiles. Nothing is shrunk: the error names the place that is wrong and its
# numbers, and arrays that are drawn from a seed do not get simpler.
_EXAMPLES: dict[str, Any] = {"deadline": None, "phases": [Phase.generate]}


class LawError(RMJaxError, AssertionError):
    """A law that a loss, a likelihood, a penalty or a head breaks, with the case that shows it."""


def _narrow(x: Any) -> np.ndarray:
    return np.asarray(x, np.float32)


def _wide(x: Any) -> np.ndarray:
    return np.asarray(x, np.float64)


def _require(holds: bool | np.bool_, what: str, numbers: Mapping[str, object], remedy: str) -> None:
    if not holds:
        raise LawError(what, numbers, remedy)


def _first(wrong: np.ndarray, **columns: Any) -> dict[str, object]:
    """The numbers at the first place that is wrong."""
    at = int(np.flatnonzero(wrong)[0])
    return {"position": at, **{name: np.asarray(column).flat[at] for name, column in columns.items()}}


# Losses of a margin


def exchange_changes_nothing(loss: Loss, margin: Any, target: Any) -> None:
    r"""Exchanging the sides together with the label changes no loss, and the sign of its slope.

    $$\ell(\Delta, q) = \ell(-\Delta, 1 - q), \qquad \ell'(\Delta, q) = -\ell'(-\Delta, 1 - q)$$

    Guarantees: what is computed from 1 - σ, or from a form that cancels, is caught: of a hard label both sides are
    compared to 64 ulp of the smaller one, in either tail, and to what 8 ulp of the margin change where that is more,
    as beside the zero of a slope.

    Args:
        loss: elementwise, of the margin of the first and the share of annotators who chose it.
        margin: in logits, [E].
        target: shares, [E]; rounded to 1/4096, so that 1 - q is exact.

    Raises:
        LawError: the law is broken.

    Example:
        >>> from rmjax import losses
        >>> exchange_changes_nothing(losses.soft_label, np.float32([2, -20]), np.float32([0.25, 0]))
    """
    margin, target = _narrow(margin), np.round(_narrow(target) * 4096) / np.float32(4096)
    value, slope = _elementwise(loss)(margin, target)
    other, back = _elementwise(loss)(-margin, 1 - target)
    hard = (target == 0) | (target == 1)
    moves = [np.minimum(*pair) for pair in zip(_moves(loss, margin, target), _moves(loss, -margin, 1 - target))]
    for what, one, two, move in (("loss", value, other, moves[0]), ("slope of the loss", slope, -back, moves[1])):
        # A soft label weighs both sides, and a loss may round what it adds or what cancels.
        size = np.where(hard, np.minimum(np.abs(one), np.abs(two)), 1 + np.abs(margin) + np.abs(one))
        wrong = ~((one == two) | (np.abs(one - two) <= 64 * _EPS * size + move + 4 * _TINY))
        if wrong.any():
            raise LawError(
                f"exchanging the sides together with the label changes the {what}",
                _first(wrong, margin=margin, target=target, one=one, other=two),
                "Compute the loss of the other side from the negative margin, and never from 1 - σ.",
            )


def _moves(loss: Loss, margin: np.ndarray, target: np.ndarray) -> list[np.ndarray]:
    """What 8 ulp of the margin to either side change in the loss and in its slope; 0 where that is no number."""
    more, less = (_elementwise(loss)(margin * np.float32(1 + side * 8 * _EPS), target) for side in (1, -1))
    with np.errstate(invalid="ignore"):
        moves = [np.abs(high - low) for high, low in zip(more, less)]
    return [np.where(np.isfinite(move), move, 0) for move in moves]


def scale_matters(loss: Loss, margin: Any, factor: float) -> None:
    r"""Scores that are multiplied by a factor say something else about votes, in the same order.

    $$\lambda(\Delta) = \ell(\Delta, 0) - \ell(\Delta, 1): \qquad \lambda(a \Delta) \ne \lambda(\Delta), \qquad
      \operatorname{sign} \lambda(a\Delta) = \operatorname{sign} \lambda(\Delta) = \operatorname{sign} \Delta$$

    Args:
        loss: elementwise, of the margin of the first and the share of annotators who chose it.
        margin: in logits, [E]; sizes are clipped to [1/4, 4], where a saturating loss still moves.
        factor: greater than 1.

    Raises:
        LawError: the law is broken.

    Example:
        >>> from rmjax import losses
        >>> scale_matters(losses.soft_label, np.float32([2, -1]), 2.0)
    """
    margin = _narrow(np.where(np.signbit(margin), -1, 1) * np.clip(np.abs(margin), 0.25, 4))
    lead, scaled = (
        _elementwise(loss)(m, np.zeros_like(m))[0] - _elementwise(loss)(m, np.ones_like(m))[0]
        for m in (margin, np.float32(factor) * margin)
    )
    _check_scale(lead, scaled, margin, factor)


def _check_scale(lead: np.ndarray, scaled: np.ndarray, margin: np.ndarray, factor: float) -> None:
    wrong = ~(np.abs(scaled - lead) > 1e-6)
    if wrong.any():
        raise LawError(
            "scores of another scale say the same about votes",
            {**_first(wrong, margin=margin, log_odds=lead), "factor": factor},
            "Do not divide scores by their spread: the scale of a model is fixed by its data.",
        )
    wrong = (np.sign(lead) != np.sign(margin)) | (np.sign(scaled) != np.sign(margin))
    if wrong.any():
        raise LawError(
            "the likelier side is not that of the larger score",
            {**_first(wrong, margin=margin, log_odds=lead, scaled=scaled), "factor": factor},
            "A vote for the larger score should cost less than one for the smaller, at every scale.",
        )


def each_margin_counts_alone(loss: Loss, margin: Any, target: Any, others: Any) -> None:
    """The loss of a comparison depends on its own margin, whatever else is in the batch, in value and slope.

    Args:
        loss: elementwise, of the margin of the first and the share of annotators who chose it.
        margin: in logits, [E].
        target: shares, [E].
        others: margins that stand in every second place instead, [E]; they may be infinite or not a number.

    Raises:
        LawError: the law is broken.

    Example:
        >>> from rmjax import losses
        >>> each_margin_counts_alone(losses.soft_label, np.float32([2, 1]), np.float32([1, 1]), np.float32([0, np.nan]))
    """
    margin, target, others = _narrow(margin), _narrow(target), _narrow(others)
    kept = np.arange(len(margin)) % 2 == 0
    plain, mixed = (_elementwise(loss)(m, target) for m in (margin, np.where(kept, margin, others)))
    for what, one, two in zip(("loss", "slope"), plain, mixed):
        wrong = kept & ~((one == two) | (np.abs(one - two) <= 16 * _EPS * np.abs(one)))
        if wrong.any():
            raise LawError(
                f"the {what} of a comparison depends on the others in its batch",
                _first(wrong, margin=margin, alone=one, among_others=two),
                "Keep the loss elementwise: no mean, spread or rank over the batch.",
            )


def check_loss(loss: Loss) -> None:
    """All laws of an elementwise loss: exchange of sides, scale, and nothing but its own margin.

    Args:
        loss: of margins [E], in logits, and shares [E] of annotators who chose the first; nats [E], traceable.

    Raises:
        LawError: names the law and the case.

    Example:
        >>> from rmjax import losses
        >>> check_loss(losses.soft_label)
        >>> check_loss(lambda margin, target: losses.soft_label(margin / margin.std(), target))
        Traceback (most recent call last):
        ...
        rmjax.testing.laws.LawError: ...
    """

    @settings(**_EXAMPLES)
    @given(margins(size=64), generators(), st.floats(1.5, 4), st.sampled_from([1e6, np.inf, np.nan]))
    def laws(margin: np.ndarray, rng: np.random.Generator, factor: float, other: float) -> None:
        target = rng.integers(0, 2, 64) if rng.integers(2) else rng.integers(0, 4097, 64) / 4096
        exchange_changes_nothing(loss, margin, target)
        scale_matters(loss, margin, factor)
        each_margin_counts_alone(loss, margin, target, np.full(64, other))

    laws()


@functools.lru_cache(maxsize=64)
def _jitted_elementwise(loss: Loss) -> Callable[[Any, Any], tuple[jax.Array, jax.Array]]:
    def both(margin: jax.Array, target: jax.Array) -> tuple[jax.Array, jax.Array]:
        value, back = jax.vjp(lambda m: loss(m, target), margin)
        return value, back(jnp.ones_like(value))[0]

    return jax.jit(both)


def _elementwise(loss: Loss) -> Callable[[Any, Any], tuple[np.ndarray, np.ndarray]]:
    """Values and slopes in float64, compiled once a loss and shape."""

    def both(margin: Any, target: Any) -> tuple[np.ndarray, np.ndarray]:
        value, slope = _jitted_elementwise(loss)(margin, target)
        _require(
            value.shape == np.shape(margin),
            "a loss has one number for each margin",
            {"margins": np.shape(margin), "losses": value.shape},
            "Return nats elementwise; whoever calls the loss reduces them.",
        )
        return _wide(value), _wide(slope)

    return both


# Likelihoods of comparisons


def constants_change_nothing(likelihood: Likelihood, scores: Any, comparisons: Comparisons, constants: Any) -> None:
    r"""One constant per prompt changes no margin, hence no sum, count or gradient.

    $$L(r + c_{prompt}) = L(r)$$

    Guarantees: scores are rounded to 1/64 and constants to whole numbers, so that margins stay the same to the last
    bit; what may differ is what float32 rounds in a term as large as the largest score.

    Args:
        likelihood: of scores and comparisons, as (sum, count).
        scores: one a response, in logits, [N].
        comparisons: the judged pairs.
        constants: one a prompt, [prompts], of sizes up to 2^16.

    Raises:
        LawError: the law is broken.

    Example:
        >>> from rmjax import losses
        >>> pairs = Comparisons.from_pairs([0, 2], [1, 3], prompt=[0, 0, 1, 1])
        >>> constants_change_nothing(losses.negative_log_likelihood, [1, 0, 3, 5], pairs, [100, -7])
    """
    scores = _narrow(np.round(_narrow(scores) * 64) / 64)
    moved = scores + _narrow(np.round(constants))[comparisons.prompt]
    _check_equal(
        likelihood,
        (scores, comparisons),
        (moved, comparisons),
        "one constant per prompt changes",
        {"constants": np.round(constants)},
        "Read scores through margins within a prompt alone; a penalty on levels is not part of a likelihood.",
    )


def swapped_sides_change_nothing(likelihood: Likelihood, scores: Any, comparisons: Comparisons) -> None:
    """Which answer of a pair is written first, together with its votes, changes nothing.

    Args:
        likelihood: of scores and comparisons, as (sum, count).
        scores: one a response, in logits, [N].
        comparisons: the judged pairs.

    Raises:
        LawError: the law is broken.

    Example:
        >>> from rmjax import losses
        >>> swapped_sides_change_nothing(
        ...     losses.negative_log_likelihood, [1, 0], Comparisons.from_pairs([0], [1], [0, 0])
        ... )
    """
    c = comparisons
    swapped = dataclasses.replace(
        c,
        first=c.second,
        second=c.first,
        wins_first=c.wins_second,
        wins_second=c.wins_first,
        target_margin=None if c.target_margin is None else -c.target_margin,
        order=None if c.order is None else -c.order,
    )
    _check_equal(
        likelihood,
        (scores, c),
        (scores, swapped),
        "exchanging the sides of all comparisons changes",
        {},
        "Score both sides by one function; `target_margin` and `order` change their sign with the sides.",
    )


def scale_matters_to_votes(likelihood: Likelihood, margin: float, factor: float) -> None:
    """Scores that are multiplied by a factor make a vote more or less likely, and the same side the likelier one.

    Args:
        likelihood: of scores and comparisons, as (sum, count).
        margin: in logits; its size is clipped to [1/4, 4].
        factor: greater than 1.

    Raises:
        LawError: the law is broken.

    Example:
        >>> from rmjax import losses
        >>> scale_matters_to_votes(losses.negative_log_likelihood, 1.0, 2.0)
    """
    margin = float(np.copysign(np.clip(abs(margin), 0.25, 4), margin))
    lead, scaled = (_lead(likelihood, m) for m in (margin, factor * margin))
    _check_scale(lead, scaled, np.array([margin]), factor)


def weight_0_is_deletion(
    likelihood: Likelihood, scores: Any, comparisons: Comparisons, response: int, bad: float = np.nan
) -> None:
    """Comparisons of weight 0 are none, in sum, count and gradient, whatever their scores, margins and orders are.

    Args:
        likelihood: of scores and comparisons, as (sum, count).
        scores: one a response, in logits, [N].
        comparisons: the judged pairs; all that read one response get weight 0.
        response: that one.
        bad: its score; also infinite or not a number.

    Raises:
        LawError: the law is broken.

    Example:
        >>> from rmjax import losses
        >>> pairs = Comparisons.from_pairs([0, 2], [1, 3], prompt=[0, 0, 0, 0])
        >>> weight_0_is_deletion(losses.negative_log_likelihood, [1, 0, 3, 5], pairs, 2, np.inf)
    """
    touched = np.asarray((comparisons.first == response) | (comparisons.second == response))
    spoilt = np.array(scores, np.float32)
    spoilt[response] = bad
    erased = dataclasses.replace(
        comparisons,
        weight=np.where(touched, 0, comparisons.weight).astype(np.float32),
        **{
            name: np.where(touched, bad, getattr(comparisons, name)).astype(np.float32)
            for name in ("target_margin", "order")
            if getattr(comparisons, name) is not None
        },
    )
    _check_equal(
        likelihood,
        (scores, _some(comparisons, ~touched)),
        (spoilt, erased),
        "comparisons of weight 0 count in",
        {"response": response, "score": bad},
        "Mask what is deleted before the loss, and again behind it: the gradient of 0 times infinity is no number.",
    )


def padding_changes_nothing(likelihood: Likelihood, scores: Any, comparisons: Comparisons, bad: float = np.nan) -> None:
    """Three comparisons of weight 0 and two responses more change nothing, whatever their scores.

    Args:
        likelihood: of scores and comparisons, as (sum, count).
        scores: one a response, in logits, [N].
        comparisons: the judged pairs.
        bad: the scores of the responses that are none.

    Raises:
        LawError: the law is broken.

    Example:
        >>> from rmjax import losses
        >>> padding_changes_nothing(losses.negative_log_likelihood, [1, 0], Comparisons.from_pairs([0], [1], [0, 0]))
    """
    size = comparisons.num_responses
    padded = comparisons.pad(comparisons.num_comparisons + 3, size + 2)
    _check_equal(
        likelihood,
        (scores, comparisons),
        (np.concatenate([_narrow(scores), np.full(2, bad, np.float32)]), padded),
        "padding counts in",
        {"score": bad},
        "Count by weight, and never by the length of an array.",
    )


def parts_add_up(likelihood: Likelihood, scores: Any, comparisons: Comparisons, part: Any) -> None:
    """The sums, counts and gradients of the parts of any split add up to those of the whole.

    Args:
        likelihood: of scores and comparisons, as (sum, count).
        scores: one a response, in logits, [N].
        comparisons: the judged pairs.
        part: which comparisons make the one part, [E] of truth values; the others make the other.

    Raises:
        LawError: the law is broken.

    Example:
        >>> from rmjax import losses
        >>> pairs = Comparisons.from_pairs([0, 2], [1, 3], prompt=[0, 0, 0, 0])
        >>> parts_add_up(losses.negative_log_likelihood, [1, 0, 3, 5], pairs, np.array([True, False]))
    """
    part = np.asarray(part, bool)
    parts = [_value(likelihood, scores, _some(comparisons, chosen)) for chosen in (part, ~part)]
    _compare(
        _value(likelihood, scores, comparisons),
        tuple(one + two for one, two in zip(*parts)),
        comparisons,
        _narrow(scores),
        "the parts of a split do not add up in",
        {"in the first part": int(part.sum())},
        "Return a sum and a count: a mean, or a rank in the batch, depends on what else is there.",
    )


def votes_count_once(likelihood: Likelihood, scores: Any, comparisons: Comparisons) -> None:
    r"""The count is the number of weighted votes, where a tie is one vote, or none if ties are left out.

    $$\sum_e w_e (a_e + b_e + t_e) \quad\text{or}\quad \sum_e w_e (a_e + b_e)$$

    Args:
        likelihood: of scores and comparisons, as (sum, count).
        scores: one a response, in logits, [N].
        comparisons: the judged pairs.

    Raises:
        LawError: the law is broken.

    Example:
        >>> from rmjax import losses
        >>> votes_count_once(losses.negative_log_likelihood, [1, 0], Comparisons.from_pairs([0], [1], prompt=[0, 0]))
    """
    c = comparisons
    a, b, tied, weight = (_wide(x) for x in (c.wins_first, c.wins_second, c.ties, c.weight))
    decided, every = (weight * (a + b)).sum(), (weight * (a + b + tied)).sum()
    count = _value(likelihood, scores, c)[1]
    _require(
        min(abs(count - decided), abs(count - every)) <= len(a) * _EPS * every,
        "the count is not that of the votes",
        {"count": count, "votes": every, "without ties": decided},
        "Multiply votes by their weight, and count a tie as one vote or as none.",
    )


def check_likelihood(likelihood: Likelihood) -> None:
    """All laws of a likelihood: constants per prompt, sides, scale, deletion, padding, splits and counts.

    Args:
        likelihood: of scores [N], in logits, and `Comparisons`, as (sum, count); traceable. The comparisons that it
            gets have ties, weights, target margins and orders.

    Raises:
        LawError: names the law and the case.

    Example:
        >>> from rmjax import losses
        >>> check_likelihood(lambda scores, c: losses.negative_log_likelihood(scores, c, ties="half"))
        >>> def mean(scores, c):
        ...     total, count = losses.negative_log_likelihood(scores, c, ties="half")
        ...     return total / count, count
        >>> check_likelihood(mean)
        Traceback (most recent call last):
        ...
        rmjax.testing.laws.LawError: ...
    """

    @settings(**_EXAMPLES)
    @given(scored_comparisons(ties=True), generators(), st.floats(1.5, 4), st.sampled_from([np.inf, -np.inf, np.nan]))
    def laws(case: tuple[np.ndarray, Comparisons], rng: np.random.Generator, factor: float, bad: float) -> None:
        scores, plain = np.clip(case[0], -16, 16), case[1]
        edges = plain.num_comparisons
        target, order = rng.integers(-4, 5, edges) / 4, rng.integers(-1, 2, edges)
        graded = dataclasses.replace(plain, target_margin=_narrow(target), order=_narrow(order))
        constants_change_nothing(likelihood, scores, graded, rng.integers(-1000, 1001, 3))
        swapped_sides_change_nothing(likelihood, scores, graded)
        scale_matters_to_votes(likelihood, float(rng.uniform(-4, 4)), factor)
        weight_0_is_deletion(likelihood, scores, graded, int(plain.first[0]), bad)
        padding_changes_nothing(likelihood, scores, graded, bad)
        parts_add_up(likelihood, scores, graded, rng.integers(0, 2, edges))
        votes_count_once(likelihood, scores, graded)

    laws()


def _lead(likelihood: Likelihood, margin: float) -> np.ndarray:
    """Nats that a vote against the first side costs more than one for it; not graded, and of no known order.

    The pair is padded to the shape that `comparisons` draws, for which a likelihood is compiled already.
    """
    scores, zero = np.zeros(PROMPTS * PER_PROMPT, np.float32), np.zeros(1, np.float32)
    scores[0] = margin
    against, favour = (
        Comparisons.from_votes([0], [1], [a], [1 - a], prompt=[0, 0], target_margin=zero, order=zero) for a in (0, 1)
    )
    costs = [_value(likelihood, scores, c.pad(SIZE, len(scores)))[0] for c in (against, favour)]
    return np.array([costs[0] - costs[1]])


def _some(c: Comparisons, chosen: np.ndarray) -> Comparisons:
    """The chosen comparisons at the same shape: the others are padding behind them."""
    rows = np.flatnonzero(chosen)
    columns: dict[str, Any] = {
        field.name: None if getattr(c, field.name) is None else np.asarray(getattr(c, field.name))[rows]
        for field in dataclasses.fields(c)
        if field.name != "prompt"
    }
    return Comparisons(prompt=c.prompt, **columns).pad(c.num_comparisons, c.num_responses)


@functools.lru_cache(maxsize=64)
def _jitted(likelihood: Likelihood) -> Callable[..., tuple[tuple[jax.Array, jax.Array], jax.Array]]:
    return jax.jit(jax.value_and_grad(likelihood, has_aux=True))


def _value(likelihood: Likelihood, scores: Any, comparisons: Comparisons) -> tuple[float, float, np.ndarray]:
    """Sum, count and gradient, compiled once a likelihood and shape."""
    (total, count), gradient = _jitted(likelihood)(_narrow(scores), comparisons)
    return float(total), float(count), _wide(gradient)


def _check_equal(
    likelihood: Likelihood,
    plain: tuple[Any, Comparisons],
    other: tuple[Any, Comparisons],
    what: str,
    numbers: Mapping[str, object],
    remedy: str,
) -> None:
    one, two = (_value(likelihood, *case) for case in (plain, other))
    kept = two[2][: len(one[2])]
    _compare(one, (two[0], two[1], kept), plain[1], _narrow(other[0]), what, numbers, remedy)
    rest = two[2][len(one[2]) :]
    _require((rest == 0).all(), f"{what} the gradient", {**numbers, "gradient": rest.tolist()}, remedy)


def _compare(
    one: tuple[float, float, np.ndarray],
    two: tuple[Any, ...],
    c: Comparisons,
    scores: np.ndarray,
    what: str,
    numbers: Mapping[str, object],
    remedy: str,
) -> None:
    """Sum, count and gradient are equal up to what float32 rounds in E terms, each of some operations."""
    unit = 2 * (c.num_comparisons + 32) * _EPS
    votes = float((_wide(c.weight) * (_wide(c.wins_first) + c.wins_second + c.ties)).sum())
    largest = float(np.abs(scores[np.isfinite(scores)]).max(initial=1))
    bounds = (
        unit * (abs(one[0]) + votes * largest),
        unit * (one[1] + votes),
        unit * (np.abs(one[2]).sum() + votes),
    )
    for name, a, b, bound in zip(("the sum", "the count", "the gradient"), one, two, bounds, strict=True):
        wrong = np.atleast_1d(~(np.abs(np.subtract(a, b)) <= bound))
        if wrong.any():
            raise LawError(f"{what} {name}", {**numbers, **_first(wrong, one=a, other=b)}, remedy)


# Penalties on levels


def levels_are_pulled_and_margins_are_not(penalty: Penalty, first: Any, second: Any) -> None:
    r"""A penalty that pins levels has one slope in both scores of a pair, and some slope where their sum is not 0.

    $$\partial_{r_1} = \partial_{r_2}$$

    A penalty on the squared difference in the place of the squared sum is a shrinkage of margins, and pins no level.

    Args:
        penalty: elementwise, of both scores of a pair.
        first: the one score, [E].
        second: the other, [E].

    Raises:
        LawError: the law is broken.

    Example:
        >>> from rmjax import losses
        >>> levels_are_pulled_and_margins_are_not(losses.centering, np.float32([1, 2]), np.float32([0, 3]))
    """
    first, second = _narrow(first), _narrow(second)
    one, two = (_wide(_jitted_elementwise(f)(a, b)[1]) for f, a, b in _both_ways(penalty, first, second))
    wrong = ~(np.abs(one - two) <= 16 * _EPS * (np.abs(one) + np.abs(two)))
    if wrong.any():
        raise LawError(
            "a penalty on levels pulls at a margin",
            _first(wrong, first=first, second=second, slope_of_first=one, slope_of_second=two),
            "Square the sum of both scores, not their difference.",
        )
    wrong = (np.abs(first + second) > 0.01) & (one == 0)
    if wrong.any():
        raise LawError(
            "a penalty on levels leaves a level as it is",
            _first(wrong, first=first, second=second),
            "Its slope should be 0 only where both scores sum to 0.",
        )


@functools.lru_cache(maxsize=64)
def _turned(penalty: Penalty) -> Penalty:
    return lambda second, first: penalty(first, second)


def _both_ways(penalty: Penalty, first: np.ndarray, second: np.ndarray) -> tuple[tuple[Penalty, Any, Any], ...]:
    return (penalty, first, second), (_turned(penalty), second, first)


def check_penalty(penalty: Penalty) -> None:
    """The law of a penalty that pins levels, such as centring: it pulls at the mean of a pair and at no margin.

    Args:
        penalty: elementwise, of both scores [E] of a pair; traceable.

    Raises:
        LawError: names the case.

    Example:
        >>> from rmjax import losses
        >>> check_penalty(losses.centering)
        >>> check_penalty(lambda first, second: (first - second) ** 2)
        Traceback (most recent call last):
        ...
        rmjax.testing.laws.LawError: ...
    """

    @settings(**_EXAMPLES)
    @given(margins(size=64), generators())
    def laws(scores: np.ndarray, rng: np.random.Generator) -> None:
        levels_are_pulled_and_margins_are_not(penalty, scores, rng.permutation(scores))

    laws()


# Heads


def a_score_is_of_its_own_response(score: Score, states: Any, others: Any) -> None:
    """A score does not depend on what else is in the batch, nor on there being a batch.

    Args:
        score: features [N, D] to scores [N].
        states: features, [N, D].
        others: features that stand in every second place instead, [N, D]; they may be infinite or not a number.

    Raises:
        LawError: the law is broken.

    Example:
        >>> a_score_is_of_its_own_response(lambda h: h.sum(axis=-1), np.eye(4), np.full((4, 4), np.nan))
    """
    states, others = _narrow(states), _narrow(others)
    kept = np.arange(len(states)) % 2 == 0
    plain = _scores(score, states)
    mixed = _scores(score, np.where(kept[:, None], states, others))
    alone = np.concatenate([_scores(score, state[None]) for state in states])
    bound = _BATCH * np.abs(plain).max()
    for what, got, where in (("in another batch", mixed, kept), ("alone", alone, np.ones(len(kept), bool))):
        wrong = where & ~(np.abs(got - plain) <= bound)
        if wrong.any():
            raise LawError(
                f"the score of a response is another one {what}",
                _first(wrong, score=plain, **{what.replace(" ", "_"): got}),
                "Take no mean, spread or normalisation over the batch, and centre nothing.",
            )


def levels_are_kept(score: Score, state: Any, other: Any) -> None:
    """A batch of equal responses has their score, and a batch of other ones another: nothing is centred in silence.

    Args:
        score: features [N, D] to scores [N].
        state: features of the one response, [D].
        other: features of the other, [D].

    Raises:
        LawError: the law is broken.

    Example:
        >>> levels_are_kept(lambda h: h.sum(axis=-1), [1, 2], [3, 5])
    """
    one, two = (_scores(score, np.tile(_narrow(h), (4, 1))) for h in (state, other))
    _require(
        (one != two).any(),
        "two batches of equal responses have the same scores",
        {"scores": one.tolist()},
        "Do not subtract the mean of a batch or prompt: a level means nothing, and taking it away hides that.",
    )


def float32_is_kept(score: Score, states: Any) -> None:
    """Scores are at least float32, and move where features move by less than bfloat16 can see.

    Args:
        score: features [N, D] to scores [N].
        states: features, [N, D]; rounded to bfloat16 first.

    Raises:
        LawError: the law is broken.

    Example:
        >>> float32_is_kept(lambda h: h.sum(axis=-1), np.eye(4))
    """
    narrow = _narrow(jnp.asarray(states, jnp.bfloat16))
    # A quarter of the spacing of bfloat16, with signs that no mean or norm takes away.
    signs = np.where(np.arange(narrow.size).reshape(narrow.shape) * 7 % 5 < 2, 1, -1)
    moved = narrow * np.float32(1 + signs * 2.0**-11)
    got = _jitted_score(score)(narrow)
    _require(
        jnp.finfo(got.dtype).bits >= 32,
        "scores are narrower than float32",
        {"dtype": str(got.dtype)},
        "Score in float32: in bfloat16 the margin of (1, 0) + 1000 is 0.",
    )
    one, two = _wide(got), _scores(score, moved)
    _require(
        (one != two).any(),
        "features that differ by less than bfloat16 can see have the same scores",
        {"relative difference": 2.0**-11, "scores": one.tolist()},
        "Multiply in float32 with the highest precision of the device. A head whose weights are all 0 says nothing.",
    )


def a_bias_of_1_adds_1(score: Callable[[Any, Any], jax.Array], states: Any, bias: float) -> None:
    """A bias that is larger by 1 raises every score by 1, to an ulp of what is added.

    Args:
        score: features [N, D] and a bias to scores [N].
        states: features, [N, D].
        bias: the smaller one.

    Raises:
        LawError: the law is broken.

    Example:
        >>> a_bias_of_1_adds_1(lambda h, bias: h.sum(axis=-1) + bias, np.eye(4), 3.0)
    """
    low, high = (_wide(_jitted_score(score)(_narrow(states), np.float32(b))) for b in (bias, bias + 1))
    wrong = ~(np.abs(high - low - 1) <= 2 * _EPS * (np.abs(low) + abs(bias) + 2))
    if wrong.any():
        raise LawError(
            "a bias that is larger by 1 does not raise a score by 1",
            _first(wrong, score=low, with_1_more=high),
            "Add the bias last, in float32, and centre nothing behind it.",
        )


def check_head(
    score: Score, *, num_features: int = 16, with_bias: Callable[[Any, Any], jax.Array] | None = None
) -> None:
    """All laws of a head: its own response alone, levels kept, float32 kept, and a bias that adds.

    Args:
        score: features [N, D] to scores [N], with weights that are not all 0.
        num_features: D.
        with_bias: the same head as a function of features and a bias, if it has one.

    Raises:
        LawError: names the law and the case.

    Example:
        >>> from rmjax.head import Head, score
        >>> head = Head(jnp.arange(16.0))
        >>> check_head(lambda h: score(h, head), with_bias=lambda h, bias: score(h, Head(head.weight, bias)))
        >>> check_head(lambda h: score(h, head) - score(h, head).mean())
        Traceback (most recent call last):
        ...
        rmjax.testing.laws.LawError: ...
    """
    states = features(size=num_features)

    @settings(**_EXAMPLES)
    @given(states, states, st.sampled_from([None, np.inf, np.nan]), st.integers(-1000, 1000))
    def laws(some: np.ndarray, more: np.ndarray, bad: float | None, bias: int) -> None:
        a_score_is_of_its_own_response(score, some, more if bad is None else np.full_like(more, bad))
        # Directions of their own: a norm in the head takes the size away.
        levels_are_kept(score, some[0], some[1])
        float32_is_kept(score, some)
        if with_bias is not None:
            a_bias_of_1_adds_1(with_bias, some, float(bias))

    laws()


@functools.lru_cache(maxsize=64)
def _jitted_score(score: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
    return jax.jit(score)


def _scores(score: Score, states: np.ndarray) -> np.ndarray:
    """Scores in float64, compiled once a head and shape."""
    got = _jitted_score(score)(states)
    _require(
        got.shape == states.shape[:1],
        "a head has one score for each response",
        {"features": states.shape, "scores": got.shape},
        "Return scores [N]: a layer with one output needs its last axis taken away.",
    )
    return _wide(got)
