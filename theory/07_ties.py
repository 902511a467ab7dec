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
# # 7. Ties, abstentions and one half
#
# An annotator who does not choose may mean three things: both are equally good; I cannot judge; half of me says this,
# half that. They are a datum, no vote, and half a vote for either side. Data sets write all three as "tie" or 0.5, and
# losses take what they get. What does it change?

# %%
import jax.numpy as jnp
import numpy as np
from matplotlib import pyplot as plt

import style
from rmjax import Comparisons, Votes, losses
from rmjax.errors import DataError
from rmjax.preferences import fit, published
from rmjax.votes import CANNOT_JUDGE, FIRST, SECOND, TIE

style.use()
pudding = Comparisons.from_wins(published.PUDDING, ties=published.PUDDING_TIES)

# %% [markdown]
# ## One pair, three answers
#
# Six votes for the first, two for the second, four that do not choose. Left out, the odds are 3 to 1 and the margin log
# 3. As halves they are 8 to 4, and the margin log 2: smaller, and with a smaller standard error, as if four people had
# said something about who is better. Davidson's model (1970) gives a tie a probability of its own,
#
# $$P(\text{first}) : P(\text{second}) : P(\text{tie}) = e^{\Delta/2} : e^{-\Delta/2} : \nu,$$
#
# and has the margin log 3 again; the ties say how large $\nu$ is.

# %%
one = Comparisons.from_votes([0], [1], [6], [2], prompt=[0, 0], ties=[4])
told = {
    "left out": fit(one, ties="drop").contrast(0, 1),
    "one half": fit(one, ties="half").contrast(0, 1),
    "Davidson": fit(one, link="davidson").contrast(0, 1),
}
for name, margin in told.items():
    print(f"{name:10} {margin.value:.4f} (standard error {margin.standard_error:.4f})")
assert np.allclose([told["left out"].value, told["left out"].standard_error], [np.log(3), np.sqrt(1 / 6 + 1 / 2)])
assert np.allclose([told["one half"].value, told["one half"].standard_error], [np.log(2), np.sqrt(1 / 8 + 1 / 4)])
assert np.isclose(told["Davidson"].value, np.log(3))
assert np.isclose(np.exp(fit(one, link="davidson").parameters["log_tie"]), 4 / np.sqrt(12))

# %% [markdown]
# ## An abstention is no vote
#
# In the long form every vote says what it is. "Cannot judge" is kept there and adds nothing to a comparison, to its
# likelihood or to its count; a tie adds to the count, or has to be dealt with. Where votes have ties and nobody says
# what they are, a link that has no word for them refuses.

# %%
ballots = Votes.build(item=[0] * 12, annotator=range(12), value=[FIRST] * 6 + [SECOND] * 2 + [CANNOT_JUDGE] * 4)
silent = ballots.comparisons([0], [1], prompt=[0, 0])
scores = jnp.array([1.0, 0.0])
assert float(losses.negative_log_likelihood(scores, silent)[1]) == 8
tied = Votes.build(item=[0] * 12, annotator=range(12), value=[FIRST] * 6 + [SECOND] * 2 + [TIE] * 4)
try:
    losses.negative_log_likelihood(scores, tied.comparisons([0], [1], prompt=[0, 0]))
    refused = False
except DataError as error:
    refused = True
    print(error)
assert refused

# %% [markdown]
# ## Six chocolate puddings
#
# Davidson's own data: six puddings, fifteen pairs, 745 judgements, of which 202 are ties. One half for a tie shrinks
# the lead of the best pudding over the first by 27 %, and its standard error by 15 %. Leaving ties out moves both by
# less than one percent of what the model that knows ties gives: nearly all that these say about who is better is in
# the other votes.

# %%
fits = {
    "ties left out": fit(pudding, ties="drop"),
    "ties as one half": fit(pudding, ties="half"),
    "Rao and Kupper": fit(pudding, link="rao_kupper"),
    "Davidson": fit(pudding, link="davidson"),
}
leads = {name: estimate.contrast(5, 0) for name, estimate in fits.items()}
for name, lead in leads.items():
    print(f"{name:17} {lead.value:.4f} (standard error {lead.standard_error:.4f})")
