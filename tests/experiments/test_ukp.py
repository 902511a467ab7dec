"""The experiment on UKPConvArg1 runs on a miniature of it, and no head knows the debates that it is tested on."""

import dataclasses
import json

import jax
import numpy as np
import pytest
from rich.console import Console

from experiments.ukp import Config, choose_head, main, measure, people, show_human
from rmjax.data.formats import Fields, read
from rmjax.models import ModelConfig, init, save
from rmjax.models.load import RewardModel
from rmjax.models.weights import LoadReport
from rmjax.tokenizer import ByteTokenizer

DEBATES = 8
TRUNK = ModelConfig(258, 32, 64, num_layers=2, num_heads=2, num_kv_heads=1, head_dim=16)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Debates with two stances of three arguments each, whose pairs have two to five votes."""
    folder, rng = tmp_path_factory.mktemp("ukp"), np.random.default_rng(0)
    pairs, texts = [], []
    for debate in range(DEBATES):
        for stance in ("yes", "no"):
            ids = [f"{debate}{stance}{i}" for i in range(3)]
            texts += [{"id": name, "text": f"{name}: because " + "of this " * rng.integers(1, 6)} for name in ids]
            for a, b in ((0, 1), (0, 2), (1, 2)):
                votes = rng.choice(["a", "b", "tie"], size=rng.integers(2, 6), p=[0.6, 0.3, 0.1]).tolist()
                gold = "a" if votes.count("a") >= votes.count("b") else "b"
                row = {"prompt": f"Debate {debate}?", "stance": stance, "topic": str(debate)}
                pairs.append(row | {"a": ids[a], "b": ids[b], "votes": votes, "gold": gold})
    for name, rows in (("pairs", pairs), ("texts", texts)):
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    template = "{% for m in messages %}<|bos|>{{ m.content }}<|eos|>{% endfor %}"
    tokenizer = dataclasses.replace(ByteTokenizer(), chat_template=template)
    report = LoadReport("here", "none", "new head", 0, (), {})
    save(folder / "model", RewardModel(TRUNK, init(jax.random.key(0), TRUNK), tokenizer, report))
    return folder


@pytest.fixture(scope="module")
def data(files):
    fields = Fields(prompt=("prompt", "stance"), source="prompt")
    return read(files / "pairs.jsonl", texts=files / "texts.jsonl", fields=fields)


@pytest.fixture(scope="module")
def debate(data):
    return np.asarray(data.comparisons.cluster)


def small(files, **changes):
    paths = {"pairs": str(files / "pairs.jsonl"), "texts": str(files / "texts.jsonl"), "model": str(files / "model")}
    small = {"layers": (1, 2), "ridges": (0.1, 1.0), "inner_folds": 2, "trained_layers": 1, "epochs": 1}
    return Config(**paths | small | changes)


def test_the_command_prints_both_tables_and_writes_its_page(files, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")
    results = main(small(files, output=str(tmp_path)))
    said = capsys.readouterr().out
    assert json.loads((tmp_path / "results.json").read_text()).keys() == results.keys()
    assert (tmp_path / "report.html").exists()
    for name in ("frozen head", "longer, in tokens", "longer, in characters", "trained, last 1 layers"):
        assert name in said
    assert [fold["fold"] for fold in results["chosen"]] == [0, 1, 2, 3]
    for table, clusters in (("rules", DEBATES), ("fold 0", DEBATES // 4)):
        for rule in results[table].values():
            assert rule["gold"].clusters == rule["votes"].clusters == clusters
    itself = results["rules"]["longer, in tokens"]["gold difference"]
    assert itself.value == 0
    assert not itself.has_interval


def test_a_head_knows_nothing_of_the_debates_that_it_is_tested_on(files, data, debate):
    states = np.random.default_rng(1).normal(size=(2, len(data.responses), 8)).astype(np.float32)
    train = debate >= 2
    flipped = {
        side: np.where(train, getattr(data.comparisons, side), getattr(data.comparisons, other))
        for side, other in (("wins_first", "wins_second"), ("wins_second", "wins_first"))
    }
    other = dataclasses.replace(data, comparisons=dataclasses.replace(data.comparisons, **flipped))
    (one, *choice), (two, *same) = (choose_head(states, d, train, debate, small(files)) for d in (data, other))
    assert choice == same
    np.testing.assert_array_equal(one.head.weight, two.head.weight)
    (three, *_) = choose_head(states, other, ~train, debate, small(files))
    assert not np.array_equal(one.head.weight, three.head.weight)


def test_a_table_is_of_means_over_debates_and_its_ceiling_too(data, debate):
    """A rule that knows the majority of each pair's votes cannot be beaten: it is never below the lower end."""
    c = data.comparisons
    oracle = np.where(c.wins_first >= c.wins_second, 1.0, -1.0)
    rules = {"oracle": oracle, "wrong": -oracle}
    table = measure(rules, data, debate, "wrong")
    shares = []
    for name in range(DEBATES):
        own = debate == name
        best, votes = np.maximum(c.wins_first, c.wins_second)[own].sum(), (c.wins_first + c.wins_second)[own].sum()
        shares.append(best / votes)
    assert table["oracle"]["votes"].value == pytest.approx(np.mean(shares))
    human = people(data, debate)
    assert human.ceiling.lower <= table["oracle"]["votes"].value
    console = Console(width=100)
    with console.capture() as shown:
        show_human(console, human)
    assert f"mean over debates: between {human.ceiling.lower:.3f} and {human.ceiling.upper:.3f}" in shown.get()
