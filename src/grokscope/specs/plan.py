"""A set of runs, where their results go, and what each run is trained for."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, Self

from grokscope.specs.run import RunSpec
from grokscope.specs.spec import Spec, require

__all__ = ["Membership", "Plan"]


@dataclass(frozen=True, order=True)
class Membership(Spec):
    """A run's place in a study; one run may have several, in one study or in many."""

    study: str
    """The study's name, `synchronization`."""
    experiment: str
    """Which of the study's experiments, `base`."""
    name: str
    """What the experiment calls the run, `add_mod97_s42`."""

    def check(self) -> None:
        """No part is empty, and each can be printed."""
        for part in (self.study, self.experiment, self.name):
            require(part != "" and part.isprintable(), "a membership names study, experiment and run", self)


@dataclass(frozen=True)
class Plan(Spec):
    """What a worker needs to know."""

    out: str
    """The folder of results."""
    runs: tuple[RunSpec, ...]
    """What is to be run."""
    device: str = "cpu"
    """`cpu`, `cuda`, or `cuda:1`."""
    keep: Literal["weights", "state", "forks", "none"] = "weights"
    """Checkpoints: weights at the cadence and full states where a run can be continued; every full state; full states
    at listed steps only, where forks begin; none."""
    stop_after_grokking: int | None = None
    """Steps after which a grokked run ends; None runs to the last step. Leads are then biased: FSD may cross later."""
    measures: tuple[str, ...] = ()
    """What is measured at every checkpoint while the weights are at hand, by name; `fsd@sum` and `fsd@additive` read by
    sums or in that basis, and tasks that have neither go without."""
    milestones: tuple[str, ...] = ()
    """What is measured at two checkpoints only, because it is expensive: the first since grokking, and the last."""
    afterwards: tuple[str, ...] = ()
    """What is measured at every checkpoint once a run has ended: `trig@final` with the key modes of its last
    checkpoint, and what compares a checkpoint with those before it (`update_spectrum`). A run that was stopped on the
    way begins anew, for its weights are kept in memory alone."""
    measured: tuple[str, ...] = ()
    """Content hashes of the runs that are measured; all of them if empty."""
    signals: bool = False
    """Whether every evaluation also logs what the state says without activations: norms of blocks, Adam's step, and a
    fingerprint of weights and moments, by which a fork is compared with its parent to the last bit."""
    tier_signals: bool = False
    """Whether every evaluation also logs what weights and activations say, by the tier of information that it needs; it
    takes one more forward pass over all rows."""
    deterministic: bool = False
    """Reject any operation whose result may differ between two runs on one accelerator."""
    made_for: tuple[tuple[Membership, ...], ...] = ()
    """The studies that each run is trained for, in the order of `runs`; empty if there are none."""

    @cached_property
    def memberships(self) -> dict[RunSpec, tuple[Membership, ...]]:
        """The studies of each run that has any."""
        pairs = zip(self.runs, self.made_for, strict=True) if self.made_for else ()
        found: dict[RunSpec, tuple[Membership, ...]] = {}
        for spec, studies in pairs:
            if studies:
                found[spec] = tuple(sorted({*found.get(spec, ()), *studies}))
        return found

    def select(self, runs: Iterable[RunSpec]) -> Self:
        """The same plan with some of its runs, each with its studies."""
        chosen, known = tuple(runs), self.memberships
        made_for = tuple(known.get(spec, ()) for spec in chosen) if known else ()
        return replace(self, runs=chosen, made_for=made_for)

    def check(self) -> None:
        """A folder, at least one run, studies for all runs or for none, a sensible stop."""
        require(self.out != "", "out must be a folder", self.out)
        require(len(self.runs) >= 1, "a plan needs at least one run", self.runs)
        count = len(self.made_for)
        require(count in (0, len(self.runs)), f"made_for must have an entry for each of {len(self.runs)} runs", count)
        early = self.stop_after_grokking
        require(early is None or early >= 0, "stop_after_grokking must be at least 0", early)
