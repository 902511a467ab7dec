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
# # 2. One kernel, seven losses
#
# Label smoothing, soft labels, noise correction, target margins, lapses and Thurstone's model have names, papers and
# switches of their own. Four of the seven losses below are one function plus a straight line, and the slope of that
# line says all there is to say about them. The other three are not, and each pays for it with something that one
# should know before choosing it.

# %%
import jax
import jax.numpy as jnp
import numpy as np
from matplotlib import pyplot as plt

import style
from rmjax import losses

style.use()
margin = np.linspace(-6, 8, 281).astype(np.float32)
RATE, SHARE = 0.1, 0.7


def value(loss, at=margin):
    return np.asarray(jax.jit(loss)(at))


def slope(loss, at=margin):
    return np.asarray(jax.jit(jax.vmap(jax.grad(loss)))(jnp.asarray(at, jnp.float32)))


def bend(loss, at=margin):
    return np.asarray(jax.jit(jax.vmap(jax.grad(jax.grad(loss))))(at))


# %% [markdown]
# ## A kernel plus a line
#
# Let $\ell(\Delta) = \log(1 + e^{-\Delta})$ be the loss of one vote for the first answer. Since $\ell(-\Delta) =
# \ell(\Delta) + \Delta$, every mixture of the loss and its mirror image is $\ell(\Delta) + c\,\Delta$:
#
# | loss | formula | $c$ |
# |---|---|---|
# | Bradley-Terry | $\ell(\Delta)$ | $0$ |
# | soft label, share $q$ | $q\,\ell(\Delta) + (1-q)\,\ell(-\Delta)$ | $1 - q$ |
# | label smoothing, rate $\varepsilon$ | $(1-\varepsilon)\ell(\Delta) + \varepsilon\ell(-\Delta)$ | $\varepsilon$ |
# | noise correction | $[(1-\varepsilon)\ell(\Delta) - \varepsilon\ell(-\Delta)]/k$ | $-\varepsilon/k$ |
#
# with $k = 1 - 2\varepsilon$. Smoothing is cDPO (Mitchell 2023), correction rDPO (Chowdhury et al. 2024).
#
# So smoothing and correction, both sold as remedies for noisy labels, are *opposite*: one pulls margins down with a
# constant force, the other pushes them up. All four have the same curvature, hence the same Fisher information.

# %%
family = {
    "Bradley-Terry": (losses.bradley_terry, 0.0),
    f"soft label, share {SHARE}": (lambda d: losses.soft_label(d, SHARE), 1 - SHARE),
    f"smoothed, rate {RATE}": (lambda d: losses.label_smoothed(d, RATE), RATE),
    f"noise-corrected, rate {RATE}": (lambda d: losses.noise_corrected(d, RATE), -RATE / (1 - 2 * RATE)),
}
eps = np.finfo(np.float32).eps
for name, (loss, c) in family.items():
    wide = margin.astype(float)
    line = value(loss).astype(float) - np.logaddexp(0, -wide)
    print(f"{name:28s} slope of the line {np.polyfit(wide, line, 1)[0]:+.4f}")
    # Two terms of the size of the margin, each rounded a few times in float32, one of them by 1/(1-2ε).
    assert np.abs(line - c * wide).max() < 8 * eps * (1 + np.abs(wide).max())
    assert np.abs(bend(loss) / losses.curvature(margin) - 1).max() < 16 * eps

# %% [markdown]
# The identity is for proofs. In floating point $\ell(\Delta) + c\Delta$ cancels where the line is negative; the
# functions of rmjax add terms of one sign. At $\Delta = 30$ the noise-corrected loss is $-3.75 + 9.4 \cdot 10^{-14}$,
# and its derivative $-\sigma(-\Delta) + c$ rests on how well $\sigma$ is known in the tail: written as $1 -
# \sigma(\Delta)$ it is 0 there.

# %%
tail = jnp.float32(20.0)
print(
    "gradient of Bradley-Terry at 20:",
    jax.grad(losses.bradley_terry)(tail),
    "and as σ(20) - 1:",
    jax.nn.sigmoid(tail) - 1,
)
assert abs(jax.grad(losses.bradley_terry)(tail) / -2.0611536181902037e-9 - 1) < 8 * eps
assert jax.nn.sigmoid(tail) - 1 == 0

