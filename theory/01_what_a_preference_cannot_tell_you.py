# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 1. What a preference cannot tell you
#
# A reward model is trained on choices between two answers to one prompt. This notebook lists the changes of such a
# model that no choice can see. Whatever is computed from a model and is moved by one of them is no property of the
# data: an average reward, a comparison of rewards of two prompts, a cosine between two heads.

# %%
import jax
import jax.numpy as jnp
import numpy as np
from matplotlib import pyplot as plt

import style
from rmjax import Comparisons
from rmjax.errors import GaugeError
from rmjax.identifiability import (
    best_temperature,
    change_basis,
    compare_levels,
    fisher,
    gauge_distance,
    gauge_fix,
    identify,
    layer_norm_null_direction,
    margin_between,
    rms_norm_margin_bound,
)
from rmjax.losses import margins, negative_log_likelihood, probability
from rmjax.preferences import fit, published

style.use()

# %% [markdown]
# ## One constant per prompt
#
# Under Bradley and Terry (1952) a share $\sigma(\Delta)$ of annotators chooses the first of two answers, with
#
# $$\Delta_{ij} = r_i - r_j = (r_i + c_x) - (r_j + c_x) \quad\text{for every constant } c_x \text{ of the prompt } x.$$
#
# The constant may differ from prompt to prompt, because answers to two prompts are never compared. It is often said
# that "rewards are defined up to a constant"; with ten thousand prompts they are defined up to ten thousand.
#
# Two prompts with three answers each, and votes on all pairs within them:

# %%
prompt = np.array([0, 0, 0, 1, 1, 1])
votes = Comparisons.from_votes(
    first=[0, 0, 1, 3, 3, 4],
    second=[1, 2, 2, 4, 5, 5],
    wins_first=[7, 9, 6, 6, 8, 8],
    wins_second=[3, 1, 4, 4, 2, 2],
    prompt=prompt,
)
scores = np.array([1.25, 0.25, -0.5, 0.75, 0.5, -1.0], np.float32)


@jax.jit
def mean_loss(scores):
    total, count = negative_log_likelihood(scores, votes)
    return total / count


def nats(scores):
    return float(mean_loss(jnp.asarray(scores, jnp.float32)))


shift = np.array([100.0, -28.0], np.float32)[prompt]
print(f"{nats(scores):.6f} nats a vote; with +100 and -28: {nats(scores + shift):.6f}")

# %% [markdown]
# The directions that cost nothing are the null space of the Fisher information. It has one dimension for every set of
# answers that comparisons connect, and `identify` names them before anything is fitted.

# %%
# Scores and constants are multiples of 1/4 below 2^7, so that float32 holds their sums exactly: the margins are the
# same bits, and so is the loss.
assert nats(scores + shift) == nats(scores)
report = identify(votes)
information = fisher(scores, votes)
assert report.gauge_basis.shape == (6, 2)
assert np.linalg.matrix_rank(information) == 6 - 2
# Rows that cancel: six numbers of size 10 at most, rounded once each.
assert np.abs(information @ report.gauge_basis).max() < 6 * 10 * np.finfo(float).eps

# %% [markdown]
# ## One loss, five scales of reward
#
# Every convention that fixes the constants is a choice of the reader: mean zero per prompt, the worst answer at zero,
# a reference answer at zero, mean zero over a data set, or whatever the bias of the head happened to be. All five
# below are the same model. They have the same margins and the same loss, and disagree on which prompt has the better
# answers.

# %%
fitted = np.nan_to_num(fit(votes).scores)
by_prompt = fitted.reshape(2, 3)
conventions = {
    "mean 0 per prompt": by_prompt,
    "worst answer at 0": by_prompt - by_prompt.min(axis=1, keepdims=True),
    "first answer at 0": by_prompt - by_prompt[:, :1],
    "as trained, mean 0 over all": by_prompt + np.array([[-1.4], [1.4]]),
    "as trained, with a bias": by_prompt + np.array([[3.1], [1.7]]),
}

