"""The swap check of an evaluation passes a model, and fails whatever knows where an answer stands."""

import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rmjax.data.contract import TextContract
from rmjax.data.formats import read
from rmjax.data.packing import make_layout
from rmjax.data.tokenise import tokenise
from rmjax.errors import CheckpointError
from rmjax.head import Head
from rmjax.sharding import MeshShape, make_mesh
from rmjax.train import DataConfig, TrainConfig
from rmjax.train.evaluation import rounding, score_swapped, whole_prompts
from rmjax.train.loop import evaluate_held_out
from rmjax.train.metrics import swaps_failed
from rmjax.train.scoring import make_score_fn, score_all
from rmjax.train.setup import open_model


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    """A small model with a head, and thirty pairs of answers to ten prompts."""
    path = tmp_path_factory.mktemp("pairs") / "pairs.jsonl"
    rng = np.random.default_rng(0)
    words = lambda: "".join(rng.choice(list("abcdefgh "), 20))  # noqa: E731
    with path.open("w") as file:
        for k in range(30):
            file.write(json.dumps({"prompt": f"prompt {k % 10}", "chosen": words(), "rejected": words()}) + "\n")
    model = open_model("tiny", seed=0)
    head = Head(jax.random.normal(jax.random.key(1), (model.config.hidden_size,)))
    model = dataclasses.replace(model, params=dataclasses.replace(model.params, head=head))
    return model, make_layout(tokenise(read(path), model.tokenizer))


def check(scored, score_fn):
    model, layout = scored
    return score_swapped(
        model, layout, score_all(model.params, layout, score_fn), score_fn, rounding=rounding(model, jnp.float32)
    )


def test_a_model_passes(scored):
    found = check(scored, make_score_fn(scored[0].config))
    assert found.passed
    assert (found.comparisons, found.undecided) == (30, 0)


def test_a_score_that_knows_the_order_of_two_answers_does_not_pass(scored):
    score_fn = make_score_fn(scored[0].config)
    found = check(scored, lambda params, batch: score_fn(params, batch) + 0.1 * batch.score_index[None].astype(float))
    assert not found.passed


@pytest.mark.parametrize(("sided", "said"), [(0.0, 0), (0.1, 1)])
def test_it_does_not_pass_during_training_either_and_the_page_says_so(scored, sided, said):
    model, layout = scored
    score_fn = make_score_fn(model.config)
    row = evaluate_held_out(
        model,
        layout,
        lambda params, batch: score_fn(params, batch) + sided * batch.score_index[None].astype(float),
        TrainConfig(data=DataConfig(ties="drop")),
        make_mesh(MeshShape()),
    )
    assert row["eval_swap_passed"] == (not said)
    assert len(swaps_failed([{"step": 3} | row])) == said


@pytest.mark.parametrize("size", [1e-4, 1.0, 1e4])
def test_the_check_is_as_sharp_for_a_small_head_as_for_a_large_one(scored, size):
    model, layout = scored
    head = Head(size * model.params.head.weight)
    grown = dataclasses.replace(model, params=dataclasses.replace(model.params, head=head)), layout
    score_fn = make_score_fn(model.config)
    found = check(grown, score_fn)
    assert (found.passed, found.undecided) == (True, 0)
    sided = lambda params, batch: score_fn(params, batch) + 1e-2 * size * batch.score_index[None].astype(float)  # noqa: E731
    assert not check(grown, sided).passed


def test_a_large_bias_of_the_head_is_no_alarm(scored):
    """It costs every score its last digits: the sides of a pair more than their states explain."""
    model, layout = scored
    head = Head(1e-3 * model.params.head.weight, jnp.float32(1e5))
    biased = dataclasses.replace(model, params=dataclasses.replace(model.params, head=head)), layout
    assert check(biased, make_score_fn(model.config)).passed


def test_a_prompt_that_is_cut_for_its_longest_answer_passes(scored, tmp_path):
    """Answers to one prompt are cut alike, so that a sample of its comparisons would be cut otherwise."""
    model, _ = scored
    rows = [
        {"prompt": f"{k} " + "long " * 12, "chosen": "x" * (4 + 7 * j), "rejected": f"no {j}"}
        for k in range(60)
        for j in range(5)
    ]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    layout = make_layout(tokenise(read(tmp_path / "pairs.jsonl"), model.tokenizer, TextContract(max_length=72)))
    assert layout.tokenised.report.cut.count > 200
    found = check((model, layout), make_score_fn(model.config))
    assert found.passed
    assert 200 <= found.comparisons < 300


def test_scores_that_are_not_finite_are_refused_by_row(scored):
    model, layout = scored
    broken = dataclasses.replace(model.params, head=Head(np.full(model.config.hidden_size, np.nan, np.float32)))
    with pytest.raises(CheckpointError, match=r"not finite.*row=1,"):
        score_all(broken, layout, make_score_fn(model.config))


@pytest.mark.parametrize("sample", [1, 7, 29, 30, 1000])
def test_a_sample_is_of_whole_prompts_and_large_enough(scored, sample):
    data = scored[1].tokenised.data
    keep = whole_prompts(data, sample)
    prompt = data.comparisons.prompt[data.comparisons.first]
    assert keep.sum() >= min(sample, data.num_comparisons)
    assert not set(prompt[keep]) & set(prompt[~keep])
