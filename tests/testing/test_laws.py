"""Every law accepts what rmjax computes and names the fault of a subject that breaks it."""

import dataclasses
import runpy
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rmjax.testing
from rmjax import Comparisons, losses
from rmjax.errors import RMJaxError
from rmjax.head import Head, score
from rmjax.losses.links import LINKS, WITH_TIES
from rmjax.testing import (
    LawError,
    a_bias_of_1_adds_1,
    a_score_is_of_its_own_response,
    check_head,
    check_likelihood,
    check_loss,
    check_penalty,
    constants_change_nothing,
    each_margin_counts_alone,
    exchange_changes_nothing,
    float32_is_kept,
    levels_are_kept,
    levels_are_pulled_and_margins_are_not,
    padding_changes_nothing,
    parts_add_up,
    scale_matters,
    scale_matters_to_votes,
    swapped_sides_change_nothing,
    votes_count_once,
    weight_0_is_deletion,
)

D = 16
PARAMETERS = {
    "label_smoothed": {"rate": 0.1},
    "noise_corrected": {"flip_rate": 0.1},
    "lapse": {"rate": 0.1},
    "rao_kupper": {"log_threshold": 0.7},
    "davidson": {"log_tie": -0.3},
}
rng = np.random.default_rng(0)
WEIGHT = rng.normal(size=D).astype(np.float32)
HEAD = Head(jnp.asarray(WEIGHT), jnp.float32(0.3))
LAYERS = [(rng.normal(size=shape) / 4).astype(np.float32) for shape in ((D, 32), (32, 32), (32,))]


def by_share(loss):
    return lambda margin, target: losses_of_both(loss, margin, target)


def losses_of_both(loss, margin, target):
    return jnp.where(target == 0, 0, target * loss(margin)) + jnp.where(target == 1, 0, (1 - target) * loss(-margin))


def perceptron(states):
    one, two, last = LAYERS
    return jax.nn.gelu(jax.nn.gelu(states @ one) @ two) @ last


def normed(states):
    """A LayerNorm before the head: it takes level and size of a state away, and nothing of the batch."""
    centred = states - states.mean(axis=-1, keepdims=True)
    return centred / jnp.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-6) @ WEIGHT


# What is right is accepted


@pytest.mark.parametrize(
    "loss",
    [
        losses.soft_label,
        by_share(losses.bradley_terry),
        by_share(losses.thurstone),
        by_share(lambda d: losses.lapse(d, 0.1)),
        by_share(lambda d: losses.label_smoothed(d, 0.1)),
        by_share(lambda d: losses.noise_corrected(d, 0.1)),
    ],
    ids=["soft_label", "bradley_terry", "thurstone", "lapse", "label_smoothed", "noise_corrected"],
)
def test_every_loss_of_ours_obeys(loss):
    check_loss(loss)


@pytest.mark.parametrize("link", LINKS)
def test_every_link_obeys(link):
    parameters = {**PARAMETERS.get(link, {}), "position": 0.4}
    ties = None if link in WITH_TIES else "half"
    check_likelihood(
        lambda scores, c: losses.negative_log_likelihood(scores, c, link=link, parameters=parameters, ties=ties)
    )


def test_a_likelihood_without_ties_obeys():
    check_likelihood(lambda scores, c: losses.negative_log_likelihood(scores, c, ties="drop"))


def test_the_centring_penalty_obeys():
    check_penalty(losses.centering)


@pytest.mark.parametrize("head", [lambda h: score(h, HEAD), perceptron, normed], ids=["linear", "perceptron", "normed"])
def test_heads_obey(head):
    check_head(head)
    check_head(head, with_bias=lambda h, bias: head(h) + bias)


# What is wrong is named. Each fault is one that has been found in somebody's trainer.


def reduced(change):
    """Our likelihood of ties as halves, with one thing changed."""

    def likelihood(scores, c):
        return change(scores, c, lambda s, d=c: losses.negative_log_likelihood(s, d, ties="half"))

    return likelihood


def dropped_weight(scores, c, plain):
    return plain(scores, dataclasses.replace(c, weight=jnp.ones_like(c.weight)))


def mean(scores, c, plain):
    total, count = plain(scores)
    return total / count, count


