from dataclasses import replace

import numpy as np
from planted_ends import planted_cases, planted_log

from grokscope.forecast.cases import cell_key, cell_medians, task_family, usable_cases
from grokscope.specs import Fork, RunSpec

SPEC = RunSpec()


def test_forks_and_runs_that_never_memorised_are_left_out():
    log = planted_log(2000)
    slow = log | {"train_accuracy": [0.5] * len(log["step"])}
    fork = replace(SPEC, fork=Fork(SPEC.content_hash, 100))
    assert len(usable_cases([(SPEC, log), (SPEC, slow), (fork, log), (SPEC, {})])) == 1


def test_a_cell_holds_seeds_and_budgets_and_nothing_else():
    same = [SPEC.with_seed(3), replace(SPEC, training=replace(SPEC.training, steps=7))]
    other = [replace(SPEC, task="S5"), replace(SPEC, training=replace(SPEC.training, weight_decay=2.0))]
    assert {cell_key(one) for one in same} == {cell_key(SPEC)}
    assert len({cell_key(one) for one in (SPEC, *other)}) == 3


def test_medians_count_runs_that_did_not_grok_as_later():
    medians = cell_medians(planted_cases(cells=1, seeds=5, never=1))
    assert sorted(medians.values()) == [4500.0, np.inf]


def test_families_of_tasks():
    assert [task_family(name) for name in ("mult_mod97", "A5", "latin97")] == ["modular arithmetic", "groups", "random"]
