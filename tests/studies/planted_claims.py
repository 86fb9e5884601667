"""Small worlds in which one group of claims holds, or fails: each number of a run is planted as a course over steps."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import nan
from typing import Any

from paper_runs import evidence as evidence

from grokscope.runs.outcome import RunOutcome
from grokscope.runs.records import RunRecord
from grokscope.specs import Fork, RunSpec, Training, Trigger
from grokscope.studies import Evidence

SEEDS = (42, 123, 0, 1, 2, 3)
TASKS = ("add_mod97", "add_mod53", "add_mod71", "add_mod113", "add_mod131", "mult_mod97", "sub_mod97")
PRIMES = TASKS[:5]
Course = Callable[[int], float] | float
World = Callable[[bool], Evidence]


def after(step: int | None, high: float, low: float) -> Course:
    """One value from a step on, another before it, and always where it is None."""
    return lambda at: high if step is not None and at >= step else low


def spec_of(task: str = "add_mod97", seed: int = 42, decay: float = 1.0, rate: float = 1e-3) -> RunSpec:
    training = Training(steps=15_000, weight_decay=decay, learning_rate=rate)
    return replace(RunSpec(task=task, training=training).with_seed(seed))


def record(
    spec: RunSpec,
    grok: int | None = 4000,
    sync: int | None = 2000,
    *,
    first: int = 0,
    last: int = 15_000,
    **courses: Any,
) -> RunRecord:
    """A run evaluated every 100 steps; a course whose name begins with `at_` is measured at checkpoints only."""
    steps = list(range(first, last + 1, 100))
    log: dict[str, Course] = {
        "train_accuracy": 1.0,
        "validation_accuracy": after(grok, 1.0, 0.1),
        "fsd": after(sync, 0.9, 0.1),
        "rank": 3.0,
        "norm": 30.0,
        "fsd_mode": 5.0,
        "answer_share": 1e-4,
    }
    log |= {name: course for name, course in courses.items() if not name.startswith("at_")}
    points = [step for step in steps if step % 500 == 0]
    measured = {name.removeprefix("at_"): course for name, course in courses.items() if name.startswith("at_")}
    return RunRecord(
        spec,
        RunOutcome("grokked"),
        {"step": steps, **{name: [_value(course, step) for step in steps] for name, course in log.items()}},
        {"step": points, **{name: [_value(course, step) for step in points] for name, course in measured.items()}},
    )


def _value(course: Course, step: int) -> float:
    return float(course(step)) if callable(course) else float(course)


def base(make: Callable[[str, int, int], RunRecord], tasks: tuple[str, ...] = TASKS) -> Evidence:
    """A run of every task and seed; the third argument counts the seeds."""
    runs = {f"{task}_s{seed}": make(task, seed, place) for task in tasks for place, seed in enumerate(SEEDS)}
    return Evidence({"base": runs})


def configurations(experiment: str, make: Mapping[str, Callable[[int, int], RunRecord]]) -> Evidence:
    """A run of every configuration and seed; each configuration is another spec, for equal specs are one run."""
    runs = {}
    for number, (name, one) in enumerate(make.items()):
        for place, seed in enumerate(SEEDS):
            found = one(seed, place)
            training = replace(found.spec.training, batch_size=500 + number)
            runs[f"{name}_s{seed}"] = replace(found, spec=replace(found.spec, training=training))
    return Evidence({experiment: runs})


def branches(make: Callable[[int, float, int], RunRecord]) -> Evidence:
    """Branches of six draws of three primes at four λ."""
    runs = {}
    for prime in (53, 97, 131):
        for place, draw in enumerate(SEEDS):
            for decay in (1.0, 2.0, 3.0, 5.0):
                parent = spec_of(f"add_mod{prime}", draw)
                spec = replace(spec_of(f"add_mod{prime}", draw, decay), fork=Fork(parent.content_hash, 1000))
                runs[f"add_mod{prime}_d{draw}_x{decay:g}"] = replace(make(prime, decay, place), spec=spec)
    return Evidence({"crossprime": runs})


def branch(wait: float | None, norm: float = 23.0, formed: float = 500, **courses: Any) -> RunRecord:
    """A branch from step 1,000 that groks after so many steps, and whose rank is 10 after so many."""
    grok = None if wait is None else 1000 + 100 * round(wait / 100)
    rank = after(1000 + 100 * round(formed / 100), 8.0, 25.0)
    train = 1.0 if grok is not None else 0.3
    return record(spec_of(), grok, 1000, first=1000, last=9000, norm=norm, rank=rank, train_accuracy=train, **courses)


# One world for each group of claims.


def tables(follows: bool) -> Evidence:
    steps = dict(zip(TASKS, (3400, 5000, 3500, 2500, 2500, 3000, 5500), strict=True))
    return base(lambda task, seed, _: record(spec_of(task, seed), steps[task] * (1 if follows else 2)))


def fsd_values(follows: bool) -> Evidence:
    """FSD is 0 before the first step, rises a little after grokking, and wavers so that it correlates as reported."""

    def fsd(step: int) -> float:
        if step == 0:
            return 0.0 if follows else 0.3
        if not follows:
            return 0.6
        return (0.97 if step >= 4000 else 0.9 if step >= 2000 else 0.2) - 0.4 * (step % 2000 == 0 and step > 4000)

    return base(lambda task, seed, _: record(spec_of(task, seed), 4000, fsd=fsd))


def after_high(follows: bool) -> Evidence:
    return base(lambda task, seed, _: record(spec_of(task, seed), fsd=after(2000, 0.97 if follows else 0.85, 0.1)))


def tied_crossings(follows: bool) -> Evidence:
    """Runs cross shortly before they grok, early or late together; or in an order that has nothing to do with it."""
    other = (3, 0, 4, 1, 5, 2)

    def make(task: str, seed: int, place: int) -> RunRecord:
        return record(spec_of(task, seed), 2000 + 1000 * place, 1500 + 1000 * (place if follows else other[place]))

    return base(make, PRIMES)


def structureless(follows: bool) -> Evidence:
    """As the plan's runs: FSD is defined nowhere but over the order of the symbols."""
    courses: dict[str, Any] = {"fsd": nan, "at_control_fsd": after(None if follows else 1000, 0.9, 0.1)}
    return configurations(
        "structureless",
        {name: lambda seed, _, task=name: record(spec_of(task, seed), None, None, **courses) for name in STRUCTURELESS},
    )


