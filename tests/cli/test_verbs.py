"""The verbs end to end on a small run of the embedded default."""

import dataclasses
import json
import shutil
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from safetensors import SafetensorError

from rmjax.cli import main
from rmjax.data.contract import TextContract
from rmjax.errors import CheckpointError, GaugeError
from rmjax.head import Head
from rmjax.models.load import load
from rmjax.models.save import save
from rmjax.train import Run, fit, join_scores, open_run
from rmjax.train.export import export
from rmjax.train.metrics import read_metrics
from rmjax.train.setup import open_model
from tests.train.small_runs import small_run, write_votes

VERBS = ("train", "eval", "score", "inspect", "fit", "export", "doctor")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    output = tmp_path_factory.mktemp("run")
    main(["train", "--output", str(output), "--max-steps", "2", "--evaluate-every", "2"])
    return output


@pytest.fixture(scope="module")
def stranger(tmp_path_factory):
    """A model of others: a directory, with a head."""
    model = open_model("tiny", seed=3)
    head = Head(jax.random.normal(jax.random.key(3), (model.config.hidden_size,)))
    folder = tmp_path_factory.mktemp("stranger")
    save(folder, dataclasses.replace(model, params=dataclasses.replace(model.params, head=head)))
    return folder


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    path = tmp_path_factory.mktemp("file") / "pairs.jsonl"
    rows = [
        {"prompt": f"Count to {k}.", "chosen": "one " * k, "rejected": "two " * (k % 3 + 1) + "no"} for k in range(1, 9)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_training_leaves_a_page_numbers_and_a_run(trained):
    page = (trained / "report.html").read_text()
    assert "<svg" in page
    assert "http" not in page.replace("http://www.w3.org", "")
    rows = read_metrics(trained)
    assert [row["step"] for row in rows] == [1, 2, 2]
    assert rows[0]["loss"] == pytest.approx(np.log(2), abs=1e-6)
    assert len(rows[0]["layer_margin"]) == len(rows[0]["layer_accuracy"]) == 3
    summary = json.loads((trained / "evaluation.json").read_text())
    assert rows[2]["eval_accuracy"] == pytest.approx(summary["accuracy"], abs=1e-6)
    assert rows[2]["eval_loss"] == pytest.approx(summary["loss"], abs=1e-6)
    assert summary["summary"]["swap"]["passed"]
    assert summary["diagnostics_levels"]["min_reward"] <= summary["diagnostics_levels"]["max_reward"]


def test_evaluation_of_a_file(trained, pairs, tmp_path, capsys):
    capsys.readouterr()
    main(["eval", str(pairs), "--model", str(trained), "--output", str(tmp_path), "--json"])
    said = json.loads(capsys.readouterr().out)
    assert said["summary"]["counts"]["comparisons"] == 8
    assert not said["summary"]["agreement"]["measured"]
    assert "was not measured" in " ".join(said["sentences"])
    assert (tmp_path / "report.html").exists()


def test_pairs_that_were_selected_by_agreement_have_no_ceiling(trained, tmp_path, capsys):
    path = tmp_path / "votes.jsonl"
    row = {"prompt": "p", "a": "one", "votes": {"a": 3, "b": 1}}
    path.write_text("".join(json.dumps(row | {"b": f"two {k}"}) + "\n" for k in range(3)))
    ceilings = []
    for flags in ([], ["--selected"]):
        capsys.readouterr()
        main(["eval", str(path), "--model", str(trained), "--output", str(tmp_path), "--json", *flags])
        ceilings.append(json.loads(capsys.readouterr().out)["summary"]["agreement"]["ceiling"])
    assert ceilings[0] is not None
    assert ceilings[1] is None


def test_scores_carry_the_fingerprint_and_join_only_under_one(trained, stranger, pairs, tmp_path):
    mine, other = tmp_path / "mine.jsonl", tmp_path / "other.jsonl"
    for model, path in ((str(trained), mine), (str(stranger), other)):
        main(["score", str(pairs), "--model", model, "--output", str(path)])
    lines = join_scores([mine, mine])
    assert len(lines) == 16
    assert all(line["margin"] == pytest.approx(line["first"] - line["second"], abs=1e-6) for line in lines)
    with pytest.raises(GaugeError, match="different scales"):
        join_scores([mine, other])


@pytest.mark.parametrize("verb", ["eval", "score"])
def test_a_model_without_a_trained_head_is_refused(verb, pairs, tmp_path, capsys):
    with pytest.raises(SystemExit) as stopped:
        main([verb, str(pairs), "--model", "tiny", "--output", str(tmp_path / "out")])
    assert stopped.value.code == 2
    assert "rmjax train --model tiny" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "out").exists()


