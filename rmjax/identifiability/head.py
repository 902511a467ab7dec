"""What comparisons say about a linear head on given features: its rank, its blind directions, its standard errors."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike
from scipy import linalg, special

from rmjax.checks import whole_numbers
from rmjax.comparisons import Comparisons, Ties
from rmjax.errors import DataError, IdentifiabilityError
from rmjax.identifiability.counted import counted_votes, numbers

CHUNK = 4096  # comparisons at a time: 32 MiB of float64 at 1,024 features


@dataclasses.dataclass(frozen=True)
class HeadIdentification:
    """The Fisher information of a head, split into what comparisons pin down and what they cannot see."""

    rank: int
    eigenvalues: np.ndarray  # [D] float64, of the information, largest first
    directions: np.ndarray  # [D, rank] orthonormal, most informative first
    null_directions: np.ndarray  # [D, D - rank] orthonormal; the head may move along them and no margin changes
    information: np.ndarray  # [D, D] float64, in votes per squared unit of the head
    threshold: float  # eigenvalues up to here count as 0
    ridge: float = 0.0
    gradients: np.ndarray | None = None  # [D, D] summed outer products of the clusters' gradients, if clustered

    def null_share(self, direction: Float[ArrayLike, "*b D"]) -> Float[np.ndarray, "*b"]:
        """Length of the part of a direction that no comparison can see, as a share of the whole; 0 of nothing.

        Args:
            direction: coefficients of a linear function of the head.

        Returns:
            Shares in [0, 1].

        Raises:
            DataError: a direction has another number of features, or is not finite.

        Example:
            >>> pairs = Comparisons.from_pairs([0], [1], prompt=[0, 0])
            >>> print(identify_head([[1.0, 1.0], [0.0, 1.0]], pairs).null_share([3.0, 4.0]))
            0.8
        """
        x = self._checked(direction)
        length = np.linalg.norm(x, axis=-1)
        unseen = np.linalg.norm(x @ self.null_directions, axis=-1)
        return np.minimum(unseen / np.where(length > 0, length, 1), 1.0)

    def standard_error(self, direction: Float[ArrayLike, "*b D"]) -> Float[np.ndarray, "*b"]:
        r"""Standard error of a linear function of the head, such as the margin of two answers.

        $$\mathrm{se}(x) = \sqrt{x^\top I^+ x}, \qquad \text{with clusters } \sqrt{x^\top I^+ B I^+ x}$$

        with $B$ the sum of outer products of the clusters' gradients. With a ridge $\tau$, the posterior deviation
        under a Gaussian prior of variance $1/\tau$: $I + \tau$ in place of $I$. A ridge makes numbers finite, and
        identifies nothing.

        Guarantees: only directions that comparisons can see have one; it is proportional to the length of x, and the
        same for x and -x; k times the votes divide it by the root of k; it is the same in every basis of the states.

        Args:
            direction: coefficients of the head; for a margin, the difference of the features of two answers.

        Returns:
            Standard errors in logits, float64.

        Raises:
            DataError: a direction has another number of features, or is not finite.
            IdentifiabilityError: more of a direction lies in the null space than the rank can tell from 0, which is
                a share of the root of `threshold` over the largest eigenvalue.

        Example:
            >>> votes = Comparisons.from_votes([0], [1], [2], [2], prompt=[0, 0])
            >>> print(identify_head([[1.0, 1.0], [0.0, 1.0]], votes).standard_error([1.0, 0.0]))
            1.0

        Reference:
            Bradley and Terry's model is a logistic regression on differences: Agresti, Categorical Data Analysis 2002.
        """
        x = self._checked(direction)
        share = self.null_share(x)
        largest = max(self.eigenvalues[0], np.finfo(float).tiny)
        seen = np.sqrt(max(self.threshold / largest, np.finfo(float).eps)) if self.rank else 0.0
        if (share > seen).any():
            at = int(np.flatnonzero(share.ravel() > seen)[0])
            raise IdentifiabilityError(
                "this direction has a part that no comparison can see",
                ({"direction": at} if x.ndim > 1 else {})
                | {"null_share": float(share.flat[at]), "rank": self.rank, "features": len(self.eigenvalues)},
                "Ask for the difference of two answers to one prompt, take the part along `null_directions` out, or "
                "collect comparisons of answers that differ there.",
            )
        kept = self.eigenvalues[: self.rank] + self.ridge
        along = x @ self.directions
        if self.gradients is None:
            return np.sqrt((np.square(along) / kept).sum(axis=-1))
        back = (along / kept) @ self.directions.T
        return np.sqrt(np.einsum("...d,...d->...", back @ self.gradients, back))

    def _checked(self, direction: ArrayLike) -> np.ndarray:
        x = numbers("direction", direction)
        if x.ndim == 0 or x.shape[-1] != len(self.eigenvalues) or not np.isfinite(x).all():
            raise DataError(
                "a direction has one finite number per feature",
                {"direction": x.shape, "features": len(self.eigenvalues)},
                "Give the difference of two rows of the features.",
            )
        return x


def identify_head(
    features: Float[ArrayLike, "N D"],
    comparisons: Comparisons,
    *,
    head: Float[ArrayLike, " D"] | None = None,
    margins: Float[ArrayLike, " E"] | None = None,
    ridge: float = 0.0,
    cluster: Int[ArrayLike, " E"] | None = None,
    tolerance: float | None = None,
    ties: Ties | None = None,
) -> HeadIdentification:
    r"""Fisher information of a linear head under Bradley-Terry, its rank and its null directions.

    $$I = \sum_e w_e n_e\,\sigma(\Delta_e)\,\sigma(-\Delta_e)\; d_e d_e^\top, \qquad
      d_e = h_{first(e)} - h_{second(e)}$$

    Only differences within prompts enter. A bias, and any feature that is constant within prompts, is null.

    The rank counts eigenvalues above a threshold: what float64 rounds, $4(D + \sqrt E)\,\epsilon$ of the largest, plus
    the most that the rounding of the features, of the type that they come in, can give to a direction without
    information, $u^2 \sum_e 2 w_e n_e \sigma\sigma\,(|h_{first}|^2 + |h_{second}|^2)$. Features that were computed in
    fewer bits than they are held in need a `tolerance`.

    Guarantees: symmetric, and no eigenvalue below 0 but by rounding; weight 0 is deletion, whatever the features are;
    a constant per prompt added to the features changes nothing; a basis change leaves the rank and all standard
    errors; with one feature per response it is the Laplacian of the graph.

    Args:
        features: what the head reads, of every response, such as states after the final norm, [N, D].
        comparisons: the votes.
        head: weights at which the information is taken, [D].
        margins: margins at which it is taken, [E], instead of those of a head. With neither every margin is 0.
        ridge: τ of a penalty τ|w|²/2, for standard errors of a penalised head.
        cluster: what gradients are summed by for clustered standard errors, [E]. Needs the head or margins that were
            fitted to these votes. No correction for few clusters is made.
        tolerance: eigenvalues up to this share of the largest count as 0, instead of the threshold above.
        ties: whether a tie counts as half a vote for either side ("half") or not ("drop").

    Returns:
        The information, its rank and directions, and standard errors on request.

    Raises:
        DataError: a shape does not fit, a number that counts is not finite, both `head` and `margins` are given, no
            vote counts, a ridge or tolerance is negative, or there are ties and `ties` is unset.

    Example:
        >>> pairs = Comparisons.from_pairs([0, 2], [1, 3], prompt=[0, 0, 1, 1])
        >>> states = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [2.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
        >>> found = identify_head(states, pairs)
        >>> found.rank, np.abs(found.null_directions.T).tolist()  # the last feature is a bias
        (2, [[0.0, 0.0, 1.0]])

    Reference:
        Ford, Solution of a ranking problem from binary comparisons, 1957, for the information of one comparison.
    """
    features, rounding = _features(features, comparisons)
    first, second, for_first, for_second, counts = counted_votes(comparisons, ties)
    _finite(features, np.unique(np.concatenate([first, second])))
    margin = _margins(features, first, second, counts, head, margins, comparisons.num_comparisons)
    for name, value in {"ridge": ridge, "tolerance": 0.0 if tolerance is None else tolerance}.items():
        if not 0 <= value < np.inf:
            raise DataError(f"a {name} is finite and not negative", {name: value}, "Give 0 or more.")
    if cluster is not None and head is None and margins is None:
        raise DataError(
            "clustered standard errors need the head that was fitted",
            {"cluster": np.shape(cluster)},
            "Give `head`, or the `margins` at the estimate.",
        )
    group = None if cluster is None else _clusters(cluster, comparisons.num_comparisons)
    conductance = (for_first + for_second) * special.expit(margin) * special.expit(-margin)
    information = np.zeros((features.shape[1],) * 2)
    energy = 0.0
    for at in _chunks(len(first)):
        h, k = (features[x[at]].astype(np.float64) for x in (first, second))
        energy += conductance[at] @ (np.square(h).sum(axis=1) + np.square(k).sum(axis=1))
        difference = np.sqrt(conductance[at])[:, None] * (h - k)
        information += difference.T @ difference
    eigenvalues, vectors = linalg.eigh(information)
    eigenvalues, vectors = eigenvalues[::-1], vectors[:, ::-1]
    if tolerance is None:
        float64 = 4 * (len(eigenvalues) + np.sqrt(len(first))) * np.finfo(float).eps
        threshold = float64 * eigenvalues[0] + 2 * rounding**2 * energy
    else:
        threshold = tolerance * eigenvalues[0]
    rank = int((eigenvalues > max(threshold, 0.0)).sum())
    gradients = None
    if group is not None:
        pull = for_first * special.expit(-margin) - for_second * special.expit(margin)
        gradients = _outer_products(features, first, second, pull, group[counts])
    return HeadIdentification(
        rank, eigenvalues, vectors[:, :rank], vectors[:, rank:], information, float(threshold), ridge, gradients
    )


def _features(features: ArrayLike, comparisons: Comparisons) -> tuple[np.ndarray, float]:
    """The features as they came, and the largest relative error of a number of their type."""
    given = np.asarray(features)
    if given.dtype.kind in "OUSb" or given.ndim != 2 or len(given) != comparisons.num_responses or not given.shape[1]:
        raise DataError(
            "there is one row of features, which are numbers, per response",
            {"features": given.shape, "responses": comparisons.num_responses},
            "Give [N, D], in the order of `comparisons.prompt`.",
        )
    floating = jnp.issubdtype(given.dtype, jnp.floating)
    return given, float(jnp.finfo(given.dtype).eps) / 2 if floating else 0.0


def _finite(features: np.ndarray, used: np.ndarray) -> None:
    """Refuse features that are no numbers, of responses that count."""
    for at in _chunks(len(used)):
        bad = np.argwhere(~np.isfinite(features[used[at]].astype(np.float64)))
        if len(bad):
            response, feature = int(used[at][bad[0, 0]]), int(bad[0, 1])
            raise DataError(
                "a feature of a response that is judged is finite",
                {"response": response, "feature": feature, "value": float(features[response, feature])},
                "Mend the states, or give the comparisons of this response weight 0.",
            )


def _margins(
    features: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
    counts: np.ndarray,
    head: ArrayLike | None,
    margins: ArrayLike | None,
    edges: int,
) -> np.ndarray:
    """Margins of the comparisons that count, in float64."""
    if head is not None and margins is not None:
        raise DataError("margins are those of a head, or given", {"given": "both"}, "Give `head` or `margins`.")
    if head is not None:
        weight = numbers("head", head)
        if weight.shape != features.shape[1:]:
            raise DataError(
                "a head has one weight per feature",
                {"head": weight.shape, "features": features.shape[1]},
                "Give [D]. A bias cancels in margins: leave it out.",
            )
        parts = ((features[first[at]].astype(np.float64) - features[second[at]]) @ weight for at in _chunks(len(first)))
        margin = np.concatenate(list(parts))
    else:
        margin = np.zeros(edges) if margins is None else numbers("margins", margins)
        if margin.shape != (edges,):
            raise DataError(
                "there is one margin per comparison",
                {"margins": margin.shape, "comparisons": edges},
                "Give losses.margins(scores, comparisons).",
            )
        margin = margin[counts]
    if not np.isfinite(margin).all():
        at = int(np.flatnonzero(~np.isfinite(margin))[0])
        raise DataError(
            "a margin that counts is finite",
            {"comparison": int(counts[at]), "margin": float(margin[at])},
            "Mend the head or the score, or give the comparison weight 0.",
        )
    return margin


def _clusters(cluster: ArrayLike, edges: int) -> np.ndarray:
    group = whole_numbers("cluster", cluster)
    if group.shape != (edges,):
        raise DataError(
            "there is one cluster per comparison",
            {"cluster": group.shape, "comparisons": edges},
            "Give the prompt, the annotator or the source of every comparison.",
        )
    return group


def _outer_products(
    features: np.ndarray, first: np.ndarray, second: np.ndarray, pull: np.ndarray, group: np.ndarray
) -> np.ndarray:
    """Sum over clusters of the outer product of their gradient, a chunk of comparisons at a time."""
    order = np.argsort(group, kind="stable")
    total = np.zeros((features.shape[1],) * 2)
    # The last cluster of a chunk may go on in the next one: it is carried over.
    carried, name = np.zeros((0, features.shape[1])), None
    for at in _chunks(len(order)):
        rows = order[at]
        gradient = pull[rows, None] * (features[first[rows]].astype(np.float64) - features[second[rows]])
        members = group[rows]
        starts = np.flatnonzero(np.diff(members, prepend=members[0] - 1))
        sums = np.add.reduceat(gradient, starts, axis=0)
        if members[0] == name:
            sums[0] += carried[0]
        else:
            total += carried.T @ carried
        carried, name = sums[-1:], members[-1]
        total += sums[:-1].T @ sums[:-1]
    return total + carried.T @ carried


def _chunks(size: int) -> Iterator[slice]:
    return (slice(at, at + CHUNK) for at in range(0, size, CHUNK))
