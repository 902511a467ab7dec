"""Hypothesis strategies of margins, votes, comparison graphs, features and heads.

Hypothesis draws what matters, a seed, a scale and a few wicked entries, and NumPy the bulk: thousands of cases an
example, at one shape, so that a jitted function compiles once. What fails shrinks to the simplest scale and seed.

>>> from hypothesis import given, settings
>>> from rmjax import losses
>>> @settings(deadline=None)  # the first example compiles
... @given(margins())
... def test_the_loss_of_the_other_side_differs_by_the_margin(margin):
...     difference = losses.bradley_terry(-margin) - losses.bradley_terry(margin)
...     assert (abs(difference - margin) <= 1e-6 * (1 + abs(margin))).all()
>>> test_the_loss_of_the_other_side_differs_by_the_margin()
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st

from rmjax.comparisons import Comparisons
from rmjax.head import Head
from rmjax.votes import Votes

# Where formulas break: signed zeros, a denormal's neighbour, where 1 - σ or a curvature of autodiff vanishes.
WICKED = (0.0, -0.0, 1e-38, 1.0, 12.0, 15.0, 16.0, 17.0, 20.0, 37.0)
# The shape of drawn comparisons.
PROMPTS, PER_PROMPT, SIZE = 3, 4, 24


def generators() -> st.SearchStrategy[np.random.Generator]:
    """NumPy generators from a drawn seed.

    Example:
        >>> generators().map(lambda rng: rng.uniform()).example() < 1  # doctest: +SKIP
        True
    """
    return st.integers(0, 2**32 - 1).map(np.random.default_rng)


@st.composite
def margins(draw: st.DrawFn, *, size: int = 4096, largest: float = 80.0, dtype: Any = np.float32) -> np.ndarray:
    """Margins of one scale with both signs, wicked ones among them.

    Args:
        size: how many; at least 40.
        largest: all lie within [-largest, largest], and both ends occur. XLA's CPU flushes denormals, so that e^-80 is
            about the last power that float32 holds there.
        dtype: of the array.

    Returns:
        A strategy of arrays [size].

    Example:
        >>> margins(size=64)
        margins(size=64)
    """
    scale = draw(st.sampled_from([1e-3, 1.0, 20.0, largest]))
    rng = draw(generators())
    drawn = draw(st.lists(st.floats(0, largest), max_size=8))
    wicked = np.minimum([*WICKED, largest, *drawn], largest)
    bulk = np.clip(scale * rng.uniform(-1, 1, size), -largest, largest)
    bulk[: 2 * len(wicked)] = np.concatenate([wicked, -wicked])
    return bulk.astype(dtype)


@st.composite
def shares(draw: st.DrawFn, *, size: int = 4096) -> np.ndarray:
    """Shares of annotators in [0, 1], float32: near both ends, around the middle, and 0 and 1 themselves.

    Args:
        size: how many; at least 2.

    Returns:
        A strategy of arrays [size].

    Example:
        >>> shares(size=8)
        shares(size=8)
    """
    rng = draw(generators())
    share = rng.beta(*draw(st.sampled_from([(1, 1), (0.1, 0.1), (20, 2)])), size)
    share[:2] = 0, 1
    return share.astype(np.float32)


def pairs_within(
    rng: np.random.Generator, prompts: int, per_prompt: int, size: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random pairs of responses to one prompt, some of them more than once, and the prompt of every response.

    Args:
        rng: what draws.
        prompts: number of prompts.
        per_prompt: responses to each; at least 2.
        size: number of pairs.

    Returns:
        First [size], second [size] and prompt [prompts * per_prompt].

    Example:
        >>> first, second, prompt = pairs_within(np.random.default_rng(0), 3, 4, 100)
        >>> bool((prompt[first] == prompt[second]).all() and (first != second).all())
        True
    """
    offset = rng.integers(0, prompts, size) * per_prompt
    low = rng.integers(0, per_prompt, size)
    high = (low + rng.integers(1, per_prompt, size)) % per_prompt
    return offset + low, offset + high, np.repeat(np.arange(prompts), per_prompt)


@st.composite
def comparisons(
    draw: st.DrawFn,
    *,
    prompts: int = PROMPTS,
    per_prompt: int = PER_PROMPT,
    size: int = SIZE,
    ties: bool = False,
    weighted: bool = True,
) -> Comparisons:
    """Judged pairs within prompts: repeated pairs, contradicting votes, islands, some comparisons of weight 0.

    Votes and weights are multiples of 1/4, so that float32 holds their products and sums exactly.

    Args:
        prompts: number of prompts.
        per_prompt: responses to each; at least 2.
        size: number of comparisons.
        ties: whether some votes are ties.
        weighted: whether weights differ from 1.

    Returns:
        A strategy of `Comparisons`, all of one shape.

    Example:
        >>> comparisons(ties=True)
        comparisons(ties=True)
    """
    rng = draw(generators())
    first, second, prompt = pairs_within(rng, prompts, per_prompt, size)
    a, b = rng.integers(0, 9, (2, size)) / 4
    tied = rng.integers(0, 5, size) / 4 * ties
    weight = rng.integers(0, 5, size) / 4 if weighted else np.ones(size)
    return Comparisons.from_votes(first, second, a, b, prompt, ties=tied, weight=weight)


@st.composite
def scored_comparisons(draw: st.DrawFn, **options: Any) -> tuple[np.ndarray, Comparisons]:
    """Scores [N] of one scale, float32, with judged pairs.

    Args:
        **options: of `comparisons`.

    Returns:
        A strategy of (scores, comparisons).

    Example:
        >>> scored_comparisons(prompts=1)
        scored_comparisons(prompts=1)
    """
    judged = draw(comparisons(**options))
    scale = draw(st.sampled_from([0.1, 3.0, 30.0]))
    return draw(generators()).normal(0, scale, judged.num_responses).astype(np.float32), judged


@st.composite
def votes(draw: st.DrawFn, *, items: int = 6, annotators: int = 5, largest: int = 40) -> Votes:
    """Single judgements in long form: some items without any, some annotators twice, ties and abstentions.

    Args:
        items: number of judged comparisons.
        annotators: number of annotators.
        largest: number of votes at most.

    Returns:
        A strategy of `Votes`.

    Example:
        >>> votes(items=2)
        votes(items=2)
    """
    size, rng = draw(st.integers(0, largest)), draw(generators())
    return Votes.build(rng.integers(0, items, size), rng.integers(0, annotators, size), rng.integers(0, 4, size))


@st.composite
def features(draw: st.DrawFn, *, responses: int = 12, size: int = 16, dtype: Any = np.float32) -> np.ndarray:
    """Hidden states of responses, of one scale, with a constant part as large as what differs.

    Args:
        responses: N.
        size: D.
        dtype: of the array.

    Returns:
        A strategy of arrays [responses, size].

    Example:
        >>> features(size=4)
        features(size=4)
    """
    scale, rng = draw(st.sampled_from([0.1, 1.0, 10.0])), draw(generators())
    return (scale * (rng.normal(size=(responses, size)) + rng.normal(size=size))).astype(dtype)


@st.composite
def heads(draw: st.DrawFn, *, size: int = 16, bias: bool = False) -> Head:
    """Scalar heads on `size` features.

    Args:
        size: D.
        bias: whether it has one.

    Returns:
        A strategy of `Head`.

    Example:
        >>> heads(bias=True)
        heads(bias=True)
    """
    rng = draw(generators())
    weight = jnp.asarray(rng.normal(size=size), jnp.float32)
    return Head(weight, jnp.float32(rng.normal()) if bias else None)
