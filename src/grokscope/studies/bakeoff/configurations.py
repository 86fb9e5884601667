"""The runs of the bake-off: every way of making a run grok sooner, with the same tasks, seeds, budget and tuning.

A family is one way, with four settings. All four fixed λ are configurations, and the best of them is chosen
post hoc. Of every other family one setting is a configuration: the one that the same rule (`tables.CHOICE`) chooses
from runs on one task, with seeds that the bake-off never uses. All are evaluated every 100 steps.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from grokscope.errors import InputError, shown
from grokscope.specs import Architecture, Cadence, ClosedLoop, ReadingSpec, RunSpec, Training, Trigger
from grokscope.studies.study import Precision, Runs
from grokscope.studies.synchronization.experiments import DECAYS, base_run
from grokscope.tasks import named_task, pinned_task_name

__all__ = [
    "AFTER_GROKKING",
    "BUDGET",
    "CHOSEN",
    "CONFIGURATIONS",
    "FAMILIES",
    "TASKS",
    "TUNING_TASK",
    "Configuration",
    "bakeoff_runs",
    "quick_runs",
    "task_order",
    "tuning_runs",
]

BUDGET = 8000  # steps
EVERY = 100  # steps between evaluations, for measures, triggers and the closed loop alike
AFTER_GROKKING = 1000  # steps for which a grokked run goes on: no lead is computed, but a collapse is seen
TASKS = ("add_mod97", "mult_mod97", "S5", "add_mod59")  # 59 was used for no tuning, here or in the paper
TRAIN_FRACTION = {"S5": 0.7}  # the first reading of the paper's Table 11; all others are the paper's 0.3
SEEDS, TUNING_SEEDS = 32, 16  # of each configuration on each task, of each setting
TUNING_TASK = "add_mod97"
FIRST_TUNING_SEED = 10_000  # and up; the bake-off's own are below


@dataclass(frozen=True)
class Configuration:
    """One way of making a run grok sooner; its fields are what it changes of a plain run at λ = 1."""

    weight_decay: float = 1.0
    """λ, to begin with."""
    signal: Literal["fsd", "train_accuracy"] | None = None
    """What the paper's trigger waits for; None has no trigger."""
    weight_decay_high: float = 3.0
    """λ_high of that trigger."""
    control: ClosedLoop | None = None
    """Our closed loop."""
    gradient: Literal["plain", "grokfast", "orthogonal"] = "plain"
    """What AdamW is given."""

    def apply(self, run: RunSpec) -> RunSpec:
        """The run in this configuration, whatever configuration it was in."""
        training = replace(run.training, weight_decay=self.weight_decay, gradient=self.gradient)
        return replace(run, training=training, trigger=self._trigger(run), control=self.control)

    def _trigger(self, run: RunSpec) -> Trigger | None:
        """The paper's trigger; on a group it waits for the FSD_gen that counts as synchronised there."""
        if self.signal is None:
            return None
        is_group = named_task(run.task).is_read_in_irreps
        at_least = ReadingSpec().fsd_gen_sync if self.signal == "fsd" and is_group else None
        return Trigger(self.signal, at_least, weight_decay=self.weight_decay_high, every=EVERY)


RAISED = (2.0, 3.0, 5.0, 10.0)  # λ_high: as far as the paper's forks go
GIVEN = (0.0, 1.0, 3.0, 5.0)  # λ with a changed gradient, whose authors use none or next to none

# Grokfast's α and ℓ are the published ones for modular arithmetic; ⊥Grad has nothing to set. The closed loop doubles λ,
# and may differ in how far λ rises and in how large a train loss it may cause.
FAMILIES: dict[str, dict[str, Configuration]] = {
    "fixed": {f"λ = {decay:g}": Configuration(decay) for decay in DECAYS},
    "FSD trigger": {f"λ = {high:g}": Configuration(signal="fsd", weight_decay_high=high) for high in RAISED},
    "memorisation trigger": {
        f"λ = {high:g}": Configuration(signal="train_accuracy", weight_decay_high=high) for high in RAISED
    },
    "closed loop": {
        f"λ up to {highest:g}, train loss {loss:g}": Configuration(
            control=ClosedLoop(every=EVERY, factor=2.0, highest=highest, train_loss=loss)
        )
        for highest in (5.0, 10.0)
        for loss in (0.1, 0.5)
    },
    "Grokfast": {f"λ = {decay:g}": Configuration(decay, gradient="grokfast") for decay in GIVEN},
    "orthogonal gradient": {f"λ = {decay:g}": Configuration(decay, gradient="orthogonal") for decay in GIVEN},
}

