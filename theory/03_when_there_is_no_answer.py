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
# # 3. When there is no answer
#
# Some data have no maximum likelihood estimate. Programs return a number all the same: it says when they stopped.
# This notebook shows what the likelihood does there, how to know beforehand, and what four programs make of a data
# set from the literature.

# %%
from itertools import pairwise

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.patches import Circle
from scipy.integrate import solve_ivp
from scipy.special import expit

import style
from rmjax import Comparisons
from rmjax.errors import IdentifiabilityError
from rmjax.identifiability import identify
from rmjax.preferences import fit, published

style.use()

# %% [markdown]
# ## Two answers, one verdict
#
# All annotators prefer the first of two answers. The likelihood $\sigma(\Delta)$ of a vote rises with the margin and
# never arrives. Gradient ascent on both scores, $\dot\Delta = 2\,\sigma(-\Delta)$, can be solved:
#
# $$\Delta + e^{\Delta} - 1 = 2t.$$
#
# After a thousand units of time the margin is 7.6, after a million it is 14.5. It grows like $\log t$, which looks
# like convergence in any plot of a loss, and every threshold on a gradient stops it somewhere.

# %%
flow = solve_ivp(lambda t, m: 2 * expit(-m), (0, 1e6), [0.0], method="BDF", t_eval=[1e3, 1e6], rtol=1e-10, atol=1e-10)
print("margin at t = 1e3 and 1e6:", np.round(flow.y[0], 4))
# The integrator is asked for ten digits and makes some hundred steps.
assert np.abs(flow.y[0] - [7.597598207405007, 14.508650984175917]).max() < 1e-6
assert np.abs(flow.y[0] + np.expm1(flow.y[0]) - 2 * np.array([1e3, 1e6])).max() < 1e-6 * 2e6

# %% [markdown]
# ## When it exists
#
# Draw an arrow from every winner to its losers. A finite maximum exists exactly where the graph is *strongly
# connected*: however the items are split in two, somebody in either part beat somebody in the other (Zermelo 1929,
# Ford 1957). Where it is not, there are three kinds of contrasts, and `identify` says which is which before anything
# is fitted:
#
# - within a strong component a contrast is **identified**, whatever goes on outside;
# - between two components that wins join, all in one direction, it is **infinite**;
# - between items that nothing orders it is **unidentified**: any number is as likely as any other.

# %%
wins = np.zeros((7, 7))
wins[0, 1] = wins[1, 0] = 1  # 0 and 1 beat each other,
wins[1, 2] = wins[1, 3] = 3  # 1 always beats 2 and always beats 3, who never met,
wins[4, 5] = wins[5, 6] = wins[6, 4] = 2  # and 4, 5 and 6 met none of them.
small = identify(Comparisons.from_wins(wins))
for pair in ((0, 1), (0, 2), (2, 3), (0, 4), (4, 6)):
    print(pair, small.status(*pair), small.repair(*pair))
assert [small.status(*pair) for pair in ((0, 1), (0, 2), (2, 3), (0, 4), (4, 6))] == [
    "identified",
    "infinite",
    "unidentified",
    "unidentified",
    "identified",
]
# The definition, by trying every split of every component.
everyone = range(7)
splits = [[i for i in everyone if code >> i & 1] for code in range(1, 2**7 - 1)]
cuts = [
    part
    for part in splits
    if wins[np.ix_(part, np.setdiff1d(everyone, part))].sum() > 0
    and wins[np.ix_(np.setdiff1d(everyone, part), part)].sum() == 0
]
assert cuts
assert not small.exists
assert small.separating_cut.winners.tolist() in cuts

# %% [markdown]
# ## 36 races
#
# Hunter (2004) fitted the Plackett-Luce model to the 36 races of the 2002 NASCAR season. 87 drivers took part. He
# left out four of them, because they never beat anyone, and with the other 83 there is an answer: a log-likelihood of
# $-4191.10$, and driver 57 in front with 18.6 % of all strength, on the grounds of a single start. (Which race each
# of the four ended is reconstructed from the gaps in the published orders, see `published.nascar`.)

# %%
nascar83 = published.nascar()
nascar87 = published.nascar(all_drivers=True)
season = fit(nascar83)
strength = np.exp(season.scores) / np.exp(season.scores).sum()
print(f"log-likelihood {season.log_likelihood:.6f}; strengths {np.sort(strength)[:-4:-1].round(4)}")
assert identify(nascar83).exists
assert abs(season.log_likelihood - -4191.097284597254) < 1e-9 * 4191
# Hunter's table 2, as printed.
assert strength[[57, 67, 50]].round(4).tolist() == [0.1864, 0.1096, 0.0235]