figure, (valley, slices, scales) = plt.subplots(
    1, 3, figsize=(10.2, 3.4), gridspec_kw={"width_ratios": [1, 1, 1.45]}, layout="constrained"
)
grid = np.linspace(-4, 4, 17)
loss = 0.7 * np.logaddexp(0, grid[:, None] - grid) + 0.3 * np.logaddexp(0, grid - grid[:, None])
levels = [0.61, 0.7, 0.85, 1.1, 1.5, 2, 2.6, 3.4, 4.4, 5.8]
valley.contourf(grid, grid, loss, levels=levels, cmap="Blues", vmin=0.6, vmax=6)
lines = valley.contour(grid, grid, loss, levels=levels[1:], colors=style.INK, linewidths=0.5)
valley.clabel(lines, levels=[0.7, 1.1, 2], fmt="%.1f", fontsize=8, manual=[(-2.2, -1.7), (-2.2, -0.3), (-2.5, 1.0)])
valley.plot(grid, grid - np.log(7 / 3), color=style.RED, linewidth=2.5)
valley.annotate(
    "no choice tells\nthese points apart",
    (-0.6, -0.6 - np.log(7 / 3)),
    xytext=(-0.5, -3.6),
    color=style.RED,
    fontsize=8.5,
    bbox={"facecolor": "white", "edgecolor": "none", "pad": 2},
    arrowprops={"arrowstyle": "->", "color": style.RED},
)
valley.set(xlim=(-4, 4), ylim=(-4, 4), xlabel="score of answer 1", ylabel="score of answer 2")
valley.set_title("One pair, 7 votes to 3: nats")

step = np.linspace(-1.3, 1.3, 53)
directions = {
    "constant of prompt A": np.repeat([1.0, 0], 3),
    "constant of prompt B": np.repeat([0, 1.0], 3),
    "margins of prompt A": np.array([1.0, 0, -1, 0, 0, 0]),
    "scale of all margins": fitted,
}
for (name, direction), colour, dash in zip(directions.items(), style.COLOURS, ("-", "--", "-.", ":")):
    width = 5 if dash == "-" else 1.8
    values = [nats(fitted + t * direction) for t in step]
    slices.plot(step, values, dash, color=style.SKY if dash == "-" else colour, linewidth=width, label=name)
slices.set(xlabel="step from the optimum", ylabel="nats per vote", ylim=(0.53, 0.93))
slices.legend(loc="upper center", handlelength=2.6)
slices.set_title("Two flat directions, not one")

for row, of_prompt in enumerate(conventions.values()):
    for scores_of, colour, marker, lift in zip(of_prompt, (style.BLUE, style.RED), "os", (0.13, -0.13)):
        scales.plot(scores_of, np.full(3, -row + lift), color=colour, marker=marker, linewidth=1.2)
    scales.text(5.7, -row, f"{nats(of_prompt.ravel()):.4f}", va="center", fontsize=8.5)
scales.text(5.7, 0.72, "nats", fontsize=8.5)
scales.axvline(0, color=style.FAINT, zorder=0)
scales.set(yticks=-np.arange(5), yticklabels=conventions, xlabel="score in logits", xlim=(-3.4, 5.5), ylim=(-4.6, 0.95))
scales.text(-1.0, 0.5, "prompt A", color=style.BLUE, fontsize=8.5, ha="center")
scales.text(1.5, 0.5, "prompt B", color=style.RED, fontsize=8.5, ha="center")
scales.set_title("The same model, five times")
style.save(figure, "01")

# %%
leads = [float(of_prompt.mean(axis=1) @ [1, -1]) for of_prompt in conventions.values()]
print("mean of A minus mean of B:", np.round(leads, 2))
assert min(leads) < -1 < 1 < max(leads)
for of_prompt in conventions.values():
    assert gauge_distance(of_prompt.ravel(), fitted, prompt) < 1e-6  # float32: 2^-23 of numbers up to 5
    # Margins of numbers up to 5 are rounded by 5 * 2^-24 twice, and a vote moves by no more than its margin does.
    assert abs(nats(of_prompt.ravel()) - nats(fitted)) < 2 * 5 * 2.0**-23

# %% [markdown]
# ## A level has no standard error of its own
#
# The convention decides how uncertain a *level* looks, and never how uncertain a *margin* is. Baseball, American
# League 1987 (Agresti 2002): with Baltimore as the reference its own error is 0, with mean zero it is 0.232. The
# margin of Milwaukee over Baltimore is 1.581 with error 0.343 under both.

# %%
games = Comparisons.from_wins(published.BASEBALL)
season = fit(games)
BALTIMORE, MILWAUKEE = published.TEAMS.index("Baltimore"), published.TEAMS.index("Milwaukee")
margin = season.contrast(MILWAUKEE, BALTIMORE)
for reference in (None, BALTIMORE):
    level, error = season.relative_to(reference)
    print(f"reference {reference}: Baltimore {level[BALTIMORE]:.3f} +- {error[BALTIMORE]:.3f}")
    # Sums of seven numbers of size 2.
    assert abs(level[MILWAUKEE] - level[BALTIMORE] - margin.value) < 1e-12
