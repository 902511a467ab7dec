"""Laws of inspect: what it prints is what the model sees."""

import dataclasses
import io
import json

import numpy as np
from hypothesis import given
from rich.console import Console
from token_worlds import Letters, preferences, token_worlds

from rmjax.data.audit import audit
from rmjax.data.buckets import PackSpec
from rmjax.data.contract import TextContract
from rmjax.data.inspect import inspect, lines
from rmjax.data.packing import make_layout
from rmjax.data.render import render
from rmjax.data.tokenise import tokenise
from rmjax.data.trees import shared_prefix

DATA = preferences(["p" * 9, "q", "r"], [["cd", "cde"], ["c" * 30, "d"], ["ab", "b"]], [(p, 0, 1) for p in range(3)])


def seen(contract=TextContract(max_length=12), examples=3):
    return inspect(make_layout(tokenise(DATA, Letters(), contract)), Letters(), examples)


@given(token_worlds())
def test_means_are_those_of_the_comparisons(world):
    layout = make_layout(world, PackSpec(lengths=(24, 64), tokens_per_micro_batch=128))
    found, c = inspect(layout, Letters(), examples=0), world.data.comparisons
    sides = [(world.ids[a], world.ids[b]) for a, b in zip(c.first, c.second)]
    np.testing.assert_allclose(found.pair, np.mean([len(a) + len(b) for a, b in sides]))
    np.testing.assert_allclose(found.pair_shared, np.mean([shared_prefix(pair) for pair in sides]))
    assert found.lengths.least <= found.lengths.median <= found.lengths.percentile_95 <= found.lengths.most
    assert found.packing.tokens <= found.packing.positions
    assert sum(count for *_, count in found.packing.shapes) == found.packing.micro_batches


def test_examples_are_the_exact_texts_and_the_scored_token():
    example = seen().examples[0]
    assert (example.row, example.side, example.text) == (
        1,
        "first",
        "pppppp\n\ncd</s>",
    )  # as short as the other side needs
    assert (example.scored_text, example.scored_position, example.tokens) == ("</s>", 10, 11)
    assert len(seen().examples) == 4  # two comparisons are left
    assert seen(examples=0).examples == ()


def test_lines_tell_every_decision_and_fit_the_audit():
    told = dict(lines(seen()))
    assert told["over 12 tokens"].startswith("2 (row 1, 2); the prompt's beginning is cut")
    assert told["  cut"] == "1 (row 1)"
    assert told["  left out for their length"] == "1 (row 2)"
    assert "differ in 2 (row 1, 3)" in told["scored token"]
    console = Console(width=100, file=io.StringIO())
    console.print(render(audit(DATA), lines(seen())))
    assert "row 1, first" in console.file.getvalue()


def test_it_is_json():
    assert json.loads(json.dumps(dataclasses.asdict(seen())))["report"]["cut"]["rows"] == [1]