# %% [markdown]
# ## Where each of them wants the margin
#
# A loss of the family is smallest where $\sigma(-\Delta) = c$. For smoothing that is
# $\log\frac{1-\varepsilon}{\varepsilon}$, whatever the data say: at a rate of 0.1 no margin is to exceed 2.197. A
# soft label wants $\operatorname{logit} q$, which is the truth. Bradley-Terry and noise correction want one vote to
# be infinitely sure; the latter *rewards* every further logit, and its loss of a single pair falls below zero and
# without end.
#
# Over data with flips in them the picture changes. If labels are flipped at rate $\varepsilon$ then the mean of the
# corrected loss is the loss of the true labels:
#
# $$(1-\varepsilon)\,L(\Delta) + \varepsilon\,L(-\Delta) = \ell(\Delta).$$

# %%
optimum = {name: np.log((1 - c) / c) for name, (_, c) in family.items() if c > 0}
for name, at in optimum.items():
    # The gradient is a difference of two terms below 1.
    assert abs(float(slope(family[name][0], [at])[0])) < 4 * eps
    print(f"{name:28s} smallest at {at:.4f}")
corrected = lambda d: losses.noise_corrected(d, RATE)
assert losses.noise_corrected(100.0, RATE) < -12  # -0.1 / 0.8 * 100
flipped = (1 - RATE) * value(corrected) + RATE * value(corrected, -margin)
assert np.abs(flipped - value(losses.bradley_terry)).max() < 8 * eps * (1 + 8) / (1 - 2 * RATE)

# %% [markdown]
# What both do to an estimate: a share of 0.9 prefers the first answer, 10 % of the labels are flipped, so 82 % of the
# labels say so. The true margin is $\operatorname{logit} 0.9 = 2.197$. The plain loss returns $\operatorname{logit}
# 0.82$, the corrected one the truth, and the smoothed one is biased twice.

# %%
seen = (1 - RATE) * 0.9 + RATE * 0.1
fine = np.linspace(0, 4, 40_001)


def estimate(loss):
    values = seen * value(loss, fine) + (1 - seen) * value(loss, -fine)
    return fine[np.argmin(values)]


with jax.enable_x64():
    found = {name: estimate(family[name][0]) for name in family if "soft" not in name}
for name, at in found.items():
    print(f"{name:28s} estimates {at:.3f}")
plain, smoothed, noise_corrected = found.values()
step = fine[1] - fine[0]
assert abs(noise_corrected - np.log(9)) < step
assert abs(plain - np.log(seen / (1 - seen))) < step
share = seen - RATE * (2 * seen - 1)
assert abs(smoothed - np.log(share / (1 - share))) < step
assert smoothed < plain < noise_corrected

# %% [markdown]
# ## Three that are no line away
#
# - **Lapse** (Christiano et al. 2017): with chance $\lambda$ an annotator answers at random,
#   $-\log[(1-\lambda)\sigma(\Delta) + \lambda/2]$. One wrong label costs at most $-\log(\lambda/2)$, and what is badly
#   wrong is given up: the gradient returns to 0. It is not convex.
# - **Target margin** (Touvron et al. 2023): $\ell(\Delta - m)$ is the kernel moved sideways. The optimum for a share
#   $q$ is $m + \operatorname{logit} q$, so the margins of such a model are no log-odds.
# - **Thurstone** (1927): $-\log \Phi(\Delta)$, in units of the standard deviation of a difference. Its loss of a badly
#   ranked pair grows with the square of the margin, where Bradley-Terry's grows with the margin.

# %%
others = {
    "lapse, rate 0.1": lambda d: losses.lapse(d, RATE),
    "target margin 1": lambda d: losses.with_target_margin(d, jnp.float32(1.0)),
    "Thurstone": losses.thurstone,
}
far = np.float32(-100.0)
assert losses.lapse(far, RATE) <= -np.log(RATE / 2) * (1 + 4 * eps)
assert abs(float(slope(others["lapse, rate 0.1"], [far])[0])) < 1e-40
graded = lambda d: SHARE * losses.with_target_margin(d, 1.0) + (1 - SHARE) * losses.with_target_margin(-d, -1.0)
assert abs(float(slope(graded, [1 + np.log(SHARE / (1 - SHARE))])[0])) < 4 * eps
# Half a square beyond what the logarithm adds, log(Δ √2π) = 5.5 at 100.
assert abs(losses.thurstone(far) - (100.0**2 / 2 + np.log(100 * np.sqrt(2 * np.pi)))) < 1e-3 + 5006 * eps

