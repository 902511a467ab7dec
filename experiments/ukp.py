"""SmolLM2-135M on the arguments of UKPConvArg1: what a frozen trunk knows, and what training adds.

    make smollm2
    python -m experiments.ukp --pairs ukp_pairs.jsonl.gz --texts ukp_arguments.jsonl.gz --output results/ukp

Data: UKPConvArg1 (Habernal and Gurevych, ACL 2016; CC BY 4.0), 16,927 pairs of 1,052 arguments with single votes;
`experiments/convert_ukp.py` makes both files from the published XML. Fifteen pairs are of two arguments with the same
text, which say nothing about a function of the text: 16,912 pairs of 1,038 texts are left.

A prompt is a debate with a stance (32). Everything is split by debate (16), since both stances of a debate share
their text's subject: four folds of four debates. States of the frozen trunk at the last token of every argument are
computed once; a linear Bradley-Terry head is fitted to single votes, its layer and ridge chosen by cross-validation
inside the training debates. One fold is then trained further: the last layers of the trunk, the head started from the
frozen fit, a micro-batch is a debate with a stance. Intervals are t intervals of means over the 16 debates, paired
where two rules are compared.

27 minutes on 2 CPU cores. States and checkpoints are kept, so the same command goes on after a kill.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import tyro
from rich.console import Console
from rich.table import Table

from rmjax.cli.pages import write_report
from rmjax.data.buckets import Layout, PackSpec
from rmjax.data.contract import TextContract
from rmjax.data.dataset import PreferenceData, characters, subset, swap
from rmjax.data.formats import Fields, read
from rmjax.data.packing import epoch_plan, make_layout
from rmjax.data.proof import prove
from rmjax.data.split import Split, group_folds
from rmjax.data.tokenise import tokenise
from rmjax.diagnostics.agreement import Agreement, ceiling_bounds, vote_agreement
from rmjax.diagnostics.evaluation import Evaluation, Provenance, SwapCheck, swap_check
from rmjax.diagnostics.intervals import Estimate, mean_over_clusters, paired_difference
from rmjax.diagnostics.length import length_margins
from rmjax.diagnostics.metrics import Targets, accuracy_terms, likelihood_terms
from rmjax.diagnostics.summary import as_json
from rmjax.head import Head
from rmjax.models.load import RewardModel, load
from rmjax.train.config import DataConfig, TrainConfig
from rmjax.train.evaluation import evaluate, rounding, vote_counts, whole_prompts
from rmjax.train.frozen import HeadFit, fit_head, layer_states
from rmjax.train.loop import train
from rmjax.train.metrics import read_metrics
from rmjax.train.optimizer import OptimizerConfig
from rmjax.train.run import save_contract
from rmjax.train.setup import Prepared, model_fingerprint

# A debate with a stance has at most 16 rows of 256: each is a micro-batch of its own.
ONE_TOPIC = PackSpec(lengths=(256,), tokens_per_micro_batch=4096)


@dataclasses.dataclass(frozen=True)
class Config:
    """The whole experiment."""

    pairs: str
    """ukp_pairs.jsonl.gz."""
    texts: str
    """ukp_arguments.jsonl.gz."""
    output: str = "results/ukp"
    """Directory for states, runs, tables and pages."""
    model: str = "smollm2-135m"
    """The trunk."""
    folds: int = 4
    """Folds of debates."""
    layers: tuple[int, ...] = (6, 8, 10, 12, 14, 15, 16, 18, 20, 22, 24, 26, 28, 30)
    """Layers to choose among, counted from 1."""
    ridges: tuple[float, ...] = (0.03, 0.1, 0.3, 1.0)
    """Ridges to choose among."""
    inner_folds: int = 3
    """Folds inside the training debates, for that choice."""
    trained_layers: int = 10
    """Layers that are trained further in one fold."""
    epochs: int = 3
    """Passes of that training."""
    learning_rate: float = 2e-5
    """Of that training."""


def main(config: Config) -> dict[str, Any]:
    """Run everything, print the tables and write results.json."""
    console, output = Console(), Path(config.output)
    output.mkdir(parents=True, exist_ok=True)
    fields = Fields(prompt=("prompt", "stance"), source="prompt", keep=("topic",))
    data = read(config.pairs, texts=config.texts, fields=fields)
    model = load(config.model)
    layout = lay_out(data, model)
    states = cached_states(output, model, layout, console)
    data = layout.tokenised.data
    fold = group_folds(data, config.folds, seed=0)
    debate = np.unique(np.array(data.sources)[data.comparisons.prompt[data.comparisons.first]], return_inverse=True)[1]

    margins = np.zeros(data.num_comparisons)
    chosen, heads = [], []
    for held_out in range(config.folds):
        fit, layer, ridge = choose_head(states, data, fold != held_out, debate, config)
        scores = states[layer - 1].astype(np.float64) @ np.asarray(fit.head.weight, np.float64)
        own = fold == held_out
        margins[own] = (scores[data.comparisons.first] - scores[data.comparisons.second])[own]
        heads.append((layer, fit.head))
        chosen.append({"fold": held_out, "layer": layer, "ridge": ridge, "gradient_norm": fit.gradient_norm})
        console.print(f"fold {held_out}: layer {layer}, ridge {ridge:g}")

    lengths = {"tokens": layout.tokenised.lengths, "characters": np.array([characters(x) for x in data.responses])}
    rules = {"frozen head": margins} | {
        f"longer, in {unit}": length_margins(length, data.comparisons) for unit, length in lengths.items()
    }
    results: dict[str, Any] = {"chosen": chosen, "rules": measure(rules, data, debate, "longer, in tokens")}
    show(console, "All folds, mean over 16 debates", results["rules"])
    human = people(data, debate)
    show_human(console, human)
    results["human"] = as_json(human)
    swapped = exchanged(data, model, fold, heads, margins)
    page(output, data, layout, margins, debate, model, config, swapped)

    fitted = fine_tune(output, model, data, fold == 0, states, debate, config, console)
    own = fold == 0
    part = subset(data, own)
    rules = {f"trained, last {config.trained_layers} layers": fitted} | {n: m[own] for n, m in rules.items()}
    results["fold 0"] = measure(rules, part, debate[own], "frozen head")
    show(console, "Fold 0, mean over its debates", results["fold 0"])
    (output / "results.json").write_text(json.dumps(as_json(results), indent=2) + "\n")
    console.print(f"written: {output / 'results.json'}, {output / 'report.html'}")
    return results


def lay_out(data: PreferenceData, model: RewardModel) -> Layout:
    """Debate and stance as the user's turn, the argument as the answer, scored at the last token of the template."""
    tokenised = tokenise(data, model.tokenizer, TextContract(template="chat"))
    return make_layout(tokenised, PackSpec(lengths=(256,), tokens_per_micro_batch=8192))