def test_what_was_left_out_on_the_way_stands_on_the_page_and_in_the_numbers(stranger, tmp_path, capsys):
    path = tmp_path / "pairs.jsonl"
    row = {"prompt": "p " * 20, "chosen": "yes", "rejected": "no"}
    rows = [row, row | {"chosen": "no"}, row | {"chosen": ""}, row | {"prompt": "long " * 60}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    flags = ["--on-bad-row", "drop", "--text.max-length", "128", "--output", str(tmp_path / "report"), "--json"]
    capsys.readouterr()
    main(["eval", str(path), "--model", str(stranger), *flags])
    said = json.dumps(json.loads(capsys.readouterr().out))
    for found in (said, (tmp_path / "report" / "report.html").read_text()):
        assert "identical answers: 1 (row 2)" in found
        assert "1 (row 3)" in found  # the empty answer
        assert "1 (row 4)" in found  # the long prompt


def test_another_format_than_that_of_the_training_is_said(trained, tmp_path, capsys):
    path = tmp_path / "dialogues.jsonl"
    turn = "\n\nHuman: Say {}.\n\nAssistant: {}"
    path.write_text(json.dumps({"chosen": turn.format("hi", "Hi."), "rejected": turn.format("hi", "No.")}) + "\n")
    capsys.readouterr()
    main(["score", str(path), "--model", str(trained), "--output", str(tmp_path / "scores.jsonl")])
    assert "trained on synthetic, this file is" in " ".join(capsys.readouterr().out.split())


def test_inspect_says_what_was_understood(pairs, capsys):
    capsys.readouterr()
    main(["inspect", str(pairs), "--model", "tiny"])
    said = capsys.readouterr().out
    assert "Count to 1." in said


def test_export_is_opened_again_with_the_same_parameters(trained, tmp_path):
    main(["export", str(trained), str(tmp_path / "model")])
    back = load(tmp_path / "model")
    for a, b in zip(jax.tree.leaves(back.params), jax.tree.leaves(open_run(trained).model.params), strict=True):
        np.testing.assert_array_equal(a, b)


def test_an_export_scores_as_the_run_does_under_the_same_fingerprint(pairs, tmp_path):
    """Also where the text is read otherwise than by default."""
    flags = ["--text.add-eos", "False", "--text.separator", " => ", "--text.max-length", "200"]
    main(["train", "--output", str(tmp_path / "run"), "--max-steps", "1", *flags])
    main(["export", str(tmp_path / "run"), str(tmp_path / "model")])
    files = []
    for model in ("run", "model"):
        files.append(tmp_path / f"{model}.jsonl")
        main(["score", str(pairs), "--model", str(tmp_path / model), "--output", str(files[-1])])
    one, other = (join_scores([file]) for file in files)
    assert one == other
    main(["export", str(tmp_path / "model"), str(tmp_path / "again")])
    assert open_run(tmp_path / "again").contract == open_run(tmp_path / "run").contract


def test_an_export_that_is_refused_leaves_what_stood_there(trained, tmp_path):
    run = open_run(trained)
    export(tmp_path / "model", run)
    (tmp_path / "model" / "model.safetensors.index.json").write_text("{}")
    before = {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()}
    with pytest.raises(CheckpointError, match="files of another model or of a run"):
        export(tmp_path / "model", run)
    assert {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()} == before
    with pytest.raises(CheckpointError, match="a file of that name"):
        export(tmp_path / "model" / "config.json", run)


def contents(folder):
    return {path.name: path.is_dir() or path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("blocked", ["model.safetensors", "config.json", "tokenizer.json", "rmjax.json"])
def test_an_export_onto_what_is_no_file_changes_nothing(blocked, trained, tmp_path):
    run = open_run(trained)
    export(tmp_path / "model", run)
    (tmp_path / "model" / blocked).unlink()
    (tmp_path / "model" / blocked).mkdir()
    before = contents(tmp_path / "model")
    other = dataclasses.replace(run, model=open_model("tiny", seed=1))
    with pytest.raises(CheckpointError, match=blocked):
        export(tmp_path / "model", other)
    assert contents(tmp_path / "model") == before


@pytest.mark.parametrize("error", [OSError("no space"), SafetensorError("no space"), KeyboardInterrupt()])
def test_an_export_that_ends_half_way_leaves_the_old_one(error, trained, tmp_path, monkeypatch):
    run = open_run(trained)
    export(tmp_path / "model", run)
    before = contents(tmp_path / "model")

    def fail(*_, **__):
        raise error

    monkeypatch.setattr(sys.modules[save.__module__], "save_file", fail)
    with pytest.raises(KeyboardInterrupt if isinstance(error, KeyboardInterrupt) else CheckpointError):
        export(tmp_path / "model", run)
    assert contents(tmp_path / "model") == before


@pytest.mark.parametrize("moves", range(6))
def test_an_export_that_stops_between_two_files_is_no_model(moves, trained, tmp_path, monkeypatch):
    """Five files take their places; whatever comes after the first does not open until the last."""
    run = open_run(trained)
    export(tmp_path / "model", run)
    other = dataclasses.replace(run, model=open_model("tiny", seed=1))
    left, move = [moves], Path.replace

    def fail(path, target):
        if path.parent.name == ".rmjax-partial" and (left.append(left.pop() - 1) or left[0] < 0):
            raise OSError("input/output error")
        return move(path, target)

    monkeypatch.setattr(Path, "replace", fail)
    if moves == 5:
        export(tmp_path / "model", other)
        assert open_run(tmp_path / "model").contract == run.contract
        return
    with pytest.raises(CheckpointError, match="gone in part"):
        export(tmp_path / "model", other)
    with pytest.raises(CheckpointError, match=r"config\.json"):
        open_run(tmp_path / "model")


def test_a_model_is_not_saved_over_an_export_nor_over_a_run(trained, tmp_path):
    """It would be read by the contract of another, or the run could not go on."""
    run = open_run(trained)
    export(tmp_path / "model", run)
    shutil.copytree(trained, tmp_path / "run")
    for write, what, where in ((save, run.model, "model"), (save, run.model, "run"), (export, run, "run")):
        before = contents(tmp_path / where)
        with pytest.raises(CheckpointError, match="do not go with the new ones"):
            write(tmp_path / where, what)
        assert contents(tmp_path / where) == before


def test_a_folder_of_the_users_stays(trained, tmp_path):
    (tmp_path / "model" / ".partial").mkdir(parents=True)
    (tmp_path / "model" / ".partial" / "notes").write_text("mine")
    export(tmp_path / "model", open_run(trained))
    assert (tmp_path / "model" / ".partial" / "notes").read_text() == "mine"


def test_an_export_has_nowhere_to_go_below_a_file_or_behind_a_dangling_link(trained, tmp_path):
    run = open_run(trained)
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for place in (tmp_path / "file" / "model", tmp_path / "link"):
        for write, what in ((export, run), (save, run.model)):
            with pytest.raises(CheckpointError, match="cannot be written"):
                write(place, what)


def test_a_model_that_has_a_contract_is_not_read_under_another(stranger, pairs, tmp_path, capsys):
    """What is asked for and is so already is no other contract, and a default that is asked for is."""
    run = Run(load(stranger), TextContract("raw", " ", "today", False, False, 77, "drop", "last"), None)
    export(tmp_path / "model", run)
    score = ["score", str(pairs), "--model", str(tmp_path / "model"), "--output", str(tmp_path / "scores.jsonl")]
    main([*score, "--text.max-length", "77", "--text.template", "raw", "--text.truncation", "auto"])
    for option, value in (("--text.max-length", "1024"), ("--text.score-token", "hf"), ("--text.add-eos", "True")):
        with pytest.raises(SystemExit) as stopped:
            main([*score, option, value])
        assert stopped.value.code == 2
        assert f"asked for {value!r}".replace("'1024'", "1024").replace("'True'", "True") in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([*score, "--text.template", "chat"])
    assert capsys.readouterr().err.count("asked for") == 1  # and not for what another template brings along


def test_evaluating_on_the_training_file_is_said(tmp_path, capsys):
    file = write_votes(tmp_path / "votes.jsonl")
    fit(small_run(tmp_path / "run", file, max_steps=1))
    capsys.readouterr()
    main(["eval", str(file), "--model", str(tmp_path / "run"), "--output", str(tmp_path)])
    assert "seen in training" in " ".join(capsys.readouterr().out.split())
    page = (tmp_path / "report.html").read_text()
    assert "Seen in training" in page
    assert "Loss over training" in page
    other = write_votes(tmp_path / "other.jsonl", seed=1)
    main(["export", str(tmp_path / "run"), str(tmp_path / "model")])
    for seen, path, model in ((False, other, "run"), (True, file.rename(tmp_path / "moved.jsonl"), "model")):
        main(["eval", str(path), "--model", str(tmp_path / model), "--output", str(tmp_path)])
        assert ("Seen in training" in (tmp_path / "report.html").read_text()) == seen
    fit(small_run(tmp_path / "further", other, max_steps=1, model=str(tmp_path / "model"), text=TextContract()))
    main(["export", str(tmp_path / "further"), str(tmp_path / "last")])
    for model in ("further", "last"):
        for path, before in ((other, False), (tmp_path / "moved.jsonl", True)):
            main(["eval", str(path), "--model", str(tmp_path / model), "--output", str(tmp_path)])
            page = (tmp_path / "report.html").read_text()
            assert "Seen in training" in page
            assert ("a model that this one was started from" in page) == before


def test_going_on_with_a_file_says_that_what_is_held_out_may_have_been_trained_on(tmp_path, capsys):
    """Under another split seed, some of it was; no run can tell of a file that it sees twice."""
    file = str(write_votes(tmp_path / "votes.jsonl"))
    small = ["--data.path", file, "--max-steps", "1", "--packing.lengths", "64", "--text.max-length", "64"]
    main(["train", "--output", str(tmp_path / "one"), *small])
    assert "Seen in training" not in (tmp_path / "one" / "report.html").read_text()
    main(["export", str(tmp_path / "one"), str(tmp_path / "model")])
    main(
        [
            "train",
            "--output",
            str(tmp_path / "two"),
            "--model",
            str(tmp_path / "model"),
            "--data.split-seed",
            "5",
            *small,
        ]
    )
    assert "what is held out here may be part of that" in (tmp_path / "two" / "report.html").read_text()
    main(["eval", file, "--model", str(tmp_path / "two"), "--output", str(tmp_path)])
    page = (tmp_path / "report.html").read_text()
    assert "more than once" in page
    assert "but for what was held out" not in page


def test_a_swap_check_that_failed_in_training_is_said_by_eval(trained, pairs, tmp_path):
    shutil.copytree(trained, tmp_path / "run")
    with (tmp_path / "run" / "metrics.jsonl").open("a") as file:
        file.write(json.dumps({"step": 2, "eval_loss": 0.7, "eval_swap_passed": False}) + "\n")
    for run, said in ((trained, False), (tmp_path / "run", True)):
        main(["eval", str(pairs), "--model", str(run), "--output", str(tmp_path)])
        assert ("Swap check failed in training" in (tmp_path / "report.html").read_text()) == said


@pytest.mark.parametrize("files", [None, 5, "abc", {"a": 1}, [1, 2]])
def test_a_damaged_list_of_training_files_is_named(files, trained, tmp_path):
    shutil.copytree(trained, tmp_path / "run")
    export(tmp_path / "model", open_run(trained))
    for path in (tmp_path / "run" / "contract.json", tmp_path / "model" / "rmjax.json"):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"files": files}))
        with pytest.raises(CheckpointError, match=path.name):
            open_run(path.parent)


def test_a_damaged_contract_in_the_configuration_of_a_run_is_named(trained, tmp_path):
    shutil.copytree(trained, tmp_path / "run")
    path = tmp_path / "run" / "config.json"
    told = json.loads(path.read_text())
    path.write_text(json.dumps(told | {"text": told["text"] | {"max_length": 0}}))
    with pytest.raises(CheckpointError, match=r"config\.json"):
        open_run(tmp_path / "run")


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself(verb, capsys):
    with pytest.raises(SystemExit) as stopped:
        main([verb, "--help"])
    assert stopped.value.code == 0
    assert "--json" in capsys.readouterr().out


def test_the_doctor_names_the_backend_and_what_is_missing(capsys):
    capsys.readouterr()
    main(["doctor", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["backend"] == "cpu"
    assert found["packages"]["jax"]
    assert all({"package", "needed_for", "install"} == set(gap) for gap in found["missing"])
