import hashlib
import json
import unicodedata

import pytest

from rmjax.errors import CheckpointError
from rmjax.models.gguf_format import GGUFFile
from rmjax.tokenizer import from_gguf
from tests.models.model_files import GOLDEN, qwen2_tokenizer, smollm2

TEXTS = json.loads((GOLDEN / "mixed_texts.json").read_text("utf-8"))
CHATS = json.loads((GOLDEN / "chats.json").read_text("utf-8"))
TINY = {
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "smollm",
    "tokenizer.ggml.tokens": ["<|end|>", "<tool>", "1", "2", "12", "a"],
    "tokenizer.ggml.token_type": [3, 4, 1, 1, 1, 1],
    "tokenizer.ggml.merges": ["1 2"],
}


@pytest.fixture(scope="module")
def smol():
    return from_gguf(GGUFFile(smollm2()).metadata)


def test_qwen2_gives_the_ids_of_transformers():
    golden = json.loads((GOLDEN / "qwen2_tokenizer.json").read_text("utf-8"))["ids"]
    assert qwen2_tokenizer().encode_batch(TEXTS) == golden


def test_smollm2_gives_the_ids_of_transformers(smol):
    """But for numerals outside 0 to 9: transformers reads the file without the rule that it names."""
    golden = json.loads((GOLDEN / "smollm2_tokenizer.json").read_text("utf-8"))
    compared = 0
    for text, ours, theirs in zip(TEXTS, smol.encode_batch(TEXTS), golden["ids"], strict=True):
        if all(character.isascii() or unicodedata.category(character)[0] != "N" for character in text):
            assert ours == theirs
            compared += 1
    assert compared == len(TEXTS) - 1


def test_smollm2_renders_the_chats_of_transformers(smol):
    golden = json.loads((GOLDEN / "smollm2_tokenizer.json").read_text("utf-8"))
    rendered = [smol.render(messages) for messages in CHATS["messages"]]
    assert [hashlib.sha256(text.encode()).hexdigest() for text in rendered] == golden["chat_sha256"]
    assert smol.encode_batch(rendered) == golden["chat_ids"]


def test_smollm2_reads_its_turns_as_tokens_and_decodes_every_text(smol):
    assert (smol.bos_id, smol.eos_id, smol.pad_id, smol.add_bos, smol.vocab_size) == (1, 2, 2, False, 49152)
    assert smol.encode("<|im_start|>a<|im_end|>")[::2] == [1, 2]
    for text in TEXTS:
        assert smol.decode(smol.encode(text)) == smol.decode(smol.encode(text, specials=False)) == text


def test_llama_3_takes_numerals_by_threes_words_that_are_tokens_whole_and_begins_with_bos():
    tokens = ["<|begin|>", "1", "2", "12", "122", "a", "b", "c", "ab", "abc"]
    metadata = {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "llama-bpe",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [3, *[1] * 9],
        "tokenizer.ggml.merges": ["1 2", "12 2", "a b"],
        "tokenizer.ggml.bos_token_id": 0,
    }
    llama = from_gguf(metadata)
    assert llama.encode("1221221") == [4, 4, 1]
    assert llama.encode("abc") == [9]
    assert llama.add_bos
    other = from_gguf(metadata | {"tokenizer.ggml.pre": "qwen2"})
    assert other.encode("abc") == [8, 7]
    assert not other.add_bos


@pytest.mark.parametrize("pre", ["smollm", "qwen2"])
def test_digits_stand_alone_even_where_the_vocabulary_could_merge_them(pre):
    assert from_gguf({**TINY, "tokenizer.ggml.pre": pre}).encode("a12") == [5, 2, 3]


def test_numerals_of_every_script_stand_alone_as_the_format_says(smol):
    for text in (" Ⅷ", "a½", "²²", "٣٤", "x３"):
        assert smol.encode(text) == [i for character in text for i in smol.encode(character)]


def test_control_tokens_are_special_and_a_users_tokens_are_text():
    tokenizer = from_gguf(TINY)
    assert tokenizer.special_strings == {"<|end|>": 0}
    assert tokenizer.encode("<tool>a<|end|>") == [1, 5, 0]
    assert tokenizer.encode("<tool>a<|end|>", specials=False)[:2] == [1, 5]


@pytest.mark.parametrize("change", [{"pre": "chatglm-bpe"}, {"pre": None}, {"model": "llama"}, {"model": None}])
def test_rules_that_are_not_proven_are_refused_by_name(change):
    key, value = next((f"tokenizer.ggml.{k}", v) for k, v in change.items())
    with pytest.raises(CheckpointError, match=f"{key}={value}"):
        from_gguf({**TINY, key: value})


def test_add_bos_needs_a_bos():
    assert not from_gguf({**TINY, "tokenizer.ggml.add_bos_token": True}).add_bos
    assert from_gguf({**TINY, "tokenizer.ggml.add_bos_token": True, "tokenizer.ggml.bos_token_id": 0}).add_bos


@pytest.mark.parametrize("change", [{"tokenizer.ggml.merges": ["1 3"]}, {"tokenizer.ggml.tokens": ["a", "b"]}])
def test_a_vocabulary_that_lacks_what_it_merges_is_damage(change):
    with pytest.raises(CheckpointError, match="incomplete"):
        from_gguf({**TINY, **change})
    with pytest.raises(CheckpointError, match="incomplete"):
        from_gguf({key: value for key, value in TINY.items() if key not in change})
