"""Laws of the page of a fit: numbers in figure, table and JSON are those of the fit, and what is none is none."""

import dataclasses
import json
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from games import CHAIN, ISLANDS, WEAK_BRIDGE

from rmjax import Comparisons
from rmjax.errors import DataError
from rmjax.identifiability import identify
from rmjax.preferences import fit, scalar_verdict
from rmjax.preferences.published import BASEBALL
from rmjax.report.ranking import MOST, as_json, figure, rank, sentences
from rmjax.report.standalone import standalone

TEAMS = ["Bal", "Bos", "Cle", "Det", "Mil", "NY", "Tor"]
SEASON = fit(Comparisons.from_wins(BASEBALL))


def test_items_stand_by_their_difference_with_the_intervals_of_the_fit():
    ranking = rank(SEASON, TEAMS, [""], reference=0)
    assert ranking.names == ("Mil", "Det", "Tor", "NY", "Bos", "Cle", "Bal")
    contrast = SEASON.contrast(4, 0)
    assert ranking.difference[0] == pytest.approx(contrast.value, rel=1e-12)
    assert (ranking.lower[0], ranking.upper[0]) == pytest.approx(contrast.interval(), rel=1e-9)
    assert (ranking.difference[-1], ranking.standard_error[-1]) == (0, 0)


def test_the_figure_is_a_document_that_says_its_numbers():
    shown = figure(rank(SEASON, TEAMS, [""]))
    document = ET.fromstring(standalone(shown.svg))
    assert "Mil 0.531" in document[0].text
    assert "lines are 95 % intervals" in shown.svg
    assert shown.numbers[0][0] == "Mil"
    assert len(shown.numbers) == 7
    with pytest.raises(ValueError, match="no chart"):
        standalone("<p>no</p>")


def test_what_has_no_finite_difference_is_last_and_not_in_the_figure():
    estimate = fit(CHAIN)
    ranking = rank(estimate, ["A", "B", "C"], [""])
    assert np.isnan(ranking.difference).all()
    assert "more items are in the table" in figure(ranking).caption
    found = as_json(ranking, estimate, None, [], {})
    assert found["items"][0]["difference"] is None
    assert found["verdict"] is None
    json.dumps(found, allow_nan=False)


def test_many_items_are_cut_in_the_figure_and_whole_in_the_rest():
    n = MOST + 5
    ring = np.arange(n)
    estimate = fit(Comparisons.from_votes(ring, (ring + 1) % n, [2] * n, [1] * n, [0] * n))
    names = [f"a very long name of an item, number {k}" for k in range(n)]
    ranking = rank(estimate, names, [""])
    assert len(figure(ranking).numbers) == MOST
    assert "5 more items" in figure(ranking).caption
    assert "…" in figure(ranking).svg
    assert len(as_json(ranking, estimate, None, [], {})["items"]) == n


def test_prompts_stay_apart():
    c = Comparisons.from_wins(np.kron(np.eye(2, dtype=int), [[0, 3], [1, 0]]), prompt=[0, 0, 1, 1])
    ranking = rank(fit(c), ["A", "B", "A", "B"], ["p", "q"])
    assert ranking.prompts == ("p", "p", "q", "q")
    assert sentences(identify(c), list("ABAB")) == ["All differences within a prompt are finite and identified."]


def test_sentences_name_the_sets_and_the_cut():
    names = list("ABCD")
    assert sentences(identify(ISLANDS), names) == [
        "2 sets of items were never compared with each other, such as A, B and C, D: between them nothing is known.",
        "To mend it, compare one of A, B with one of C, D until both have won.",
    ]
    twice = Comparisons.from_pairs([0, 2, 4, 6], [1, 3, 5, 7], prompt=[0, 0, 0, 0, 1, 1, 1, 1])
    assert sentences(identify(twice), list("ABCDEFGH"))[0].startswith("In 2 prompts items were never compared")
    chains = identify(Comparisons.from_pairs([0, 2], [1, 3], [0, 0, 1, 1]))
    assert sentences(chains, list("ABAB"), ["p", "q"])[1].startswith("Under prompt p: A never lost to B")
    told = sentences(identify(WEAK_BRIDGE), names)
    assert told[0] == "2 sets of items, within which differences are finite."
    assert told[1].startswith("A, B never lost to C, D")
    assert told[2] == "To mend it, judge more such pairs until one of C, D wins one."
    assert sentences(identify(Comparisons.from_pairs([0], [1], [0, 0])), names)[2].endswith("until B wins one.")
    long = identify(Comparisons.from_pairs([0] * 6, range(1, 7), [0] * 7))
    assert "and 2 more" in " ".join(sentences(long, list("ABCDEFG")))
    alone = sentences(identify(CHAIN), names)
    assert alone[0] == "The votes alone leave no difference between two items finite."


