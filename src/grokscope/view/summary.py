"""What happened, in plain sentences made of records: how each run came to generalise, and what its forks changed."""

from collections.abc import Sequence

from grokscope.errors import for_shell, plural
from grokscope.files import DamagedError
from grokscope.forecast import forecast_to, run_prefix, stopping_advice
from grokscope.law import Ending, Family, fork_families, law_of
from grokscope.runs import Run
from grokscope.runs.records import RunRecord
from grokscope.specs import ReadingSpec
from grokscope.timeline import LeadStatus, Outcome, Stability, StabilityStatus, Timeline
from grokscope.timeline.success import RELATIVE_ERRORS
from grokscope.view.decay import describe_decay
from grokscope.view.families import fitted_size
from grokscope.view.numbers import format_estimate, format_number, format_percent
from grokscope.view.outcomes import BEFORE, NO_BASIS, describe_stability, memorized_before, why_without_fsd

__all__ = ["describe_forecast", "summarize", "summarize_run"]


def summarize(runs: Sequence[Run]) -> str:
    """Runs and then forks, a few sentences each, and the law of every family of forks.

    A step is that of the first evaluation at which something was seen, so times are as exact as the evaluations.

    >>> print(summarize([]))
    Nothing has been trained here yet.
    """
    if not runs:
        return "Nothing has been trained here yet."
    records, damaged = _records_of(runs)
    folder = for_shell(runs[0].folder.path.parent)
    runs = [run for run in runs if run.name not in damaged]
    names = {run.spec.content_hash: _short_name(run) for run in runs}
    parts = [f"{name} is damaged: {why}; see `grokscope doctor {folder}`." for name, why in damaged.items()]
    parts += [_describe(run, record) for run, record in zip(runs, records, strict=True) if run.spec.fork is None]
    forks: dict[tuple[str, int], list[RunRecord]] = {}
    for record in records:
        if record.spec.fork is not None:
            forks.setdefault((record.spec.fork.parent, record.spec.fork.step), []).append(record)
    families = fork_families(records)
    parents = {
        (records[branch.place].spec.content_hash, family.step): records[branch.place]
        for family in families
        for branch in family.branches
        if branch.is_parent
    }
    for (parent, step), branches in forks.items():
        parts.append(_branches(names.get(parent, parent), parents.get((parent, step)), step, branches))
    parts += [_law(family) for family in families]
    early = sum(record.outcome.stopped_early for record in records)
    parts += [_biased_leads(early)] if early else []
    parts += _without_fsd(records)
    parts += _devices(records)
    return "\n\n".join(parts)


def _records_of(runs: Sequence[Run]) -> tuple[list[RunRecord], dict[str, str]]:
    """The records of the runs whose logs are whole, and the names of the others with what is wrong."""
    records, damaged = [], dict[str, str]()
    for run in runs:
        try:
            records.append(run.record)
        except DamagedError as error:
            damaged[run.name] = str(error)
    return records, damaged


def summarize_run(run: Run) -> str:
    """One run in one sentence, with its norm and FSD at each event.

    >>> from tempfile import TemporaryDirectory
    >>> from grokscope.runs import Store
    >>> from grokscope.specs import RunSpec
    >>> with TemporaryDirectory() as folder:
    ...     name = Store(folder).add(RunSpec()).name
    ...     summarize_run(Run(Store(folder).folder(name))).partition(": ")[2]
    'not begun'
    """
    record = run.record
    timeline = record.timeline_or_none
    if timeline is None:
        return f"{run.name}: not begun"
    facts = [
        *_milestones(record, timeline),
        _ended(record, timeline),
        describe_decay(record.spec, record.outcome, record.evaluations),
    ]
    return f"{run.name}: {', '.join(facts)}"


def _milestones(record: RunRecord, timeline: Timeline) -> list[str]:
    """Whether and when it memorised and grokked."""
    found, fork = [], record.spec.fork
    for word, step in (("memorised", timeline.memorized), ("grokked", timeline.grokked)):
        if step is None:
            found.append(f"not {word}")
        elif fork is not None and memorized_before(step, fork.step):
            found.append(f"{word} {BEFORE}")
        else:
            facts = [f"‖W‖ {format_number(record.at(step, 'norm'), 1)}"]
            if not why_without_fsd(record):
                facts.append(f"FSD {format_number(record.at(step, 'fsd'), 2)}")
            found.append(f"{word} at step {step:,} ({', '.join(facts)})")
    found += [_stays(timeline.stable)] if timeline.grokked is not None else []
    return found if timeline.memorized is not None or timeline.grokked is not None else found[:1]


