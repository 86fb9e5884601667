"""Every run behind the paper's tables and figures and the supplementary analyses, to be read top to bottom.

An experiment is a set of named runs. Experiments share runs: equal specs are one run, trained once. Forks and runs with
triggers are runs like all others; a fork's parent is always a run of the study too.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from grokscope.specs import Architecture, Cadence, Fork, Initialization, RunSpec, Seeds, Training, Trigger
from grokscope.studies.run_set import Precision, Runs

__all__ = ["EXPERIMENTS", "quick_runs"]

BUDGET = 15_000  # steps of every base run: none is stopped where a lead is computed
LONG = 55_000  # the reported end of multiplication
FORK_BUDGET = 8_000
FORK_STEP = {53: 2000, 97: 1000, 131: 1000}
DECAYS = (1.0, 2.0, 3.0, 5.0)
TABLE_1 = {
    "add_mod97": (42, 123, 0, 1, 2),
    "add_mod53": (42,),
    "add_mod71": (42,),
    "add_mod113": (42,),
    "add_mod131": (42,),
    "mult_mod97": (42,),
    "sub_mod97": (42, 123),  # 123 is in the text alone (§5.6)
}
S5_SEEDS = (0, 1, 42, 2, 7, 123)
SHOWN = Seeds(42, 42, 42)  # these base runs keep their last state: a grokked model for each task


def seeds_of(reported: Iterable[int], wanted: int | None) -> tuple[int, ...]:
    """The reported seeds, and beyond them 0, 1, 2, … until there are as many as wanted.

    >>> seeds_of((42, 0), 4)
    (42, 0, 1, 2)
    """
    found = list(reported)
    others = (seed for seed in range(10**6) if seed not in found)
    while wanted is not None and len(found) < wanted:
        found.append(next(others))
    return tuple(found)


def base_run(task: str, seed: int, precision: Precision, **changes: Any) -> RunSpec:
    """A run as §3 describes it, with states kept where forks are made, and of one seed at the end."""
    modulus = task.rpartition("mod")[2]
    at: tuple[int, ...] = (FORK_STEP[int(modulus)],) if modulus.isdigit() and int(modulus) in FORK_STEP else ()
    seeds = changes.get("seeds", Seeds(seed, seed, seed))
    at += (BUDGET,) if seeds == SHOWN else ()
    spec = RunSpec(task=task, training=Training(steps=BUDGET), checkpoints=Cadence(500, at=at), precision=precision)
    return replace(spec, seeds=seeds, **{name: value for name, value in changes.items() if name != "seeds"})


def fork_of(parent: RunSpec, step: int, weight_decay: float, seeds: Seeds | None = None, **options: Any) -> RunSpec:
    """A branch that changes λ (and, to see the spread, the data order), measured every 100 steps."""
    training = replace(parent.training, weight_decay=weight_decay, steps=FORK_BUDGET)
    fork = Fork(parent.content_hash, step, **options)
    return replace(parent, training=training, fork=fork, seeds=seeds or parent.seeds, checkpoints=Cadence(500))


def with_forks(name: str, parent: RunSpec, step: int) -> Runs:
    """A run, and its branches at each λ of the law."""
    return {name: parent} | {f"{name}_x{decay:g}": fork_of(parent, step, decay) for decay in DECAYS}


def base(n: int | None, precision: Precision) -> Runs:
    """Tables 1, 2, 3, 5, 6, 7 and Figures 1, 2, 4: the eleven configurations, and the twelfth of the text."""
    return {
        f"{task}_s{seed}": base_run(task, seed, precision)
        for task, reported in TABLE_1.items()
        for seed in seeds_of(reported, n)
    }


def fork(n: int | None, precision: Precision) -> Runs:
    """Tables 4 and 9, Figure 3: six branches from step 1,000 of `add_mod97_s42`, and of the other seeds beside it."""
    return {
        f"add_mod97_s{seed}_x{decay:g}": fork_of(base_run("add_mod97", seed, precision), 1000, decay)
        for seed in seeds_of((42,), n)
        for decay in (1.0, 2.0, 3.0, 4.0, 5.0, 10.0)
    }


def crossprime(n: int | None, precision: Precision) -> Runs:
    """Table 10, Figures 6 and 7: three primes, four λ, five draws: seeds for 97, data orders for 53 and 131."""
    found: Runs = {}
    for modulus, step in FORK_STEP.items():
        for draw in seeds_of(TABLE_1["add_mod97"], n):
            seeds = Seeds(draw, draw, draw) if modulus == 97 else Seeds(42, 42, draw)
            parent = base_run(f"add_mod{modulus}", 42, precision, seeds=seeds)
            found |= with_forks(f"add_mod{modulus}_d{draw}", parent, step)
    return found


def spread(n: int | None, precision: Precision) -> Runs:
    """§6, "re-running the identical fork": 16 data orders after the fork of `add_mod97_s42` at step 1,000, λ = 1."""
    parent = base_run("add_mod97", 42, precision)
    return {
        f"add_mod97_s42_order{draw}": fork_of(parent, 1000, 1.0, Seeds(42, 42, draw)) for draw in range(max(16, n or 0))
    }


def accelerator(n: int | None, precision: Precision) -> Runs:
    """Figure 8: λ raised at the FSD crossing, at memorisation, at step 300, at random; and restored after grokking."""
    triggers = {
        "fsd": Trigger("fsd"),
        "mem": Trigger("train_accuracy"),
        "early": Trigger("step"),
        "random": Trigger("random"),
        "restored": Trigger("fsd", restore_after_grokking=True),
    }
    found: Runs = {}
    for seed in seeds_of((42, 0, 1), n):
        parent = base_run("add_mod97", seed, precision)
        found[f"fixed_s{seed}"] = parent
        found |= {
            f"{name}_x{high:g}_s{seed}": replace(parent, trigger=replace(trigger, weight_decay=high))
            for high in (3.0, 5.0, 10.0)
            for name, trigger in triggers.items()
        }
    return found


def threshold(n: int | None, precision: Precision) -> Runs:
    """§6, the threshold mechanism: norms frozen at the fork or matched to the parent's, and weights scaled."""
    found: Runs = {}
    for seed in seeds_of((42, 0, 1), n):
        parent = base_run("add_mod97", seed, precision)
        found[f"parent_s{seed}"] = parent
        found |= {
            f"{norm}_x{decay:g}_s{seed}": fork_of(parent, 1000, decay, norm=norm)
            for norm in ("free", "frozen", "matched")
            for decay in (1.0, 3.0)
        }
        found |= {
            f"scaled{scale:g}_s{seed}": fork_of(parent, 1000, 1.0, scale=scale) for scale in (0.5, 0.8, 1.25, 2.0)
        }
    return found


