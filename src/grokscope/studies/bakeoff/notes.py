"""Sentences about a bake-off: who wins a task, and what medians hide: whether rules acted in time, why runs fail."""

from collections.abc import Iterable, Mapping
from math import inf
from statistics import fmean

from grokscope.runs.records import RunRecord
from grokscope.studies import Evidence, Measured, Quantity, Records, Selection
from grokscope.studies.bakeoff.configurations import task_order
from grokscope.studies.bakeoff.quantities import compare, configurations_run, outcome
from grokscope.view.numbers import format_number

__all__ = ["describe_logs", "describe_winner"]

SIGNIFICANT = 0.05
FLOAT32_RESOLUTION = 2.0**-24  # the least loss that a probability just below 1 can have
FIRED = ("before memorisation", "between that and grokking", "at grokking or later", "never")
LOOP = "closed loop"


def describe_winner(evidence: Evidence, task: str) -> str:
    """Which configuration has the shortest median on a task, and what the closed loop needs."""
    compared = evidence.measure(compare(task))
    first = str(compared.parts["first"])
    found = {name: evidence.measure(outcome(task, name)) for name in configurations_run(evidence, task)}
    if found[first].number("steps") == inf:
        return f"{task}: in no configuration did half of the runs grok within the budget."
    sentence = f"{task}: {first} has the shortest median ({_steps(found[first])} steps"
    sentence += f"{_describe_baseline(compared, found)}){_describe_failures(compared, found)}."
    if LOOP not in found:
        return f"{sentence} The {LOOP} was not run."
    if first == LOOP:
        return sentence
    if found[LOOP].number("steps") == inf:
        return f"{sentence} With the {LOOP} fewer than half of the runs grok."
    return f"{sentence} The {LOOP} needs {_steps(found[LOOP])}."


def _steps(found: Measured) -> str:
    return format_number(found.number("steps"))


def _describe_baseline(compared: Measured, found: Mapping[str, Measured]) -> str:
    """How the winner compares with the best fixed λ."""
    first, fixed = str(compared.parts["first"]), compared.parts["best fixed"]
    if fixed in (None, first):
        return ""
    p_value = compared.number(first)
    certainty = f"{'a' if p_value < SIGNIFICANT else 'no'} significant difference, p = {p_value:.2g}"
    if found[str(fixed)].number("steps") == inf:
        return f"; with no fixed λ do half of the runs grok, {certainty}"
    return f"; {_steps(found[str(fixed)])} with {fixed}, {certainty}"


def _describe_failures(compared: Measured, found: Mapping[str, Measured]) -> str:
    """A median does not show the winner's runs that never grok; then which is first of those that always do."""
    best, always = found[str(compared.parts["first"])], compared.parts["first if all grok"]
    share = best.number("grokked")
    if share == 1:
        return ""
    sentence = f", but only {round(share * best.n)} of its {best.n} runs grok"
    if always is None:
        return f"{sentence}; in no configuration do all runs grok"
    return (
        f"{sentence}; of the configurations in which all runs grok, {always} is fastest ({_steps(found[str(always)])})"
    )


def describe_logs(evidence: Evidence) -> tuple[str, ...]:
    """One sentence for each thing that a median hides; what no record has is left out."""
    return tuple(text for quantity in LOGS if (text := evidence.measure(quantity).text))


def _by_task(records: Records) -> dict[str, list[RunRecord]]:
    tasks = sorted({record.spec.task for record in records.values()}, key=task_order)
    return {task: [record for record in records.values() if record.spec.task == task] for task in tasks}


def _never_memorized(records: Records) -> Measured:
    """Grokking asks for 0.95 of the validation pairs, memorising for 0.99 of the training pairs."""
    never = [record for record in records.values() if record.outcome.memorized is None]
    anyway = sum(record.outcome.grokked is not None for record in never)
    shown = (
        f"Never memorised: no evaluation had train accuracy of 0.99 or more; {anyway:,} of these {len(never):,} runs "
        "grokked all the same, with 0.95 of the validation pairs."
    )
    return Measured({"never": len(never), "grokked": anyway}, shown if never else "", len(records))


