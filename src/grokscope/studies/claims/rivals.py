"""§5.1 and §5.2: FSD against the restricted loss, validation accuracy, and runs that never grok."""

from collections import Counter
from collections.abc import Sequence

from grokscope.runs.records import RunRecord
from grokscope.stats import correlation, share
from grokscope.studies.claims.chosen import (
    addition,
    crossed,
    grok_checkpoint,
    grokked,
    known,
    mean,
    of_nine,
    of_one,
)
from grokscope.studies.claims.claim import (
    Claim,
    Finding,
    graded,
    number,
    spoken,
    too_few,
)
from grokscope.studies.evidence import Evidence
from grokscope.timeline import first_step_below

__all__ = ["CLAIMS"]

NINE = "the nine printed addition runs"


def _at_checkpoints(record: RunRecord) -> tuple[int | None, int | None, int | None] | None:
    """First checkpoints of grokking, FSD ≥ 0.80 and restricted loss ≤ 0.5 nats; None if the loss was not measured."""
    losses = record.checkpoints.get("paper_restricted", [])
    if not known(losses):
        return None
    steps = [int(step) for step in record.checkpoints["step"]]
    return grok_checkpoint(record), crossed(record, "fsd", 0.80)[1], first_step_below(steps, losses, 0.5)


def _before_restricted(records: Sequence[RunRecord]) -> Finding:
    found = [events for record in records if (events := _at_checkpoints(record)) is not None]
    if len(found) < len(records):
        return too_few(len(found), len(records), "runs with a restricted loss")
    first = sum(fsd is not None and (loss is None or fsd < loss) for _, fsd, loss in found)
    part = share(first, len(found))
    verdict = graded(first == len(found), part.low > 0.5)
    return Finding(f"{first} of {len(found)}", verdict, f"The share is {spoken(part, 2)}.", len(found), part)


def _restricted_leads(records: Sequence[RunRecord]) -> Finding:
    found = [events for record in records if (events := _at_checkpoints(record)) is not None]
    if len(found) < len(records):
        return too_few(len(found), len(records), "runs with a restricted loss")
    leads = [float(grok - loss) for grok, _, loss in found if grok is not None and loss is not None]
    early = sum(lead > 0 for lead in leads)
    never = sum(grok is not None and loss is None for grok, _, loss in found)
    value = f"{early} of {len(found)} before grokking, mean lead {number(mean(leads))}"
    full = bool(leads or never) and early == 0
    why = f"{never} grok without it, and are not in the mean."
    return Finding(value, graded(full, mean(leads) <= 0), why, len(found))


def _restricted_113(records: Sequence[RunRecord]) -> Finding:
    found = [events for record in records if (events := _at_checkpoints(record)) is not None]
    if len(found) < len(records):
        return too_few(len(found), len(records), "runs with a restricted loss")
    pairs = [(grok, loss) for grok, _, loss in found if grok is not None]
    late = sum(loss is None or loss > grok for grok, loss in pairs)
    tied = sum(loss == grok for grok, loss in pairs)
    half = len(found) / 2
    value = f"{late} of {len(found)} after grokking"
    return Finding(value, graded(late > half, late + tied > half), f"{tied} tie, {len(pairs)} grok.", len(found))


def _correlations(records: Sequence[RunRecord]) -> Finding:
    values = []
    for record in records:
        rows = zip(record.evaluations.get("fsd", []), record.evaluations["validation_accuracy"], strict=False)
        pairs = [(x, y) for x, y in rows if x == x and y == y]
        values.append(correlation([x for x, _ in pairs], [y for _, y in pairs]).value)
    found = known(values)
    if len(found) < len(records):
        return too_few(len(found), len(records), "runs in which both vary")
    inside = sum(0.49 <= value <= 0.78 for value in found)
    full, why = inside == len(found), f"{inside} of {len(found)} lie inside."
    value = f"{number(min(found), 2)} to {number(max(found), 2)}"
    return Finding(value, graded(full, min(found) > 0), why, len(found))


def _fsd_2(records: Sequence[RunRecord]) -> Finding:
    found = [(grok_checkpoint(record), crossed(record, "fsd_2", 0.80)) for record in records]
    if not all(measured for _, (measured, _) in found):
        return too_few(sum(measured for _, (measured, _) in found), len(found), "runs with FSD_2")
    leads = [grok is not None and step is not None and step < grok for grok, (_, step) in found]
    full = all(leads)
    return Finding(
        f"{sum(leads)} of {len(leads)} lead", graded(full, sum(leads) > len(leads) / 2), "By k = 2.", len(leads)
    )


