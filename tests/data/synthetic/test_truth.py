"""What the truth scores is a bar: nothing that does not know the votes passes it."""

import dataclasses
import itertools

import numpy as np
import pytest

from rmjax.data.dataset import subset
from rmjax.data.synthetic import World, bayes, make
from rmjax.errors import DataError

WORLD = World(num_prompts=300, flip_rate=0.1)
MADE = make(WORLD)


def scored(made, logit):
    """Accuracy and NLL of a predictor's log-odds, and their expectation over votes, by plain sums."""
    c = made.data.comparisons
    a, b = np.float64(c.wins_first), np.float64(c.wins_second)
    true = 1 / (1 + np.exp(-made.margin))
    true = (1 - made.world.flip_rate) * true + made.world.flip_rate * (1 - true)
    p = 1 / (1 + np.exp(-logit))
    right = (np.sign(logit) + 1) / 2
    n = (a + b).sum()
    return {
        "accuracy": (a * right + b * (1 - right)).sum() / n,
        "nll": -(a * np.log(p) + b * np.log(1 - p)).sum() / n,
        "expected_accuracy": ((a + b) * (true * right + (1 - true) * (1 - right))).sum() / n,
        "expected_nll": -((a + b) * (true * np.log(p) + (1 - true) * np.log(1 - p))).sum() / n,
    }


def test_it_is_the_score_of_the_true_probabilities():
    p = 1 / (1 + np.exp(-MADE.margin))
    p = 0.9 * p + 0.1 * (1 - p)
    want = scored(MADE, np.log(p) - np.log1p(-p))
    got = dataclasses.asdict(bayes(MADE))
    assert got.pop("votes") == MADE.data.comparisons.wins_first.sum() + MADE.data.comparisons.wins_second.sum()
    assert got == pytest.approx(want, rel=1e-12)


@pytest.mark.parametrize("scale", [0.0, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_no_other_predictor_is_expected_to_do_better(scale, noise):
    rng = np.random.default_rng(0)
    other = scored(MADE, scale * MADE.margin + noise * rng.normal(size=len(MADE.margin)))
    best = bayes(MADE)
    assert other["expected_accuracy"] <= best.expected_accuracy + 1e-12
    assert other["expected_nll"] >= best.expected_nll - 1e-12


@pytest.mark.parametrize("dials", [{}, {"flip_rate": 0.0}, {"temperature": 3.0}, {"cycle": 1.5}, {"tie": 1.0}])
def test_what_is_scored_is_near_what_is_expected(dials):
    """Within 4 standard errors; the votes of one comparison share its flip, so a comparison is the unit."""
    made = make(dataclasses.replace(WORLD, **dials))
    best = bayes(made)
    assert abs(best.accuracy - best.expected_accuracy) <= 4 * 0.5 / np.sqrt(made.data.num_comparisons)
    assert abs(best.nll - best.expected_nll) <= 4 * 1.0 / np.sqrt(made.data.num_comparisons)


def test_noisier_worlds_have_lower_bars():
    by = {
        dial: [bayes(make(dataclasses.replace(WORLD, **{dial: value}))).expected_accuracy for value in values]
        for dial, values in {"temperature": (0.5, 1.0, 2.0), "flip_rate": (0.0, 0.1, 0.3)}.items()
    }
    assert all(high > low for bars in by.values() for high, low in itertools.pairwise(bars))


def test_the_ends_of_the_flips():
    """Everything exchanged is as good as nothing; half exchanged tells nothing at all."""
    none, all_, half = (bayes(make(dataclasses.replace(WORLD, flip_rate=rate))) for rate in (0.0, 1.0, 0.5))
    assert all_ == none
    assert (half.expected_accuracy, half.expected_nll) == pytest.approx((0.5, np.log(2)))


def test_a_part_is_found_by_its_rows():
    keep = np.arange(MADE.data.num_comparisons) % 3 == 0
    part, rest = bayes(MADE, subset(MADE.data, keep)), bayes(MADE, subset(MADE.data, ~keep))
    whole = bayes(MADE)
    assert part.votes + rest.votes == whole.votes
    assert (part.nll * part.votes + rest.nll * rest.votes) / whole.votes == pytest.approx(whole.nll)


def test_what_is_no_part_of_the_world_is_refused():
    with pytest.raises(DataError, match="not a part"):
        bayes(MADE, make(World(num_prompts=301)).data)
    with pytest.raises(DataError, match="not a part"):
        bayes(MADE, dataclasses.replace(MADE.data, format="pairs"))
    with pytest.raises(DataError, match="nobody decided"):
        bayes(make(World(num_prompts=2, abstention=1.0)))
