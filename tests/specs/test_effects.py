"""Every field of every spec has an effect: another value changes a number, a trained weight, or the name of a run."""

from collections.abc import Callable
from dataclasses import fields, replace
from functools import cache
from typing import Any

import pytest
import torch
from plain_runs import PLAIN_MLP, SMALL, TWO_LAYERS, fresh, small_run

from grokscope import specs
from grokscope.activations import RunStack, subject_of
from grokscope.measures import Question, measure
from grokscope.specs import (
    Architecture,
    Cadence,
    ClosedLoop,
    Fork,
    Initialization,
    Membership,
    NormHold,
    Plan,
    ReadingSpec,
    Release,
    RunSpec,
    Seeds,
    Spec,
    Training,
    Trigger,
)
from grokscope.timeline import timeline_of
from grokscope.training import advance

RUN = small_run(
    "add_mod7", 0, TWO_LAYERS, steps=4, learning_rate=0.01, grokfast_alpha=0.9, gradient="grokfast", optimizer="muon"
)
PARENT = "0123456789abcdef"
# Another value of each field, for which its spec is valid.
OTHER: dict[type[Spec], tuple[Spec, dict[str, Any]]] = {
    ReadingSpec: (
        ReadingSpec(),
        {
            "grokked": 0.5,
            "memorized": 0.5,
            "stable_steps": 1,
            "fsd_sync": 0.3,
            "fsd_site": "attention",
            "fsd_gen_sync": 0.3,
            "control_relabellings": 3,
            "restricted_sync": 2.0,
            "restricted_modes": 1,
            "restricted_filter": "input_pairs",
            "restricted_scored_on": "validation",
            "fourier_kan_frequencies": 1,
            "fourier_kan_penalty": 0.5,
        },
    ),
    Architecture: (
        RUN.architecture,
        {
            "layers": 1,
            "width": 8,
            "heads": 1,
            "mlp_width": 16,
            "attention": "norm",
            "mlp": "dropped",
            "causal": True,
            "layer_norm": False,
            "biases": False,
            "activation": "relu",
            "readout": "pooled",
            "kind": "transformer",
            "embedded": True,
            "hidden_norm": True,
            "final_norm": False,
            "temperature": 2.0,
        },
    ),
    Initialization: (RUN.initialization, {"scheme": "normal", "embedding_std": 0.5, "scale": 2.0}),
    Seeds: (RUN.seeds, {"split": 1, "initialization": 1, "data_order": 1}),
    Training: (
        RUN.training,
        {
            "steps": 5,
            "learning_rate": 0.001,
            "beta1": 0.5,
            "beta2": 0.9,
            "epsilon": 0.1,
            "weight_decay": 0.5,
            "decay_parameters": "matrices",
            "weight_decay_schedule": ((2, 3.0),),
            "batch_size": 8,
            "sampling": "replacement",
            "dropout": 0.5,
            "warmup_steps": 3,
            "clip_norm": 0.01,
            "gradient": "plain",
            "grokfast_alpha": 0.5,
            "grokfast_lamb": 5.0,
            "grokfast_window": 3,
            "loss": "mse",
            "optimizer": "adamw",
            "muon_learning_rate": 0.05,
            "muon_momentum": 0.8,
            "muon_precision": "bfloat16",
            "embedding_decay": 2.0,
            "matrix_decay": 2.0,
            "vector_decay": 2.0,
            "head_decay": 2.0,
        },
    ),
    Cadence: (Cadence(), {"every": 100, "per_decade": 3, "at": (7,)}),
    Trigger: (
        Trigger(),
        {"signal": "step", "at_least": 0.5, "weight_decay": 2.0, "every": 50, "restore_after_grokking": True},
    ),
    ClosedLoop: (
        ClosedLoop(),
        {
            "every": 50,
            "train_accuracy": 0.9,
            "train_loss": 0.2,
            "patience": 2,
            "factor": 2.0,
            "highest": 3.0,
            "back_off": 0.25,
            "restore_after_grokking": False,
        },
    ),
    Release: (
        Release(),
        {
            "at": ("loss_rises",),
            "weight_decay": 0.5,
            "every": 25,
            "anneal_steps": 500,
            "validation_accuracy": 0.9,
            "slowdown": 0.5,
            "window": 100,
            "least_fall": 0.2,
            "norm_target": 30.0,
            "memorized": 0.95,
            "accuracy_drop": 0.05,
            "memorized_loss": 0.2,
            "loss_factor": 2.0,
            "patience": 100,
            "ease": 0.25,
            "gentle": 0.5,
        },
    ),
    Fork: (Fork(PARENT, 2), {"parent": PARENT[::-1], "step": 3, "moments": "reset", "scale": 2.0, "norm": "frozen"}),
    RunSpec: (
        RUN,
        {
            "task": "mult_mod7",
            "train_fraction": 0.4,
            "shuffled_labels": True,
            "seeds": Seeds(1, 2, 3),
            "architecture": Architecture(),
            "initialization": Initialization("normal"),
            "training": Training(),
            "trigger": Trigger(),
            "control": ClosedLoop(),
            "release": Release(),
            "fork": Fork(PARENT, 2),
            "norm_hold": NormHold(),
            "checkpoints": Cadence(every=7),
            "measurements": Cadence(every=7),
            "precision": "bf16",
            "model": "another",
        },
    ),
    NormHold: (
        NormHold(("embed",), level=0.5, over=3),
        {"parts": ("unembed",), "start": 1, "end": 2, "level": 2.0, "over": 2, "side": "at_least", "along": "random"},
    ),
    Membership: (Membership("a", "b", "c"), {"study": "d", "experiment": "e", "name": "f"}),
    Plan: (
        Plan("runs", (RUN,)),
        {
            "out": "others",
            "runs": (RUN, RUN.with_seed(1)),
            "device": "cuda",
            "keep": "none",
            "stop_after_grokking": 100,
            "measures": ("fsd",),
            "milestones": ("ablation",),
            "afterwards": ("trig@final",),
            "measured": (RUN.content_hash,),
            "signals": True,
            "tier_signals": True,
            "deterministic": True,
            "made_for": ((Membership("synchronization", "base", "add_mod7_s0"),),),
        },
    ),
}


