"""Whether a link with a parameter of its own has a maximum: directions in which no vote gets less likely."""

from __future__ import annotations

import numpy as np
from scipy import optimize, sparse

from rmjax.errors import IdentifiabilityError
from rmjax.losses.links import WITH_TIES
from rmjax.preferences.rows import Rows


def check_parameters(rows: Rows, items: int, link: str, position: bool, *, held: bool = False) -> None:
    r"""Refuse votes under which a threshold, a tie parameter or an effect of position has no finite estimate.

    Move the scores by $\beta$, the tie parameter by $\sigma$ and the effect of position by $\delta$. A win of i over j,
    with $d = \beta_i - \beta_j + \delta z$, gets no less likely for ever where $d \ge 0$ and $d \ge c\sigma$, a tie
    where $|d| \le c\sigma$; c is 1 for Rao and Kupper, 2 for Davidson. If any such direction raises the likelihood,
    there is no maximum.

    Args:
        rows: within strong components, so that the scores alone have a maximum; all rows where scores are held.
        items: number of items in them.
        link: "bradley_terry", "thurstone", "rao_kupper" or "davidson".
        position: whether the effect of the order of presentation is fitted.
        held: a ridge holds the scores, so that only the parameters can move without end.

    Raises:
        IdentifiabilityError: says which parameter is infinite.

    Reference:
        Albert and Anderson, On the existence of maximum likelihood estimates in logistic regression models, Biometrika
        1984.
    """
    tied = link in WITH_TIES
    won = rows.votes[:, :2] > 0
    if tied:
        _check_ties(rows, won)
    if not tied and not position:
        return
    if _bounded(rows, won[:, 0] & won[:, 1], items, position):
        return
    direction = _direction(rows, won, items, tied, position, held)
    if direction is None:
        return
    names = (("the tie parameter",) if tied else ()) + (("the effect of position",) if position else ())
    at = [name for name, part in zip(names, direction[items:]) if abs(part) > 1e-6]
    raise IdentifiabilityError(
        f"{' and '.join(at)} would be infinite: in some direction no vote gets less likely, and the likelihood has no "
        "maximum",
        dict(zip(names, np.round(direction[items:], 3).tolist())),
        "Collect pairs of which both sides win in the same order of presentation, and in both orders; or fit a link "
        "without this parameter.",
    )


def _check_ties(rows: Rows, won: np.ndarray) -> None:
    """Ties and wins have to be there, or the parameter is at its end."""
    draws = float(rows.votes[:, 2].sum())
    if draws == 0 or not won.any():
        raise IdentifiabilityError(
            "the tie parameter is at the end of its range",
            {"ties": draws, "wins": float(rows.votes[:, :2].sum())},
            'Without ties fit link="bradley_terry"; with ties alone there is nothing to fit.',
        )


def _bounded(rows: Rows, both: np.ndarray, items: int, position: bool) -> bool:
    """A pair that both sides won, in both orders if those count: then no direction is left. Nearly all data have
    one."""
    if not position:
        return bool(both.any())
    key = rows.first[both].astype(np.int64) * items + rows.second[both]
    orders = rows.order[both]
    return bool(np.isin(key[orders > 0], key[orders < 0]).any())


def _direction(rows: Rows, won: np.ndarray, items: int, tied: bool, position: bool, held: bool) -> np.ndarray | None:
    """A direction that raises the likelihood without end, by linear programming; None where there is none."""
    edges = np.arange(len(rows.first))
    blocks = []

    def block(where: np.ndarray, sign: float, threshold: float) -> None:
        e = edges[where]
        at = np.arange(len(e))
        row, column = [at, at], [rows.first[e], rows.second[e]]
        value = [np.full(len(e), sign), np.full(len(e), -sign)]
        for k, part in enumerate(
            ([np.full(len(e), threshold)] if tied else []) + ([sign * rows.order[e]] if position else [])
        ):
            row.append(at)
            column.append(np.full(len(e), items + k))
            value.append(part)
        size = items + tied + position
        places = (np.concatenate(row), np.concatenate(column))
        blocks.append(sparse.coo_array((np.concatenate(value), places), shape=(len(e), size)))

    for side, sign in ((0, 1.0), (1, -1.0)):
        block(won[:, side], sign, 0.0)
        if tied:
            block(won[:, side], sign, -1.0)  # in units in which c is 1
    if tied:
        for sign in (1.0, -1.0):
            block(rows.votes[:, 2] > 0, sign, 1.0)
    gains = sparse.csr_array(sparse.vstack(blocks))
    reach = np.full(items + tied + position, len(edges) + 1.0)
    reach[:items] *= not held
    # How much the likelihood can gain, each vote by at most 1: 0 where every direction loses somewhere.
    found = optimize.linprog(
        -np.asarray(gains.sum(axis=0)).ravel(),
        A_ub=sparse.vstack([-gains, gains]),
        b_ub=np.repeat([0.0, 1.0], len(gains.indptr) - 1),
        bounds=np.stack([-reach, reach], axis=1),
        method="highs",
    )
    return np.asarray(found.x) if found.status == 0 and -float(found.fun) > 1e-7 else None