def _stays(found: Stability) -> str:
    """Whether it stayed grokked, in a few words."""
    if found.status is StabilityStatus.STABLE:
        return "stable"
    later = "" if found.step is None else f", again grokked from step {found.step:,}"
    fell = f"{plural(found.dips, 'dip')} below {100 * ReadingSpec().grokked:g} %" if found.dips else "failed"
    known = f"not stable ({fell}{later})"
    return f"{StabilityStatus.CENSORED} to be stable" if found.status is StabilityStatus.CENSORED else known


def _ended(record: RunRecord, timeline: Timeline) -> str:
    """How and when it ended, beyond its milestones."""
    ending, early = record.outcome.outcome, record.outcome.stopped_early
    unstable = {"unstable_after": "then unstable, ", "unstable": "unstable, " if timeline.memorized is not None else ""}
    if ending in ("unfinished", "diverged"):
        return f"{ending} at step {timeline.last:,}"
    return f"{unstable.get(ending, '')}{'stopped early' if early else 'ended'} at step {timeline.last:,}"


def _describe(run: Run, record: RunRecord) -> str:
    timeline = record.timeline_or_none
    who = f"{_short_name(run)} ({describe_decay(record.spec, record.outcome, record.evaluations)})"
    if timeline is None:
        return f"{who} has not begun."
    known = f"{who} has not memorised its training data by step {timeline.last:,}."
    if timeline.memorized is not None:
        known = f"{who} memorised its training data at step {timeline.memorized:,}, {_validation(record, timeline)}."
    is_open = not record.outcome.is_finished
    ahead = describe_forecast(record) if is_open and timeline.grokked is None else ""
    parts = [known, _synchronized(timeline), _grokked(timeline), ahead, _going_on(run) if is_open else ""]
    return " ".join(part for part in parts if part)


def _going_on(run: Run) -> str:
    """What becomes of a run that is not finished; nobody but its own loop can continue one that a monitor logs."""
    if run.spec.model:
        return "It is not finished, as far as its monitor has logged."
    if run.folder.is_held():
        return "It is being trained."
    return f"It is not finished: continue it with `grokscope resume {for_shell(run.folder.path.parent)}`."


def describe_forecast(record: RunRecord) -> str:
    """Where an unfinished run is heading by its last step, in a sentence.

    >>> from grokscope.runs import RunOutcome
    >>> from grokscope.specs import RunSpec
    >>> log = {"step": [0, 500], "train_accuracy": [0.0, 1.0], "validation_accuracy": [0.0, 0.0]}
    >>> describe_forecast(RunRecord(RunSpec(), RunOutcome(), log, {})).partition(" within ")[0]
    'Forecast: it groks'
    """
    seen = run_prefix(record.spec, record.evaluations)
    [ahead] = forecast_to([seen], [max(record.spec.training.steps - seen.step, 1)])
    advice = stopping_advice(ahead, record.spec.training.steps)
    return f"Forecast: it {ahead.sentence}.{f' Advice: {advice.sentence}.' if advice.stops else ''}"


def _validation(record: RunRecord, timeline: Timeline) -> str:
    """What the validation set was like when the run had memorised."""
    column = RELATIVE_ERRORS["validation_accuracy"]
    if column in record.evaluations:
        error = format_number(record.at(timeline.memorized or 0, column), 2)
        return f"with a validation error of {error} times what counts as success"
    accuracy = format_percent(record.at(timeline.memorized or 0, "validation_accuracy"))
    return f"with a validation accuracy of {accuracy}"


