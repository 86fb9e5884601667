"""What is read of one run, against loops and by hand."""

from math import inf, isnan, log, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from signal_runs import after, record

from grokscope.studies.signals.catalogue import SIGNALS, signal_named
from grokscope.studies.signals.experiments import CELLS
from grokscope.studies.signals.readings import (
    course,
    published_step,
    read_alarm,
    read_circuit,
    read_growth,
    trace,
)

SPEC, S5 = CELLS["add97"].run(0, "float32"), CELLS["S5"].run(0, "float32")
VALUES = st.lists(st.floats(0.01, 100), min_size=3, max_size=12)


def along(values: list[float], column: str, **columns: float):
    """A run with these values of a column."""
    return record(SPEC, last=100 * (len(values) - 1), **{column: lambda at: values[at // 100]}, **columns)


@given(VALUES)
def test_a_growth_is_over_the_median_of_the_first_three(values: list[float]) -> None:
    found = trace(along(values, "commutator_defect"), signal_named("commutator"))
    assert found is not None
    assert found.values == pytest.approx([value / np.median(values[:3]) for value in values])


@given(VALUES)
def test_a_decline_is_the_highest_so_far_over_the_present_one(values: list[float]) -> None:
    found = trace(along(values, "attention_gap_23"), signal_named("gap"))
    assert found is not None
    assert found.values == pytest.approx([max(values[: place + 1]) / value for place, value in enumerate(values)])
    assert min(found.values) >= 1


def test_a_signal_that_falls_is_signed_so_that_it_rises_and_what_is_not_known_is_left_out() -> None:
    found = trace(along([3.0, nan, 1.0], "norm"), signal_named("norm"))
    assert found is not None
    assert (found.steps, found.values) == ([0, 200], [-3.0, -1.0])
    assert trace(along([3.0, nan, 1.0], "norm"), signal_named("fsd")) is None


@pytest.mark.parametrize(
    ("name", "column", "course_of", "expected"),
    [
        ("fsd", "fsd", after(1300, 0.80, 0.7999), 1300),
        ("fsd", "fsd", 0.7999, None),
        ("rank", "rank", after(900, 1.0, 2.0), 900),
        ("entropy", "representation_entropy", after(700, 0.61, 0.62), 700),
        ("seed-restricted", "paper_restricted", after(800, 0.5, 0.51), 800),
        ("gap", "attention_gap_23", after(400, 1.0, 4.54), 400),
        ("gap", "attention_gap_23", after(400, 1.0, 4.52), None),
        ("commutator", "commutator_defect", after(600, 20.0, 2.0), 600),
        ("commutator", "commutator_defect", after(600, 19.9, 1.0), None),  # grows enough, and is not large enough
        ("commutator", "commutator_defect", after(600, 29.0, 3.0), None),  # large enough, and does not grow enough
        ("norm", "norm", after(600, 1.0, 50.0), None),  # its source has no threshold
    ],
)
def test_published_events(name: str, column: str, course_of: object, expected: int | None) -> None:
    assert published_step(record(SPEC, 2000, **{column: course_of}), signal_named(name)) == expected


def test_on_groups_the_threshold_is_that_of_groups_or_there_is_none() -> None:
    planted = {"fsd": after(500, 0.5, 0.1), "representation_entropy": 0.1}
    assert published_step(record(S5, 2000, **planted), signal_named("fsd")) == 500
    assert published_step(record(SPEC, 2000, **planted), signal_named("fsd")) is None
    assert published_step(record(S5, 2000, **planted), signal_named("entropy")) is None
    assert read_alarm(record(S5, 2000, **planted), "entropy") == {}


def test_the_lead_of_an_event_is_over_the_accuracy_that_its_source_names() -> None:
    run = record(SPEC, 3000, commutator_defect=after(2000, 50.0, 1.0), validation_accuracy=lambda at: at / 3000)
    assert read_alarm(run, "commutator")["lead"] == 900, "0.95 at 2,900"
    assert read_alarm(run, "commutator", grokked=0.9)["lead"] == 700, "0.9 at 2,700"
    late = read_alarm(record(SPEC, 3000, last=5000, commutator_defect=1.0), "commutator")
    assert (late["leads"], late["lead"], late["alarm"]) == (0.0, -2000.0, 0.0), "it is later than the last evaluation"
    never = read_alarm(record(SPEC, None, commutator_defect=after(2000, 50.0, 1.0)), "commutator")
    assert isnan(never["leads"])
    assert never["alarm"] == 1.0


def test_growth_is_the_largest() -> None:
    found = read_growth(record(SPEC, 3000, commutator_defect=lambda at: 70.0 if at == 1500 else 2.0), "commutator")
    assert found == {"highest": 35.0}
    assert read_growth(record(SPEC, 3000), "commutator") == {}


def test_circuits_turn_where_they_were_planted() -> None:
    half = log(97) / 2
    run = record(
        SPEC,
        4000,
        validation_loss=after(3500, half, half + 0.01),
        **{
            "trig@final": after(1500, half - 0.01, 4.6),
            "excluded@final": lambda at: 4.6 if at < 600 else 0.5 if at == 600 else 0.6 if at < 2000 else 0.51 + half
            if at != 3000 else 9.0,
        },
    )  # fmt: skip
    found = read_circuit(run, "trig@final", "excluded@final")
    assert {name: found[name] for name in ("restricted falls", "excluded lowest", "excluded rises")} == {
        "restricted falls": 1500.0, "excluded lowest": 600.0, "excluded rises": 2000.0,
    }  # fmt: skip
    assert (found["excluded highest"], found["validation falls"], found["groks"]) == (3000.0, 3500.0, 4000.0)
    assert (found["restricted lead"], found["excluded lead"], found["formed lead"]) == (2000.0, 1500.0, 1000.0)


def test_what_never_turns_leads_nothing_and_over_nothing_there_is_no_lead() -> None:
    flat = {"trig@final": 4.6, "excluded@final": 4.6}
    found = read_circuit(record(SPEC, 4000, **flat), "trig@final", "excluded@final")
    assert (found["restricted lead"], found["excluded lead"]) == (-inf, -inf)
    assert isnan(read_circuit(record(SPEC, None, **flat), "trig@final", "excluded@final")["restricted lead"])
    assert read_circuit(record(SPEC, 4000), "trig@final", "excluded@final") == {}


def test_a_column_is_read_from_the_log_or_from_the_checkpoints() -> None:
    run = record(SPEC, 200, last=200, norm=4.0, trig=3.0)
    assert course(run, "norm") == ([0, 100, 200], [4.0] * 3)
    assert course(run, "trig") == ([0, 100, 200], [3.0] * 3)
    assert course(run, "nothing") == ([], [])
    assert {one.column for one in SIGNALS} & {"norm", "trig"} == {"norm", "trig"}
