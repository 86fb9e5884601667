"""Each paper's own setting, as far as its text and its public code tell it, and the arms that are compared in it.

A setting's baseline is the authors' own. Beside it stand arms with a weight decay of which the better one counts, so
that an accelerator is not compared with a baseline that nobody would choose.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from grokscope.specs import Architecture, Cadence, RunSpec, Training
from grokscope.studies.run_set import Precision, Runs

__all__ = ["AFTER_GROKKING", "EXACT", "MUON_TASKS", "SEEDS", "SETTINGS", "Arm", "Setting", "arm_runs"]

SEEDS = 16  # of each arm
AFTER_GROKKING = 3000  # steps after which a run that has grokked ends: 2,000 show that it is stable, with room for dips


@dataclass(frozen=True)
class Arm:
    """What is changed of the setting's plain run."""

    steps: int
    """Budget."""
    training: Mapping[str, Any] = field(default_factory=dict)
    """Fields of `Training`."""


@dataclass(frozen=True)
class Setting:
    """One model on one task, with the ways of training that are compared."""

    name: str
    """In names of runs; without underscores, for what stands between those may be a seed."""
    experiment: str
    """Of the study."""
    task: str
    """As it is named everywhere."""
    train_fraction: float
    """Share of the rows."""
    architecture: Architecture
    """The model."""
    training: Training
    """What every arm has, but for what it changes."""
    every: int
    """Steps between evaluations."""
    arms: Mapping[str, Arm]
    """By name."""
    is_exact: bool = False
    """Whether it is about rounding: then TF32, which rounds products to ten bits, is float32."""

    def run(self, arm: str, seed: int, precision: Precision) -> RunSpec:
        """One run."""
        own = self.arms[arm]
        return RunSpec(
            self.task,
            self.train_fraction,
            architecture=self.architecture,
            training=replace(self.training, steps=own.steps, **own.training),
            measurements=Cadence(every=self.every),
            checkpoints=Cadence(every=None),
            precision="float32" if self.is_exact and precision in ("tf32", "bf16") else precision,
        ).with_seed(seed)


def arm_runs(setting: Setting, n_seeds: int | None, precision: Precision) -> Runs:
    """A setting's runs by name, `SETTING/ARM_sSEED`.

    >>> next(iter(arm_runs(SETTINGS["Grokfast"], 1, "float32")))
    'Grokfast/Adam_s0'
    """
    seeds = range(n_seeds or SEEDS)
    return {
        f"{setting.name}/{arm}_s{seed}": setting.run(arm, seed, precision) for arm in setting.arms for seed in seeds
    }


# Grokfast (Lee et al. 2024): two causal layers of 128, multiplication mod 97 on half of the rows, Adam with β₂ = 0.98
# and ten steps of warm-up; their decay is Adam's own, added to the gradient after the filter.
_FILTERED = {"gradient": "grokfast", "grokfast_alpha": 0.98, "grokfast_lamb": 2.0}
_WINDOWED = {"gradient": "grokfast_window", "grokfast_window": 100, "grokfast_lamb": 5.0}
_GROKFAST = Setting(
    "Grokfast",
    "grokfast",
    "mult_mod97",
    0.5,
    Architecture(causal=True),
    Training(optimizer="adam", weight_decay=0.0, beta2=0.98, warmup_steps=10),
    50,
    {
        "Adam": Arm(60_000),  # half as long again as is reported, so that a run is seen to be within it or not
        "Grokfast": Arm(5_000, {**_FILTERED, "weight_decay": 0.005}),
        "Grokfast without decay": Arm(5_000, _FILTERED),
        "Grokfast, window": Arm(5_000, {**_WINDOWED, "weight_decay": 0.01}),
        "Adam, decay alone": Arm(10_000, {"weight_decay": 0.005}),
        "AdamW, λ = 1": Arm(5_000, {"optimizer": "adamw", "weight_decay": 1.0}),
        "AdamW, λ = 3": Arm(5_000, {"optimizer": "adamw", "weight_decay": 3.0}),
    },
)
# ⊥Grad and StableMax (Prieto et al. 2025): addition mod 113 (of the transformer subtraction) on 40 % of the rows, all
# of them at every step. Their wrapper of AdamW gives it β₂ = 0.999 and ε = 10⁻⁸, whereas AdamW alone has β₂ = 0.99 and
# ε = 10⁻²⁵.
_TINY = 1e-25
_ORTHOGONAL = {"gradient": "orthogonal", "beta2": 0.999, "epsilon": 1e-8}
_MLP = Architecture(kind="mlp", layers=2, mlp_width=200, activation="relu", biases=False)
_PLAIN = Training(batch_size=None, learning_rate=5e-3, weight_decay=0.0, beta2=0.99, epsilon=_TINY)
_ORTHOGONAL_MLP = Setting(
    "⊥Grad, MLP",
    "orthogonal",
    "add_mod113",
    0.4,
    _MLP,
    _PLAIN,
    10,
    {
        "AdamW": Arm(4_000),
        "⊥AdamW": Arm(4_000, _ORTHOGONAL),
        "AdamW, λ = 0.3": Arm(4_000, {"weight_decay": 0.3}),
        "AdamW, λ = 1": Arm(4_000, {"weight_decay": 1.0}),
    },
    is_exact=True,
)
_ORTHOGONAL_TRANSFORMER = Setting(
    "⊥Grad, transformer",
    "orthogonal",
    "sub_mod113",
    0.4,
    Architecture(layers=1, mlp_width=2048, activation="relu"),
    replace(_PLAIN, learning_rate=1e-3, dropout=0.1),
    50,
    {
        "AdamW": Arm(5_000),
        "⊥AdamW": Arm(5_000, _ORTHOGONAL),
        "AdamW, λ = 1.5": Arm(5_000, {"weight_decay": 1.5}),
    },
)
_STABLEMAX = Setting(
    "StableMax",
    "stablemax",
    "add_mod113",
    0.4,
    _MLP,
    replace(_PLAIN, learning_rate=1e-2, beta2=0.999),
    100,
    {"cross-entropy": Arm(20_000), "StableMax": Arm(80_000, {"loss": "stablemax"})},
    is_exact=True,
)
# Muon (Tveit et al. 2025): the settings of the code that they cite; Muon's own numbers are not published.
_MUON = {"optimizer": "muon", "muon_learning_rate": 0.02}
MUON_TASKS = {"add_mod97": 0.8, "div_mod97": 0.8, "mult_mod97": 0.5}
_MUON_ARMS = {
    "AdamW, softmax": Arm(5_000),
    "AdamW, StableMax": Arm(5_000, {"loss": "stablemax"}),
    "Muon, softmax": Arm(5_000, _MUON),
    "Muon, StableMax": Arm(5_000, {**_MUON, "loss": "stablemax"}),
    "AdamW, λ = 3": Arm(5_000, {"weight_decay": 3.0}),
}
SETTINGS: dict[str, Setting] = {
    one.name: one
    for one in (
        _GROKFAST,
        _ORTHOGONAL_MLP,
        _ORTHOGONAL_TRANSFORMER,
        _STABLEMAX,
        *(
            Setting(
                f"Muon, {task.replace('_', ' ')}",
                "muon",
                task,
                share,
                Architecture(heads=1, causal=True, biases=False),
                Training(beta2=0.98, warmup_steps=10, dropout=0.2),
                25,
                _MUON_ARMS,
            )
            for task, share in MUON_TASKS.items()
        ),
    )
}
EXACT = tuple(name for name, one in SETTINGS.items() if one.is_exact)
