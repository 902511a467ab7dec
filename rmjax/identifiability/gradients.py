"""What one step of gradient descent does to scores: what it promises with free scores, and not with a shared head.

A step on one pair raises the chosen and lowers the rejected answer if every score is a parameter of its own. If a head
on features is shared it need not:

>>> from rmjax.identifiability.gradients import blind_step, head_step, score_step
>>> case = blind_step()
>>> print(score_step(case.features @ case.head, case.trained))
[ 0.5 -0.5  0.   0. ]
>>> print(head_step(case.head, case.features, case.trained))  # the chosen falls, and so does the margin of 2 over 3
[-0.5 -1.5 -1.  -0.5]
"""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy import sparse, special
from scipy.sparse import csgraph, linalg

from rmjax.arrays import Array, at_least_float32
from rmjax.comparisons import Comparisons, Ties, check_ties
from rmjax.errors import DataError, GaugeError, IdentifiabilityError
from rmjax.identifiability.counted import counted_votes, numbers
from rmjax.identifiability.gauge import PADDING
from rmjax.losses.kernels import probability, times_votes
from rmjax.losses.likelihood import margins

STATIONARY = 1e-5  # a gradient up to this share of all votes is that of an estimate in float32


def score_step(
    scores: Float[Array, " N"],
    comparisons: Comparisons,
    *,
    step: Float[Array, ""] | float = 1.0,
    ties: Ties | None = None,
) -> Float[jax.Array, " N"]:
    r"""Change of every score in one step of gradient descent, if every score is a parameter of its own.

    $$\delta r_i = \eta \sum_{e \ni i} \pm\, w_e \big(a_e\,\sigma(-\Delta_e) - b_e\,\sigma(\Delta_e)\big)
      = \eta \sum_j (W_{ij} - n_{ij} p_{ij})$$

    Guarantees: of a pair on its own, the chosen rises and the rejected falls by the same; changes sum to 0 within
    every prompt; responses that no vote reads do not move, and where no vote counts nothing leaks.

    Args:
        scores: one score per response, in logits up to one constant per prompt.
        comparisons: the votes.
        step: η, the learning rate on the summed loss.
        ties: whether a tie counts as half a vote for either side ("half") or not ("drop").

    Returns:
        Changes in logits, at least float32.

    Raises:
        DataError: there is not one score per response, or as `negative_log_likelihood` for ties.

    Example:
        >>> print(score_step(jnp.array([0.0, 0.0]), Comparisons.from_pairs([0], [1], prompt=[0, 0])))
        [ 0.5 -0.5]

    Reference:
        Hunter, MM algorithms for generalized Bradley-Terry models, Annals of Statistics 2004: the score equations.
    """
    pull = _pull(scores, comparisons, ties)
    change = jnp.zeros(comparisons.num_responses, pull.dtype)
    change = change.at[comparisons.first].add(pull).at[comparisons.second].add(-pull)
    return change * jnp.asarray(step, pull.dtype)


def head_step(
    head: Float[Array, " D"],
    features: Float[Array, "N D"],
    comparisons: Comparisons,
    *,
    step: Float[Array, ""] | float = 1.0,
    ties: Ties | None = None,
) -> Float[jax.Array, " N"]:
    r"""Change of every score in one step of gradient descent on a head that all responses share.

    $$\delta r = H\,\delta w = \eta\, H H^\top (W - n p)$$

    What a step on one pair does to response k is $\eta\,\sigma(-\Delta)\,h_k \cdot (h_{chosen} - h_{rejected})$. It
    lowers the chosen itself where $h_{chosen} \cdot h_{rejected} > |h_{chosen}|^2$, and it lowers the margin of another
    pair, even one that agrees with its own label, where the two differences of features point apart: `blind_step`.

    Guarantees: padding does not move, and nothing of it leaks; the margin of a pair that is trained on its own does not
    fall. Nothing more: neither does the chosen rise, nor do other margins stay. With one feature per response it is
    `score_step`.

    Args:
        head: weights.
        features: what the head reads, of every response.
        comparisons: the votes.
        step: η, the learning rate on the summed loss.
        ties: as `score_step`.

    Returns:
        Changes in logits, at least float32.

    Raises:
        DataError: there is not one row of features per response, or one weight per feature, or as `score_step`.

    Example:
        >>> pairs = Comparisons.from_pairs([0], [1], prompt=[0, 0])
        >>> print(head_step(jnp.zeros(1), jnp.array([[1.0], [3.0]]), pairs))  # both fall, the rejected faster
        [-1. -3.]

    Reference:
        Fageot et al., Generalized Bradley-Terry models for score estimation from paired comparisons, AAAI 2024:
        monotonicity of free scores.
    """
    head, features = at_least_float32(head), at_least_float32(features)
    if head.ndim != 1 or features.shape != (comparisons.num_responses, head.size):
        raise DataError(
            "there is one row of features per response, and one weight per feature",
            {"features": features.shape, "responses": comparisons.num_responses, "head": head.shape},
            "Give [N, D] and [D].",
        )
    exact = jax.lax.Precision.HIGHEST
    # A row that is not finite spoils the scores of its pairs, if a vote reads them, and no other row or gradient.
    padding = jnp.asarray(comparisons.prompt) == PADDING
    whole = jnp.isfinite(features).all(axis=1) | padding
    finite = jnp.where((whole & ~padding)[:, None], features, 0)
    scores = jnp.where(whole, jnp.matmul(finite, head.astype(features.dtype), precision=exact), jnp.nan)
    along = score_step(scores, comparisons, step=step, ties=ties)
    change = jnp.matmul(finite, jnp.matmul(along, finite, precision=exact), precision=exact)
    return jnp.where(whole, change, jnp.nan)