def test_a_number_that_the_penalty_gave_is_said_to_be_its_own():
    for options in ({"ridge": 1.0}, {"bias_reduction": True}):
        estimate = fit(CHAIN, **options)
        assert np.isfinite(rank(estimate, list("ABC"), [""]).difference).all()
        told = " ".join(sentences(estimate.identification, list("ABC"), penalised=estimate.penalised))
        assert "is of the penalty" in told
        assert "no number" not in told


def test_sets_stay_apart_in_table_figure_and_json():
    """Three items that met, and two that met each other, by the size of the set and not by the sign of a difference."""
    wins = np.zeros((5, 5), int)
    wins[:2, :2], wins[2:, 2:] = [[0, 9], [1, 0]], [[0, 2, 1], [1, 0, 2], [2, 1, 0]]
    estimate = fit(Comparisons.from_wins(wins))
    ranking = rank(estimate, list("ABCDE"), [""])
    assert set(ranking.names[:3]) == set("CDE")
    assert ranking.names[3:] == ("A", "B")
    assert ranking.sets == (1, 1, 1, 2, 2)
    shown = figure(ranking)
    assert shown.svg.count('x1="18"') == 1
    assert "no difference is known" in shown.caption
    assert [item["set"] for item in as_json(ranking, estimate, None, [], {})["items"]] == [1, 1, 1, 2, 2]


def test_json_holds_the_parameters_and_the_verdict():
    c = Comparisons.from_votes([0], [1], [6], [2], [0, 0], ties=[4])
    estimate = fit(c, link="davidson")
    found = as_json(rank(estimate, ["A", "B"], [""]), estimate, scalar_verdict(c, ties="drop"), ["x"], {"rows": 12})
    assert found["parameters"]["log_tie"]["value"] == pytest.approx(np.log(4 / np.sqrt(12)))
    assert found["verdict"]["answer"] == "can"
    assert found["identification"]["unique"]
    assert json.loads(json.dumps(found, allow_nan=False))["counts"] == {"rows": 12}


def test_many_items_have_differences_without_intervals_and_none_across_islands(monkeypatch):
    estimate = fit(ISLANDS)
    whole = rank(estimate, list("ABCD"), [""], reference=2)
    monkeypatch.setattr("rmjax.preferences.estimate._LARGEST", 1)
    large = rank(estimate, list("ABCD"), [""], reference=2)
    assert large.names == whole.names
    np.testing.assert_array_equal(large.difference, whole.difference)
    assert np.isfinite(large.difference).sum() == 2
    assert np.isnan([large.standard_error, large.lower, large.upper]).all()
    shown = figure(large)
    assert "nan" not in shown.svg
    assert "lines are" not in shown.svg
    assert "nan" not in str(shown.numbers)


def test_what_rounds_to_nothing_has_no_sign():
    ranking = rank(SEASON, TEAMS, [""], reference=0)
    shown = figure(dataclasses.replace(ranking, difference=ranking.difference - 1e-9))
    assert shown.numbers[-1][:2] == ("Bal", "0.000")


@pytest.mark.parametrize("level", [0.0, 1.0, 2.0, -0.5, 0.9999999999999999, float("nan")])
def test_a_level_without_an_interval_is_refused(level):
    with pytest.raises(DataError, match="a level lies between"):
        rank(SEASON, TEAMS, [""], level=level)
