"""Steering in Lightning and Hugging Face's Trainer: it sees loss and validation, and resumes from checkpoints."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).parents[1] / "attach"))

from own_models import pairs_of

from grokscope import InputError, Steering
from grokscope.attach.adapters import hugging_face_steering, lightning_steering
from grokscope.steering import FAST

pytestmark = [pytest.mark.interop, pytest.mark.filterwarnings("default")]
EVERY = replace(FAST.release, every=4)


def lightning_run(folder: Path, steps: int, resume: bool = False, metric: str = "val_accuracy") -> Steering:
    import lightning.pytorch as pl
    from torch.utils.data import DataLoader, TensorDataset

    class Module(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Sequential(nn.Embedding(8, 8), nn.Flatten(), nn.Linear(24, 16), nn.ReLU(), nn.Linear(16, 7))

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            return nn.functional.cross_entropy(self.net(batch[0]), batch[1])

        def validation_step(self, batch: Any, batch_idx: int) -> None:
            self.log("val_accuracy", 0.5 if self.global_step < 16 else 0.97)

        def configure_optimizers(self) -> Any:
            return Steering(self, release=EVERY)

    pl.seed_everything(0, verbose=False)
    tokens, answers, _ = pairs_of("add_mod7")
    module = Module()
    loader = DataLoader(TensorDataset(tokens, answers), batch_size=8)
    trainer = pl.Trainer(
        max_steps=steps, callbacks=[lightning_steering(metric)], accelerator="cpu", logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    trainer.fit(module, loader, loader, ckpt_path=str(folder / "last.ckpt") if resume else None)
    trainer.save_checkpoint(folder / "last.ckpt")
    (found,) = trainer.optimizers
    return found


def test_lightning_gives_loss_and_validation_and_resumes(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    (tmp_path / "broken").mkdir()
    whole = lightning_run(tmp_path / "whole", 24)
    assert [row["step"] for row in whole.log] == [4, 8, 12, 16, 20, 24]
    assert all(row["train_loss"] > 0 for row in whole.log)
    assert whole.decisions[0]["why"] == "validation accuracy says that it has generalised"
    lightning_run(tmp_path / "broken", 9)
    resumed = lightning_run(tmp_path / "broken", 24, resume=True)
    assert resumed.decisions == whole.decisions
    assert [row["step"] for row in resumed.log] == [row["step"] for row in whole.log]


def test_lightning_names_a_metric_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no metric is called 'val_acuracy'; did you mean 'val_accuracy'"):
        lightning_run(tmp_path, 8, metric="val_acuracy")


def hugging_face_run(folder: Path, steps: int, resume: bool = False) -> Steering:
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

    class AnswerTrainer(Trainer):
        def compute_loss(self, model: Any, inputs: Any, return_outputs: bool = False, **more: Any) -> Any:
            outputs = model(input_ids=inputs["input_ids"])
            loss = nn.functional.cross_entropy(outputs.logits[:, -1], inputs["labels"])
            return (loss, outputs) if return_outputs else loss

        def evaluate(self, *arguments: Any, **more: Any) -> dict[str, float]:
            metrics = {"eval_accuracy": 0.5 if self.state.global_step < 10 else 0.97}
            self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
            return metrics

    tokens, answers, _ = pairs_of("add_mod7")
    rows = [{"input_ids": one, "labels": answer} for one, answer in zip(tokens, answers, strict=True)]
    torch.manual_seed(0)
    model = GPT2LMHeadModel(
        GPT2Config(vocab_size=8, n_positions=3, n_embd=16, n_layer=1, n_head=2, bos_token_id=7, eos_token_id=7)
    )
    steering = Steering(model, release=EVERY)
    trainer = AnswerTrainer(
        model=model,
        args=TrainingArguments(
            output_dir=str(folder), max_steps=steps, per_device_train_batch_size=8, logging_steps=2, eval_steps=5,
            eval_strategy="steps", save_steps=steps, report_to=[], disable_tqdm=True, use_cpu=True,
            remove_unused_columns=False,
        ),
        train_dataset=rows,
        eval_dataset=rows,
        optimizers=(steering, None),
        callbacks=[hugging_face_steering(steering, "eval_accuracy")],
    )  # fmt: skip
    trainer.train(resume_from_checkpoint=resume)
    return steering


def test_hugging_face_gives_loss_and_validation_and_resumes(tmp_path: Path) -> None:
    whole = hugging_face_run(tmp_path / "whole", 16)
    assert [row["step"] for row in whole.log] == [4, 8, 12, 16]
    assert all(row["train_loss"] > 0 for row in whole.log)
    assert [one["step"] for one in whole.decisions] == [12]
    hugging_face_run(tmp_path / "broken", 6)
    resumed = hugging_face_run(tmp_path / "broken", 16, resume=True)
    assert [one["step"] for one in resumed.decisions] == [12]
    assert [row["step"] for row in resumed.log] == [4, 8, 12, 16]


def test_what_is_no_steering_is_rejected() -> None:
    with pytest.raises(InputError, match="steering must be a Steering, got Linear"):
        hugging_face_steering(nn.Linear(1, 1))
