"""A study rehearsed on runs that are made up: they have the events that were asked for, and pass for no others."""

from dataclasses import replace
from pathlib import Path

import pytest
from small_study import STUDY

from grokscope.errors import InputError
from grokscope.runs.outcome import NOT_MEMORIZED
from grokscope.studies import made_up
from grokscope.studies.results import write_results


def test_runs_have_the_events_that_were_asked_for() -> None:
    evidence = made_up(STUDY, {"tiny": (3, 10), "*_x1": (None, None)})
    for record in evidence.records["tiny"].values():
        assert (record.timeline.memorized, record.timeline.grokked) == (3, 12)  # evaluated every 3 steps
        assert (record.outcome.memorized, record.outcome.grokked, record.outcome.ending) == (3, 12, "grokked")
    for record in evidence.records["forks"].values():
        assert record.evaluations["step"] == [6, 9, 12]
        assert (record.timeline.memorized, record.timeline.grokked, record.outcome.grokked) == (None, None, None)
        assert record.outcome.ending == NOT_MEMORIZED
    assert {name: len(runs) for name, runs in made_up(STUDY, {"*": (0, 0)}, 5).records.items()}["tiny"] == 5


def test_every_configuration_is_made_up_and_no_other() -> None:
    with pytest.raises(InputError, match="small has no configuration 'tniy'; did you mean 'tiny'"):
        made_up(STUDY, {"tniy": (3, 9), "*": (3, 9)})
    with pytest.raises(InputError, match="nothing is made up for the configuration 'tiny_x1'"):
        made_up(STUDY, {"tiny": (3, 9)})


def test_the_whole_page_is_rehearsed_and_does_not_look_like_one_of_runs(tmp_path: Path) -> None:
    study = replace(STUDY, limits=("Tiny runs.",))
    (row,) = write_results(study, made_up(study, {"*": (3, 9)}, norm=30.0), tmp_path)
    assert row["verdict"] == "reproduced"
    page = (tmp_path / "RESULTS.md").read_text(encoding="utf-8")
    assert "on no device, at commits `made up`" in page
    assert "## Limits\n\n- Tiny runs.\n" in page
    assert "| experiment | planned runs |" in page
    with pytest.raises(InputError, match="tab-norm of the study small failed: KeyError: 'norm'"):
        write_results(study, made_up(study, {"*": (3, 9)}), tmp_path)