def _share_by_prime(evidence: Evidence) -> Finding:
    by_task: dict[str, list[bool]] = {}
    for record in grokked(addition(evidence).values()):
        by_task.setdefault(record.spec.task, []).append(record.timeline.sync.lead.is_precursor)
    total = sum(map(len, by_task.values()))
    if len(by_task) < 5 or min(map(len, by_task.values())) < 10:
        return too_few(total, 50, "grokked addition runs, ten for each of five primes,")
    shares = {task: share(sum(found), len(found)) for task, found in by_task.items()}
    pooled = share(sum(map(sum, by_task.values())), total)
    full = all(one.low > 0.5 for one in shares.values())
    by_prime = sorted((int(task.removeprefix("add_mod")), one) for task, one in shares.items())
    value = ", ".join(f"p = {prime}: {spoken(one, 2)}" for prime, one in by_prime)
    return Finding(value, graded(full, pooled.low > 0.5), f"Pooled {spoken(pooled, 2)}.", total, pooled)


def _false_alarms(evidence: Evidence) -> Finding:
    study = evidence.study("negatives")
    arms = {name: name.rpartition("_s")[0] for name, record in study.items() if record.timeline.grokked is None}
    runs = [study[name] for name in arms]
    if len(runs) < 3:
        return too_few(len(runs), 3, "runs that did not grok")
    alarms = sum(record.timeline.sync.step is not None for record in runs)
    found = share(alarms, len(runs))
    verdict = graded(alarms == 0, found.value < 0.5)
    value = f"crosses in {alarms} of {len(runs)} runs that do not grok"
    crossed_in = Counter(arm for name, arm in arms.items() if study[name].timeline.sync.step is not None)
    by_arm = ", ".join(f"{crossed_in[arm]} of {count} of {arm}" for arm, count in Counter(arms.values()).items())
    first = min((step for record in runs if (step := record.timeline.sync.step) is not None), default=None)
    why = f"False alarms: {spoken(found, 2)}: {by_arm}; the first at step {number(first)}."
    return Finding(value, verdict, why, len(runs), found)


CLAIMS = (
    Claim(
        "fsd-before-restricted",
        "FSD synchronises before the restricted loss in all nine configurations.",
        "§5.2, Table 3",
        "9 of 9",
        f"Over {NINE}, both read at the same checkpoints: FSD ≥ 0.80 strictly before restricted loss ≤ 0.5 nats in "
        "all: reproduced; lower end of the share's Clopper–Pearson interval above 1/2: partly; else not.",
        "tab-exloss",
        lambda evidence: of_nine(evidence, _before_restricted),
    ),
    Claim(
        "restricted-never-leads",
        "The restricted loss never synchronises before grokking.",
        "§5.2, Table 3, Figure 1",
        "0 of 9, mean −167",
        f"Over {NINE}, all read at the same checkpoints: no lead of restricted loss ≤ 0.5 nats is positive: "
        "reproduced; the mean over runs that have both is at most 0: partly; else not.",
        "fig-exloss",
        lambda evidence: of_nine(evidence, _restricted_leads),
    ),
    Claim(
        "restricted-late-113",
        "At p = 113 the restricted loss falls only after grokking.",
        "§5.2, Table 3",
        "−1,500",
        "Restricted loss ≤ 0.5 nats comes at a checkpoint after the first grokked one, or never, in add_mod113_s42: "
        "reproduced; at it: "
        "partly; else not; beside it, the majority of all seeds.",
        "tab-exloss",
        lambda evidence: of_one(evidence, "add_mod113_s42", _restricted_113),
    ),
    Claim(
        "fsd-correlation",
        "FSD and validation accuracy correlate with 0.49 to 0.78.",
        "§5.1",
        "0.49 to 0.78",
        f"Pearson's correlation over all looks of each of {NINE}: all in [0.49, 0.78]: reproduced; all positive: "
        "partly; else not.",
        "tab-cross",
        lambda evidence: of_nine(evidence, _correlations),
    ),
    Claim(
        "fsd-2-at-113",
        "At p = 113 the conclusion holds with FSD_2.",
        "§4, Definition 2; §5.4",
        "FSD_2 leads",
        "FSD_2 ≥ 0.80 at a checkpoint before the first grokked one in add_mod113_s42: reproduced; else not; beside it: "
        "all: reproduced, more than half: partly.",
        "tab-cross",
        lambda evidence: of_one(evidence, "add_mod113_s42", _fsd_2),
    ),
    Claim(
        "lead-share-by-prime",
        "Synchronisation precedes grokking, whatever the seed.",
        "§5.1, asked at large n",
        "all seeds",
        "Share of grokked addition runs with a positive lead, for each of five primes with at least ten of them: every "
        "lower Clopper–Pearson end above 1/2: reproduced; the pooled one: partly; else not.",
        "tab-cross",
        _share_by_prime,
    ),
    Claim(
        "no-false-alarms",
        "FSD is a predictor of grokking.",
        "Abstract, §5.2, asked of runs that do not grok",
        "not tested",
        "Of the runs of the study negatives that did not grok, at least three, those with FSD ≥ 0.80 at any look: "
        "none: reproduced; fewer than half: partly; else not.",
        "tab-exloss",
        _false_alarms,
    ),
)
