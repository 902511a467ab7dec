"""A run says what it was started from, and goes on with nothing else."""

import dataclasses
import json
import shutil

import jax
import pytest

from rmjax.data.contract import TextContract
from rmjax.errors import CheckpointError
from rmjax.head import Head
from rmjax.models.save import save
from rmjax.train import TrainConfig, fit, open_run
from rmjax.train.config import resolve, to_json
from rmjax.train.export import export
from rmjax.train.setup import open_model
from tests.train.small_runs import small_run, write_votes


def model_directory(folder, seed):
    """A model as others keep it, with a head of normal numbers."""
    model = open_model("tiny", seed)
    head = Head(jax.random.normal(jax.random.key(seed), (model.config.hidden_size,)))
    save(folder, dataclasses.replace(model, params=dataclasses.replace(model.params, head=head)))
    return folder


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run of the head alone, so that the layers are in no checkpoint."""
    folder = tmp_path_factory.mktemp("finished")
    file = write_votes(folder / "votes.jsonl")
    config = small_run(folder / "run", file, model=str(model_directory(folder / "model", 0)), trainable="head")
    fit(config)
    return config, folder


@pytest.fixture
def copied(finished, tmp_path):
    """The same run and its files, free to be changed."""
    config, folder = finished
    shutil.copytree(folder, tmp_path / "copy")
    files = {"path": str(tmp_path / "copy" / "votes.jsonl")}
    moved = dataclasses.replace(
        config,
        output=str(tmp_path / "copy" / "run"),
        model=str(tmp_path / "copy" / "model"),
        data=dataclasses.replace(config.data, **files),
    )
    (tmp_path / "copy" / "run" / "config.json").write_text(to_json(resolve(moved)))
    return moved, tmp_path / "copy"


def test_a_finished_run_opens_with_a_trained_head_and_its_format(copied):
    run = open_run(copied[0].output)
    assert run.model.report.head == "trained"
    assert run.format == "a, b and counts of votes"
    assert fit(copied[0]).resumed_from == 2


def test_training_goes_on_from_an_export_and_not_from_a_run(copied, tmp_path):
    config, _ = copied
    further = dataclasses.replace(config, output=str(tmp_path / "further"), text=TextContract(), max_steps=1)
    with pytest.raises(CheckpointError, match="rmjax export"):
        fit(dataclasses.replace(further, model=config.output))
    run = open_run(config.output)
    export(tmp_path / "exported", run)
    fit(dataclasses.replace(further, model=str(tmp_path / "exported")))
    assert open_run(tmp_path / "further").contract == run.contract


def test_data_that_were_replaced_are_refused(copied):
    config, folder = copied
    write_votes(folder / "votes.jsonl", seed=1)
    with pytest.raises(CheckpointError, match="other data"):
        fit(config)


def test_layers_that_were_replaced_are_refused(copied):
    config, folder = copied
    shutil.rmtree(folder / "model")
    model_directory(folder / "model", seed=1)
    for use in (lambda: fit(config), lambda: open_run(config.output)):
        with pytest.raises(CheckpointError, match="another model"):
            use()


def test_another_tokenizer_is_refused(copied):
    config, folder = copied
    path = folder / "model" / "tokenizer.json"
    raw = json.loads(path.read_text())
    ids = raw["model"]["vocab"]
    first, second = sorted(ids)[60:62]
    ids[first], ids[second] = ids[second], ids[first]
    path.write_text(json.dumps(raw))
    for use in (lambda: fit(config), lambda: open_run(config.output)):
        with pytest.raises(CheckpointError, match="another tokenizer"):
            use()


@pytest.mark.parametrize("damage", ["{", "[" * 100_000, "null"])
@pytest.mark.parametrize("name", ["config.json", "contract.json"])
def test_a_damaged_file_is_named(name, damage, copied):
    config, folder = copied
    (folder / "run" / name).write_text(damage)
    with pytest.raises(CheckpointError, match=name):
        open_run(config.output)


@pytest.mark.parametrize("change", [{"future": 1}, {"max_length": None}])
def test_a_contract_of_another_version_is_named(change, copied):
    config, folder = copied
    path = folder / "run" / "contract.json"
    stored = json.loads(path.read_text())
    stored["contract"] = stored["contract"] | change if "future" in change else None
    path.write_text(json.dumps(stored))
    with pytest.raises(CheckpointError, match=r"contract\.json"):
        open_run(config.output)


def test_what_is_left_of_a_run_is_called_a_run(copied):
    config, folder = copied
    (folder / "run" / "contract.json").unlink()
    with pytest.raises(CheckpointError, match=r"contract\.json"):
        open_run(config.output)


def test_a_directory_without_results_is_free_for_another_configuration(tmp_path):
    file = write_votes(tmp_path / "votes.jsonl")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.json").write_text(to_json(small_run(tmp_path / "run", file, seed=9)))
    assert fit(small_run(tmp_path / "run", file, max_steps=1)).steps == 1


def test_an_output_that_is_a_file_is_refused_and_stays(tmp_path):
    file = write_votes(tmp_path / "votes.jsonl")
    (tmp_path / "run").write_text("a letter")
    with pytest.raises(CheckpointError, match="is a file"):
        fit(small_run(tmp_path / "run", file))
    assert (tmp_path / "run").read_text() == "a letter"


@pytest.mark.parametrize("name", ["config.json", "contract.json"])
def test_a_run_that_lost_a_file_is_not_gone_on_with(name, copied):
    config, folder = copied
    (folder / "run" / name).unlink()
    with pytest.raises(CheckpointError, match=name):
        fit(config)
    assert not (folder / "run" / name).exists()


def test_a_run_that_was_moved_goes_on_and_its_logging_may_change(finished, tmp_path):
    config, folder = finished
    shutil.copytree(folder / "run", tmp_path / "moved")
    again = fit(dataclasses.replace(config, output=f"{tmp_path}/moved/", log_every=2, keep_checkpoints=5))
    assert again.resumed_from == 2


def test_a_damaged_checkpoint_and_a_damaged_row_are_named(copied):
    config, folder = copied
    largest = max((folder / "run" / "checkpoints").rglob("*"), key=lambda path: path.is_file() and path.stat().st_size)
    largest.write_bytes(largest.read_bytes()[: largest.stat().st_size // 2])
    with pytest.raises(CheckpointError, match="the checkpoint is damaged"):
        open_run(config.output)
    for row in ("oops", "[" * 100_000, "5", '{"step": true}'):
        (folder / "run" / "metrics.jsonl").write_text(row + "\n")
        with pytest.raises(CheckpointError, match="line=1"):
            fit(config)


@pytest.fixture
def export_of(copied, tmp_path):
    """The run with another way to read text than the default, as an export."""
    run = open_run(copied[0].output)
    contract = dataclasses.replace(run.contract, separator=" => ")
    export(tmp_path / "exported", dataclasses.replace(run, contract=contract))
    return tmp_path / "exported", contract


@pytest.mark.parametrize(
    "change",
    [{"max_length": "64"}, {"max_length": None}, {"template": "chatt"}, {"separator": "\n\n"}, {"future": 1}, None],
)
def test_an_export_whose_contract_was_changed_is_refused(change, export_of):
    folder, _ = export_of
    found = json.loads((folder / "rmjax.json").read_text())
    found["contract"] = change and found["contract"] | change
    (folder / "rmjax.json").write_text(json.dumps(found))
    with pytest.raises(CheckpointError, match=r"rmjax\.json"):
        open_run(folder)


def test_a_contract_comes_along_from_the_hub_and_with_no_other_model(export_of, tmp_path, monkeypatch):
    folder, contract = export_of
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda name, allow_patterns: str(folder))
    assert open_run("somebody/model").contract == contract
    (tmp_path / "tiny").mkdir()
    shutil.copy(folder / "rmjax.json", tmp_path / "tiny")
    monkeypatch.chdir(tmp_path)
    assert open_run("tiny").contract is None


def test_training_from_an_export_keeps_what_is_not_asked_for(export_of, copied, tmp_path):
    folder, contract = export_of
    config = dataclasses.replace(copied[0], model=str(folder), output=str(tmp_path / "further"), max_steps=1)
    fit(dataclasses.replace(config, text=TextContract(max_length=50)))
    assert open_run(config.output).contract == dataclasses.replace(contract, max_length=50)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"config.json": '{"model_type": "llama"}', "checkpoints/x": "", "pytorch_model.bin": ""}, "lacks a key"),
        ({"checkpoints/x": ""}, "configuration of the run"),
        ({"config.json": to_json(TrainConfig())}, r"contract\.json"),
    ],
)
def test_runs_and_models_are_told_apart(files, said, tmp_path):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    with pytest.raises(CheckpointError, match=said):
        open_run(tmp_path)
