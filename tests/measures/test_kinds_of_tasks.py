"""Every measure of the catalogue on every kind of task and model: columns, or one sentence."""

from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from math import isfinite, isnan
from typing import Any

import pytest
from plain_runs import PLAIN_MLP, SMALL, small_run

from grokscope.activations import OF_TASKS, RunStack, lacking_needs
from grokscope.errors import InputError
from grokscope.measures import fsd_null, patching
from grokscope.measures.catalogue import MEASURES, measure, task_lacks
from grokscope.measures.question import Question
from grokscope.specs import Architecture, RunSpec
from measured_stacks import stack_of

MSE: dict[str, Any] = {"loss": "mse"}
KINDS: dict[str, tuple[str, Architecture, dict[str, Any]]] = {
    "parity of vectors, MLP": ("parity_n6_k3", PLAIN_MLP, {}),
    "parity of tokens, transformer": ("parity_n5_k2_tokens", SMALL, {}),
    "two hops, transformer": ("twohop_e12_d2", replace(SMALL, layers=2), {}),
    "ridge, linear model": ("ridge_d10_n40_v20", replace(PLAIN_MLP, layers=0), MSE),
    "ridge, MLP": ("ridge_d10_n40_v20", PLAIN_MLP, MSE),
    "addition, quadratic network": ("add_mod7", replace(PLAIN_MLP, activation="square", biases=False), MSE),
    "addition, MLP of embeddings": ("add_mod7", replace(PLAIN_MLP, layers=2, embedded=True, width=16), {}),
    "addition, attention alone": ("add_mod7", replace(SMALL, layers=2, mlp="dropped"), {}),
    "sum of three, transformer": ("add3_mod5", SMALL, {}),
    "random table, transformer": ("random7", SMALL, {}),
    "a group, transformer": ("S3", SMALL, {}),
}
WITHOUT_BASIS = ("two hops, transformer", "ridge, linear model", "ridge, MLP", "random table, transformer")
EVERYWHERE = ("norms", "memorization", "singular_values", "representation", "residual", "commutator", "logit_scale")
OF_A_SINGLE_OUTPUT = {"representation_entropy", "residual_entropy", "singular_entropy_unembed.W_U"}


@pytest.fixture(autouse=True)
def _few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fsd_null, "NULL_DRAWS", 4)
    monkeypatch.setattr(patching, "PATCHED_PAIRS", 20)


def spec_of(kind: str, seed: int = 0) -> RunSpec:
    task, architecture, fields = KINDS[kind]
    return small_run(task, seed, architecture, learning_rate=0.003, **fields)


@lru_cache
def trained(kind: str) -> RunStack:
    return stack_of([spec_of(kind, seed) for seed in range(2)], 10)


@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_measure_gives_numbers_or_says_in_one_sentence_why_not(kind: str, name: str) -> None:
    question = Question(trained(kind), spec=spec_of(kind))
    try:
        rows = measure(question, [name])
    except InputError as error:
        sentence = str(error)
        assert sentence.strip()
        assert "\n" not in sentence
        assert name not in EVERYWHERE
        return
    assert len(rows) == 2
    for row in rows:
        values = {column: value for column, value in row.items() if not isinstance(value, str)}
        assert values or name == "fsd_k", "only a basis of two modes has no columns for k = 2 and 3"
        assert all(isfinite(value) or isnan(value) for value in values.values())
        assert bool(row["undefined"]) == any(isnan(value) for value in values.values())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", EVERYWHERE)
def test_what_needs_no_basis_is_measured_of_every_task_and_model(kind: str, name: str) -> None:
    first, second = measure(Question(trained(kind)), [name])
    for row in (first, second):
        # The entropies of the single output of a linear model are the only values that have no meaning.
        missing = {column for column, value in row.items() if isinstance(value, float) and isnan(value)}
        assert missing <= (OF_A_SINGLE_OUTPUT if "ridge" in kind else set())
    assert first != second or (kind, name) in {("ridge, linear model", one) for one in ("representation", "residual")}


# Written down and not derived: a measure that forgot to say that it needs a basis would give numbers of nothing.
MEASURED = {
    "two hops, transformer": {*EVERYWHERE, "output_entropy", "ablation", "patching"},
    "random table, transformer": {*EVERYWHERE, "output_entropy", "ablation", "patching", "control"},
    "ridge, MLP": {*EVERYWHERE, "ablation"},
    "ridge, linear model": {*EVERYWHERE},
}


@pytest.mark.parametrize("kind", WITHOUT_BASIS)
def test_without_a_basis_these_are_measured_and_no_others(kind: str) -> None:
    question = Question(trained(kind), spec=spec_of(kind))
    found = set()
    for name in MEASURES:
        with suppress(InputError):
            measure(question, [name])
            found.add(name)
    assert found == MEASURED[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_task_lacks_is_what_the_sentence_names(kind: str) -> None:
    subject = trained(kind)
    lacks = lacking_needs(subject.task)
    assert ("basis" in lacks) == (kind in WITHOUT_BASIS)
    assert ("classes" in lacks) == ("ridge" in kind)
    for name, entry in MEASURES.items():
        missing = [need for need in OF_TASKS if need in entry.needs & lacks]
        if missing:
            with pytest.raises(InputError) as rejected:
                measure(Question(subject), [name])
            assert str(rejected.value) == task_lacks(subject.task, missing[0], name)


def test_the_sentences_are_sentences() -> None:
    ridge, two_hop = trained("ridge, MLP").task, trained("two hops, transformer").task
    assert (
        task_lacks(two_hop, "basis", "fsd") == f"{two_hop.name} has no basis to read activations in, which 'fsd' needs"
    )
    for name, sentence in {
        "output_entropy": f"{ridge.name} has no classes as answers, which 'output_entropy' needs",
        "updates": "'updates' needs a stored run's earlier checkpoints, which run 0 does not offer",
    }.items():
        with pytest.raises(InputError) as rejected:
            measure(Question(trained("ridge, MLP")), [name])
        assert str(rejected.value) == sentence


@pytest.mark.parametrize("kind", ["parity of vectors, MLP", "two hops, transformer", "ridge, linear model"])
def test_a_stack_changes_no_row(kind: str) -> None:
    subject = trained(kind)
    names = [name for name in (*EVERYWHERE, "output_entropy") if not MEASURES[name].needs & lacking_needs(subject.task)]
    together = measure(Question(subject), names)
    for run, row in enumerate(together):
        (alone,) = measure(Question(subject.select([run])), names)
        assert alone["undefined"] == row["undefined"]
        for column, value in row.items():
            if isinstance(value, float):
                assert alone[column] == pytest.approx(value, rel=1e-6, abs=1e-12, nan_ok=True), column
