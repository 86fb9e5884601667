"""A tiny GPT-2, trained by Hugging Face's Trainer and watched by a callback: addition mod 23.

python examples/hugging_face_gpt2.py --steps 200
"""

import argparse
import tempfile
from typing import Any

import torch
from torch import Tensor, nn
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

from grokscope import Monitor, named_task
from grokscope.attach.adapters import hugging_face_callback
from grokscope.specs import Trigger
from grokscope.tasks import split

SITE = "transformer.h.0.mlp.act"


class AnswerTrainer(Trainer):
    """Cross-entropy of the answer at the last position."""

    def compute_loss(self, model: nn.Module, inputs: Any, return_outputs: bool = False, **more: Any) -> Any:
        outputs = model(input_ids=inputs["input_ids"])
        loss = nn.functional.cross_entropy(outputs.logits[:, -1], inputs["labels"])
        return (loss, outputs) if return_outputs else loss


class Pairs(torch.utils.data.Dataset[dict[str, Tensor]]):
    """[a, b, sep] and the answer."""

    def __init__(self, tokens: Tensor, answers: Tensor) -> None:
        self.tokens, self.answers = tokens, answers

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, row: int) -> dict[str, Tensor]:
        return {"input_ids": self.tokens[row], "labels": self.answers[row]}


def main(steps: int = 200) -> Monitor:
    """Train, and print what was seen."""
    torch.manual_seed(0)
    task = named_task("add_mod23")
    rows = torch.tensor(split(task, 0.5, seed=0).train.copy())
    model = GPT2LMHeadModel(
        GPT2Config(vocab_size=24, n_positions=3, n_embd=32, n_layer=1, n_head=2, bos_token_id=23, eos_token_id=23)
    )

    monitor = Monitor("add_mod23", sites=[SITE], every=50, train=rows)
    callback = hugging_face_callback(monitor, rule=Trigger("step", at_least=100, weight_decay=3.0))
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            max_steps=steps,
            per_device_train_batch_size=64,
            learning_rate=1e-3,
            weight_decay=1.0,
            use_cpu=True,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            logging_strategy="no",
            dataloader_pin_memory=False,
        )
        data = Pairs(torch.tensor(task.tokens)[rows], torch.tensor(task.answers)[rows])
        AnswerTrainer(model=model, args=arguments, train_dataset=data, callbacks=[callback]).train()
    for row in monitor.log:
        print(
            f"step {row['step']:>5}  train {row['train_accuracy']:.2f}  FSD {row['fsd']:.2f}  λ {row['weight_decay']:g}"
        )
    for change in callback.controller.log:
        print(f"step {change['step']}: λ {change['was']:g} → {change['weight_decay']:g}, as {change['why']}")
    return monitor


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200)
    main(**vars(parser.parse_args()))
