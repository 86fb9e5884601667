"""What each framework promises, kept with a monitor inside it."""

import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).parents[1] / "attach"))

from own_models import pairs_of

from grokscope import InputError, Monitor
from grokscope.attach.adapters import fsd_metric, lightning_callback
from grokscope.specs import Trigger

pytestmark = [pytest.mark.interop, pytest.mark.filterwarnings("default")]


def lightning_run(folder: Path, steps: int, callbacks: list[Any], resume: bool = False) -> Any:
    import lightning.pytorch as pl
    from torch.utils.data import DataLoader, TensorDataset

    class Module(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Sequential(
                nn.Embedding(8, 8), nn.Flatten(), nn.Linear(24, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 7)
            )

        def forward(self, tokens: Any) -> Any:
            return self.net(tokens)

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            return nn.functional.cross_entropy(self(batch[0]), batch[1])

        def configure_optimizers(self) -> Any:
            return torch.optim.AdamW(self.parameters(), weight_decay=1.0)

    pl.seed_everything(0, verbose=False)
    tokens, answers, _ = pairs_of("add_mod7")
    module = Module()
    trainer = pl.Trainer(
        max_steps=steps,
        callbacks=callbacks,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    path = str(folder / "last.ckpt") if resume else None
    trainer.fit(module, DataLoader(TensorDataset(tokens, answers), batch_size=8), ckpt_path=path)
    trainer.save_checkpoint(folder / "last.ckpt")
    return module.state_dict()


def watching() -> Any:
    monitor = Monitor("add_mod7", ["net.3"], every=3, train=pairs_of("add_mod7")[2])
    return monitor, lightning_callback(monitor, Trigger("step", at_least=6, weight_decay=4.0), hold=6)


def test_lightning_trains_bit_identically_with_the_callback(tmp_path: Path) -> None:
    monitor = Monitor("add_mod7", ["net.3"], every=3)
    alone = lightning_run(tmp_path, 12, [])
    watched = lightning_run(tmp_path, 12, [lightning_callback(monitor)])
    assert len(monitor.log) == 5
    assert all(torch.equal(value, watched[name]) for name, value in alone.items())


def test_lightnings_checkpoint_carries_log_and_controller(tmp_path: Path) -> None:
    whole, callback = watching()
    lightning_run(tmp_path, 15, [callback])
    assert [row["weight_decay"] for row in whole.log] == [1.0, 1.0, 1.0, 4.0, 4.0, 1.0]
    first, begun = watching()
    lightning_run(tmp_path, 9, [begun])
    second, continued = watching()
    lightning_run(tmp_path, 15, [continued], resume=True)
    assert [row["step"] for row in second.log] == [0, 3, 6, 9, 12, 15]
    assert [row["weight_decay"] for row in second.log] == [row["weight_decay"] for row in whole.log]
    assert second.log[: len(first.log)] == first.log
    assert continued.controller.log == callback.controller.log


def test_a_metric_rejects_what_it_cannot_add_and_forgets_at_reset() -> None:
    metric = fsd_metric("add_mod7", neurons=4)
    a, b = torch.arange(7), torch.zeros(7, dtype=torch.long)
    with pytest.raises(InputError, match=r"activations must be \[7, 4\], got \[7, 5\]"):
        metric.update(torch.zeros(7, 5), a, b)
    metric.update(torch.randn(7, 4, generator=torch.Generator().manual_seed(0)), a, b)
    assert 0 <= float(metric.compute()) <= 1
    metric.reset()
    metric.update(torch.randn(3, 4), a[:3], b[:3])
    assert metric.compute().isnan()  # answers that were not seen
    with pytest.raises(InputError, match="FSD needs a basis"):
        fsd_metric(max, neurons=4, symbols=7)


def test_a_transformer_lens_model_without_the_site_names_its_nearest_hooks() -> None:
    from transformer_lens.config import TransformerBridgeConfig
    from transformer_lens.model_bridge import TransformerBridge

    size = {"d_model": 8, "d_head": 4, "n_heads": 2, "n_layers": 1, "n_ctx": 3, "d_vocab": 8, "d_vocab_out": 7}
    model = TransformerBridge.boot_native(TransformerBridgeConfig(**size, d_mlp=16, act_fn="relu", seed=0))
    with pytest.raises(
        InputError, match=r"has no site 'blocks.1.mlp.hook_post'; the nearest are 'blocks.0.mlp.hook_po"
    ):
        Monitor("add_mod7", ["blocks.1.mlp.hook_post"]).check(model)
    before = {name: len(module._forward_hooks) for name, module in model.named_modules()}
    row = Monitor("add_mod7", ["blocks.0.mlp.hook_post", "blocks.0.attn.hook_z"]).evaluate(model)
    assert row["fsd"] == row["fsd"]
    assert before == {name: len(module._forward_hooks) for name, module in model.named_modules()}
