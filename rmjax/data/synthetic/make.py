"""The synthetic world as preference data with its truth beside it."""

from __future__ import annotations

import dataclasses

import numpy as np

from rmjax.comparisons import Comparisons
from rmjax.data.dataset import PreferenceData
from rmjax.data.synthetic.annotators import judge
from rmjax.data.synthetic.grammar import FEATURES, weights, write
from rmjax.data.synthetic.world import World
from rmjax.votes import CANNOT_JUDGE, FIRST, SECOND, TIE, Votes


@dataclasses.dataclass(frozen=True, eq=False)
class SyntheticData:
    """What a file of such preferences would hold, and what nobody but its maker would know."""

    world: World
    data: PreferenceData
    gold: np.ndarray  # [N] float64, the true reward in logits at temperature 1
    features: np.ndarray  # [N, F] float64, in the order of FEATURES; gold = features @ weights
    wording: np.ndarray  # [N], 0 to 2: what the cyclic taste looks at
    margin: np.ndarray  # [E] float64, true log-odds of the first among deciding annotators, before any exchange
    flips: np.ndarray  # [E] bool, where the sides of the judgements were exchanged


def make(world: World) -> SyntheticData:
    """Write the texts of a world and have them judged.

    Guarantees: a function of the dials alone; the first prompts of a larger world are the smaller world; no text
    stands under two prompts; gold labels are those of the rewards and know nothing of the votes.

    Args:
        world: the dials.

    Returns:
        Preference data with every vote, and the truth.

    Raises:
        DataError: more prompts than the grammar has.

    Example:
        >>> made = make(World(num_prompts=10))
        >>> made.data.num_comparisons, made.features.shape
        (60, (40, 3))
    """
    scenes = [write(world, index) for index in range(world.num_prompts)]
    features = np.concatenate([scene.features for scene in scenes])
    gold = features @ weights(world)
    judged = [judge(world, index, scene.features @ weights(world), scene.wording) for index, scene in enumerate(scenes)]
    per_prompt = len(judged[0].first)
    offset = np.repeat(np.arange(world.num_prompts) * world.candidates, per_prompt)
    first = offset + np.concatenate([j.first for j in judged])
    second = offset + np.concatenate([j.second for j in judged])
    votes = Votes.build(
        item=np.repeat(np.arange(len(first)), world.votes),
        annotator=np.concatenate([j.annotator for j in judged]).ravel(),
        value=np.concatenate([j.value for j in judged]).ravel(),
    )
    counts = votes.counts(len(first))
    prompt = np.repeat(np.arange(world.num_prompts), world.candidates)
    better = np.sign(gold[first] - gold[second]).astype(np.int8)
    prompts = tuple(scene.prompt for scene in scenes)
    data = PreferenceData(
        prompts=prompts,
        sources=prompts,
        responses=tuple(text for scene in scenes for text in scene.answers),
        comparisons=Comparisons.from_votes(
            first, second, counts[:, FIRST], counts[:, SECOND], prompt, ties=counts[:, TIE]
        ),
        rows=np.arange(len(first)) + 1,
        abstentions=counts[:, CANNOT_JUDGE].astype(np.float32),
        gold=better,
        gold_ties=better == 0,
        votes=votes,
        annotators=tuple(f"annotator {k}" for k in range(world.annotators)),
        format="synthetic",
        columns={
            "task": np.repeat([scene.task for scene in scenes], per_prompt),
            "form": np.repeat([scene.form for scene in scenes], per_prompt),
            "differs_in": _differences(features[first] != features[second]),
        },
    )
    return SyntheticData(
        world=world,
        data=data,
        gold=gold,
        features=features,
        wording=np.concatenate([scene.wording for scene in scenes]),
        margin=np.concatenate([j.margin for j in judged]),
        flips=np.concatenate([j.flipped for j in judged]),
    )


def _differences(differs: np.ndarray) -> np.ndarray:
    """The features in which two answers differ, as words for slices."""
    rows = [[name for name, here in zip(FEATURES, row) if here] for row in differs]
    return np.array([" and ".join(row) or "nothing" for row in rows])
