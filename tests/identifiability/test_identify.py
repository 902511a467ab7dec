"""Laws of what comparisons pin down: by brute force over splits and paths, and refusals that say how to mend."""

import dataclasses
import re

import numpy as np
import pytest
from games import ALWAYS_WINNER, CHAIN, CIRCLE, ISLANDS, ITEMS, WEAK_BRIDGE, laplacian, reaches, splits, win_matrices
from hypothesis import given
from hypothesis import strategies as st

from rmjax import Comparisons, Rankings
from rmjax.errors import DataError, IdentifiabilityError, SampleSizeError
from rmjax.identifiability import identify
from rmjax.preferences import fit

pairs = [(i, j) for i in range(ITEMS) for j in range(ITEMS)]


@given(win_matrices(items=7))
def test_a_maximum_exists_exactly_where_no_split_went_one_way(wins):
    """All 126 splits of compared items in two: some item of either side beat some of the other."""
    met = reaches(wins + wins.T)
    one_way = [
        mask
        for mask in splits(len(wins))
        if (wins[np.ix_(mask, ~mask)].sum() == 0) != (wins[np.ix_(~mask, mask)].sum() == 0)
    ]
    report = identify(Comparisons.from_wins(wins))
    assert report.exists == (not one_way)
    assert report.unique == (report.exists and met.all())
    assert (report.separating_cut is None) == report.exists


@given(win_matrices())
def test_components_are_who_reaches_whom(wins):
    report = identify(Comparisons.from_wins(wins))
    together, beat = reaches(wins + wins.T), reaches(wins)
    for label, same in ((report.components, together), (report.strong_components, beat & beat.T)):
        np.testing.assert_array_equal(label[:, None] == label, same)
    assert report.num_components == len(np.unique(report.components))
    assert report.num_strong_components == len(np.unique(report.strong_components))


@given(win_matrices())
def test_the_status_of_a_contrast_is_that_of_the_paths_between(wins):
    report, beat = identify(Comparisons.from_wins(wins)), reaches(wins)
    for i, j in pairs:
        up, down = beat[i, j], beat[j, i]
        want = "identified" if up and down else "infinite" if up or down else "unidentified"
        assert report.status(i, j) == want


@given(win_matrices())
def test_a_cut_is_a_split_of_compared_items_that_went_one_way(wins):
    report, met = identify(Comparisons.from_wins(wins)), reaches(wins + wins.T)
    cuts = [] if report.separating_cut is None else [(report.separating_cut, None)]
    cuts += [(report.cut_between(i, j), (i, j)) for i, j in pairs if report.status(i, j) == "infinite"]
    for cut, ends in cuts:
        assert len(cut.winners)
        assert len(cut.losers)
        assert not set(cut.winners) & set(cut.losers)
        assert wins[np.ix_(cut.losers, cut.winners)].sum() == 0
        assert wins[np.ix_(cut.winners, cut.losers)].sum() > 0
        everyone = np.concatenate([cut.winners, cut.losers])
        np.testing.assert_array_equal(np.sort(everyone), np.flatnonzero(met[everyone[0]]))
        if ends:
            low, high = ends if reaches(wins)[ends[1], ends[0]] else ends[::-1]
            assert low in cut.losers
            assert high in cut.winners
    assert all(report.cut_between(i, j) is None for i, j in pairs if report.status(i, j) != "infinite")


@given(win_matrices(items=8), st.integers(0, 2**32 - 1))
def test_the_gauge_basis_is_the_null_space_of_the_information(wins, seed):
    """Its dimension is the number of components, by the gap between its eigenvalues."""
    scores = np.random.default_rng(seed).normal(size=len(wins))
    report = identify(Comparisons.from_wins(wins))
    information = laplacian(wins, scores)
    eigenvalues = np.linalg.eigvalsh(information)
    basis = report.gauge_basis
    assert basis.shape == (len(wins), report.num_components)
    assert np.linalg.matrix_rank(basis) == report.num_components
    np.testing.assert_allclose(information @ basis, 0, atol=1e-12 * (1 + eigenvalues[-1]))
    assert (eigenvalues <= 1e-9 * (1e-9 + eigenvalues[-1])).sum() == report.num_components


