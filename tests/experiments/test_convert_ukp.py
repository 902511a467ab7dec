"""Laws of the conversion: every vote arrives, sides and topics are kept, and `read` understands what was written."""

import importlib.util
import sys
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from rmjax.data.audit import audit
from rmjax.data.formats import Fields, read
from rmjax.errors import DataError

SCRIPT = Path(__file__).parents[2] / "experiments" / "convert_ukp.py"
FIELDS = Fields(prompt=("prompt", "stance"), source="prompt", keep=("topic",))

TEXTS = {"1": "Cats purr & sleep.", "2": "Cats <ignore> you.\nAlways.", "3": "Cats."}


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("convert_ukp", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["convert_ukp"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["convert_ukp"]


def argument(tag, key, stance):
    return (
        f"<{tag}><author>n</author><voteUpCount>1</voteUpCount><stance>{stance}</stance>"
        f"<text>{escape(TEXTS[key])}</text><id>{key}</id><originalHTML>x</originalHTML></{tag}>"
    )


def pair(one, other, votes, gold=None, stance="Yes"):
    """A pair in the schema of the corpus; votes are (worker, value)."""
    cast = "".join(
        f"<mTurkAssignment><turkID>{worker}</turkID><hitID>h</hitID><value>{value}</value><reason>r</reason>"
        "<turkRank>3</turkRank></mTurkAssignment>"
        for worker, value in votes
    )
    return (
        f"<annotatedArgumentPair><id>{one}_{other}</id>{argument('arg1', one, stance)}{argument('arg2', other, stance)}"
        "<debateMetaData><title>Cats?</title><description>d</description><url>u</url></debateMetaData>"
        f"<mTurkAssignments>{cast}</mTurkAssignments>"
        + (f"<goldLabel>{gold}</goldLabel>" if gold else "")
        + "</annotatedArgumentPair>"
    )


def write(folder, name, *pairs):
    (folder / f"{name}.xml").write_text('<?xml version="1.0"?>\n<list>' + "".join(pairs) + "</list>")


@pytest.fixture
def corpus(tmp_path):
    write(
        tmp_path,
        "cats_yes",
        pair("1", "2", [("Z", "a1"), ("A", "a2"), ("Q", "equal")], "a1"),
        pair("2", "3", [("A", "a2")]),
    )
    write(tmp_path, "cats_no", pair("1", "3", [("A", "a1"), ("B", "a1")], "equal", stance="No"))
    return tmp_path


def test_what_is_written_is_understood(script, corpus, capsys):
    script.main(script.Config(corpus, corpus / "out"))
    out = capsys.readouterr().out
    assert "2 topics, 3 pairs, 6 votes, 5 arguments, 4 annotators, 1 pairs without gold" in out
    data = read(corpus / "out" / "ukp_pairs.jsonl.gz", texts=corpus / "out" / "ukp_arguments.jsonl.gz", fields=FIELDS)
    found = audit(data)
    assert (found.comparisons, found.votes, found.ties, found.annotators, found.sources) == (3, 6, 1, 4, 1)
    assert set(data.prompts) == {"Cats?\nYes", "Cats?\nNo"}
    assert found.gold == {"first": 1, "second": 0, "tie": 1, "none": 1}
    assert data.columns["topic"].tolist() == ["cats_no", "cats_yes", "cats_yes"]


def test_sides_votes_and_texts_are_those_of_the_corpus(script, corpus):
    rows, texts = script.convert(corpus.glob("*.xml"))
    votes = {row["id"]: [vote["vote"] for vote in row["votes"]] for row in rows}
    assert votes == {"cats_no/1_3": ["a", "a"], "cats_yes/1_2": ["a", "b", "tie"], "cats_yes/2_3": ["b"]}
    assert {row["id"]: row["gold"] for row in rows} == {"cats_no/1_3": "tie", "cats_yes/1_2": "a", "cats_yes/2_3": None}
    for row in rows:
        for side, key in zip("ab", row["id"].split("/")[1].split("_")):
            assert texts[row[side]] == TEXTS[key]


def test_workers_are_numbered_as_they_appear_and_their_names_are_gone(script, corpus):
    rows, _ = script.convert(corpus.glob("*.xml"))
    seen = [vote["annotator"] for row in rows for vote in row["votes"]]
    # A, B; then Z, A, Q; then A: the files are read in the order of their names.
    assert seen == ["w0000", "w0001", "w0002", "w0000", "w0003", "w0000"]


def test_the_same_corpus_gives_the_same_bytes(script, corpus):
    for folder in ("one", "two"):
        script.main(script.Config(corpus, corpus / folder))
    for name in ("ukp_pairs.jsonl.gz", "ukp_arguments.jsonl.gz"):
        one, two = ((corpus / folder / name).read_bytes() for folder in ("one", "two"))
        assert one == two
        assert one[4:8] == bytes(4)  # the date in the header of a gzip: none


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("<list><annotatedArgumentPair>", "not XML"),
        ("<list></list>", "no annotated pairs"),
        (f"<list>{pair('1', '2', [('A', 'a3')])}</list>", "vote is not understood"),
        (f"<list>{pair('1', '2', [('A', 'a1')], 'both')}</list>", "vote is not understood"),
        (f"<list>{pair('1', '2', [('A', 'a1')]).replace('<turkID>A</turkID>', '')}</list>", "no turkID"),
        (f"<list>{pair('1', '2', [('A', 'a1')]).replace('<title>Cats?</title>', '<title/>')}</list>", "no debateMeta"),
        (f"<list>{pair('1', '2', []) + pair('1', '3', []).replace('purr', 'hiss')}</list>", "one id has two texts"),
    ],
)
def test_a_file_of_another_schema_is_named(script, tmp_path, content, reason):
    (tmp_path / "cats.xml").write_text(content)
    with pytest.raises(DataError, match=reason) as caught:
        script.convert(tmp_path.glob("*.xml"))
    assert caught.value.numbers["file"] == tmp_path / "cats.xml"


def test_a_folder_without_xml_is_refused(script, tmp_path):
    with pytest.raises(DataError, match="no XML files"):
        script.main(script.Config(tmp_path, tmp_path / "out"))