def _synchronized(timeline: Timeline) -> str:
    """When its neurons came to share one mode, and how that stands to grokking."""
    crossing, status = timeline.sync, timeline.sync.lead.status
    if status is LeadStatus.UNMEASURED:
        return ""
    if crossing.step is None:
        return f"Its neurons have not synchronised (FSD) by step {timeline.last:,}."
    doubt = f" ({', '.join(crossing.flags)})" if crossing.flags else ""
    found = f"Its neurons synchronised (FSD) at step {crossing.step:,}{doubt}"
    endings = {LeadStatus.NO_GROKKING: "", LeadStatus.TIES: ", at the same evaluation at which it grokked"}
    after = (
        f", {abs(crossing.lead.steps or 0):,} steps {'before' if status is LeadStatus.LEADS else 'after'} it grokked"
    )
    return f"{found}{endings.get(status, after)}."


def _grokked(timeline: Timeline) -> str:
    if timeline.grokked is None:
        return f"It has not grokked by step {timeline.last:,}."
    memorized = timeline.memorized
    after = "" if memorized is None else f", {timeline.grokked - memorized:,} steps after memorising"
    unstable = timeline.outcome is Outcome.UNSTABLE_AFTER
    later = " Later its validation accuracy fell below one half." if unstable else ""
    return f"It grokked at step {timeline.grokked:,}{after}. {describe_stability(timeline.stable)}{later}"


def _branches(name: str, parent: RunRecord | None, step: int, forks: Sequence[RunRecord]) -> str:
    """The forks of one run at one step, and the run itself where it is a branch of their family."""
    members = [*([parent] if parent else []), *forks]
    lines = [f"Forks of {name} at step {step:,}:"]
    for record in sorted(members, key=lambda record: record.spec.training.known_weight_decay):
        timeline, decay = record.timeline_or_none, record.spec.training.known_weight_decay
        who = f"  λ = {decay:g}{' (the parent)' if record is parent else ''}"
        if timeline is None or timeline.grokked is None:
            lines.append(f"{who}: not grokked by step {step if timeline is None else timeline.last:,}")
        elif timeline.grokked <= step:
            lines.append(f"{who}: grokked before the fork, at step {timeline.grokked:,}")
        else:
            time = timeline.grokked - step
            lines.append(
                f"{who}: time to grok Δt = {time:,} steps, at step {timeline.grokked:,}; λ·Δt = {decay * time:,.0f}"
            )
    return "\n".join(lines)


def _law(family: Family) -> str:
    """C and α of a family, or why there is none."""
    law = law_of(family.runs)
    about = f"Timing law Δt = C/λ of {family.title} ({fitted_size(family)})"
    if law.constant is None:
        return f"{about}: not fitted; {law.reason}."
    products = [run.weight_decay * (run.steps_to_grok or 0) for run in family.runs if run.ending is Ending.GROKKED]
    fitted = f"C = {format_estimate(law.constant.parameters['constant'])} by maximum likelihood"
    found = f"{about}: {fitted}; λ·Δt of its runs ranges from {min(products):,.0f} to {max(products):,.0f}."
    if law.power is None:
        return f"{found} The exponent is not fitted; {law.reason}."
    return f"{found} Exponent α of Δt = C·λ^−α: {format_estimate(law.power.parameters['exponent'], 2)}."


def _biased_leads(count: int) -> str:
    """What follows from ending runs early, and what a lead is."""
    who = "1 run was" if count == 1 else f"{count:,} runs were"
    return (
        f"{who} stopped soon after grokking (--stop-after-grokking). A lead is the number of steps from "
        "synchronisation to grokking. Whether such a run would have synchronised later, which is a negative lead, is "
        "not known: the mean lead of such runs is too high."
    )


def _without_fsd(records: Sequence[RunRecord]) -> list[str]:
    """Which tasks have no FSD, and why: an absent sentence could be an absent measurement."""
    reasons = dict.fromkeys(reason for record in records if (reason := why_without_fsd(record)))
    tasks = ", ".join(reason.removesuffix(NO_BASIS) for reason in reasons)
    return [f"FSD and rank are not defined, as there is no basis to read activations in: {tasks}."] if tasks else []


def _devices(records: Sequence[RunRecord]) -> list[str]:
    """What the numbers depend on besides the specs."""
    names = {str(record.outcome.provenance.get("device", "")) for record in records} - {""}
    if not names:
        return []
    return [f"Trained on {', '.join(sorted(names))}. Another processor rounds differently, and its steps will differ."]


def _short_name(run: Run) -> str:
    return run.name.rpartition("-")[0] or run.name
