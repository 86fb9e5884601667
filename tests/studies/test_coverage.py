"""Coverage: what is said to be there is there, and a study that is half there does not look whole."""

from dataclasses import replace

import pytest
from lifelike import course, record

from grokscope.runs.outcome import RunOutcome
from grokscope.runs.records import RunRecord
from grokscope.specs import Seeds
from grokscope.studies import sources
from grokscope.studies.coverage import coverage_of, coverage_table
from grokscope.studies.sources import Scope
from grokscope.studies.synchronization.experiments import studies

SCOPE = Scope(n_seeds=6, precision="float32", quick=False)


def test_every_seed_that_was_run_is_counted_however_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "FEW_SEEDS", 4)
    runs = studies(["negatives"], 12)["negatives"]
    far = replace(runs["weak_decay_s42"], seeds=Seeds(10**6, 10**6, 10**6))
    records = [RunRecord(spec, RunOutcome(), {}, {}) for spec in (*runs.values(), far)]
    scope = sources.scope_of(records)
    assert scope["n_seeds"] is not None
    assert 12 <= scope["n_seeds"] < 100
    assert coverage_of(records, scope)["negatives"]["runs"] == len(runs)


def test_a_study_says_how_many_runs_and_seeds_it_has() -> None:
    planned = studies(["fork", "negatives"], 6)
    names = ["add_mod97_s42_x1", "add_mod97_s42_x2", "add_mod97_s0_x1", "add_mod97_s1_x1"]
    specs = {name: planned["fork"][name] for name in names} | {"weak_decay_s42": planned["negatives"]["weak_decay_s42"]}
    records = [record(spec, course("fork", name, spec), 0) for name, spec in specs.items()]
    found = coverage_of(records, SCOPE)
    assert found["fork"] == {"here": 2, "of": 6, "runs": 4, "seeds": "0 to 3"}
    assert found["negatives"] == {"here": 1, "of": 9, "runs": 1, "seeds": "0 to 1"}
    assert found["spread"] == {"here": 0, "of": 16, "runs": 0, "seeds": "0"}
    assert "| fork | 2 of 6 | 4 | 0 to 3 |" in coverage_table(found)