# %% [markdown]
# ## The curvature that automatic differentiation loses
#
# Standard errors, Laplace approximations and Newton steps read the second derivative,
# $\sigma(\Delta)\sigma(-\Delta)$, which is the same for $\Delta$ and $-\Delta$. Automatic differentiation of
# `jax.nn.log_sigmoid` in float32 loses it on one side: it is some percent off at $-12$ and exactly zero from about
# $-15$ down, so pairs that a model ranks badly carry no information. The rules of rmjax are closed forms, attached to
# the sigmoid.

# %%
deep = np.linspace(-20, 20, 161).astype(np.float32)
truth = np.exp(-np.abs(deep.astype(float))) / (1 + np.exp(-np.abs(deep.astype(float)))) ** 2
automatic = bend(lambda d: -jax.nn.log_sigmoid(d), deep)
ours = bend(losses.bradley_terry, deep)
print(f"at -12: {automatic[deep == -12][0] / truth[deep == -12][0] - 1:+.1%} off; at -20: {automatic[deep == -20][0]}")
assert np.abs(ours / truth - 1).max() < 16 * eps
assert automatic[deep == -20][0] == 0

# %% [markdown]
# ## In one picture

# %%
figure, axes = plt.subplots(2, 2, figsize=(9.4, 6.6))
(top, forces), (rest, curvatures) = axes
names = ("Bradley-Terry", f"smoothed, rate {RATE}", f"noise-corrected, rate {RATE}", f"soft label, share {SHARE}")
for name, colour, dash in zip(names, (style.INK, style.BLUE, style.RED, style.GREEN), style.DASHES):
    loss = family[name][0]
    top.plot(margin, value(loss), color=colour, linestyle=dash, label=name)
    forces.plot(margin, slope(loss), color=colour, linestyle=dash)
    if name in optimum:
        at = optimum[name]
        top.plot(at, value(loss, np.float32(at)), "o", color=colour)
        forces.plot(at, 0, "o", color=colour)
top.axhline(0, color=style.FAINT, zorder=0)
top.set(xlim=(-4, 8), ylim=(-1.2, 4), ylabel="nats", xlabel="margin in logits")
top.legend(title="dots: where the loss is smallest", title_fontsize=8.5)
top.set_title("A kernel plus a line: losses")
forces.axhline(0, color=style.FAINT, zorder=0)
forces.set(xlim=(-4, 8), ylim=(-1.2, 0.4), ylabel="derivative", xlabel="margin in logits")
for text, height, colour in (
    ("pulls back: +0.3", 0.33, style.GREEN),
    ("pulls back: +0.1", 0.13, style.BLUE),
    ("none", -0.06, style.INK),
    ("pushes on: −0.125", -0.2, style.RED),
):
    forces.text(7.9, height, text, color=colour, fontsize=8.5, ha="right")
forces.set_title("The same forces, moved up or down")
rest.plot(margin, value(losses.bradley_terry), color=style.INK, label="Bradley-Terry")
for (name, loss), colour, dash in zip(others.items(), (style.BLUE, style.RED, style.GREEN), style.DASHES[1:]):
    rest.plot(margin, value(loss), color=colour, linestyle=dash, label=name)
rest.axhline(-np.log(RATE / 2), color=style.FAINT, zorder=0)
rest.text(3.2, -np.log(RATE / 2) + 0.12, "a lapse costs no more", fontsize=8.5, color=style.BLUE)
rest.set(xlim=(-6, 8), ylim=(0, 8), ylabel="nats", xlabel="margin in logits")
rest.legend()
rest.set_title("Bounded, moved, squared")
curvatures.semilogy(deep, ours, color=style.SKY, linewidth=4, label="rmjax")
shown = np.where(automatic > 0, automatic, np.nan)
curvatures.semilogy(deep, shown, color=style.RED, linewidth=1.2, label="autodiff of log_sigmoid")
gone = deep[automatic == 0]
curvatures.axvspan(gone.min(), gone.max(), color=style.FAINT, alpha=0.6, linewidth=0)
curvatures.text((gone.min() + gone.max()) / 2, 0.03, "exactly 0", ha="center", fontsize=8.5, color=style.RED)
curvatures.set(xlim=(-20, 20), ylim=(1e-9, 1), ylabel="second derivative", xlabel="margin in logits")
curvatures.legend(loc="lower center")
curvatures.set_title("Curvature in float32")
style.save(figure, "02")
assert gone.max() < -10  # of the pairs that are ranked right nothing is lost
