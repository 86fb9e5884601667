"""Claims on every kind of task: each is met by some records and not by others, and controls must memorise too."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from grokscope.law import ridge_timing
from grokscope.runs.outcome import RunOutcome
from grokscope.runs.records import RunRecord
from grokscope.specs import RunSpec
from grokscope.studies import Evidence, Verdict, judge
from grokscope.studies.tasks import STUDY
from grokscope.studies.tasks.experiments import CELLS, EXPERIMENTS
from grokscope.studies.tasks.outcomes import chance
from grokscope.tasks import named_task
from grokscope.view.charts.figure import Figure
from grokscope.view.table import Table

Planted = Mapping[str, Any]
CLAIMS = {claim.name: claim for claim in STUDY.claims}
SEEDS = 3


def run(
    spec: RunSpec, memorized: int | None = 200, grokked: int | None = None, low: float = 0.01, **held: float
) -> RunRecord:
    """A run with these events, evaluated at the steps around them."""
    events = {step for step in (memorized, grokked) if step is not None}
    steps = sorted({0, spec.training.steps} | events | {step - 1 for step in events})

    def after(step: int | None, before: float) -> list[float]:
        return [1.0 if step is not None and at >= step else before for at in steps]

    log: dict[str, Any] = {
        "step": steps,
        "train_accuracy": after(memorized, 0.1),
        "validation_accuracy": after(grokked, low),
        "norm": [30.0] * len(steps),
    }
    if named_task(spec.task).is_real:
        log |= {f"{part}_relative_error": [0.5 if right == 1 else 9.0 for right in log[f"{part}_accuracy"]]
                for part in ("train", "validation")}  # fmt: skip
    log |= {f"{group}_accuracy": [held.get(group, 0.0)] * len(steps) for group in named_task(spec.task).held_out}
    return RunRecord(spec, RunOutcome("grokked"), log, {})


def planted(**cells: Callable[[RunSpec], Planted] | Planted) -> Evidence:
    """Runs of these cells alone, the same events for every seed unless they follow from its spec."""
    found: dict[str, dict[str, RunRecord]] = {name: {} for name in EXPERIMENTS}
    for name, events in cells.items():
        cell = CELLS[name.replace("_", "-")]
        for place, spec in EXPERIMENTS[cell.experiment](SEEDS, "float32").items():
            if place.rpartition("_s")[0] == name.replace("_", "-"):
                found[cell.experiment][place] = run(spec, **(events(spec) if callable(events) else events))
    return Evidence(found)


def of_closed_form(factor: float) -> Callable[[RunSpec], Planted]:
    def events(spec: RunSpec) -> Planted:
        grokked = ridge_timing(spec).grokked
        assert grokked is not None
        return {"memorized": 50, "grokked": round(factor * grokked)}

    return events


LATE, SOON, NEVER = {"memorized": 200, "grokked": 3000}, {"memorized": 200, "grokked": 300}, {"memorized": 200}
CASES: dict[str, tuple[Evidence, tuple[Evidence, ...]]] = {
    "parity-groks": (planted(parity=LATE), (planted(parity=NEVER), planted(parity=SOON))),
    "quadratic-groks": (planted(quadratic=LATE), (planted(quadratic=NEVER), planted(quadratic=SOON))),
    "two-hop-7-groks": (planted(two_hop_7=LATE), (planted(two_hop_7=NEVER), planted(two_hop_7=SOON))),
    "two-hop-ratio": (
        planted(two_hop_3={"memorized": 200, "grokked": 9000}, two_hop_7=LATE),
        (planted(two_hop_3=LATE, two_hop_7=LATE), planted(two_hop_3=SOON, two_hop_7=LATE)),
    ),
    "two-hop-out": (
        planted(two_hop_7=LATE),
        (planted(two_hop_7=LATE | {"out_of_distribution": 0.6}), planted(two_hop_7=NEVER)),
    ),
    "ridge-timing": (
        planted(ridge=of_closed_form(1.01)),
        (planted(ridge=of_closed_form(1.04)), planted(ridge={"memorized": 50})),
    ),
    "latin-at-chance": (
        planted(latin=NEVER | {"low": 0.03}),
        (planted(latin={"memorized": None}), planted(latin=NEVER | {"low": 0.05}), planted(latin=LATE)),
    ),
    "random-at-chance": (
        planted(random=NEVER | {"low": 0.015}),
        (planted(random={"memorized": None}), planted(random=NEVER | {"low": 0.03}), planted(random=LATE)),
    ),
}


@pytest.mark.parametrize("name", CLAIMS)
def test_every_claim_can_be_met_and_can_fail(name: str) -> None:
    follows, others = CASES[name]
    assert judge(CLAIMS[name], follows).verdict is Verdict.REPRODUCED
    for contradicts in others:
        assert judge(CLAIMS[name], contradicts).verdict is not Verdict.REPRODUCED


@pytest.mark.parametrize("name", ["latin", "random"])
def test_one_run_of_a_control_that_does_not_memorise_or_is_right_too_often_is_enough(name: str) -> None:
    claim, follows = CLAIMS[f"{name}-at-chance"], CASES[f"{name}-at-chance"][0]
    runs = dict(follows.experiment("controls"))
    for changes in ({"memorized": None}, {"low": 2.1 * chance(name)}):
        other = runs | {f"{name}_s1": run(runs[f"{name}_s1"].spec, **changes)}
        assert judge(claim, Evidence(dict(follows.records) | {"controls": other})).verdict is not Verdict.REPRODUCED


def test_chance_is_what_a_guesser_reaches_who_knows_the_training_rows() -> None:
    """In each row and column he rules out what he has seen there; in a random table he cannot."""
    from grokscope.tasks import split

    for name in ("latin", "random"):
        cell = CELLS[name]
        task, seen = named_task(cell.task), split(named_task(cell.task), cell.train_fraction, seed=0)
        n = task.symbols
        table, known = task.answers.reshape(n, n), seen.mask.reshape(n, n)
        hits = []
        for row in seen.validation.tolist():
            a, b = divmod(row, n)
            ruled_out = {*table[a][known[a]], *table[:, b][known[:, b]]} if name == "latin" else set()
            hits.append(1 / (n - len(ruled_out)))
        assert sum(hits) / len(hits) == pytest.approx(chance(name), rel=0.03)


def test_without_runs_no_claim_is_judged_and_nothing_is_shown() -> None:
    empty = Evidence({name: {} for name in EXPERIMENTS})
    for claim in STUDY.claims:
        finding = judge(claim, empty)
        assert finding.n == 0
        assert finding.verdict is Verdict.NOT_TESTABLE
    [table] = [item.build(empty) for item in STUDY.tables]
    [figure] = [item.build(empty) for item in STUDY.figures]
    assert isinstance(table, Table)
    assert isinstance(figure, Figure)
    assert (table.rows, figure.panels) == ((), ())


def test_the_table_and_the_figure_have_a_row_and_a_panel_for_each_kind_that_was_trained() -> None:
    found = planted(two_hop_7=LATE | {"out_of_distribution": 0.2}, random=NEVER)
    table, figure = STUDY.tables[0].build(found), STUDY.figures[0].build(found)
    assert isinstance(table, Table)
    assert isinstance(figure, Figure)
    assert [row[0].ours for row in table.rows] == [CELLS["two-hop-7"].title, CELLS["random"].title]
    assert [row[-1].ours for row in table.rows] == [0.2, None]
    legends = [[line.legend for line in panel.series] for panel in figure.panels]
    said = [f"{part}, median and quartiles" for part in ("train", "validation", "out of distribution")]
    assert legends == [said, said[:2]]


def test_real_answers_are_drawn_by_their_errors() -> None:
    figure = STUDY.figures[0].build(planted(ridge=LATE))
    assert isinstance(figure, Figure)
    [panel] = figure.panels
    assert (panel.y_label, panel.log_y) == ("squared error / success", True)
    for line, step in zip(panel.series, (200, 3000), strict=True):
        assert next(x for x, y in zip(line.x, line.y, strict=True) if y <= 1) == step, "1 is success"
