"""Laws of read: rows = comparisons + counted drops, a text is one response, and bad input is named with a remedy."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmjax.data.formats import Fields, read
from rmjax.data.formats.assemble import Row, assemble
from rmjax.data.formats.fields import Judgement
from rmjax.errors import DataError
from rmjax.votes import FIRST, SECOND

GOOD = {"prompt": "2 + 2?", "chosen": "4", "rejected": "5"}
BALLOT = {"prompt": "2 + 2?", "a": "4", "b": "5", "votes": ["a", "b", "a"], "gold": "a"}


def write(folder, rows, name="file.jsonl"):
    path = folder / name
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows))
    return path


TEXTS = st.sampled_from(["w", "x", "y", "z"])


@given(st.lists(st.tuples(st.sampled_from(["p", "q"]), TEXTS, TEXTS).filter(lambda t: t[1] != t[2]), min_size=1))
def test_a_text_under_a_prompt_is_one_response_and_every_row_keeps_its_texts(drawn):
    rows = [
        Row(number, Judgement("f", prompt, first, second, (1, 0, 0, 0)), prompt, ())
        for number, (prompt, first, second) in enumerate(drawn, start=1)
    ]
    data = assemble(rows, (), "file", {})
    c = data.comparisons
    named = [(data.prompts[p], text) for p, text in zip(c.prompt, data.responses)]
    assert len(set(named)) == len(named)
    assert [
        (data.prompts[c.prompt[i]], data.responses[i], data.responses[j]) for i, j in zip(c.first, c.second)
    ] == drawn
    assert data.rows.tolist() == list(range(1, len(drawn) + 1))


BAD = {
    "invalid JSON": '{"prompt": "2 + 2?",',
    "not a JSON object": [1, 2],
    "no `rejected`": {"prompt": "2 + 2?", "chosen": "4"},
    "`chosen` is not a text": GOOD | {"chosen": 4},
    "an answer is empty": GOOD | {"rejected": " \n"},
    "no `prompt`|another format": {
        "chosen": "\n\nHuman: a\n\nAssistant: 4",
        "rejected": "\n\nHuman: a\n\nAssistant: 5",
    },
}


@pytest.mark.parametrize("reason", BAD)
@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_bad_row_is_named_by_file_and_line_with_a_remedy(tmp_path, reason, at):
    rows = [GOOD, GOOD]
    rows.insert(at - 1, BAD[reason])
    path = write(tmp_path, rows)
    if "another" in reason and at == 1:
        at = 2  # the first row says what the format is
    with pytest.raises(DataError, match=reason) as caught:
        read(path)
    assert caught.value.numbers["row"] == at
    assert caught.value.numbers["file"] == path
    assert 'on_bad_row="drop"' in caught.value.remedy


@pytest.mark.parametrize(
    "bad",
    [
        BALLOT | {"votes": [float("nan")]},
        BALLOT | {"votes": {"a": -1}},
        BALLOT | {"votes": ["maybe"]},
        {k: v for k, v in BALLOT.items() if k != "votes"},
    ],
)
def test_a_bad_vote_is_named_by_its_line(tmp_path, bad):
    with pytest.raises(DataError, match="vote") as caught:
        read(write(tmp_path, [BALLOT, bad]))
    assert caught.value.numbers["row"] == 2


def test_a_prompt_that_differs_between_the_sides_is_named_by_its_line(tmp_path):
    def dialogue(ask, reply):
        return f"\n\nHuman: {ask}\n\nAssistant: {reply}"

    good = {"chosen": dialogue("2 + 2?", "4"), "rejected": dialogue("2 + 2?", "5")}
    bad = {"chosen": dialogue("2 + 2?", "4"), "rejected": dialogue("3 + 3?", "5")}
    with pytest.raises(DataError, match="prompt differs between the two sides") as caught:
        read(write(tmp_path, [good, bad]))
    assert caught.value.numbers["row"] == 2


@given(st.lists(st.sampled_from(["good", "same", *list(BAD)[:-1]]), min_size=1, max_size=8))
def test_what_is_dropped_is_counted_with_its_rows(tmp_path_factory, kinds):
    folder = tmp_path_factory.getbasetemp()
    same = GOOD | {"rejected": "4"}
    rows = [{"good": GOOD, "same": same}.get(kind) or BAD[kind] for kind in kinds]
    path = write(folder, [GOOD, *rows])
    data = read(path, on_bad_row="drop")
    assert data.rows.tolist() == [1] + [n for n, kind in enumerate(kinds, start=2) if kind == "good"]
    left_out = sorted(row for numbers in data.dropped.values() for row in numbers)
    assert sorted([*data.rows.tolist(), *left_out]) == list(range(1, len(rows) + 2))
    assert data.dropped.get("identical answers", ()) == tuple(n for n, k in enumerate(kinds, start=2) if k == "same")


def test_rows_like_the_first_bad_one_are_counted_in_the_error(tmp_path):
    with pytest.raises(DataError, match="rows like it=3"):
        read(write(tmp_path, [GOOD] + [BAD["an answer is empty"]] * 3))


def test_identical_answers_are_dropped_and_counted_or_refused(tmp_path):
    path = write(tmp_path, [GOOD, GOOD | {"rejected": "4"}])
    assert read(path).dropped == {"identical answers": (2,)}
    with pytest.raises(DataError, match=r"identical answers.*row=2"):
        read(path, on_identical_answers="bad")


def test_silence_may_be_an_answer(tmp_path):
    data = read(write(tmp_path, [GOOD | {"rejected": " "}]), on_empty_answer="keep")
    assert data.responses == ("4", " ")


def test_a_file_of_bad_rows_alone_is_refused_with_their_counts(tmp_path):
    with pytest.raises(DataError, match=r"no row of the file can be used.*identical answers=2, the first in row 1"):
        read(write(tmp_path, [GOOD | {"rejected": "4"}] * 2))


def test_an_unknown_format_lists_what_was_seen_and_what_is_known(tmp_path):
    with pytest.raises(DataError, match=r"format is unknown.*columns=question, good, bad.*`chosen` and `rejected`"):
        read(write(tmp_path, [{"question": "2 + 2?", "good": "4", "bad": "5"}]))


def test_columns_that_nothing_was_made_of_are_named(tmp_path):
    rows = [GOOD | {"margin": 3, "topic": "sums", "votes": 1}, GOOD | {"rejected": "6", "topic": "more", "id": 7}]
    assert read(write(tmp_path, rows), fields=Fields(keep=("topic",))).unread == ("margin", "votes", "id")
    assert read(write(tmp_path, [BALLOT | {"chosen_by": "x"}])).unread == ("chosen_by",)


def test_columns_may_have_other_names(tmp_path):
    path = write(tmp_path, [{"question": "2 + 2?", "good": "4", "bad": "5"}])
    data = read(path, fields=Fields(prompt=("question",), chosen="good", rejected="bad"))
    assert (data.prompts, data.responses) == (("2 + 2?",), ("4", "5"))


def test_votes_keep_their_annotators_and_pool_into_the_comparisons(tmp_path):
    signed = [{"vote": "a", "annotator": "ann"}, "b", {"vote": "cannot judge", "annotator": "bob"}]
    data = read(write(tmp_path, [BALLOT | {"votes": signed}, BALLOT | {"votes": [*signed, "tie", "b"]}]))
    c = data.comparisons
    assert data.annotators == ("ann", "bob")
    # Unsigned votes are by nobody in particular: no two of them are one person's.
    assert data.votes.annotator.tolist() == [0, 2, 1, 0, 3, 1, 4, 5]
    counts = data.votes.counts(2)
    np.testing.assert_array_equal(counts[:, FIRST], c.wins_first)
    np.testing.assert_array_equal(counts[:, SECOND], c.wins_second)
    assert data.abstentions.tolist() == [1, 1]
    assert c.ties.tolist() == [0, 1]


def test_counts_stay_counts_however_large(tmp_path):
    data = read(write(tmp_path, [BALLOT | {"votes": {"a": 2**24, "tie": 3}}, BALLOT | {"votes": {"a": 0.5}}]))
    assert data.votes is None
    assert data.comparisons.wins_first.tolist() == [2**24, 0.5]
    assert data.comparisons.ties.tolist() == [3, 0]


def test_gold_tells_sides_ties_and_absence_apart(tmp_path):
    data = read(write(tmp_path, [BALLOT | {"gold": gold} for gold in ("a", "b", "tie", None)]))
    assert data.gold.tolist() == [1, -1, 0, 0]
    assert data.gold_ties.tolist() == [False, False, True, False]
    assert read(write(tmp_path, [BALLOT | {"gold": None}])).gold is None


def test_sources_and_columns_come_from_their_columns(tmp_path):
    rows = [BALLOT | {"from": 7, "words": 3, "kind": "sum"}, BALLOT | {"from": "x", "words": None, "kind": None}]
    data = read(write(tmp_path, rows), fields=Fields(source="from", keep=("words", "kind")))
    # One prompt text under two sources is two prompts, so that neither source is lost.
    assert (data.prompts, data.sources) == (("2 + 2?", "2 + 2?"), ("7", "x"))
    assert data.comparisons.cluster.tolist() == [0, 1]
    np.testing.assert_array_equal(data.columns["words"], [3, np.nan])
    assert data.columns["kind"].tolist() == ["sum", ""]
    with pytest.raises(DataError, match="no `era`"):
        read(write(tmp_path, rows), fields=Fields(source="era"))


@pytest.mark.parametrize("values", [[2**63 + 1, None], [10**30, 1], [2**53 + 1, 0.5]])
def test_a_long_number_that_is_carried_along_is_not_rounded(values, tmp_path):
    data = read(write(tmp_path, [BALLOT | {"id": value} for value in values]), fields=Fields(keep=("id",)))
    assert data.columns["id"].tolist() == ["" if value is None else str(value) for value in values]
    exact = read(write(tmp_path, [BALLOT | {"id": value} for value in (2**53 + 1, 7)]), fields=Fields(keep=("id",)))
    assert exact.columns["id"].tolist() == [2**53 + 1, 7]


@pytest.mark.parametrize("extra", [{"note": "\ud83d"}, {"\ud83d": 1}])
def test_half_a_character_is_not_carried_along(extra, tmp_path):
    path = write(tmp_path, [BALLOT | {"note": "n"}, BALLOT | {"note": "n"} | extra])
    with pytest.raises(DataError, match=r"half a surrogate pair.*row=2"):
        read(path, fields=Fields(keep=("note",)))


def test_texts_come_from_a_second_file(tmp_path):
    texts = write(tmp_path, [{"id": "4", "text": "four"}, {"id": "5", "text": "five"}], "texts.jsonl")
    path = write(tmp_path, [BALLOT, BALLOT | {"a": "6"}])
    assert read(path, texts=texts, on_bad_row="drop").responses == ("four", "five")
    with pytest.raises(DataError, match=r"not in the file of texts.*row=2.*id=6"):
        read(path, texts=texts)


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        ({"id": "4"}, "no `text`"),
        ({"text": "x"}, "no `id`"),
        ({"id": "4", "text": "FOUR"}, "one id has two texts"),
        ({"id": "5", "text": 5}, "`text` is not a text"),
        ("{", "invalid JSON"),
    ],
)
def test_a_bad_file_of_texts_is_named_by_its_line(tmp_path, second, reason):
    texts = write(tmp_path, [{"id": "4", "text": "four"}, second], "texts.jsonl")
    with pytest.raises(DataError, match=reason) as caught:
        read(write(tmp_path, [BALLOT]), texts=texts)
    assert (caught.value.numbers["file"], caught.value.numbers["row"]) == (texts, 2)
