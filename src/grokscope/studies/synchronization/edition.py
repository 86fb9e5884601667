"""The second edition of the study's runs: every cell with 32 seeds, every fork with its parent, all from one commit.

Experiments that the first edition has keep the names of their runs, so what is claimed of them is read from either.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from grokscope.specs import Cadence, NormHold, RunSpec, Trigger
from grokscope.studies.run_set import Precision, Runs, RunSet
from grokscope.studies.synchronization.experiments import (
    BUDGET,
    FORK_BUDGET,
    TABLE_1,
    architecture,
    base,
    base_run,
    crossprime,
    fork,
    fork_of,
    open_choices,
    seeds_of,
    spread,
    symmetric,
    with_forks,
)

__all__ = ["MEASURES", "MILESTONES", "NEW", "READING_STEPS", "RUN_SETS", "SEEDS"]

SEEDS = 32  # of every cell that a claim rests on
CANNOT_GROK = 64  # runs with shuffled labels: a rate of false alarms of 1 % has to be told from 5 %
LESS = 16  # of cells that are shown and that no claim rests on
ACCELERATED = 7_000  # the slowest of 32 base runs groks at 4,700, and must then be seen for 2,000 steps
SHORT = 10_000  # of runs that differ from the base in one choice
LONG = 60_000
# λt = 3,100 to 3,600 at grokking, at λ = 0.03 104,000 to 120,000 steps; a median beyond λt = 3,900 is over 25 % later.
LONGEST = 130_000
REPORTED_END = 55_000  # of multiplication, §5.6
NORM_FORK = 1_000
FLOORS = (45.0, 35.0, 30.0, 26.0, 22.0)  # of a norm that is 52 at the fork and 23 where free runs grok
LED = (30.0, 23.5, 18.0)  # 23.5 is the norm at grokking in the paper's Figure 7
LED_WITHIN = 500  # steps: no single step scales the weights by more than 0.2 %
KEPT_FROM = (1_000, 1_500, 2_000, 2_500)
KEPT_PARTS = ("embed", "blocks.0", "blocks.1", "unembed")
SCALED = 3_000  # the last step of forks whose weights are scaled: what is asked is their first evaluation
READING_STEPS = tuple(range(0, 5_001, 500))  # the rows of Table 5, and the untrained network

Experiment = Callable[[int | None, Precision], Runs]


def _with(spec: RunSpec, *, steps: int | None = None, **changes: Any) -> RunSpec:
    """The run with another budget and other values of its training."""
    training = replace(spec.training, steps=steps or spec.training.steps, **changes)
    at = tuple(step for step in spec.checkpoints.at if step <= training.steps)
    return replace(spec, training=training, checkpoints=replace(spec.checkpoints, at=at))


def _seeds(n: int | None, first: tuple[int, ...] = TABLE_1["add_mod97"], most: int = SEEDS) -> tuple[int, ...]:
    count = most if n is None else min(n, most)
    return seeds_of(first, count)[:count]


def _widened(experiment: Experiment) -> Experiment:
    """An experiment of the first edition with 32 seeds unless another number is asked for."""
    return lambda n, precision: experiment(SEEDS if n is None else n, precision)


def accelerator(n: int | None, precision: Precision) -> Runs:
    """Figure 8: λ raised at the FSD crossing, at memorisation, at step 300, at random; and restored after grokking."""
    signals = {"fsd": Trigger("fsd"), "mem": Trigger("train_accuracy"), "early": Trigger("step")}
    rules = [(name, trigger, high) for name, trigger in signals.items() for high in (3.0, 5.0, 10.0)]
    controls = {"random": Trigger("random"), "restored": Trigger("fsd", restore_after_grokking=True)}
    rules += [(name, trigger, high) for name, trigger in controls.items() for high in (3.0, 5.0)]
    found: Runs = {}
    for seed in _seeds(n):
        parent = base_run("add_mod97", seed, precision)
        found[f"fixed_s{seed}"] = parent
        for name, trigger, high in rules:
            rule = replace(trigger, weight_decay=high)
            found[f"{name}_x{high:g}_s{seed}"] = replace(_with(parent, steps=ACCELERATED), trigger=rule)
    return found


def threshold(n: int | None, precision: Precision) -> Runs:
    """§6, the threshold mechanism: the free forks, and the weights scaled at the fork."""
    found: Runs = {}
    for seed in _seeds(n):
        parent = base_run("add_mod97", seed, precision)
        found[f"parent_s{seed}"] = parent
        found |= {f"free_x{decay:g}_s{seed}": fork_of(parent, NORM_FORK, decay) for decay in (1.0, 3.0)}
        for scale in (0.5, 0.8, 1.25, 2.0):
            found[f"scaled{scale:g}_s{seed}"] = _with(fork_of(parent, NORM_FORK, 1.0, scale=scale), steps=SCALED)
    return found


def norm_holds() -> dict[str, NormHold | None]:
    """How the norm is held in each configuration of the experiment `norms`; `free` holds nothing.

    A floor asks whether runs grok above a norm, `led` whether they grok because they are at one, `kept_from` whether
    the norm has to fall any further, a part's whether it is that part's.

    >>> list(norm_holds())[:3], norm_holds()["led18"].over
    (['free', 'control', 'floor45'], 500)
    """
    begin = NORM_FORK
    holds: dict[str, NormHold | None] = {"free": None, "control": NormHold(start=begin, level=1.0, side="at_least")}
    holds |= {f"floor{level:g}": NormHold(start=begin, level=level, side="at_least") for level in FLOORS}
    holds |= {f"led{level:g}": NormHold(start=begin, level=level, over=LED_WITHIN) for level in LED}
    holds |= {f"kept_from{step}": NormHold(start=step) for step in KEPT_FROM}
    return holds | {f"kept_{part}": NormHold((part,), start=begin) for part in KEPT_PARTS}


def norms(n: int | None, precision: Precision) -> Runs:
    """Beyond the paper: forks whose norm is kept above a level, led to one, or kept, as a whole and part by part."""
    return {
        f"{name}_s{seed}": replace(fork_of(base_run("add_mod97", seed, precision), NORM_FORK, 1.0), norm_hold=hold)
        for name, hold in norm_holds().items()
        for seed in _seeds(n)
    }


def symmetric_long(n: int | None, precision: Precision) -> Runs:
    """Table 11, Figure 9: S5 at three train fractions; the smallest to 60,000 steps, for it groks late if ever."""
    runs = symmetric(SEEDS if n is None else n, precision)
    return {name: _with(run, steps=LONG) if name.startswith("S5_f0.3") else run for name, run in runs.items()}


def multiplication(n: int | None, precision: Precision) -> Runs:
    """§5.6: multiplication, and one seed, on which no claim rests, to the reported 55,000 steps."""
    short = {f"mult_mod97_s{seed}": base_run("mult_mod97", seed, precision) for seed in _seeds(n, (42,))}
    return short | {"mult_mod97_s42_long": _decayed("mult_mod97", 42, precision, REPORTED_END, 1.0)}


def open_questions(n: int | None, precision: Precision) -> Runs:
    """What the paper leaves open: the law on subtraction, FSD_gen on other groups."""
    found: Runs = {}
    for seed in _seeds(n, (42, 123, 0, 1, 2)):
        found |= with_forks(f"sub_mod97_s{seed}", base_run("sub_mod97", seed, precision), 1000)
    for group, seeds in {"A5": SEEDS, "D59": SEEDS, "Aff11": LESS}.items():  # no claim is about the last
        found |= {
            f"{group}_s{seed}": base_run(group, seed, precision, train_fraction=0.5)
            for seed in _seeds(n, (42, 0, 1), seeds)
        }
    return found


def negatives(n: int | None, precision: Precision) -> Runs:
    """Runs that memorise and cannot grok: shuffled labels."""
    return {
        f"shuffled_s{seed}": base_run("add_mod97", seed, precision, shuffled_labels=True)
        for seed in _seeds(n, (42, 0, 1), CANNOT_GROK)
    }


def structureless(n: int | None, precision: Precision) -> Runs:
    """Runs that memorise and cannot grok: tables in which there is nothing to find."""
    return {
        f"{task}_s{seed}": base_run(task, seed, precision) for task in ("latin97", "random97") for seed in _seeds(n)
    }


def long(n: int | None, precision: Precision) -> Runs:
    """Cells that the first edition took for negatives: little weight decay, little data. Censored at their budget."""
    found: Runs = {}
    for seed in _seeds(n):
        found[f"weak_decay0.1_s{seed}"] = _decayed("add_mod97", seed, precision, LONG, 0.1)
        found[f"weak_decay0.03_s{seed}"] = _decayed("add_mod97", seed, precision, LONGEST, 0.03)
        little = base_run("add_mod97", seed, precision, train_fraction=0.15)
        found[f"little_data_s{seed}"] = _with(little, steps=LONG)
    groups = symmetric_long(n, precision)
    return found | {name: run for name, run in groups.items() if name.startswith("S5_f0.3")}


def _decayed(task: str, seed: int, precision: Precision, steps: int, decay: float, rate: float = 1e-3) -> RunSpec:
    """A run at another λ, or another η, from its first step on."""
    if (decay, rate, steps) == (1.0, 1e-3, BUDGET):
        return base_run(task, seed, precision)  # its states at fork points are kept
    run = base_run(task, seed, precision)
    return replace(_with(run, steps=steps, weight_decay=decay, learning_rate=rate), checkpoints=Cadence(500))


CLOCK: dict[str, tuple[str, int, float, float]] = {  # configuration → task, steps, λ, η
    "add_mod97_x0.03": ("add_mod97", LONGEST, 0.03, 1e-3),
    "add_mod97_x0.1": ("add_mod97", LONG, 0.1, 1e-3),
    "add_mod97_x0.3": ("add_mod97", 30_000, 0.3, 1e-3),
    "add_mod97_x1": ("add_mod97", BUDGET, 1.0, 1e-3),
    "add_mod97_x3": ("add_mod97", FORK_BUDGET, 3.0, 1e-3),
    "eta0.0003_x1": ("add_mod97", 25_000, 1.0, 3e-4),
    "eta0.0003_x3.333": ("add_mod97", BUDGET, 10 / 3, 3e-4),
    "eta0.003_x0.333": ("add_mod97", BUDGET, 1 / 3, 3e-3),
    "eta0.003_x1": ("add_mod97", FORK_BUDGET, 1.0, 3e-3),
    **{
        f"{task}_x{decay:g}": (task, steps, decay, 1e-3)
        for task in ("add_mod53", "mult_mod97")
        for decay, steps in ((0.3, 30_000), (1.0, BUDGET), (3.0, FORK_BUDGET))
    },
}


def clock(n: int | None, precision: Precision) -> Runs:
    """Is λt, or ηλt, at grokking a constant: λ from 0.03 to 3 from the first step, η varied, two other tasks."""
    found: Runs = {}
    for name, (task, steps, decay, rate) in CLOCK.items():
        for seed in _seeds(n, TABLE_1[task]):
            found[f"{name}_s{seed}"] = _decayed(task, seed, precision, steps, decay, rate)
    return found


def sensitivity(n: int | None, precision: Precision) -> Runs:
    """`docs/paper-audit.md` §2: what the paper leaves open, one change at a time, at 32 seeds.

    These are also the set-ups of the search over readings, so their checkpoints are the steps of Table 5.
    """
    checkpoints = Cadence(every=None, at=READING_STEPS)
    return {
        f"{name}_s{seed}": base_run("add_mod97", seed, precision, checkpoints=checkpoints, **change)
        for name, change in open_choices(SHORT).items()
        for seed in _seeds(n)
    }


MEASURES = (
    "fsd",
    "fsd_k",
    "fsd_gen",
    "rank",
    "control",
    "paper_restricted",
    "trig",
    "logit_map",
    "fsd@sum",
    "fsd@additive",
    "rank@sum",
)
MILESTONES = ("removal", "logits", "fourier_kan", "ablation")
FORKED = RunSet(
    "base, forks and groups",
    # By verdicts for the time: parts are trained in this order, and where time ends the last are missing. Forks come
    # with their parents.
    experiments={
        "base": _widened(base),
        "fork": _widened(fork),
        "crossprime": _widened(crossprime),
        "spread": _widened(spread),
        "threshold": threshold,
        "norms": norms,
        "symmetric": symmetric_long,
        "accelerator": accelerator,
        "negatives": negatives,
        "architecture": _widened(architecture),
        "structureless": structureless,
        "open_questions": open_questions,
        "clock": clock,
        "long": long,
        "multiplication": multiplication,
    },
    measures=(*MEASURES, "last_block"),
    milestones=MILESTONES,
    # Of all others nothing is asked that their logs do not tell.
    measured=("base", "symmetric", "multiplication", "negatives", "structureless"),
    plan_options={"signals": True},
)
READ = RunSet(
    "sensitivity, with every reading",
    experiments={"sensitivity": sensitivity, "readings": sensitivity},
    measures=("readings",),
    measured=("sensitivity",),
    plan_options={"signals": True, "keep": "none"},  # measured where the weights are; listed steps are no fork points
)
RUN_SETS = (FORKED, READ)
# The experiments that the first edition does not have: known to claims before their runs are made.
NEW: dict[str, Experiment] = {
    "norms": norms,
    "structureless": structureless,
    "long": long,
    "clock": clock,
    "readings": sensitivity,
}