STRUCTURELESS = ("latin97", "random97")


def little_data(follows: bool) -> Evidence:
    late = 20_000
    make = {
        "little_data": lambda seed, _: record(spec_of(seed=seed), late, late - (500 if follows else -500), last=30_000)
    }
    return configurations("long", make)


def phases(follows: bool) -> Evidence:
    """Table 5, or a run whose rank falls late, whose norm rises, and whose validation accuracy is high at once."""
    norms = {500: 76.72, 1000: 51.93, 1500: 37.78, 2000: 30.56, 2500: 28.60, 3000: 26.67, 3500: 24.40, 4000: 22.94}

    def norm(step: int) -> float:
        return norms.get(step - step % 500, 23.94 if step >= 4500 else 80.0) if follows else 100.0 + step / 100

    def validation(step: int) -> float:
        if not follows:
            return 0.96 if step >= 4000 else 0.94
        return 0.997 if step >= 4000 else 0.34 if step >= 2500 else 0.106

    courses: dict[str, Any] = {
        "norm": norm,
        "validation_accuracy": validation,
        "rank": (lambda step: max(6.0 - step // 500, 1.0) + (step <= 500)) if follows else after(3500, 1.0, 20.0),
        "train_accuracy": after(300, 1.0, 0.1),
    }
    return base(lambda task, seed, _: record(spec_of(task, seed), 4000, **courses))


def fits(follows: bool) -> Evidence:
    """Table 6, or neurons of many frequencies."""

    def make(task: str, seed: int, _: int) -> RunRecord:
        is_113, is_131 = task == "add_mod113", task == "add_mod131"
        share = (0.23 if is_113 else 0.9) if follows else 0.5 if is_113 else 0.1
        rank = (2.0 if is_113 else 1.0) if follows else 4.0
        return record(
            spec_of(task, seed),
            rank=after(3000, rank, 6.0 if follows else 25.0),
            answer_share=1e-4 if follows else 0.04,
            at_rank_one_share=share,
            at_kan_trained_r2=(0.04 if is_131 else 0.99) if follows else 0.9,
            at_kan_agreement=1.0 if follows else 0.4,
            at_r2_rank_1=0.97 if follows else 0.5,
        )

    return base(make)


def zeroed(follows: bool) -> Evidence:
    """FSD comes first where the block-0 MLP can be spared, or where it cannot; and block 1 after block 0, or never."""

    def make(task: str, seed: int, place: int) -> RunRecord:
        leads = place % 2 == 0
        drops = {"attn1": 0.944, "attn0": 0.89, "mlp1": 0.88, "mlp0": 0.05 if leads is follows else 0.5}
        columns = {f"at_drop_{name}_zero": lost for name, lost in drops.items()}
        later = after(7000, 0.9, 0.1) if follows else 0.1
        sync = 2000 if leads else 6000
        return record(spec_of(task, seed), 4000, sync, at_fsd=after(2000, 0.9, 0.1), at_last_fsd=later, **columns)

    return base(make, PRIMES)


def zeroed_by_prime(follows: bool) -> Evidence:
    """The more a prime's answers need the block-0 MLP the fewer runs FSD leads, or the more; within a prime nothing."""
    order = (2, 0, 5, 1, 4, 3)  # of the losses, nearly without relation to which seeds are led

    def make(task: str, seed: int, place: int) -> RunRecord:
        prime = PRIMES.index(task)
        lost = {"attn1": 0.944, "attn0": 0.89, "mlp1": 0.88, "mlp0": 0.01 + 0.2 * prime + order[place] / 1000}
        leading = (6, 5, 3, 1, 0)[prime if follows else 4 - prime]
        columns = {f"at_drop_{name}_zero": value for name, value in lost.items()}
        return record(spec_of(task, seed), 4000, 2000 if place < leading else 6000, **columns)

    return base(make, PRIMES)


def early_on_s5(follows: bool) -> Evidence:
    """FSD_gen crosses before the training pairs are memorised, or after."""
    sync = 100 if follows else 1000
    make = lambda seed, _: record(spec_of("S5", seed), 4000, sync, train_accuracy=after(500, 1.0, 0.1))  # noqa: E731
    return configurations("symmetric", {"S5_f0.7": make})


def led_along_the_plateau(follows: bool) -> Evidence:
    """The longer the plateau on S5 the longer the lead, or the shorter."""

    def make(seed: int, place: int) -> RunRecord:
        grok = 3000 + 500 * place
        lead = 500 + 300 * (place if follows else 5 - place)
        return record(spec_of("S5", seed), grok, grok - lead, train_accuracy=after(500, 1.0, 0.1))

    return configurations("symmetric", {"S5_f0.7": make})


def operations(follows: bool) -> Evidence:
    modes = {"sub_mod97": 5.0 if follows else 7.0}
    return base(lambda task, seed, _: record(spec_of(task, seed), fsd_mode=modes.get(task, 5.0)))


def architectures(follows: bool) -> Evidence:
    apart = 1500 if follows else 3500

    def variant(grok: int, sync: int) -> Callable[[int, int], RunRecord]:
        return lambda seed, _: record(spec_of(seed=seed), grok if follows else 2 * grok, sync)

    return configurations(
        "architecture",
        {
            "two_layers": variant(4000, 2500),
            "attention_only": variant(4000, apart if not follows else 2500),
            "one_layer": variant(4500, 5500),
        },
    )


def varied_draws(follows: bool) -> Evidence:
    """Single draws that obey the law or scatter; at p = 131 all alike, or not; at λ = 5 late, or in time."""

    def make(prime: int, decay: float, place: int) -> RunRecord:
        scatter = (1 + 0.25 * (place % 3 - 1) * (1 if decay in (1.0, 3.0) else -1)) if follows and prime != 131 else 1.0
        uneven = 100 * place if not follows and prime == 131 else 0
        late = 1.6 if follows and decay == 5 else 1.0
        return branch(3000 / decay * scatter * late + uneven)

    return branches(make)


def power_law(follows: bool) -> Evidence:
    """Times, formation and norms that follow 1/λ, 1/λ and a constant; or λ^−½, one time, and a falling norm."""
    return branches(
        lambda prime, decay, place: branch(
            6000 / decay + 50 if follows else 6000 / decay**0.5,
            norm=23.0 if follows else 23.0 / decay**0.5,
            formed=3000 / decay + 50 if follows else 900,
        )
    )


def formation_apart(follows: bool) -> Evidence:
    return branches(lambda prime, decay, place: branch(3000 / decay, formed=900 if follows else 3000 / decay))


def waiting(follows: bool) -> Evidence:
    """The norm falls until grokking, or has fallen long before."""
    falls: Course = lambda step: max(60 - step / 100, 20.0 if follows else 45.0)  # noqa: E731
    return base(lambda task, seed, _: record(spec_of(task, seed), 4000, norm=falls), PRIMES)


def clock(follows: bool) -> Evidence:
    """λ·t, and ηλ·t, is the same in all; or t is."""
    pairs = {f"add_mod97_x{decay}": (1e-3, float(decay)) for decay in ("0.03", "0.1", "0.3", "1", "3")}
    pairs |= {
        f"{task}_x{decay}": (1e-3, float(decay)) for task in ("add_mod53", "mult_mod97") for decay in ("0.3", "1", "3")
    }
    pairs |= {"eta0.0003_x1": (3e-4, 1.0), "eta0.003_x1": (3e-3, 1.0)}
    pairs |= {"eta0.0003_x3.333": (3e-4, 3.333), "eta0.003_x0.333": (3e-3, 0.333)}

    def make(rate: float, decay: float) -> Callable[[int, int], RunRecord]:
        grok = 100 * round(3000 * 1e-3 / (rate * decay) / 100) if follows else 3000
        return lambda seed, _: record(spec_of(seed=seed, decay=decay, rate=rate), grok, 100, last=grok + 1000)

    return configurations("clock", {name: make(*pair) for name, pair in pairs.items()})


def held_norms(follows: bool) -> Evidence:
    groks = {"floor45": None, "floor35": None, "led23.5": 1800, "kept_from2000": 4000}
    other = {"floor45": 3000, "floor35": 3000, "led23.5": 5000, "kept_from2000": None}
    steps = groks if follows else other
    return configurations(
        "norms", {name: (lambda seed, _, at=at: record(spec_of(seed=seed), at)) for name, at in steps.items()}
    )


def triggers(follows: bool) -> Evidence:
    """Arms of the accelerator: FSD's trigger against a random one, and what happens after grokking."""
    stays = after(2000, 1.0, 0.1)

    def arm(is_stable: bool, grok: int = 2000) -> Callable[[int, int], RunRecord]:
        course: Any = stays if is_stable else lambda step: 0.2 if step == grok + 500 else 1.0 if step >= grok else 0.1
        return lambda seed, _: record(replace(spec_of(seed=seed), trigger=Trigger("fsd")), validation_accuracy=course)

    never = lambda seed, _: record(spec_of(seed=seed), None)  # noqa: E731
    return configurations(
        "accelerator",
        {
            "fsd_x3": arm(follows),
            "fsd_x5": arm(follows),
            "fsd_x10": arm(True) if follows else never,
            "random_x3": arm(False, 4000 if follows else 1000),
        },
    )


def restored(follows: bool) -> Evidence:
    """With λ restored after grokking runs stay grokked and with λ left at 5 they do not, or the other way round."""
    stays: Course = after(2000, 1.0, 0.1)
    falls: Course = lambda step: 0.2 if step == 2500 else 1.0 if step >= 2000 else 0.1  # noqa: E731
    return configurations(
        "accelerator",
        {
            name: lambda seed, _, course=course: record(spec_of(seed=seed), validation_accuracy=course)
            for name, course in (("restored_x5", stays if follows else falls), ("fsd_x5", falls if follows else stays))
        },
    )


def stable(follows: bool) -> Evidence:
    course = after(4000, 1.0, 0.1) if follows else lambda step: 0.2 if step == 5000 else 1.0 if step >= 4000 else 0.1
    return base(lambda task, seed, _: record(spec_of(task, seed), validation_accuracy=course), PRIMES)


def searched(follows: bool) -> Evidence:
    columns = {"at_a.rank": 6.0, "at_a.fsd": 0.84 if follows else 0.2, "at_b.rank": 25.0, "at_b.fsd": 0.9}
    return configurations("readings", {"default": lambda seed, _: record(spec_of(seed=seed), **columns)})


def unstable(follows: bool) -> Evidence:
    return stable(not follows)


WORLDS: dict[str, World] = {
    "table-1-grok-steps": tables,
    "fsd-after": after_high,
    **dict.fromkeys(("fsd-correlation", "untrained-not-significant"), fsd_values),
    **dict.fromkeys(("crossing-says-when", "lead-beyond-chance"), tied_crossings),
    "no-false-alarms-without-structure": structureless,
    "late-grokking-leads": little_data,
    **dict.fromkeys(
        ("rank-at-500", "table-5-norms", "norm-phase-1", "norm-phase-2", "gap-in-phase-2", "gap-collapse"), phases
    ),
    **dict.fromkeys(("phase-2-length", "validation-in-phase-1", "validation-in-phase-2"), phases),
    **dict.fromkeys(
        ("kan-fit", "rank-one-after", "rank-one-fractions", "rank-before", "rank-one-fraction-113", "amplitude"), fits
    ),
    **dict.fromkeys(("leads-where-nothing-is-done", "block-1-after-block-0"), zeroed),
    "leads-where-primes-do-nothing": zeroed_by_prime,
    "s5-leads-too-early": early_on_s5,
    "s5-lead-grows": led_along_the_plateau,
    "subtraction-frequency": operations,
    **dict.fromkeys(("attention-only-magnitude", "attention-only-grok-step", "one-layer-grok-step"), architectures),
    **dict.fromkeys(("table-10-spread-131", "law-per-draw", "law-flattens"), varied_draws),
    **dict.fromkeys(("law-exponent", "formation-clock", "threshold-every-prime"), power_law),
    "formation-independent": formation_apart,
    "threshold-first-passage": waiting,
    **dict.fromkeys(("clock-over-decays", "clock-over-rates", "clock-on-other-tasks"), clock),
    **dict.fromkeys(("norm-kept-above", "norm-led-down", "norm-kept-still-groks"), held_norms),
    **dict.fromkeys(("accelerator-beats-random", "accelerator-stays-stable", "accelerator-safe-at-10"), triggers),
    "restoring-stabilises": restored,
    "grokked-stays-grokked": stable,
    "grokked-falls-apart": unstable,
    "some-reading-has-table-5": searched,
}


def world(claim: str, follows: bool) -> Evidence:
    """Runs that show a claim, or that do not: its own world, or all runs of the paper."""
    return WORLDS[claim](follows) if claim in WORLDS else evidence(follows)