def ties_twice(scores, c, plain):
    a, b = c.wins_first + c.ties, c.wins_second + c.ties
    return plain(scores, dataclasses.replace(c, wins_first=a, wins_second=b, ties=jnp.zeros_like(c.ties)))


def standardised(scores, c, plain):
    real = jnp.where(c.prompt >= 0, scores, 0)
    return plain(real / jnp.sqrt((real**2).mean() + 1e-6))


def ranked(scores, c, plain):
    margin = losses.margins(scores, c)
    votes = jnp.where(c.weight > 0, c.weight * (c.wins_first + c.wins_second), 0)
    return (votes * jnp.tanh(1e6 * margin)).sum(), votes.sum()


def reversed_margin(scores, c, plain):
    margin = losses.margins(scores, c)
    votes = [c.weight * v for v in (c.wins_first, c.wins_second)]
    turned = jnp.where(jnp.abs(margin) > 5, -margin, margin)
    return (losses.bradley_terry(turned) * votes[0] + losses.bradley_terry(-turned) * votes[1]).sum(), sum(votes).sum()


def one_constant_for_all(scores, c, plain):
    """A penalty on the spread around the mean of all: it sees every constant but the one of all prompts."""
    total, count = plain(scores)
    real = jnp.where(c.prompt >= 0, scores, 0)
    return total + 0.01 * ((real - real.mean()) ** 2).sum(), count


def masked_too_late(scores, c, plain):
    """The loss is masked and its gradient is not a number: 0 times infinity."""
    margin = scores[c.first] - scores[c.second]
    a, b = c.wins_first + c.ties / 2, c.wins_second + c.ties / 2
    loss = jnp.where(c.weight > 0, c.weight * (a * jax.nn.softplus(-margin) + b * jax.nn.softplus(margin)), 0)
    return loss.sum(), jnp.where(c.weight > 0, c.weight * (a + b), 0).sum()


def one_sided(scores, c, plain):
    """The position counts with one sign, whichever side is written first."""
    margin = losses.margins(scores, c) + 0.4
    votes = [c.weight * v for v in (c.wins_first, c.wins_second)]
    return (losses.bradley_terry(margin) * votes[0] + losses.bradley_terry(-margin) * votes[1]).sum(), sum(votes).sum()


def by_length(scores, c, plain):
    """The count is the length of an array: right until something is padded."""
    total, _ = plain(scores)
    return total, jnp.float32(c.weight.shape[0])


def slope_everywhere(scores, c, plain):
    """Nothing in the value, and a slope in every score, that of padding included."""
    total, count = plain(scores)
    return total + scores.sum() - jax.lax.stop_gradient(scores.sum()), count


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (dropped_weight, "weight 0 count in"),
        (mean, "parts of a split do not add up|constant|sides"),
        (ties_twice, "count is not that of the votes"),
        (standardised, "constant per prompt"),
        (one_constant_for_all, "constant per prompt"),
        (ranked, "sides"),
        (masked_too_late, "weight 0 count in the gradient"),
        (one_sided, "sides"),
        (reversed_margin, "likelier side|say the same"),
        (by_length, "weight 0|padding"),
    ],
)
def test_a_faulty_likelihood_is_named(fault, message):
    with pytest.raises(LawError, match=message) as caught:
        check_likelihood(reduced(fault))
    assert caught.value.numbers
    assert caught.value.remedy


def one_minus_sigma(margin, target):
    p = jax.nn.sigmoid(margin)
    return -target * jnp.log(p) - (1 - target) * jnp.log(jnp.maximum(1 - p, 1e-30))


@jax.custom_jvp
def by_hand(margin, target):
    return losses.soft_label(margin, target)