def _fired(records: Records) -> Measured:
    """Whether the trigger fired in time: later than memorisation, and sooner than grokking."""
    when = {
        task: [_when_fired(record) for record in runs if record.outcome.trigger]
        for task, runs in _by_task(records).items()
    }
    parts = {task: " / ".join(str(own.count(name)) for name in FIRED) for task, own in when.items() if own}
    counts = "; ".join(f"{task} {count}" for task, count in parts.items())
    return Measured(
        parts,
        text=f"Runs in which the FSD trigger fired {' / '.join(FIRED)}: {counts}." if counts else "",
        n=len(records),
    )


def _when_fired(record: RunRecord) -> str:
    fired, memorized, grokked = record.outcome.fired_at, record.outcome.memorized, record.outcome.grokked
    if fired is None:
        return "never"
    if memorized is None or fired < memorized:
        return "before memorisation"
    return "between that and grokking" if grokked is None or fired < grokked else "at grokking or later"


def _raised(records: Records) -> Measured:
    """How much of the time until grokking the closed loop had λ above where it began."""
    decays = {
        task: [pair for record in runs for pair in _decays_until_grokking(record)]
        for task, runs in _by_task(records).items()
    }
    parts = {
        task: f"{100 * fmean(decay > start for decay, start in own):.0f} %, up to {max(own)[0]:g}"
        for task, own in decays.items()
        if own
    }
    counts = "; ".join(f"{task} {count}" for task, count in parts.items())
    what = f"Share of evaluations until grokking with λ above its initial value ({LOOP}), and the largest λ"
    return Measured(
        parts,
        text=f"{what}: {counts}." if counts else "",
        n=len(records),
    )


def _decays_until_grokking(record: RunRecord) -> list[tuple[float, float]]:
    grokked, start = record.outcome.grokked, record.spec.training.known_weight_decay
    log = record.evaluations
    pairs = zip(log["step"], log.get("weight_decay", []), strict="weight_decay" in log)
    return [(decay, start) for step, decay in pairs if grokked is None or step <= grokked]


def _orthogonal(records: Records) -> Measured:
    """Orthogonal gradients cannot shrink the weights; every other way of grokking does."""
    logged = [record for record in records.values() if "norm" in record.evaluations]
    others = [one for one in logged if one.spec.training.gradient != "orthogonal" and one.outcome.grokked is not None]
    own = [one for one in logged if one.spec.training.gradient == "orthogonal" and "train_loss" in one.evaluations]
    kept = [norm / record.evaluations["norm"][0] for record in own for norm in record.evaluations["norm"]]
    shrunk = [
        record.at(record.outcome.grokked, "norm") / record.evaluations["norm"][0]
        for record in others
        if record.outcome.grokked is not None
    ]
    if not kept or not shrunk:
        return Measured(n=len(own))
    memorized, grokked = (
        _count(getattr(record.outcome, event) for record in own) for event in ("memorized", "grokked")
    )
    lowest = min(loss for record in own for loss in record.evaluations["train_loss"])
    collapse, place = ("does not explain this", "") if lowest > FLOAT32_RESOLUTION else ("is not ruled out", "not ")
    return Measured(
        {"memorized": memorized, "grokked": grokked, "lowest loss": lowest},
        text=(
            f"Of {len(own)} runs with orthogonal gradients {memorized} memorise and {grokked} grok. ‖W‖ stays within "
            f"{min(kept):.2f} to {max(kept):.2f} times its initial value; in runs of other configurations it is "
            f"{min(shrunk):.2f} to {max(shrunk):.2f} times that when they grok. Softmax collapse {collapse}: the "
            f"lowest mean train loss is {lowest:.1g} nats, {place}above float32's resolution of "
            f"{FLOAT32_RESOLUTION:.0e}."
        ),
        n=len(own),
    )


def _count(steps: Iterable[int | None]) -> int:
    return sum(step is not None for step in steps)


LOGS = (
    Quantity("runs that never memorise", Selection(("bakeoff",)), _never_memorized),
    Quantity("when the FSD trigger fired", Selection(("bakeoff",), configuration="*/FSD trigger"), _fired),
    Quantity("evaluations with raised λ", Selection(("bakeoff",), configuration=f"*/{LOOP}"), _raised),
    Quantity("norms under orthogonal gradients", Selection(("bakeoff",)), _orthogonal),
)
