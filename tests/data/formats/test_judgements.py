"""Laws of tables of judgements: every way of writing one vote is that vote, and a bad row is named."""

import gzip
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmjax.data.formats.judgements import Columns, read_judgements
from rmjax.errors import DataError

WORDS = {"first": ("first", "A", "FIRST ", "one"), "second": ("second", "B", "two"), "tie": ("tie", "draw", "equal")}


def votes(data):
    c = data.comparisons
    return [(data.names[i], data.names[j], a, b, t) for i, j, a, b, t in zip(c.first, c.second, *outcomes(c))]


def outcomes(c):
    return (x.tolist() for x in (c.wins_first, c.wins_second, c.ties))


@pytest.mark.parametrize("outcome", WORDS)
def test_every_word_for_an_outcome_is_that_outcome(tmp_path, outcome):
    file = tmp_path / "games.csv"
    for word in WORDS[outcome]:
        file.write_text(f"one,two,winner\nA,B,{word}\n")
        data = read_judgements(file, columns=Columns(first="one", second="two"))
        assert votes(data) == [("A", "B", *(float(outcome == x) for x in WORDS))]


@given(st.integers(0, 2**32 - 1))
def test_tables_lines_and_counts_say_the_same(tmp_path_factory, seed):
    """Commas, tabs, semicolons, JSON lines and gzip; one row a vote, or counts."""
    folder, rng = tmp_path_factory.mktemp("votes"), np.random.default_rng(seed)
    rows = [
        (*rng.choice(list("ABCD"), 2, replace=False), rng.choice(["first", "second", "tie", ""])) for _ in range(12)
    ]
    rows.append(("A", "B", "first"))
    (folder / "v.csv").write_text("first,second,winner\n" + "".join(",".join(r) + "\n" for r in rows))
    (folder / "v.tsv").write_text("first\tsecond\twinner\n" + "".join("\t".join(r) + "\n" for r in rows))
    (folder / "s.csv").write_text("first;second;winner\n" + "".join(";".join(r) + "\n" for r in rows))
    keys = ("model_a", "model_b", "winner")
    lines = "".join(json.dumps(dict(zip(keys, r))) + "\n" for r in rows)
    (folder / "v.jsonl").write_text(lines)
    with gzip.open(folder / "v.gz", "wt") as stream:
        stream.write(lines)
    counts = "".join(f"{a},{b},{w == 'first':d},{w == 'second':d},{w == 'tie':d}\n" for a, b, w in rows)
    (folder / "c.csv").write_text("a,b,wins_first,wins_second,ties\n" + counts)
    told = [read_judgements(folder / name) for name in ("v.csv", "v.tsv", "s.csv", "v.jsonl", "v.gz", "c.csv")]
    assert all(votes(data) == votes(told[0]) for data in told)
    assert all(data.rows == len(rows) for data in told)
    assert all(data.without == sum(w == "" for _, _, w in rows) for data in told)


def test_items_of_two_prompts_are_two_items_and_clusters_and_orders_are_kept(tmp_path):
    file = tmp_path / "games.csv"
    file.write_text("prompt,first,second,winner,order,cluster\np,A,B,A,B,ann\nq,A,B,second,first,bob\np,B,A,tie,,ann\n")
    data = read_judgements(file)
    assert data.names == ("A", "B", "A", "B")
    assert data.prompts == ("p", "q")
    c = data.comparisons
    assert c.prompt.tolist() == [0, 0, 1, 1]
    assert c.order.tolist() == [-1, 1, 0]
    assert c.cluster.tolist() == [0, 1, 0]
    assert c.first.tolist() == [0, 2, 1]


