"""Laws of the written world: features are what the text says, and length follows quality as far as a dial says."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmjax.data.synthetic import World
from rmjax.data.synthetic.grammar import CLOSINGS, weights, write
from rmjax.errors import DataError

worlds = st.builds(World, seed=st.integers(0, 2**31 - 1), candidates=st.integers(2, 8))
indices = st.integers(0, 13_823)

QUESTIONS = {
    r"has (\d+) .* finds (\d+)\. How many now": lambda a, b: a + b,
    r"had (\d+) .* lost (\d+)\. How many now": lambda a, b: a - b,
    r"saw (\d+) .* then (\d+)\. Which is more": max,
    r"saw (\d+) .* then (\d+)\. Which is fewer": min,
}


def read_prompt(prompt):
    """The right number and the asked form, as a reader of English finds them."""
    for pattern, compute in QUESTIONS.items():
        if found := re.search(pattern, prompt):
            return compute(*map(int, found.groups())), re.search(r"Answer ([\w ]+)\.", prompt)[1]
    raise AssertionError(prompt)


def read_answer(answer):
    """Number, form and politeness."""
    statement = re.match(r"(\w+ \w+ (\d+) [\w ]+)\.", answer)
    form = "in capitals" if statement[1].isupper() else "plainly"
    return int(statement[2]), form, next(kind for kind, ends in CLOSINGS.items() if answer.endswith(ends))


@given(worlds, indices)
def test_the_features_are_what_a_reader_finds(world, index):
    scene = write(world, index)
    right, form = read_prompt(scene.prompt)
    assert form == scene.form
    for answer, features in zip(scene.answers, scene.features):
        number, used, polite = read_answer(answer)
        assert features.tolist() == [number == right, used == form, polite]


@given(worlds, indices)
def test_texts_are_short_english_and_all_different(world, index):
    scene = write(world, index)
    assert len(set(scene.answers)) == world.candidates
    assert 30 <= len(scene.prompt.encode()) <= 80
    assert all(20 <= len(answer.encode()) <= 120 for answer in scene.answers)
    assert not re.search(r"  |\b1\b|\{|\}", " ".join([scene.prompt, *scene.answers]))


@given(worlds, indices)
def test_a_scene_is_a_function_of_seed_and_index(world, index):
    one, two = write(world, index), write(World(seed=world.seed, candidates=world.candidates, num_prompts=1), index)
    assert (one.prompt, one.answers, one.task) == (two.prompt, two.answers, two.task)
    assert write(World(seed=world.seed + 1), index).answers != write(World(seed=world.seed), index).answers
    more = write(World(seed=world.seed, candidates=world.candidates + 1), index)
    assert more.answers[: world.candidates] == one.answers


def test_every_prompt_has_people_and_things_of_its_own_until_there_are_no_more():
    """So no answer can stand under two prompts, and a split by text divides by prompt."""
    world = World(candidates=2)
    owners = {
        re.search(r"^(\w+) \w+ \d+ (\w+ \w+?)[ ,.]", write(world, k).prompt).groups() for k in range(0, 13_824, 7)
    }
    assert len(owners) == len(range(0, 13_824, 7))
    with pytest.raises(DataError, match="prompt=13824"):
        write(world, 13_824)


def sample(rho, size=500):
    world = World(length_correlation=rho)
    scenes = [write(world, index) for index in range(size)]
    lengths = np.array([len(answer) for scene in scenes for answer in scene.answers])
    return lengths, np.concatenate([scene.features for scene in scenes]), world


def test_length_follows_quality_as_far_as_the_dial_says():
    measured = {}
    for rho in (-1.0, -0.5, 0.0, 0.5, 1.0):
        lengths, features, world = sample(rho)
        measured[rho] = np.corrcoef(lengths, features @ weights(world))[0, 1]
    assert sorted(measured, key=measured.get) == [-1.0, -0.5, 0.0, 0.5, 1.0]
    assert measured[1.0] > 0.85
    assert measured[-1.0] < -0.85
    assert abs(measured[0.0]) < 4 / np.sqrt(2000)


def test_without_the_dial_length_tells_no_feature():
    """Closings of each kind are as long as one another, and so are the two forms."""
    assert {sum(map(len, kind)) for kind in CLOSINGS.values()} == {39}
    lengths, features, _ = sample(0.0)
    for column in features.T:
        assert abs(np.corrcoef(lengths, column)[0, 1]) < 4 / np.sqrt(len(lengths))


def test_features_are_drawn_independently_of_each_other():
    _, features, _ = sample(0.3)
    off = np.corrcoef(features.T)[np.triu_indices(3, 1)]
    assert (np.abs(off) < 4 / np.sqrt(len(features))).all()
    np.testing.assert_allclose(features.mean(axis=0), [0.5, 0.5, 0.0], atol=4 * np.sqrt(2 / 3 / len(features)))


def test_a_world_in_which_nothing_matters_still_writes():
    scene = write(World(correct=0.0, form=0.0, polite=0.0, length_correlation=1.0), 0)
    assert len(scene.answers) == 4