def cached_states(output: Path, model: RewardModel, layout: Layout, console: Console) -> np.ndarray:
    """States of the frozen trunk, from disk where the same model and contract left them."""
    path = output / f"states-{model_fingerprint(model, layout.tokenised.contract)}.npy"
    if not path.exists():
        console.print(f"states of {len(layout.tokenised.ids):,} arguments at every layer")
        states = layer_states(model.params, layout, model.config)
        with path.with_suffix(".partial").open("wb") as file:
            np.save(file, states)
        path.with_suffix(".partial").rename(path)
    return np.load(path)


def choose_head(
    states: np.ndarray, data: PreferenceData, train: np.ndarray, debate: np.ndarray, config: Config
) -> tuple[HeadFit, int, float]:
    """Layer and ridge with the best likelihood of held-out votes inside the training debates, and the fit to all."""
    inside = np.unique(debate[train])
    inner = np.full(len(debate), -1)
    for k, name in enumerate(np.random.default_rng(0).permutation(inside)):
        inner[debate == name] = k % config.inner_folds
    best: tuple[float, int, float] = (np.inf, 0, 0.0)
    for layer in config.layers:
        for ridge in config.ridges:
            total = count = 0.0
            for k in range(config.inner_folds):
                fit = fit_head(states[layer - 1], only(data, train & (inner != k)), ridge=ridge, ties="drop")
                scores = states[layer - 1].astype(np.float64) @ np.asarray(fit.head.weight, np.float64)
                part = only(data, train & (inner == k))
                targets = Targets.from_votes(part, cluster=debate, ties="drop")
                sums, counts = likelihood_terms(scores[part.first] - scores[part.second], targets)
                total, count = total + sums.sum(), count + counts.sum()
            best = min(best, (total / count, layer, ridge))
    _, layer, ridge = best
    return fit_head(states[layer - 1], only(data, train), ridge=ridge, ties="drop"), layer, ridge