def symmetric(n: int | None, precision: Precision) -> Runs:
    """Table 11, Figure 9: S5, six seeds, at the three train fractions that "30 % held out" may mean."""
    return {
        f"S5_f{fraction:g}_s{seed}": base_run("S5", seed, precision, train_fraction=fraction)
        for fraction in (0.7, 0.5, 0.3)
        for seed in seeds_of(S5_SEEDS, n)
    }


def architecture(n: int | None, precision: Precision) -> Runs:
    """Table 8, Figure 5: one layer, attention only, MLP only as written, and the fair control that sees its inputs."""
    variants = {
        "two_layers": Architecture(),
        "one_layer": Architecture(layers=1),
        "attention_only": Architecture(mlp="dropped"),
        "mlp_only": Architecture(attention="dropped"),
        "mlp_only_pooled": Architecture(attention="dropped", readout="pooled"),
    }
    return {
        f"{name}_s{seed}": base_run("add_mod97", seed, precision, architecture=variant)
        for name, variant in variants.items()
        for seed in seeds_of((42,), n)
    }


def multiplication(n: int | None, precision: Precision) -> Runs:
    """§5.6: multiplication to the reported 55,000 steps, one seed; three readings of the same runs."""
    short = {f"mult_mod97_s{seed}": base_run("mult_mod97", seed, precision) for seed in seeds_of((42,), n)}
    return short | {
        "mult_mod97_s42_long": base_run(
            "mult_mod97", 42, precision, training=Training(steps=LONG), checkpoints=Cadence(500)
        )
    }


