"""Laws of the limit: answers stay whole, what is shared stays shared, and nothing is lost uncounted."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from token_worlds import BOS, from_ids

from rmjax.data.contract import TextContract
from rmjax.data.trees import shared_prefix
from rmjax.data.truncation import shorten
from rmjax.errors import DataError


@st.composite
def prompts_and_answers(draw):
    """Ids of two prompts with answers, beginning with a BOS or not."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    bos = [BOS] * draw(st.integers(0, 1))
    prompts = [np.concatenate([bos, rng.integers(3, 9, rng.integers(0, 12))]).astype(np.int32) for _ in range(2)]
    answers = [[np.append(10 + i, rng.integers(3, 9, rng.integers(0, 12))) for i in range(3)] for _ in prompts]
    return prompts, answers


@given(prompts_and_answers(), st.integers(1, 20))
def test_answers_stay_whole_and_prompts_lose_their_beginning_alike(world, limit):
    prompts, answers = world
    groups = [[np.concatenate([prompt, a]) for a in group] for prompt, group in zip(prompts, answers)]
    pairs = [(p, i, j) for p in range(2) for i, j in ((0, 1), (1, 2))]
    tokenised = from_ids(groups, pairs)
    data, ids = tokenised.data, tokenised.ids
    result = shorten(ids, data, TextContract(max_length=limit), BOS, lambda p: prompts[p])
    c = data.comparisons
    length = np.array([len(text) for text in ids])
    np.testing.assert_array_equal(result.over, np.maximum(length[c.first], length[c.second]) > limit)
    assert not (result.cut & ~result.keep).any()
    assert not (~result.keep & ~result.over).any()
    flat = [answer for group in answers for answer in group]
    begins_with_bos = [len(prompt) > 0 and prompt[0] == BOS for prompt in prompts]
    for e in range(data.num_comparisons):
        sides = (int(c.first[e]), int(c.second[e]))
        p = int(c.prompt[sides[0]])
        fits = all(len(flat[n]) + begins_with_bos[p] <= limit for n in sides)
        assert result.keep[e] == fits
        if not fits:
            continue
        texts = [result.ids[n] for n in sides]
        for n, text in zip(sides, texts):
            assert len(text) <= limit
            np.testing.assert_array_equal(text[len(text) - len(flat[n]) :], flat[n])
            assert not begins_with_bos[p] or text[0] == BOS
        lost = {len(ids[n]) - len(text) for n, text in zip(sides, texts)}
        assert lost == {int(result.lost[n]) for n in sides}
        assert len(lost) == 1
        assert shared_prefix(texts) == shared_prefix([ids[n] for n in sides]) - lost.pop()
        assert not np.array_equal(*texts)


@given(prompts_and_answers())
def test_a_limit_that_nothing_exceeds_changes_nothing(world):
    prompts, answers = world
    tokenised = from_ids([[np.concatenate([p, a]) for a in g] for p, g in zip(prompts, answers)], [(0, 0, 1)])

    def never(prompt):
        raise AssertionError("the prompt alone is not needed")

    result = shorten(tokenised.ids, tokenised.data, TextContract(max_length=99), BOS, never)
    assert all(np.array_equal(a, b) for a, b in zip(result.ids, tokenised.ids))
    assert result.keep.all()


def test_one_answer_that_does_not_fit_costs_the_others_nothing():
    """Its comparisons go; the prompt of those that stay is cut for the longest that is still compared."""
    prompt = np.arange(3, 9)
    group = [np.append(prompt, np.full(n, 10 + n)) for n in (2, 3, 50)]
    world = from_ids([group], [(0, 0, 1), (0, 1, 2)])
    result = shorten(world.ids, world.data, TextContract(max_length=8), None, lambda p: prompt)
    assert result.keep.tolist() == [True, False]
    assert [len(text) for text in result.ids[:2]] == [7, 8]


def test_a_merge_across_the_end_of_the_prompt_is_not_cut():
    """The prompt alone ends in 4; with an answer, 4 is merged into 9, which belongs to the answer."""
    world = from_ids([[[3, 3, 9, 5], [3, 3, 9, 6]]], [(0, 0, 1)])
    for limit, kept in ((3, [3, 9, 5]), (2, [9, 5])):
        result = shorten(world.ids, world.data, TextContract(max_length=limit), None, lambda p: np.array([3, 3, 4]))
        assert result.ids[0].tolist() == kept
    assert not shorten(
        world.ids, world.data, TextContract(max_length=1), None, lambda p: np.array([3, 3, 4])
    ).keep.any()


def test_drop_leaves_out_and_error_names_the_row():
    world = from_ids([[[3, 4], [3, 5]], [[3] * 5, [4]]], [(0, 0, 1), (1, 0, 1)])
    result = shorten(world.ids, world.data, TextContract(max_length=4, truncation="drop"), None, lambda p: world.ids[0])
    assert result.keep.tolist() == [True, False]
    with pytest.raises(DataError, match="row=2, tokens=5, limit=4"):
        shorten(world.ids, world.data, TextContract(max_length=4, truncation="error"), None, lambda p: world.ids[0])
