"""A file of a few preferences, and a run on it that takes seconds."""

import json

import numpy as np

from rmjax.data.buckets import PackSpec
from rmjax.data.contract import TextContract
from rmjax.train import DataConfig, TrainConfig


def write_votes(path, prompts=16, ties=0, seed=0):
    """Two answers to every prompt, with votes of several annotators; `ties` of them on the first pair say neither."""
    rng = np.random.default_rng(seed)
    with path.open("w") as file:
        for prompt in range(prompts):
            texts = ["".join(rng.choice(list("abcdef "), size)) for size in rng.integers(6, 22, 3)]
            votes = {"a": int(rng.integers(1, 10)), "b": int(rng.integers(0, 3)), "tie": ties * (prompt == 0)}
            row = {"prompt": f"{prompt} {texts[0]}", "a": f"x{texts[1]}", "b": f"y{texts[2]}", "votes": votes}
            file.write(json.dumps(row) + "\n")
    return path


def small_run(folder, file, **changes):
    """One shape of two rows."""
    data = DataConfig(path=str(file), held_out=0.25, ties=changes.pop("ties", None))
    defaults = {"output": str(folder), "max_steps": 2, "text": TextContract(max_length=64)}
    defaults["packing"] = PackSpec(lengths=(64,), tokens_per_micro_batch=128)
    return TrainConfig(data=data, **(defaults | changes))
