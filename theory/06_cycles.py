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
# # 6. Cycles: what a scalar throws away
#
# A score puts answers on a line. People need not: a crowd may prefer A to B, B to C and C to A, each with a majority,
# although every single person in it has an order. What does a scalar lose then, in nats and in accuracy, and how does
# one tell a cycle from chance?

# %%
import numpy as np
from matplotlib import pyplot as plt
from scipy import special

import style
from rmjax import Comparisons
from rmjax.identifiability import best_scalar_accuracy, hodge, transitivity, transitivity_under
from rmjax.preferences import fit, fit_skew, project_to_bradley_terry, published, scalar_verdict, skew_margins

style.use()
circle = Comparisons.from_votes([0, 1, 2], [1, 2, 0], [160] * 3, [40] * 3, prompt=[0] * 3)  # .8 around
sets = {
    "a circle of .8": circle,
    "baseball": Comparisons.from_wins(published.BASEBALL),
    "sushi": Comparisons.from_wins(published.SUSHI),
    "films": Comparisons.from_wins(published.NETFLIX),
}

# %% [markdown]
# ## A crowd of orders may have none
#
# Three groups of equal size rank ABC, BCA and CAB. Two thirds of all prefer A to B, B to C, and C to A (Condorcet
# 1785). The nearest scalar says nothing at all: all scores are equal.

# %%
wins = np.zeros((3, 3))
for order in ("ABC", "BCA", "CAB"):
    for place, better in enumerate(order):
        for worse in order[place + 1 :]:
            wins["ABC".index(better), "ABC".index(worse)] += 1
condorcet = Comparisons.from_wins(wins)
print("shares of A over B, B over C, C over A:", [f"{wins[i, j] / 3:.3f}" for i, j in ((0, 1), (1, 2), (2, 0))])
assert np.abs(fit(condorcet).scores).max() < 1e-12
assert transitivity(condorcet).num_cyclic == 1

# %% [markdown]
# ## The nearest scalar, and what it leaves
#
# Fitting Bradley-Terry to shares $q_{ij}$ that are no scalar's is a projection: it finds the scores whose probabilities
# $p_{ij}$ are nearest in divergence, and it keeps the expected wins of every answer. For any other scores $\theta$
# Pythagoras holds (Csiszár 1975),
#
# $$\mathrm{KL}(q \,\|\, \theta) = \mathrm{KL}(q \,\|\, \theta^\ast) + \mathrm{KL}(\theta^\ast \,\|\, \theta),$$
#
# so what is left at $\theta^\ast$ is the price of a scalar. On a circle of .8 it is $\log 2$ minus the entropy of .8:
# the scalar tosses a coin.

# %%
nearest = {name: project_to_bradley_terry(c) for name, c in sets.items()}
for name, found in nearest.items():
    print(f"{name:15} {found.per_vote:.5f} nats a vote, deviance {found.deviance:.1f} on {found.degrees_of_freedom}")
entropy = special.entr(0.8) + special.entr(0.2)
assert abs(nearest["a circle of .8"].per_vote - (np.log(2) - entropy)) < 1e-12

rng = np.random.default_rng(0)
found = nearest["sushi"]
pairs, q = found.pairs, found.pairs.share
other = special.expit((lambda r: r[pairs.first] - r[pairs.second])(rng.normal(size=10)))


def divergence(p, r):
    """Nats of all votes."""
    return (pairs.votes * (special.rel_entr(p, r) + special.rel_entr(1 - p, 1 - r))).sum()


assert np.isclose(divergence(q, other), found.total + divergence(found.probability, other), rtol=1e-10)

# %% [markdown]
# ## Where the rest goes: triangles and holes
#
# The log-odds of the votes are a flow on the edges of the graph. Hodge's theorem splits any flow into three parts that
# are orthogonal under the number of votes (Jiang, Lim, Yao and Ye 2011): the gradient of a score, circulation around
# triangles, and circulation around holes that no triangle fills. A scalar keeps the first.

# %%
parts = {name: hodge(c) for name, c in sets.items()}
energy = {name: np.array([p.gradient_energy, p.curl_energy, p.harmonic_energy]) for name, p in parts.items()}
for name, values in energy.items():
    print(f"{name:15} " + ", ".join(f"{part} {x:.1f}" for part, x in zip(("gradient", "curl", "harmonic"), values)))
    flow = parts[name]
    assert np.isclose(values.sum(), flow.energy, rtol=1e-12)
# All pairs were compared, so that nothing is around a hole.
assert max(values[2] / values.sum() for values in energy.values()) < 1e-20
assert energy["a circle of .8"][0] < 1e-20
assert abs(parts["baseball"].cyclicity_ratio - 0.3166147) < 1e-6

# %% [markdown]
# ## A third of baseball goes around, and it is chance
#
# With thirteen games a pair, shares are noisy and noise goes around. A share of energy is no evidence; a test is. Votes
# are drawn from a scalar, projected again, and the observed deviance is set against theirs. (Sushi and films are
# rankings counted in pairs; the pairs of one person are not independent, which the test does not know. Here it hardly
# matters: the deviance of sushi is forty times what chance leaves.)

