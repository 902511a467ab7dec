"""Laws of the table: every count of the audit can be read in it, also where there is no terminal."""

import dataclasses

import numpy as np
from rich.console import Console

from rmjax import Comparisons
from rmjax.data.audit import audit
from rmjax.data.dataset import PreferenceData
from rmjax.data.render import lines, render

DATA = PreferenceData(
    prompts=("p",),
    sources=("p",),
    responses=("longer", "short"),
    comparisons=Comparisons.from_votes([0], [1], [3], [1], prompt=[0, 0], ties=[2]),
    rows=np.array([1]),
    abstentions=np.array([5], np.float32),
    gold=np.array([1], np.int8),
    gold_ties=np.array([False]),
    annotators=("ann", "bob"),
    format="a, b and single votes",
    dropped={"identical answers": (2, 3)},
    file="folder/[bold]file.jsonl",
)


def printed(audited, more=()):
    console = Console(width=100, force_terminal=False)
    with console.capture() as shown:
        console.print(render(audited, more))
    return shown.get()


def test_a_share_of_nothing_is_none():
    silent = audit(dataclasses.replace(DATA, gold=np.array([0], np.int8)))
    assert dict(lines(silent))["the longer answer wins"].endswith("none against gold (characters)")


def test_all_counts_are_told():
    told = dict(lines(audit(DATA)))
    assert told["rows"] == "3"
    assert told["  left out: identical answers"] == "2"
    assert told["votes"] == "6 (6 a comparison)"
    assert told["  ties"] == "2 (33.3% of the votes)"
    assert told["  cannot judge"] == "5, not among the votes"
    assert told["annotators"] == "2"
    assert told["gold"] == "first 1, second 0, tie 0, none 0"
    assert told["the longer answer wins"] == "0.750 of the votes for a side, 1.000 against gold (characters)"


def test_every_number_of_the_audit_changes_what_is_told():
    base = audit(DATA)
    for field in dataclasses.fields(base):
        value = getattr(base, field.name)
        if isinstance(value, int | float):
            other = dataclasses.replace(base, **{field.name: value + 7})
            assert lines(other) != lines(base), field.name


def test_without_a_terminal_the_table_is_plain_and_brackets_stay():
    text = printed(audit(DATA), [("weighing", "per vote")])
    assert "\x1b" not in text
    assert "folder/[bold]file.jsonl" in text
    assert [line.split() for line in text.splitlines()][-1] == ["weighing", "per", "vote"]


def test_what_is_not_there_is_said():
    told = dict(lines(audit(dataclasses.replace(DATA, gold=None, gold_ties=None, annotators=()))))
    assert told["annotators"] == "not named"
    assert told["gold"] == "none"