# What `tables.CHOICE` gives of the tuning runs, 16 seeds of each setting: results/bakeoff/tab-tuning.md.
CHOSEN = {
    "FSD trigger": "λ = 3",
    "memorisation trigger": "λ = 3",
    "closed loop": "λ up to 10, train loss 0.5",
    "Grokfast": "λ = 5",
    "orthogonal gradient": "λ = 0",
}

CONFIGURATIONS: dict[str, Configuration] = {
    **{f"fixed {setting}": fixed for setting, fixed in FAMILIES["fixed"].items()},
    **{family: FAMILIES[family][setting] for family, setting in CHOSEN.items()},
}


def task_order(task: str) -> tuple[int, str]:
    """By which tasks are sorted: the bake-off's own first, in its order.

    >>> sorted(["A5", "S5", "add_mod97"], key=task_order)
    ['add_mod97', 'S5', 'A5']
    """
    return (TASKS.index(task) if task in TASKS else len(TASKS), task)


def bakeoff_runs(n_seeds: int | None, precision: Precision, tasks: Iterable[str] = TASKS, budget: int = BUDGET) -> Runs:
    """Every configuration on every task, with the same seeds 0, 1, 2, … and the same budget.

    >>> runs = bakeoff_runs(n_seeds=1, precision="float32", tasks=["add_mod23"], budget=2000)
    >>> {spec.task for spec in runs.values()}, {spec.training.steps for spec in runs.values()}
    ({'add_mod23'}, {2000})
    """
    count = SEEDS if n_seeds is None else n_seeds
    if not 1 <= count < FIRST_TUNING_SEED:
        raise InputError(f"n_seeds must lie in [1, {FIRST_TUNING_SEED}), got {shown(count)}")
    known = [pinned_task_name(task) for task in dict.fromkeys(tasks) if named_task(task)]
    if not known:
        raise InputError("a bake-off needs at least one task")
    return _configured([_base(task, seed, budget, precision) for task in known for seed in range(count)])


def tuning_runs(n_seeds: int | None, precision: Precision) -> Runs:
    """The runs by which settings are chosen; fixed λ needs none, for it is chosen afterwards.

    >>> {spec.task for spec in tuning_runs(n_seeds=1, precision="float32").values()} == {TUNING_TASK}
    True
    """
    seeds = range(FIRST_TUNING_SEED, FIRST_TUNING_SEED + (TUNING_SEEDS if n_seeds is None else n_seeds))
    bases = {seed: _base(TUNING_TASK, seed, BUDGET, precision) for seed in seeds}
    return {
        f"{family}/{setting}_s{seed}": configuration.apply(run)
        for family in CHOSEN
        for setting, configuration in FAMILIES[family].items()
        for seed, run in bases.items()
    }


def quick_runs(precision: Precision = "float32") -> dict[str, Runs]:
    """Every configuration on a small task with a small model, two seeds: to see what the output is, not who wins.

    >>> {spec.task for spec in quick_runs()["bakeoff"].values()}
    {'add_mod17'}
    """
    small = Architecture(layers=1, width=32, heads=2, mlp_width=64)
    training = Training(steps=300, batch_size=128, learning_rate=5e-3)
    run = RunSpec("add_mod17", 0.7, architecture=small, training=training, precision=precision)
    plain = replace(run, checkpoints=Cadence(every=None))
    return {"bakeoff": _configured([plain.with_seed(seed) for seed in range(2)])}


def _configured(runs: Iterable[RunSpec]) -> Runs:
    return {
        f"{run.task}/{name}_s{run.seeds.split}": configuration.apply(run)
        for run in runs
        for name, configuration in CONFIGURATIONS.items()
    }


def _base(task: str, seed: int, budget: int, precision: Precision) -> RunSpec:
    """A run as the paper describes it, with the bake-off's budget; weights are not kept."""
    fraction = TRAIN_FRACTION.get(task, RunSpec().train_fraction)
    cadences = {"measurements": Cadence(every=EVERY), "checkpoints": Cadence(every=None)}
    return base_run(task, seed, precision, training=Training(steps=budget), train_fraction=fraction, **cadences)