def test_an_item_may_be_called_like_a_side(tmp_path):
    """Its own name comes before any other meaning of the word."""
    file = tmp_path / "games.csv"
    file.write_text("first,second,winner\nsecond,first,first\n")
    assert votes(read_judgements(file)) == [("second", "first", 0.0, 1.0, 0.0)]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("A,B,C", "row=3, winner='C', first='A', second='B'"),
        ("A,A,first", "compared with itself"),
        ("A,,first", "no name"),
        ("A,B", "another number of columns"),
        ("A,B,first,more", "columns=4"),
    ],
)
def test_a_bad_row_is_named_or_left_out_and_counted(tmp_path, row, message):
    file = tmp_path / "games.csv"
    file.write_text(f"first,second,winner\nA,B,first\n{row}\nB,A,first\n")
    with pytest.raises(DataError, match=message) as caught:
        read_judgements(file)
    assert caught.value.numbers["row"] == 3
    assert 'on_bad_row="drop"' in caught.value.remedy
    data = read_judgements(file, on_bad_row="drop")
    assert data.comparisons.num_comparisons == 2
    assert len(data.dropped) == 1
    assert data.dropped[0].startswith("row 3: ")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "not JSON"),
        ("[1]", "no object"),
        ("[" * 100_000, "nested too deeply|not JSON"),
        ('{"first": true, "second": "B", "winner": "B"}', "first is a name"),
        ('{"first": "A", "second": {"x": 1}, "winner": "A"}', "second is a name"),
        ('{"first": "A", "second": "B", "winner": 1}', "nobody of this name"),
        ('{"first": "A", "second": "B"}', None),
    ],
)
def test_a_bad_line_is_named(tmp_path, line, message):
    file = tmp_path / "games.jsonl"
    file.write_text('{"first": "A", "second": "B", "winner": "A"}\n' + line + "\n")
    if message is None:  # no winner: nobody could judge
        assert read_judgements(file).without == 1
        return
    with pytest.raises(DataError, match=message) as caught:
        read_judgements(file)
    assert caught.value.numbers["row"] == 2


@pytest.mark.parametrize("count", ["-1", "nan", "inf", "many", "", "1_000", "１２"])
def test_a_count_is_a_number(tmp_path, count):
    file = tmp_path / "games.csv"
    file.write_text(f"first,second,wins_first,wins_second\nA,B,{count},1\n")
    with pytest.raises(DataError, match="wins_first"):
        read_judgements(file)


@pytest.mark.parametrize(
    ("text", "columns", "message"),
    [
        ("", Columns(), "names its columns"),
        ("first|second|winner\nA|B|A\n", Columns(), "parted by commas, tabs or semicolons"),
        ("first,second,winner\n", Columns(), "no judgements"),
        ("first,second,winner\nA,B,\n", Columns(), "no judgements"),
        ("first,first,winner\nA,B,A\n", Columns(), "each once"),
        ("x,second,winner\nA,B,A\n", Columns(), "no column for the first item"),
        ("first,second,result\nA,B,A\n", Columns(), "no column says who won"),
        ("first,second,winner\nA,B,A\n", Columns(cluster="who"), "no column 'who'"),
        ("first,second,winner\nA,B,A\n", Columns(second="other"), "looked for=other"),
        ('first,second,winner\n"A,B,A\n', Columns(), "cannot be read"),
        ("first,second,winner,order\nA,B,A,tie\n", Columns(), "nobody of this name was shown"),
    ],
)
def test_a_file_that_is_none_is_refused(tmp_path, text, columns, message):
    file = tmp_path / "games.csv"
    file.write_text(text)
    with pytest.raises(DataError, match=message):
        read_judgements(file, columns=columns)


def test_damaged_files_are_refused_whole(tmp_path):
    file = tmp_path / "games.gz"
    file.write_bytes(gzip.compress(b"first,second,winner\n" + b"A,B,first\n" * 9000)[:-20])
    with pytest.raises(DataError, match="truncated or damaged"):
        read_judgements(file)
    file.write_bytes(b"first,second,winner\nA,B,first\n\xff,B,first\n")
    with pytest.raises(DataError, match="not UTF-8"):
        read_judgements(file)
    with pytest.raises(DataError, match="no such file"):
        read_judgements(tmp_path)


def test_progress_is_told_now_and_then(tmp_path):
    file, told = tmp_path / "games.csv", []
    file.write_text("first,second,winner\n" + "A,B,first\n" * 140_000)
    assert read_judgements(file, progress=told.append).rows == 140_000
    assert told == [65_536, 65_536]


def test_all_rows_that_are_left_out_are_counted_and_some_are_told(tmp_path):
    file = tmp_path / "games.csv"
    file.write_text("first,second,winner\nA,B,first\n" + "A,B,C\n" * 250)
    data = read_judgements(file, on_bad_row="drop")
    assert (data.rows, data.num_dropped, len(data.dropped)) == (251, 250, 100)


