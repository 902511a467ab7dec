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
# # 4. Comparisons are a resistor network
#
# How well is a margin known, and which comparison should be bought next? Both have an answer that one can draw: put a
# wire between every two answers that were compared, and read the resistance between two points.

# %%
import jax
import jax.numpy as jnp
import numpy as np
from matplotlib import pyplot as plt

import style
from rmjax import Comparisons
from rmjax.identifiability import effective_resistance, fisher, next_comparison
from rmjax.losses import curvature, probability
from rmjax.preferences import fit, published, simulate

style.use()
games = Comparisons.from_wins(published.BASEBALL)
season = fit(games)
teams = len(published.TEAMS)
low, high = np.triu_indices(teams, k=1)

# %% [markdown]
# ## The information is a Laplacian
#
# One vote on a margin $\Delta$ carries $p(1-p)$ of Fisher information about it, $p = \sigma(\Delta)$. Take that as
# the conductance of a wire; $n$ votes are $n$ wires in parallel. The information about all scores is then the
# Laplacian of the network (Ford 1957),
#
# $$I = \sum_{ij} n_{ij}\,p_{ij}(1 - p_{ij})\,(e_i - e_j)(e_i - e_j)^\top,$$
#
# whose only null direction, one constant for all, is the ground that a circuit leaves open. The example is baseball,
# American League 1987 (Agresti 2002): seven teams, thirteen games for each pair.

# %%
information = fisher(season.scores, games)
eigenvalues = np.linalg.eigvalsh(information)
conductance = -information[low, high]
print("eigenvalues:", eigenvalues.round(4))
print(f"a wire carries between {conductance.min():.2f} and {conductance.max():.2f} of the 13/4 that equals would have")
printed = [0, 15.71695102, 20.12624818, 20.69044017, 21.08150470, 21.33090416, 21.42827113]
assert np.abs(eigenvalues - printed).max() < 1e-7  # computed at 40 digits, printed to ten
assert np.abs(information.sum(axis=1)).max() < 1e-12
by_pair = 13 * np.array([float(curvature(x)) for x in season.scores[low] - season.scores[high]])
assert np.abs(conductance / by_pair - 1).max() < 16 * np.finfo(np.float32).eps

# %% [markdown]
# A clear win teaches little: at a margin of 3 logits a vote is worth 5.5 times less than one between equals, and at 5
# logits 38 times less.

# %%
worth = [float(curvature(0.0)) / float(curvature(x)) for x in (3.0, 5.0)]
print("votes that are worth one vote between equals:", np.round(worth, 2))
assert np.abs(np.array(worth) - [5.53, 37.6]).max() < 0.05

# %% [markdown]
# ## The variance of a margin is a resistance
#
# $$\operatorname{Var}(\hat\theta_i - \hat\theta_j) \approx (e_i - e_j)^\top I^{+} (e_i - e_j) = R_{ij}$$
#
# So what one learnt about circuits holds. Resistors in series add: along a chain of comparisons variances add. In
# parallel conductances add. One more wire never raises a resistance (Rayleigh). And conductance times resistance,
# summed over the wires, is the number of nodes minus one (Foster): a network of any number of comparisons has six
# units of information about seven teams to hand out.

# %%
resistance = effective_resistance(season.scores, games, low, high)
errors = np.array([season.contrast(i, j).standard_error for i, j in zip(low, high)])
foster = conductance @ resistance
print(f"Foster's sum {foster:.9f}; sum of all resistances {resistance.sum():.6f}")
# Both factorise a matrix of condition 1.4 in float64.
assert np.abs(errors**2 / resistance - 1).max() < 1e-9
assert abs(foster - (teams - 1)) < 1e-9
assert abs(resistance.sum() - 2.118382238536) < 1e-9  # Kirchhoff: n times the trace of the pseudo-inverse

chain = Comparisons.from_votes([0, 1], [1, 2], [3.0, 5.0], [1.0, 2.0], prompt=[0, 0, 0])
ends = fit(chain).contrast(0, 2)
print(f"chain: {ends.value:.4f} = log 3 + log 5/2, variance {ends.standard_error**2:.4f} = 1/3 + 1/1 + 1/5 + 1/2")
assert abs(ends.value - np.log(3 * 5 / 2)) < 1e-9
assert abs(ends.standard_error**2 - (1 / 3 + 1 + 1 / 5 + 1 / 2)) < 1e-9

