"""The runs: tuning on two tasks, then what was chosen on tasks that nobody tuned on. Each goes to its budget's end."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from grokscope.specs import Architecture, Cadence, RunSpec, Training
from grokscope.studies.steering.arms import (
    ADAMW,
    EVERY,
    FAMILIES,
    HINDSIGHT,
    PUBLISHED,
    Setting,
    chosen_settings,
    final_arms,
)
from grokscope.studies.study import Precision, Runs

__all__ = [
    "BASES",
    "CELLS",
    "EXPERIMENTS",
    "NEVER_LET_GO",
    "RECIPE",
    "TUNING_TASKS",
    "UNSEEN",
    "Cell",
    "in_hindsight",
    "quick_runs",
    "recipe_family",
]

RECIPE = "the recipe"  # the best family's chosen setting, which has its runs under the family's name in the final

TUNING_BUDGET, BUDGET = 5000, 6000  # steps, of which 2,000 show that a run is stable
MLP_BUDGET, LONG_BUDGET = 10_000, 20_000  # of sparse parity, which AdamW at λ = 1 learns in 2,500, and of two hops
TUNING_SEEDS, FINAL_SEEDS = 8, 32
JUDGED_SEEDS = 16  # of experiments beside the final on which a claim rests: fewer refute nothing
OTHER_SEEDS = 8
FIRST_TUNING_SEED = 10_000  # and up; all others are below
MLP = Architecture(kind="mlp", layers=1, activation="relu")


@dataclass(frozen=True)
class Cell:
    """A task with a model and a share of the rows: what arms are compared on."""

    task: str
    """As it is named everywhere."""
    condition: str
    """What differs from the task's base: nothing, the model, or the train fraction."""
    train_fraction: float = 0.3
    """Share of the rows."""
    architecture: Architecture = field(default_factory=Architecture)
    """The model."""
    batch_size: int = 512
    """Rows per step."""
    budget: int = BUDGET
    """Optimiser steps."""

    @property
    def name(self) -> str:
        """Task and condition; without underscores, for what stands between those may be a seed in a run's name."""
        return f"{self.task.replace('_', ' ')}, {self.condition}"

    def run(self, seed: int, precision: Precision) -> RunSpec:
        """A plain run at λ = 1."""
        return RunSpec(
            self.task,
            self.train_fraction,
            architecture=self.architecture,
            training=Training(steps=self.budget, batch_size=self.batch_size),
            measurements=Cadence(every=EVERY),
            checkpoints=Cadence(every=None),
            precision=precision,
        ).with_seed(seed)


def _conditions(base: Cell, other: Architecture, fraction: float) -> tuple[Cell, ...]:
    return (
        base,
        replace(base, condition="other model", architecture=other),
        replace(base, condition="other train fraction", train_fraction=fraction),
    )


ONE_LAYER = Architecture(layers=1)
TUNING_TASKS = {cell.task: cell for cell in (Cell("add_mod97", "base"), Cell("S5", "base", 0.5))}
_GROUPS = {"A5": (0.7, 0.5), "Aff11": (0.5, 0.7)}
_TABLES = ("add_mod71", "add_mod113", "sub_mod97", "div_mod97", "poly_a2+b2_mod97")
# Tasks on which nothing was tuned, here or in the lead that this study follows.
UNSEEN: dict[str, tuple[Cell, ...]] = {
    **{task: _conditions(Cell(task, "base"), ONE_LAYER, 0.5) for task in _TABLES},
    **{task: _conditions(Cell(task, "base", own), ONE_LAYER, other) for task, (own, other) in _GROUPS.items()},
    "parity_n30_k3": _conditions(
        Cell("parity_n30_k3", "base", 0.25, MLP, 128, MLP_BUDGET), replace(MLP, layers=2), 0.4
    ),
    "twohop_e100_d10_phi7": (Cell("twohop_e100_d10_phi7", "base", budget=LONG_BUDGET),),
}  # fmt: skip
CELLS: dict[str, Cell] = {
    cell.name: cell for cell in (*TUNING_TASKS.values(), *(cell for cells in UNSEEN.values() for cell in cells))
}
FEWER_SEEDS = {"twohop_e100_d10_phi7": 16}  # its runs are four times as long


def _compared(cells: tuple[Cell, ...], arms: Mapping[str, Setting], seeds: range, precision: Precision) -> Runs:
    return {
        f"{cell.name}/{arm}_s{seed}": setting.apply(cell.run(seed, precision))
        for cell in cells
        for arm, setting in arms.items()
        for seed in seeds
    }


def _tuning(n_seeds: int | None, precision: Precision) -> Runs:
    """Every setting of every family, with seeds that nothing else uses."""
    seeds = range(FIRST_TUNING_SEED, FIRST_TUNING_SEED + (n_seeds or TUNING_SEEDS))
    arms = {f"{family}/{name}": one for family, settings in FAMILIES.items() for name, one in settings.items()}
    cells = tuple(replace(cell, budget=TUNING_BUDGET) for cell in TUNING_TASKS.values())
    return _compared(cells, arms, seeds, precision)


def _final(n_seeds: int | None, precision: Precision) -> Runs:
    """The chosen arms on every cell; none until they are chosen."""
    found: Runs = {}
    for cell in CELLS.values():
        seeds = range(n_seeds or FEWER_SEEDS.get(cell.task, FINAL_SEEDS))
        found |= _compared((cell,), final_arms(), seeds, precision)
    return found