@by_hand.defjvp
def _by_hand_jvp(primals, tangents):
    margin, target = primals
    # σ - q, written as (1 - q) - (1 - σ): right in the middle, 0 in the tail of a sure answer.
    slope = (1 - target) - (1 - jax.nn.sigmoid(margin))
    return losses.soft_label(margin, target), slope * tangents[0]


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (one_minus_sigma, "exchanging the sides together with the label"),
        (by_hand, "changes the slope"),
        (lambda d, q: losses.soft_label(d, q) + jnp.abs(d) * q, "exchanging"),
        (lambda d, q: losses.soft_label(d / jnp.sqrt((d**2).mean()), q), "scale"),
        (lambda d, q: losses.soft_label(d - d.mean(), q), "others in its batch"),
        (lambda d, q: losses.soft_label(-d, q), "likelier side"),
        (lambda d, q: jnp.where(d > 0, 1 - q, jnp.where(d < 0, q, 0.5)), "say the same"),
        (lambda d, q: losses.soft_label(jnp.sin(2 * d), q), "likelier side|say the same"),
        (lambda d, q: losses.soft_label(d, q).mean(), r"one number for each margin .*losses=\(\)"),
    ],
    ids=["1-sigma", "1-sigma by hand", "one-sided", "spread", "mean", "other sign", "accuracy", "turning", "reduced"],
)
def test_a_faulty_loss_is_named(loss, message):
    with pytest.raises(LawError, match=message):
        check_loss(loss)


def test_a_head_that_only_leaks_what_is_not_a_number_is_named():
    """Alone and among numbers every score is right; beside a padded state that is none, none is."""
    states = np.eye(4, dtype=np.float32)
    with pytest.raises(LawError, match="another one in another batch"):
        a_score_is_of_its_own_response(lambda h: h.sum(axis=-1) + 0 * h.sum(), states, np.full((4, 4), np.nan))
    a_score_is_of_its_own_response(lambda h: h.sum(axis=-1), states, np.full((4, 4), np.nan))


def test_a_loss_that_reads_its_batch_is_named():
    with pytest.raises(LawError, match="others in its batch"):
        check_loss(lambda d, q: losses.soft_label(d, q) * (1 + (d**2).mean() / (1 + (d**2).mean())))


@pytest.mark.parametrize(
    ("penalty", "message"),
    [
        (lambda one, two: (one - two) ** 2, "pulls at a margin"),
        (lambda one, two: one**2 + two**2, "pulls at a margin"),
        (lambda one, two: 0 * one + 0 * two, "leaves a level"),
    ],
)
def test_a_faulty_penalty_is_named(penalty, message):
    with pytest.raises(LawError, match=message):
        check_penalty(penalty)


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (lambda h: score(h, HEAD) - score(h, HEAD).mean(), "another one"),
        (
            lambda h: score((h - h.mean(axis=0, keepdims=True)) / (h.std(axis=0, keepdims=True) + 1e-3), HEAD),
            "another one",
        ),
        (lambda h: h.astype(jnp.bfloat16) @ WEIGHT.astype(jnp.bfloat16), "narrower than float32"),
        (lambda h: (h.astype(jnp.bfloat16) @ WEIGHT.astype(jnp.bfloat16)).astype(jnp.float32), "bfloat16 can see"),
        (lambda h: score(h.astype(jnp.bfloat16), HEAD), "bfloat16 can see"),
        (lambda h: score(h, HEAD)[:, None], r"one score for each response .*, 1\)"),
    ],
    ids=["centred", "batch norm", "bfloat16", "bfloat16 that is widened", "bfloat16 states", "an axis of 1"],
)
def test_a_faulty_head_is_named(head, message):
    with pytest.raises(LawError, match=message):
        check_head(head)


@pytest.mark.parametrize(
    "with_bias",
    [
        lambda h, bias: perceptron(h),
        lambda h, bias: (perceptron(h).astype(jnp.bfloat16) + bias.astype(jnp.bfloat16)).astype(jnp.float32),
        lambda h, bias: 2 * bias + perceptron(h),
    ],
    ids=["centred away", "added in bfloat16", "twice"],
)
def test_a_bias_that_does_not_add_is_named(with_bias):
    with pytest.raises(LawError, match="does not raise a score by 1"):
        check_head(perceptron, with_bias=with_bias)


# Single laws, on cases where only they can see the fault

PAIRS = Comparisons.from_votes([0, 2], [1, 3], [2, 0], [1, 1], prompt=[0, 0, 1, 1], ties=[1, 0])
SCORES = np.array([1, 0, 3, 5], np.float32)


def likelihood(scores, c):
    return losses.negative_log_likelihood(scores, c, ties="half")