@dataclasses.dataclass(frozen=True)
class BlindStep:
    """Four responses, two pairs and a head: one step on the first pair lowers its chosen and the second margin."""

    features: np.ndarray  # [4, 2] float32
    head: np.ndarray  # [2] float32
    trained: Comparisons  # 0 chosen over 1: the step is on this pair
    other: Comparisons  # 2 chosen over 3: its margin falls


def blind_step() -> BlindStep:
    r"""The witness that a step with shared parameters need not raise what is chosen, nor keep what was learnt.

    $$h_0 \cdot (h_0 - h_1) = -1 < 0, \qquad (h_2 - h_3) \cdot (h_0 - h_1) = -1 < 0$$

    Guarantees: with free scores the same step raises response 0 and leaves 2 and 3 where they are.

    Returns:
        Features, a head that says nothing yet, and both pairs.

    Example:
        >>> case = blind_step()
        >>> change = head_step(case.head, case.features, case.trained)
        >>> print(change[0], change[2] - change[3])
        -0.5 -0.5

    Reference:
        The numbers are the smallest whole ones for which both hold.
    """
    prompt = [0, 0, 1, 1]
    return BlindStep(
        np.array([[1, 0], [2, 1], [1, 1], [1, 0]], np.float32),
        np.zeros(2, np.float32),
        Comparisons.from_pairs([0], [1], prompt),
        Comparisons.from_pairs([2], [3], prompt),
    )


