import dataclasses

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st

from rmjax.errors import DataError
from rmjax.tokenizer import ByteTokenizer, Tokenizer, load_tokenizer
from tests.models.model_files import qwen2_tokenizer

BYTES = ByteTokenizer()
QWEN2 = qwen2_tokenizer()
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
written = st.lists(st.sampled_from(["<|bos|>", "<|eos|>", "<|", "eos", "|>", "é", " "]), max_size=8).map("".join)


@given(texts)
def test_bytes_are_the_ids_and_come_back(text):
    ids = BYTES.encode(text, specials=False)
    assert ids == list(text.encode())
    assert BYTES.decode(ids) == text


@given(written)
def test_special_strings_are_tokens_only_where_they_are_meant(text):
    as_tokens, as_text = BYTES.encode(text), BYTES.encode(text, specials=False)
    count = sum(text.count(special) for special in BYTES.special_strings)
    assert sum(i >= 256 for i in as_tokens) == count
    assert as_text == list(text.encode())
    assert BYTES.decode(as_tokens) == BYTES.decode(as_text) == text


@pytest.mark.parametrize("specials", [True, False])
@given(st.lists(texts | written, max_size=5))
def test_a_batch_is_its_texts_one_by_one(specials, many):
    assert QWEN2.encode_batch(many, specials) == [QWEN2.encode(text, specials) for text in many]


def test_a_rendered_turn_is_read_as_tokens():
    chatty = dataclasses.replace(QWEN2, chat_template="<|im_start|>{{ messages[0].content }}<|im_end|>")
    ids = chatty.encode(chatty.render([{"role": "user", "content": "it is"}]))
    assert [ids[0], ids[-1]] == [QWEN2.special_strings["<|im_start|>"], QWEN2.special_strings["<|im_end|>"]]
    assert set(QWEN2.encode("<|im_end|>", specials=False)).isdisjoint(QWEN2.special_strings.values())


def test_no_template_is_an_error_that_says_what_to_do():
    with pytest.raises(DataError, match='template="raw"'):
        BYTES.render([{"role": "user", "content": "Hi"}])


def test_limits_of_somebody_elses_training_do_not_cut_texts():
    backend = tokenizers.Tokenizer.from_str(BYTES.backend.to_str())
    backend.enable_truncation(3)
    backend.enable_padding(length=50)
    assert Tokenizer(backend).encode("seven bytes") == list(b"seven bytes")
    assert Tokenizer(backend).encode_batch(["a", "abcdef"]) == [[97], list(b"abcdef")]


def test_a_special_token_outside_the_vocabulary_is_refused():
    with pytest.raises(DataError, match="pad_token=<pad>"):
        dataclasses.replace(BYTES, special_tokens={"pad_token": "<pad>"})


def test_the_fingerprint_is_of_what_decides_ids_and_text_and_of_nothing_else(tmp_path):
    def changed(**fields) -> str:
        return dataclasses.replace(QWEN2, **fields).fingerprint()

    QWEN2.save(tmp_path)
    padded = tokenizers.Tokenizer.from_str(QWEN2.backend.to_str())
    padded.enable_padding()
    grown = tokenizers.Tokenizer.from_str(QWEN2.backend.to_str())
    grown.add_tokens(["water"])
    assert load_tokenizer(tmp_path).fingerprint() == changed() == changed(backend=padded) == QWEN2.fingerprint()
    others = [
        BYTES.fingerprint(),
        changed(backend=grown),
        changed(chat_template="{{ messages[0].content }}"),
        changed(special_tokens={}),
        changed(add_bos=True),
    ]
    assert len({QWEN2.fingerprint(), *others}) == 6


@pytest.fixture(scope="module")
def reloaded(tmp_path_factory):
    directory = tmp_path_factory.mktemp("tokenizer")
    QWEN2.save(directory)
    return load_tokenizer(directory)


@given(text=written | texts)
def test_a_saved_tokenizer_gives_the_same_ids(reloaded, text):
    assert reloaded.encode(text) == QWEN2.encode(text)
    assert reloaded.encode(text, specials=False) == QWEN2.encode(text, specials=False)


def test_special_ids_are_found_by_their_names():
    assert (BYTES.bos_id, BYTES.eos_id, BYTES.pad_id, BYTES.vocab_size) == (256, 257, None, 258)
    assert (QWEN2.bos_id, QWEN2.eos_id, QWEN2.pad_id) == (None, 2, 0)