def only(data: PreferenceData, keep: np.ndarray):
    """All comparisons, those outside `keep` with weight 0."""
    c = data.comparisons
    return dataclasses.replace(c, weight=np.where(keep, c.weight, 0).astype(np.float32))


def measure(
    rules: dict[str, np.ndarray], data: PreferenceData, debate: np.ndarray, against: str
) -> dict[str, dict[str, Estimate]]:
    """Accuracy of every rule against gold and single votes, and its paired difference from one of them."""
    targets = {
        "gold": Targets.from_gold(data.comparisons, data.gold, cluster=debate),
        "votes": Targets.from_votes(data.comparisons, cluster=debate, ties="drop"),
    }
    table: dict[str, dict[str, Estimate]] = {}
    for name, margins in rules.items():
        row = {}
        for label, target in targets.items():
            sums, counts = accuracy_terms(margins, target, score_ties="half")
            other, _ = accuracy_terms(rules[against], target, score_ties="half")
            row[label] = mean_over_clusters(sums, counts, debate)
            row[f"{label} difference"] = paired_difference(sums, other, counts, debate)
        table[name] = row
    return table


def show(console: Console, title: str, rows: dict[str, dict[str, Estimate]]) -> None:
    """Print one table."""
    table = Table(
        "rule", "gold", "votes", "difference on gold", "difference on votes", title=title, title_justify="left"
    )
    for name, row in rows.items():
        cells = [f"{e.value:.3f} [{e.lower:.3f}, {e.upper:.3f}]" for e in (row["gold"], row["votes"])]
        cells += [
            f"{e.value:+.3f} (SE {e.standard_error:.3f})" if e.has_interval else "–"  # a rule against itself
            for e in (row["gold difference"], row["votes difference"])
        ]
        table.add_row(name, *cells)
    console.print(table)


def people(data: PreferenceData, debate: np.ndarray) -> Agreement:
    """How far votes agree, and the ceiling of a mean over debates: there the votes of each debate weigh the same."""
    votes = vote_counts(data)
    decided = votes[:, 0] + votes[:, 1]
    return vote_agreement(votes, debate, gold=data.gold, weight=decided / np.bincount(debate, decided)[debate])


def show_human(console: Console, human: Agreement) -> None:
    """Print how far people agree, on the same pairs."""
    assert human.ceiling is not None
    figures = {
        "one vote against the majority of the others": human.vote_and_rest,
        "single votes against the label that was made of them": human.vote_and_gold,
        "two votes that both decide": human.two_votes_decided,
    }
    for name, found in figures.items():
        assert found is not None
        console.print(f"{name}: {found.value:.3f} [{found.lower:.3f}, {found.upper:.3f}]")
    assert human.two_votes_decided is not None
    ceilings = {
        "mean over debates": human.ceiling,
        "every pair of votes once": ceiling_bounds(human.two_votes_decided),
    }
    for name, found in ceilings.items():
        console.print(f"best possible on single votes, {name}: between {found.lower:.3f} and {found.upper:.3f}")


