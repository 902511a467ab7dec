"""Do the tests bite? Plant faults one at a time in a copy of the tree, and see which test catches each.

    python tests/mutants.py                  all of them, two at a time
    python tests/mutants.py --only lapse     those whose name holds a word
    python tests/mutants.py --jobs 4

A fault is caught where one of the test files named beside it fails. It exits with 1 if one survives, if a test file
cannot be run, or if the text that a fault replaces does not stand exactly once in its file.
"""

import argparse
import concurrent.futures
import dataclasses
import os
import pathlib
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).parents[1]
LIMIT = 300  # seconds, after which a run hangs: no test file named here takes a minute
COPIED = ("rmjax", "tests", "experiments", "pyproject.toml")


@dataclasses.dataclass(frozen=True)
class Fault:
    """One text in one file, what stands there instead, and the tests that should see it."""

    name: str
    file: str  # under rmjax/
    old: str
    new: str
    tests: str  # under tests/, one or several with a space between


FAULTS = [
    # Losses
    Fault(
        "1 - sigma",
        "losses/kernels.py",
        "return value, value * sigmoid(-x) * tangent",
        "return value, value * (1 - value) * tangent",
        "losses/test_kernels.py",
    ),
    Fault(
        "curvature by autodiff",
        "losses/kernels.py",
        '''@jax.custom_jvp
def softplus(x: jax.Array) -> jax.Array:
    """log(1 + eˣ), finite for every finite x."""
    return jnp.maximum(x, 0) + jnp.log1p(jnp.exp(-jnp.abs(x)))


@softplus.defjvp
''',
        """def softplus(x: jax.Array) -> jax.Array:
    return jnp.maximum(x, 0) + jnp.log1p(jnp.exp(-jnp.abs(x)))


""",
        "losses/test_kernels.py",
    ),
    Fault(
        "softplus that overflows",
        "losses/kernels.py",
        "return jnp.maximum(x, 0) + jnp.log1p(jnp.exp(-jnp.abs(x)))",
        "return jnp.log1p(jnp.exp(x))",
        "losses/test_kernels.py",
    ),
    Fault(
        "0 times infinity",
        "losses/kernels.py",
        "return jnp.where(votes == 0, 0, votes * loss)",
        "return votes * loss",
        "losses/test_kernels.py",
    ),
    Fault(
        "dropped weight",
        "losses/likelihood.py",
        "return tuple(times_votes(weight, x) for x in ((a, b, tied) if link in WITH_TIES else (a, b)))",
        "return (a, b, tied) if link in WITH_TIES else (a, b)",
        "losses/test_likelihood.py",
    ),
    Fault(
        "ties counted twice",
        "losses/likelihood.py",
        "a, b = a + tied / 2, b + tied / 2",
        "a, b = a + tied, b + tied",
        "losses/test_likelihood.py",
    ),
    Fault(
        "silent centring of scores",
        "losses/likelihood.py",
        "    scores = at_least_float32(scores)\n    if scores.shape",
        "    scores = at_least_float32(scores)\n    scores = scores - scores.mean()\n    if scores.shape",
        "losses/test_likelihood.py",
    ),
    Fault(
        "NaN through a mask",
        "losses/likelihood.py",
        "used = jnp.asarray(comparisons.weight) > 0",
        "used = jnp.asarray(comparisons.weight) >= 0",
        "losses/test_likelihood.py",
    ),
    Fault(
        "wrong sign of position",
        "losses/likelihood.py",
        'margin = margin + jnp.asarray(given["position"], dtype) * shown',
        'margin = margin - jnp.asarray(given["position"], dtype) * shown',
        "losses/test_links.py",
    ),
    Fault(
        "wrong sign of the target margin",
        "losses/likelihood.py",
        'margin = margin - _column(comparisons, "target_margin"',
        'margin = margin + _column(comparisons, "target_margin"',
        "losses/test_links.py",
    ),
    Fault(
        "squared difference for squared sum",
        "losses/penalties.py",
        "total = at_least_float32(first) + at_least_float32(second)",
        "total = at_least_float32(first) - at_least_float32(second)",
        "losses/test_penalties.py",
    ),
    Fault(
        "lapse without the half",
        "losses/noise.py",
        "jnp.log(jnp.where(rate > 0, rate, 1) / 2)",
        "jnp.log(jnp.where(rate > 0, rate, 1))",
        "losses/test_noise.py",
    ),
    Fault(
        "smoothing that keeps the whole label",
        "losses/noise.py",
        "return (1 - rate) * bradley_terry(margin) + _times(rate",
        "return bradley_terry(margin) + _times(rate",
        "losses/test_noise.py",
    ),
    Fault(
        "noise correction by 1 - rate",
        "losses/noise.py",
        "kept = 1 - 2 * rate",
        "kept = 1 - rate",
        "losses/test_noise.py",
    ),
    Fault(
        "Thurstone in another unit",
        "losses/normal.py",
        "return erfc(-at_least_float32(margin) * math.sqrt(0.5)) / 2",
        "return erfc(-at_least_float32(margin)) / 2",
        "losses/test_normal.py",
    ),
    Fault(
        "Rao-Kupper threshold halved",
        "losses/ties.py",
        "_rao_kupper_tie(margin, eta), softplus(eta - signed))",
        "_rao_kupper_tie(margin, eta), softplus(eta / 2 - signed))",
        "losses/test_ties.py",
    ),
    Fault(
        "Davidson without the root",
        "losses/ties.py",
        "jnp.stack([-margin, s - margin / 2], axis=-1)",
        "jnp.stack([-margin, s - margin], axis=-1)",
        "losses/test_ties.py",
    ),
    Fault(
        "ties as halves",
        "losses/ties.py",
        "return jnp.where(outcome == TIE, _davidson_tie(margin, s), _davidson_win(signed, s))",
        "half = (_davidson_win(margin, s) + _davidson_win(-margin, s)) / 2\n"
        "    return jnp.where(outcome == TIE, half, _davidson_win(signed, s))",
        "losses/test_ties.py",
    ),
    Fault(
        "last stage of a top-k order dropped",
        "losses/listwise.py",
        "(place < jnp.asarray(stages)[..., None])",
        "(place + 1 < jnp.asarray(stages)[..., None])",
        "losses/test_listwise.py",
    ),
    Fault(
        "masked candidates as rivals",
        "losses/listwise.py",
        "rival = chosen[..., :, None] & shown[..., None, :] & (place",
        "rival = chosen[..., :, None] & (place",
        "losses/test_listwise.py",
    ),
    Fault(
        "all pairs without their weight",
        "losses/listwise.py",
        " / jnp.maximum(number, 1).astype(loss.dtype)",
        "",
        "losses/test_listwise.py",
    ),
    # Heads
    Fault(
        "silent centring in the head",
        "head.py",
        "return scores if head.bias is None else scores + head.bias.astype(scores.dtype)",
        "scores = scores - scores.mean()\n"
        "    return scores if head.bias is None else scores + head.bias.astype(scores.dtype)",
        "test_head.py",
    ),
    Fault(
        "head in bfloat16",
        "head.py",
        "states = at_least_float32(states)",
        "states = jnp.asarray(states, jnp.bfloat16)",
        "test_head.py",
    ),
    # What can be identified
    Fault(
        "one constant for all prompts",
        "identifiability/gauge.py",
        "segment = jnp.searchsorted(jnp.sort(prompt), prompt)",
        "segment = jnp.zeros_like(prompt)",
        "identifiability/test_gauge.py",
    ),
    Fault(
        "one spread for all prompts",
        "identifiability/gauge.py",
        "variance = over(jax.ops.segment_sum, jnp.square(centred)) / over(jax.ops.segment_sum, jnp.ones_like(centred))",
        "variance = jnp.square(centred).mean()",
        "identifiability/test_gauge.py",
    ),
    Fault(
        "gauge distance without centring",
        "identifiability/gauge.py",
        "(_direction(name, _centred(x, same)) for name, x in",
        "(_direction(name, x) for name, x in",
        "identifiability/test_gauge.py",
    ),
    Fault(
        "existence by weak components",
        "identifiability/graph.py",
        'return self._label("strong")',
        'return self._label("weak")',
        "identifiability/test_identify.py",
    ),
    Fault(
        "behind the top, each beat the next",
        "identifiability/graph.py",
        "ahead = np.minimum(behind - 1, stages[row] - 1)",
        "ahead = behind - 1",
        "preferences/test_rankings.py identifiability/test_identify.py",
    ),
    Fault(
        "infinite taken for identified",
        "identifiability/identify.py",
        'return "infinite" if above else "unidentified"',
        'return "identified" if above else "unidentified"',
        "identifiability/test_identify.py",
    ),
    Fault(
        "gauge of one constant",
        "identifiability/identify.py",
        "basis[there, self.components[there]] = 1",
        "basis[there] = 1",
        "identifiability/test_identify.py",
    ),
    Fault(
        "resistance without the factor of 2",
        "identifiability/information.py",
        "inverse[i, i] + inverse[j, j] - 2 * inverse[i, j], 0)",
        "inverse[i, i] + inverse[j, j] - inverse[i, j], 0)",
        "identifiability/test_information.py",
    ),
    Fault(
        "conductance of one side",
        "identifiability/information.py",
        "conductance = votes.votes * special.expit(margin) * special.expit(-margin)",
        "conductance = votes.votes * special.expit(margin)",
        "identifiability/test_information.py",
    ),
    Fault(
        "Hodge without weights",
        "identifiability/hodge.py",
        "root = np.sqrt(weight)",
        "root = np.ones_like(weight)",
        "identifiability/test_hodge.py",
    ),
    Fault(
        "feedback arcs that are wins",
        "identifiability/cycles.py",
        "behind = np.concatenate([behind, behind + cost[:, other, None]], axis=1)",
        "behind = np.concatenate([behind, behind + cost[other, :, None]], axis=1)",
        "identifiability/test_cycles.py",
    ),
    Fault(
        "intervals of one pair for all",
        "identifiability/transitivity.py",
        "tail = alpha / 2 / max(1, len(won))",
        "tail = alpha / 2",
        "identifiability/test_transitivity.py",
    ),
    Fault(
        "strong transitivity taken for moderate",
        "identifiability/transitivity.py",
        "premise & (high + np.where(circle, middle, low) > tolerance)",
        "premise & (low + np.where(circle, high, middle) > tolerance)",
        "identifiability/test_transitivity.py",
    ),
    Fault(
        "ties whole for both sides in the tally",
        "identifiability/tally.py",
        "won, lost = won + tied / 2, lost + tied / 2",
        "won, lost = won + tied, lost + tied",
        "identifiability/test_tally.py",
    ),
    Fault(
        "temperature upside down",
        "identifiability/temperature.py",
        "return Temperature(float(unit / b)",
        "return Temperature(float(b / unit)",
        "identifiability/test_temperature.py",
    ),
    Fault(
        "null direction without 1/gain",
        "identifiability/head_gauge.py",
        "return 1 / gain, (bias / gain).sum()",
        "return jnp.ones_like(gain), bias.sum()",
        "identifiability/test_head_gauge.py",
    ),
    Fault(
        "information of a head without the curvature",
        "identifiability/head.py",
        "difference = np.sqrt(conductance[at])[:, None] * (h - k)",
        "difference = h - k",
        "identifiability/test_head.py",
    ),
    Fault(
        "both sides raised by a step",
        "identifiability/gradients.py",
        ".at[comparisons.second].add(-pull)",
        ".at[comparisons.second].add(pull)",
        "identifiability/test_gradients.py",
    ),
    # Estimates
    Fault(
        "contrast without refusal",
        "preferences/estimate.py",
        "        self.identification.refuse(first, second, connected=self.penalised)",
        "        return",
        "preferences/test_existence.py preferences/test_estimate.py preferences/test_fit.py",
    ),
    Fault(
        "a ridge that identifies",
        "identifiability/identify.py",
        'if status == "identified" or (connected and self.components[first] == self.components[second]):',
        'if status == "identified" or connected:',
        "preferences/test_fit.py preferences/test_estimate.py preferences/test_existence.py",
    ),
    Fault(
        "sign off the diagonal of the Hessian",
        "preferences/pairwise.py",
        "hessian = -(across + across.T)",
        "hessian = across + across.T",
        "preferences/test_fit.py",
    ),
    Fault(
        "position of the other side in a fit",
        "preferences/pairwise.py",
        "shown = x[0] + x[-1] * order if position else x[0]",
        "shown = x[0] - x[-1] * order if position else x[0]",
        "preferences/test_fit.py",
    ),
    Fault(
        "Firth without the half",
        "preferences/firth.py",
        "more = _leverage(terms, bend, gauge) / 2",
        "more = _leverage(terms, bend, gauge)",
        "preferences/test_fit.py",
    ),
    Fault(
        "sandwich without the votes",
        "preferences/influence.py",
        "np.sqrt(terms.rows.votes[:, kind])[:, None] * _moved(",
        "1 * _moved(",
        "preferences/test_estimate.py",
    ),
    Fault(
        "clusters ignored",
        "preferences/influence.py",
        "return sparse.csr_array((np.ones(len(member)), (member, np.arange(len(member)))), shape=shape) @ moved",
        "return moved",
        "preferences/test_estimate.py preferences/test_rankings.py",
    ),
    Fault(
        "last stage of an order dropped in a fit",
        "preferences/listwise.py",
        "rivals = there.sum(axis=1, keepdims=True) - 1 > place",
        "rivals = there.sum(axis=1, keepdims=True) - 2 > place",
        "preferences/test_rankings.py",
    ),
    Fault(
        "a tie parameter that runs away",
        "preferences/recession.py",
        "if draws == 0 or not won.any():",
        "if False:",
        "preferences/test_existence.py",
    ),
    Fault(
        "KL the other way",
        "preferences/projection.py",
        "special.rel_entr(share, probability) + special.rel_entr(1 - share, special.expit(-margin))",
        "special.rel_entr(probability, share) + special.rel_entr(special.expit(-margin), 1 - share)",
        "preferences/test_projection.py",
    ),
    Fault(
        "the deviance for the cost of a vote",
        "preferences/verdict.py",
        "cost_in_nats=max(0.0, excess / 2 / votes)",
        "cost_in_nats=max(0.0, excess / votes)",
        "preferences/test_verdict.py",
    ),
    Fault(
        "votes drawn for the loser",
        "preferences/simulate.py",
        "logits = -jnp.stack(",
        "logits = jnp.stack(",
        "preferences/test_simulate.py",
    ),
    Fault(
        "a skew form that is not",
        "preferences/skew.py",
        "(one[..., 0] * other[..., 1] - one[..., 1] * other[..., 0])",
        "(one[..., 0] * other[..., 1] + one[..., 1] * other[..., 0])",
        "preferences/test_skew.py",
    ),
    # Votes and annotators
    Fault(
        "cannot judge as a tie",
        "votes.py",
        "a, b, tied = counts[:, FIRST], counts[:, SECOND], counts[:, TIE]",
        "a, b, tied = counts[:, FIRST], counts[:, SECOND], counts[:, TIE:].sum(axis=1)",
        "test_votes.py",
    ),
    Fault(
        "instructions pooled unasked",
        "votes.py",
        "if several > 1:",
        'if several > 1 and name == "group":',
        "test_votes.py",
    ),
    Fault(
        "Dawid and Skene without the prevalence",
        "preferences/annotators.py",
        "joint = n @ log_theta.T + np.log(np.where(prevalence > 0, prevalence, 1.0))",
        "joint = n @ log_theta.T",
        "preferences/test_annotators.py",
    ),
    Fault(
        "kappa without chance",
        "preferences/agreement.py",
        "value = (observed - expected) / (1 - expected)",
        "value = observed",
        "preferences/test_agreement.py",
    ),
    Fault(
        "alpha with n for n - 1",
        "preferences/krippendorff.py",
        "(total * (total - 1))",
        "(total * total)",
        "preferences/test_krippendorff.py",
    ),
    Fault(
        "soft targets without the prior",
        "preferences/soft_targets.py",
        "a, b = first + prior, second + prior",
        "a, b = first + 1e-9, second + 1e-9",
        "preferences/test_soft_targets.py",
    ),
    Fault(
        "an own vote among the rest",
        "preferences/leave_one_out.py",
        "[item] - np.bincount(own, weights=sign)[own]",
        "[item]",
        "preferences/test_leave_one_out.py",
    ),
    Fault(
        "a p value of 0",
        "preferences/pooling.py",
        "p_value=(1 + larger) / (1 + arrangements)",
        "p_value=larger / arrangements",
        "preferences/test_pooling.py",
    ),
    Fault(
        "votes on one item as independent",
        "preferences/overdispersion.py",
        "rho=rho,",
        "rho=rho / 2,",
        "preferences/test_overdispersion.py",
    ),
    Fault(
        "a ceiling that is agreement",
        "diagnostics/agreement.py",
        "upper = covered * (1 + np.sqrt(2 * share - 1)) / 2 + 1 - covered",
        "upper = covered * share + 1 - covered",
        "diagnostics/test_agreement.py",
    ),
    # Forecasts
    Fault(
        "a squared error that keeps the noise of its rows",
        "diagnostics/calibration_error.py",
        "(x[1:] @ np.cumsum(x[:-1]) for x in",
        "(x.sum() ** 2 for x in",
        "diagnostics/test_calibration_error.py",
    ),
    Fault(
        "coins of one half",
        "diagnostics/calibration_error.py",
        "(rng.random((size, len(p))) < p)",
        "(rng.random((size, len(p))) < 0.5)",
        "diagnostics/test_calibration_error.py",
    ),
    Fault(
        "equal forecasts pooled in the order of the file",
        "diagnostics/proper_scores.py",
        "_, group = np.unique(p, return_inverse=True)",
        "_, group = np.sort(p), np.argsort(np.argsort(p, kind='stable'), kind='stable')",
        "diagnostics/test_proper_scores.py",
    ),
    Fault(
        "an isotonic regression without weights",
        "diagnostics/proper_scores.py",
        "optimize.isotonic_regression(share, weights=total)",
        "optimize.isotonic_regression(share)",
        "diagnostics/test_proper_scores.py",
    ),
    Fault(
        "the distance of the peak for that of no reward",
        "diagnostics/overoptimization.py",
        "np.maximum(ratio / 2, 0)",
        "np.maximum(ratio, 0)",
        "diagnostics/test_overoptimization.py",
    ),
    # The laws themselves
    Fault(
        "a law of deletion that deletes nothing",
        "testing/laws.py",
        "weight=np.where(touched, 0, comparisons.weight).astype(np.float32)",
        "weight=np.asarray(comparisons.weight)",
        "testing/test_laws.py",
    ),
    Fault(
        "a law of batches that moves nobody",
        "testing/laws.py",
        "mixed = _scores(score, np.where(kept[:, None], states, others))",
        "mixed = plain",
        "testing/test_laws.py",
    ),
]


