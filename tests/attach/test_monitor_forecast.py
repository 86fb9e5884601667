import pytest
import torch
from torch import nn

from grokscope.attach import Monitor
from grokscope.errors import InputError
from grokscope.forecast import forecast_fan
from grokscope.forecast.benchmark.causal import is_same
from grokscope.tasks import named_task


def monitor_of(rows: int) -> tuple[Monitor, nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(14, 32), nn.ReLU(), nn.Linear(32, 7))
    train = torch.arange(len(named_task("add_mod7").inputs)) < rows
    return (
        Monitor("add_mod7", measures=[], every=10, encode="one_hot", train=train),
        model,
        torch.optim.AdamW(model.parameters()),
    )


def test_a_foreign_model_is_forecast_with_its_optimizers_settings() -> None:
    monitor, model, optimizer = monitor_of(30)
    with monitor.attach(model, optimizer):
        for step in range(0, 31):
            monitor.step(step)
    found = monitor.forecast(500)
    assert (found.step, found.horizon, found.tier) == (30, 500, 5)
    assert any(reason.startswith("λ = 0.01, fitted to") for reason in found.outside)
    assert monitor.forecast(500, weight_decay=1.0) != found
    fan = forecast_fan(monitor.prefix(), last=530)
    assert is_same(fan.now, found)
    assert fan.advice.sentence == "go on: unlike the runs that the forecaster was fitted to"


def test_a_forecast_needs_an_evaluation() -> None:
    with pytest.raises(InputError, match="needs an evaluation"):
        monitor_of(30)[0].forecast()