# What other specs do not have: fields that only a plain MLP has a meaning for.
OF_MLPS = {field: replace(PLAIN_MLP, layers=2) for field in ("kind", "embedded", "hidden_norm")}
# What only a window of gradients has a meaning for.
OF_WINDOWS = {"grokfast_window": replace(RUN.training, gradient="grokfast_window", grokfast_window=2)}


@cache
def subject() -> RunStack:
    runs = [small_run("add_mod11", seed, SMALL, learning_rate=0.01) for seed in range(3)]
    state, cohort = fresh(list(runs))
    advance(state, cohort, 40)
    return subject_of(runs, state.weights)


def read(reading: ReadingSpec) -> Any:
    """Everything that a reading decides: timelines, and the measures that leave a choice."""
    shares = [i / 20 for i in range(21)]  # it grokked at step 19
    log = {"step": range(21), "train_accuracy": shares, "validation_accuracy": shares, "fsd": shares}
    log["restricted_loss"] = [4 - 4 * share for share in shares]
    timelines = [timeline_of(log, reading, sync_at=reading.sync_at(is_group)) for is_group in (False, True)]
    return repr(timelines), measure(Question(subject(), reading), ["fsd", "control", "paper_restricted", "fourier_kan"])


def trained(**parts: Spec) -> list[float]:
    """The weights after a short training."""
    run = replace(RUN, **parts)
    state, cohort = fresh([run])
    advance(state, cohort, run.training.steps)
    return state.weights.flatten().tolist()


EFFECTS: dict[type[Spec], Callable[[Any], Any]] = {
    ReadingSpec: read,
    Architecture: lambda spec: trained(architecture=spec),
    Initialization: lambda spec: trained(initialization=spec),
    Seeds: lambda spec: trained(seeds=spec),
    Training: lambda spec: trained(training=spec),
    Cadence: lambda spec: spec.steps(1000),
    NormHold: lambda spec: trained(norm_hold=spec),
    **dict.fromkeys((Trigger, ClosedLoop, Release, Fork, RunSpec, Membership, Plan), lambda spec: spec.content_hash),
}


def test_every_spec_is_here() -> None:
    public = {getattr(specs, name) for name in specs.__all__} - {Spec}
    assert public == set(OTHER) == set(EFFECTS)


@pytest.mark.parametrize(
    ("kind", "field"), [(kind, f.name) for kind in OTHER for f in fields(kind)], ids=lambda x: getattr(x, "__name__", x)
)
def test_another_value_changes_something(kind: type[Spec], field: str) -> None:
    torch.set_num_threads(1)
    spec, others = OTHER[kind]
    spec = {Architecture: OF_MLPS, Training: OF_WINDOWS}.get(kind, {}).get(field, spec)
    assert field in others, f"give another value of {kind.__name__}.{field}, and let it have an effect"
    assert others[field] != getattr(spec, field)
    changed = replace(spec, **{field: others[field]})
    assert EFFECTS[kind](changed) != EFFECTS[kind](spec), f"{kind.__name__}.{field} changes nothing"


def test_the_same_value_changes_nothing() -> None:
    for kind in (ReadingSpec, Training):
        spec, _ = OTHER[kind]
        assert EFFECTS[kind](spec) == EFFECTS[kind](replace(spec))
