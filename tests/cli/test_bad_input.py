"""What is wrong with a file is said by row and remedy, before anything is trained or written."""

import gzip
import json

import pytest

from rmjax.cli import main

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
        main(["train", "--data.path", str(path), "--output", str(tmp_path / "run"), "--data.ties", "None"])
    assert stopped.value.code == 2
    assert "ties=6" in "".join(capsys.readouterr().err.split())


def test_an_unknown_model_is_refused_with_what_there_is(capsys):
    with pytest.raises(SystemExit):
        main(["inspect", "synthetic", "--model", "no-such-model"])
    assert "smollm2-135m" in "".join(capsys.readouterr().err.split())