def estimate_sensitivity(
    scores: Float[ArrayLike, " N"], comparisons: Comparisons, i: int, j: int, *, ties: Ties | None = None
) -> Float[np.ndarray, " N"]:
    r"""Change of every fitted score per added win of i over j, if every score is a parameter of its own.

    $$\frac{\partial \hat\theta}{\partial W_{ij}} = (1 - p_{ij})\, L^+ (e_i - e_j)$$

    with $L$ the Laplacian of conductances $n_{ij} p_{ij} (1 - p_{ij})$ and scores that sum to 0 in every component.

    Guarantees: a win of i raises i against every other response, and lowers j so; changes sum to 0; a win of j over i
    changes the same the other way, by p instead of 1 - p; responses of other components do not move. A head that is
    shared promises none of this.

    Args:
        scores: the maximum-likelihood estimate, in any gauge, [N].
        comparisons: the votes that it was fitted to.
        i: the response that would win.
        j: the one that would lose.
        ties: what the fit did with ties.

    Returns:
        Logits per vote, float64.

    Raises:
        DataError: there is not one finite score per response, i and j are not two responses, or the scores are not the
            estimate: the largest residual of wins minus expected wins is named.
        GaugeError: i and j answer two prompts.
        IdentifiabilityError: no votes connect i and j, or their component has no finite estimate.

    Example:
        >>> votes = Comparisons.from_votes([0], [1], [3], [1], prompt=[0, 0])
        >>> print(estimate_sensitivity([np.log(3), 0], votes, 0, 1))  # half of d log(W/1) / dW at W = 3
        [ 0.16666667 -0.16666667]

    Reference:
        Fageot et al., AAAI 2024, for the monotonicity; the formula is the implicit derivative of the score equations.
    """
    theta = numbers("scores", scores)
    size = comparisons.num_responses
    if theta.shape != (size,) or not (0 <= i < size and 0 <= j < size and i != j):
        raise DataError(
            "there is one score per response, and a win is of one response over another",
            {"scores": theta.shape, "responses": size, "i": i, "j": j},
            "Give [N] scores, and two indices from 0 to N - 1.",
        )
    prompts = [int(np.asarray(comparisons.prompt)[k]) for k in (i, j)]
    if prompts[0] != prompts[1]:
        raise GaugeError(
            "no vote can compare answers to two prompts",
            {"i": i, "j": j, "prompt_of_i": prompts[0], "prompt_of_j": prompts[1]},
            "Choose two answers to one prompt.",
        )
    first, second, a, b, _ = counted_votes(comparisons, ties)
    member = _component(first, second, a, b, i, j, size)
    inside = np.isin(first, member)
    first, second, a, b = (x[inside] for x in (first, second, a, b))
    margin = theta[first] - theta[second]
    pull = a * special.expit(-margin) - b * special.expit(margin)
    residual = np.bincount(first, pull, size) - np.bincount(second, pull, size)
    worst = int(np.argmax(np.where(np.isfinite(residual), np.abs(residual), np.inf)))
    if not abs(residual[worst]) <= STATIONARY * (a + b).sum():
        raise DataError(
            "the scores are not the estimate of these votes",
            {"response": worst, "wins_minus_expected": float(residual[worst])},
            "Fit them to these votes by maximum likelihood, without a ridge.",
        )
    conductance = (a + b) * special.expit(margin) * special.expit(-margin)
    rows, columns = np.searchsorted(member, first), np.searchsorted(member, second)
    adjacency = sparse.coo_array((conductance, (rows, columns)), shape=(len(member),) * 2)
    laplacian = sparse.csc_array(csgraph.laplacian(adjacency + adjacency.T))
    current = 1.0 * (member == i) - 1.0 * (member == j)
    # Without its last row and column the Laplacian of a connected graph has an inverse: the last is at 0.
    potential = np.append(linalg.splu(laplacian[:-1, :-1]).solve(current[:-1]), 0.0)
    change = np.zeros(size)
    change[member] = special.expit(theta[j] - theta[i]) * (potential - potential.mean())
    return change


def _pull(scores: Array, comparisons: Comparisons, ties: Ties | None) -> jax.Array:
    """What the votes of every comparison pull its first score up by."""
    margin = margins(scores, comparisons)
    check_ties(comparisons, ties)
    a, b, tied, weight = (
        jnp.asarray(x, margin.dtype)
        for x in (comparisons.wins_first, comparisons.wins_second, comparisons.ties, comparisons.weight)
    )
    half = tied / 2 if ties == "half" else jnp.zeros_like(tied)
    a, b = times_votes(weight, a + half), times_votes(weight, b + half)
    margin = jnp.where(a + b == 0, 0, margin)
    return times_votes(a, probability(-margin)) - times_votes(b, probability(margin))


def _component(
    first: np.ndarray, second: np.ndarray, a: np.ndarray, b: np.ndarray, i: int, j: int, size: int
) -> np.ndarray:
    """The responses, in order, whose votes connect i and j, if their estimate is finite."""
    wins = sparse.coo_array((np.ones_like(a), (first, second)), shape=(size, size))
    _, weak = csgraph.connected_components(wins, directed=True, connection="weak")
    if weak[i] != weak[j]:
        raise IdentifiabilityError(
            "no votes connect the two responses",
            {"i": i, "j": j, "components": [int(weak[i]), int(weak[j])]},
            "Collect votes that connect them, directly or through others, in both directions.",
        )
    ends = np.concatenate([first[a > 0], second[b > 0]]), np.concatenate([second[a > 0], first[b > 0]])
    beaten = sparse.coo_array((np.ones(len(ends[0])), ends), shape=(size, size))
    _, strong = csgraph.connected_components(beaten, directed=True, connection="strong")
    member = np.flatnonzero(weak == weak[i])
    if np.unique(strong[member]).size > 1:
        raise IdentifiabilityError(
            "these votes have no finite estimate: some responses never lost to the others",
            {"i": i, "j": j, "responses": member.size, "strong_components": np.unique(strong[member]).size},
            "Collect votes until, for every split in two, each part has beaten the other once.",
        )
    return member
