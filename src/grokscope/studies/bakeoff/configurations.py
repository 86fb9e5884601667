"""The fair bake-off: every way of making a run grok sooner, on the same tasks, seeds, budget, looks and tuning.

A family is one way, with four settings. All four fixed λ are arms, and the best of them is taken with hindsight. Of
every other family one setting is an arm: the one that the same rule (`bakeoff_tables.tuned`) chooses from
runs on one task, with seeds that the bake-off never uses. Everybody is looked at every 100 steps.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from grokscope.errors import InputError, shown
from grokscope.specs import Architecture, Cadence, ClosedLoop, Plan, ReadingSpec, RunSpec, Training, Trigger
from grokscope.studies.study import Precision
from grokscope.studies.synchronization.experiments import DECAYS, base_run
from grokscope.tasks import named_task, pinned_task_name

__all__ = [
    "ARMS",
    "CHOSEN",
    "FAMILIES",
    "FIRST_TUNING_SEED",
    "TASKS",
    "TUNING_TASK",
    "Arm",
    "arm_of",
    "bakeoff_plan",
    "quick_plan",
    "task_order",
    "tuning_plan",
    "tuning_runs",
]

BUDGET = 8000  # steps
EVERY = 100  # steps between looks, for measures, triggers and the closed loop alike
AFTER_GROKKING = 1000  # steps for which a grokked run is watched: no lead is computed, but a collapse is seen
TASKS = ("add_mod97", "mult_mod97", "S5", "add_mod59")  # 59 was used for no tuning, here or in the paper
TRAIN_FRACTION = {"S5": 0.7}  # the catalogue's first reading of Table 11; all others are the paper's 0.3
TUNING_TASK = "add_mod97"
FIRST_TUNING_SEED = 10_000  # and up; the bake-off's own are below


@dataclass(frozen=True)
class Arm:
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

    def of(self, run: RunSpec) -> RunSpec:
        """The run in this arm, whatever arm it was in."""
        training = replace(run.training, weight_decay=self.weight_decay, gradient=self.gradient)
        return replace(run, training=training, trigger=self._trigger(run), control=self.control)

    def has(self, run: RunSpec) -> bool:
        """Whether a run is in this arm already."""
        own = (run.training.weight_decay, run.training.gradient, run.control)
        return own == (self.weight_decay, self.gradient, self.control) and run.trigger == self._trigger(run)

    def _trigger(self, run: RunSpec) -> Trigger | None:
        """The paper's trigger; on a group it waits for the FSD_gen that counts as synchronised there."""
        if self.signal is None:
            return None
        is_group = named_task(run.task).sums is None
        at_least = ReadingSpec().fsd_gen_sync if self.signal == "fsd" and is_group else None
        return Trigger(self.signal, at_least, weight_decay=self.weight_decay_high, every=EVERY)


RAISED = (2.0, 3.0, 5.0, 10.0)  # λ_high: as far as the paper's forks go
GIVEN = (0.0, 1.0, 3.0, 5.0)  # λ beside a changed gradient, whose authors use none or next to none

# Grokfast's α and ℓ are the published ones for modular arithmetic; ⊥Grad has nothing to set. The closed loop doubles λ,
# and may differ in how far λ rises and in how large a train loss it may cause.
FAMILIES: dict[str, dict[str, Arm]] = {
    "fixed": {f"λ = {decay:g}": Arm(decay) for decay in DECAYS},
    "FSD trigger": {f"λ = {high:g}": Arm(signal="fsd", weight_decay_high=high) for high in RAISED},
    "memorisation trigger": {f"λ = {high:g}": Arm(signal="train_accuracy", weight_decay_high=high) for high in RAISED},
    "closed loop": {
        f"λ up to {highest:g}, train loss {loss:g}": Arm(
            control=ClosedLoop(every=EVERY, factor=2.0, highest=highest, train_loss=loss)
        )
        for highest in (5.0, 10.0)
        for loss in (0.1, 0.5)
    },
    "Grokfast": {f"λ = {decay:g}": Arm(decay, gradient="grokfast") for decay in GIVEN},
    "orthogonal gradient": {f"λ = {decay:g}": Arm(decay, gradient="orthogonal") for decay in GIVEN},
}

