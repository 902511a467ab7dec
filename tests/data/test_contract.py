"""Laws of the contract: one text from prompt and answer, decided once and recorded."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from token_worlds import Letters, preferences

from rmjax.data.contract import TextContract, fingerprint, overlay, render, resolve
from rmjax.errors import DataError
from rmjax.tokenizer import ByteTokenizer

CHAT = Letters(chat_template="<s>")
PLAIN = Letters()
STRINGS = preferences(["sum?"], [["4", "5"]], [(0, 0, 1)], format="prompt, chosen and rejected strings")
DIALOGUES = dataclasses.replace(STRINGS, format="strings with an implicit prompt (HH)")
MESSAGES = preferences(
    [(("system", "add"), ("user", "sum?"))], [[(("assistant", "4"),), (("assistant", "5"),)]], [(0, 0, 1)]
)
CONTRACTS = st.builds(
    TextContract,
    template=st.sampled_from(["auto", "chat", "raw"]),
    separator=st.sampled_from(["auto", "", " "]),
    add_bos=st.sampled_from(["auto", True, False]),
    add_eos=st.sampled_from(["auto", True, False]),
    max_length=st.integers(1, 9),
)


@given(CONTRACTS, st.sampled_from([STRINGS, DIALOGUES, MESSAGES]), st.sampled_from([STRINGS, DIALOGUES, MESSAGES]))
def test_what_is_resolved_stays_whatever_file_comes_next(contract, data, other):
    once = resolve(contract, data, CHAT)
    assert resolve(once, other, CHAT) == once
    assert fingerprint(once, CHAT) == fingerprint(resolve(once, other, CHAT), CHAT)


@pytest.mark.parametrize(
    ("data", "tokenizer", "template"),
    [
        (STRINGS, CHAT, "chat"),
        (MESSAGES, CHAT, "chat"),
        (DIALOGUES, CHAT, "raw"),
        (STRINGS, PLAIN, "raw"),
        (MESSAGES, PLAIN, "raw"),
    ],
)
def test_auto_takes_the_template_where_there_is_one_and_a_prompt(data, tokenizer, template):
    assert resolve(TextContract(), data, tokenizer).template == template


@pytest.mark.parametrize(
    "wrong",
    [
        *({"max_length": limit} for limit in (0, -1, 12.0, "5", None, True)),
        {"template": "Raw"},
        {"max_length": np.array([5, 6])},
        {"separator": None},
        {"separator": "a\ud83d"},
        {"template": np.array(["raw", "chat"])},
        {"add_bos": np.bool_(True)},
        {"date_string": 2024},
        {"add_bos": "yes"},
        {"add_bos": 1},
        {"add_eos": None},
        {"truncation": "dorp"},
        {"score_token": "Last"},
    ],
)
def test_what_a_field_cannot_mean_is_refused_by_name(wrong):
    """Each of them would otherwise be read as some other value of the field."""
    with pytest.raises(DataError, match=f"{next(iter(wrong))}="):
        TextContract(**wrong)


def test_a_limit_from_numpy_is_the_same_limit():
    limit = resolve(TextContract(max_length=np.int64(7)), STRINGS, PLAIN)
    assert fingerprint(limit, PLAIN) == fingerprint(resolve(TextContract(max_length=7), STRINGS, PLAIN), PLAIN)


@given(CONTRACTS, st.sampled_from(["chat", "raw"]), st.sampled_from(["chat", "raw"]))
def test_another_template_asked_for_comes_with_its_own_beginning_and_end(contract, own, asked):
    """A separator of "" and no EOS are how a template is written down; of raw text they would make another format."""
    stored = resolve(dataclasses.replace(contract, template=own), STRINGS, CHAT)
    changed = resolve(overlay(stored, TextContract(template=asked)), STRINGS, CHAT)
    rest = dataclasses.replace(TextContract(max_length=contract.max_length), template=asked)
    assert changed == (stored if own == asked else resolve(rest, STRINGS, CHAT))


def test_the_pad_token_is_part_of_the_contract_only_where_it_says_what_is_scored():
    padded = ByteTokenizer()
    padded = dataclasses.replace(padded, special_tokens={**padded.special_tokens, "pad_token": "<|bos|>"})
    for rule in ("last", "hf"):
        contract = resolve(TextContract(score_token=rule), STRINGS, padded)
        assert (fingerprint(contract, padded) == fingerprint(contract, ByteTokenizer())) == (rule == "last")


def test_the_texts_that_come_out():
    def text(data, tokenizer, contract=TextContract()):
        return render(data.prompts[0], data.responses[0], tokenizer, resolve(contract, data, tokenizer))

    assert text(STRINGS, CHAT) == "<s>[user]sum?|[assistant]4|"
    assert text(MESSAGES, CHAT) == "<s>[system]add|[user]sum?|[assistant]4|"
    assert text(DIALOGUES, CHAT) == "sum?4"
    assert text(STRINGS, PLAIN) == "sum?\n\n4"
    assert text(STRINGS, PLAIN, TextContract(separator=" ")) == "sum? 4"
    assert text(MESSAGES, PLAIN) == "\n\nSystem: add\n\nHuman: sum?\n\nAssistant: 4"


def test_an_empty_prompt_leaves_no_trace():
    assert render("", "4", PLAIN, resolve(TextContract(), STRINGS, PLAIN)) == "4"
    assert render("", "4", CHAT, resolve(TextContract(), STRINGS, CHAT)) == "<s>[assistant]4|"


def test_a_text_begins_with_its_prompt_alone():
    for data, tokenizer in ((STRINGS, CHAT), (MESSAGES, CHAT), (STRINGS, PLAIN), (MESSAGES, PLAIN), (DIALOGUES, PLAIN)):
        contract = resolve(TextContract(), data, tokenizer)
        alone = render(data.prompts[0], None, tokenizer, contract)
        assert render(data.prompts[0], data.responses[0], tokenizer, contract).startswith(alone)
        assert alone


def test_the_template_is_told_the_pinned_day():
    tokenizer = Letters(chat_template="today is ")
    contract = resolve(TextContract(date_string="01 Jan 1970"), STRINGS, tokenizer)
    assert "01 Jan 1970" in render("sum?", "4", tokenizer, contract)


@pytest.mark.parametrize(
    "change",
    [
        {"template": "chat"},
        {"separator": " "},
        {"date_string": "01 Jan 1970"},
        {"add_bos": True},
        {"add_eos": False},
        {"max_length": 7},
        {"truncation": "drop"},
        {"score_token": "hf"},
    ],
)
def test_every_choice_is_in_the_fingerprint(change):
    contract = resolve(TextContract(template="raw"), STRINGS, CHAT)
    assert fingerprint(contract, CHAT) != fingerprint(dataclasses.replace(contract, **change), CHAT)
    assert fingerprint(contract, CHAT) != fingerprint(contract, PLAIN)


def test_what_the_tokenizer_cannot_do_is_refused():
    with pytest.raises(DataError, match="no chat template"):
        resolve(TextContract(template="chat"), STRINGS, PLAIN)
    with pytest.raises(DataError, match="no BOS"):
        resolve(TextContract(add_bos=True), STRINGS, Letters(bos_id=None))
    with pytest.raises(DataError, match="no EOS"):
        resolve(TextContract(add_eos=True), STRINGS, Letters(eos_id=None))
