"""An evaluation refuses arrays that do not fit, and a lens whose end is not the margin."""

import dataclasses

import numpy as np
import pytest

from rmjax.diagnostics import Evaluation, Provenance, swap_check
from rmjax.errors import DataError, ReadoutError
from tests.diagnostics.worlds import world


def evaluation(seed=0, **changes):
    margins, comparisons, gold, lengths, cluster = world(seed)
    rng = np.random.default_rng(seed)
    layers = np.vstack([rng.normal(0, 1, (3, len(margins))), margins])
    votes = np.stack([comparisons.wins_first, comparisons.wins_second, comparisons.ties], axis=1)
    given = {"gold": gold, "votes": votes, "layer_margins": layers, "ties": "drop"} | changes
    return Evaluation(margins, comparisons, cluster, lengths, Provenance("m", "f", "file"), **given)


@pytest.mark.parametrize("name", ["margins", "cluster", "token_lengths", "gold", "votes", "layer_margins"])
def test_every_array_fits_the_comparisons(name):
    whole = evaluation()
    short = getattr(whole, name)[..., :-1] if name == "layer_margins" else getattr(whole, name)[:-1]
    with pytest.raises(DataError, match=name):
        dataclasses.replace(whole, **{name: short})
    if name in ("votes", "layer_margins"):
        with pytest.raises(DataError, match=name):
            dataclasses.replace(whole, **{name: np.zeros(len(whole.margins))})


def test_the_last_layer_is_the_model():
    whole = evaluation()
    assert whole.end_point_residual == 0
    assert dataclasses.replace(whole, layer_margins=None).end_point_residual == 0
    with pytest.raises(ReadoutError, match="last layer") as refusal:
        dataclasses.replace(whole, layer_margins=whole.layer_margins + 0.1)
    assert refusal.value.numbers["largest_relative_difference"] == pytest.approx(
        0.1 / np.abs(whole.margins).max(), rel=1e-6
    )


def test_padding_is_not_looked_at():
    whole = evaluation()
    padded = whole.comparisons.pad(len(whole.margins) + 1, len(whole.token_lengths))
    margins = np.append(whole.margins, np.nan)
    layers = np.hstack([whole.layer_margins, np.full((4, 1), 7.0)])
    with_padding = dataclasses.replace(
        whole,
        comparisons=padded,
        margins=margins,
        layer_margins=layers,
        cluster=np.append(whole.cluster, 0),
        gold=np.append(whole.gold, 0),
        votes=np.vstack([whole.votes, [[0, 0, 0]]]),
    )
    assert with_padding.used.sum() == len(whole.margins)
    nothing = dataclasses.replace(whole.comparisons, weight=np.zeros(len(whole.margins)))
    assert dataclasses.replace(whole, comparisons=nothing).end_point_residual == 0


def test_a_swap_check_passes_where_margins_change_their_sign_and_nothing_else():
    margins = np.array([1.0, -2.0, 0.0, 3.0])
    exact = swap_check(margins, -margins)
    assert (exact.comparisons, exact.largest_sum, exact.kept, exact.passed) == (4, 0, 0, True)
    rounded = swap_check(margins, -margins + 1e-5)
    assert rounded.passed
    assert rounded.largest_sum == pytest.approx(1e-5)
    # A model that adds 0.5 to whatever stands first: all decisions flip, and yet the side matters.
    sided = swap_check(margins + 0.5, -margins + 0.5)
    assert (sided.kept, sided.passed) == (1, False)
    assert not swap_check(margins[:2] + 0.5, -margins[:2] + 0.5).passed
    assert swap_check([1e-4], [1e-4]).kept == 0
    assert swap_check([1.0, np.nan, 1.0], [0.0, 1.0, np.nan]).kept == 3
    assert swap_check([], []).passed
    assert not swap_check([np.nan], [1.0]).passed
    with pytest.raises(DataError, match="exchanged"):
        swap_check([1.0], [1.0, 2.0])