def open_questions(n: int | None, precision: Precision) -> Runs:
    """What the paper leaves open: the law on subtraction, FSD_gen on other groups."""
    found: Runs = {}
    for seed in seeds_of((42, 123, 0, 1, 2), n):
        found |= with_forks(f"sub_mod97_s{seed}", base_run("sub_mod97", seed, precision), 1000)
    for group in ("A5", "Aff11", "D59"):
        found |= {f"{group}_s{s}": base_run(group, s, precision, train_fraction=0.5) for s in seeds_of((42, 0, 1), n)}
    return found


def negatives(n: int | None, precision: Precision) -> Runs:
    """Runs that should not grok: little weight decay, shuffled labels, little data."""
    found: Runs = {}
    for seed in seeds_of((42, 0, 1), n):
        weak = Training(steps=BUDGET, weight_decay=0.1)
        found[f"weak_decay_s{seed}"] = base_run("add_mod97", seed, precision, training=weak)
        found[f"shuffled_s{seed}"] = base_run("add_mod97", seed, precision, shuffled_labels=True)
        found[f"little_data_s{seed}"] = base_run("add_mod97", seed, precision, train_fraction=0.15)
    return found


def open_choices(steps: int) -> dict[str, dict[str, Any]]:
    """`docs/paper-audit.md` §2: what the paper leaves open, one change of a run of so many steps at a time."""
    training = Training(steps=steps)
    changes: dict[str, dict[str, Any]] = {
        "default": {},
        "beta2_0.98": {"training": replace(training, beta2=0.98)},
        "matrices_only": {"training": replace(training, decay_parameters="matrices")},
        "causal": {"architecture": Architecture(causal=True)},
        "replacement": {"training": replace(training, sampling="replacement")},
        "dropout_0.1": {"training": replace(training, dropout=0.1)},
        "warmup_100": {"training": replace(training, warmup_steps=100)},
        "clip_1": {"training": replace(training, clip_norm=1.0)},
        "std_0.02": {"initialization": Initialization(embedding_std=0.02)},
        "norm_for_mlp": {"architecture": Architecture(mlp="norm")},
    }
    return {name: {"training": training} | change for name, change in changes.items()}


def sensitivity(n: int | None, precision: Precision) -> Runs:
    """`docs/paper-audit.md` §2, by the paper's three seeds."""
    return {
        f"{name}_s{seed}": base_run("add_mod97", seed, precision, **change)
        for name, change in open_choices(BUDGET).items()
        for seed in seeds_of((42, 0, 1), n)
    }


EXPERIMENTS: dict[str, Callable[[int | None, Precision], Runs]] = {
    "base": base,
    "fork": fork,
    "crossprime": crossprime,
    "spread": spread,
    "accelerator": accelerator,
    "threshold": threshold,
    "symmetric": symmetric,
    "architecture": architecture,
    "multiplication": multiplication,
    "open_questions": open_questions,
    "negatives": negatives,
    "sensitivity": sensitivity,
}


def quick_runs(precision: Precision = "float32") -> dict[str, Runs]:
    """A reduced catalogue for a machine of two cores: real runs under the same names, with shorter budgets.

    Three seeds of the base run, for a claim about single runs needs two, and the branches of one of them that grok
    soonest; the run itself is their control. Checkpoints are fewer, for on a CPU what is measured at one costs as much
    as hundreds of steps.

    >>> {name: len(runs) for name, runs in quick_runs().items() if runs}
    {'base': 3, 'fork': 2}
    """

    def short(run: RunSpec, steps: int) -> RunSpec:
        at = tuple(sorted({step for step in (*run.checkpoints.at, steps) if step <= steps}))
        return replace(run, training=replace(run.training, steps=steps), checkpoints=Cadence(1000, at=at))

    add = {f"add_mod97_s{seed}": short(base_run("add_mod97", seed, precision), 5000) for seed in (42, 0, 1)}
    parent = add["add_mod97_s42"]
    forks = {f"add_mod97_s42_x{decay:g}": short(fork_of(parent, 1000, decay), 3500) for decay in (2.0, 3.0)}
    return {name: {} for name in EXPERIMENTS} | {"base": add, "fork": forks}
