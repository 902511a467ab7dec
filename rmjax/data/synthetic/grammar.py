"""What the synthetic world says: a prompt with a small computation, and answers whose features are known."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from rmjax.data.synthetic.world import World
from rmjax.errors import DataError

FEATURES = ("correct", "form", "polite")


def _list(words: str) -> tuple[str, ...]:
    """The words of a line."""
    return tuple(words.split())


_NAMES = _list(
    "Ada Anton Bela Boris Cleo Colin Dora Edgar Ella Emil Flora Freya Greta Hanna Hugo Ida Ivan Jonas Julia Karl Lena "
    "Leo Maja Milan Nils Nora Olga Omar Paula Pavel Quinn Rosa Ruth Samir Sofia Tara Theo Ulla Uma Vera Viktor Wanda "
    "Willem Xenia Yann Yusuf Zara Zeno"
)
_KINDS = _list("brown dusty green heavy light old red round small tall white young")
_THINGS = _list(
    "bags beads boats books bowls boxes coins crates cups desks doves drums flags forks geese horses jars keys lamps "
    "maps pens rings stones vases"
)

# A question's text, and its answer. Numbers stay at 2 and above: "1 pens" would be no English.
_TASKS = {
    "add": ("{name} has {a} {things} and finds {b}. How many now?", lambda a, b: a + b),
    "take": ("{name} had {a} {things} and lost {b}. How many now?", lambda a, b: a - b),
    "larger": ("{name} saw {a} {things}, then {b}. Which is more?", max),
    "smaller": ("{name} saw {a} {things}, then {b}. Which is fewer?", min),
}
# How the answer proper is written. The plain form is asked for more often, so that even a reader who does not see the
# question is better off with it.
_FORMS = {"plainly": str, "in capitals": str.upper}
_PLAIN = 2 / 3

# By politeness; each kind has 39 characters in all, so that length alone tells nothing.
CLOSINGS = {
    1: ("Glad to help!", "Have a nice day!", "Thank you!"),
    0: ("That is it.", "So it comes out.", "I stop here."),
    -1: ("Go away now.", "What a bore.", "Leave me alone."),
}
# Three wordings of one length, each preferred to the next by a taste that goes round in a circle.
_WORDINGS = ("counts", "writes", "states")
_IDLE = (
    "I checked twice.",
    "That is all.",
    "One step did it.",
    "You may check.",
    "It took a moment.",
    "The rest is plain.",
    "Nothing to add.",
    "So much for that.",
)


@dataclasses.dataclass(frozen=True)
class Scene:
    """A prompt and its answers, with what is true of each."""

    prompt: str
    task: str
    form: str
    answers: tuple[str, ...]  # [K], all different
    features: np.ndarray  # [K, F], in the order of FEATURES
    wording: np.ndarray  # [K], 0 to 2


def weights(world: World) -> np.ndarray:
    """What each feature is worth, in the order of FEATURES."""
    return np.array([getattr(world, name) for name in FEATURES], float)


def write(world: World, index: int) -> Scene:
    """Prompt number `index` with its answers, as a function of the seed, the index and the dials of the texts.

    Args:
        world: the dials.
        index: which prompt, from 0.

    Returns:
        The scene.

    Raises:
        DataError: the grammar has no more people with things of their own.

    Example:
        >>> write(World(), 0).prompt == write(World(num_prompts=7), 0).prompt
        True
    """
    combinations = len(_NAMES) * len(_KINDS) * len(_THINGS)
    if index >= combinations:
        raise DataError(
            "the grammar has no more prompts whose texts are their own",
            {"prompt": index, "combinations": combinations},
            f"Ask for at most {combinations} prompts.",
        )
    # One to one: 7919 is a prime and no factor of the number of combinations.
    code = (7919 * (index + world.seed)) % combinations
    code, thing = divmod(code, len(_THINGS))
    name, kind = divmod(code, len(_KINDS))
    rng = np.random.default_rng([world.seed, index, 0])
    task, form = _pick(rng, tuple(_TASKS)), "plainly" if rng.random() < _PLAIN else "in capitals"
    question, compute = _TASKS[task]
    a, b = _operands(rng, task)
    words = {"name": _NAMES[name], "things": f"{_KINDS[kind]} {_THINGS[thing]}"}
    answers: dict[str, tuple[np.ndarray, int]] = {}
    while len(answers) < world.candidates:
        text, features, wording = _answer(rng, world, words, compute(a, b), (a, b), form)
        answers.setdefault(text, (features, wording))
    return Scene(
        prompt=f"{question.format(a=a, b=b, **words)} Answer {form}.",
        task=task,
        form=form,
        answers=tuple(answers),
        features=np.stack([features for features, _ in answers.values()]),
        wording=np.array([wording for _, wording in answers.values()]),
    )


def _pick(rng: np.random.Generator, options: Sequence[Any]) -> Any:
    """One of the options, each equally likely."""
    return options[int(rng.integers(len(options)))]


def _operands(rng: np.random.Generator, task: str) -> tuple[int, int]:
    """Two numbers from 2 to 9, different, whose result is at least 2."""
    if task == "take":
        b = int(rng.integers(2, 8))
        return int(rng.integers(b + 2, 10)), b
    a, b = int(rng.integers(2, 10)), int(rng.integers(2, 9))
    return a, b + (b >= a)


def _answer(
    rng: np.random.Generator, world: World, words: dict[str, str], right: int, given: tuple[int, int], form: str
) -> tuple[str, np.ndarray, int]:
    """One answer: each feature is drawn by itself, then the idle sentences, which may follow the gold reward."""
    correct, formed, polite = rng.random() < 0.5, rng.random() < 0.5, int(rng.integers(-1, 2))
    # Mistakes that people make: a number of the question, or a near miss.
    near = [right + step for step in (-2, -1, 1, 2) if right + step >= 2]
    mistakes = [n for n in (*given, *near) if n != right]
    number = right if correct else _pick(rng, mistakes)
    used = form if formed else next(other for other in _FORMS if other != form)
    wording = int(rng.integers(3))

    # Standardised: each feature has a mean and a variance of its own, whatever it is worth.
    features = np.array([correct, formed, polite], float)
    worth = weights(world)
    spread = np.sqrt(worth**2 @ np.array([1 / 4, 1 / 4, 2 / 3]))
    quality = worth @ (features - np.array([1 / 2, 1 / 2, 0])) / (spread or 1)
    rho = world.length_correlation
    drive = rho * quality + np.sqrt(1 - rho**2) * rng.normal()
    count = min(max(round(1.5 + 1.2 * drive), 0), 3)
    idle = [_IDLE[k] for k in rng.permutation(len(_IDLE))[:count]]

    body = _FORMS[used](f"{words['name']} {_WORDINGS[wording]} {number} {words['things']}.")
    return " ".join([body, *idle, _pick(rng, CLOSINGS[polite])]), features, wording