# %%
verdicts = {name: scalar_verdict(c) for name, c in sets.items()}
for name, found in verdicts.items():
    print(f"{name}: {found.sentence}")
assert verdicts["a circle of .8"].answer == "cannot"
assert verdicts["baseball"].answer == "can"
assert verdicts["sushi"].answer != "can"  # five thousand people are enough to see it
# The mean of 40 draws, of some 36 with a spread of some 8, is known to a few percent.
assert abs(verdicts["sushi"].deviance / verdicts["sushi"].expected_deviance / 40 - 1) < 0.1

# %% [markdown]
# ## Transitive, and still no scalar
#
# Sushi has no cycle: of 120 triples none breaks weak or moderate transitivity. But 28 break the strong kind, under
# which the best must beat the worst at least as often as any step between them. Every scalar obeys it, whatever its
# link. Votes drawn from the fitted scores break it far more rarely.

# %%
counts = transitivity(sets["sushi"])
print(f"{counts.triples} triples; broken: {counts.weak.count} weak, {counts.moderate.count} moderate, ", end="")
print(f"{counts.strong.count} strong")
assert (counts.triples, counts.weak.count, counts.moderate.count, counts.strong.count) == (120, 0, 0, 28)
expected = transitivity_under(sets["sushi"], fit(sets["sushi"]).scores, seed=0)
print(
    f"expected under the fitted scores: {expected.strong.mean:.1f}; as many by chance: {expected.strong.at_least:.3f}"
)
assert expected.strong.at_least < 0.02

# %% [markdown]
# ## The accuracy that cycles cost
#
# The best order agrees with all votes but those against it: one minus the minimum feedback arc set. On the circle the
# majority of every pair would be right on .8 of the votes, and no scores on more than .6.

# %%
best = {name: best_scalar_accuracy(c) for name, c in sets.items()}
for name, found in best.items():
    print(f"{name:15} majority {found.majority:.4f}, best scalar {found.lower:.4f}")
    assert found.exact
assert abs(best["a circle of .8"].upper - 0.6) < 1e-6
assert best["sushi"].majority == best["sushi"].upper  # transitive: nothing is lost in accuracy

# %% [markdown]
# ## What says it
#
# Give every answer a point in the plane and let the margin be the area that two of them span: a skew-symmetric model
# (Zhang et al. 2024). It contains Bradley-Terry, and a circle of any strength.

# %%
skew = fit_skew(circle, rank=1)
shares = special.expit(np.asarray(skew_margins(skew.model, circle), np.float64))
print("shares of the skew model around the circle:", shares.round(6))
assert np.abs(shares - 0.8).max() < 1e-6

# %% [markdown]
# ## In one picture
#
# Left: where the energy of each set goes. Middle: what a scalar loses, in nats a vote, beside what chance alone would
# leave it to lose. Right: the accuracy of the majorities and of the best scores.

# %%
figure, (left, middle, right) = plt.subplots(1, 3, figsize=(9.4, 3.9))
names, at = list(sets), np.arange(len(sets))
start = np.zeros(len(sets))
for part, (label, colour) in enumerate((("gradient", style.BLUE), ("curl", style.RED))):
    share = np.array([energy[name][part] / energy[name].sum() for name in names])
    left.barh(at, share, left=start, color=colour, label=label, height=0.6)
    start += share
left.set(yticks=at, yticklabels=names, xlabel="share of the energy", title="Where the flow goes")
left.invert_yaxis()
left.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2)
total = np.array([v.projection.pairs.votes.sum() for v in verdicts.values()])
observed = np.array([v.deviance for v in verdicts.values()]) / 2 / total
chance = np.array([v.expected_deviance for v in verdicts.values()]) / 2 / total
middle.barh(at - 0.17, observed, height=0.3, color=style.RED, label="lost by the nearest scalar")
middle.barh(at + 0.17, chance, height=0.3, color=style.GREY, label="lost by chance alone")
middle.set(xscale="log", xlim=(3e-5, 1), yticks=at, yticklabels=[], xlabel="nats a vote", title="The price")
middle.invert_yaxis()
middle.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2))
majority, scalar = (np.array([getattr(best[n], kind) for n in names]) for kind in ("majority", "upper"))
right.hlines(at, scalar, majority, color=style.GREY, linewidth=3)
right.plot(majority, at, "o", color=style.BLUE, markersize=7, label="majority of every pair")
right.plot(scalar, at, "D", color=style.RED, markersize=5, label="best scores")
right.set(xlim=(0.5, 0.85), ylim=(-0.5, 3.5), yticks=at, yticklabels=[], xlabel="share of votes", title="The accuracy")
right.invert_yaxis()
right.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2))
style.save(figure, "06")
assert observed[0] > 10 * chance[0]
assert observed[1] < 2 * chance[1]