@given(win_matrices(), st.permutations(range(ITEMS)))
def test_renaming_the_items_renames_the_report(wins, names):
    new = np.array(names)
    renamed = np.zeros_like(wins)
    renamed[np.ix_(new, new)] = wins
    one, two = identify(Comparisons.from_wins(wins)), identify(Comparisons.from_wins(renamed))
    for i, j in pairs:
        assert one.status(i, j) == two.status(new[i], new[j])


@given(win_matrices())
def test_an_unrelated_island_and_more_of_the_same_votes_change_nothing(wins):
    bigger = np.zeros((ITEMS + 2, ITEMS + 2), int)
    bigger[:ITEMS, :ITEMS] = 7 * wins
    bigger[ITEMS, ITEMS + 1] = bigger[ITEMS + 1, ITEMS] = 1
    one, two = identify(Comparisons.from_wins(wins)), identify(Comparisons.from_wins(bigger))
    for i, j in pairs:
        assert one.status(i, j) == two.status(i, j)
        assert two.status(i, ITEMS) == "unidentified"


@given(win_matrices(), st.integers(0, 2**32 - 1))
def test_weight_0_and_padding_are_no_comparisons(wins, seed):
    c = Comparisons.from_wins(wins)
    erased = np.random.default_rng(seed).random(c.num_comparisons) < 0.4
    silent = dataclasses.replace(c, weight=np.where(erased, 0, c.weight).astype(np.float32))
    left = Comparisons.from_votes(
        c.first[~erased], c.second[~erased], c.wins_first[~erased], c.wins_second[~erased], c.prompt
    )
    one, two = identify(silent.pad(64, ITEMS + 3)), identify(left)
    np.testing.assert_array_equal(one.components[:ITEMS], two.components)
    np.testing.assert_array_equal(one.strong_components[:ITEMS], two.strong_components)
    assert (one.components[ITEMS:] == -1).all()
    with pytest.raises(DataError, match="no such item"):
        one.status(0, ITEMS)


@given(win_matrices())
def test_a_tie_bounds_a_difference_from_both_sides_where_it_is_a_datum(wins):
    """As an edge both ways, under a link with ties and as halves; dropped it is nothing."""
    ties = np.triu(wins) > 0
    c = Comparisons.from_wins(wins * 0, ties=ties | ties.T)
    both = identify(Comparisons.from_wins((ties | ties.T).astype(int)))
    for report in (identify(c, link="davidson"), identify(c, link="rao_kupper"), identify(c, ties="half")):
        np.testing.assert_array_equal(report.strong_components, both.strong_components)
    assert identify(c, ties="drop").num_components == ITEMS
    if ties.any():
        with pytest.raises(DataError, match="contain ties"):
            identify(c)


# Components and strong components of five graphs.
@pytest.mark.parametrize(
    ("graph", "weak", "strong"),
    [(CHAIN, 1, 3), (ISLANDS, 2, 2), (CIRCLE, 1, 1), (ALWAYS_WINNER, 1, 2), (WEAK_BRIDGE, 1, 2)],
)
def test_numbers_of_components(graph, weak, strong):
    report = identify(graph)
    assert (report.num_components, report.num_strong_components) == (weak, strong)
    assert report.exists == (weak == strong)


def test_two_prompts_are_never_one_component_and_nothing_can_join_them():
    c = Comparisons.from_pairs([0, 1, 2, 3], [1, 0, 3, 2], prompt=[0, 0, 1, 1])
    report = identify(c)
    assert report.unique  # all margins within prompts
    with pytest.raises(IdentifiabilityError, match="a constant of its own"):
        fit(c).contrast(0, 2)