@pytest.mark.parametrize(
    ("header", "row", "unused"),
    [
        ("first,second,winner,weight,count", "A,B,A,2,3", ("weight", "count")),
        ("first,second,wins_first,wins_second", "A,B,2,3", ()),
        ("first,second,winner,wins_first,wins_second", "A,B,A,2,3", ("wins_first", "wins_second")),
        ("first,second,winner,order,cluster,prompt", "A,B,A,first,c,p", ()),
    ],
)
def test_columns_that_play_no_part_are_named(tmp_path, header, row, unused):
    """Above all a weight, which would change every number if it were one."""
    file = tmp_path / "games.csv"
    file.write_text(f"{header}\n{row}\n")
    assert read_judgements(file).unused == unused


def test_a_count_that_would_become_infinite_is_refused_by_its_row(tmp_path):
    file = tmp_path / "games.csv"
    largest = float(np.finfo(np.float32).max)
    file.write_text(f"first,second,wins_first,wins_second\nA,B,{largest!r},1\n")
    assert read_judgements(file).comparisons.wins_first.tolist() == [largest]
    file.write_text("first,second,wins_first,wins_second\nA,B,1,1\nA,B,4e38,1\n")
    with pytest.raises(DataError, match="row=3, wins_first='4e38'"):
        read_judgements(file)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("ahead", [0, 1, 5000])
def test_the_line_that_is_not_utf8_is_named(tmp_path, ahead, pack):
    file = tmp_path / "games.csv"
    file.write_bytes(pack(b"first,second,winner\n" + b"A,B,first\n" * ahead + b"caf\xe9,B,first\nA,B,first\n"))
    with pytest.raises(DataError, match=f"not UTF-8 .*row={ahead + 2},"):
        read_judgements(file)


def test_half_a_character_is_no_name(tmp_path):
    file = tmp_path / "games.jsonl"
    whole, half = '"\\ud83d\\ude00"', '"\\ud83d"'
    file.write_text(f'{{"first": {whole}, "second": "B", "winner": "first"}}\n')
    assert read_judgements(file).names == ("\N{GRINNING FACE}", "B")
    for key in ("first", "second", "winner", "prompt"):
        row = {"first": '"A"', "second": '"B"', "winner": '"first"'} | {key: half}
        file.write_text("{" + ", ".join(f'"{name}": {value}' for name, value in row.items()) + "}\n")
        with pytest.raises(DataError, match=r"half a surrogate pair .*row=1"):
            read_judgements(file)


def test_columns_do_not_begin_in_the_middle(tmp_path):
    """What a later row names would have been missing before: ties, prompts and clusters are not lost in silence."""
    file = tmp_path / "games.jsonl"
    counts = '{"first": "A", "second": "B", "wins_first": 2, "wins_second": 1%s}\n'
    for more in ('"ties": 5', '"prompt": "p"', '"cluster": "ann"', '"winner": "A"'):
        file.write_text(counts % "" + counts % f", {more}")
        with pytest.raises(DataError, match=r"a column that the first one lacks.*row=2"):
            read_judgements(file)
    file.write_text(counts % "" + counts % ', "note": "late"' + counts % ', "note": "again"')
    assert read_judgements(file).unused == ("note",)
    won = '{"first": "A", "second": "B", "winner": "A"%s}\n'
    file.write_text(won % "" + won % ', "ties": 5')
    assert read_judgements(file).unused == ("ties",)


def test_the_separator_is_the_mark_that_the_header_has_most_of(tmp_path):
    file = tmp_path / "games.tsv"
    for mark in "\t;":
        file.write_text(mark.join(["first", "second", "winner", '"why, then"']) + "\n" + mark.join("ABA."))
        assert read_judgements(file).unused == ("why, then",)


def test_an_array_is_not_taken_for_a_table(tmp_path):
    file = tmp_path / "games.json"
    file.write_text('[{"first": "A", "second": "B", "winner": "A"}]')
    with pytest.raises(DataError, match=r"array is not read.*one JSON object a line"):
        read_judgements(file)


def test_a_count_of_more_digits_than_a_number_is_one_bad_row(tmp_path):
    file = tmp_path / "games.jsonl"
    file.write_text('{"first": "A", "second": "B", "wins_first": 1%s, "wins_second": 1}\n' % ("0" * 400))
    with pytest.raises(DataError, match="a count is a number"):
        read_judgements(file)
