"""Published counts: what their sources say of them in total."""

import numpy as np
import pytest

from rmjax.preferences import published


def test_every_two_teams_met_thirteen_times():
    met = published.BASEBALL + published.BASEBALL.T
    np.testing.assert_array_equal(met[~np.eye(7, dtype=bool)], 13)
    np.testing.assert_array_equal(published.BASEBALL.sum(axis=1), [18, 40, 31, 47, 50, 43, 44])


@pytest.mark.parametrize(
    ("wins", "ties"),
    [(published.PUDDING, published.PUDDING_TIES), (published.SPRINGALL, published.SPRINGALL_TIES)],
)
def test_ties_are_of_both_and_nothing_meets_itself(wins, ties):
    np.testing.assert_array_equal(ties, ties.T)
    assert not np.diag(wins).any()
    assert not np.diag(ties).any()


def test_a_pudding_was_tasted_against_each_other_one_as_often_as_davidson_says():
    tasted = (published.PUDDING + published.PUDDING.T + published.PUDDING_TIES)[np.triu_indices(6, k=1)]
    np.testing.assert_array_equal(tasted, [57, 47, 54, 50, 51, 48, 51, 48, 54, 54, 48, 41, 47, 51, 44])


@pytest.mark.parametrize(("wins", "people"), [(published.SUSHI, 5000), (published.NETFLIX, 588)])
def test_everybody_ordered_every_pair(wins, people):
    np.testing.assert_array_equal((wins + wins.T)[~np.eye(len(wins), dtype=bool)], people)


def test_the_pairs_of_the_films_are_those_of_their_orders():
    orders = published.netflix()
    wins = np.zeros((4, 4), int)
    for order, often in zip(orders.items, orders.weight, strict=True):
        wins[order[:, None], order] += np.triu(np.ones((4, 4), int), k=1) * int(often)
    np.testing.assert_array_equal(wins, published.NETFLIX)


def test_who_ordered_and_labelled_how_often():
    assert published.salad().weight.sum() == 32
    labels = published.anaesthetists()
    np.testing.assert_array_equal(labels.sum(axis=-1), np.tile([3, 1, 1, 1, 1], (45, 1)))


def test_a_race_has_43_starters_each_of_them_once():
    everybody = published.nascar(all_drivers=True)
    assert everybody.items.shape == (36, 43)
    assert everybody.mask.all()
    assert all(len(set(race)) == 43 for race in everybody.items.tolist())
    assert set(everybody.items.ravel().tolist()) == set(range(87))
    assert (everybody.items[:, :-1] < published.DRIVERS).all()  # the four are last
    without = published.nascar()
    assert set(without.items[without.mask].tolist()) == set(range(published.DRIVERS))
    np.testing.assert_array_equal((~without.mask).sum(axis=1).nonzero()[0], [4, 7, 10, 14, 30])


def test_counts_cannot_be_overwritten():
    with pytest.raises(ValueError, match="read-only"):
        published.BASEBALL[0, 1] = 5