print(f"margin {margin.value:.3f} +- {margin.standard_error:.3f}")
# Agresti's data at 40 digits, printed to ten.
assert abs(season.relative_to(BALTIMORE)[1][MILWAUKEE] - 0.3432559816) < 1e-9
assert abs(margin.standard_error - 0.3432559816) < 1e-9
assert abs(season.relative_to(None)[1][BALTIMORE] - 0.23246) < 1e-5

# %% [markdown]
# ## Scale does mean something, but only beside noise
#
# Doubling all margins changes no decision and every probability. So votes identify the scale, and only because people
# disagree: $(a\,r, a\,T)$ predicts what $(r, T)$ does, and the temperature $T^*$ at which given margins fit votes
# best is a number. If nobody ever contradicted a margin there would be none (notebook 3), and all that remained is
# the order: any increasing map of the scores has the same accuracy.

# %%
pair = Comparisons.from_votes([0], [1], [6.0], [4.0], prompt=[0, 0])
temperature = best_temperature([np.log(9)], pair)  # a model that says 0.9, annotators of whom 0.6 agree
doubled = best_temperature([2 * np.log(9)], pair)
print(f"T* = {temperature.value:.4f}; of doubled margins {doubled.value:.4f}")
assert abs(temperature.value - np.log(9) / np.log(1.5)) < 1e-12 * temperature.value
assert abs(doubled.value - 2 * temperature.value) < 1e-12 * doubled.value

cubed = fitted**3
decided = np.sign(margins(jnp.asarray(fitted), votes)), np.sign(margins(jnp.asarray(cubed), votes))
print(f"{nats(fitted):.4f} nats; of cubed scores, with the same decisions, {nats(cubed):.4f}")
assert (decided[0] == decided[1]).all()
assert nats(cubed) > nats(fitted) + 1e-3
assert abs(float(probability(2.0)) - float(probability(1.0))) > 0.1

# %% [markdown]
# ## Heads: the cosine of two of them is not a property of either
#
# A score is $r = w \cdot h$. For every invertible $A$ the head $A^{-\top} w$ on the states $A h$ gives the same
# scores, so the angle between heads of two models says nothing. Within one model a final LayerNorm with gain $\gamma$
# leaves one direction of the head free, $w + c/\gamma$, which moves all scores together; an RMSNorm leaves none, and
# bounds every margin by $2\sqrt{D}\,|\gamma \odot w|$.

# %%
random = np.random.default_rng(0)
size = 64
states = random.normal(size=(1000, size)).astype(np.float32)
head = random.normal(size=size).astype(np.float32)
basis = random.normal(size=(size, size)).astype(np.float32)
other_head, other_states = change_basis(head, states, basis)
cosine = float(head @ other_head / np.linalg.norm(head) / np.linalg.norm(other_head))
gap = np.abs(states @ head - other_states @ other_head).max()
print(f"largest difference of scores {gap:.1e}, cosine of the heads {cosine:.3f}")
# Rounding, times how far the basis stretches states and head, times their size.
assert gap < np.finfo(np.float32).eps * np.linalg.cond(basis) * np.linalg.norm(states, axis=1).max() * np.linalg.norm(
    head
)
assert abs(cosine) < 0.5

gain, bias = random.uniform(0.5, 2, size).astype(np.float32), random.normal(size=size).astype(np.float32)
centred = states - states.mean(axis=1, keepdims=True)
layer_norm = centred / centred.std(axis=1, keepdims=True)
rms_norm = states / np.sqrt(np.square(states).mean(axis=1, keepdims=True))
direction, constant = map(np.asarray, layer_norm_null_direction(gain, bias))
moved = (layer_norm * gain + bias) @ direction
print(
    f"LayerNorm: scores move by {moved.mean():.4f}, spread {np.ptp(moved):.1e}; RMSNorm: {np.ptp(rms_norm.sum(1)):.1f}"
)
# 64 products of size up to 10, added in float32.
assert np.abs(moved - constant).max() < size * 10 * np.finfo(np.float32).eps
assert np.ptp((rms_norm * gain) @ direction) > 1
bound = float(rms_norm_margin_bound(gain, head))
assert np.ptp((rms_norm * gain) @ head) < bound

# %% [markdown]
# ## What follows
#
# rmjax has functions for what is left: `margin_between` for two answers to one prompt, `gauge_distance` for two
# models, `gauge_fix` for tables. Where a question has no answer there is an error that says so, and no number.

# %%
refused = 0
for question in (
    lambda: compare_levels(fitted, prompt),
    lambda: margin_between(fitted, prompt, 0, 3),
):
    try:
        print(question())
    except GaugeError as error:
        refused += 1
        print(error, end="\n\n")
assert refused == 2
assert np.abs(np.asarray(gauge_fix(scores + shift, prompt)) - np.asarray(gauge_fix(scores, prompt))).max() == 0