BASES = tuple(cells[0] for task, cells in UNSEEN.items() if task not in FEWER_SEEDS)


def in_hindsight(decay: float) -> str:
    """The arm of AdamW at one of the λ of which the best is taken after the fact.

    >>> in_hindsight(0.3)
    'AdamW at λ = 0.3'
    """
    return f"AdamW at λ = {decay:g}"


def _hindsight(n_seeds: int | None, precision: Precision) -> Runs:
    """AdamW at every λ from which the best is taken for each task."""
    arms = {in_hindsight(decay): Setting({"weight_decay": decay}) for decay in HINDSIGHT}
    return _compared(BASES, arms, range(n_seeds or JUDGED_SEEDS), precision)


def _published(n_seeds: int | None, precision: Precision) -> Runs:
    """What others have published, as tuned here, beside AdamW as tuned here; none until that is known."""
    chosen = chosen_settings()
    arms = {family: FAMILIES[family][chosen[family]] for family in (ADAMW, *PUBLISHED) if family in chosen}
    return _compared(BASES, arms, range(n_seeds or JUDGED_SEEDS), precision)


def recipe_family() -> str | None:
    """The family whose chosen setting is the recipe: the best of the tuning; None until that is known.

    >>> recipe_family() is None or recipe_family() in FAMILIES
    True
    """
    return next((family for family in chosen_settings() if family != ADAMW), None)


def recipe_setting() -> Setting | None:
    """The recipe as a setting; None until it is known.

    >>> recipe_setting() is None or isinstance(recipe_setting(), Setting)
    True
    """
    family = recipe_family()
    return None if family is None else FAMILIES[family][chosen_settings()[family]]


NEVER_LET_GO = "never let go"


def without_parts(recipe: Setting) -> dict[str, Setting]:
    """The recipe without each of its parts.

    >>> [*without_parts(FAMILIES["Muon, let go"]["λ = 5, η = 0.02"])]
    ['with AdamW in place of Muon', 'never let go', 'never eased', 'λ = 1 throughout']
    """
    found: dict[str, Setting] = {}
    if recipe.training.get("optimizer") == "muon":
        adamw = {name: value for name, value in recipe.training.items() if name != "muon_learning_rate"}
        found["with AdamW in place of Muon"] = replace(recipe, training=adamw | {"optimizer": "adamw"})
    if recipe.release is not None:
        never = None if recipe.release.gentle is None else replace(recipe.release, at=(), patience=0)
        found[NEVER_LET_GO] = replace(recipe, release=never)
    if recipe.release is not None and recipe.release.patience:
        found["never eased"] = replace(recipe, release=replace(recipe.release, patience=0))
    if recipe.release is not None and recipe.release.gentle is not None:
        found["strong from the first step"] = replace(recipe, release=replace(recipe.release, gentle=None))
    found["λ = 1 throughout"] = replace(recipe, training={**recipe.training, "weight_decay": 1.0}, release=None)
    if recipe.initialization:
        found["usual initial weights"] = replace(recipe, initialization={})
    if recipe.training.get("embedding_decay", 1.0) != 1.0:
        found["one λ for all parameters"] = replace(recipe, training={**recipe.training, "embedding_decay": 1.0})
    return found


def _ablation(n_seeds: int | None, precision: Precision) -> Runs:
    """The recipe without each of its parts; with all of them it is in the final."""
    recipe = recipe_setting()
    return {} if recipe is None else _compared(BASES, without_parts(recipe), range(n_seeds or JUDGED_SEEDS), precision)


CADENCES = (25, 100)  # beside the 50 of everything else


def _cadence(n_seeds: int | None, precision: Precision) -> Runs:
    """The recipe evaluated every 25 and 100 steps; every 50 it is in the final. None if it does not react."""
    recipe, found = recipe_setting(), dict[str, RunSpec]()
    if recipe is None or recipe.release is None:
        return found
    for every in CADENCES:
        arm = replace(recipe, release=replace(recipe.release, every=every))
        runs = _compared(BASES, {f"every {every} steps": arm}, range(n_seeds or OTHER_SEEDS), precision)
        found |= {name: replace(run, measurements=Cadence(every=every)) for name, run in runs.items()}
    return found


EXPERIMENTS: dict[str, Callable[[int | None, Precision], Runs]] = {
    "tuning": _tuning,
    "final": _final,
    "hindsight": _hindsight,
    "published": _published,
    "ablation": _ablation,
    "cadence": _cadence,
}


def quick_runs(precision: Precision = "float32") -> dict[str, Runs]:
    """Two settings of each of two families on a small task with a small model: to see what the output is.

    >>> {name: len(runs) for name, runs in quick_runs().items()}
    {'tuning': 8}
    """
    small = Architecture(layers=1, width=32, heads=2, mlp_width=64)
    cell = Cell("add_mod17", "base", 0.7, small, 128, 600)
    families = {family: [*FAMILIES[family].items()][4:6] for family in (ADAMW, "Muon, let go")}
    arms = {f"{family}/{name}": one for family, settings in families.items() for name, one in settings}
    return {"tuning": _compared((cell,), arms, range(2), precision)}
