"""Laws of the proof: it counts what parts share by looking at the parts alone."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmjax.data.dataset import PreferenceData
from rmjax.data.formats.assemble import Row, assemble
from rmjax.data.formats.fields import Judgement
from rmjax.data.proof import prove, same_text
from rmjax.errors import DataError


def assembled(rows) -> PreferenceData:
    """Rows of (prompt, source, first, second)."""
    judged = [
        Row(number, Judgement("f", prompt, first, second, (1, 0, 0, 0)), source, ())
        for number, (prompt, source, first, second) in enumerate(rows, start=1)
    ]
    return assemble(judged, (), "file", {})


def test_the_proof_looks_at_the_parts_and_not_at_how_they_were_made():
    rows = [("p 0", "s0", "a", "b"), ("p 1", "s1", "c", "d"), ("p 2", "s2", "e", "f")]
    leaks = {
        "shared_prompts": ("p  0\n", "s9", "x", "y"),
        "shared_sources": ("p 9", "s0", "x", "y"),
        "shared_responses": ("p 9", "s9", "x", " b "),
    }
    for name, row in leaks.items():
        proof = prove({"train": assembled(rows), "test": assembled([row])})
        assert {kind: getattr(proof, kind) for kind in leaks} == {kind: int(kind == name) for kind in leaks}
        assert not proof.holds
        with pytest.raises(DataError, match="share texts or sources"):
            proof.check()
    assert prove({"train": assembled(rows), "test": assembled([("p 9", "s9", "x", "y")])}).holds


@given(
    st.lists(st.sampled_from("ab \n\t"), max_size=6).map("".join),
    st.lists(st.sampled_from("ab \n\t"), max_size=6).map("".join),
)
def test_texts_are_the_same_where_their_words_are(a, b):
    assert (same_text(a) == same_text(b)) == (a.split() == b.split())


def test_sharing_is_counted_once_however_many_parts_share():
    data, other = assembled([("p", "s", "a", "b")]), assembled([("q", "t", "c", "d")])
    proof = prove({"one": data, "two": data, "three": data, "four": other})
    assert (proof.shared_prompts, proof.shared_sources, proof.shared_responses) == (1, 1, 2)


def test_messages_and_strings_of_the_same_words_are_the_same_text():
    data = assembled([("p", "s", "a", "b"), ("q", "t", "c", "d")])
    said = dataclasses.replace(data, responses=tuple((("assistant", text),) for text in data.responses))
    assert prove({"train": data, "test": said}).shared_responses == 4
