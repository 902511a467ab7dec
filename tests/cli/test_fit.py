"""`rmjax fit` end to end: a file in, differences, report, verdict and figure out; what is wrong is said before."""

import json
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from rmjax.cli import main
from rmjax.preferences import published

TEAMS = [team[:3] for team in published.TEAMS]


@pytest.fixture
def season(tmp_path):
    rows = [(TEAMS[i], TEAMS[j], n) for (i, j), n in np.ndenumerate(published.BASEBALL) if n]
    text = "".join(f"{a},{b},{a}\n" * n for a, b, n in rows)
    file = tmp_path / "season.csv"
    file.write_text("first,second,winner\n" + text)
    return file


def test_a_season_comes_out_as_published(season, tmp_path, capsys):
    output = tmp_path / "out"
    main(["fit", str(season), "--reference", "Bal", "--output", str(output), "--json"])
    told = capsys.readouterr()
    found = json.loads(told.out)
    assert found == json.loads((output / "fit.json").read_text())
    best = found["items"][0]
    assert best["item"] == "Mil"
    assert best["difference"] == pytest.approx(1.5813558766613942, abs=1e-12)
    assert best["standard_error"] == pytest.approx(0.3432559816, abs=1e-9)
    assert found["verdict"]["answer"] == "can"
    assert found["counts"]["wins"] == 273
    ET.parse(output / "fit.svg")


def test_what_people_read_says_the_same(season, tmp_path, capsys):
    main(["fit", str(season), "--output", str(tmp_path / "out"), "--no-verdict"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "Mil" in shown
    assert "All differences within a prompt are finite and identified." in shown
    assert "scalar" not in shown


def test_separated_data_have_no_numbers_and_say_why(tmp_path, capsys):
    file = tmp_path / "chain.csv"
    file.write_text("first,second,winner\nA,B,A\nB,C,B\n")
    main(["fit", str(file), "--output", str(tmp_path / "out")])
    shown = " ".join(capsys.readouterr().out.split())
    assert "no finite number" in shown
    assert "A never lost to B, C" in shown


def test_ties_need_a_decision_and_a_link_with_ties_is_one(tmp_path, capsys):
    file = tmp_path / "ties.jsonl"
    rows = [("A", "B", "A")] * 6 + [("A", "B", "B")] * 2 + [("A", "B", "tie")] * 4
    file.write_text("".join(json.dumps(dict(zip(("first", "second", "winner"), r))) + "\n" for r in rows))
    output = ["--output", str(tmp_path / "out")]
    with pytest.raises(SystemExit):
        main(["fit", str(file), *output])
    assert "--ties drop" in capsys.readouterr().err
    main(["fit", str(file), *output, "--link", "davidson"])
    assert "log_tie: 0.14" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--reference", "Nobody"], "one item of the file"),
        (["--level", "1.5"], "between 0 and 1"),
        (["--errors", "cluster"], "no column `cluster` [columns that play no part=]. Name it, --columns.cluster NAME"),
        (["--position"], "no column `order` [columns that play no part=]. Name it, --columns.order NAME"),
        (["--columns.winner", "result"], "no column"),
    ],
)
def test_what_cannot_be_done_is_said(season, tmp_path, capsys, options, message):
    output = tmp_path / "out"
    with pytest.raises(SystemExit) as caught:
        main(["fit", str(season), "--output", str(output), *options])
    assert caught.value.code == 2
    assert message in capsys.readouterr().err
    assert not output.exists()


