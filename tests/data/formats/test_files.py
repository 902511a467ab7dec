"""Laws of rows(path): what a file holds does not depend on how it was written, and damage is never read as data."""

import gzip
import json

import pytest

from rmjax.data.formats import read
from rmjax.data.formats.fields import BadRow, Fields
from rmjax.data.formats.files import rows
from rmjax.data.formats.texts import carried
from rmjax.errors import DataError

ROWS = [{"chosen": "4", "rejected": "5"}, {"chosen": "one\u2028two\x85", "rejected": "Ωmega\n"}, {"data": [1]}]


def lines(values=ROWS, end="\n"):
    return end.join(json.dumps(value, ensure_ascii=False) for value in values).encode()


WRITINGS = {
    "lines": lines(),
    "lines, newline at the end": lines() + b"\n\n",
    "lines, carriage returns": lines(end="\r\n"),
    "lines, byte order mark": b"\xef\xbb\xbf" + lines(),
    "list": json.dumps(ROWS).encode(),
    "list, indented": b"\n" + json.dumps(ROWS, indent=2).encode(),
    "object": json.dumps({"version": 1, "data": ROWS}).encode(),
    "object, indented": json.dumps({"data": ROWS}, indent=2).encode(),
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("writing", WRITINGS)
def test_rows_do_not_depend_on_the_writing(tmp_path, writing, packed):
    # The name says nothing: content decides whether it is gzip and which JSON.
    path = tmp_path / "any.name"
    path.write_bytes(gzip.compress(WRITINGS[writing]) if packed else WRITINGS[writing])
    assert list(rows(path)) == list(enumerate(ROWS, start=1))


def test_a_row_is_numbered_by_its_line_also_after_blank_lines(tmp_path):
    path = tmp_path / "gaps.jsonl"
    path.write_bytes(b"\n" + lines(ROWS[:1]) + b"\n \n" + lines(ROWS[1:2]))
    assert [number for number, _ in rows(path)] == [2, 4]


def test_one_row_with_a_column_named_data_is_a_row(tmp_path):
    path = tmp_path / "row.jsonl"
    path.write_bytes(lines([{"data": "text", "chosen": "4"}]))
    assert list(rows(path)) == [(1, {"data": "text", "chosen": "4"})]


def test_a_gzip_cut_anywhere_is_refused_whole(tmp_path):
    path = tmp_path / "pairs.jsonl.gz"
    whole = gzip.compress(lines(ROWS * 20), mtime=0)
    for cut in range(2, len(whole)):
        path.write_bytes(whole[:cut])
        with pytest.raises(DataError, match="truncated or damaged") as caught:
            list(rows(path))
        assert caught.value.numbers["file"] == path
        assert 1 <= caught.value.numbers["row"] <= 60


def test_members_of_a_gzip_and_zeros_after_them_make_one_file(tmp_path):
    path = tmp_path / "pairs.jsonl.gz"
    path.write_bytes(gzip.compress(lines(ROWS[:1]) + b"\n") + gzip.compress(lines(ROWS[1:])) + b"\0" * 8)
    assert [row for _, row in rows(path)] == ROWS


def test_a_truncated_gzip_names_the_row_where_it_breaks(tmp_path):
    path = tmp_path / "pairs.jsonl.gz"
    stream = gzip.compress(lines(ROWS) + b"\n")
    path.write_bytes(stream[:-8])  # all text, no checksum
    with pytest.raises(DataError, match="again") as caught:
        list(rows(path))
    assert caught.value.numbers["row"] == len(ROWS) + 1


def test_a_damaged_gzip_is_refused(tmp_path):
    path = tmp_path / "pairs.jsonl.gz"
    stream = bytearray(gzip.compress(lines()))
    stream[len(stream) // 2] ^= 0xFF
    path.write_bytes(bytes(stream))
    with pytest.raises(DataError, match="truncated or damaged"):
        list(rows(path))


@pytest.mark.parametrize("content", [b"", b"\n \n", b"[]", b'{"data": []}', gzip.compress(b"", mtime=0)])
def test_a_file_without_rows_is_refused(tmp_path, content):
    path = tmp_path / "empty.jsonl"
    path.write_bytes(content)
    with pytest.raises(DataError, match="holds no rows"):
        list(rows(path))


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("pairs.parquet", b"PAR1\x15\x04", "Parquet"),
        ("pairs.bin", b"PAR1\x15\x04", "Parquet"),
        ("pairs.csv", b"chosen,rejected\n4,5\n", "CSV"),
        ("pairs.tsv.gz", gzip.compress(b"chosen\trejected\n", mtime=0), "CSV"),
        ("pairs.arrow", b"ARROW1\0\0", "Arrow"),
        ("pairs.zip", b"PK\x03\x04", "a zip archive"),
        ("pairs.zst", b"\x28\xb5\x2f\xfd", "Zstandard"),
    ],
)
def test_another_kind_of_file_is_named_with_the_remedy(tmp_path, name, content, kind):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError, match=f"{kind} is not read yet.*Convert it to JSON lines"):
        list(rows(path))


def test_no_such_file_and_a_folder_are_refused(tmp_path):
    for path in (tmp_path / "nothing.jsonl", tmp_path):
        with pytest.raises(DataError, match="no such file"):
            list(rows(path))


