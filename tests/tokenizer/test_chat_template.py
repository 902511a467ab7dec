import json
import time

import pytest

from rmjax.errors import DataError
from rmjax.tokenizer import render_chat
from tests.models.model_files import GOLDEN

CHATS = json.loads((GOLDEN / "chats.json").read_text("utf-8"))
RENDERED = json.loads((GOLDEN / "chats_rendered.json").read_text("utf-8"))
SPECIALS = {"bos_token": "<|im_start|>", "eos_token": "<|im_end|>"}
HI = [{"role": "user", "content": "Hi"}]


@pytest.mark.parametrize("prompt", [False, True])
@pytest.mark.parametrize("name", CHATS["templates"])
def test_templates_render_as_in_transformers(name, prompt):
    for messages, theirs in zip(CHATS["messages"], RENDERED[name][prompt], strict=True):
        ours = render_chat(CHATS["templates"][name], messages, special_tokens=SPECIALS, add_generation_prompt=prompt)
        assert ours == theirs


def test_the_day_is_the_one_that_was_given_and_never_the_clock(monkeypatch):
    template = "{{ strftime_now('%A %d %B %Y %H:%M') }} {{ date_string }}"
    first = render_chat(template, HI, date_string="29 Feb 2024")
    assert first == "Thursday 29 February 2024 00:00 29 Feb 2024"
    monkeypatch.setattr(time, "time", lambda: 0.0)
    assert render_chat(template, HI, date_string="29 Feb 2024") == first
    assert render_chat(template, HI, date_string="01 Mar 2024") != first


@pytest.mark.parametrize("date", ["today", "2024-07-26", "30 Feb 2024"])
def test_a_date_that_is_none_is_refused(date):
    with pytest.raises(DataError, match="26 Jul 2024"):
        render_chat("", HI, date_string=date)


def test_what_a_template_refuses_is_told_in_its_words():
    with pytest.raises(DataError, match="unknown role: tool"):
        render_chat(CHATS["templates"]["control"], [{"role": "tool", "content": "4"}], special_tokens=SPECIALS)


@pytest.mark.parametrize(
    "template",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ messages.append(messages[0]) }}",
        "{{ messages[0].update(role='system') }}",
        "{% for m in messages %}",
        "{{ messages[0].missing.deeper }}",
    ],
)
def test_a_template_stays_in_its_sandbox_and_its_mistakes_are_ours_to_name(template):
    with pytest.raises(DataError, match="template"):
        render_chat(template, HI)
    assert HI == [{"role": "user", "content": "Hi"}]
