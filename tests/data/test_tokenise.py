"""Laws of tokenise: the text decides its ids, the scored token is in it, and every decision is counted."""

import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from token_worlds import BOS, EOS, Letters, dialogues, needs_shared, preferences

from rmjax.data.contract import TextContract
from rmjax.data.tokenise import score_position, tokenise
from rmjax.data.trees import shared_prefix
from rmjax.errors import DataError

HH = "strings with an implicit prompt (HH)"


def one_pair(first="cd", second="ce", prompt="xa", **more):
    return preferences([prompt], [[first, second]], [(0, 0, 1)], **more)


def test_prompt_and_answer_are_one_text_for_the_tokenizer():
    """A merge across the border is made, which two joined lists of ids would miss; the shared prefix ends before it."""
    data = one_pair("bc", "cd", format=HH)
    result = tokenise(data, Letters(), TextContract(add_eos=False))
    assert [text.tolist() for text in result.ids] == [[ord("x"), 5, ord("c")], [*b"xacd"]]
    assert shared_prefix(result.ids) == 1


@given(st.permutations(range(6)), st.integers(0, 5))
def test_ids_depend_on_the_text_alone(order, cut):
    answers = ["ab", "b", "cab", "d", "abab", "xyz"]
    whole = tokenise(preferences(["pa"], [answers], [(0, i, i + 1) for i in range(5)]), Letters())
    moved = [answers[i] for i in order][: max(2, cut)]
    part = tokenise(preferences(["pa"], [moved], [(0, i, i + 1) for i in range(len(moved) - 1)]), Letters())
    known = dict(zip(whole.data.responses, whole.ids))
    for text, ids in zip(part.data.responses, part.ids):
        np.testing.assert_array_equal(ids, known[text])
    assert part.fingerprint == whole.fingerprint


@pytest.mark.parametrize(
    ("template", "add_bos", "wants", "found", "double"),
    [
        (None, "auto", False, 0, 0),
        (None, "auto", True, 1, 0),
        (None, True, False, 1, 0),
        (None, False, True, 0, 0),
        ("<s>", "auto", True, 1, 0),
        ("<s>", True, True, 1, 0),
        ("<s>", False, True, 0, 0),
        ("", "auto", True, 0, 0),
        ("", True, False, 1, 0),
        ("<s><s>", "auto", True, 1, 1),
        ("<s><s>", True, True, 1, 1),
        ("<s><s>", False, True, 0, 1),
    ],
)
def test_one_bos_or_none_and_never_two(template, add_bos, wants, found, double):
    result = tokenise(one_pair(), Letters(chat_template=template, add_bos=wants), TextContract(add_bos=add_bos))
    for ids in result.ids:
        assert (ids == BOS).sum() == found
        assert found == 0 or ids[0] == BOS
    assert result.report.begin_with_bos == 2 * found
    assert result.report.double_bos.count == double


def test_an_eos_is_appended_once():
    data = one_pair("cd</s>", "ce")
    result = tokenise(data, Letters())
    assert [ids.tolist().count(EOS) for ids in result.ids] == [1, 1]
    assert all(ids[-1] == EOS for ids in result.ids)
    assert result.report.eos_appended == 1
    assert result.report.special_strings.count == 1


@given(st.lists(st.integers(1, 4), min_size=1, max_size=8), st.integers(1, 4))
def test_the_rule_hf_is_that_of_transformers(ids, pad):
    ids = np.array(ids)
    position = score_position(ids, pad, "hf")
    assert position == (np.arange(len(ids)) * (ids != pad)).argmax()
    assert score_position(ids, pad, "last") == score_position(ids, None, "hf") == len(ids) - 1


def test_the_lint_counts_where_the_rules_disagree():
    """pad = eos, the fallback of many trainers: the EOS that was appended is never scored under `hf`."""
    result = tokenise(one_pair(), Letters(), TextContract(score_token="hf"))
    assert result.report.score_rules_disagree.count == 1
    assert result.score_position.tolist() == [len(ids) - 2 for ids in result.ids]
    assert tokenise(one_pair(), Letters(pad_id=None)).report.score_rules_disagree.count == 0


@pytest.mark.parametrize("answer", ["", " \n", (), (("assistant", " "),)])
def test_an_empty_answer_is_refused_by_row_unless_it_is_an_answer(answer):
    prompt = "p" if isinstance(answer, str) else (("user", "p"),)
    good = "cd" if isinstance(answer, str) else (("assistant", "cd"),)
    data = preferences([prompt] * 2, [[good, good + good], [good, answer]], [(0, 0, 1), (1, 0, 1)])
    with pytest.raises(DataError, match=r"an answer is empty \[row=2"):
        tokenise(data, Letters())
    assert tokenise(data, Letters(), on_empty_answer="keep").report.comparisons == 2


def test_sides_that_become_identical_are_not_compared():
    """The template strips what told them apart."""
    data = preferences(["p", "q"], [["cd", "cd "], ["cd", "ce"]], [(0, 0, 1), (1, 0, 1)])
    data = dataclasses.replace(data, dropped={"bad": (9,)})
    result = tokenise(data, Letters(chat_template="<s>"))
    assert result.report.became_identical.rows == (1,)
    assert result.data.rows.tolist() == [2]
    assert result.data.dropped == {"bad": (9,)}
    assert len(result.ids) == len(result.data.responses) == len(result.score_position) == 2


def test_a_text_over_the_limit_is_counted_and_cut_or_left_out():
    data = preferences(["p" * 9, "q"], [["cd", "cde"], ["c" * 30, "d"]], [(0, 0, 1), (1, 0, 1)], format=HH)
    result = tokenise(data, Letters(), TextContract(max_length=8))
    report = result.report
    assert (report.over_limit.count, report.cut.rows, report.left_out.rows) == (2, (1,), (2,))
    assert report.comparisons == result.data.num_comparisons == 1
    assert [Letters().decode(ids) for ids in result.ids] == ["ppppcd</s>", "ppppcde</s>"]


def test_nothing_left_is_an_error():
    with pytest.raises(DataError, match="nothing is left"):
        tokenise(one_pair(), Letters(), TextContract(max_length=1))


def test_the_report_is_json():
    report = tokenise(one_pair(), Letters()).report
    assert json.loads(json.dumps(dataclasses.asdict(report)))["contract"]["template"] == "raw"


@needs_shared
def test_dialogues_of_hh_have_the_published_lengths():
    result = dialogues()
    c, lengths = result.data.comparisons, result.lengths
    assert result.report.comparisons == 2312
    pairs = lengths[c.first] + lengths[c.second]
    shared = np.array([shared_prefix([result.ids[a], result.ids[b]]) for a, b in zip(c.first, c.second)])
    assert round(pairs.mean()) == 340
    assert round(shared.mean()) == 125
    assert round((pairs - shared).mean()) == 215