# %%
report = identify(nascar87)
LAST = (83, 84, 85, 86)
print(report.separating_cut)
assert not report.exists
assert report.separating_cut.losers.tolist() == list(LAST)
assert (report.num_strong_components, report.num_components) == (5, 1)
assert all(report.status(57, driver) == "infinite" for driver in LAST)
assert report.status(83, 84) == "unidentified"  # who of two that always came in last is better

everybody = fit(nascar87)
try:
    everybody.contrast(57, 83)
    refused = False
except IdentifiabilityError as error:
    refused = True
    print(error)
assert refused
# What the four do not touch stays as it was, to rounding.
between = everybody.scores[:83] - season.scores
assert np.ptp(between) < 1e-9
assert np.isnan(everybody.scores[list(LAST)]).all()

# %% [markdown]
# ## What a gradient does with them
#
# Follow the gradient of the likelihood of all 87. Contrasts among the 83 settle at the values above. Those to the
# four never do: after a transient, each decade adds $\log 10 = 2.303$ logits, as it did with two answers.

# %%
places = nascar87.items


def ascent(_, score):
    """Gradient of the Plackett-Luce log-likelihood: places won, less those expected."""
    strength = np.exp(score[places])
    behind = np.cumsum(strength[:, ::-1], axis=1)[:, ::-1]
    expected = strength * np.cumsum(1 / behind, axis=1)
    return np.bincount(places.ravel(), (1 - expected).ravel(), minlength=len(score))


time = np.logspace(-2, 6, 65)
path = solve_ivp(ascent, (0, time[-1]), np.zeros(87), method="BDF", t_eval=time, rtol=1e-6, atol=1e-8).y
decade = time.searchsorted(1e5)
growth = path[57, -1] - path[57, decade] - (path[list(LAST), -1] - path[list(LAST), decade])
print("logits in the last decade, against the four:", growth.round(4))
# The rest decays like 1/t; the integrator keeps six digits of scores below 20.
assert np.abs(growth - np.log(10)).max() < 1e-3
settled = [path[57, -1] - path[driver, -1] for driver in (0, 50, 67)]
assert np.abs(np.array(settled) - [season.contrast(57, driver).value for driver in (0, 50, 67)]).max() < 1e-3

# %% [markdown]
# ## What programs return
#
# The margin of driver 57 over driver 83, for which there is no number, as measured by
# `python -m experiments.benchmarks.peers_refusals` on the same races (choix takes rankings, the others all pairs of
# each race). Defaults, unless said:
#
# | program | margin | what else it says |
# |---|---|---|
# | choix 0.4.1 `opt_rankings` | 16.1 | nothing |
# | choix 0.4.1 `opt_rankings(alpha=0)` | 25.1 | nothing |
# | choix 0.4.1 `ilsr_rankings` | none | RuntimeError: Did not converge after 100 iterations |
# | choix 0.4.1 `mm_rankings` | none | RuntimeError: Did not converge after 10000 iterations |
# | evalica 0.4.2 `bradley_terry` | 0.0 | nothing |
# | evalica 0.4.2 `newman` | 16.7 | nothing |
# | arena-rank 0.1.1 `BradleyTerry` | 16.0 | a standard error of 0.00009 for driver 83 |
# | rmjax `fit` | refused | the cut, and what would have to be raced |
#
# The most confident interval belongs to the number that means least: where the residuals vanish, so does a sandwich
# estimate of the error.

# %%
answers = {
    "choix opt_rankings": 16.11,
    "  the same, alpha=0": 25.14,
    "choix ilsr_rankings": "did not converge after 100 iterations",
    "choix mm_rankings": "did not converge after 10000 iterations",
    "evalica": 0.0,
    "evalica newman": 16.74,
    "arena-rank": 16.03,
    "rmjax": "refuses: driver 83 never beat anyone",
}
assert np.ptp([x for x in answers.values() if isinstance(x, float)]) > 20