# %% [markdown]
# Errors of two *levels* do not combine into that of their margin. Milwaukee and Detroit, from their errors around the
# mean: $\sqrt{0.2074^2 + 0.2042^2} = 0.291$. The wires that join them make their errors move against each other, and
# the margin has 0.311.

# %%
DETROIT, MILWAUKEE = published.TEAMS.index("Detroit"), published.TEAMS.index("Milwaukee")
_, alone = season.relative_to(None)
combined = np.hypot(alone[MILWAUKEE], alone[DETROIT])
right = season.contrast(MILWAUKEE, DETROIT).standard_error
print(f"from levels {combined:.4f}, of the margin {right:.4f}")
assert np.abs(np.array([combined, right]) - [0.2910, 0.3111]).max() < 5e-5

# %% [markdown]
# Is it true? Play the season again 300 times with the fitted scores, fit each, and compare the spread of the 21
# margins with the resistance of the circuit.

# %%
SEASONS = 300
pairs = Comparisons.from_pairs(low, high, prompt=np.zeros(teams, int))
keys = jax.random.split(jax.random.key(0), SEASONS)
first = np.asarray(jax.vmap(lambda key: simulate(key, jnp.asarray(season.scores), pairs, votes=13).wins_first)(keys))
replayed = np.array(
    [fit(Comparisons.from_votes(low, high, won, 13 - won, prompt=np.zeros(teams, int))).scores for won in first]
)
replayed = replayed[np.isfinite(replayed).all(axis=1)]  # in some seasons a team might never win
spread = (replayed[:, low] - replayed[:, high]).var(axis=0)
print(f"{len(replayed)} seasons: variance over resistance, 21 margins: {np.sort(spread / resistance).round(2)}")
assert len(replayed) >= 0.99 * SEASONS
# A variance of 300 has a relative error of sqrt(2/300) = 8 %, and the expansion that makes it a resistance is good to
# some percent at 78 games a team. The mean over margins of six free scores: 8 % / sqrt(6).
assert abs((spread / resistance).mean() - 1) < 4 * 0.082 / np.sqrt(6) + 0.06
assert np.abs(spread / resistance - 1).max() < 4 * 0.082 + 0.06

# %% [markdown]
# ## Which game to buy next
#
# One more vote between $i$ and $j$ adds a wire of conductance $c = p(1-p)$. That takes
#
# $$\frac{c\,\big[(e_i - e_j)^\top I^{+} (e_k - e_l)\big]^2}{1 + c\,R_{ij}}$$
#
# off the variance of the margin of $k$ and $l$. Of a single margin, the best wire is the direct one, or nearly. For
# the whole table the best game is the one with the largest $c\,R_{ij}$: uncertain in its outcome, and badly known.

# %%
everything = next_comparison(season.scores, games)
one = next_comparison(season.scores, games, target=(DETROIT, MILWAUKEE))
for what, bought in (("for the table", everything), ("for Milwaukee over Detroit", one)):
    print(f"{what}: {published.TEAMS[bought.first]} against {published.TEAMS[bought.second]}")
assert (one.first, one.second) == (DETROIT, MILWAUKEE)

# The formula against the circuit with the wire in it: half a vote to either side leaves the scores where they are.
for (i, j), gain in zip(one.candidates, one.gains):
    p = float(probability(season.scores[i] - season.scores[j]))
    wire = np.zeros(teams)
    wire[i], wire[j] = 1, -1
    more = information + p * (1 - p) * np.outer(wire, wire) + 1  # 1 is for the constant, on which no margin depends
    ask = np.eye(teams)[DETROIT] - np.eye(teams)[MILWAUKEE]
    assert abs(right**2 - ask @ np.linalg.solve(more, ask) - gain) < 1e-6 * right**2  # p is float32
    assert gain >= 0

# %% [markdown]
# A sparse design shows what a resistance sees and a count does not. Break the circuit of the baseball season into two
# leagues with a single pair of teams that met: every margin across the leagues rests on that bridge, and the next
# game should be another bridge.

