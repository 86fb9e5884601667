"""`grokscope resume`: as the plan of a folder says."""

from pathlib import Path

import pytest
from small_commands import EXECUTORS, TINY, rejected, trained_here, words

from grokscope.cli import run
from grokscope.runs import Store, keep_plan, run_name
from grokscope.specs import Plan

pytestmark = pytest.mark.usefixtures("here", "in_process")


def test_resume_remembers_how_training_was_started(capsys: pytest.CaptureFixture[str]) -> None:
    keep_plan(Plan("runs", (TINY, TINY.with_seed(1)), keep="forks", measures=("fsd",)), Store("runs"))
    assert run(words("resume runs")) == 0
    folder = Store("runs").find(run_name(TINY))
    assert not folder.checkpoints("weights")
    assert [row["step"] for row in folder.log("measures")] == [0, 4, 8]
    capsys.readouterr()
    assert run(words("resume runs")) == 0
    assert capsys.readouterr().out == "every run in runs is finished\n"


def test_runs_without_a_plan_take_the_storage_options() -> None:
    Store("runs").add(TINY)
    assert run(words("resume runs --keep none --measures fsd")) == 0
    folder = Store("runs").find(run_name(TINY))
    assert not folder.checkpoints("weights")
    assert [row["step"] for row in folder.log("measures")] == [0, 4, 8]


def test_an_option_without_effect_is_rejected(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keep_plan(Plan("runs", (TINY,)), Store("runs"))
    sentence = "--keep, --measures would have no effect: a plan in runs names every unfinished run"
    rejected(words("resume runs --keep none --measures fsd"), sentence, here, capsys)
    rejected(words("resume runs --partition x"), "--partition has no effect with --executor local", here, capsys)
    rejected(words("resume rns"), "there is no folder 'rns'; did you mean 'runs'?", here, capsys)


def test_the_options_of_an_executor_reach_it(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, object]] = []

    def recorded(plan: Plan, report: object, **options: object) -> bool:
        seen.append(options)
        return trained_here(plan, lambda line: None)

    for name in ("run_locally", "run_on_ray"):
        monkeypatch.setattr(f"{EXECUTORS}.{name}", recorded)
    keep_plan(Plan("runs", (TINY,)), Store("runs"))
    assert run(words("resume runs --retries 7")) == 0
    assert seen == [{"retries": 7}]
    keep_plan(Plan("more", (TINY,)), Store("more"))
    assert run(words("resume more --executor ray --cluster head:6379 --runs-per-shard 2 --memory-gib 0.5")) == 0
    assert seen[1] == {"address": "head:6379", "runs_per_shard": 2, "memory": 2**29, "retries": 3}