# What `tuned` says of the runs of `tuning_plan`, 16 seeds of each setting: results/bakeoff/tab-tuning.md.
CHOSEN = {
    "FSD trigger": "λ = 3",
    "memorisation trigger": "λ = 3",
    "closed loop": "λ up to 10, train loss 0.5",
    "Grokfast": "λ = 5",
    "orthogonal gradient": "λ = 0",
}

ARMS: dict[str, Arm] = {
    **{f"fixed {setting}": arm for setting, arm in FAMILIES["fixed"].items()},
    **{family: FAMILIES[family][setting] for family, setting in CHOSEN.items()},
}


def arm_of(run: RunSpec) -> str | None:
    """The arm a run is in, by its spec alone; None if it is in none, or if its seeds are for tuning.

    >>> arm_of(ARMS["Grokfast"].of(RunSpec()))
    'Grokfast'
    """
    if max(run.seeds.to_dict().values()) >= FIRST_TUNING_SEED:
        return None
    return next((name for name, arm in ARMS.items() if arm.has(run)), None)


def task_order(task: str) -> tuple[int, str]:
    """By which tasks are sorted: the bake-off's own first, as they stand in it.

    >>> sorted(["A5", "S5", "add_mod97"], key=task_order)
    ['add_mod97', 'S5', 'A5']
    """
    return (TASKS.index(task) if task in TASKS else len(TASKS), task)


def bakeoff_plan(
    out: str,
    tasks: Sequence[str] = TASKS,
    *,
    n_seeds: int = 32,
    budget: int = BUDGET,
    precision: Precision = "float32",
    device: str = "cpu",
) -> Plan:
    """Every arm on every task, with the same seeds 0, 1, 2, … and the same budget."""
    if not 1 <= n_seeds < FIRST_TUNING_SEED:
        raise InputError(f"n_seeds must lie in [1, {FIRST_TUNING_SEED}), got {shown(n_seeds)}")
    runs = (_base(task, seed, budget, precision) for task in _known(tasks) for seed in range(n_seeds))
    return _plan(out, [arm.of(run) for run in runs for arm in ARMS.values()], device)


def tuning_runs(n_seeds: int = 16, precision: Precision = "float32") -> dict[tuple[str, str], list[RunSpec]]:
    """The runs by which settings are chosen, by family and setting; fixed λ needs none, for it is chosen afterwards."""
    seeds = range(FIRST_TUNING_SEED, FIRST_TUNING_SEED + n_seeds)
    bases = [_base(TUNING_TASK, seed, BUDGET, precision) for seed in seeds]
    return {
        (family, setting): [arm.of(run) for run in bases]
        for family in CHOSEN
        for setting, arm in FAMILIES[family].items()
    }


def tuning_plan(out: str, *, n_seeds: int = 16, precision: Precision = "float32", device: str = "cpu") -> Plan:
    """The plan of `tuning_runs`; their seeds begin at 10,000, where the bake-off never goes."""
    runs = tuning_runs(n_seeds, precision)
    return _plan(out, [run for setting in runs.values() for run in setting], device)


def quick_plan(out: str, *, device: str = "cpu") -> Plan:
    """Every arm on a small task with a small model, two seeds: to see what comes out, not who wins."""
    small = Architecture(layers=1, width=32, heads=2, mlp_width=64)
    training = Training(steps=300, batch_size=128, learning_rate=5e-3)
    run = RunSpec("add_mod17", 0.7, architecture=small, training=training, checkpoints=Cadence(every=None))
    return _plan(out, [arm.of(run.with_seed(seed)) for seed in range(2) for arm in ARMS.values()], device)


def _known(tasks: Iterable[str]) -> list[str]:
    found = [pinned_task_name(task) for task in dict.fromkeys(tasks) if named_task(task)]
    if not found:
        raise InputError("a bake-off needs at least one task")
    return found


def _base(task: str, seed: int, budget: int, precision: Precision) -> RunSpec:
    """A run of the catalogue with the bake-off's budget; weights are not kept."""
    fraction = TRAIN_FRACTION.get(task, RunSpec().train_fraction)
    cadences = {"measurements": Cadence(every=EVERY), "checkpoints": Cadence(every=None)}
    return base_run(task, seed, precision, training=Training(steps=budget), train_fraction=fraction, **cadences)


def _plan(out: str, runs: Sequence[RunSpec], device: str) -> Plan:
    return Plan(out, tuple(runs), device, keep="forks", stop_after_grokking=AFTER_GROKKING)
