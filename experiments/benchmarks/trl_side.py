"""The TRL side of `train_vs_trl.py`: runs in an environment of its own and prints seconds per step as JSON.

    python experiments/benchmarks/trl_side.py --model DIRECTORY --pairs pairs.jsonl --steps 4 --batch 8 --threads 2

Imports nothing of rmjax. The pairs are trained on in the order of the file.
"""

import argparse
import json
import tempfile
import time

import torch
import transformers
import trl
from datasets import load_dataset


class Clock(transformers.TrainerCallback):
    """Seconds of every optimiser step."""

    def __init__(self):
        self.seconds = []

    def on_step_begin(self, args, state, control, **kwargs):
        """Start."""
        self.start = time.perf_counter()

    def on_step_end(self, args, state, control, **kwargs):
        """Stop."""
        self.seconds.append(time.perf_counter() - self.start)


def main() -> None:
    """Train and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--pairs", required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--threads", type=int, required=True)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    transformers.logging.set_verbosity_error()
    dataset = load_dataset("json", data_files=options.pairs, split="train")
    clock = Clock()
    with tempfile.TemporaryDirectory() as scratch:
        config = trl.RewardConfig(
            output_dir=scratch,
            per_device_train_batch_size=options.batch,
            max_steps=options.steps,
            max_length=512,
            learning_rate=1e-5,
            bf16=False,
            gradient_checkpointing=False,
            train_sampling_strategy="sequential",
            use_cpu=True,
            report_to="none",
            save_strategy="no",
            disable_tqdm=True,
            dataloader_pin_memory=False,
            model_init_kwargs={"dtype": "float32"},
        )
        trainer = trl.RewardTrainer(model=options.model, args=config, train_dataset=dataset, callbacks=[clock])
        trainer.train()
    rows = len(trainer.train_dataset)
    versions = {module.__name__: module.__version__ for module in (torch, transformers, trl)}
    print(json.dumps({"seconds": clock.seconds, "kept": rows, "given": len(dataset), "versions": versions}))


if __name__ == "__main__":
    main()
