"""The page of results: an experiment that is half there does not look whole."""

from planted import EMPTY, run

from grokscope.studies import Evidence
from grokscope.studies.page import coverage, coverage_table
from grokscope.studies.synchronization import STUDY


def test_an_experiment_says_how_many_runs_and_seeds_it_has() -> None:
    planned = STUDY.runs(6)
    names = ["add_mod97_s42_x1", "add_mod97_s42_x2", "add_mod97_s0_x1", "add_mod97_s1_x1"]
    forks = {name: run(planned["fork"][name]) for name in names}
    negatives = {"weak_decay_s42": run(planned["negatives"]["weak_decay_s42"])}
    found = coverage(STUDY, Evidence({**EMPTY.records, "fork": forks, "negatives": negatives}))
    assert found["fork"] == {"here": 2, "of": 6, "runs": 4, "seeds": "0 to 3"}
    assert found["negatives"] == {"here": 1, "of": 9, "runs": 1, "seeds": "0 to 1"}
    assert found["spread"] == {"here": 0, "of": 16, "runs": 0, "seeds": "0"}
    assert "| fork | 2 of 6 | 4 | 0 to 3 |" in coverage_table(found)