def test_a_refusal_names_the_cut_and_what_would_mend_it():
    estimate = fit(WEAK_BRIDGE)
    with pytest.raises(IdentifiabilityError) as caught:
        estimate.contrast(0, 3)
    assert caught.value.numbers["cut"] == "{0, 1} never lost to {2, 3}"
    assert caught.value.remedy.startswith("Judge 3 against 0, or others across the cut")
    with pytest.raises(IdentifiabilityError, match=re.escape("Compare one of {0, 1} with one of {2, 3}")):
        fit(ISLANDS).contrast(1, 2)
    apart = Comparisons.from_wins([[0, 1, 1], [0, 0, 0], [0, 0, 0]])
    with pytest.raises(IdentifiabilityError, match="Compare 1 with 2, until both have won"):
        fit(apart).contrast(1, 2)
    long = Comparisons.from_pairs([0] * 9, range(1, 10), prompt=[0] * 10)
    assert str(identify(long).separating_cut).endswith("and 3 more}")


@given(win_matrices())
def test_the_remedy_works(wins):
    """One win of the lower over the higher, or of both where nothing is known, and the contrast is a number."""
    report = identify(Comparisons.from_wins(wins))
    for i, j in pairs[1:ITEMS]:
        mended = wins.copy()
        named = [int(x) for x in re.findall(r"\d+", report.repair(i, j))][:2]
        if report.status(i, j) == "infinite":
            assert set(named) == {i, j}
            mended[named[0], named[1]] += 1
        elif report.status(i, j) == "unidentified":
            mended[i, j] = mended[j, i] = 1
        assert identify(Comparisons.from_wins(mended)).status(i, j) == "identified"
        assert bool(report.repair(i, j)) == (report.status(i, j) != "identified")


def test_a_basis_that_does_not_fit_in_memory_is_refused():
    """A million answers to half a million prompts: four terabytes, and `components` in four megabytes."""
    n = 1_000_000
    report = identify(Comparisons.from_pairs([], [], prompt=np.arange(n) // 2))
    with pytest.raises(SampleSizeError, match="components=1000000"):
        _ = report.gauge_basis


def test_a_link_or_a_policy_that_is_none_is_refused():
    for options, message in (
        ({"link": "rao-kupper"}, "link is a choice"),
        ({"ties": "split"}, "ties is a choice"),
        ({"link": "davidson", "ties": "half"}, "probability for a tie"),
    ):
        with pytest.raises(DataError, match=message):
            identify(CIRCLE, **options)


def test_a_report_is_of_its_own_data():
    report = identify(CIRCLE)
    assert report.contrast(fit(CIRCLE), 0, 1).value == pytest.approx(0, abs=1e-14)
    assert report.contrast(fit(Comparisons.from_wins([[0, 9, 0], [0, 0, 9], [9, 0, 0]])), 0, 1).value < 1e-12
    with pytest.raises(DataError, match="fit is of other data"):
        report.contrast(fit(CHAIN), 0, 1)


def test_in_a_ranking_every_item_beat_those_behind_it():
    full = Rankings.from_lists([[0, 2, 1], [2, 0, 1]], prompt=[0] * 3)
    report = identify(full)
    assert report.status(0, 2) == "identified"
    assert report.status(0, 1) == "infinite"
    top = Rankings.from_lists([[0], [1]], prompt=[0] * 3, behind=[[1, 2], [2]])
    report = identify(top)
    assert report.status(1, 2) == "infinite"  # of the first order nothing is known behind its top
    assert identify(Rankings.from_lists([[0]], prompt=[0] * 3, behind=[[1, 2]])).status(1, 2) == "unidentified"
    silent = Rankings.from_lists([[0, 1], [1, 0]], prompt=[0] * 2, weight=[1, 0])
    assert identify(silent).status(0, 1) == "infinite"


def test_the_same_wins_under_other_prompts_are_other_data():
    pairs = {"first": [0, 2], "second": [1, 3], "wins_first": [2, 2], "wins_second": [1, 1]}
    one, two = (Comparisons.from_votes(**pairs, prompt=prompt) for prompt in ([0, 0, 0, 0], [0, 0, 1, 1]))
    with pytest.raises(DataError, match="of other data"):
        identify(one).contrast(fit(two), 0, 1)
    assert identify(two).contrast(fit(two), 0, 1).value == pytest.approx(np.log(2))
