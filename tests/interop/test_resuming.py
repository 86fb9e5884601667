"""Training stopped in the middle of a raised decay and resumed by the framework equals training that did not stop."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).parents[1] / "attach"))

from own_models import pairs_of

from grokscope import InputError, Monitor
from grokscope.attach.adapters import hugging_face_callback, lightning_callback, nnsight_site
from grokscope.runs import Store
from grokscope.specs import ClosedLoop, Trigger

pytestmark = [pytest.mark.interop, pytest.mark.filterwarnings("default")]
SITE = "transformer.h.0.mlp.act"
BUMP = Trigger("step", at_least=6, weight_decay=4.0)
LOOP = ClosedLoop(train_accuracy=0.01, train_loss=2.05, factor=2.0, restore_after_grokking=False)


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def gpt2() -> Any:
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    size = {"n_positions": 3, "n_embd": 8, "n_layer": 1, "n_head": 2}
    return GPT2LMHeadModel(GPT2Config(vocab_size=8, bos_token_id=7, eos_token_id=7, **size))


def trainer(folder: Path, callbacks: list[Any], steps: int = 18, **arguments: Any) -> Any:
    """A Trainer of a tiny GPT-2 that saves every third step."""
    from transformers import Trainer, TrainingArguments

    class AnswerTrainer(Trainer):
        def compute_loss(self, model: nn.Module, inputs: Any, return_outputs: bool = False, **more: Any) -> Any:
            logits = model(input_ids=inputs["input_ids"]).logits[:, -1]
            return nn.functional.cross_entropy(logits, inputs["labels"])

    tokens, answers, _ = pairs_of("add_mod7")
    data = [{"input_ids": row, "labels": answer} for row, answer in zip(tokens, answers, strict=True)]
    given = {
        "max_steps": steps,
        "per_device_train_batch_size": 8,
        "learning_rate": 3e-3,
        "lr_scheduler_type": "constant",
        "weight_decay": 1.0,
        "use_cpu": True,
        "save_strategy": "steps",
        "save_steps": 3,
        "report_to": [],
        "disable_tqdm": True,
        "logging_strategy": "no",
        "dataloader_pin_memory": False,
    }
    settings = TrainingArguments(output_dir=str(folder), **(given | arguments))
    return AnswerTrainer(model=gpt2(), args=settings, train_dataset=data, callbacks=callbacks)


def watching(rule: Any = BUMP, **given: Any) -> tuple[Monitor, Any]:
    monitor = Monitor("add_mod7", [SITE], every=3, train=pairs_of("add_mod7")[2], **given)
    options = {"hold": 9} if isinstance(rule, Trigger) else {}
    return monitor, hugging_face_callback(monitor, rule, **options)


def weights_of(one: Any) -> dict[str, torch.Tensor]:
    return one.model.state_dict()


@pytest.mark.parametrize("by_the_library", [False, True], ids=["resume alone", "restore_callback_states"])
@pytest.mark.parametrize("rule", [BUMP, LOOP], ids=["bump and hold", "closed loop"])
def test_hugging_face_resumes_log_decay_and_restore_step(tmp_path: Path, rule: Any, by_the_library: bool) -> None:
    whole, unstopped = watching(rule, out=tmp_path / "whole_runs")
    straight = trainer(tmp_path / "whole", [unstopped])
    straight.train()
    changes = [(row["step"], row["was"], row["weight_decay"]) for row in unstopped.controller.log]
    if rule is BUMP:
        assert changes == [(6, 1.0, 4.0), (15, 4.0, 1.0)]
    assert any(step > 9 for step, *_ in changes), "something is decided after the stop"

    _, begun = watching(rule, out=tmp_path / "runs")
    trainer(tmp_path / "parts", [begun], steps=12).train()  # goes on beyond the checkpoint that is resumed
    resumed, continued = watching(rule, out=tmp_path / "runs")
    second = trainer(tmp_path / "parts", [continued], restore_callback_states_from_checkpoint=by_the_library)
    second.train(resume_from_checkpoint=str(tmp_path / "parts" / "checkpoint-9"))
    assert resumed.log == whole.log
    assert continued.controller.log == unstopped.controller.log
    assert continued.controller.start == 1.0
    groups = [[g["weight_decay"] for g in one.optimizer.param_groups] for one in (straight, second)]
    assert groups[0] == groups[1]
    assert 0.0 in groups[0]
    assert all(torch.equal(value, weights_of(second)[name]) for name, value in weights_of(straight).items())
    logs = [next(iter(Store(tmp_path / place))).log() for place in ("whole_runs", "runs")]
    assert logs[0] == logs[1]


def test_hugging_face_trains_bit_identically_with_the_callback(tmp_path: Path) -> None:
    alone = trainer(tmp_path / "alone", [], steps=9)
    alone.train()
    monitor = Monitor("add_mod7", [SITE], every=3)
    watched = trainer(tmp_path / "watched", [hugging_face_callback(monitor)], steps=9)
    watched.train()
    assert [row["step"] for row in monitor.log] == [0, 3, 6, 9]
    assert all(torch.equal(value, weights_of(watched)[name]) for name, value in weights_of(alone).items())


def test_a_monitor_that_joins_at_a_checkpoint_begins_there(tmp_path: Path) -> None:
    trainer(tmp_path, [], steps=6).train()
    monitor, callback = watching()
    trainer(tmp_path, [callback], steps=12).train(resume_from_checkpoint=True)
    assert [row["step"] for row in monitor.log] == [6, 9, 12]


def test_two_monitors_of_one_training_keep_their_own_logs(tmp_path: Path) -> None:
    def both() -> list[Monitor]:
        return [Monitor("add_mod7", [SITE], every=3, position=position) for position in (1, -1)]

    first = both()
    trainer(tmp_path, [hugging_face_callback(one) for one in first], steps=6).train()
    second = both()
    callbacks = [hugging_face_callback(one) for one in second]
    trainer(tmp_path, callbacks, steps=9).train(resume_from_checkpoint=True)
    for before, after in zip(first, second, strict=True):
        assert after.log[:3] == before.log
        assert len(after.log) == 4
    assert second[0].log[0]["answer_share"] != second[1].log[0]["answer_share"]
    with pytest.raises(InputError, match=r"two callbacks are called 'GrokscopeCallback: add_mod7 at .*; give one"):
        trainer(tmp_path, [hugging_face_callback(Monitor("add_mod7", [SITE])) for _ in range(2)]).train()


def test_another_monitors_state_is_not_taken_and_that_is_reported(tmp_path: Path) -> None:
    trainer(tmp_path, [watching()[1]], steps=6).train()
    other = Monitor("add_mod7", ["transformer.ln_f"], every=3)
    with pytest.warns(UserWarning, match="the checkpoint has no .* at transformer.ln_f, .* begins anew"):
        trainer(tmp_path, [hugging_face_callback(other)], steps=9).train(resume_from_checkpoint=True)
    assert [row["step"] for row in other.log] == [6, 9]


def test_mixed_precision_of_the_trainer_does_not_reach_what_is_read(tmp_path: Path) -> None:
    monitor = Monitor("add_mod7", [SITE], every=3)
    run = trainer(tmp_path, [hugging_face_callback(monitor)], steps=3, bf16=True, save_strategy="no")
    run.train()
    model = gpt2()
    model.load_state_dict(weights_of(run))
    assert Monitor("add_mod7", [SITE]).evaluate(model, 3) == {
        name: value for name, value in monitor.log[-1].items() if name != "weight_decay"
    }
    assert "autocast" in repr(vars(run.model)["forward"]) or hasattr(run.model.forward, "__wrapped__")


# Lightning


def lightning_fit(folder: Path, steps: int, callbacks: list[Any], resume: bool = False, **given: Any) -> Any:
    import lightning.pytorch as pl
    from torch.utils.data import DataLoader, TensorDataset

    class Module(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            layers = (nn.Embedding(8, 8), nn.Flatten(), nn.Linear(24, 16), nn.ReLU(), nn.Linear(16, 7))
            self.net = nn.Sequential(*layers)

        def forward(self, tokens: Any) -> Any:
            return self.net(tokens)

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            return nn.functional.cross_entropy(self(batch[0]), batch[1])

        def configure_optimizers(self) -> Any:
            biases = [p for p in self.parameters() if p.ndim == 1]
            weights = [p for p in self.parameters() if p.ndim > 1]
            return torch.optim.AdamW([{"params": weights}, {"params": biases, "weight_decay": 0.0}], weight_decay=1.0)

    pl.seed_everything(0, verbose=False)
    # All pairs in one batch: Lightning itself does not go on with the same batch after a checkpoint within an epoch.
    tokens, answers, _ = pairs_of("add_mod7")
    module = Module()
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    fit = pl.Trainer(
        max_steps=steps, callbacks=callbacks, accelerator="cpu", enable_checkpointing=False, **quiet, **given
    )
    path = str(folder / "last.ckpt") if resume else None
    fit.fit(
        module,
        DataLoader(TensorDataset(tokens, answers), batch_size=24),
        ckpt_path=path,
        weights_only=True if resume else None,
    )
    fit.save_checkpoint(folder / "last.ckpt")
    return fit, module


def lightning_pair(position: int = -1) -> tuple[Monitor, Any]:
    monitor = Monitor("add_mod7", ["net.3"], every=3, position=position, train=pairs_of("add_mod7")[2])
    return monitor, lightning_callback(monitor, BUMP, hold=9)


def test_lightning_resumes_a_held_decay_bit_for_bit_and_from_plain_values(tmp_path: Path) -> None:
    whole, unstopped = lightning_pair()
    _, straight = lightning_fit(tmp_path, 18, [unstopped])
    _, begun = lightning_pair()
    lightning_fit(tmp_path, 9, [begun])
    resumed, continued = lightning_pair()
    fit, module = lightning_fit(tmp_path, 18, [continued], resume=True)
    assert resumed.log == whole.log
    assert continued.controller.log == unstopped.controller.log
    assert [row["step"] for row in continued.controller.log] == [6, 15]
    assert [group["weight_decay"] for group in fit.optimizers[0].param_groups] == [1.0, 0.0]
    assert all(torch.equal(value, module.state_dict()[name]) for name, value in straight.state_dict().items())


def test_lightning_keeps_two_monitors_apart(tmp_path: Path) -> None:
    def both() -> list[Any]:
        monitors = [Monitor("add_mod7", [site], every=3) for site in ("net.3", "net.4")]
        return [*monitors, lightning_callback(monitors[0]), lightning_callback(monitors[1], prefix="head")]

    first, second = both(), both()
    lightning_fit(tmp_path, 6, first[2:])
    fit, _ = lightning_fit(tmp_path, 9, second[2:], resume=True)
    for before, after in zip(first[:2], second[:2], strict=True):
        assert after.log[:3] == before.log
    logged = [float(fit.callback_metrics[name]) for name in ("grokscope/fsd", "head/fsd")]
    assert logged == pytest.approx([monitor.log[-1]["fsd"] for monitor in second[:2]])
    assert logged[0] != logged[1]


def test_lightning_is_not_given_two_monitors_under_one_name(tmp_path: Path) -> None:
    monitors = [Monitor("add_mod7", [site], every=3) for site in ("net.3", "net.4")]
    with pytest.raises(InputError, match="two monitors of one trainer would log under 'mlp': give each"):
        lightning_fit(tmp_path, 3, [lightning_callback(monitor, prefix="mlp") for monitor in monitors])
    with pytest.raises(InputError, match="prefix must be a name to log under, got ''"):
        lightning_callback(monitors[0], prefix="")


def test_lightning_tells_two_monitors_of_one_place_apart_by_their_prefix(tmp_path: Path) -> None:
    monitors = [Monitor("add_mod7", ["net.3"], every=every) for every in (1, 3)]
    lightning_fit(tmp_path, 3, [lightning_callback(one, prefix=f"every-{one.every}") for one in monitors])
    assert [len(one.log) for one in monitors] == [4, 2]


def test_training_that_is_taken_up_again_in_one_process_keeps_the_decay_to_return_to(tmp_path: Path) -> None:
    monitor, callback = lightning_pair()
    fit, module = lightning_fit(tmp_path, 9, [callback])
    assert callback.controller.weight_decay == 4.0
    before = callback.controller
    callback.on_train_start(fit, module)  # what a second fit with the same optimiser does
    assert callback.controller is not before
    assert callback.controller.start == 1.0
    assert callback.controller.log == before.log
    assert len(monitor.log) == 4


# Wrappers of others.


def test_fabrics_and_nnsights_wrappers_are_read_inside() -> None:
    import nnsight
    from lightning.fabric import Fabric

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(14, 16), nn.ReLU(), nn.Linear(16, 7))
    monitor = Monitor("add_mod7", "1", encode="one_hot")
    plain = monitor.evaluate(model)
    assert monitor.evaluate(nnsight.NNsight(model)) == plain
    fabric = Fabric(accelerator="cpu", precision="bf16-mixed")
    wrapped, _ = fabric.setup(model, torch.optim.AdamW(model.parameters()))
    assert monitor.evaluate(wrapped) == plain


def test_nnsight_leaves_nothing_in_the_model_that_it_read() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(14, 16), nn.ReLU(), nn.Linear(16, 7))
    before = [dict(vars(module)) for module in model.modules()]
    monitor = Monitor("add_mod7", ["1", nnsight_site(lambda traced: traced[1].output)], encode="one_hot", chunk=20)
    row = monitor.evaluate(model)
    assert row["fsd"] == row["fsd@nnsight"]
    assert before == [vars(module) for module in model.modules()]
