import json
from dataclasses import fields, make_dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grokscope.errors import InputError
from grokscope.specs import (
    Architecture,
    Cadence,
    ClosedLoop,
    Fork,
    NormHold,
    ReadingSpec,
    Release,
    RunSpec,
    Seeds,
    Training,
    Trigger,
)
from grokscope.specs.spec import Spec

seeds = st.integers(0, 2**63 - 1)


def specs_with(schedules: st.SearchStrategy[Any], triggers: st.SearchStrategy[Any]) -> st.SearchStrategy[RunSpec]:
    return st.builds(
        RunSpec,
        task=st.sampled_from(["add_mod97", "S5", "poly_a2+ab+b2_mod97", "a task with ünicode"]),
        train_fraction=st.floats(0.01, 0.99),
        shuffled_labels=st.booleans(),
        seeds=st.builds(Seeds, seeds, seeds, seeds),
        architecture=st.builds(Architecture, layers=st.integers(1, 4), causal=st.booleans()),
        training=st.builds(
            Training,
            steps=st.integers(1000, 20000),
            weight_decay=st.floats(0, 10),
            weight_decay_schedule=schedules,
            batch_size=st.none() | st.integers(1, 10_000),
            clip_norm=st.none() | st.floats(0.1, 10),
        ),
        trigger=triggers,
        fork=st.none() | st.builds(Fork, st.just("0123456789abcdef"), st.integers(0, 999)),
        checkpoints=st.builds(Cadence, st.none() | st.integers(1, 1000), st.integers(0, 9)),
    )


run_specs = specs_with(st.sampled_from([(), ((100, 2.0),), ((100, 2.0), (200, 0.0))]), st.none()) | specs_with(
    st.just(()), st.builds(Trigger, weight_decay=st.floats(0, 10))
)


@given(run_specs)
def test_json_round_trip_is_exact(spec: RunSpec) -> None:
    back = RunSpec.from_json(spec.to_json())
    assert back == spec
    assert back.to_json() == spec.to_json()
    assert back.content_hash == spec.content_hash


@given(run_specs, run_specs)
def test_hashes_agree_exactly_when_specs_do(one: RunSpec, other: RunSpec) -> None:
    assert (one.content_hash == other.content_hash) == (one == other)


def test_golden_hash() -> None:
    # Part of the name of every stored run: a change here renames them all, and belongs in the changelog.
    assert RunSpec().with_seed(42).content_hash == "78cadc977356c59b"


def test_a_field_added_later_renames_no_stored_run() -> None:
    older = make_dataclass("Later", [("steps", int), ("rate", float, 1.0)], bases=(Spec,), frozen=True)
    newer = make_dataclass(
        "Later", [("steps", int), ("rate", float, 1.0), ("kind", str, "")], bases=(Spec,), frozen=True
    )
    assert older(3).content_hash == newer(3).content_hash != newer(3, kind="new").content_hash
    assert older(3, 2.0).content_hash == newer(3, 2.0).content_hash != older(3).content_hash


def test_every_field_changes_the_hash() -> None:
    changes = {
        "task": "S5",
        "train_fraction": 0.5,
        "shuffled_labels": True,
        "seeds": Seeds(1, 0, 0),
        "architecture": Architecture(layers=1),
        "initialization": {"embedding_std": 0.02},
        "training": Training(beta2=0.98),
        "trigger": Trigger(),
        "control": ClosedLoop(),
        "norm_hold": NormHold(),
        "release": Release(),
        "fork": Fork("0123456789abcdef", 1000),
        "checkpoints": Cadence(250),
        "measurements": Cadence(250),
        "precision": "bf16",
        "model": "somebody's",
    }
    assert set(changes) == {f.name for f in fields(RunSpec)}
    hashes = {replace(RunSpec(), **{name: value}).content_hash for name, value in changes.items()}
    assert len(hashes | {RunSpec().content_hash}) == len(changes) + 1


DIGEST = "0123456789abcdef"


