"""Where watched runs are heading."""

import time
from pathlib import Path
from statistics import fmean
from unittest.mock import patch

from watched_runs import shown, written

from grokscope.cli import ahead
from grokscope.cli.watcher import Watcher
from grokscope.forecast import forecast_fan, forecast_to, run_prefix
from grokscope.runs import Store
from grokscope.runs.outcome import RunOutcome
from grokscope.specs import RunSpec

LAST = RunSpec().training.steps


def evaluation(step: int, speed: float = 1.0, validation: float = 0.05) -> dict[str, float]:
    known = {"train_accuracy": float(step > 200), "train_loss": 0.01, "fsd": 0.1, "norm": 60.0}
    return {"step": step, "validation_accuracy": validation, "validation_loss": 6 - speed * step / 2000, **known}


def test_a_group_has_the_mean_probability_and_the_middle_of_its_runs_steps(tmp_path: Path) -> None:
    runs = [Store(tmp_path).add(RunSpec().with_seed(seed)) for seed in range(3)]
    for seed, run in enumerate(runs):
        written(run, time.time(), *(evaluation(step, seed) for step in range(0, 3001, 100)))
    (line,) = Watcher(tmp_path).snapshot().lines
    seen = [run_prefix(run.record().spec, run.record().evaluations) for run in runs]
    now = forecast_to(seen, [LAST - 3000] * 3)
    assert line.ahead is not None
    assert abs(line.ahead.probability - fmean(one.probability for one in now)) < 1e-9
    assert abs(line.ahead.middle - sorted(3000 + one.median for one in now)[1]) < 1e-6
    assert (line.ahead.runs, line.ahead.outside) == (3, 0)


def test_forecasts_continue_and_of_what_is_past_none_is_made_again(tmp_path: Path) -> None:
    run = Store(tmp_path).add(RunSpec())
    written(run, time.time(), *(evaluation(step) for step in range(0, 3001, 100)))
    watcher = Watcher(tmp_path)
    first = shown(watcher.snapshot())
    assert "forecast: runs, probability of grokking" in first
    asked: list[int] = []
    with patch.object(ahead, "forecast_fans", wraps=ahead.forecast_fans) as made:
        written(run, time.time(), *(evaluation(step) for step in range(3100, 4001, 100)))
        (line,) = watcher.snapshot().lines
        asked += [len(call.args[0]) for call in made.call_args_list]
        watcher.snapshot()
        assert [len(call.args[0]) for call in made.call_args_list] == [*asked, 0], "nothing is new"
    fan = forecast_fan(run_prefix(RunSpec(), run.record().evaluations), LAST)
    assert line.ahead is not None
    assert abs(line.ahead.probability - fan.now.probability) < 1e-9
    assert [one.step for one in watcher.forecasts.fans[run.name][1].forecasts] == [one.step for one in fan.forecasts]
    run.rewind(500)
    (line,) = watcher.snapshot().lines
    assert watcher.forecasts.fans[run.name][1].now.step == 500


def test_runs_that_could_be_stopped_are_counted_with_their_steps(tmp_path: Path) -> None:
    run, ended = (Store(tmp_path).add(RunSpec().with_seed(seed)) for seed in (0, 1))
    rows = [evaluation(step, validation=0.99 if step >= 1000 else 0.05) for step in range(0, 4001, 100)]
    written(run, time.time(), *rows)
    written(ended, time.time(), *rows)
    ended.finish(RunOutcome("grokked", grokked=1000))
    state = Watcher(tmp_path).snapshot()
    assert f"advice: stopping 1 of them now would save {LAST - 4000:,} steps" in shown(state)
    assert state.lines[0].ahead is not None
    assert state.lines[0].ahead.runs == 0
