"""Scores on disk join only where one function made them all."""

import dataclasses
import hashlib
import json

import numpy as np
import pytest

from rmjax.comparisons import Comparisons
from rmjax.data.dataset import PreferenceData
from rmjax.errors import DataError, GaugeError
from rmjax.train.scores_file import join_scores, write_scores
from rmjax.train.scoring import Scored

PAIRS = Comparisons.from_pairs([0, 2], [1, 3], prompt=[0, 0, 1, 1])
TEXTS = ("p", "q"), ("p", "q"), ("a", "b", "c", "d")
DATA = PreferenceData(*TEXTS, PAIRS, rows=np.array([4, 9]), abstentions=np.zeros(2, np.float32))

NAMES = [hashlib.sha256(repr(pair).encode()).hexdigest()[:16] for pair in zip(*TEXTS[:2], strict=True)]


def scored(fingerprint):
    scores = np.array([1.0, 0.25, -3.0, 2.0], np.float32)
    return Scored(scores, scores[None], fingerprint)


def test_every_comparison_has_its_row_its_margin_and_the_fingerprint(tmp_path):
    assert write_scores(tmp_path / "s.jsonl", DATA, scored("one"), lost=np.array([0, 0, 3, 3])) == 2
    assert join_scores([tmp_path / "s.jsonl"]) == [
        {
            "row": 4,
            "prompt": NAMES[0],
            "first": 1.0,
            "second": 0.25,
            "margin": 0.75,
            "prompt_tokens_cut": 0,
            "fingerprint": "one",
        },
        {
            "row": 9,
            "prompt": NAMES[1],
            "first": -3.0,
            "second": 2.0,
            "margin": -5.0,
            "prompt_tokens_cut": 3,
            "fingerprint": "one",
        },
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["s.jsonl"]


def test_scores_of_two_functions_do_not_join_and_both_are_named(tmp_path):
    for name in ("one", "two"):
        write_scores(tmp_path / name, DATA, scored(name))
    with pytest.raises(GaugeError, match=r"one, line 1.*two, line 1"):
        join_scores([tmp_path / "one", tmp_path / "two"])


def test_scores_of_a_prompt_that_was_cut_by_different_amounts_do_not_join(tmp_path):
    for name, lost in (("none", [0, 0, 0, 0]), ("all", [3, 3, 3, 3]), ("one", [0, 0, 3, 3])):
        write_scores(tmp_path / name, DATA, scored("same"), lost=np.array(lost))
    assert len(join_scores([tmp_path / "one"])) == 2  # two prompts
    with pytest.raises(GaugeError, match=r"none, line 1=0 tokens cut.*all, line 1=3 tokens cut"):
        join_scores([tmp_path / "none", tmp_path / "all"])
    with pytest.raises(GaugeError, match="one, line 2=3 tokens cut"):
        join_scores([tmp_path / "none", tmp_path / "one"])


NO_SCORES = [
    *("{", "[]", json.dumps({"row": 1}), "", "[" * 100_000, "\udcff"),
    json.dumps({"fingerprint": "one", "prompt": None, "prompt_tokens_cut": 0}),
    json.dumps({"fingerprint": None, "prompt": "p", "prompt_tokens_cut": 0}),
    json.dumps({"fingerprint": "one", "prompt": "p", "prompt_tokens_cut": "0"}),
]


def test_a_prompt_under_two_sources_is_two_prompts(tmp_path):
    data = dataclasses.replace(DATA, prompts=("p", "p"), sources=("here", "there"))
    write_scores(tmp_path / "s.jsonl", data, scored("one"), lost=np.array([0, 0, 3, 3]))
    assert len(join_scores([tmp_path / "s.jsonl"])) == 2


@pytest.mark.parametrize("line", NO_SCORES, ids=range(len(NO_SCORES)))
def test_a_line_that_is_no_score_is_named(line, tmp_path):
    write_scores(tmp_path / "s.jsonl", DATA, scored("one"))
    with (tmp_path / "s.jsonl").open("a", errors="surrogateescape") as file:
        file.write(line + "\n")
    with pytest.raises(DataError, match="line=3"):
        join_scores([tmp_path / "s.jsonl"])
