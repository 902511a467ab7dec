"""Laws of splits: nothing is shared, everything is kept, and the order of rows does not matter."""

import itertools

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rmjax.data.dataset import PreferenceData, subset
from rmjax.data.formats.assemble import Row, assemble
from rmjax.data.formats.fields import Judgement
from rmjax.data.proof import prove, same_text
from rmjax.data.split import group_folds, groups, split
from rmjax.errors import DataError

SEEDS = st.integers(0, 5)


def assembled(rows) -> PreferenceData:
    """Rows of (prompt, source, first, second)."""
    judged = [
        Row(number, Judgement("f", prompt, first, second, (1, 0, 0, 0)), source, ())
        for number, (prompt, source, first, second) in enumerate(rows, start=1)
    ]
    return assemble(judged, (), "file", {})


@st.composite
def tangled(draw, least=2):
    """Rows whose prompts share sources and answers here and there, some in another spelling."""
    number = draw(st.integers(least, 14))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    answers = draw(st.sampled_from([12, 100]))
    rows = []
    for _ in range(number):
        one, other = rng.choice(answers, 2, replace=False)
        space = " " * int(rng.integers(1, 3))
        rows.append(
            (f"prompt{space}{rng.integers(0, 8)}", f"s{rng.integers(0, 20)}", f"answer{space}{one}", f"r {other}")
        )
    return rows


def identity(data):
    """What the comparisons say, whatever their order."""
    c = data.comparisons
    return sorted(
        (data.prompts[c.prompt[i]], data.sources[c.prompt[i]], data.responses[i], data.responses[j])
        for i, j in zip(c.first, c.second)
    )


@given(tangled(), SEEDS)
def test_parts_share_nothing_and_hold_everything(rows, seed):
    data = assembled(rows)
    assume(groups(data).max() > 0)
    try:
        done = split(data, {"train": 0.6, "test": 0.4}, seed)
    except DataError:  # the groups are too few or too large: the next tests say when
        return
    assert done.proof.holds
    for kind in ("prompts", "sources", "responses"):
        train, test = ({same_text(text) for text in getattr(part, kind)} for part in done.parts.values())
        assert not train & test
    assert sorted(itertools.chain.from_iterable(map(identity, done.parts.values()))) == identity(data)


@given(tangled(), SEEDS, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(rows, seed, random):
    shuffled = random.sample(rows, len(rows))
    one, other = assembled(rows), assembled(shuffled)
    assume(groups(one).max() > 0)
    try:
        first, second = (split(data, {"train": 0.5, "test": 0.5}, seed) for data in (one, other))
    except DataError:
        return
    for name in first.parts:
        assert identity(first.parts[name]) == identity(second.parts[name])
    folds = [group_folds(data, 2, seed) for data in (one, other)]
    for k in range(2):
        assert identity(subset(one, folds[0] == k)) == identity(subset(other, folds[1] == k))


def singles(number):
    return assembled([(f"p{i}", f"p{i}", f"a{i}", f"b{i}") for i in range(number)])


@given(st.integers(10, 40), SEEDS, st.floats(0.2, 0.8))
def test_a_part_misses_its_size_by_at_most_the_largest_group(number, seed, fraction):
    done = split(singles(number), {"train": fraction, "test": 1 - fraction}, seed)
    assert abs(done.proof.comparisons["train"] - fraction * number) <= 1 + 1e-9


def test_the_seed_chooses_another_split():
    data = singles(40)
    parts = [identity(split(data, {"train": 0.5, "test": 0.5}, seed).parts["train"]) for seed in range(4)]
    assert len({tuple(part) for part in parts}) == 4
    folds = [group_folds(data, 4, seed).tolist() for seed in range(4)]
    assert len({tuple(fold) for fold in folds}) == 4


@given(tangled(), SEEDS, st.integers(2, 4))
def test_folds_share_nothing_and_hold_equally_many_groups(rows, seed, number):
    data = assembled(rows)
    group = groups(data)[data.comparisons.prompt[data.comparisons.first]]
    assume(len(set(group)) >= number)
    fold = group_folds(data, number, seed)
    assert prove({str(k): subset(data, fold == k) for k in range(number)}).holds
    held = [len(set(group[fold == k])) for k in range(number)]
    assert min(held) >= 1
    assert max(held) - min(held) <= 1


def test_sizes_in_the_proof_are_those_of_the_parts():
    done = split(singles(10), {"train": 0.5, "validation": 0.3, "test": 0.2})
    assert dict(done.proof.comparisons) == {"train": 5, "validation": 3, "test": 2}
    assert dict(done.proof.responses) == {"train": 10, "validation": 6, "test": 4}
    assert done.groups == 10
    assert done.largest_group == 0.1
    assert done.warnings == ()


def test_a_group_of_more_than_half_is_warned_about():
    rows = [(f"p{i}", f"p{i}", "Yes.", f"no {i}") for i in range(8)] + [("q", "q", "a", "b"), ("r", "r", "c", "d")]
    done = split(assembled(rows), {"train": 0.8, "test": 0.2})
    assert done.largest_group == 0.8
    assert len(done.warnings) == 1
    assert "80%" in done.warnings[0]


@pytest.mark.parametrize(
    "fractions", [{"train": 1.5, "test": -0.5}, {"train": 0.5, "test": 0.4}, {"train": float("nan"), "test": 0.5}, {}]
)
def test_fractions_that_are_none_are_refused(fractions):
    with pytest.raises(DataError, match="sum to 1"):
        split(singles(4), fractions)


def test_a_split_that_leaks_is_refused_however_it_came_about(monkeypatch):
    monkeypatch.setattr("rmjax.data.split.groups", lambda data: np.arange(len(data.prompts)))
    with pytest.raises(DataError, match=r"share texts or sources.*sources=1"):
        split(assembled([(f"p{i}", "one source", f"a{i}", f"b{i}") for i in range(8)]), {"train": 0.5, "test": 0.5})


def test_too_few_groups_are_refused():
    whole = assembled([(f"p{i}", "one source", f"a{i}", f"b{i}") for i in range(6)])
    with pytest.raises(DataError, match="nothing is left"):
        split(whole, {"train": 0.5, "test": 0.5})
    for number in (1, 3):
        with pytest.raises(DataError, match=r"at least one group.*groups=1"):
            group_folds(whole, number)