def test_a_table_counts_by_its_content_alone() -> None:
    here, there = (RunSpec(task=f"table:{path}#{DIGEST}") for path in ("s3.json", "/else/where/s3.json"))
    assert here != there
    assert here.content_hash == there.content_hash
    assert here.content_hash != RunSpec(task=f"table:s3.json#{DIGEST[::-1]}").content_hash
    assert here.content_hash != replace(here, train_fraction=0.5).content_hash


@pytest.mark.parametrize("task", ["table:s3.json", "table:s3.json#0123", f"table:s3.json#{DIGEST.upper()}"])
def test_a_table_without_its_digest_names_no_run(task: str) -> None:
    with pytest.raises(InputError, match=r"let grokscope\.tasks\.pinned_task_name add the digest .*, got 'table:s3"):
        _ = RunSpec(task=task).content_hash


def test_each_signal_has_its_threshold() -> None:
    found = {signal: Trigger(signal).threshold for signal in ("fsd", "train_accuracy", "step", "random")}
    assert found == {"fsd": 0.8, "train_accuracy": 0.99, "step": 300.0, "random": None}
    assert Trigger("step", at_least=0).threshold == 0.0
    assert Trigger("fsd", at_least=0.5).threshold == 0.5


def test_equal_numbers_hash_alike() -> None:
    assert Training(weight_decay=1).content_hash == Training(weight_decay=1.0).content_hash
    assert Training(weight_decay=-0.0).content_hash == Training(weight_decay=0.0).content_hash