def exchanged(
    data: PreferenceData, model: RewardModel, fold: np.ndarray, heads: list[tuple[int, Head]], margins: np.ndarray
) -> SwapCheck:
    """Read whole debates with a stance anew, with the two sides of every pair exchanged."""
    keep = whole_prompts(data, 200)
    layout = lay_out(swap(subset(data, keep)), model)
    states, c = layer_states(model.params, layout, model.config), layout.tokenised.data.comparisons
    again, allowed = np.zeros(c.num_comparisons), 0.0
    for number, (layer, head) in enumerate(heads):
        own = fold[keep] == number
        scores = states[layer - 1].astype(np.float64) @ np.asarray(head.weight, np.float64)
        again[own] = (scores[c.first] - scores[c.second])[own]
        with_head = dataclasses.replace(model, params=dataclasses.replace(model.params, head=head))
        allowed = max(allowed, rounding(with_head, np.float32) if own.any() else 0.0)
    return swap_check(margins[keep], again, rounding=allowed)


def page(
    output: Path,
    data: PreferenceData,
    layout: Layout,
    margins: np.ndarray,
    debate: np.ndarray,
    model: RewardModel,
    config: Config,
    swapped: SwapCheck,
) -> None:
    """The report of the held-out margins of all folds."""
    evaluation = Evaluation(
        margins=margins,
        comparisons=data.comparisons,
        cluster=debate,
        token_lengths=layout.tokenised.lengths,
        provenance=Provenance(
            f"{config.model}, frozen, a linear head per fold",
            model_fingerprint(model, layout.tokenised.contract),
            "UKPConvArg1, all folds held out",
            f"{config.folds} folds by debate",
        ),
        cluster_name="debate",
        gold=data.gold,
        votes=vote_counts(data),
        ties="drop",
        abstentions=float(data.abstentions.sum()),
        swap=swapped,
    )
    write_report(output, evaluation, title="SmolLM2-135M on UKPConvArg1: a head on frozen states")


def fine_tune(
    output: Path,
    model: RewardModel,
    data: PreferenceData,
    held_out: np.ndarray,
    states: np.ndarray,
    debate: np.ndarray,
    config: Config,
    console: Console,
) -> np.ndarray:
    """Train the last layers on the other folds; margins of the held-out comparisons."""
    ridge = config.ridges[len(config.ridges) // 2]
    fit = fit_head(states[-1], only(data, ~held_out), ridge=ridge, ties="drop")
    started = dataclasses.replace(model, params=dataclasses.replace(model.params, head=fit.head))
    parts = {"train": subset(data, ~held_out), "held_out": subset(data, held_out)}
    layouts = {name: make_layout(lay_out(part, model).tokenised, ONE_TOPIC) for name, part in parts.items()}
    split = Split(parts, prove(parts), len(set(data.sources)), float(np.bincount(debate).max() / len(debate)))
    prepared = Prepared(started, split, layouts["train"], layouts["held_out"])
    run = TrainConfig(
        output=str(output / "fold-0"),
        model=config.model,
        data=DataConfig(path=config.pairs, texts=config.texts, ties="drop"),
        text=layouts["train"].tokenised.contract,
        packing=layouts["train"].spec,
        optimizer=OptimizerConfig(learning_rate=config.learning_rate),
        epochs=config.epochs,
        trainable=str(config.trained_layers),
        checkpoint_every=12,
        evaluate_every=len(epoch_plan(layouts["train"], None).micro_batches),
    )
    save_contract(run.output, prepared, run)
    trained = train(prepared, run, observe=[lambda step, row: console.print(progress_line(step.number, row))])
    evaluation = evaluate(
        trained.model, layouts["held_out"], run.data, file="UKPConvArg1, fold 0 held out", proof=split.proof
    )
    write_report(run.output, evaluation, read_metrics(run.output), title="SmolLM2-135M on UKPConvArg1: trained further")
    return np.asarray(evaluation.margins)


def progress_line(step: int, row: dict[str, Any]) -> str:
    """One line per step."""
    return (
        f"step {step}: loss {row['loss']:.4f}, accuracy {row['accuracy']:.3f}, {row['tokens_per_second']:.0f} tokens/s"
    )


if __name__ == "__main__":
    main(tyro.cli(Config))
