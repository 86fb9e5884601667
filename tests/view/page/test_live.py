"""Updates while runs train."""

import json
from math import nan
from pathlib import Path
from typing import Any

from page_runs import EVALUATION, TINY, facts

from grokscope.runs import Store
from grokscope.runs.outcome import RunOutcome
from grokscope.view.page.live import Watch


def sent(watch: Watch, name: str) -> list[Any]:
    watch.wait_until = 0.0
    found = [json.loads(content) for event, content in watch.news() if event == name]
    return found[0] if found else []


def test_a_watcher_sends_everything_once_and_then_what_is_new(store: Path) -> None:
    run = Store(store).add(TINY.with_seed(1))
    run.append({"step": 0, **EVALUATION})
    watch = Watch(store)
    assert len(facts(sent(watch, "all"))["rows"]) == 2  # type: ignore[arg-type]
    assert watch.news() == []
    run.append({"step": 2, **EVALUATION, "fsd": nan})
    (news,) = sent(watch, "more")
    assert (news["keep"], news["evaluations"]["step"], news["evaluations"]["fsd"]) == (1, [2], [None])
    assert news["row"]["last"] == 2
    run.rewind(-1)
    assert sent(watch, "more")[0]["keep"] == 0
    run.append({"step": 0, **EVALUATION, "fsd": 0.7})
    assert sent(watch, "more")[0]["evaluations"]["fsd"] == [0.7]
    run.finish(RunOutcome("never"))
    assert facts(sent(watch, "all"))["rows"][1]["finished"]  # type: ignore[arg-type]


def test_a_watcher_of_an_empty_folder_waits(tmp_path: Path) -> None:
    watch = Watch(tmp_path)
    assert watch.news() == []
    Store(tmp_path).add(TINY)
    assert facts(sent(watch, "all"))["lengths"] == [0]  # type: ignore[arg-type]


def test_progress_is_sent_when_it_changes(tmp_path: Path) -> None:
    run = Store(tmp_path).add(TINY)
    run.append({"step": 0, **EVALUATION})
    watch = Watch(tmp_path)
    first = sent(watch, "progress")
    assert (first["share"], first["runs"], first["ended"]) == (0, 1, 0)  # type: ignore[call-overload]
    watch.progress_at = 0.0
    assert sent(watch, "progress") == []
    run.append({"step": 2, **EVALUATION})
    watch.progress_at = 0.0
    assert sent(watch, "progress")["share"] == 0.5  # type: ignore[call-overload]
    run.finish(RunOutcome("never"))
    watch.progress_at = 0.0
    ended = sent(watch, "progress")
    assert (ended["share"], ended["rate"], ended["ended"]) == (1, None, 1)  # type: ignore[call-overload]
