"""§6, Figure 8: weight decay raised at the FSD crossing, at memorisation, or early."""

from statistics import fmean

from grokscope.runs.records import RunRecord
from grokscope.studies.synchronization.experiments import seeds_of
from grokscope.studies.claims.chosen import grokked, triggered_late
from grokscope.studies.claims.claim import Claim, Finding, Verdict, graded, inconsistent, percent, too_few
from grokscope.studies.evidence import Evidence

__all__ = ["CLAIMS"]

SEEDS = seeds_of((42, 0, 1), None)
THREE = "the three printed seeds"


def _arm(evidence: Evidence, arm: str, everyone: bool = False) -> dict[int, RunRecord]:
    """The runs of one arm, `fsd_x3`, by seed."""
    found = {}
    for name, record in evidence.study("accelerator").items():
        of, _, seed = name.rpartition("_s")
        if of == arm and (everyone or int(seed) in SEEDS):
            found[int(seed)] = record
    return found


def _saved(evidence: Evidence, arm: str, other: str, everyone: bool = False) -> float | None:
    """1 − mean grok step of an arm over that of another, over the seeds at which both grok; None without any."""
    ours, theirs = (_arm(evidence, name, everyone) for name in (arm, other))
    steps = [
        (ours[seed].timeline.grokked, theirs[seed].timeline.grokked)
        for seed in ours
        if seed in theirs and grokked([ours[seed], theirs[seed]]) == [ours[seed], theirs[seed]]
    ]
    pairs = [(float(a), float(b)) for a, b in steps if a is not None and b is not None]
    return 1 - fmean(a for a, _ in pairs) / fmean(b for _, b in pairs) if pairs else None


def _missing(evidence: Evidence, *arms: str) -> Finding | None:
    found = sum(len(_arm(evidence, arm)) for arm in arms)
    return too_few(found, 3 * len(arms), "runs of these arms") if found < 3 * len(arms) else None


def _idle(evidence: Evidence, *arms: str) -> str:
    """In how many runs of the printed seeds a trigger came too late to do anything, if in any."""
    runs = [record for arm in arms for record in _arm(evidence, arm).values()]
    late = sum(map(triggered_late, runs))
    return (
        f"; in {late} of the {len(runs)} of {' and '.join(arms)} λ rose only after grokking, or never" if late else ""
    )


def _speed(evidence: Evidence) -> Finding:
    missing = _missing(evidence, "fixed", "fsd_x3", "fsd_x5")
    if missing:
        return missing
    saved = [_saved(evidence, f"fsd_x{high}", "fixed") for high in (3, 5)]
    wide = [_saved(evidence, f"fsd_x{high}", "fixed", everyone=True) for high in (3, 5)]
    ours = [share for share in saved if share is not None]
    full = len(ours) == 2 and min(ours) >= 0.36
    part = len(ours) == 2 and min(ours) > 0
    late = sum(len(grokked(_arm(evidence, f"fsd_x{high}").values())) for high in (3, 5))
    value, beside = (
        ", ".join(f"λ = {high}: {'none' if s is None else percent(s)}" for high, s in zip((3, 5), shares, strict=True))
        for shares in (saved, wide)
    )
    n = len(set.intersection(*(set(_arm(evidence, arm, everyone=True)) for arm in ("fixed", "fsd_x3", "fsd_x5"))))
    why = f"{late} of 6 triggered runs grok{_idle(evidence, 'fsd_x3', 'fsd_x5')}."
    return Finding(value, graded(full, part), why, 9, beside=f"{beside} over {n} seeds" if n > 3 else "")


