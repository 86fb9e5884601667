import sys
import tomllib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from plain_runs import NORMAL, SMALL, TWO_LAYERS, fresh, in_slot, mixed_runs, padding_in, small_run

from grokscope.specs import RunSpec
from grokscope.tasks import named_task, shuffled_labels, split
from grokscope.training import Cohort, cohort_key
from grokscope.training.cohort import OLDEST_TRITON, has_triton


def test_tables_hold_every_pair_once_with_its_answer() -> None:
    runs = [*mixed_runs(), small_run("div_mod11", 4, shuffled_labels=True)]
    cohort = Cohort(runs)
    tables = cohort.tables
    for slot, run in enumerate(runs):
        task = named_task(run.task)
        real = int(tables.is_row[slot].sum())
        assert real == len(task.inputs)
        assert tables.is_row[slot, :real].all()
        shown = list(zip(*tables.tokens[slot, :, :real].tolist(), tables.answers[slot, :real].tolist(), strict=True))
        expected = [(a, b, task.symbols, int(c)) for (a, b), c in zip(task.inputs.tolist(), task.answers, strict=True)]
        assert sorted(shown) == sorted(expected)
        labels = shuffled_labels(task, run.seeds.split) if run.shuffled_labels else task.answers
        labelled = {(a, b): int(label) for (a, b), label in zip(task.inputs.tolist(), labels, strict=True)}
        assert tables.labels[slot, :real].tolist() == [labelled[a, b] for a, b, *_ in shown]
        assert tables.answers[slot, :real].tolist() == sorted(task.answers.tolist())


def test_training_rows_are_the_split_in_its_order() -> None:
    runs = mixed_runs()
    tables = Cohort(runs).tables
    for slot, run in enumerate(runs):
        task = named_task(run.task)
        train = split(task, run.train_fraction, run.seeds.split).train
        assert tables.train_count[slot] == len(train)
        rows = tables.train_rows[slot, : len(train)]
        assert np.array_equal(tables.tokens[slot][:2, rows].T.numpy(), task.inputs[train])
        assert sorted(rows.tolist()) == tables.is_train[slot].nonzero().flatten().tolist()


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_initial_weights_do_not_depend_on_neighbours(precision: str) -> None:
    runs = [
        small_run("add_mod11", 3, precision=precision),
        small_run("add_mod11", 4, precision=precision),
        small_run("add_mod7", 3, precision=precision),
        small_run("add_mod11", 3, precision=precision, initialization=NORMAL),
        small_run("S3", 5, precision=precision),
        small_run("add_mod11", 4, precision=precision),
    ]
    together, cohort = fresh(runs)
    assert torch.equal(together.weights[1], together.weights[5])
    for slot, run in enumerate(runs):
        alone, _ = fresh([run])
        assert torch.equal(together.weights[slot], alone.weights[0])
        assert not padding_in(cohort, together.weights, slot).any()
    # Equal seeds share what does not depend on the task's size.
    one, other = (in_slot(cohort, together.weights, slot)["blocks.0.mlp.W_in"] for slot in (0, 2))
    assert torch.equal(one, other)


def test_a_key_says_what_the_runs_own_spec_says() -> None:
    run = small_run("add_mod7")
    assert cohort_key(run) == Cohort([run, small_run("S4", 8), None]).key
    sizes = {cohort_key(one).sizes for one in (run, small_run("add_mod131"), small_run("S5"))}
    assert [(one.vocabulary, one.classes, one.length) for one in sizes] == [(136, 136, 3)]


def test_every_training_field_but_eight_may_differ_inside_a_stack() -> None:
    base = small_run()
    free: dict[str, object] = {
        "steps": 5,
        "learning_rate": 0.1,
        "beta1": 0.1,
        "beta2": 0.1,
        "epsilon": 1.0,
        "weight_decay": 0.1,
        "decay_parameters": "matrices",
        "weight_decay_schedule": ((1, 0.1),),
        "sampling": "replacement",
        "warmup_steps": 5,
        "grokfast_alpha": 0.5,
        "grokfast_lamb": 1.0,
        "embedding_decay": 0.5,
        "matrix_decay": 0.5,
        "vector_decay": 0.5,
        "head_decay": 0.5,
        "muon_learning_rate": 0.1,
        "muon_momentum": 0.5,
    }
    same = {"batch_size", "dropout", "clip_norm", "gradient", "loss", "optimizer", "muon_precision", "grokfast_window"}
    assert set(free) | same == set(base.training.__dataclass_fields__)
    others: list[RunSpec] = [
        replace(base, training=replace(base.training, **{name: value})) for name, value in free.items()
    ]
    assert len(Cohort([base, *others])) == 1 + len(free)


def test_columns_are_the_specs_values() -> None:
    cohort = Cohort([small_run(learning_rate=0.1), None, small_run(learning_rate=0.3)])
    assert cohort.column("learning_rate").tolist() == [0.1, 0.1, 0.3]
    assert cohort.is_empty == (False, True, False)
    assert cohort.architecture == SMALL != TWO_LAYERS


@pytest.mark.parametrize(
    ("version", "expected"),
    [(OLDEST_TRITON, True), ("3.10.0+git1", True), ("4.0", True), ("3.5.1", False), ("2.9", False)],
)
def test_kernels_need_a_triton_that_is_new_enough(
    version: str, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "triton", SimpleNamespace(__version__=version))
    assert has_triton() is expected


def test_kernels_need_triton_and_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triton", None)
    assert not has_triton()
    monkeypatch.setitem(sys.modules, "triton", SimpleNamespace(__version__=OLDEST_TRITON))
    assert not Cohort([small_run("add_mod11", 0)]).has_kernels


def test_the_oldest_triton_is_the_one_that_is_declared() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (triton,) = project["optional-dependencies"]["kernels"]
    assert triton.startswith(f"triton>={OLDEST_TRITON};")
