"""λ of a run in words, also where a rule changed it while the run trained; nothing here loads torch, for `list`."""

from collections.abc import Mapping
from typing import Any

from grokscope.runs.logs import Columns
from grokscope.runs.outcome import RunOutcome
from grokscope.specs import RunSpec

__all__ = ["EASED", "REASONS", "describe_decay", "describe_release", "last_decay"]

Change = Mapping[str, Any]
REASONS = {
    "generalization": "it generalised",
    "norm_slows": "the norm hardly fell any more",
    "norm_target": "the norm was down to its target",
    "accuracy_breaks": "train accuracy fell",
    "loss_rises": "train loss rose",
}
"""Why λ was let go, by the reason that an outcome stores."""
EASED = {
    "unlearnt": "the training set was not learnt",
    "stalled": "what is held out was not learnt",
}
"""Why λ was eased before."""


def describe_decay(spec: RunSpec, outcome: RunOutcome, evaluations: Columns | None = None) -> str:
    """λ as it was at first and as it is at the end, with when and why it was let go.

    Of a run whose outcome says nothing of it, such as one that is not finished, λ as its last evaluation has it.

    >>> from grokscope.specs import Release, Training
    >>> steered = RunSpec(training=Training(weight_decay=5.0), release=Release())
    >>> changes = [{"step": 250, "weight_decay": 1.0, "reason": "generalization"}]
    >>> describe_decay(steered, RunOutcome("grokked", control={"changes": changes}))
    'λ = 5, let go to 1 at step 250 because it generalised'
    >>> describe_decay(steered, RunOutcome("never", control={"changes": []})), describe_decay(RunSpec(), RunOutcome())
    ('λ = 5, never let go', 'λ = 1')
    """
    label, changes = spec.training.decay_label, changes_of(outcome)
    eased = _eased(spec, outcome)
    if eased:
        label += f", eased to {eased[-1]['weight_decay']:g} by step {eased[-1]['step']:,} because {_why_eased(eased)}"
    if (release := _release(spec, outcome)) is not None:
        why = REASONS[release["reason"]]
        return f"{label}, let go to {release['weight_decay']:g} at step {release['step']:,} because {why}"
    if changes and not eased:
        return f"{label}, {changes[-1]['weight_decay']:g} since step {changes[-1]['step']:,}"
    logged = list((evaluations or {}).get("weight_decay", ()))
    if logged and spec.training.weight_decay is not None and logged[-1] != spec.training.weight_decay:
        return f"{label}, {logged[-1]:g} at its last evaluation"
    is_known = spec.release is not None and outcome.control is not None
    return f"{label}, never let go" if is_known else label


def describe_release(spec: RunSpec, outcome: RunOutcome) -> str | None:
    """When and why λ was let go, in a cell of a table; None of a run that has nothing to let go.

    >>> from grokscope.specs import Release
    >>> changes = [{"step": 250, "weight_decay": 1.0, "reason": "generalization"}]
    >>> describe_release(RunSpec(release=Release()), RunOutcome("grokked", control={"changes": changes}))
    '250: it generalised'
    """
    if spec.release is None or outcome.control is None:
        return None
    found, eased = _release(spec, outcome), _eased(spec, outcome)
    steps = ", ".join(f"{one['step']:,}" for one in eased)
    before = f"eased at {steps}; " if eased else ""
    return before + ("never" if found is None else f"{found['step']:,}: {REASONS[found['reason']]}")


def last_decay(outcome: RunOutcome) -> float | None:
    """λ at the end, where a rule changed it.

    >>> last_decay(RunOutcome()) is None
    True
    """
    changes = changes_of(outcome)
    return float(changes[-1]["weight_decay"]) if changes else None


def changes_of(outcome: RunOutcome) -> list[Change]:
    """Every change of λ by a closed loop or a release, as the outcome of a finished run has them.

    >>> changes_of(RunOutcome())
    []
    """
    found = (outcome.control or {}).get("changes") or []
    return [one for one in found if isinstance(one, Mapping) and {"step", "weight_decay", "reason"} <= one.keys()]


def _release(spec: RunSpec, outcome: RunOutcome) -> Change | None:
    """The change by which λ was let go for good."""
    if spec.release is None:
        return None
    return next((one for one in changes_of(outcome) if one["reason"] in REASONS), None)


def _eased(spec: RunSpec, outcome: RunOutcome) -> list[Change]:
    """The changes by which λ was eased, before it was let go if it was."""
    return [one for one in changes_of(outcome) if spec.release is not None and one["reason"] in EASED]


def _why_eased(eased: list[Change]) -> str:
    """Each reason once, in the order in which they came."""
    return ", then ".join(dict.fromkeys(EASED[one["reason"]] for one in eased))