def test_so_many_items_that_intervals_are_left_out(tmp_path, capsys):
    n = 6000
    file = tmp_path / "ring.csv"
    text = "".join(f"m{k},m{(k + 1) % n},2,1\n" for k in range(n))
    file.write_text("first,second,wins_first,wins_second\n" + text)
    main(["fit", str(file), "--output", str(tmp_path / "out"), "--no-verdict", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert len(found["items"]) == n
    assert found["items"][0]["standard_error"] is None
    assert found["gradient_norm"] < 1e-6


@pytest.mark.parametrize("name", ["[/b]", "[bold]", "[red]x[/red]", "a\x00b", "\x1b[31m", "<&>\"'"])
def test_a_name_is_text_whatever_it_holds(tmp_path, capsys, name):
    """Neither the markup of the terminal nor that of the figure reads it."""
    file, output = tmp_path / "names.jsonl", tmp_path / "[out]"
    rows = [{"first": name, "second": "B", "winner": side, "prompt": name} for side in ("first", "second")]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    main(["fit", str(file), "--output", str(output), "--no-verdict", "--reference", name])
    shown = capsys.readouterr().out
    if name.isprintable():
        assert shown.count(name) >= 3  # title, prompt, item
    assert json.loads((output / "fit.json").read_text())["reference"] == name
    seen = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in name)
    assert seen in [text.text for text in ET.parse(output / "fit.svg").iter("{http://www.w3.org/2000/svg}text")]


def test_what_of_the_file_is_not_in_the_numbers_is_said(tmp_path, capsys):
    file = tmp_path / "games.csv"
    rows = ["A,B,A,5", "A,B,B,1", "A,B,,1", *["A,A,A,1"] * 120]
    file.write_text("first,second,winner,weight\n" + "\n".join(rows) + "\n")
    main(["fit", str(file), "--output", str(tmp_path / "out"), "--no-verdict", "--on-bad-row", "drop"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "columns that play no part: weight" in shown
    assert "rows without a judgement: 1 of 123" in shown
    assert "rows left out: 120 of 123" in shown
    counts = json.loads((tmp_path / "out" / "fit.json").read_text())["counts"]
    assert (counts["rows"], counts["without_judgement"], counts["dropped"]) == (123, 1, 120)


@pytest.mark.parametrize("below", ["", "new/deeper"])
def test_a_directory_that_refuses_is_told_before_the_file_is_read(season, tmp_path, capsys, monkeypatch, below):
    closed = tmp_path / "closed"
    closed.mkdir()
    # Rights bind no superuser, as whom tests may run.
    monkeypatch.setattr("os.access", lambda path, mode: path != closed)
    with pytest.raises(SystemExit):
        main(["fit", str(season), "--output", str(closed / below)])
    told = capsys.readouterr()
    assert f"nothing may be written there [directory={closed}]" in told.err
    assert "reading" not in told.out


def test_errors_by_cluster_are_those_of_differences_and_parameters_alike(tmp_path, capsys):
    """Ten people who each vote the same way three times: their votes are ten, and not thirty."""
    rng = np.random.default_rng(0)
    header, rows = "first,second,winner,order,cluster\n", []
    for person in range(40):
        winner, order = rng.choice(["first", "second"], 2, p=[0.6, 0.4])
        rows += [f"A,B,{winner},{order},p{person}\n"] * 3
    file = tmp_path / "votes.csv"
    file.write_text(header + "".join(rows))
    found = {}
    for errors in ("model", "cluster"):
        main(["fit", str(file), "--position", "--errors", errors, "--output", str(tmp_path / "out"), "--json"])
        found[errors] = json.loads(capsys.readouterr().out)
    for errors, result in found.items():
        assert result["errors"] == errors
    alone, together = (found[errors]["items"][0]["standard_error"] for errors in ("model", "cluster"))
    assert together > 1.3 * alone
    alone, together = (found[errors]["parameters"]["position"]["standard_error"] for errors in ("model", "cluster"))
    assert together > 1.3 * alone
    main(["fit", str(file), "--position", "--errors", "cluster", "--output", str(tmp_path / "out"), "--no-verdict"])
    assert f"standard error {together:.4f}" in capsys.readouterr().out


def test_the_verdict_under_a_link_with_ties_leaves_ties_out(tmp_path, capsys):
    """A circle among the votes that decide, and as many ties as hide it where each counts half."""
    file = tmp_path / "circle.csv"
    rows = "".join(f"{a},{b},8,2,200\n" for a, b in ("AB", "BC", "CA"))
    file.write_text("first,second,wins_first,wins_second,ties\n" + rows)
    main(["fit", str(file), "--link", "davidson", "--output", str(tmp_path / "out"), "--json"])
    assert json.loads(capsys.readouterr().out)["verdict"]["majority_accuracy"] == pytest.approx(0.8)


def test_the_row_of_the_first_tie_is_that_of_the_file(tmp_path, capsys):
    file = tmp_path / "votes.csv"
    file.write_text("first,second,winner\nA,B,A\nA,B,\nA,B,B\nA,B,tie\n")
    with pytest.raises(SystemExit):
        main(["fit", str(file), "--output", str(tmp_path / "out")])
    assert "row=5" in capsys.readouterr().err
