"""Laws of settling: what it does not depend on, where it begins, and when it refuses."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmjax import Comparisons
from rmjax.diagnostics import Targets, settled_layer, settling_curve
from rmjax.errors import DataError
from tests.diagnostics.worlds import swap, world

seeds = st.integers(0, 2**32 - 1)


def forming(seed, layers=6):
    """Margins that grow with depth and flip their sign on the way."""
    margins, comparisons, _, _, cluster = world(seed)
    rng = np.random.default_rng(seed)
    depth = np.linspace(0, 1, layers + 1)[:, None]
    layer_margins = depth * margins + (1 - depth) * rng.normal(0, 2, (layers + 1, len(margins)))
    return layer_margins, comparisons, cluster


def by_hand(column, noise):
    """First layer from which every later sign is the last one."""
    if abs(column[-1]) <= noise:
        return np.nan
    for layer in range(len(column)):
        if all(np.sign(m) == np.sign(column[-1]) for m in column[layer:]):
            return layer
    raise AssertionError


@given(seed=seeds, noise=st.sampled_from([0.0, 0.3]))
def test_settled_layer_is_the_first_that_no_later_layer_contradicts(seed, noise):
    layer_margins, _, _ = forming(seed)
    layer_margins[2, :5] = 0
    expected = [by_hand(column, noise) for column in layer_margins.T]
    np.testing.assert_array_equal(settled_layer(layer_margins, noise=noise), expected)


@given(seed=seeds)
def test_neither_scale_nor_sides_matter(seed):
    layer_margins, comparisons, cluster = forming(seed)
    rng = np.random.default_rng(seed)
    flip = rng.random(len(cluster)) < 0.5
    per_layer = rng.uniform(0.1, 10, (len(layer_margins), 1))
    expected = settled_layer(layer_margins)
    np.testing.assert_array_equal(settled_layer(per_layer * layer_margins), expected)
    np.testing.assert_array_equal(settled_layer(np.where(flip, -1, 1) * layer_margins), expected)
    curve = settling_curve(layer_margins, Targets.from_votes(comparisons, cluster=cluster, ties="drop"))
    mirrored = Targets.from_votes(swap(comparisons, flip), cluster=cluster, ties="drop")
    assert settling_curve(np.where(flip, -1, 1) * layer_margins, mirrored) == curve


@given(seed=seeds, scale=st.floats(0.01, 100))
def test_one_scale_for_all_rescales_the_margins_and_nothing_else(seed, scale):
    layer_margins, comparisons, cluster = forming(seed)
    labels = Targets.from_votes(comparisons, cluster=cluster, ties="drop")
    a, b = settling_curve(layer_margins, labels), settling_curve(scale * layer_margins, labels)
    np.testing.assert_allclose(
        [e.value for e in b.aligned_margin], [scale * e.value for e in a.aligned_margin], rtol=1e-9, atol=1e-12
    )
    assert (a.same_sign, a.accuracy, a.settled_depth, a.population_layer) == (
        b.same_sign,
        b.accuracy,
        b.settled_depth,
        b.population_layer,
    )


@given(seed=seeds)
def test_ends_of_the_curve(seed):
    layer_margins, comparisons, cluster = forming(seed)
    labels = Targets.from_votes(comparisons, cluster=cluster, ties="drop")
    curve = settling_curve(layer_margins, labels)
    decided = (labels.counts > 0) & (layer_margins[-1] != 0)
    assert curve.depth[0] == 0
    assert curve.depth[-1] == 1
    assert curve.same_sign[-1].value == 1
    assert not curve.same_sign[-1].has_interval
    assert "the decision itself" in curve.same_sign[-1].method
    assert curve.aligned_margin[-1].value == pytest.approx(np.abs(layer_margins[-1, decided]).mean())
    assert curve.undecided == ((labels.counts > 0) & ~decided).sum()
    settled = settled_layer(layer_margins)[decided]
    assert curve.settled_depth.value == pytest.approx(settled.mean() / 6)
    assert curve.settled_layer[1] == np.median(settled)


def chain(accuracies, prompts=200):
    """Layers with these accuracies: layer l is right on the first accuracies[l] of the prompts."""
    first = 2 * np.arange(prompts)
    pairs = Comparisons.from_pairs(first, first + 1, prompt=np.arange(2 * prompts) // 2)
    order = np.arange(prompts) / prompts
    margins = np.stack([np.where(order < a, 1.0, -1.0) for a in accuracies])
    return margins, Targets.from_votes(pairs, cluster=np.arange(prompts))


@pytest.mark.parametrize(
    ("accuracies", "layer"),
    [((0.5, 0.6, 0.79, 0.8), 2), ((0.8, 0.5, 0.8), 2), ((0.8, 0.81, 0.8), 0), ((0.5, 0.95, 0.8), 2)],
)
def test_population_settles_where_accuracy_enters_the_final_interval_for_good(accuracies, layer):
    curve = settling_curve(*chain(accuracies))
    assert (curve.population_layer, curve.reason) == (layer, "")


@pytest.mark.parametrize(("accuracies", "prompts", "reason"), [((0.5, 0.52), 200, "one half"), ((0, 1), 1, "interval")])
def test_population_refuses_what_cannot_be_told_from_chance(accuracies, prompts, reason):
    curve = settling_curve(*chain(accuracies, prompts))
    assert curve.population_layer is None
    assert reason in curve.reason


def test_margins_within_the_noise_decide_nothing():
    margins, labels = chain((0.5, 0.8))
    curve = settling_curve(1e-7 * margins, labels, noise=1e-6)
    assert curve.undecided == 200
    assert np.isnan(curve.settled_depth.value)
    assert np.isnan(curve.settled_layer).all()
    assert curve.accuracy[-1].value == pytest.approx(0.8)


def test_layers_are_checked():
    _, labels = chain((0.5, 0.8))
    with pytest.raises(DataError, match="two depths"):
        settled_layer([[1.0, 2.0]])
    with pytest.raises(DataError, match="one column"):
        settling_curve(np.ones((3, 5)), labels)
