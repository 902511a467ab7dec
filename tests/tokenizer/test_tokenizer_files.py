import json

import pytest
from tokenizers import processors

from rmjax.errors import CheckpointError, DataError
from rmjax.tokenizer import ByteTokenizer, load_tokenizer


@pytest.fixture
def directory(tmp_path):
    ByteTokenizer().save(tmp_path)
    return tmp_path


def configure(directory, **config):
    (directory / "tokenizer_config.json").write_text(json.dumps(config), "utf-8")


def test_special_tokens_are_read_as_strings_as_objects_and_from_the_older_file(directory):
    plain = load_tokenizer(directory)
    configure(directory, bos_token={"content": "<|bos|>", "lstrip": False}, eos_token=None)
    (directory / "special_tokens_map.json").write_text(json.dumps({"pad_token": "<|eos|>", "bos_token": "x"}))
    mixed = load_tokenizer(directory)
    assert plain.special_tokens == {"bos_token": "<|bos|>", "eos_token": "<|eos|>"}
    assert mixed.special_tokens == {"bos_token": "<|bos|>", "pad_token": "<|eos|>"}
    (directory / "tokenizer_config.json").unlink()
    (directory / "special_tokens_map.json").unlink()
    assert load_tokenizer(directory).special_tokens == {}


@pytest.mark.parametrize("added", [None, False, True])
@pytest.mark.parametrize("processed", [False, True])
def test_whether_plain_text_begins_with_bos_is_asked_of_the_file_and_never_done(directory, added, processed):
    tokenizer = ByteTokenizer()
    if processed:
        tokenizer.backend.post_processor = processors.TemplateProcessing("<|bos|> $A", None, [("<|bos|>", 256)])
        tokenizer.backend.save(str(directory / "tokenizer.json"))
    configure(directory, bos_token="<|bos|>", **({} if added is None else {"add_bos_token": added}))
    loaded = load_tokenizer(directory)
    assert loaded.add_bos == (processed if added is None else added)
    assert loaded.encode("a") == [97]


def test_templates_of_their_own_file_win_and_named_ones_are_asked_for_by_name(directory):
    assert load_tokenizer(directory).chat_template is None
    named = [{"name": "default", "template": "one"}, {"name": "tool_use", "template": "two"}]
    configure(directory, chat_template=named)
    assert load_tokenizer(directory).chat_template == "one"
    assert load_tokenizer(directory, template="tool_use").chat_template == "two"
    (directory / "chat_template.jinja").write_text("three\n")
    (directory / "additional_chat_templates").mkdir()
    (directory / "additional_chat_templates" / "rag.jinja").write_text("four")
    assert load_tokenizer(directory).chat_template == "three\n"
    assert load_tokenizer(directory, template="rag").chat_template == "four"
    with pytest.raises(DataError, match="default, tool_use, rag"):
        load_tokenizer(directory, template="reward")


def test_several_templates_without_a_default_are_not_chosen_from(directory):
    configure(directory, chat_template=[{"name": "a", "template": "one"}, {"name": "b", "template": "two"}])
    with pytest.raises(DataError, match="a, b"):
        load_tokenizer(directory)


def test_no_file_and_a_damaged_file_are_told_apart(directory):
    (directory / "tokenizer.json").write_text("{}")
    with pytest.raises(CheckpointError, match="cannot be read"):
        load_tokenizer(directory)
    (directory / "tokenizer.json").unlink()
    with pytest.raises(CheckpointError, match=r"no tokenizer\.json"):
        load_tokenizer(directory)