def test_a_line_that_is_not_json_is_a_bad_row_and_the_others_stand(tmp_path):
    path = tmp_path / "pairs.jsonl"
    for at in range(3):
        written = [json.dumps(row) for row in ROWS]
        written[at] = '{"chosen": "4"'
        path.write_text("\n".join(written))
        read = list(rows(path))
        assert [number for number, row in read if isinstance(row, BadRow)] == [at + 1]
        assert [row for _, row in read if not isinstance(row, BadRow)] == ROWS[:at] + ROWS[at + 1 :]


def test_nesting_beyond_reason_is_a_bad_row(tmp_path):
    path = tmp_path / "deep.jsonl"
    path.write_text('{"chosen": 1}\n{"chosen": ' + "[" * 200_000)
    (_, _), (number, row) = rows(path)
    assert number == 2
    assert isinstance(row, BadRow)


def test_a_list_that_is_not_json_names_the_line(tmp_path):
    path = tmp_path / "pairs.json"
    path.write_text('[\n{"chosen": "4"},\n{"chosen": 5')
    with pytest.raises(DataError, match="invalid JSON") as caught:
        list(rows(path))
    assert caught.value.numbers["line"] == 3


def test_text_that_is_not_utf8_names_its_row(tmp_path):
    path = tmp_path / "pairs.jsonl"
    path.write_bytes(lines(ROWS[:1]) + b'\n{"chosen": "caf\xe9"}')
    with pytest.raises(DataError, match="not UTF-8") as caught:
        list(rows(path))
    assert caught.value.numbers["row"] == 2


def test_a_name_that_stands_twice_in_an_object_is_no_row(tmp_path):
    path = tmp_path / "x.jsonl"
    twice = b'{"chosen": "4", "rejected": "5", "chosen": "6"}'
    path.write_bytes(lines() + b"\n" + twice)
    *good, (number, bad) = rows(path)
    assert [row for _, row in good] == ROWS
    assert number == 4
    assert isinstance(bad, BadRow)
    assert bad.numbers == {"name": "'chosen'"}


@pytest.mark.parametrize("form", ["[%s, %s]", '{"data": [%s, %s]}', '{\n "data": [\n  %s,\n  %s\n ]\n}'])
@pytest.mark.parametrize("twice", ['{"chosen": "4", "rejected": "5", "chosen": "6"}', '{"chosen": [{"a": 1, "a": 2}]}'])
def test_in_a_list_too_it_is_one_row_that_is_bad(form, twice, tmp_path):
    path = tmp_path / "x.json"
    row = {"prompt": "2 + 2?"} | ROWS[0]
    path.write_text(form % (json.dumps(row), twice))
    (_, good), (number, bad) = rows(path)
    assert good == row
    assert (number, type(bad)) == (2, BadRow)
    assert read(path, on_bad_row="drop").num_comparisons == 1
    with pytest.raises(DataError, match=r"a name stands twice.*row=2"):
        read(path)


@pytest.mark.parametrize(
    "form",
    ['{"data": [%s], "data": []}', '{\n "data": [%s],\n "data": []\n}', '{\n "data": {"a": [%s],\n "a": []}\n}'],
)
def test_two_lists_of_rows_under_one_name_are_no_file(form, tmp_path):
    (tmp_path / "x.json").write_text(form % json.dumps(ROWS[0]))
    with pytest.raises(DataError, match="a name stands twice"):
        read(tmp_path / "x.json")


@pytest.mark.parametrize("depth", [10, 400, 900, 100_000])
def test_a_row_is_as_deep_as_it_is(depth, tmp_path):
    """It is no answer, and whether it can be parsed is up to Python; nothing but an error of its row comes out."""
    nested = "[" * depth + "]" * depth
    (tmp_path / "x.jsonl").write_text(f'{{"prompt": "p", "chosen": {nested}, "rejected": "r"}}')
    with pytest.raises(DataError, match="row=1"):
        read(tmp_path / "x.jsonl")


@pytest.mark.parametrize("where", ["chosen", "note"])
def test_at_every_depth_a_row_is_whole_or_bad(where, tmp_path):
    """Python's limits to reading, writing and showing a value differ by a few levels, wherever it is called from."""
    depths = (*range(10), *range(700, 1010))
    nested = ["[" * depth + "]" * depth or "0" for depth in depths]
    row = {"prompt": "p", "chosen": "c", "rejected": "r", "note": "n"}
    written = [json.dumps(row | {where: 0}).replace("0", note) for note in nested]
    (tmp_path / "x.jsonl").write_text("\n".join([json.dumps(row), *written]))
    data = read(tmp_path / "x.jsonl", fields=Fields(keep=("note",)), on_bad_row="drop")
    assert data.num_comparisons + sum(len(numbers) for numbers in data.dropped.values()) == 1 + len(depths)
    kept = data.rows[1:] - 2
    assert data.columns["note"][1:].tolist() == [nested[i] for i in kept]
    assert len(kept) > 10 if where == "note" else len(kept) == 0


def test_a_value_that_cannot_be_written_is_a_bad_row():
    nested = []
    for _ in range(100_000):
        nested = [nested]
    with pytest.raises(BadRow, match="`note` is nested too deeply"):
        carried(nested, "note")