# %%
league = np.array([0, 1, 1, 1, 0, 0, 0])
played = (league[low] == league[high]) | ((low == 3) & (high == 4))
sparse = Comparisons.from_votes(
    low[played],
    high[played],
    published.BASEBALL[low, high][played],
    published.BASEBALL[high, low][played],
    prompt=np.zeros(teams, int),
)
halves = fit(sparse)
bridge = effective_resistance(halves.scores, sparse, low, high)
across = league[low] != league[high]
print(f"median resistance within leagues {np.median(bridge[~across]):.2f}, across {np.median(bridge[across]):.2f}")
bought = next_comparison(halves.scores, sparse)
print(f"next: {published.TEAMS[bought.first]} against {published.TEAMS[bought.second]}, worth {bought.gain:.3f} nats")
assert bridge[across].min() > np.median(bridge[~across])
assert league[bought.first] != league[bought.second]

# %% [markdown]
# ## In one picture

# %%
SHORT = ["Bal", "Bos", "Cle", "Det", "Mil", "NY", "Tor"]
angle = np.pi / 2 - 2 * np.pi * np.arange(teams) / teams
spot = np.stack([np.cos(angle), np.sin(angle)], axis=1)
left, right_side = spot * [0.6, 1] - [0.65, 0], spot * [0.6, 1] + [0.65, 0]
by_league = np.where(league[:, None] == 0, left, right_side)
figure, (full, broken, bars) = plt.subplots(
    1, 3, figsize=(11, 3.9), gridspec_kw={"width_ratios": [1, 1.2, 1.25]}, layout="constrained"
)


def circuit(axes, place, i, j, width, bought):
    for a, b, thick in zip(i, j, width):
        axes.plot(*place[[a, b]].T, color=style.BLUE, linewidth=thick, alpha=0.75, zorder=1, solid_capstyle="round")
    axes.plot(*place[[bought.first, bought.second]].T, "--", color=style.RED, linewidth=2, zorder=2)
    axes.scatter(*place.T, s=620, facecolor="white", edgecolor=style.INK, zorder=3)
    for name, point in zip(SHORT, place):
        axes.text(*point, name, ha="center", va="center", fontsize=8.5, zorder=4)
    axes.axis("off")
    axes.set_aspect("equal")
    axes.margins(0.14)
    axes.set_anchor("N")


circuit(full, spot, low, high, 3 * (conductance - 1.1), everything)
full.set_title("Baseball as a circuit")
drop = halves.scores[low[played]] - halves.scores[high[played]]
wires = 13 * np.exp(-np.logaddexp(0, drop) - np.logaddexp(0, -drop))
circuit(broken, by_league, low[played], high[played], 3 * (wires - 1.1), bought)
broken.set_title("The same teams, two leagues, one bridge")

order = np.argsort(-season.scores)
rival = [team for team in order if team != MILWAUKEE]
for network, games_of, colour, lift, label in (
    (season, games, style.BLUE, 0.13, "all 21 pairs"),
    (halves, sparse, style.RED, -0.13, "two leagues, one bridge"),
):
    value = [network.contrast(MILWAUKEE, team).value for team in rival]
    reach = 1.96 * np.sqrt(effective_resistance(network.scores, games_of, np.full(6, MILWAUKEE), rival))
    rows = -np.arange(6) + lift
    bars.errorbar(value, rows, xerr=reach, fmt="o" if lift > 0 else "s", color=colour, capsize=2, label=label)
bars.axvline(0, color=style.FAINT, zorder=0)
bars.set(yticks=-np.arange(6), yticklabels=[published.TEAMS[team] for team in rival], ylim=(-5.6, 1.5))
bars.set(xlabel="Milwaukee leads by, logits")
bars.legend(loc="upper right")
bars.set_title("Margins ± 1.96 √resistance")
figure.text(0.01, 0.02, "wider: more conductance n p(1−p); dashed: the game to buy next", fontsize=8.5)
style.save(figure, "04")
assert (reach > 1.96 * np.sqrt(effective_resistance(season.scores, games, np.full(6, MILWAUKEE), rival))).all()
