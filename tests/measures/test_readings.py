"""Readings: each column by its definition, on one place of a trained network, and what no model has is left out."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from plain_runs import SMALL, TWO_LAYERS, fresh, small_run

from grokscope.activations import RunStack, subject_of
from grokscope.errors import InputError
from grokscope.measures import Question, measure
from grokscope.measures.readings import CONDITIONS, POSITIONS, RANKS, SITES, VOTES, all_readings, conditions
from grokscope.specs import Architecture
from grokscope.tasks import named_task
from grokscope.training import advance


def subject(architecture: Architecture = TWO_LAYERS, task: str = "add_mod11") -> RunStack:
    runs = [small_run(task, seed, architecture, learning_rate=0.01) for seed in range(2)]
    state, cohort = fresh(runs)
    advance(state, cohort, 30, False)
    return subject_of(runs, state.weights)


@pytest.fixture(scope="module")
def stack() -> RunStack:
    return subject()


@pytest.fixture(scope="module")
def rows(stack: RunStack) -> list[dict[str, float | str]]:
    return measure(Question(stack), ["readings"])


def test_the_papers_own_reading_is_fsd_and_rank(stack: RunStack, rows: list[dict[str, float | str]]) -> None:
    for row, plain in zip(rows, measure(Question(stack), ["fsd", "rank", "last_block"]), strict=True):
        assert row["post0.read.answer.fsd_one"] == pytest.approx(plain["fsd"], rel=1e-12)
        assert row["post0.read.answer.rank_power90"] == plain["rank"]
        assert row["post1.read.answer.fsd_one"] == pytest.approx(plain["last_fsd"], rel=1e-12)
        assert row["post1.read.answer.rank_power90"] == plain["last_rank"]


def test_there_are_columns_for_all_readings_and_no_others(rows: list[dict[str, float | str]]) -> None:
    expected = {column for one in all_readings() for column in (one.fsd_column, one.rank_column)}
    assert set(rows[0]) - {"undefined"} == expected
    assert len(expected) == 2 * len(SITES) * len(POSITIONS) * len(CONDITIONS) * (len(VOTES) + len(RANKS))


@pytest.mark.parametrize("place", ["mlp1.first.a", "residual0.read.difference", "attention1.read.answer"])
def test_a_place_by_its_definition(place: str, stack: RunStack, rows: list[dict[str, float | str]]) -> None:
    site, position, condition = place.split(".")
    name = f"blocks.{site[-1]}.{SITES[site[:-1]]}"
    values = torch.cat([part[name] for _, part in stack.parts([name], every_position=True)], dim=1)
    at, n = values[:, :, POSITIONS[position]].double().numpy(), stack.task.symbols
    by = conditions(stack.task)[condition]
    means = np.stack([at[:, by == s].mean(axis=1) for s in range(n)], axis=1)
    power = np.abs(np.fft.rfft(means - means.mean(axis=1, keepdims=True), axis=1)[:, 1:]) ** 2  # odd n: all alike
    for run, row in enumerate(rows):
        own = power[run]
        total, strongest = own.sum(axis=0), own.argmax(axis=0)
        weights = {"one": np.ones_like(total), "weighted": total, "sharp": own.max(axis=0) >= 0.5 * total}
        for vote, weight in weights.items():
            whole = len(weight) if vote == "sharp" else weight.sum()
            share = max(weight[strongest == k].sum() for k in range(len(own))) / whole
            chance = 1 / len(own)
            assert row[f"{place}.fsd_{vote}"] == pytest.approx((share - chance) / (1 - chance), rel=1e-9)
        counts = {"power90": (own, 0.9), "power95": (own, 0.95), "amplitude90": (np.sqrt(own), 0.9)}
        for count, (spectra, needed) in counts.items():
            assert row[f"{place}.rank_{count}"] == np.median([rank(column, needed) for column in spectra.T])
        assert row[f"{place}.rank_network90"] == rank(own.sum(axis=1), 0.9)


def rank(spectrum: np.ndarray, needed: float) -> int:
    """How many of the strongest hold the share."""
    held = np.cumsum(np.sort(spectrum)[::-1]) / spectrum.sum()
    return int(np.argmax(held >= needed - 1e-12)) + 1


def test_what_depends_on_nothing_but_a_is_undefined_by_answers() -> None:
    [row, _] = measure(Question(subject(replace(TWO_LAYERS, causal=True))), ["readings"])
    assert np.isnan(row["post0.first.answer.fsd_one"])
    assert np.isnan(row["post0.first.answer.rank_network90"])
    assert row["post0.first.a.fsd_one"] == row["post0.first.a.fsd_one"]


def test_places_that_a_model_does_not_have_are_left_out() -> None:
    for architecture, absent in ((SMALL, "1."), (replace(TWO_LAYERS, mlp="norm"), "post0")):
        [row, _] = measure(Question(subject(architecture)), ["readings"])
        places = {column.split(".")[0] for column in row}
        assert not any(absent in f"{place}." for place in places)
        assert "attention0" in places


def test_a_task_whose_answers_are_no_symbols_is_rejected() -> None:
    with pytest.raises(InputError, match="not a table of pairs"):
        measure(Question(subject(task="add3_mod5")), ["readings"])
    assert named_task("add3_mod5").pairs is None
