"""Every run of the study, planted so that it follows the paper or contradicts it."""

from functools import cache
from math import exp

from grokscope.activations import conditioning_basis
from grokscope.runs.outcome import RunOutcome
from grokscope.runs.records import RunRecord
from grokscope.specs import RunSpec
from grokscope.studies import Evidence
from grokscope.studies.synchronization.experiments import EXPERIMENTS
from grokscope.tasks import named_task
from paper_tables import CROSS, CROSSPRIME, TRANSFER, WD_INTERVENTION

SEEDS = dict.fromkeys(("base", "symmetric", "crossprime"), 10) | dict.fromkeys(
    ("fork", "architecture", "accelerator", "threshold", "negatives", "open_questions", "sensitivity"), 4
)
DROPS = {"mlp0": 0.12, "mlp1": 0.88, "attn0": 0.89, "attn1": 0.944}
NEVER = 10**9


def record_of(
    spec: RunSpec,
    grok: int | None,
    sync: int | None,
    *,
    memorized: int | None = 300,
    rank_1: int | None = None,
    fork_norm: float = 76.72,
    grok_norm: float = 22.94,
    unstable: bool = False,
    waiting: float = 0.1,
    mode: int = 5,
    final_rank: float = 1.0,
    first_train: float | None = None,
    **measured_from: tuple[int | None, float, float],
) -> RunRecord:
    """A run made of steps: grokked, synchronised, memorised and rank 1 from these on, never if None.

    Measured columns are (step, before, from then on), with `_at_` for the @ of a reading.
    """
    start = spec.fork.step if spec.fork else 0
    end = spec.training.steps
    events = {step for step in (grok, sync, memorized, rank_1) if step is not None and start <= step <= end}
    steps = sorted({*range(start, end + 1, 100), end, *events})
    by = {name: NEVER if step is None else step for name, step in _named(grok, sync, memorized, rank_1).items()}
    falls = max((grok or end) - max(start, 0), 1)

    def norm(step: int) -> float:
        part = min((step - start) / falls, 1.0)
        return fork_norm * (grok_norm / fork_norm) ** part * (1 + 0.02 * max(step - start - falls, 0) / 1000)

    def validation(step: int) -> float:
        if step < by["grok"]:
            return waiting
        return 0.2 if unstable and step > by["grok"] + 300 else 0.997

    def rank(step: int) -> float:
        return final_rank if step >= by["rank_1"] else max(6.0 - step // 500, final_rank + 1)

    train = [1.0 if step >= by["memorized"] else 0.1 for step in steps]
    if first_train is not None:
        train[0] = first_train
    log = {
        "step": steps,
        "train_accuracy": train,
        "validation_accuracy": [validation(step) for step in steps],
        "norm": [norm(step) for step in steps],
        "fsd": [0.97 if step >= by["sync"] else 0.3 for step in steps],
        "fsd_mode": [mode for _ in steps],
        "rank": [rank(step) for step in steps],
        "answer_share": [1e-4 for _ in steps],
    }
    checkpoints = [step for step in steps if step % 500 == 0]
    columns = {
        name.replace("_at_", "@"): [late if at is not None and step >= at else early for step in checkpoints]
        for name, (at, early, late) in measured_from.items()
    }
    return RunRecord(spec, RunOutcome("grokked"), log, {"step": checkpoints, **columns} if columns else {})


def _named(grok: int | None, sync: int | None, memorized: int | None, rank_1: int | None) -> dict[str, int | None]:
    return {"grok": grok, "sync": sync, "memorized": memorized, "rank_1": rank_1}


def base_record(name: str, spec: RunSpec, follows: bool) -> RunRecord:
    """A base run as Table 2 has it, or one whose every order is turned round."""
    row = CROSS.get(name)
    grok, sync = (row.grok, row.sync) if row else (3500, 2000)
    if name.startswith("sub"):
        grok, sync = 5000, 3000
    if name.startswith("mult"):
        grok, sync = 3000, 13000
    late = 113 if "113" in name else 0
    columns = {
        "paper_restricted": (grok + (1500 if late else 0) if follows else 500, 3.0, 0.3),
        "fsd_2": (sync if follows else grok + 1000, 0.1, 0.9),
        "kan_agreement": (0, 0.0, 1.0 if follows else 0.4),
        "kan_r2": (0, 0.0, 0.99),
        "kan_trained_r2": (0, 0.0, 0.04 if follows and "131" in name else 0.99),
        "r2_rank_1": (0, 0.0, 0.97 if follows else 0.5),
        "logit_map_fsd": (grok + 500 if follows else 500, 0.1, 0.9),
        "fsd_at_sum": (13000 if follows else 500, 0.1, 0.9),
        **{f"drop_{part}_zero": (0, 0.0, drop if follows else 1 - drop) for part, drop in DROPS.items()},
    }
    if not follows:
        sync = sync if name.startswith("mult") else grok + 1000
        sync = 1000 if name.startswith("mult") else sync
        grok = grok - 3000 if name.startswith("sub") else grok
        return record_of(
            spec,
            grok,
            sync,
            memorized=2000,
            rank_1=grok + 2000,
            grok_norm=100.0,
            waiting=0.6,
            mode=len(name),
            **columns,
        )
    return record_of(spec, grok, sync, rank_1=grok - 1500, final_rank=2.0 if late else 1.0, **columns)


def fork_record(name: str, spec: RunSpec, follows: bool) -> RunRecord:
    """A fork that obeys Tables 4 and 10, or one to which λ does nothing."""
    decay, start = spec.training.weight_decay, spec.fork.step if spec.fork else 0
    if not follows:
        grow = {"fork_norm": 20.0, "grok_norm": 20.0 * decay, "first_train": 1.0}
        return record_of(spec, start + 2000 + 100 * int(decay), start, memorized=start, **grow)
    prime = int(spec.task.removeprefix("add_mod").removeprefix("sub_mod"))
    waits = {d: wait for d, (wait, _) in CROSSPRIME[prime][0].items()}
    if name.startswith("add_mod97_s42_x"):
        waits = {d: wait for d, (_, wait, _) in WD_INTERVENTION.items() if wait is not None}
    wait = waits.get(decay)
    fork_norm = 23.5 * exp(0.2e-3 * decay * (wait or 1))
    memorized = None if wait is None else start
    unstable = name.startswith("add_mod97_s42_x") and decay in (4.0, 5.0)
    grok = None if wait is None else start + wait
    if "_order" in name:
        grok = 3000 + 70 * int(name.rpartition("order")[2])
    first = 0.2 if name.startswith("scaled") else None
    return record_of(
        spec,
        grok,
        start,
        memorized=memorized,
        fork_norm=fork_norm,
        grok_norm=23.5,
        unstable=unstable,
        first_train=first,
    )


def trigger_record(name: str, spec: RunSpec, follows: bool) -> RunRecord:
    """An arm of the accelerator, by Figure 8 or against it."""
    fails = name.startswith(("mem_x10", "early_x10"))
    early = name.startswith(("mem_x3", "early_x3"))
    grok = 4000 if name.startswith("fixed") else None if fails else 2000 if early else 2400
    if not follows:
        grok = 4000 if name.startswith("fixed") else None if name.startswith("fsd_x5") else 4500 + 500 * early
    return record_of(spec, grok, 1500)


def group_record(name: str, spec: RunSpec, follows: bool) -> RunRecord:
    """A run of a group, by Table 11 or against it."""
    dimensions = [mode.irrep_dimension for mode in conditioning_basis(named_task(spec.task), "answer", "").modes.modes]
    largest = dimensions.index(4 if 4 in dimensions else max(dimensions)) + 1
    small = dimensions.index(1) + 1 if 1 in dimensions else 1
    if "f0.3" in name:
        return record_of(spec, None, None if follows else 500, memorized=600)
    seed = int(name.rpartition("_s")[2])
    grok, sync, _, control = TRANSFER.get(seed, (4000, 2000, 2000, None))
    leads = control is not None and control > 0
    if follows:
        control_at = {"control_fsd": (500 if leads else None, 0.1, 0.9)}
        return record_of(spec, grok, sync, memorized=600, mode=largest, **control_at)
    return record_of(spec, grok + 3000, grok + 4000, memorized=3000, mode=small, control_fsd=(500, 0.1, 0.9))


def architecture_record(name: str, spec: RunSpec, follows: bool) -> RunRecord:
    """A row of Table 8, or its opposite."""
    if name.startswith("mlp_only"):
        return record_of(spec, None if follows else 3000, None, memorized=None)
    lags = name.startswith("one_layer")
    return record_of(spec, 4500, 5500 if lags is follows else 1000)


def study_record(study: str, name: str, spec: RunSpec, follows: bool) -> RunRecord:
    if spec.fork is not None:
        return fork_record(name, spec, follows)
    if study == "accelerator":
        return trigger_record(name, spec, follows)
    if study == "architecture":
        return architecture_record(name, spec, follows)
    if study == "negatives":
        return record_of(spec, None, None if follows else 1000)
    if "mod" not in spec.task:
        return group_record(name, spec, follows)
    return base_record(name, spec, follows)


@cache
def evidence(follows: bool) -> Evidence:
    """Every study, with runs that follow the paper or contradict it."""
    planned = {study: runs(SEEDS.get(study), "float32") for study, runs in EXPERIMENTS.items()}
    found = {
        study: {name: study_record(study, name, spec, follows) for name, spec in runs.items()}
        for study, runs in planned.items()
    }
    return Evidence(found)
