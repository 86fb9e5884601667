"""What happened, in plain words made of records: each run's way to generalisation, and what its forks changed."""

from collections.abc import Sequence
from statistics import fmean

import numpy as np

from grokscope.runs import Run
from grokscope.runs.following import sync_threshold
from grokscope.timeline import LeadStatus, Outcome, Timeline, timeline_of

__all__ = ["sentence", "story", "timeline_of_run"]


def story(runs: Sequence[Run]) -> str:
    """Runs and then forks, a sentence or two each, and how the forks' waiting times stand to 1/λ.

    Everything is said to the look at which it was first seen, so times are as exact as the runs were measured.
    """
    parts = [_told(run) for run in runs if run.spec.fork is None]
    parents: dict[str, list[Run]] = {}
    for run in runs:
        if run.spec.fork is not None:
            parents.setdefault(f"{run.spec.fork.parent} {run.spec.fork.step}", []).append(run)
    by_hash = {run.spec.content_hash: run for run in runs}
    for key, branches in parents.items():
        parts.append(_branches(by_hash.get(key.split()[0]), branches))
    return "\n\n".join(part for part in parts if part) or "Nothing has been trained here yet."


def sentence(run: Run) -> str:
    """One run in one sentence, with its norm and FSD at each event."""
    log, outcome = run.log(), run.folder.outcome
    if not len(log.get("step", ())):
        return f"{run.name}: not begun"
    parts = [f"{run.name}:"]
    for word, column, limit in (("memorised", "train_accuracy", 0.99), ("grokked", "validation_accuracy", 0.95)):
        reached = np.flatnonzero(log[column] >= limit)
        if reached.size:
            i = reached[0]
            parts.append(f"{word} at step {log['step'][i]:,.0f} (‖W‖ {log['norm'][i]:.1f}, FSD {log['fsd'][i]:.2f}),")
        else:
            parts.append(f"not {word},")
    ended = outcome["outcome"].replace("_", " ") if outcome else "unfinished"
    if outcome and outcome.get("stopped_early"):
        ended += ", stopped early"
    parts.append(f"{ended} at step {log['step'][-1]:,.0f}, λ = {run.spec.training.weight_decay:g}")
    return " ".join(parts)


def timeline_of_run(run: Run) -> Timeline | None:
    """A stored run's events so far, by the paper's thresholds; None before its first look."""
    log = run.log()
    if not len(log.get("step", ())):
        return None
    columns = {name: log[name] for name in log if name != "weight_decay"}
    failed = (run.folder.outcome or {}).get("failed_at")
    return timeline_of(columns, failed_at=failed, sync_at=sync_threshold(run.spec))


def _told(run: Run) -> str:
    timeline = timeline_of_run(run)
    if timeline is None:
        return f"{_word(run)} has not begun."
    accuracy = run.log()["validation_accuracy"]
    words = [f"{_word(run)} (weight decay λ = {run.spec.training.weight_decay:g})"]
    if timeline.memorized is None:
        words.append(f"has not memorised its training data by step {timeline.last:,}.")
    else:
        held = accuracy[list(run.log()["step"]).index(timeline.memorized)]
        words.append(f"had memorised its training data by step {timeline.memorized:,}, when it got {held:.0%} of the")
        words.append("pairs right that it had not seen.")
    words.append(_synchronized(timeline))
    words.append(_grokked(timeline))
    if (run.folder.outcome or {}).get("stopped_early"):
        words.append("It was stopped early after grokking, so leads of runs like it are biased.")
    if run.folder.outcome is None:
        words.append(f"It is not finished: continue it with `grokscope resume {run.folder.path.parent}`.")
    return " ".join(word for word in words if word)


def _synchronized(timeline: Timeline) -> str:
    status, step = timeline.sync.lead.status, timeline.sync.step
    if status is LeadStatus.NO_GROKKING:
        return f"Its neurons synchronised at step {step:,}." if step is not None else "Its neurons did not synchronise."
    if status is LeadStatus.LEADS and step is not None:
        doubt = f" ({', '.join(timeline.sync.flags)})" if timeline.sync.flags else ""
        return f"Its neurons agreed on one frequency (FSD) at step {step:,}{doubt},"
    if status is LeadStatus.TIES:
        return "Its neurons were first seen to agree on one frequency at the very look at which it grokked."
    return "Its neurons had not synchronised when it grokked." if status is not LeadStatus.UNMEASURED else ""


def _grokked(timeline: Timeline) -> str:
    if timeline.grokked is None:
        return f"It has not grokked by step {timeline.last:,}."
    lead = timeline.sync.lead
    before = f"{lead.steps:,} steps before it" if lead.status is LeadStatus.LEADS else "It"
    after = (
        "." if timeline.memorized is None else f", {timeline.grokked - timeline.memorized:,} steps after memorising."
    )
    falls = " Later it fell apart again." if timeline.outcome is Outcome.UNSTABLE_AFTER else ""
    return f"{before} grokked at step {timeline.grokked:,}{after}{falls}"


def _branches(parent: Run | None, branches: Sequence[Run]) -> str:
    """The forks of one run at one step, with the run itself among them where it is at hand."""
    fork = branches[0].spec.fork
    assert fork is not None
    family = [*([parent] if parent is not None else []), *branches]
    lines, products = [], []
    for run in sorted(family, key=lambda run: run.spec.training.weight_decay):
        timeline, decay = timeline_of_run(run), run.spec.training.weight_decay
        who = " (the run itself)" if run is parent else ""
        if timeline is None or timeline.grokked is None:
            reached = fork.step if timeline is None else timeline.last
            lines.append(f"  λ = {decay:g}{who}: not grokked by step {reached:,}")
        elif timeline.grokked <= fork.step:
            lines.append(f"  λ = {decay:g}{who}: had grokked before the fork, at step {timeline.grokked:,}")
        else:
            wait = timeline.grokked - fork.step
            products.append(decay * wait)
            lines.append(
                f"  λ = {decay:g}{who}: grokked {wait:,} steps after the fork, at {timeline.grokked:,}; "
                f"λ·Δt = {decay * wait:,.0f}"
            )
    of = f"{_word(parent) if parent is not None else fork.parent}"
    text = f"Forked {of} at step {fork.step:,}, changing nothing but λ:\n" + "\n".join(lines)
    return text + _law(products)


def _law(products: Sequence[float]) -> str:
    if len(products) < 2 or not fmean(products):
        return ""
    spread = (max(products) - min(products)) / fmean(products)
    return (
        f"\nIf the wait went as Δt = C/λ, λ·Δt would be one number C: here it is {fmean(products):,.0f} on average,"
        f"\nand its values differ by {spread:.0%} of that. {len(products)} runs from one seed are an example, no proof."
    )


def _word(run: Run) -> str:
    return run.name.rpartition("-")[0]