def plant(fault, tree):
    """Run the tests of a fault in a copy of the tree: what caught it, or why nothing did."""
    path = tree / "rmjax" / fault.file
    text = path.read_text()
    if (times := text.count(fault.old)) != 1:
        return False, f"its text stands {times} times in rmjax/{fault.file}"
    environment = {
        **os.environ,
        "PYTHONPATH": str(tree),
        "PYTHONDONTWRITEBYTECODE": "1",  # a file that changes twice in a second would be read from its old bytecode
        "RMJAX_PROFILE": "mutants",
    }
    command = [sys.executable, "-m", "pytest", "-x", "-q", *(f"tests/{test}" for test in fault.tests.split())]
    path.write_text(text.replace(fault.old, fault.new))
    try:
        run = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return False, f"no end within {LIMIT} s"
    finally:
        path.write_text(text)
    failed = re.search(r"^FAILED \S*::(\S+)", run.stdout, re.MULTILINE)
    if failed:
        return True, failed[1]
    told = run.stdout.strip().splitlines() or run.stderr.strip().splitlines() or ["no word"]
    return False, "survives" if run.returncode == 0 else f"no test ran: {told[-1]}"


def copy(folder):
    """A copy of what the tests need."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder / name)
    return folder


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="a part of the names of the faults to plant")
    parser.add_argument("--jobs", type=int, default=2, help="copies of the tree at a time")
    options = parser.parse_args()
    chosen = [fault for fault in FAULTS if options.only in fault.name]
    if not chosen:
        sys.exit(f"no fault is called {options.only!r}")
    width, begun = max(len(fault.name) for fault in chosen), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        trees = queue.SimpleQueue()
        for job in range(options.jobs):
            trees.put(copy(pathlib.Path(folder) / str(job) / ROOT.name))

        def timed(fault):
            tree, start = trees.get(), time.perf_counter()
            try:
                return *plant(fault, tree), time.perf_counter() - start
            finally:
                trees.put(tree)

        caught = 0
        for fault, (right, told, seconds) in zip(chosen, pool.map(timed, chosen)):
            caught += right
            print(f"{fault.name:{width}}  {seconds:5.1f} s  {'' if right else 'NOT CAUGHT: '}{told}", flush=True)
    print(f"{caught} of {len(chosen)} faults caught in {time.perf_counter() - begun:.0f} s")
    sys.exit(caught < len(chosen))


if __name__ == "__main__":
    main()
