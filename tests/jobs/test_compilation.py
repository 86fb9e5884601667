"""Which steps are compiled: a function of model and batch, and of nothing that a person changes to train for longer."""

from pathlib import Path

import pytest

from grokscope.jobs import compilation
from grokscope.jobs.compilation import Compilation, compilation_of, plain_steps
from grokscope.specs import RunSpec
from grokscope.training import cohort_key
from short_runs import tiny


@pytest.mark.parametrize("changes", [{"steps": 100}, {"steps": 10**6}, {"weight_decay": 3.0}, {"learning_rate": 0.1}])
def test_only_model_and_batch_decide(changes: dict[str, float]) -> None:
    spec = RunSpec("add_mod97")
    assert compilation_of(spec.with_values(changes), "cpu", None) == compilation_of(spec, "cpu", None)
    for larger in ({"width": 256}, {"layers": 4}, {"batch_size": 2048}):
        assert plain_steps(cohort_key(spec.with_values(larger))) < plain_steps(cohort_key(spec))


def test_an_evaluation_is_computed_as_the_step_that_led_to_it() -> None:
    found = Compilation(None, start=5)
    assert [found.after(step) for step in (0, 4, 5, 6)] == [False, False, True, True]
    assert [found.until(step) for step in (0, 5, 6)] == [False, False, True]


@pytest.mark.parametrize("asked", [False, True])
def test_all_or_none_can_be_asked_for(asked: bool) -> None:
    assert {compilation_of(tiny(), "cpu", asked).after(step) for step in (0, 10**6)} == {asked}


def test_without_a_compiler_nothing_is_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", str(tmp_path / "none"))
    monkeypatch.setattr(compilation, "plain_steps", lambda key: 0)
    assert not compilation_of(tiny(), "cpu", None).after(0)
    assert compilation_of(tiny(), "cpu", True).after(0)
