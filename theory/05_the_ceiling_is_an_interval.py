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
# # 5. The ceiling is an interval
#
# People disagree, so no model can agree with every vote. How accurate could the best one be? The agreement of two votes
# is often quoted as the answer. It is one end of an interval.

# %%
import numpy as np
from matplotlib import pyplot as plt

import style
from rmjax.diagnostics import (
    beta_ceiling,
    ceiling_bounds,
    ceiling_from_moments,
    ceiling_from_votes,
    clustered_proportion,
    majority_target,
    normal_ceiling,
)

style.use()
# Agreement of two labels: Ouyang et al. 2022 (InstructGPT), Bai et al. 2022 (HH), Stiennon et al. 2020 (summaries).
AGREEMENT = {"InstructGPT": 0.726, "HH": 0.63, "summaries": 0.72}

# %% [markdown]
# ## Two worlds with one agreement
#
# Let p be the share of people who choose the first answer and $\delta = 2p - 1$. Two votes agree with chance
# $A = (1 + E\delta^2)/2$, and the best accuracy against one vote is $C = (1 + E|\delta|)/2$. If on every pair all agree
# or all toss a coin, $\delta^2 = |\delta|$ and C = A. If every pair is as contested as any other, C is as large as it
# can be:
#
# $$A \;\le\; C \;\le\; \frac{1 + \sqrt{2A - 1}}{2}.$$
#
# An oracle in the second world beats the agreement by far, and nothing is wrong with it.

# %%
rng = np.random.default_rng(0)
items, agreement = 20_000, 0.72
even = np.full(items, (1 + np.sqrt(2 * agreement - 1)) / 2)
consensus = np.where(rng.random(items) < 2 * agreement - 1, 1.0, 0.5)
for name, p in (("as contested everywhere", even), ("consensus or coin", consensus)):
    first, second = rng.random((2, items)) < p
    oracle = (rng.random(items) < p).mean()
    print(f"{name}: two votes agree {np.mean(first == second):.3f}, an oracle is right {oracle:.3f}")
    assert abs(np.mean(first == second) - agreement) < 4 * np.sqrt(agreement * (1 - agreement) / items)
    assert abs(oracle - np.maximum(p, 1 - p).mean()) < 4 * 0.5 / np.sqrt(items)

# %% [markdown]
# ## What published agreements allow
#
# A model of .85 where people agree .75 of the time has not learned the labels of its pipeline: it is inside.

# %%
allowed = {}
for name, a in AGREEMENT.items():
    found = ceiling_bounds(clustered_proportion([a] * 100, [1] * 100, cluster=range(100)))
    allowed[name] = (found.lower, found.upper)
    print(f"{name}: {found.lower:.4f} to {found.upper:.4f}")
assert round(allowed["InstructGPT"][1], 4) == 0.8362
assert round((1 + np.sqrt(2 * 0.75 - 1)) / 2, 4) == 0.8536

# %% [markdown]
# ## More votes narrow it
#
# Votes on one item by k people tell the first k moments of p, and C is a linear function of its law: a linear programme
# gives both ends. Stiennon et al. report that the mode of three agrees with a fourth person in .77 where two agree in
# .72; that is a fourth moment, and it leaves a quarter of the interval. It also refutes both worlds above: consensus-
# or-coin predicts .72 for the mode, even noise .78.

# %%
second = 2 * AGREEMENT["summaries"] - 1
fourth = 3 * second - 4 * (0.77 - 0.5)
narrowed = ceiling_from_moments(second, fourth)
print("summaries, with the mode of three: {:.4f} to {:.4f}".format(*narrowed))
assert narrowed[1] - narrowed[0] < 0.26 * (allowed["summaries"][1] - allowed["summaries"][0])
assert 0.72 < 0.77 < 0.5 + (3 * second - second**2) / 4

histogram = np.array([30, 18, 12, 14, 20, 36])  # of 130 items, with 0 to 5 of five votes for the first
votes = np.stack([np.repeat(np.arange(6), histogram), np.repeat(5 - np.arange(6), histogram)], axis=1)
pairs = (votes * (votes - 1) / 2).sum() / (10 * len(votes))
two = (pairs, (1 + np.sqrt(2 * pairs - 1)) / 2)
five = ceiling_from_votes(votes)
print(f"two of five votes: {two[0]:.4f} to {two[1]:.4f}; all five: {five.lower:.4f} to {five.upper:.4f}")
assert two[0] < five.lower < five.upper < two[1]

# %% [markdown]
# ## A model of people gives a point, and the point depends on the model
#
# If margins are normal, or shares follow a beta law, the agreement determines C. Both points lie inside, and apart.

# %%
normal, _ = normal_ceiling(0.75)
arcsine, same = beta_ceiling(0.5, 0.5)
print(f"A = .75: normal margins {normal:.4f}, arcsine shares {arcsine:.4f}")
assert same == 0.75
assert 0.75 < arcsine < normal < 0.8536

# %% [markdown]
# ## And it is the ceiling of one vote
#
# Against the majority of several votes, more can be reached; against what most people think, everything. An accuracy
# needs its target beside it.

# %%
targets = {m: float(majority_target(0.75, m)) for m in (1, 3, 5, 7)}
print({m: round(best, 4) for m, best in targets.items()})
assert np.all(np.diff(list(targets.values())) > 0)
assert round(targets[3], 5) == 0.84375

# %% [markdown]
# ## In one picture

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.6), width_ratios=(1.6, 1))
a = np.linspace(0.5, 1, 201)
left.fill_between(a, a, (1 + np.sqrt(2 * a - 1)) / 2, color=style.SKY, alpha=0.35, label="possible")
left.plot(a, a, color=style.BLUE, label="consensus or coin: C = A")
left.plot(a, (1 + np.sqrt(2 * a - 1)) / 2, "--", color=style.BLUE, label="as contested everywhere")
shown = {"InstructGPT": (6, 2), "HH": (6, 2), "summaries": (-10, 2)}
for name, value in AGREEMENT.items():
    left.plot([value] * 2, allowed[name], color=style.INK, linewidth=1.5)
    side = "left" if shown[name][0] > 0 else "right"
    left.annotate(
        name, (value, allowed[name][0]), shown[name], textcoords="offset points", ha=side, va="top", fontsize=8
    )
left.plot([AGREEMENT["summaries"]] * 2, narrowed, color=style.RED, linewidth=5, label="with the mode of three")
left.set(xlabel="agreement of two votes, A", ylabel="best accuracy, C", title="What an agreement allows", xlim=(0.5, 1))
left.legend(loc="lower right")
for row, (low, high) in enumerate((two, (five.lower, five.upper))):
    right.plot([low, high], [row, row], color=(style.BLUE, style.RED)[row], linewidth=6, solid_capstyle="butt")
    right.annotate(f"{low:.3f} to {high:.3f}", ((low + high) / 2, row), (0, 8), textcoords="offset points", ha="center")
right.set(yticks=[0, 1], yticklabels=["two votes", "five votes"], ylim=(1.6, -0.6), xlim=(0.74, 0.88))
right.set(xlabel="best accuracy", title="130 items")
style.save(figure, "05")
assert five.upper - five.lower < 0.4 * (two[1] - two[0])
