"""λ of a run in words, also where a rule changed it while the run trained; nothing here loads torch, for `list`."""

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

from grokscope.runs.logs import Columns
from grokscope.runs.outcome import RunOutcome
from grokscope.specs import RunSpec

__all__ = ["EASED", "REASONS", "decay_path", "describe_decay", "describe_release"]

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
SHORT = {"learnt": "strong", "eased": "eased"}
WORDS = {"learnt": "{:g} from", "eased": "eased to {:g} by", "let go": "let go to {:g} at"}


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
    if spec.release is not None and _begins_gently(changes):
        label = f"λ = {_first_decay(spec):g}"
    parts = [_words(kind, list(own)) for kind, own in groupby(changes, _kind)] if spec.release is not None else []
    label += "".join(parts)
    if _release(spec, outcome) is not None:
        return label
    if changes and not any(parts) and changes[-1]["reason"] != "gentle":
        return f"{label}, {changes[-1]['weight_decay']:g} since step {changes[-1]['step']:,}"
    logged = list((evaluations or {}).get("weight_decay", ()))
    if not changes and logged and spec.training.weight_decay not in (None, logged[-1]):
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
    found, before = _release(spec, outcome), ""
    for kind, own in groupby(changes_of(outcome), _kind):
        if kind in SHORT:
            before += f"{SHORT[kind]} at {_steps(own)}; "
    return before + ("never" if found is None else f"{found['step']:,}: {REASONS[found['reason']]}")


def decay_path(spec: RunSpec, outcome: RunOutcome) -> list[float]:
    """λ at first, when strong decay began if that was later, and at the end, where a rule changed it; else nothing.

    >>> decay_path(RunSpec(), RunOutcome())
    []
    """
    changes = changes_of(outcome)
    if not changes:
        return []
    gently = spec.release is not None and _begins_gently(changes)
    kept = [one for one in changes[:-1] if one["reason"] == "learnt"] + changes[-1:]
    first = _first_decay(spec) if gently else spec.training.known_weight_decay
    return [first, *(float(one["weight_decay"]) for one in kept if one["reason"] != "gentle")]


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


def _kind(change: Change) -> str:
    """What a change of λ is: eased, let go, gentle decay, or strong decay that begins when the set is learnt."""
    return "eased" if change["reason"] in EASED else "let go" if change["reason"] in REASONS else change["reason"]


def _steps(changes: Iterable[Change]) -> str:
    return ", ".join(f"{one['step']:,}" for one in changes)


def _words(kind: str, changes: list[Change]) -> str:
    """Changes of one kind in a row; nothing of what is no reason to be named."""
    if kind not in WORDS:
        return ""
    last, reasons = changes[-1], REASONS | EASED | {"learnt": "the training set was learnt"}
    why = ", then ".join(dict.fromkeys(reasons[one["reason"]] for one in changes))
    return f", {WORDS[kind].format(last['weight_decay'])} step {last['step']:,} because {why}"


def _begins_gently(changes: list[Change]) -> bool:
    """Whether strong decay had still to begin when the run began."""
    return any(one["reason"] in ("gentle", "learnt") for one in changes)


def _first_decay(spec: RunSpec) -> float:
    """λ of the gentle decay with which a run begins."""
    strong, gentle = spec.training.known_weight_decay, spec.release.gentle if spec.release else None
    return strong if gentle is None else min(strong, gentle)
