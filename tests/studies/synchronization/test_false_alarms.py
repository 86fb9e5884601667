"""False alarms at planted thresholds; which runs count as runs that did not grok; the claim on them."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Any

import built
import pytest
import scipy.stats
from built import sentence
from exact import same_share
from planted import EMPTY, evidence, only, run, together

from grokscope.studies import Evidence
from grokscope.studies.synchronization.experiments import EXPERIMENTS
from grokscope.view.table import Cell

table = partial(built.table, "sup-false-alarms")


def of_many(found: Mapping[str, Mapping[str, Mapping[str, Any]]], n_seeds: int) -> Evidence:
    return together(*(evidence(name, runs, n_seeds) for name, runs in found.items()))


@cache
def planted(halves: tuple[int, int]) -> Evidence:
    """Runs that do not grok, FSD peaks 0.50, 0.51, … by rank in each half of the seeds; four that do."""
    names = [name for name in EXPERIMENTS["negatives"](44, "float32") if name.startswith("shuffled")]
    negative = {}
    for rest, count in enumerate(halves):
        chosen = [name for name in names if int(name.rpartition("_s")[2]) % 2 == rest][:count]
        for i, name in enumerate(chosen):  # its FSD is the peak once, at step 500, and less before and after
            peak = 0.5 + 0.01 * i + 0.005 * rest
            negative[name] = {"log": {"fsd": {0: peak / 2, 500: peak, 1000: peak / 3}}}
    steps = range(0, 15_001, 100)
    rising = {step: min(0.3 + step / 5000, 1.0) for step in steps}
    grokked: dict[str, Any] = {
        f"add_mod97_s{seed}": {"grok": 3000 + 100 * seed, "log": {"fsd": rising}} for seed in (0, 1, 2)
    }
    grokked["add_mod97_s42"] = {"grok": 1000, "log": {"fsd": dict.fromkeys(steps, 0.3)}}
    return of_many({"negatives": negative, "base": grokked}, 44)


@pytest.mark.parametrize(("rate", "rank", "alarms"), [(0.05, 1, 2), (0.0, 0, 1), (0.10, 2, 3)])
def test_planted_negatives_give_the_known_threshold_and_false_alarms(rate: float, rank: int, alarms: int) -> None:
    """Even seeds peak at 0.50 … 0.69: of 20 one may cross at 5 %. Odd ones lie 0.005 higher, so one more does."""
    found = table(planted((20, 20)))
    row = f"FSD, at most {rate:.0%}"
    threshold = 0.69 - 0.01 * rank
    assert found.cell(row, "Threshold").ours == pytest.approx(threshold)
    assert found.cell(row, "Chosen on (runs)").ours == 20
    assert found.cell(row, "Judged on").ours == "other seeds"
    same_share(found.cell(row, "False alarms"), alarms, 20)
    crossing = next(step for step in range(0, 15_001, 100) if 0.3 + step / 5000 > threshold + 1e-9)
    leads = sorted(3000 + 100 * seed - crossing for seed in (0, 1, 2))
    same_share(found.cell(row, "Warned before grokking"), 3, 4)
    assert found.cell(row, "Median lead (steps)").ours in leads  # the fourth never crossed, so it is the lower middle
    same_share(found.cell(row, "Earlier than validation accuracy"), 3, 4)
    assert found.cell(row, "Sign-test p").ours == pytest.approx(scipy.stats.binomtest(3, 4).pvalue)


def test_validation_accuracy_warns_by_its_smallest_rise_that_is_no_false_alarm() -> None:
    found = table(planted((20, 20)))
    row = "Validation accuracy, at most 5%"
    assert found.cell(row, "Threshold").ours == pytest.approx(0.1)
    assert found.cell(row, "False alarms").ours == 0
    same_share(found.cell(row, "Warned before grokking"), 0, 4)
    assert found.cell(row, "Median lead (steps)").ours == 0
    assert found.cell(row, "Earlier than validation accuracy") == Cell()
    assert found.cell("Train loss, at most 5%", "Alarm").ours == "not measured"


def test_runs_that_do_not_grok_are_also_watched_no_longer_than_others_take() -> None:
    """The planted peaks are at step 500 and the last run groks at 3,200: what comes after that changes nothing."""
    found = planted((20, 20))
    late = {}
    for name, record in found.experiment("negatives").items():
        rows = zip(record.evaluations["step"], record.evaluations["fsd"], strict=True)
        values = [0.99 if at > 3200 else fsd for at, fsd in rows]
        late[name] = replace(record, evaluations=record.evaluations | {"fsd": values})
    changed = Evidence({**found.records, "negatives": late})
    own, same = table(changed), table(found)
    assert own.cell("FSD, at most 5%", "Threshold").ours == 0.99
    for column in ("Threshold", "False alarms", "Warned before grokking", "Median lead (steps)"):
        cells = own.cell("FSD, at most 5% by step 3,200", column), same.cell("FSD, at most 5%", column)
        assert replace(cells[0], quantity="") == replace(cells[1], quantity=""), column
    text = sentence(table(changed))
    assert "evaluated only up to step 3,200" in text
    assert "FSD 0.75 [0.19, 0.99], n = 4" in text


def test_with_few_negatives_thresholds_are_judged_where_they_were_chosen() -> None:
    found = table(planted((20, 9)))
    row = "FSD, at most 5%"
    assert found.cell(row, "Judged on").ours == "the same runs"
    assert found.cell(row, "Chosen on (runs)").ours == 29
    same_share(found.cell(row, "False alarms"), 1, 29)
    assert any(note.startswith("Runs that did not grok, each once: 29 of negatives/shuffled.") for note in found.notes)


def test_a_falling_measure_alarms_below_its_threshold() -> None:
    names = [f"shuffled_s{seed}" for seed in (42, 0, 1)]
    negative = {name: {"log": {"norm": {0: 50.0, 500: 40.0 - i}}} for i, name in enumerate(names)}
    base = {"add_mod97_s42": {"grok": 3000, "log": {"norm": {0: 50.0, 1000: 38.0, 2000: 37.9, 3000: 20.0}}}}
    found = table(of_many({"negatives": negative, "base": base}, 5))
    assert found.cell("Weight norm, at most 0%", "Alarm").ours == "below"
    assert found.cell("Weight norm, at most 0%", "Threshold").ours == 38
    assert found.cell("Weight norm, at most 0%", "Median lead (steps)").ours == 1000


def test_negatives_are_whole_runs_of_the_same_model_each_counted_once() -> None:
    runs: dict[str, dict[str, dict[str, Any]]] = {
        "negatives": {"shuffled_s42": {}, "weak_decay_s42": {"grok": 9000}, "weak_decay_s0": {}},
        "base": {"add_mod97_s42": {}, "add_mod97_s0": {"grok": 3000}, "add_mod53_s42": {}},
        "sensitivity": {"default_s42": {}, "dropout_0.1_s42": {}, "causal_s42": {}, "std_0.02_s42": {}},
        "accelerator": {"fixed_s42": {}, "mem_x10_s42": {}},
        "fork": {"add_mod97_s42_x10": {}},
    }
    found = table(of_many(runs, 5))
    (note,) = (note for note in found.notes if "each once" in note)
    which = "1 of negatives/shuffled, 1 of negatives/weak_decay, 1 of base/add_mod97, 1 of sensitivity/dropout_0.1"
    assert note == f"Runs that did not grok, each once: {which}."
    assert found.cell("FSD, at most 5%", "Chosen on (runs)").ours == 4
    assert found.cell("FSD, at most 5%", "Warned before grokking").n == 1


def test_checkpoints_are_compared_with_grokking_at_checkpoints() -> None:
    made = run(EXPERIMENTS["base"](5, "float32")["add_mod97_s42"], grok=3100, sync=1000)
    made = replace(made, checkpoints={"step": [0, 2000, 3000, 3500], "paper_restricted": [3.0, 2.0, 0.4, 0.1]})
    bad = run(EXPERIMENTS["negatives"](5, "float32")["shuffled_s42"])
    bad = replace(bad, checkpoints={"step": [0, 5000], "paper_restricted": [3.0, 1.0]})
    found = table(together(only("base", add_mod97_s42=made), only("negatives", shuffled_s42=bad)))
    row = "Restricted loss of the paper, checkpoints, at most 0%"
    assert found.cell(row, "Threshold").ours == 1.0
    assert found.cell(row, "Median lead (steps)").ours == 500


def test_one_run_alone_has_a_table_and_a_sentence() -> None:
    for experiment, name in (("negatives", "shuffled_s42"), ("base", "add_mod97_s42"), ("crossprime", "add_mod97_d42")):
        for changes in ({"grok": 3000, "sync": 2000}, {"sync": 2000}, {"learnt": False}):
            found = evidence(experiment, {name: {**changes, "last": 8000}})
            assert sentence(table(found)).endswith(".")
            assert all(note.endswith(".") for note in table(found).notes)


def test_without_runs_every_row_and_the_sentence_say_so() -> None:
    rows = table(EMPTY).rows
    assert all(row[1].ours == "not measured" and all(cell.ours is None for cell in row[2:]) for row in rows)
    assert "not known" in sentence(table(EMPTY))
