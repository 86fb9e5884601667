"""Weight decay set by what a monitor measures, for any optimiser that has it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from numbers import Real
from typing import Any

import torch

from grokscope.attach.arguments import whole_number
from grokscope.attach.monitor import Monitor, Row
from grokscope.errors import require, shown
from grokscope.specs import ClosedLoop, ReadingSpec, Trigger
from grokscope.steering import controlled, decision

__all__ = ["Rule", "Schedule", "Verdict", "WeightDecayController"]

Rule = Any
"""A `Trigger`, a `Schedule`, the closed loop's settings, or a function of (λ at the start, log) that gives λ, or
None to leave it alone."""
WATCHED = {"fsd": ("fsd",), "train_accuracy": ("train_accuracy",), "step": ()}


@dataclass(frozen=True)
class Schedule:
    """λ by step, whatever is measured.

    >>> Schedule(((500, 3.0), (2000, 1.0))).at(700, before=1.0)
    (500, 3.0)
    """

    changes: tuple[tuple[int, float], ...]
    """(step, λ): from that step on λ is this."""

    def __post_init__(self) -> None:
        """Reject what is not (step, λ), each a number of at least 0."""
        for change in self.changes:
            is_pair = isinstance(change, tuple | list) and len(change) == 2 and all(map(_is_number, change))
            require(
                is_pair and min(change) >= 0, "a schedule is a list of (step, weight decay), each at least 0", change
            )

    def at(self, step: int, before: float) -> tuple[int, float]:
        """The last change until a step, and its λ; (0, before) if there was none."""
        return max(((at, decay) for at, decay in self.changes if at <= step), default=(0, before))


@dataclass(frozen=True)
class Verdict:
    """What a rule decides after everything logged so far."""

    weight_decay: float
    """λ from now on."""
    why: str
    """In a few words."""


class WeightDecayController:
    """Sets an optimiser's weight decay by a rule: raise, hold, restore, within bounds, and give the reason.

    A rule is a pure function of the monitor's log, so that training continued from a checkpoint goes on as it would
    have. Groups keep their proportions: one without decay (biases) stays without, unless none has any. Until a rule has
    given a λ it is left alone, so that a scheduler may change it; from then on it is set at every evaluation.

    >>> model = torch.nn.Linear(2, 2)
    >>> optimizer = torch.optim.AdamW(model.parameters(), weight_decay=1.0)
    >>> monitor = Monitor("add_mod7", encode="one_hot", train=torch.eye(7, dtype=torch.bool))
    >>> controller = WeightDecayController(optimizer, monitor, rule=Schedule(((100, 5.0),)))
    >>> monitor.log.append({"step": 100})
    >>> controller.step(), optimizer.param_groups[0]["weight_decay"]
    (5.0, 5.0)
    """

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        monitor: Monitor,
        rule: Rule = Trigger(restore_after_grokking=True),  # noqa: B008 (frozen)
        *,
        bounds: tuple[float, float] = (0.0, 10.0),
        hold: int | None = None,
    ) -> None:
        """What is controlled, by which log, and how.

        Args:
            optimizer: Any with `param_groups` that have a `weight_decay`.
            monitor: Whose log is read.
            rule: When λ changes, and to what.
            bounds: λ never leaves these.
            hold: With a trigger, λ returns to where it began this many steps after it fired, if not before.
        """
        self.optimizer = optimizer
        require(self.groups, f"{type(optimizer).__name__} has no weight decay to control")
        require(isinstance(monitor, Monitor), f"monitor must be a Monitor, got {type(monitor).__name__}")
        is_pair = isinstance(bounds, tuple | list) and len(bounds) == 2 and all(map(_is_number, bounds))
        require(is_pair and 0 <= bounds[0] <= bounds[1], "bounds must be 0 ≤ lowest ≤ highest", bounds)
        require(
            not isinstance(rule, ClosedLoop) or bounds[1],
            f"the closed loop raises λ, and bounds keep it at 0: got {shown(bounds)}",
        )
        self.hold = None if hold is None else whole_number(hold, "hold", "steps")
        self.monitor, self.rule, self.bounds = monitor, rule, bounds
        self.start = self.weight_decay
        require(
            not isinstance(rule, ClosedLoop) or self.start,
            "the closed loop multiplies λ, which begins at 0; give the optimiser a weight decay above 0",
        )
        # Each group's λ for one of the whole: biases that do not decay have 0.
        self.shares = [self._share(group) for group in self.groups]
        self.log: list[Row] = []
        self._decided_at: int | None = None
        self._reject_blind(rule)
        monitor.controlled = (*monitor.controlled, optimizer)

    @property
    def groups(self) -> list[dict[str, Any]]:
        """The optimiser's groups that have a weight decay; it makes new ones when its own state is loaded."""
        return [group for group in getattr(self.optimizer, "param_groups", []) if "weight_decay" in group]

    @property
    def weight_decay(self) -> float:
        """λ in force: the largest of any group."""
        return max(float(group["weight_decay"]) for group in self.groups)

    def step(self) -> float:
        """Apply the rule to what the monitor has logged, and set λ; λ from now on.

        Call it after `monitor.step`; between evaluations it changes nothing.
        """
        log = self.monitor.log
        if log and log[-1]["step"] != self._decided_at:
            self._decided_at = log[-1]["step"]
            if (verdict := self._verdict(log)) is not None:
                self._follow(verdict, int(log[-1]["step"]))
        return self.weight_decay

    def state_dict(self) -> dict[str, Any]:
        """λ at the start, in each group, and what was done; the monitor's log has its own."""
        return {
            "start": self.start,
            "shares": self._shares(),
            "weight_decays": [float(group["weight_decay"]) for group in self.groups],
            "log": [dict(row) for row in self.log],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a state: λ is set as it was."""
        for entry in ("start", "shares", "weight_decays", "log"):
            has_entry = isinstance(state, Mapping) and entry in state
            require(has_entry, f"the state is not a controller's: it has no entry {entry!r}")
        require(
            len(state["shares"]) == len(self.groups),
            f"the state has {len(state['shares'])} groups with weight decay, the optimiser {len(self.groups)}",
        )
        self.start, self.shares = float(state["start"]), [float(share) for share in state["shares"]]
        self.log, self._decided_at = [dict(row) for row in state["log"]], None
        for group, decay in zip(self.groups, state["weight_decays"], strict=True):
            group["weight_decay"] = float(decay)

    def _follow(self, verdict: Verdict, step: int) -> None:
        require(
            isfinite(verdict.weight_decay),
            f"the rule must give a weight decay, got {verdict.weight_decay} at step {step}",
        )
        wanted, was = min(max(verdict.weight_decay, self.bounds[0]), self.bounds[1]), self.weight_decay
        if wanted != was:
            limits = f", kept within {self.bounds[0]:g} to {self.bounds[1]:g}"
            why = verdict.why if wanted == verdict.weight_decay else verdict.why + limits
            self._apply(wanted)
            self.log.append({"step": step, "was": was, "weight_decay": wanted, "why": why})

    def _share(self, group: Mapping[str, Any]) -> float:
        return float(group["weight_decay"]) / self.start if self.start else 1.0

    def _shares(self) -> list[float]:
        """Each group's share, those that came later included."""
        return self.shares + [self._share(group) for group in self.groups[len(self.shares) :]]

    def _apply(self, weight_decay: float) -> None:
        groups, self.shares = self.groups, self._shares()
        decays = [weight_decay * share for share in self.shares]
        for group, decay in zip(groups, decays, strict=True):
            rate = float(group.get("lr", 0.0))
            require(rate * decay < 1, f"learning_rate × weight_decay must stay below 1, got {rate:g} × {decay:g}")
        for group, decay in zip(groups, decays, strict=True):
            group["weight_decay"] = decay

    def _verdict(self, log: Sequence[Row]) -> Verdict | None:
        """What the rule decides; None as long as it has decided nothing."""
        if isinstance(self.rule, Trigger):
            return self._triggered(self.rule, log)
        if isinstance(self.rule, Schedule):
            since, decay = self.rule.at(int(log[-1]["step"]), self.start)
            has_begun = any(step == since for step, _ in self.rule.changes)
            return Verdict(decay, f"scheduled from step {since}") if has_begun else None
        if isinstance(self.rule, ClosedLoop):
            # Within the bounds from the start, so that backing off begins at the λ that is in force.
            within = replace(self.rule, highest=max(self.start, min(self.rule.highest, self.bounds[1])))
            found = controlled(within, self.start, self._own_rows(log))
            return Verdict(found.weight_decay, str(found.phase)) if found.changes else None
        found_by_rule = self.rule(self.start, log)
        if found_by_rule is None:
            return None
        wanted = getattr(found_by_rule, "weight_decay", found_by_rule)
        require(_is_number(wanted), "the rule must give a weight decay, or None to leave it", wanted)
        return Verdict(float(wanted), str(getattr(found_by_rule, "phase", "your rule")))

    def _own_rows(self, log: Sequence[Row]) -> Sequence[Row]:
        """The log with this optimiser's λ as the λ."""
        column = next(name for name, one in self.monitor.optimizers.items() if one is self.optimizer)
        if column == "weight_decay":
            return log
        others = [{name: value for name, value in row.items() if name != "weight_decay"} for row in log]
        return [row | ({"weight_decay": row[column]} if column in row else {}) for row in others]

    def _triggered(self, rule: Trigger, log: Sequence[Row]) -> Verdict | None:
        found, grokked = decision(rule, self.start, log), ReadingSpec().grokked
        if found.restored_at is not None:
            why = f"validation accuracy reached {grokked:g} at step {found.restored_at}"
            return Verdict(found.weight_decay, why)
        if found.fired_at is None:
            return None
        if self.hold is not None and log[-1]["step"] >= found.fired_at + self.hold:
            return Verdict(self.start, f"held for {self.hold} steps")
        return Verdict(found.weight_decay, f"{rule.signal} reached {rule.threshold:g} at step {found.fired_at}")

    def _reject_blind(self, rule: Rule) -> None:
        """Reject a rule that reads what the monitor does not log."""
        require(
            not isinstance(rule, Trigger) or rule.signal != "random",
            "a random trigger needs the last step: choose one, and use Trigger('step', at_least=…)",
        )
        is_closed_loop = isinstance(rule, ClosedLoop)
        require(
            isinstance(rule, Trigger | Schedule) or is_closed_loop or callable(rule),
            "rule must be a Trigger, a Schedule, a closed loop or a function",
            rule,
        )
        needed = WATCHED[rule.signal] if isinstance(rule, Trigger) else ("train_accuracy",) if is_closed_loop else ()
        if isinstance(rule, Trigger) and rule.restore_after_grokking:
            needed = (*needed, "validation_accuracy")
        require(
            "fsd" not in needed or ("fsd" in self.monitor.measures and self.monitor.sites),
            "the rule reads fsd, and the monitor does not measure it: give it a site and 'fsd'",
        )
        require(
            not {"train_accuracy", "validation_accuracy"} & {*needed} or self.monitor.is_train is not None,
            "the rule reads accuracies, and the monitor lacks the training pairs: Monitor(train=…)",
        )


def _is_number(value: Any) -> bool:
    """A real number; a tensor with a single one counts."""
    return isinstance(value, Real) or (isinstance(value, torch.Tensor) and value.numel() == 1)
