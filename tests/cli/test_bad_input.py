"""What is wrong with a file is said by row and remedy, before anything is trained or written."""

import gzip
import json

import pytest
from safetensors.numpy import load_file, save_file

from rmjax.cli import main
from rmjax.models.save import save
from rmjax.train.setup import open_model

GOOD = {"prompt": "Say hello.", "chosen": "Hello, how are you?", "rejected": "No."}
DIALOGUE = "\n\nHuman: Say {}.\n\nAssistant: {}"


def lines(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def without(row, name):
    return {key: value for key, value in row.items() if key != name}


CASES = {
    "empty file": ("x.jsonl", b"", "no rows"),
    "truncated gzip": ("x.jsonl.gz", gzip.compress(lines(*[GOOD] * 200))[:-20], "gzip"),
    "row without rejected": ("x.jsonl", lines(GOOD, without(GOOD, "rejected")), "row=2"),
    "a vote that is not a number": (
        "x.jsonl",
        b'{"prompt": "p", "a": "x", "b": "y", "votes": {"a": 1, "b": 2}}\n'
        b'{"prompt": "p", "a": "x", "b": "z", "votes": {"a": NaN, "b": 2}}\n',
        "row=2",
    ),
    "prompt differs between the sides": (
        "x.jsonl",
        lines({"chosen": DIALOGUE.format("hi", "Hi."), "rejected": DIALOGUE.format("bye", "Hi!")}),
        "row=1",
    ),
    "empty answer": ("x.jsonl", lines(GOOD, GOOD | {"chosen": ""}), "row=2"),
    "not JSON": ("x.jsonl", lines(GOOD) + b"{oops\n", "row=2"),
}


@pytest.mark.parametrize(("name", "content", "said"), CASES.values(), ids=CASES)
def test_bad_files_are_refused_before_anything_is_written(name, content, said, tmp_path, capsys):
    path, output = tmp_path / name, tmp_path / "run"
    path.write_bytes(content)
    with pytest.raises(SystemExit) as stopped:
        main(["train", "--data.path", str(path), "--output", str(output)])
    assert stopped.value.code == 2
    message = "".join(capsys.readouterr().err.split())
    assert said.replace(" ", "") in message
    assert str(path.name) in message
    assert not output.exists()


def test_a_text_over_the_limit_is_named_where_the_contract_says_error(tmp_path, capsys):
    path = tmp_path / "long.jsonl"
    path.write_bytes(lines(GOOD, GOOD | {"prompt": "long " * 100}))
    arguments = ["inspect", str(path), "--model", "tiny", "--text.max-length", "64"]
    with pytest.raises(SystemExit) as stopped:
        main([*arguments, "--text.truncation", "error"])
    assert stopped.value.code == 2
    assert "row=2" in "".join(capsys.readouterr().err.split())
    main([*arguments, "--json"])
    report = json.loads(capsys.readouterr().out)["tokens"]["report"]
    assert report["over_limit"]["count"] == 1
    assert report["over_limit"]["rows"] == [2]


def test_ties_without_a_policy_are_counted_and_refused(tmp_path, capsys):
    path = tmp_path / "ties.jsonl"
    row = {"prompt": "p", "a": "x", "b": "y", "votes": {"a": 1, "b": 1, "tie": 3}}
    path.write_bytes(lines(row, row | {"b": "z"}))
    with pytest.raises(SystemExit) as stopped:
        main(["train", "--data.path", str(path), "--output", str(tmp_path / "run")])
    assert stopped.value.code == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "ties=6.0, row=1" in said
    assert "--data.ties drop" in said


def test_a_model_file_with_a_missing_tensor_is_refused_before_training(tmp_path, capsys):
    model = open_model("tiny", seed=0)
    save(tmp_path / "model", model)
    weights = tmp_path / "model" / "model.safetensors"
    tensors = load_file(weights)
    del tensors["model.layers.1.mlp.up_proj.weight"]
    save_file(tensors, weights, metadata={"format": "pt"})
    with pytest.raises(SystemExit) as stopped:
        main(["train", "--model", str(tmp_path / "model"), "--output", str(tmp_path / "run")])
    assert stopped.value.code == 2
    assert "model.layers.1.mlp.up_proj.weight" in "".join(capsys.readouterr().err.split())
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("damage", ["{", "[]", '"x"'])
@pytest.mark.parametrize(
    "name", ["config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors.index.json"]
)
def test_a_damaged_file_of_a_model_is_named(name, damage, tmp_path, capsys):
    save(tmp_path / "model", open_model("tiny", seed=0))
    if name.endswith("index.json"):
        (tmp_path / "model" / "model.safetensors").unlink()
    (tmp_path / "model" / name).write_text(damage)
    (tmp_path / "x.jsonl").write_bytes(lines(GOOD))
    with pytest.raises(SystemExit) as stopped:
        main(["inspect", str(tmp_path / "x.jsonl"), "--model", str(tmp_path / "model")])
    assert stopped.value.code == 2
    assert name in "".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("verb", ["train", "inspect"])
def test_a_limit_beyond_the_positions_of_the_model_is_refused(verb, tmp_path, capsys):
    """Also where no text of this file is so long: a later file of the run's would be."""
    path = tmp_path / "x.jsonl"
    path.write_bytes(lines(GOOD))
    file = ["--data.path", str(path), "--output", str(tmp_path / "run")] if verb == "train" else [str(path)]
    with pytest.raises(SystemExit):
        main([verb, *file, "--model", "tiny", "--text.max-length", "2000", "--packing.lengths", "2048"])
    said = " ".join(capsys.readouterr().err.split())
    assert "limit=2000, positions=1024" in said
    assert "--text.max-length 1024" in said


@pytest.mark.parametrize("share", ["0", "1", "1.5", "-0.1", "nan"])
def test_a_share_to_hold_out_that_is_none_is_refused(share, tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["train", "--output", str(tmp_path / "run"), "--data.held-out", share])
    assert "--data.held-out 0.1" in " ".join(capsys.readouterr().err.split())


def test_columns_of_other_names_are_a_matter_of_options(tmp_path, capsys):
    path = tmp_path / "x.jsonl"
    path.write_bytes(lines({"question": "2 + 2?", "good": "4", "bad": "5"}))
    for verb, option in (("train", "--data.fields.*"), ("inspect", "--fields.*")):
        where = ["--data.path", str(path)] if verb == "train" else [str(path), "--model", "tiny"]
        with pytest.raises(SystemExit):
            main([verb, *where])
        assert f"give {option}" in " ".join(capsys.readouterr().err.split())


def test_prompts_that_all_share_a_source_cannot_be_split(tmp_path, capsys):
    path = tmp_path / "x.jsonl"
    path.write_bytes(lines(*(GOOD | {"prompt": f"Say {k}.", "topic": "one"} for k in range(9))))
    with pytest.raises(SystemExit):
        main(["train", "--data.path", str(path), "--output", str(tmp_path / "run"), "--data.fields.source", "topic"])
    assert "another source" in " ".join(capsys.readouterr().err.split())


def test_an_unknown_model_is_refused_with_what_there_is(capsys):
    with pytest.raises(SystemExit):
        main(["inspect", "synthetic", "--model", "no-such-model"])
    assert "smollm2-135m" in "".join(capsys.readouterr().err.split())


def test_inspect_lists_all_bad_rows_by_reason_and_fails(tmp_path, capsys):
    path = tmp_path / "x.jsonl"
    path.write_bytes(lines(GOOD, without(GOOD, "rejected"), GOOD | {"chosen": ""}, GOOD | {"rejected": ""}))
    with pytest.raises(SystemExit) as stopped:
        main(["inspect", str(path), "--model", "tiny"])
    assert stopped.value.code == 2
    shown = capsys.readouterr()
    assert "Say hello." in shown.out
    said = " ".join(shown.err.split())
    assert "1 (row 2)" in said
    assert "2 (row 3, 4)" in said
    assert "--on-bad-row drop" in said
    main(["inspect", str(path), "--model", "tiny", "--on-bad-row", "drop"])


@pytest.mark.parametrize("verb", ["train", "eval", "score", "export"])
def test_an_output_that_cannot_be_is_refused_before_anything_is_read(verb, tmp_path, capsys):
    (tmp_path / "letter").write_text("dear")
    output = str(tmp_path / "letter" / "below")
    told = {
        "train": ["train", "--data.path", "nowhere.jsonl", "--output", output],
        "eval": ["eval", "nowhere.jsonl", "--model", "nothing", "--output", output],
        "score": ["score", "nowhere.jsonl", "--model", "nothing", "--output", output],
        "export": ["export", "nothing", output],
    }
    with pytest.raises(SystemExit) as stopped:
        main(told[verb])
    assert stopped.value.code == 2
    assert "letter" in "".join(capsys.readouterr().err.split())
    assert (tmp_path / "letter").read_text() == "dear"


def test_a_path_that_no_system_takes_is_said_with_its_name(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["fit", "nowhere.csv", "--output", "x" * 300])
    assert stopped.value.code == 2
    assert "xxx). Check the path" in capsys.readouterr().err


def test_scores_do_not_replace_a_directory(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["score", "nowhere.jsonl", "--model", "nothing", "--output", str(tmp_path)])
    assert "is a directory" in " ".join(capsys.readouterr().err.split())


def test_a_file_that_is_no_model_is_called_so(tmp_path, capsys):
    (tmp_path / "x.jsonl").write_bytes(lines(GOOD))
    with pytest.raises(SystemExit):
        main(["inspect", "synthetic", "--model", str(tmp_path / "x.jsonl")])
    assert "the file is not a model" in " ".join(capsys.readouterr().err.split())


def test_scores_do_not_replace_the_file_that_is_read(tmp_path, capsys):
    path = tmp_path / "x.jsonl"
    path.write_bytes(lines(GOOD))
    with pytest.raises(SystemExit):
        main(["score", str(path), "--model", "nothing", "--output", str(path)])
    assert "the file that is read" in " ".join(capsys.readouterr().err.split())
    assert path.read_bytes() == lines(GOOD)


def test_an_export_does_not_replace_a_run(tmp_path, capsys):
    (tmp_path / "contract.json").write_text("{}")
    with pytest.raises(SystemExit):
        main(["export", str(tmp_path), str(tmp_path)])
    assert "holds a run" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "config.json").exists()