def test_one_seed_sets_all_three() -> None:
    assert RunSpec().with_seed(7).seeds == Seeds(split=7, initialization=7, data_order=7)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: RunSpec(train_fraction=1.3), "train_fraction must lie in (0, 1), got 1.3"),
        (lambda: RunSpec(precision="fp8"), "precision must be one of float32, tf32, bf16, float64, got 'fp8'"),
        (lambda: RunSpec(task=97), "task must be a text, got 97"),
        (lambda: RunSpec(shuffled_labels=1), "shuffled_labels must be true or false, got 1"),
        (lambda: Training(weight_decay=-1), "weight_decay must be at least 0, got -1.0"),
        (lambda: Training(weight_decay=float("nan")), "weight_decay must be a finite number, got nan"),
        (lambda: Training(weight_decay=10**400), "weight_decay must be a finite number, got 1000"),
        (lambda: Training(weight_decay=True), "weight_decay must be a finite number, got True"),
        (lambda: Training(weight_decay=2000), "learning_rate × weight_decay must stay below 1, got 2.0"),
        (lambda: Training(steps=0), "steps must be at least 1, got 0"),
        (lambda: Training(steps=1.5), "steps must be a whole number, got 1.5"),
        (lambda: Training(dropout=1.0), "dropout must lie in [0, 1), got 1.0"),
        (lambda: Training(weight_decay_schedule=((200, 2.0), (100, 1.0))), "must have increasing steps from 1 on"),
        (lambda: Training(weight_decay_schedule=((100,),)), "each entry of weight_decay_schedule must have 2 values"),
        (lambda: Training(sampling="epoch"), "got 'epoch'; did you mean 'epochs'?"),
        (lambda: Architecture(heads=3), "heads must divide the width 128, got 3"),
        (lambda: Architecture(layer_norm=False, mlp="norm"), "mlp cannot be a LayerNorm when layer_norm is false"),
        (lambda: Seeds(split=-1), "the split seed must lie in [0, 2^63), got -1"),
        (lambda: Fork("../../etc", 1), "parent must be a run's content hash of 16 hexadecimal digits, got '../../etc'"),
        (lambda: Architecture(attention="dropped", mlp="dropped"), "attention and mlp must not both be dropped"),
        (
            lambda: Training(steps=100, weight_decay_schedule=((50, 2.0), (100, 3.0))),
            "weight_decay_schedule must change before the last step 100, got [100]",
        ),
        (
            lambda: RunSpec(training=Training(learning_rate=0.1), trigger=Trigger(weight_decay=10)),
            "learning_rate × the trigger's weight_decay must stay below 1, got 1.0",
        ),
        (lambda: Trigger(at_least=1.2), "at_least must lie in [0, 1] for fsd, got 1.2"),
        (lambda: Trigger("random", at_least=0.5), "at_least must be left out for random, got 0.5"),
        (lambda: Trigger("step", at_least=-1), "at_least must be at least 0, got -1.0"),
        (lambda: Training(steps=2**63), "steps must be a whole number below 2^63, got 9223372036854775808"),
        (lambda: Training(steps=10**5000), "steps must be a whole number below 2^63, got <int too large to write>"),
        (lambda: Training(decay_parameters="weights"), "decay_parameters must be one of all, matrices, got 'weights'"),
        (lambda: Cadence(every=0), "every must be at least 1, got 0"),
        (
            lambda: RunSpec(checkpoints=Cadence(at=(99_999,))),
            "listed steps and fork points must not pass the last step 15000",
        ),
        (lambda: RunSpec(fork=Fork("0" * 16, 15_000)), "the fork's step must lie before the last step 15000"),
        (lambda: ReadingSpec(grokked=0.0), "grokked must lie in (0, 1], got 0.0"),
        (lambda: RunSpec.from_dict({"weight_deacy": 1}), "RunSpec has no field 'weight_deacy'"),
        (lambda: Training.from_dict({"weight_deacy": 1}), "did you mean 'weight_decay'?"),
        (
            lambda: RunSpec.from_dict({"weight_decay": 2}),
            "RunSpec has no field 'weight_decay'; did you mean training.weight_decay?",
        ),
        (lambda: RunSpec.from_dict({"signal": "fsd"}), "did you mean trigger.signal?"),
        (lambda: RunSpec.from_dict({"training": {"lerning_rate": 1}}), "did you mean 'learning_rate'?"),
        (lambda: RunSpec.from_json("{"), "RunSpec is not valid JSON"),
        (lambda: RunSpec.from_json("[1]"), "RunSpec must be an object with named fields, got [1]"),
        (lambda: RunSpec.from_json("[" * 100_000), "RunSpec is not valid JSON"),
        (lambda: RunSpec.from_json('{"task": ' + "9" * 5000 + "}"), "RunSpec is not valid JSON: Exceeds the limit"),
        (lambda: RunSpec.from_json('{"train_fraction": NaN}'), "RunSpec holds finite numbers only, got 'NaN'"),
        (
            lambda: RunSpec.from_json('{"task": "S5", "task": "A5"}'),
            "each JSON key of RunSpec must stand once, got 'task'",
        ),
        (lambda: Fork.from_dict({"step": 1}), "Fork is incomplete"),
    ],
)
def test_bad_values_are_named(make, sentence: str) -> None:
    with pytest.raises(InputError) as rejection:
        make()
    assert sentence in str(rejection.value)
    assert "\n" not in str(rejection.value)


def test_an_unknown_key_from_json_names_its_place() -> None:
    with pytest.raises(InputError, match="Training has no field 'steeps'; did you mean 'steps'"):
        RunSpec.from_json(json.dumps({"training": {"steeps": 1}}))


def test_cadence_always_has_the_ends() -> None:
    assert Cadence(500).steps(1200) == (0, 500, 1000, 1200)
    assert Cadence(None, at=(7,)).steps(10) == (0, 7, 10)
    assert Cadence(None, per_decade=2).steps(100) == (0, 1, 3, 10, 32, 100)


def test_values_that_only_fit_together_are_set_together() -> None:
    base = RunSpec(architecture=Architecture(1, 16, 2, 32))
    changed = base.with_values({"width": 15, "heads": 3, "task": "S3", "steps": 10})
    training = replace(base.training, steps=10)
    assert changed == replace(base, task="S3", training=training, architecture=Architecture(1, 15, 3, 32))
    with pytest.raises(InputError, match="heads must divide the width 15"):
        base.with_values({"width": 15})
