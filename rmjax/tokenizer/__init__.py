"""From text to token ids, and from messages to text."""

from rmjax.tokenizer.chat_template import render_chat
from rmjax.tokenizer.gguf_vocabulary import from_gguf
from rmjax.tokenizer.tokenizer import ByteTokenizer, Tokenizer
from rmjax.tokenizer.tokenizer_files import load_tokenizer

__all__ = ["ByteTokenizer", "Tokenizer", "from_gguf", "load_tokenizer", "render_chat"]
