"""A model on a file: margins at every layer, the swap check, and everything that the report shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from rmjax.data.buckets import Layout
from rmjax.data.dataset import PreferenceData, subset, swap
from rmjax.data.decisions import of_reading, of_tokenising
from rmjax.data.packing import make_layout
from rmjax.data.proof import SplitProof
from rmjax.data.tokenise import tokenise
from rmjax.diagnostics.evaluation import Evaluation, Levels, Provenance, SwapCheck, swap_check
from rmjax.models.load import RewardModel
from rmjax.train.config import ReadConfig
from rmjax.train.scoring import Scored, make_score_fn, score_all
from rmjax.train.setup import model_fingerprint

_SWAPPED = 200  # comparisons that are scored anew with their sides exchanged
# By how much two packings of one text may change its last state, relative to its size, by the bytes of the compute
# dtype. On dialogues SmolLM2 shows 8e-6 in float32 and 0.08 in bfloat16.
_ROUNDING = {2: 0.2, 4: 1e-4, 8: 1e-11}


def evaluate(
    model: RewardModel,
    layout: Layout,
    config: ReadConfig,
    *,
    file: str,
    proof: SplitProof | None = None,
    facts: Sequence[tuple[str, str]] = (),
    dtype: Any = jnp.float32,
    progress: Callable[[int], None] = lambda tokens: None,
) -> Evaluation:
    """Score a data set and its swapped sample.

    Args:
        model: parameters, configuration and tokenizer.
        layout: the tokenised data, cut into trees.
        config: the policy for ties and the unit that weighs the same.
        file: what the data are called on the page.
        proof: of the split, where there was one.
        facts: what else the page is to say of the data: label and text.
        dtype: of matmuls.
        progress: called with the number of tokens of every micro-batch that is done.

    Returns:
        Margins with labels, clusters and provenance.
    """
    tokenised = layout.tokenised
    data, c = tokenised.data, tokenised.data.comparisons
    score_fn = make_score_fn(model.config, dtype)
    scored = score_all(model.params, layout, score_fn, progress=progress)
    sources = np.array(data.sources)[np.asarray(c.prompt)[np.asarray(c.first)]]
    by_source = len(set(data.sources)) < len(data.prompts)
    _, cluster = np.unique(sources if by_source else np.asarray(c.prompt)[c.first], return_inverse=True)
    used = scored.scores[np.isfinite(scored.scores)]
    return Evaluation(
        margins=scored.margins(c),
        comparisons=c,
        cluster=cluster,
        token_lengths=tokenised.lengths,
        provenance=provenance(model, layout, file, proof, facts),
        cluster_name="source" if by_source else "prompt",
        gold=data.gold,
        votes=vote_counts(data),
        layer_margins=scored.layer_margins(c),
        ties=config.ties,
        unit=config.unit,
        abstentions=float(data.abstentions.sum(dtype=np.float64)),
        selected=config.selected,
        swap=score_swapped(model, layout, scored, score_fn, rounding=rounding(model, dtype)),
        levels=Levels(float(used.min()), float(used.mean(dtype=np.float64)), float(used.max())),
    )


def vote_counts(data: PreferenceData) -> np.ndarray | None:
    """Votes per comparison as [E, 4]; None where every comparison has one vote, so that none can agree.

    Args:
        data: the judged pairs.

    Returns:
        Counts of first, second, tie and cannot judge.
    """
    if data.votes is not None:
        return data.votes.counts(data.num_comparisons)
    c = data.comparisons
    counts = np.stack([c.wins_first, c.wins_second, c.ties, data.abstentions], axis=1)
    whole = np.array_equal(counts, counts.round())
    return counts.astype(np.int64) if whole and counts[:, :3].sum(axis=1).max(initial=0) > 1 else None


def rounding(model: RewardModel, dtype: Any) -> float:
    r"""Logits that two packings of one text may differ by.

    The head reads a state of norm $\sqrt D$ through the gain $g$ of the last norm, so an error of the state by
    $\delta$ of its size, in no particular direction, moves the score by $\delta\,\lVert w \odot g\rVert$.

    Guarantees: a head that is c times as large has a rounding c times as large, as its margins are.

    Args:
        model: whose head and last norm are looked at.
        dtype: of matmuls.

    Returns:
        Logits.

    Example:
        >>> from rmjax.train.setup import open_model
        >>> rounding(open_model("tiny", seed=0), jnp.float32)  # a new head scores 0
        0.0
    """
    head = model.params.head
    reach = np.asarray(head.weight, np.float64) * np.asarray(model.params.norm, np.float64)
    # A bias of the head, added in its own precision, costs every score its last digits.
    level = 0.0 if head.bias is None else abs(float(head.bias)) * float(jnp.finfo(head.bias.dtype).eps)
    return _ROUNDING[jnp.dtype(dtype).itemsize] * float(np.linalg.norm(reach)) + 2 * level


def score_swapped(
    model: RewardModel,
    layout: Layout,
    scored: Scored,
    score_fn: Callable[..., Any],
    *,
    rounding: float,
    sample: int = _SWAPPED,
) -> SwapCheck:
    """Score a sample of the judgements anew, from their texts, with the two sides exchanged.

    A pipeline in which the order of two answers reaches the score does not pass.

    Args:
        model: the model.
        layout: the data, whose contract and packing are used again.
        scored: their scores.
        score_fn: of `make_score_fn`.
        rounding: logits that the arithmetic may leave.
        sample: at least how many comparisons, of whole prompts that a fixed seed draws.

    Returns:
        The largest sum of a margin and its swapped margin, and how many decisions did not flip.
    """
    data = layout.tokenised.data
    keep = whole_prompts(data, sample)
    contract = layout.tokenised.contract
    exchanged = tokenise(swap(subset(data, keep)), model.tokenizer, contract, on_empty_answer="keep")
    again = score_all(model.params, make_layout(exchanged, layout.spec), score_fn)
    return swap_check(
        scored.margins(data.comparisons)[keep], again.margins(exchanged.data.comparisons), rounding=rounding
    )


def whole_prompts(data: PreferenceData, sample: int) -> np.ndarray:
    """Comparisons of as many whole prompts as hold a sample: how much of a prompt is cut depends on all its answers.

    Args:
        data: the judged pairs.
        sample: at least how many comparisons, if there are as many.

    Returns:
        Which comparisons, bool [E].
    """
    prompt = np.asarray(data.comparisons.prompt)[np.asarray(data.comparisons.first)]
    judged, size = np.unique(prompt, return_counts=True)
    order = np.random.default_rng(0).permutation(len(judged))
    wanted = int(np.searchsorted(np.cumsum(size[order]), sample)) + 1
    return np.isin(prompt, judged[order[:wanted]])


def provenance(
    model: RewardModel,
    layout: Layout,
    file: str,
    proof: SplitProof | None,
    facts: Sequence[tuple[str, str]] = (),
) -> Provenance:
    """What was evaluated, in words.

    Args:
        model: the model.
        layout: the tokenised data.
        file: its name.
        proof: of the split.
        facts: further ones: label and text.

    Returns:
        Names, the fingerprint and further facts.
    """
    contract = layout.tokenised.contract
    decided = of_reading(layout.tokenised.data.dropped) + of_tokenising(layout.tokenised.report)
    said = [("Text", f"{contract.template} template, scored at the {contract.score_token} token"), *decided, *facts]
    split = "" if proof is None else split_words(proof)
    fingerprint = model_fingerprint(model, contract)
    return Provenance(
        model.report.source, fingerprint, file, split, tuple((label.strip().capitalize(), text) for label, text in said)
    )


def split_words(proof: SplitProof) -> str:
    """The proof of a split as one sentence.

    Args:
        proof: its counts.

    Returns:
        The sentence.

    Example:
        >>> split_words(SplitProof({"train": 8, "held_out": 2}, {}, {}, {}, 0, 0, 0))
        'train 8, held_out 2 comparisons; in common: 0 prompts, 0 sources, 0 response texts'
    """
    sizes = ", ".join(f"{name} {count:,}" for name, count in proof.comparisons.items())
    return (
        f"{sizes} comparisons; in common: {proof.shared_prompts} prompts, {proof.shared_sources} sources, "
        f"{proof.shared_responses} response texts"
    )