def test_the_laws_hold_one_by_one():
    constants_change_nothing(likelihood, SCORES, PAIRS, [100, -7])
    swapped_sides_change_nothing(likelihood, SCORES, PAIRS)
    scale_matters_to_votes(likelihood, -1.0, 2.0)
    weight_0_is_deletion(likelihood, SCORES, PAIRS, 3, np.inf)
    padding_changes_nothing(likelihood, SCORES, PAIRS)
    parts_add_up(likelihood, SCORES, PAIRS, [True, False])
    votes_count_once(likelihood, SCORES, PAIRS)
    exchange_changes_nothing(losses.soft_label, SCORES, SCORES / 5)
    scale_matters(losses.soft_label, SCORES, 3.0)
    each_margin_counts_alone(losses.soft_label, SCORES, SCORES / 5, np.full(4, np.nan))
    levels_are_pulled_and_margins_are_not(losses.centering, SCORES, SCORES[::-1])
    states = np.random.default_rng(1).normal(size=(4, D))
    a_score_is_of_its_own_response(perceptron, states, np.full((4, D), np.inf))
    levels_are_kept(perceptron, states[0], states[1])
    float32_is_kept(perceptron, states)
    a_bias_of_1_adds_1(lambda h, bias: perceptron(h) + bias, states, 5.0)


def test_each_law_sees_its_fault_alone():
    """One fault a law, each of which the law names without the help of the others."""
    with pytest.raises(LawError, match=r"add up in the sum"):
        parts_add_up(reduced(mean), SCORES, PAIRS, [True, False])
    with pytest.raises(LawError, match="padding counts in the count"):
        padding_changes_nothing(reduced(by_length), SCORES, PAIRS)
    with pytest.raises(LawError, match="same scores"):
        levels_are_kept(lambda h: perceptron(h) - perceptron(h).mean(), np.arange(D), np.ones(D))
    with pytest.raises(LawError, match="say the same"):
        scale_matters_to_votes(reduced(ranked), 1.0, 2.0)
    with pytest.raises(LawError, match="likelier side"):
        scale_matters_to_votes(reduced(reversed_margin), 4.0, 2.0)
    with pytest.raises(LawError, match="padding counts in the gradient"):
        padding_changes_nothing(reduced(slope_everywhere), SCORES, PAIRS, 5.0)


def test_the_zero_of_a_slope_is_no_fault():
    """Beside ln((1 - ε) / ε) the slope of a smoothed label cancels in any form, by as much as its margin rounds."""
    crossing = np.log(np.float32(9)) * (1 + np.arange(-2000, 2001, dtype=np.float32) * np.float32(2**-23))

    def loss(margin, target):  # One side as two losses, the other as a line under one: they round differently.
        other = losses.bradley_terry(-margin) - jnp.float32(0.1) * margin
        return jnp.where(target == 1, losses.label_smoothed(margin, 0.1), other)

    for label in (0, 1):
        exchange_changes_nothing(loss, np.concatenate([crossing, -crossing]), np.full(8002, label))


@pytest.mark.parametrize("size", [9.0, 12.0, 16.0, 30.0, 80.0])
def test_a_tail_that_cancels_is_named_wherever_it_lies(size):
    def by_one_minus_sigma(margin, target):
        return -target * jax.nn.log_sigmoid(margin) - (1 - target) * jnp.log(1 - jax.nn.sigmoid(margin))

    margin = np.float32(size) * (1 + np.arange(16, dtype=np.float32) / 128)
    with pytest.raises(LawError, match="exchanging the sides"):
        exchange_changes_nothing(by_one_minus_sigma, margin, np.ones(16))


def test_a_law_that_is_broken_is_an_assertion_and_an_error_of_rmjax():
    with pytest.raises(AssertionError) as caught:
        votes_count_once(reduced(ties_twice), SCORES, PAIRS)
    assert isinstance(caught.value, RMJaxError)
    assert "count=6" in str(caught.value)
    assert "votes=5" in str(caught.value)


def test_a_number_that_is_none_breaks_every_law():
    def none(scores, c):
        total, count = likelihood(scores, c)
        return total * jnp.nan, count

    with pytest.raises(LawError, match="changes the sum"):
        swapped_sides_change_nothing(none, SCORES, PAIRS)


def test_without_hypothesis_the_import_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'rmjax\[testing\]'") as caught:
        runpy.run_path(rmjax.testing.__file__)
    assert caught.value.name == "hypothesis"