figure, (growing, graph, peers) = plt.subplots(
    1, 3, figsize=(11, 3.8), gridspec_kw={"width_ratios": [1.15, 1, 1.25]}, layout="constrained"
)
for driver, colour, dash in zip(LAST, (style.RED, style.ORANGE, style.PURPLE, style.GREY), style.DASHES):
    growing.semilogx(time, path[57] - path[driver], color=colour, linestyle=dash, label=f"over {driver}, always last")
for driver, colour, dash in ((0, style.BLUE, "-"), (67, style.GREEN, "--")):
    growing.semilogx(time, path[57] - path[driver], color=colour, linestyle=dash, label=f"over {driver}")
    value = season.contrast(57, driver).value
    growing.plot(time[-1] * 2, value, marker="D", color=colour, clip_on=False)
growing.annotate("maximum\nlikelihood", (2e6, 4.6), (4e4, 7), fontsize=8.5, arrowprops={"arrowstyle": "-", "lw": 0.6})
growing.set(xlabel="time of gradient ascent", ylabel="margin of driver 57, logits", xlim=(1e-2, 2e6), ylim=(-0.5, 21))
growing.legend(loc="upper left")
growing.set_title("Forever: 2.3 logits a decade")

beats = {
    (int(report.strong_components[winner]), int(report.strong_components[loser]))
    for race in nascar87.items.tolist()
    for winner, loser in pairwise(race)
}
crossing = sorted({(a, b) for a, b in beats if a != b})
names = [np.flatnonzero(report.strong_components == c) for c in range(report.num_strong_components)]
spot, at = {}, 0
for component, members in enumerate(names):
    spot[component] = (0.5, 0.72) if len(members) > 1 else (0.14 + 0.24 * at, 0.13)
    at += len(members) == 1
    radius = 0.2 if len(members) > 1 else 0.085
    graph.add_patch(Circle(spot[component], radius, facecolor="white", edgecolor=style.INK, linewidth=1.2, zorder=2))
    text = f"{len(members)} drivers,\nstrongly\nconnected" if len(members) > 1 else f"{members[0]}"
    graph.text(*spot[component], text, ha="center", va="center", fontsize=8.5, zorder=3)
for a, b in crossing:
    graph.annotate(
        "",
        spot[b],
        spot[a],
        arrowprops={"arrowstyle": "-|>", "color": style.INK, "shrinkA": 37, "shrinkB": 16, "lw": 1.2},
    )
graph.plot([0.02, 0.98], [0.33, 0.33], "--", color=style.RED)
graph.text(0.99, 0.36, "no arrow\nback up", color=style.RED, fontsize=8.5, ha="right")
graph.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
graph.axis("off")
graph.set_anchor("N")
graph.set_title("Who beat whom, and the cut")

for row, (name, answer) in enumerate(answers.items()):
    if isinstance(answer, float):
        peers.plot([0, answer], [-row, -row], color=style.FAINT, zorder=0)
        peers.plot(answer, -row, "o", color=style.RED)
        peers.text(answer + 1, -row, f"{answer:.1f}", va="center", fontsize=8.5)
    else:
        peers.text(0, -row, answer, va="center", fontsize=8.5, color=style.BLUE if name == "rmjax" else style.INK)
peers.set(yticks=-np.arange(len(answers)), yticklabels=answers, xlim=(-1, 30), ylim=(-7.6, 0.6))
peers.set(xlabel="margin of 57 over 83, logits")
peers.set_title("Eight answers to no question")
style.save(figure, "03")
assert crossing == [(0, component) for component in range(1, 5)]

# %% [markdown]
# ## If a number must be had
#
# A penalty makes everything finite, and then the number is the penalty's. With a ridge $\tau$ the margin to a driver
# who was only ever beaten grows with $\log(1/\tau)$: every tenth of the penalty adds some two logits, without end,
# while contrasts that the data identify stop moving. That is a test for any program: change its regularisation by
# ten.

# %%
ridges = (1e-2, 1e-3, 1e-4, 1e-5)
fits = [fit(nascar87, ridge=tau) for tau in ridges]
beyond = np.array([penalised.contrast(57, 83).value for penalised in fits])
within = np.array([penalised.contrast(57, 67).value for penalised in fits])
print("57 over 83:", beyond.round(3), " 57 over 67:", within.round(3))
assert ((np.diff(beyond) > 1.5) & (np.diff(beyond) < np.log(10))).all()
assert abs(within[-1] - season.contrast(57, 67).value) < 1e-3
assert all(not penalised.identification.exists for penalised in fits)  # the report does not change