published = {"ties left out": 0.3738215984, "ties as one half": 0.2744924688, "Davidson": 0.3771348958}
assert all(abs(leads[name].value - value) < 1e-10 for name, value in published.items())
assert round(1 - leads["ties as one half"].value / leads["Davidson"].value, 2) == 0.27
assert round(1 - leads["ties as one half"].standard_error / leads["Davidson"].standard_error, 2) == 0.15
assert abs(leads["ties left out"].value / leads["Davidson"].value - 1) < 0.01
assert abs(leads["ties left out"].standard_error / leads["Davidson"].standard_error - 1) < 0.01
assert int(np.argmax(fits["Davidson"].scores)) == 5
assert int(np.sum(pudding.ties)) == 202
assert int(np.sum(pudding.wins_first + pudding.wins_second + pudding.ties)) == 745

# %% [markdown]
# ## Two models of a tie
#
# Rao and Kupper (1967) call a difference a tie when it is below a threshold; Davidson lets ties compete with wins.
# Their parameters are in other units (the scores of Rao and Kupper are smaller by about a fifth here), but their
# chances are nearly the same: equals tie with .2723 and .2719. The likelihoods differ by a hundredth of a nat, and the
# data cannot tell them apart.

# %%
nu = float(np.exp(fits["Davidson"].parameters["log_tie"]))
threshold = float(np.exp(fits["Rao and Kupper"].parameters["log_threshold"]))
equal = {"Davidson": nu / (2 + nu), "Rao and Kupper": (threshold - 1) / (threshold + 1)}
print({name: round(chance, 5) for name, chance in equal.items()})
assert (round(equal["Davidson"], 5), round(equal["Rao and Kupper"], 5)) == (0.27189, 0.27232)
gap = fits["Rao and Kupper"].log_likelihood - fits["Davidson"].log_likelihood
assert round(gap, 2) == 0.01
assert round(1 - leads["Rao and Kupper"].value / leads["Davidson"].value, 1) == 0.2

# %% [markdown]
# ## In one picture
#
# Left: four estimates of the lead of the sixth pudding over the first, with 95 % intervals. Right: chances of the three
# outcomes as the margin grows from one side to the other, in a triangle whose corners are certainty; the two models bow
# towards the tie, and "one half" has no point in it at all, since it has no chance of a tie.

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(8.6, 3.6))
for row, lead in enumerate(leads.values()):
    low, high = lead.interval()
    left.plot([low, high], [row, row], color=style.COLOURS[row], linewidth=2.5)
    left.plot(lead.value, row, "o", color=style.COLOURS[row], markersize=7)
left.axvline(0, color=style.FAINT, zorder=0)
left.set(yticks=range(4), yticklabels=list(leads), ylim=(3.6, -0.6), title="The sixth pudding over the first")
left.set_xlabel("margin, in the unit of each model")
margin = np.linspace(-9, 9, 241)
corners = {"first": (0.0, 0.0), "second": (1.0, 0.0), "tie": (0.5, np.sqrt(3) / 2)}
outline = np.array([*corners.values(), corners["first"]])
right.plot(*outline.T, color=style.INK, linewidth=1)
drawn = []
for name, loss, parameter, colour, dash in (
    ("Davidson", losses.davidson, np.log(nu), style.ORANGE, "-"),
    ("Rao and Kupper", losses.rao_kupper, np.log(threshold), style.GREEN, "--"),
):
    chance = np.exp(-np.stack([np.asarray(loss(margin, outcome, parameter)) for outcome in range(3)]))
    drawn.append(chance)
    right.plot(*(np.array(list(corners.values())).T @ chance), dash, color=colour, label=name)
flat = np.exp(-np.asarray(losses.bradley_terry(margin)))
right.plot(1 - flat, np.zeros_like(flat), ":", color=style.BLUE, linewidth=2.5, label="no chance of a tie")
for word, (x, y) in corners.items():
    right.annotate(word, (x, y), (0, 5 if word == "tie" else -13), textcoords="offset points", ha="center")
right.set(xlim=(-0.08, 1.08), ylim=(-0.12, 0.98), aspect="equal", title="Chances of the three outcomes")
right.axis("off")
right.legend(loc="upper right", bbox_to_anchor=(1.12, 0.98))
style.save(figure, "07")
assert all(np.abs(chance.sum(axis=0) - 1).max() < 1e-5 for chance in drawn)
