"""Public preference files: what is understood of them is what was measured on them."""

import time

import numpy as np
import pytest

from rmjax.data.audit import audit
from rmjax.data.dataset import subset
from rmjax.data.formats import Fields, read
from rmjax.data.proof import prove
from rmjax.data.split import group_folds, split
from rmjax.errors import DataError

DEBATES = Fields(prompt=("prompt", "stance"), source="prompt", keep=("topic",))
SECONDS = 10.0  # measured: 0.3 and 1.3; far from it, something has become quadratic


@pytest.fixture(scope="module")
def folder(shared):
    """Where the files lie; `shared` skips where they do not."""
    return shared / "data"


@pytest.fixture(scope="module")
def ukp(folder):
    start = time.process_time()
    data = read(folder / "ukp_pairs.jsonl.gz", texts=folder / "ukp_arguments.jsonl.gz", fields=DEBATES)
    assert time.process_time() - start < SECONDS
    return data


def test_ukp_counts(ukp):
    found = audit(ukp)
    assert found.format == "a, b and single votes"
    assert found.rows == 16_927
    # 1,052 arguments, of which 14 repeat the text of another; 15 pairs compare such twins.
    assert found.dropped == {"identical answers": 15}
    assert (found.comparisons, found.responses) == (16_912, 1_038)
    assert (found.prompts, found.sources, found.groups) == (32, 16, 16)
    assert len(set(ukp.columns["topic"])) == 32
    assert found.annotators == 3_815
    assert found.votes == 84_445 - 75
    assert found.votes_per_comparison[::3] == (4, 5)
    assert found.abstentions == 0
    assert found.gold == {"first": 6_398, "second": 6_394, "tie": 3_274, "none": 846}


def test_ukp_the_longer_argument_wins(ukp):
    found = audit(ukp)
    assert round(found.longer_wins_gold, 3) == 0.745
    assert round(found.longer_wins_votes, 3) == 0.685


def test_ukp_folds_are_four_debates_each_and_share_nothing(ukp):
    fold = group_folds(ukp, 4, seed=0)
    parts = {str(k): subset(ukp, fold == k) for k in range(4)}
    proof = prove(parts)
    assert proof.holds
    assert dict(proof.sources) == dict.fromkeys("0123", 4)
    assert dict(proof.prompts) == dict.fromkeys("0123", 8)
    assert sum(proof.comparisons.values()) == 16_912


def test_hh_counts_and_silence(folder):
    path = folder / "hh_harmless_test.jsonl.gz"
    with pytest.raises(DataError, match=r"an answer is empty.*row=87.*rows like it=4"):
        read(path)
    start = time.process_time()
    data = read(path, on_empty_answer="keep")
    assert time.process_time() - start < SECONDS
    found = audit(data)
    assert found.format == "strings with an implicit prompt (HH)"
    assert (found.rows, found.comparisons, found.dropped) == (2_312, 2_312, {})
    assert (found.prompts, found.responses) == (2_310, 4_624)
    assert round(found.longer_wins_votes, 3) == 0.446
    assert found.gold is None
    assert found.annotators is None
    without = read(path, on_bad_row="drop")
    assert audit(without).dropped == {"an answer is empty": 4}
    assert set(data.rows) - set(without.rows) == {87, 517, 926, 1_104}


def test_hh_splits_share_nothing(folder):
    data = read(folder / "hh_harmless_test.jsonl.gz", on_bad_row="drop")
    done = split(data, {"train": 0.8, "test": 0.2}, seed=3)
    assert done.proof.holds
    assert abs(done.proof.comparisons["train"] - 0.8 * 2_308) <= done.largest_group * 2_308
    assert done.warnings == ()


def test_pandalm_counts(folder):
    data = read(folder / "pandalm_test.jsonl.gz", on_empty_answer="keep", fields=Fields(keep=("models",)))
    found = audit(data)
    assert (found.rows, found.comparisons, found.prompts) == (999, 999, 170)
    assert (found.votes, found.ties, found.annotators) == (2_997, 326, 3)
    assert round(found.ties / found.votes, 3) == 0.109
    assert round(found.longer_wins_votes, 3) == 0.666
    assert "True" in data.responses
    assert set(np.unique(data.columns["models"])) >= {"bloom-7b_llama-7b"}


def test_an_audit_and_a_split_of_ukp_are_quick(ukp):
    start = time.process_time()
    audit(ukp)
    split(ukp, {"train": 0.75, "test": 0.25})
    assert time.process_time() - start < SECONDS