def _groks(evidence: Evidence, arms: tuple[str, ...], wanted: bool) -> Finding:
    """Whether all runs of some arms grok, or none does."""
    missing = _missing(evidence, *arms)
    if missing:
        return missing
    counts = {arm: len(grokked(_arm(evidence, arm).values())) for arm in arms}
    everyone = {arm: _arm(evidence, arm, everyone=True) for arm in arms}
    good = sum(count if wanted else 3 - count for count in counts.values())
    total = 3 * len(arms)
    value = ", ".join(f"{arm}: {count} of 3 grok" for arm, count in counts.items())
    wide = ", ".join(f"{arm}: {len(grokked(runs.values()))} of {len(runs)}" for arm, runs in everyone.items())
    beside = wide if any(len(runs) > 3 for runs in everyone.values()) else ""
    verdict = graded(good == total, good > total / 2)
    why = f"{good} of {total} do as claimed{_idle(evidence, *arms)}."
    return Finding(value, verdict, why, total, beside=beside)


def _faster(evidence: Evidence) -> Finding:
    missing = _missing(evidence, "fsd_x3", "mem_x3", "early_x3")
    if missing:
        return missing
    saved = {arm: _saved(evidence, f"{arm}_x3", "fsd_x3") for arm in ("mem", "early")}
    good = sum(share is not None and share > 0 for share in saved.values())
    said = {"mem": "at memorisation", "early": "at step 300"}
    value = ", ".join(f"{said[arm]}: {'none' if s is None else f'{percent(s)} sooner'}" for arm, s in saved.items())
    why = f"Over the seeds at which both grok{_idle(evidence, 'fsd_x3')}."
    return Finding(value, graded(good == 2, good == 1), why, 9)


def _safe(evidence: Evidence) -> Finding:
    runs = _arm(evidence, "fsd_x10", everyone=True)
    value = f"{len(grokked(runs.values()))} of {len(runs)} grok" if runs else "not measured"
    in_time = [record for record in runs.values() if not triggered_late(record)]
    if 0 < len(in_time) < len(runs):
        value += f", {len(grokked(in_time))} of the {len(in_time)} in which λ rose before"
    finding = Finding(value, Verdict.NOT, "", len(runs))
    return inconsistent(finding, "The caption calls the FSD trigger safe at λ = 10, the text up to 5 only.")


CLAIMS = (
    Claim(
        "accelerator-saves",
        "Raising λ at the FSD crossing saves 36 to 43 % of the steps to grokking.",
        "Abstract, §6, Figure 8",
        "36 to 43 %",
        f"1 − mean grok step of fsd_x3 and of fsd_x5 over that of fixed, over those of {THREE} at which both grok: "
        "both at least 36 %: reproduced; both positive: partly; else not.",
        "fig-accelerator",
        _speed,
    ),
    Claim(
        "accelerator-stable",
        "The FSD-timed rise groks on three of three seeds up to λ = 5.",
        "§6",
        "3 of 3",
        f"fsd_x3 and fsd_x5 grok on {THREE}: all six: reproduced; more than half: partly; else not.",
        "fig-accelerator",
        lambda evidence: _groks(evidence, ("fsd_x3", "fsd_x5"), wanted=True),
    ),
    Claim(
        "early-triggers-fail",
        "Raising λ to 10 at memorisation or at an early step prevents grokking.",
        "§6, Figure 8",
        "0 of 3",
        f"mem_x10 and early_x10 on {THREE}: none of six groks: reproduced; fewer than half: partly; else not.",
        "fig-accelerator",
        lambda evidence: _groks(evidence, ("mem_x10", "early_x10"), wanted=False),
    ),
    Claim(
        "early-triggers-faster",
        "At λ = 3 the triggers before circuit formation are faster than FSD's.",
        "Figure 8",
        "faster",
        f"Mean grok step of mem_x3 and of early_x3 below that of fsd_x3, over those of {THREE} at which both grok: "
        "both: reproduced; one: partly; else not.",
        "fig-accelerator",
        _faster,
    ),
    Claim(
        "accelerator-safe-at-10",
        "The FSD trigger remains safe at λ = 10.",
        "§6, Figure 8",
        "safe (caption), safe up to 5 (text)",
        "Always inconsistent; our value is how many runs of fsd_x10 grok.",
        "fig-accelerator",
        _safe,
    ),
)
